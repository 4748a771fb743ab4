/* SPDX-License-Identifier: MIT */
/* Tests of radar.c: exact lengths, epochs between samples, and gates that contain every wanted
 * echo. */
#include "setup/radar.h"

#include "base/clock.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

static const double light_mps = 299792458;

/* Sets 1 Msample/s, one sample a chip, and two-way propagation of light. */
static void fill(pnr_config *config)
{
    memset(config, 0, sizeof *config);
    config->source.rate_hz = (pnr_rational){1000000, 1};
    config->radar.speed_mps = light_mps;
    config->dwell.periods = 1;
}

static void assert_near(double got, double expected, double relative)
{
    if (!(fabs(got - expected) <= relative * fabs(expected)))
        fail_msg("%.17g instead of %.17g", got, expected);
}

static pnr_radar derive(const pnr_config *config, size_t n_chips)
{
    pnr_radar radar;
    pnr_error error = {0};

    if (pnr_radar_derive(config, n_chips, &radar, &error) != PNR_OK)
        fail_msg("refused: %s", error.text);
    return radar;
}

static void refused(const pnr_config *config, size_t n_chips, const char *word)
{
    pnr_radar radar;
    pnr_error error = {0};

    assert_int_equal(pnr_radar_derive(config, n_chips, &radar, &error), PNR_ECONFIG);
    assert_int_equal(error.code, PNR_ECONFIG);
    if (!strstr(error.text, word))
        fail_msg("'%s' is not in '%s'", word, error.text);
    assert_int_equal(pnr_radar_derive(config, n_chips, &radar, NULL), PNR_ECONFIG);
}

TEST(a_chip_is_a_sample_by_default)
{
    pnr_config config;

    fill(&config);
    pnr_radar r = derive(&config, 1023);
    assert_int_equal(r.n_chips, 1023);
    assert_int_equal(r.n_samples, 1023);
    assert_true(r.chip_rate_hz.num == 1000000 && r.chip_rate_hz.den == 1);
    assert_near(r.period_s, 1023e-6, 1e-15);
    assert_near(r.gain_db, 10 * log10(1023), 1e-14);
    assert_near(r.metres_per_second, light_mps / 2, 0);
    assert_near(r.resolution_m, 149.896229, 1e-14);
    assert_near(r.unambiguous_m, 149.896229 * 1023, 1e-14);
    assert_true(r.min_delay_s == 0);
    assert_near(r.max_delay_s, r.period_s, 1e-15);
    assert_near(r.doppler_span_hz, 1 / (2 * 1023e-6), 1e-14);
    assert_near(r.doppler_step_hz, 1 / 1023e-6, 1e-14);
    assert_true(r.wavelength_m == 0);
    assert_true(r.epoch_sample == 0 && r.epoch_fraction == 0 && r.first_window == 0);
    assert_false(r.has_start);
    assert_true(r.gate_first == 0 && r.gate_count == 1023);
}

TEST(gps_has_4000_samples_for_1023_chips)
{
    pnr_config config;

    fill(&config);
    config.source.rate_hz = (pnr_rational){4000000, 1};
    config.code.chip_rate_hz = (pnr_rational){1023000, 1};
    config.radar.path = PNR_PATH_ONE_WAY;
    config.radar.carrier_hz = 1575.42e6;
    config.dwell.periods = 4;
    config.dwell.combine = PNR_COMBINE_INCOHERENT;
    pnr_radar r = derive(&config, 1023);
    assert_int_equal(r.n_samples, 4000);
    assert_near(r.period_s, 1e-3, 1e-15);
    assert_near(r.metres_per_second, light_mps, 0);
    assert_near(r.resolution_m, light_mps / 1.023e6, 1e-14);
    assert_near(r.wavelength_m, light_mps / 1575.42e6, 1e-14);
    assert_near(r.doppler_span_hz, 500, 1e-14);
    assert_near(r.doppler_step_hz, 250, 1e-14);
    assert_near(r.gain_db, 10 * log10(4000), 1e-14);
    config.dwell.combine = PNR_COMBINE_COHERENT;
    assert_near(derive(&config, 1023).gain_db, 10 * log10(16000), 1e-14);
}

