/* SPDX-License-Identifier: MIT */
/* Tests of setup.c: the plan of a map that follows from the keys of the configuration, and its
 * false alarms. */
#include "setup/setup.h"

#include "base/available.h"
#include "engine/plan.h"
#include "setup/threshold.h"
#include "tests/fixture/config_fixture.h"
#include "tests/fixture/random.h"

#include <math.h>

/* 1 Msample/s and N = 1000, so that Tr = 1 ms. */
static const char base[] =
    "[source]\nrate_hz = 1e6\nformat = cf32\n[code]\ntype = random\nlength = 1000\n";

static pnr_setup *make(const char *text)
{
    char all[1024];
    pnr_config config;
    pnr_setup *setup = NULL;
    pnr_error error = {0};

    snprintf(all, sizeof all, "%s%s", base, text);
    accept_text(&config, all);
    if (pnr_config_check(&config, &error) != PNR_OK ||
        pnr_setup_create(&config, PNR_FORMAT_CF32, 1, &setup, &error) != PNR_OK)
        fail_msg("%s", error.text);
    setup->plan.method = "auto"; /* the method of the configuration is freed below */
    if (pnr_plan_check(&setup->plan, "test", &error) != PNR_OK)
        fail_msg("%s", error.text);
    pnr_config_clear(&config);
    return setup;
}

static void refused(const char *text, const char *word)
{
    char all[1024];
    pnr_config config;
    pnr_setup *setup = NULL;
    pnr_error error = {0};

    snprintf(all, sizeof all, "%s%s", base, text);
    accept_text(&config, all);
    assert_int_equal(pnr_setup_create(&config, PNR_FORMAT_CF32, 1, &setup, &error), PNR_ECONFIG);
    assert_null(setup);
    if (!strstr(error.text, word))
        fail_msg("'%s' is not in '%s'", word, error.text);
    pnr_config_clear(&config);
}

TEST(plain_dwells_are_plain)
{
    static const char *const texts[] = {
        "", "[dwell]\nperiods = 4\ncombine = coherent\n",
        "[dwell]\nperiods = 4\ncombine = incoherent\n",
        "[radar]\nmax_range_m = 10e3\n[detector]\noversample = 2\n"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        pnr_setup *setup = make(texts[i]);

        assert_true(pnr_plan_is_plain(&setup->plan));
        pnr_setup_destroy(setup);
    }
}

/* A label has the words that distinguish a code from the others. */
TEST(labels_of_codes)
{
    static const struct {
        const char *text, *labels[3];
    } cases[] = {
        {"", {""}},
        {"[code.1]\nseed = 3\n[code.2]\nseed = 14\n", {"seed 3", "seed 14"}},
        {"[code.1]\nseed = 3\n[code.2]\nseed = 3\ninvert = yes\n[code.3]\nseed = 4\n",
         {"seed 3", "seed 3 inverted", "seed 4"}},
        {"[code.1]\nseed = 3\ntune_hz = 1e3\n[code.2]\nseed = 4\ntune_hz = -462e3\n",
         {"", ""}}, /* the label would be too long */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pnr_setup *setup = make(cases[i].text);

        for (size_t c = 0; c < setup->n_codes; c++)
            assert_string_equal(setup->codes[c].label.text, cases[i].labels[c]);
        pnr_setup_destroy(setup);
    }
}

TEST(a_doppler_dwell)
{
    pnr_setup *setup =
        make("[dwell]\nperiods = 16\nlooks = 31\ncombine = doppler\ntaper = hann\n"
             "clutter = remove\n[detector]\nexclusion_cells = 3\nexclusion_rows = 2\n");
    const pnr_plan *plan = &setup->plan;
    double sum = 0;

    assert_int_equal(plan->n_periods, 16);
    assert_int_equal(plan->n_looks, 31);
    assert_int_equal(pnr_plan_rows(plan), 16);
    assert_true(plan->remove_mean && !plan->linear);
    assert_int_equal(plan->exclusion_cells, 3);
    assert_int_equal(plan->exclusion_rows, 2);
    for (size_t p = 0; p < 16; p++)
        sum += plan->taper[p] * plan->taper[p];
    assert_true(fabs(sum - 16) < 1e-12); /* the floor is then that of 16 windows */
    pnr_setup_destroy(setup);
}

