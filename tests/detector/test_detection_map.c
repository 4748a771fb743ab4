/* SPDX-License-Identifier: MIT */
/* Detection on maps by statistics, through the real engine: false alarms under CFAR, and two
 * targets close together. */
#include "tests/fixture/detection_fixture.h"

static size_t cells_of(const pnr_plan *plan)
{
    return plan->n_codes * pnr_plan_rows(plan) * plan->gate_count * plan->oversample;
}

/*
 * Cells above in noise alone. crowd: how much greater the variance of their number is than its mean
 * (a false alarm has the cells with it that are correlated with its own), measured over 300 runs.
 * The number of maps makes `share` 6 standard deviations.
 */
static void false_alarms(const char *const *settings, double share, double crowd)
{
    size_t n_above = 0, n_done = 0;
    chain c;

    if (!open_chain(&c, settings))
        return;

    const double pfa = c.setup->pfa_cell, cells = (double)cells_of(&c.setup->plan);
    const bool is_slow = strcmp(c.ops->name, "reference") == 0;
    const double part = is_slow ? 10 : 1;
    const double n_maps = crowd * 36 / (share * share) / (pfa * cells) / part / SHARE;

    while ((double)n_done < n_maps) {
        clear_chain(&c);
        add_noise(c.x, c.windows.spans[0].n_samples, 0.01);
        correlate_chain(&c);
        for (size_t d = 0; d < c.setup->plan.batch; d++, n_done++)
            n_above += c.result.dwells[d].n_above;
    }

    const double measured = (double)n_above / (double)n_done / cells;

    print_message("%s, %s: %.4g false alarms a cell of %.3g, asked %.4g (%+.1f %%)\n", c.ops->name,
                  settings[0], measured, (double)n_done * cells, pfa, 100 * (measured / pfa - 1));
    close_chain(&c);
    assert_on_average(fabs(measured / pfa - 1) < share * sqrt(part));
}

#define MAP "dwell.combine=doppler", "engine.batch=16"

TEST(test_false_alarms)
{
    static const char *const plain[] = {
        "detector.cfar=ca", "detector.cfar_training=8", MAP, "code.degree=7",
        "dwell.periods=16", "detector.pfa=0.9",         NULL};
    static const char *const tapered[] = {"detector.cfar=go",
                                          "dwell.taper=hann",
                                          "detector.oversample=2",
                                          "source.rate_hz=4e6",
                                          "code.chip_rate_hz=1e6",
                                          "detector.cfar_training=8",
                                          MAP,
                                          "code.degree=6",
                                          "dwell.periods=16",
                                          "detector.pfa=0.99",
                                          NULL};
    static const char *const rows[] = {"detector.cfar=os",
                                       "detector.cfar_axis=doppler",
                                       "dwell.taper=hann",
                                       "detector.cfar_training=6",
                                       MAP,
                                       "code.degree=6",
                                       "dwell.periods=64",
                                       "detector.pfa=0.9",
                                       NULL};
    static const char *const looks[] = {"detector.cfar=so",
                                        "dwell.looks=5",
                                        "dwell.taper=hann",
                                        "window.correlation=linear",
                                        "radar.max_range_m=9000",
                                        "detector.cfar_training=8",
                                        MAP,
                                        "code.degree=7",
                                        "dwell.periods=8",
                                        "detector.pfa=0.9",
                                        NULL};

    static const char *const rare[] = {"detector.cfar=go", "code.degree=10",     MAP,
                                       "dwell.periods=16", "detector.pfa=0.151", NULL};

    false_alarms(rare, 0.2, 1.2);
    false_alarms(plain, 0.1, 1.3);
    false_alarms(tapered, 0.1, 3);
    false_alarms(rows, 0.1, 1.3);
    false_alarms(looks, 0.1, 1.3);
}

/* Two echoes of `snr_db` after correlation, `apart` lags from each other, the first `fraction` of a
 * lag after a random one (below 0: any), their phases random: how often both are found, each
 * within half a lag. */
static double both_found(const char *const *settings, double snr_db, double apart, double fraction,
                         size_t n_dwells)
{
    size_t n_found = 0, n_done = 0;
    chain c;

    if (!open_chain(&c, settings))
        return 1;

    const double n = (double)c.setup->plan.n_samples, noise = 0.01;
    const double amplitude = sqrt(noise * pow(10, snr_db / 10) / n);

    for (n_dwells /= SHARE; n_done < n_dwells;) {
        double delays[1024];

        assert_true(c.setup->plan.batch <= 1024);
        clear_chain(&c);
        add_noise(c.x, c.windows.spans[0].n_samples, noise);
        for (size_t d = 0; d < c.setup->plan.batch; d++) {
            delays[d] = floor(uniform() * n) + (fraction < 0 ? uniform() : fraction);
            for (int i = 0; i < 2; i++) {
                double(*a)[2] = delayed_code(&c, delays[d] + i * apart);

                add_echo(&c, d, (const double(*)[2])a, amplitude, 2 * M_PI * uniform());
                free(a);
            }
        }
        correlate_chain(&c);
        for (size_t d = 0; d < c.setup->plan.batch; d++, n_done++) {
            bool is_found[2] = {false, false};
            pnr_detection found;

            detect_dwell(&c, d, &found);
            for (size_t e = 0; e < found.n_echoes; e++)
                for (int i = 0; i < 2; i++) {
                    const double off = found.echoes[e].lag - delays[d] - i * apart;

                    is_found[i] = is_found[i] || fabs(off - n * round(off / n)) < 0.5;
                }
            n_found += is_found[0] && is_found[1];
        }
    }
    close_chain(&c);
    return (double)n_found / (double)n_done;
}