TEST(rates_that_are_fractions)
{
    pnr_config config;

    fill(&config);
    config.source.rate_hz = (pnr_rational){40000000, 3};
    config.code.chip_rate_hz = (pnr_rational){4000000, 3};
    pnr_radar r = derive(&config, 127);
    assert_int_equal(r.n_samples, 1270);
    assert_near(r.period_s, 1270 * 3 / 40e6, 1e-15);
    /* Six chips of five sixths of a sample make 5 samples. */
    config.code.chip_rate_hz = (pnr_rational){16000000, 1};
    assert_int_equal(derive(&config, 6).n_samples, 5);
}

TEST(a_broken_length_names_the_good_rates)
{
    pnr_config config;

    fill(&config);
    config.source.rate_hz = (pnr_rational){4000500, 1};
    config.code.chip_rate_hz = (pnr_rational){1023000, 1};
    refused(&config, 1023, "4000.5 samples");
    refused(&config, 1023, "4000000, 4001000");
    /* A period would be shorter than one sample, so the message names only a higher rate. */
    config.source.rate_hz = (pnr_rational){999, 1};
    refused(&config, 1023, "rates: 1000");
    /* This rate has no finite decimal. */
    config.code.chip_rate_hz = (pnr_rational){1000000, 3};
    config.source.rate_hz = (pnr_rational){100000, 1};
    refused(&config, 7, "not a whole number");
    refused(&config, 7, "rates: 2000000/21 (95238.09524), 1000000/7 (142857.1429)");
    refused(&config, 7, "code.chip_rate_hz 350000, 700000/3 (233333.3333)");
    /* Whole samples a chip are the nearest decimal rate. */
    config.code.chip_rate_hz = (pnr_rational){1000000, 1};
    config.source.rate_hz = (pnr_rational){2100000, 1};
    refused(&config, 2047, "rates: 2000000, 4298000000/2047 (2099658.036), 4299000000/2047");
    refused(&config, 2047, "code.chip_rate_hz 1006250, 307050000/307 (1000162.866), ");
    /* A decimal rate with one sample more is first. */
    config.code.chip_rate_hz = (pnr_rational){1023000, 1};
    config.source.rate_hz = (pnr_rational){2045500, 1};
    refused(&config, 1023, "rates: 2045000, 2046000; or");
}

/* Tries each rate of a list, as the source rate or the chip rate. Periods of k and k + 1 samples
 * are among them, and decimal numbers precede fractions. Returns the number of decimal numbers. */
static int try_rates(const char *list, pnr_config config, bool is_chip_rate, size_t n_chips,
                     size_t k)
{
    bool has_k = false, has_next = false, has_fraction = false;
    int n_decimals = 0;
    char text[64];

    for (int length = 0; sscanf(list, "%63[-+0-9./e]%n", text, &length) == 1;) {
        assert_int_equal(pnr_rational_parse(text, is_chip_rate ? &config.code.chip_rate_hz
                                                               : &config.source.rate_hz),
                         PNR_OK);
        const size_t n = derive(&config, n_chips).n_samples;
        has_k |= n == k;
        has_next |= n == k + 1;
        n_decimals += strchr(text, '/') == NULL;
        assert_false(has_fraction && strchr(text, '/') == NULL);
        has_fraction |= strchr(text, '/') != NULL;
        list += length;
        list += strspn(list, " ");
        list += *list == '(' ? strcspn(list, ")") + 1 : 0;
        list += strspn(list, ", ");
    }
    assert_true(has_k && has_next);
    return n_decimals;
}