/* The periods of an incoherent dwell are looks of one window. */
TEST(incoherent_periods_are_looks)
{
    pnr_setup *setup = make("[dwell]\nperiods = 6\ncombine = incoherent\n[doppler]\nmin_hz = -500\n"
                            "max_hz = 500\nstep = half\n");

    assert_int_equal(setup->plan.n_looks, 6);
    assert_int_equal(setup->plan.n_periods, 1);
    assert_int_equal(pnr_plan_rows(&setup->plan), 3);
    pnr_setup_destroy(setup);
}

TEST(linear_gates)
{
    pnr_setup *setup = make("[window]\ncorrelation = linear\n[radar]\nmax_range_m = 14989.6229\n");

    assert_true(setup->plan.linear);
    assert_int_equal(setup->plan.gate_first, 8);
    assert_int_equal(setup->plan.gate_count, 101);
    assert_int_equal(setup->plan.n_lags, 117);
    assert_int_equal(pnr_plan_window_samples(&setup->plan), 1116);
    pnr_setup_destroy(setup);
}

/* A search covers all cells of the map. The 64 rows are nearly independent, so the false-alarm
 * probability of a cell is about 64 times smaller. */
TEST(the_search_is_the_whole_map)
{
    pnr_setup *row = make(""), *map = make("[dwell]\nperiods = 64\ncombine = doppler\n");
    const double ratio = row->pfa_cell / map->pfa_cell;

    assert_true(fabs(ratio / 64 - 1) < 0.01);
    pnr_setup_destroy(row);
    pnr_setup_destroy(map);
}

/* Draws looks of exponential noise over a floor of 1. The share of cells above the threshold must
 * be the false-alarm probability of a cell. */
TEST(thresholds_hold_their_pfa)
{
    enum { LOOKS = 4, K = 2, TRIALS = 400000 };
    /* The search has one cell, so that the probabilities of a cell and of a search are equal. */
    pnr_setup *setup = make("[dwell]\nperiods = 2\nlooks = 4\ncombine = coherent\n[radar]\n"
                            "min_range_m = 0\nmax_range_m = 1\n[detector]\npfa = 0.01\n");
    const pnr_plan *plan = &setup->plan;
    size_t above = 0;

    assert_false(pnr_plan_is_plain(plan));
    assert_int_equal(pnr_plan_windows(plan), LOOKS * K);
    for (size_t t = 0; t < TRIALS; t++) {
        double p = 0;

        for (int look = 0; look < LOOKS; look++)
            p -= log(uniform()) / LOOKS;
        above += p > plan->threshold[LOOKS * K - 1];
    }

    const double wanted = setup->pfa_cell * TRIALS;

    /* 4 standard deviations, and 2 % because the floor is taken as exact */
    assert_true(fabs((double)above - wanted) < 4 * sqrt(wanted) + 0.02 * wanted);
    /* Seven of eight windows are three whole looks and a part, and get the threshold of three
     * looks. */
    assert_true(plan->threshold[6] == plan->threshold[5] &&
                plan->threshold[5] > plan->threshold[7]);
    assert_true(plan->threshold[0] == plan->threshold[2] &&
                plan->threshold[2] > plan->threshold[3]);
    pnr_setup_destroy(setup);
}

