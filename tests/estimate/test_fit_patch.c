/* SPDX-License-Identifier: MIT */
/* The fit in a map without noise: exact, against the sums of engine.h term by term; and its
 * variances against those of a tone and a delay. Its behaviour in noise is test_estimate_map's. */
#include "estimate/fit_patch.h"

#include "base/complex.h"
#include "tests/fixture/fit_patch_fixture.h"

static void open_map(map_bench *b, const char *const *settings)
{
    open_map_bench(b, settings);
    assert_int_equal(pnr_fit_patch_create(b->setup, 0, &b->fit), PNR_OK);
}

static void close_map(map_bench *b)
{
    pnr_fit_patch_destroy(b->fit);
    close_map_bench(b);
}

/* An echo anywhere near the middle of a patch comes back as it was. wrong: lags from the middle, on
 * the side without the echo, where the search begins. */
static void is_exact(const char *const *settings, size_t n_trials, double wrong)
{
    map_bench b;
    double worst_lag = 0, worst_bins = 0, worst_peak = 0;

    open_map(&b, settings);

    const size_t n = b.setup->plan.n_samples, n_rows = pnr_plan_rows(&b.setup->plan);
    const double spacing = map_row(&b.setup->plan, 1).bins - map_row(&b.setup->plan, 0).bins;

    for (size_t t = 0; t < n_trials; t++) {
        const size_t first = b.setup->plan.gate_first, count = b.setup->plan.gate_count;
        const size_t row = (size_t)(uniform() * (double)n_rows);
        const pnr_patch_place place = {.row = row,
                                       .lag = (long)(first + (size_t)(uniform() * (double)count))};
        const double d = 1.0 * (uniform() - 0.5);
        const pnr_patch_echo start = {.lag = (double)place.lag - copysign(wrong, d)};
        const double v = map_row(&b.setup->plan, row).bins + 0.9 * (uniform() - 0.5) * spacing;
        const double phase = 2 * M_PI * uniform(), amplitude = 0.3;
        float values[PNR_NEIGHBOURS][PNR_NEIGHBOURS][2];
        pnr_patch patch;
        pnr_patch_fitted found;

        map_patch(&b.setup->plan, b.setup->codes[0].waveform, &place, (double)place.lag + d, v,
                  amplitude, phase, values);
        pnr_fit_patch_begin(b.fit, NULL, NULL);
        pnr_fit_patch_load(b.fit, &place, &values[0][0][0], 0, patch);
        pnr_fit_patch_find(b.fit, &place, patch, &start, 1e-12, &found);

        const double peak =
            amplitude * pnr_waveform_energy(b.setup->codes[0].waveform) * pnr_fit_patch_gain(b.fit);

        /* a fit that begins beside the last one, with its exact sums */
        const pnr_patch_echo beside = {.lag = (double)place.lag + found.at.delay + 0.01,
                                       .bins = found.bins + 0.01 * spacing,
                                       .peak = found.at.peak,
                                       .anchor = found.anchor};

        if (t % 2 == 1)
            pnr_fit_patch_find(b.fit, &place, patch, &beside, 1e-12, &found);
        worst_lag = fmax(worst_lag, fabs(found.at.delay - d));
        worst_bins = fmax(worst_bins, fabs(found.bins - v) / spacing);
        worst_peak = fmax(worst_peak, cabs(found.at.peak - peak * pnr_cis(phase)) / peak);
    }
    print_message("%s, N = %zu, %zu rows: lag %.1e, rows %.1e, peak %.1e\n",
                  b.setup->codes[0].code->name, n, n_rows, worst_lag, worst_bins, worst_peak);
    close_map(&b);
    assert_true(worst_lag < 2e-5 && worst_bins < 2e-5 && worst_peak < 2e-5);
}

TEST(without_noise_it_is_exact)
{
    is_exact(map_random, 200, 0);
    is_exact(map_chu, 200, 0);
    is_exact(map_m_sequence, 200, 0);
    is_exact(map_hann, 100, 0);
    is_exact(map_without_mean, 100, 0);
    is_exact(map_linear, 100, 0);
    is_exact(map_single, 100, 0);
}

/* Noise may move the first guess of the delay to the wrong side of the middle. */
TEST(a_start_on_the_wrong_side_leads_to_no_sidelobe)
{
    is_exact(map_random, 200, 0.5);
    is_exact(map_chu, 200, 0.5);
    is_exact(map_m_sequence, 200, 0.5);
    is_exact(map_hann, 100, 0.5);
}