TEST(the_good_rates_are_good_and_next_to_it)
{
    int n_broken = 0, n_decimals = 0;

    for (int i = 0; i < 2000; i++) {
        const size_t n_chips = 1 + (size_t)(uniform() * 5000);
        pnr_config config;
        pnr_radar radar;
        pnr_error error;
        fill(&config);
        config.source.rate_hz = (pnr_rational){100000 + (int64_t)(uniform() * 1e7), 1};
        config.code.chip_rate_hz = (pnr_rational){1000 + (int64_t)(uniform() * 1e5), 7};
        if (pnr_radar_derive(&config, n_chips, &radar, &error) == PNR_OK)
            continue;
        const char *rates = strstr(error.text, "good rates: ");
        if (!rates) {
            assert_non_null(strstr(error.text, "at most"));
            continue;
        }
        n_broken++;
        const char *chips = strstr(rates, "; or code.chip_rate_hz ");
        assert_non_null(chips);
        const size_t k = (size_t)(7 * (double)config.source.rate_hz.num * (double)n_chips /
                                  (double)config.code.chip_rate_hz.num);
        n_decimals += try_rates(rates + strlen("good rates: "), config, false, n_chips, k);
        n_decimals +=
            try_rates(chips + strlen("; or code.chip_rate_hz "), config, true, n_chips, k);
    }
    assert_true(n_broken > 500 && n_decimals > 200);
}

TEST(lengths_and_rates_that_are_refused)
{
    pnr_config config;

    fill(&config);
    refused(&config, 0, "chips");
    refused(&config, (1u << 24) + 1, "chips");
    assert_int_equal(derive(&config, 1u << 24).n_samples, 1 << 24);
    config.code.chip_rate_hz = (pnr_rational){500000, 1};
    assert_int_equal(derive(&config, 1u << 23).n_samples, 1 << 24);
    refused(&config, (1u << 23) + 1, "at most");
    config.code.chip_rate_hz = (pnr_rational){-1, 1};
    refused(&config, 10, "code.chip_rate_hz");
    config.code.chip_rate_hz = (pnr_rational){0, 1};
    refused(&config, 10, "code.chip_rate_hz");
    config.code.chip_rate_hz = (pnr_rational){1, INT64_MAX};
    config.source.rate_hz = (pnr_rational){INT64_MAX - 1, 1};
    refused(&config, 10, "64 bits");

    fill(&config);
    config.source.rate_hz = (pnr_rational){0, 0};
    refused(&config, 10, "source.rate_hz: not given");
    config.source.rate_hz = (pnr_rational){-4, 1};
    refused(&config, 10, "source.rate_hz");
    config.source.rate_hz = (pnr_rational){0, 1};
    refused(&config, 10, "source.rate_hz");
}

TEST(numbers_that_make_no_radar)
{
    static const double bad_speeds[] = {0, -1, (double)NAN, (double)INFINITY};
    static const double bad_carriers[] = {-1, (double)NAN, (double)INFINITY};
    pnr_config config;

    for (size_t i = 0; i < 4; i++) {
        fill(&config);
        config.radar.speed_mps = bad_speeds[i];
        refused(&config, 100, "radar.speed_mps");
    }
    for (size_t i = 0; i < 3; i++) {
        fill(&config);
        config.radar.carrier_hz = bad_carriers[i];
        refused(&config, 100, "radar.carrier_hz");
    }
    fill(&config);
    config.dwell.periods = 0;
    refused(&config, 100, "dwell.periods");
    fill(&config);
    config.radar.min_range_m = (double)NAN;
    refused(&config, 100, "min_range_m");
    fill(&config);
    config.radar.max_range_m = (double)INFINITY;
    refused(&config, 100, "max_range_m");
    fill(&config);
    config.radar.zero_delay_s = (double)NAN;
    refused(&config, 100, "zero_delay_s");
    config.radar.zero_delay_s = 1e30;
    refused(&config, 100, "too large");
}

/* Derives a gate in which a sample is one metre: speed 2e6 m/s, two-way, 1 Msample/s. */
static pnr_radar gate(double min_m, double max_m, double zero_delay_s, size_t n)
{
    pnr_config config;

    fill(&config);
    config.radar.speed_mps = 2e6;
    config.radar.min_range_m = min_m;
    config.radar.max_range_m = max_m;
    config.radar.zero_delay_s = zero_delay_s;
    return derive(&config, n);
}

static void assert_gate(pnr_radar r, size_t first, size_t count)
{
    if (r.gate_first != first || r.gate_count != count)
        fail_msg("gate %zu + %zu instead of %zu + %zu", r.gate_first, r.gate_count, first, count);
}