TEST(cfar_trains_on_cells_apart)
{
    pnr_setup *setup = make("chip_rate_hz = 400e3\n"
                            "[detector]\ncfar = go\ncfar_guard = 1\ncfar_training = 8\n");

    assert_int_equal(setup->plan.cfar.kind, PNR_CFAR_GO);
    assert_int_equal(setup->plan.cfar.axis, PNR_CFAR_ALONG_LAGS);
    assert_int_equal(setup->plan.cfar.stride, 3); /* a chip has 2.5 samples */
    /* one chip, so that the first training cell is beyond the main lobe */
    assert_int_equal(setup->plan.cfar.guard, 5);
    assert_true(setup->plan.cfar.factor[8 * 9 + 8] > 1);
    pnr_setup_destroy(setup);

    setup = make("[dwell]\nperiods = 64\ncombine = doppler\ntaper = hann\n[detector]\ncfar = ca\n"
                 "cfar_axis = doppler\ncfar_training = 8\n");
    assert_int_equal(setup->plan.cfar.axis, PNR_CFAR_ALONG_ROWS);
    assert_int_equal(setup->plan.cfar.stride, 3); /* rows in the main lobe of hann */
    assert_int_equal(setup->plan.cfar.guard, 2);
    /* the lowest row has training cells on one side only */
    assert_true(isfinite(setup->plan.cfar.factor[0 * 9 + 8]));
    pnr_setup_destroy(setup);
    /* Each row is a rotation by a quarter of a bin. */
    setup = make("[doppler]\nmin_hz = -10e3\nmax_hz = 10e3\n[detector]\ncfar = ca\n"
                 "cfar_axis = doppler\ncfar_training = 4\n");
    assert_int_equal(setup->plan.cfar.stride, 4);
    assert_int_equal(setup->plan.cfar.guard, 3);
    pnr_setup_destroy(setup);
    refused("[detector]\ncfar = ca\ncfar_training = 250\ncfar_guard = 300\n", "lags");
    refused(
        "[dwell]\nperiods = 16\ncombine = doppler\n[detector]\ncfar = ca\ncfar_axis = doppler\n",
        "Doppler rows");
}

TEST(a_filter_is_of_the_gates_of_one_code)
{
    pnr_setup *setup = make("[radar]\nmax_range_m = 14800\n[window]\nfilter = least-squares\n");
    const pnr_plan *plan = &setup->plan;
    const double(*row)[2] = plan->filter + plan->gate_count * 7;

    assert_false(pnr_plan_is_plain(plan));
    assert_int_equal(setup->least_squares->n_gates, plan->gate_count);
    assert_true(fabs(row[7][0] - sqrt(setup->least_squares->loss[7])) < 1e-12);
    pnr_setup_destroy(setup);
    refused("[radar]\nmax_range_m = 14800\n[window]\nfilter = least-squares\n[code.1]\n[code.2]\n"
            "seed = 2\n",
            "one code; there are 2");
}

/* The powers of a submit have at most 256 MiB, and a map of 997 rows and 1000 lags has 4 MB. */
TEST(maps_bound_the_batch)
{
    pnr_setup *setup = make("[doppler]\nmin_hz = -125e3\nmax_hz = 124e3\n");

    assert_int_equal(pnr_plan_rows(&setup->plan), 997);
    assert_int_equal(setup->plan.batch, (1 << 28) / (997 * 4000));
    pnr_setup_destroy(setup);
}

/* The maps in flight have at most 8 MiB, but there are at least two. The ring is as long as without
 * published maps. */
TEST(published_maps_bound_the_submits)
{
    static const struct {
        const char *text;
        size_t depth, batch;
    } cases[] = {
        {"profile = power\n[doppler]\nmin_hz = -125e3\nmax_hz = 124e3\n", 2, 1},
        {"profile = complex\n[doppler]\nmin_hz = -1e5\nmax_hz = 99e3\n", 2, 1},
        {"profile = power\n[engine]\nbatch = 3\n[doppler]\nmin_hz = -1e5\nmax_hz = 1e5\n", 4, 3},
        {"profile = power\n", 4, (8 << 20) / 4000 / 4},
        {"profile = complex\n[engine]\ndepth = 1\n", 1, (8 << 20) / 8000},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[2][256];
        pnr_setup *setup, *without;
        pnr_config config;

        snprintf(text[0], sizeof text[0], "[publisher]\n%s", cases[i].text);
        snprintf(text[1], sizeof text[1], "[publisher]\nhigh_water = 1000\n%s",
                 strchr(cases[i].text, '\n') + 1);
        setup = make(text[0]);
        without = make(text[1]);
        assert_int_equal(setup->plan.depth, cases[i].depth);
        assert_int_equal(setup->plan.batch, cases[i].batch);
        accept_text(&config, text[1]);
        assert_int_equal(pnr_setup_ring_samples(setup, &config),
                         pnr_setup_ring_samples(without, &config));
        assert_true(without->plan.batch >= setup->plan.batch);
        if (strncmp(cases[i].text, "profile = power", 15) == 0) {
            pnr_setup_want_power(without, &config);
            assert_int_equal(without->plan.want_profile, setup->plan.want_profile);
            assert_int_equal(without->plan.depth, setup->plan.depth);
            assert_int_equal(without->plan.batch, setup->plan.batch);
        }
        pnr_config_clear(&config);
        pnr_setup_destroy(setup);
        pnr_setup_destroy(without);
    }
}

