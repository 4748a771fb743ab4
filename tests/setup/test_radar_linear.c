/* SPDX-License-Identifier: MIT */
/* Tests of radar.c for linear correlation: windows begin where the gate begins, and delays are not
 * wrapped. */
#include "setup/radar.h"

#include "tests/fixture/config_fixture.h"
#include "tests/fixture/random.h"

#include <math.h>

static const double half_light_mps = 299792458 / 2.0;

/* Sets 1 Msample/s and one sample a chip. */
static void fill(pnr_config *config, int64_t epoch, double min_s, double max_s, double zero_s)
{
    accept_text(config, "[source]\nrate_hz = 1e6\n[window]\ncorrelation = linear\n");
    config->code.epoch.sample = epoch;
    config->radar.min_range_m = min_s * half_light_mps;
    config->radar.max_range_m = max_s * half_light_mps;
    config->radar.zero_delay_s = zero_s;
}

TEST(the_gate_begins_eight_lags_into_the_window)
{
    pnr_config config;
    pnr_radar r;

    fill(&config, 0, 0, 99e-6, 0);
    assert_int_equal(pnr_radar_derive(&config, 1000, &r, NULL), PNR_OK);
    assert_true(r.is_linear);
    assert_int_equal(r.gate_first, 8);
    assert_int_equal(r.gate_count, 100);
    assert_int_equal(r.n_lags, 116);
    assert_int_equal(r.first_window, 992); /* 8 samples before the second period */
    assert_true(fabs(pnr_radar_delay_s(&r, &config, 8)) < 1e-15);
    /* the delay is not wrapped */
    assert_true(fabs(pnr_radar_delay_s(&r, &config, 7.5) + 0.5e-6) < 1e-15);

    /* A delay beyond the period is not wrapped. */
    fill(&config, 100, 2500e-6, 2600e-6, 0);
    assert_int_equal(pnr_radar_derive(&config, 1000, &r, NULL), PNR_OK);
    assert_int_equal(r.first_window, 592);
    assert_true(fabs(pnr_radar_delay_s(&r, &config, 8) - 2500e-6) < 1e-12);
    pnr_config_clear(&config);
}

/* The echo of a code that began at the epoch, in any period, lies in the gate of some window, and
 * has the right delay. */
TEST(every_delay_is_seen)
{

    for (int i = 0; i < 2000; i++) {
        const size_t n = 50 + (size_t)(uniform() * 1000);
        const int64_t epoch = (int64_t)((uniform() - 0.5) * 5000);
        const double min_s = 1e-6 * (uniform() * 4 - 1) * (double)n;
        const double max_s = min_s + 1e-6 * (1 + uniform() * ((double)n - 3));
        const double zero_s = 1e-6 * (uniform() - 0.5) * 100;
        const double delay_s = min_s + uniform() * (max_s - min_s);
        pnr_config config;
        pnr_error error = {0};
        pnr_radar r;
        size_t first_cell, n_gate;

        fill(&config, epoch, min_s, max_s, zero_s);
        if (pnr_radar_derive(&config, n, &r, &error) != PNR_OK)
            fail_msg("%s", error.text);
        assert_true(r.first_window < n);

        const double at = (double)epoch + (delay_s + zero_s) * 1e6 - (double)r.first_window;
        double lag = at - (double)n * floor(at / (double)n);

        if (lag < (double)r.gate_first - 1e-6)
            lag += (double)n;
        assert_true(lag <= (double)(r.gate_first + r.gate_count - 1) + 1e-6);
        assert_int_equal(r.n_lags, r.gate_count + 16);
        if (fabs(pnr_radar_delay_s(&r, &config, lag) - delay_s) > 1e-12)
            fail_msg("%zu samples, lag %.9g: %.12g s instead of %.12g", n, lag,
                     pnr_radar_delay_s(&r, &config, lag), delay_s);

        const double first_s = pnr_radar_cells(&r, &config, 2, &first_cell, &n_gate);

        assert_true(first_cell >= 2 * r.gate_first &&
                    first_cell + n_gate <= 2 * (r.gate_first + r.gate_count));
        assert_true(fabs(first_s - pnr_radar_delay_s(&r, &config, (double)first_cell / 2)) < 1e-12);
        assert_true(first_s >= r.min_delay_s - 1e-12 && first_s < r.min_delay_s + 0.5e-6 + 1e-12);
        pnr_config_clear(&config);
    }
}

static void refused(double min_s, double max_s, const char *word)
{
    pnr_config config;
    pnr_radar r;
    pnr_error error = {0};

    fill(&config, 0, min_s, max_s, 0);
    assert_int_equal(pnr_radar_derive(&config, 1000, &r, &error), PNR_ECONFIG);
    if (!strstr(error.text, word))
        fail_msg("'%s' is not in '%s'", word, error.text);
    pnr_config_clear(&config);
}

/* A gate must end within a period, because the next window finds later echoes. */
TEST(gates_need_an_end_within_a_period)
{
    refused(0, 0, "max_range_m");
    refused(0, 1100e-6, "unambiguous");
}