TEST(gates)
{
    assert_gate(gate(0, 0, 0, 1000), 0, 1000);
    assert_gate(gate(10, 20, 0, 1000), 10, 11);
    assert_gate(gate(10.2, 20.7, 0, 1000), 10, 12);
    assert_gate(gate(-5, 5, 0, 1000), 995, 11);
    assert_gate(gate(-20, -10, 0, 1000), 980, 11);
    assert_gate(gate(10, 10, 0, 1000), 10, 1);
    assert_gate(gate(10.5, 10.5, 0, 1000), 10, 2);
    assert_gate(gate(990, 1010, 0, 1000), 990, 21);
    assert_gate(gate(2010, 2020, 0, 1000), 10, 11);
    /* The delay of the cables moves the gate, which wraps. */
    assert_gate(gate(10, 20, 7e-6, 1000), 17, 11);
    assert_gate(gate(10, 20, -15e-6, 1000), 995, 11);
    assert_gate(gate(10, 20, 0.1e-6, 1000), 10, 12);
    assert_gate(gate(0, 999, 0, 1000), 0, 1000);
    assert_gate(gate(0, 998, 0, 1000), 0, 999);
    assert_gate(gate(3, 1001.7, 0, 1000), 0, 1000);
    assert_gate(gate(3, 1003, 0, 1000), 0, 1000);
    /* max_range_m = 0 means the whole unambiguous range from -7 m on */
    assert_gate(gate(-7, 0, 0, 1000), 0, 1000);
    assert_gate(gate(0, 0, 0, 1), 0, 1);
}

/* Checks the cells of a gate: each delay is that of its lag, every cell is inside the gate, and no
 * cell is missing. */
static void assert_cells(double min_m, double max_m, double zero_delay_s, size_t oversample)
{
    pnr_config config;
    size_t first, n;

    fill(&config);
    config.radar.speed_mps = 2e6;
    config.radar.min_range_m = min_m;
    config.radar.max_range_m = max_m;
    config.radar.zero_delay_s = zero_delay_s;

    const pnr_radar r = derive(&config, 1000);
    const double delay_s = pnr_radar_cells(&r, &config, oversample, &first, &n);
    const size_t n_cells = 1000 * oversample;
    const double step_s = 1e-6 / (double)oversample;

    assert_true(first < n_cells && n >= 1 && n <= n_cells);
    for (size_t i = 0; i < n; i++) {
        const double lag = (double)((first + i) % n_cells) / (double)oversample;
        const double want_s = pnr_radar_delay_s(&r, &config, lag);

        if (fabs(delay_s + (double)i * step_s - want_s) > 1e-12)
            fail_msg("cell %zu is at %.12g s, not %.12g", i, delay_s + (double)i * step_s, want_s);
    }
    assert_true(delay_s >= r.min_delay_s && delay_s < r.min_delay_s + step_s);
    if (n < n_cells) {
        const double last_s = delay_s + (double)(n - 1) * step_s;

        assert_true(last_s <= r.max_delay_s + 1e-11 && last_s > r.max_delay_s - step_s);
    }
}

/* The gate contains the direct path and the distance by which the direct path may move. The wanted
 * ranges and their cells do not change. */
TEST(gate_with_direct_path)
{
    static const struct {
        double min_m, max_m, search_m;
        size_t first, count;
    } cases[] = {
        {20, 50, 0, 993, 72},   /* the gate is 3.3 - 10 .. 53.3 + 10 samples */
        {20, 50, 4, 999, 60},   /* the gate is 3.3 - 4 .. 53.3 + 4 samples */
        {-30, -20, 5, 968, 42}, /* the gate is -30 + 3.3 - 5 .. 3.3 + 5 samples */
        {20, 1000, 0, 0, 1000}, {20, 0, 5, 0, 1000},
    };
    pnr_config config;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fill(&config);
        config.radar.speed_mps = 2e6; /* one sample is a metre */
        config.radar.min_range_m = cases[i].min_m;
        config.radar.max_range_m = cases[i].max_m;
        config.radar.zero_delay_s = 3.3e-6;

        const pnr_radar fixed = derive(&config, 1000);

        assert_true(fixed.zero_search_s == 0);
        config.radar.zero = PNR_ZERO_DIRECT_PATH;
        config.radar.zero_search_m = cases[i].search_m;

        const pnr_radar r = derive(&config, 1000);

        assert_int_equal(r.gate_first, cases[i].first);
        assert_int_equal(r.gate_count, cases[i].count);
        assert_true(r.min_delay_s == fixed.min_delay_s && r.max_delay_s == fixed.max_delay_s);
        assert_true(fabs(r.zero_search_s - (i == 0 || i == 3 ? 10e-6 : cases[i].search_m * 1e-6)) <
                    1e-15);
    }
}