/* The set-up has the samples of each code in the order of the codes, and all codes have the same
 * energy. */
TEST(codes_stand_in_order)
{
    pnr_setup *setup = make("seed = 1\n[code.1]\n[code.2]\nseed = 2\n[code.3]\ntype = p4\n"
                            "[detector]\noversample = 2\n");
    pnr_setup *second = make("seed = 2\n[detector]\noversample = 2\n");
    const double(*at)[2] = setup->plan.references + (size_t)2 * 1000;
    double energy = 0;

    assert_int_equal(setup->n_codes, 3);
    assert_int_equal(setup->plan.n_codes, 3);
    assert_false(pnr_plan_is_plain(&setup->plan));
    assert_memory_equal(at, second->plan.references, 2 * 1000 * sizeof *at);
    for (size_t i = 0; i < 1000; i++)
        energy += at[2000 + i][0] * at[2000 + i][0] + at[2000 + i][1] * at[2000 + i][1];
    assert_true(fabs(energy / pnr_plan_code_energy(&setup->plan) - 1) < 1e-9);
    assert_true(fabs(second->pfa_cell / setup->pfa_cell / 3 - 1) < 0.02);
    pnr_setup_destroy(setup);
    pnr_setup_destroy(second);
    refused("[code.1]\n[code.2]\nlength = 500\n", "code.2");
}

/* An error of a code of several names the section that has the key. */
TEST(errors_name_the_section_of_a_code)
{
    refused("[code.1]\n[code.2]\ntype = m-sequence\ntaps = 10,4\n", "code.2.taps \"10,4\"");
    refused("[code.1]\ndegree = 9\ntaps = 10,4\ntype = m-sequence\n",
            "code.1.taps \"10,4\": the largest tap must be code.1.degree, 9");
    refused("[code.1]\n[code.2]\ntype = gold\ndegree = 4\n", "code.2.degree 4: ");
    refused("[code.1]\n[code.2]\ntype = barker\n", "code.length 1000: a barker"); /* of [code] */
    refused("[code.1]\n[code.2]\ntune_hz = -0.75e6\n", "code.2.tune_hz = -750000 is beyond");
}

TEST(more_periods_than_fit_are_refused)
{
    refused("[dwell]\nperiods = 65535\nlooks = 65535\ncombine = coherent\n", "looks");
}

/* The codes are refused before the first waveform is made. The message has the needed and the
 * available memory. */
TEST(codes_beyond_the_memory_are_refused)
{
    enum { CODES = 32 };
    /* bytes that one code keeps: its chips, reference, waveform and autocorrelation */
    const double each = 144.0 * 0x1p24;
    char text[4096], needed[32];
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "[source]\nrate_hz = 1e6\nformat = ci8\n[code]\ntype = random\n"
                                 "length = 16777216\n");
    pnr_config config;
    pnr_setup *setup = NULL;
    pnr_error error = {0};

    if (pnr_memory_available() > CODES * each)
        skip();
    for (int c = 1; c <= CODES; c++)
        at += (size_t)snprintf(text + at, sizeof text - at, "[code.%d]\nseed = %d\n", c, c);
    snprintf(needed, sizeof needed, "takes %.4g GiB", (CODES * each + 32 * 0x1p24) / 0x1p30);
    accept_text(&config, text);
    assert_int_equal(pnr_setup_create(&config, PNR_FORMAT_CI8, 1, &setup, &error), PNR_ENOMEMORY);
    assert_null(setup);
    assert_non_null(strstr(error.text, needed));
    assert_non_null(strstr(error.text, "GiB are available"));
    pnr_config_clear(&config);
}