/*
 * Two lags apart, a cell between them: on the lags always, and with cells of half a lag always,
 * wherever they lie. With whole lags two echoes half-way between them have two lags each next to
 * each other, four in a row, and where their phases are opposite the inner two are the greatest:
 * one maximum is left. One lag apart two echoes are one peak in half of all phases.
 */
TEST(test_two_targets)
{
    static const char *const settings[3][8] = {
        {"code.degree=8", "engine.batch=250", "detector.pfa=1e-4", NULL},
        {"code.degree=8", "engine.batch=250", "detector.pfa=1e-4", "detector.oversample=2", NULL},
        {"code.degree=8", "engine.batch=100", "detector.pfa=1e-4", "detector.oversample=2",
         "detector.cfar=os", "detector.cfar_guard=3", NULL}};
    double on_lags[3], anywhere[3];

    for (int i = 0; i < 3; i++) {
        const size_t n_dwells = i == 2 ? 500 : 4000;
        const double half_way = both_found(settings[i], 25, 2, 0.5, n_dwells);
        const double one_apart = both_found(settings[i], 25, 1, -1, n_dwells);

        on_lags[i] = both_found(settings[i], 25, 2, 0, n_dwells);
        anywhere[i] = both_found(settings[i], 25, 2, -1, n_dwells);
        print_message("%s: both found in %.1f %% on the lags, %.1f %% half-way, %.1f %% anywhere; "
                      "one lag apart %.1f %%\n",
                      settings[i][3] != NULL ? settings[i][i + 2] : "oversample 1",
                      100 * on_lags[i], 100 * half_way, 100 * anywhere[i], 100 * one_apart);
    }
    for (int i = 0; i < 3; i++)
        assert_on_average(on_lags[i] > 0.95 && anywhere[i] > (i == 0 ? 0.86 : 0.95));
}

/* The candidates at a strong echo at lag 30 and a weak one at lag 60; returns how many there are */
static size_t beside_clutter(const char *filter, double clutter_db, double weak_db,
                             double *power_db)
{
    const char *const settings[] = {"code.type=random",
                                    "code.length=500",
                                    "detector.pfa=1e-4",
                                    "engine.batch=1",
                                    "detector.cfar=off",
                                    "radar.max_range_m=14800",
                                    "detector.max_echoes=8",
                                    filter,
                                    NULL};
    const double noise = 0.01, n = 500, delays[2] = {30, 60}, snrs_db[2] = {clutter_db, weak_db};
    chain c;

    if (!open_chain(&c, settings))
        return 0;
    clear_chain(&c);
    add_noise(c.x, c.windows.spans[0].n_samples, noise);
    for (int i = 0; i < 2; i++) {
        double(*a)[2] = delayed_code(&c, delays[i]);

        add_echo(&c, 0, (const double(*)[2])a, sqrt(noise * pow(10, snrs_db[i] / 10) / n), 1);
        free(a);
        power_db[i] = -INFINITY;
    }
    correlate_chain(&c);

    const size_t n_candidates = c.result.dwells[0].n_maxima;

    for (size_t k = 0; k < c.result.dwells[0].n_candidates; k++)
        for (int i = 0; i < 2; i++)
            if (c.result.candidates[k].cell == (uint32_t)delays[i])
                power_db[i] = 10 * log10((double)c.result.candidates[k].power / (noise * n));
    close_chain(&c);
    return n_candidates;
}

/* Clutter of 70 dB hides all that its sidelobes, 27 dB lower for 500 random phases, are above;
 * least squares leaves nothing of them. An echo of 20 dB is missed, or joined by a false alarm,
 * less than once in 5000 runs; three tries. */
TEST(test_least_squares)
{
    double with[2], without[2];
    size_t n_with = 0, n_without = 0;

    for (int tries = 0; tries < 3 && n_with != 2; tries++) {
        n_without = beside_clutter("window.filter=matched", 70, 20, without);
        n_with = beside_clutter("window.filter=least-squares", 70, 20, with);
    }
    print_message("matched: %zu maxima; least squares: %zu of %.2f and %.1f dB\n", n_without,
                  n_with, with[0], with[1]);
    assert_true(isinf(without[1]) || without[1] > 30); /* not there, or a sidelobe */
    assert_true(n_with == 2 && fabs(with[0] - 70 + 0.97) < 0.3 && with[1] > 12 && with[1] < 24);
}