TEST(cells_of_the_gate)
{
    for (size_t oversample = 1; oversample <= 2; oversample++) {
        assert_cells(0, 0, 0, oversample);
        assert_cells(-5, 0, 0, oversample);
        assert_cells(10.25, 0, 3.3e-6, oversample);
        assert_cells(10, 20, 0, oversample);
        assert_cells(10.2, 20.7, 0.4e-6, oversample);
        assert_cells(-20, 15, -15e-6, oversample);
        assert_cells(990, 1010, 0, oversample);
    }
}

TEST(edges_on_a_sample_stay_there)
{
    for (int k = 0; k < 2000; k++) {
        pnr_config config;
        fill(&config);
        config.source.rate_hz = (pnr_rational){1023000, 1};
        config.radar.min_range_m = (k - 1000) * light_mps / 2 / 1.023e6;
        config.radar.max_range_m = (k - 990) * light_mps / 2 / 1.023e6;
        config.radar.zero_delay_s = 990 / 1.023e6;
        /* max_range_m = 0 would mean the whole unambiguous range */
        if (config.radar.max_range_m != 0)
            assert_gate(derive(&config, 3000), (size_t)(k + 2990) % 3000, 11);
    }
}

TEST(delays_of_the_gate)
{
    pnr_radar r = gate(-20, 30, 3e-6, 1000);

    assert_near(r.min_delay_s, -20e-6, 1e-14);
    assert_near(r.max_delay_s, 30e-6, 1e-14);
    r = gate(-20, 0, 0, 1000);
    assert_near(r.max_delay_s, 980e-6, 1e-14);
    /* a gate that exceeds the period by less than half a sample is the whole period */
    r = gate(100, 1100.4, 0, 1000);
    assert_near(r.max_delay_s, 1100e-6, 1e-14);
}

TEST(gates_that_are_refused)
{
    pnr_config config;

    fill(&config);
    config.radar.speed_mps = 2e6;
    config.radar.min_range_m = 20;
    config.radar.max_range_m = 10;
    refused(&config, 1000, "below radar.min_range_m");
    config.radar.max_range_m = 1021;
    refused(&config, 1000, "unambiguous");
    config.radar.min_range_m = -2000;
    config.radar.max_range_m = -500;
    refused(&config, 1000, "unambiguous");
}

static void random_radar(pnr_config *config, pnr_radar *out)
{
    const size_t n = 8 + (size_t)(uniform() * 3000);

    fill(config);
    config->source.rate_hz = (pnr_rational){1 + (int64_t)(uniform() * 1e8), 3};
    const double period_m = (double)n / pnr_rational_double(config->source.rate_hz) * light_mps / 2;
    config->radar.min_range_m = (uniform() * 4 - 2) * period_m;
    config->radar.max_range_m = config->radar.min_range_m + uniform() * period_m;
    config->radar.zero_delay_s = (uniform() * 6 - 3) * period_m / light_mps;
    snprintf(config->source.start_time, sizeof config->source.start_time, "2026-11-21T02:40:12Z");
    pnr_time_parse(config->source.start_time, &config->code.epoch.utc_ns);
    config->code.epoch.is_utc = true;
    config->code.epoch.utc_ns += (int64_t)((uniform() - 0.5) * 1e12);
    *out = derive(config, n);
}

static double lag_of(const pnr_config *config, const pnr_radar *radar, double delay_s)
{
    return (delay_s + config->radar.zero_delay_s) * pnr_rational_double(radar->rate_hz) +
           radar->epoch_fraction;
}