/* In noise alone the fit does not diverge, neither beyond the first and last rows nor to the
 * removed mean. There almost nothing of an echo is in the patch, so noise would fit an echo of any
 * strength. The gain is the greatest in a surface of about 4 independent cells. It exceeds g in
 * about 4 g exp(-g) of the fits: in 1200 fits it exceeds 25 once in 10^6 runs. */
static void noise_stays(const char *const *settings, bool is_edge)
{
    enum { TRIALS = 400 };
    map_bench b;
    double most_gain = 0, most_power = 0, farthest = 0;

    open_map(&b, settings);

    const size_t n_rows = pnr_plan_rows(&b.setup->plan);
    const double spacing = map_row(&b.setup->plan, 1).bins - map_row(&b.setup->plan, 0).bins;

    for (size_t t = 0; t < TRIALS; t++) {
        const size_t row = is_edge ? t % 2 * (n_rows - 1) : n_rows / 2 - 1 + t % 2 * 2;
        const pnr_patch_place place = {.row = row, .lag = 30};
        const pnr_patch_echo start = {.lag = 30};
        pnr_patch patch;
        float noise[PNR_NEIGHBOURS][PNR_NEIGHBOURS][2];
        pnr_patch_fitted found;

        memset(noise, 0, sizeof noise);
        add_noise(&noise[0][0], PNR_NEIGHBOURS * PNR_NEIGHBOURS, 1);
        pnr_fit_patch_begin(b.fit, NULL, NULL);
        pnr_fit_patch_load(b.fit, &place, &noise[0][0][0], 0, patch);
        pnr_fit_patch_find(b.fit, &place, patch, &start, 1, &found);
        assert_true(found.at.delay_variance > 0 && found.bins_variance > 0);
        most_gain = fmax(most_gain, found.at.gain);
        most_power = fmax(most_power, found.at.power);
        farthest = fmax(farthest, fabs(found.bins - map_row(&b.setup->plan, row).bins) / spacing);
    }
    print_message("noise in %zu rows: gain at most %.3g, power %.3g, %.2f rows away\n", n_rows,
                  most_gain, most_power, farthest);
    close_map(&b);
    assert_true(most_gain < 25 && most_power < 400 && farthest <= 1);
}

TEST(noise_does_not_run_away)
{
    static const char *const without_mean[] = {MAP_DOPPLER, "code.type=random", "code.length=64",
                                               "dwell.clutter=remove", NULL};

    noise_stays(map_random, true);
    noise_stays(map_m_sequence, true);
    noise_stays(without_mean, false);
}

/* A fit is repeated when other echoes change. What these leave beyond the first row must not drive
 * it there, where a small residue looks like a great echo. */
TEST(fits_of_a_residue_do_not_run_away)
{
    enum { TRIALS = 200, FITS = 6 };
    map_bench b;
    double most = 0;

    open_map(&b, map_m_sequence);

    const double energy = pnr_waveform_energy(b.setup->codes[0].waveform);

    for (size_t t = 0; t < TRIALS; t++) {
        const size_t n_rows = pnr_plan_rows(&b.setup->plan), row = t % 2 * (n_rows - 1);
        const pnr_patch_place place = {.row = row, .lag = 30};
        const double spacing = map_row(&b.setup->plan, 1).bins - map_row(&b.setup->plan, 0).bins;
        const double beyond =
            map_row(&b.setup->plan, row).bins + (row == 0 ? -1 : 1) * (1 + uniform()) * spacing;
        pnr_patch_echo start = {.lag = 30};
        float values[PNR_NEIGHBOURS][PNR_NEIGHBOURS][2];
        pnr_patch patch;

        map_patch(&b.setup->plan, b.setup->codes[0].waveform, &place, 29 + 2 * uniform(), beyond, 1,
                  7 * uniform(), values);
        add_noise(&values[0][0], PNR_NEIGHBOURS * PNR_NEIGHBOURS, 1);
        pnr_fit_patch_begin(b.fit, NULL, NULL);
        pnr_fit_patch_load(b.fit, &place, &values[0][0][0], 0, patch);
        for (int i = 0; i < FITS; i++) {
            pnr_patch_fitted found;

            pnr_fit_patch_find(b.fit, &place, patch, &start, 1, &found);
            start = (pnr_patch_echo){
                .lag = 30 + found.at.delay, .bins = found.bins, .peak = found.at.peak};
        }
        most = fmax(most, cabs(start.peak) / (energy * pnr_fit_patch_gain(b.fit)));
    }
    print_message("echoes beyond the map: at most %.2f times their amplitude\n", most);
    close_map(&b);
    assert_true(most < 1.5);
}

TEST(nothing_is_destroyed)
{
    pnr_fit_patch_destroy(NULL);
}