static bool in_gate(const pnr_radar *r, double lag)
{
    int64_t n = (int64_t)r->n_samples, k = ((int64_t)lag % n + n) % n;

    return (size_t)((k - (int64_t)r->gate_first + n) % n) < r->gate_count;
}

TEST(every_echo_in_range_is_inside_the_gate)
{

    for (int i = 0; i < 3000; i++) {
        pnr_config config;
        pnr_radar r;
        random_radar(&config, &r);
        assert_true(r.gate_first < r.n_samples);
        assert_in_range(r.gate_count, 1, r.n_samples);
        for (int j = 0; j <= 20; j++) {
            double share = j / 20.0;
            double delay = r.min_delay_s + share * (r.max_delay_s - r.min_delay_s);
            double lag = lag_of(&config, &r, delay);
            /* The gate must contain the whole lags on both sides, because the peak is at one of
             * them. */
            assert_true(in_gate(&r, floor(lag + 1e-5)) && in_gate(&r, ceil(lag - 1e-5)));
        }
        double width = (r.max_delay_s - r.min_delay_s) * pnr_rational_double(r.rate_hz);
        assert_true((double)r.gate_count <= width + 3);
    }
}

TEST(delay_is_the_inverse_of_lag)
{

    for (int i = 0; i < 3000; i++) {
        pnr_config config;
        pnr_radar r;
        random_radar(&config, &r);
        const double sample_s = 1 / pnr_rational_double(r.rate_hz);
        for (int j = 0; j < 10; j++) {
            double delay = r.min_delay_s + (0.001 + 0.998 * uniform()) * r.period_s;
            double lag = lag_of(&config, &r, delay);
            for (int turn = -2; turn <= 2; turn++) {
                double got = pnr_radar_delay_s(&r, &config, lag + turn * (double)r.n_samples);
                assert_true(fabs(got - delay) < 1e-8 * sample_s);
                assert_near(pnr_radar_range_m(&r, got), got * light_mps / 2, 1e-15);
            }
        }
        for (int j = 0; j < 50; j++) {
            double lag = (uniform() - 0.3) * 2 * (double)r.n_samples;
            double got = pnr_radar_delay_s(&r, &config, j % 2 ? lag : floor(lag));
            assert_true(got >= r.min_delay_s && got < r.min_delay_s + r.period_s);
        }
    }
}

TEST(delays_by_hand)
{
    pnr_config config;

    fill(&config);
    config.radar.min_range_m = -149.896229 * 10;
    config.radar.zero_delay_s = 3e-6;
    pnr_radar r = derive(&config, 1000);
    assert_near(pnr_radar_delay_s(&r, &config, 503.25), 500.25e-6, 1e-14);
    assert_near(pnr_radar_range_m(&r, 500.25e-6), 500.25 * 149.896229, 1e-14);
    assert_near(pnr_radar_delay_s(&r, &config, 0), -3e-6, 1e-9);
    assert_near(pnr_radar_delay_s(&r, &config, 995), -8e-6, 1e-9);
    assert_near(pnr_radar_delay_s(&r, &config, 992), 989e-6, 1e-12);
}

TEST(rounding_does_not_make_the_nearest_the_farthest)
{

    for (int i = 0; i < 2000; i++) {
        pnr_config config;
        pnr_radar r;
        random_radar(&config, &r);
        double lag = lag_of(&config, &r, r.min_delay_s);
        double got = pnr_radar_delay_s(&r, &config, lag + (double)r.n_samples);
        assert_true(fabs(got - r.min_delay_s) < 1e-6 / pnr_rational_double(r.rate_hz));
        /* A delay that is a hundredth of a sample smaller wraps to the other end of the
         * interval. */
        got = pnr_radar_delay_s(&r, &config, lag - 0.01);
        assert_true(got > r.min_delay_s + r.period_s * 0.5);
    }
}

TEST(epoch_as_a_sample)
{
    static const struct {
        int64_t epoch;
        size_t first;
    } cases[] = {{0, 0},    {1, 1},     {999, 999},   {1000, 0},        {12345, 345},
                 {-1, 999}, {-1000, 0}, {-1001, 999}, {INT64_MAX, 807}, {INT64_MIN, 192}};
    pnr_config config;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fill(&config);
        config.code.epoch.sample = cases[i].epoch;
        pnr_radar r = derive(&config, 1000);
        assert_true(r.epoch_sample == cases[i].epoch && r.epoch_fraction == 0);
        assert_int_equal(r.first_window, cases[i].first);
    }
}

static pnr_radar epoch_after(int64_t ns, pnr_rational rate)
{
    pnr_config config;

    fill(&config);
    config.source.rate_hz = rate;
    snprintf(config.source.start_time, sizeof config.source.start_time, "2026-11-21T02:40:12.5Z");
    assert_int_equal(pnr_time_parse("2026-11-21T02:40:12.5Z", &config.code.epoch.utc_ns), PNR_OK);
    config.code.epoch.utc_ns += ns;
    config.code.epoch.is_utc = true;
    return derive(&config, 1000);
}

TEST(epoch_in_utc)
{
    const pnr_rational mega = {1000000, 1};

    pnr_radar r = epoch_after(0, mega);
    assert_true(r.epoch_sample == 0 && r.epoch_fraction == 0 && r.has_start);
    int64_t start;
    pnr_time_parse("2026-11-21T02:40:12.5Z", &start);
    assert_true(r.start_utc_ns == start);

    r = epoch_after(1500, mega);
    assert_true(r.epoch_sample == 1 && r.epoch_fraction == 0.5 && r.first_window == 1);
    r = epoch_after(-1, mega);
    assert_true(r.epoch_sample == -1 && r.epoch_fraction == 0.999 && r.first_window == 999);
    r = epoch_after(-2000, mega);
    assert_true(r.epoch_sample == -2 && r.epoch_fraction == 0 && r.first_window == 998);
    r = epoch_after(5, (pnr_rational){40000000, 3});
    assert_true(r.epoch_sample == 0);
    assert_near(r.epoch_fraction, 1.0 / 15, 1e-16);
    /* 200 years are 8.4e16 samples and two thirds of a sample. A double has no fractions above
     * 9e15. */
    r = epoch_after(INT64_C(6311433600) * PNR_NS_PER_S + 50, (pnr_rational){40000000, 3});
    assert_true(r.epoch_sample == INT64_C(6311433600) / 3 * 40000000);
    assert_near(r.epoch_fraction, 2.0 / 3, 1e-15);
}

TEST(the_fraction_stays_below_one)
{
    /* The rate is 1 / (2^63 - 1), so the fraction is slightly below 1. */
    pnr_radar r = epoch_after(-1, (pnr_rational){1, INT64_MAX});
    assert_true(r.epoch_sample == -1);
    assert_true(r.epoch_fraction < 1 && r.epoch_fraction > 0.9999999999999997);
}

TEST(epochs_that_are_refused)
{
    pnr_config config;

    fill(&config);
    config.code.epoch.is_utc = true;
    refused(&config, 100, "source.start_time");
    snprintf(config.source.start_time, sizeof config.source.start_time, "yesterday");
    refused(&config, 100, "'yesterday'");
    config.code.epoch.is_utc = false;
    refused(&config, 100, "'yesterday'");
    snprintf(config.source.start_time, sizeof config.source.start_time, "1970-01-01T00:00:00Z");
    config.code.epoch.is_utc = true;
    config.code.epoch.utc_ns = INT64_MAX;
    config.source.rate_hz = (pnr_rational){INT64_C(1000000000000), 1};
    refused(&config, 100, "too far");
    config.code.epoch.utc_ns = INT64_MIN;
    refused(&config, 100, "too far");
}

TEST(start_time_alone_is_kept)
{
    pnr_config config;

    fill(&config);
    snprintf(config.source.start_time, sizeof config.source.start_time, "1970-01-01T00:00:01Z");
    pnr_radar r = derive(&config, 100);
    assert_true(r.has_start && r.start_utc_ns == PNR_NS_PER_S && r.epoch_sample == 0);
}
