/* SPDX-License-Identifier: MIT */
/* CLEAN from samples through the engine: weak echoes far below a strong one's sidelobes are found,
 * and nothing is found where the strong one was. */
#include "pipeline/clean.h"

#include "base/complex.h"
#include "tests/fixture/detection_fixture.h"

/* An echo: from the window's start, amplitude against that of the strong one. */
typedef struct target {
    double lag, bins, level_db;
    uint32_t code;
} target;

/* The noise that gives the strong echo this SNR after correlation. */
static double noise_power(const chain *c, double snr_db)
{
    return pnr_waveform_energy(c->setup->codes[0].waveform) * (double)c->setup->plan.n_periods *
           0.01 / pow(10, snr_db / 10);
}

/* amplitude a(n - lag - walk (n - m)) exp(2 pi i bins n / N) over the whole dwell d, m its middle:
 * an echo of Doppler F walks -F / carrier. */
static void add_target(chain *c, size_t d, const target *t)
{
    const size_t n = c->setup->plan.n_samples, n_dwell = dwell_samples(c);
    const double amplitude = 0.1 * pow(10, t->level_db / 20), phase = uniform();
    const double carrier_hz = c->config.radar.carrier_hz;
    const double walk = carrier_hz > 0 ? -t->bins / (c->setup->radar.period_s * carrier_hz) : 0;
    const pnr_waveform *waveform = c->setup->codes[t->code].waveform; /* prepared by
                                                                             * pnr_clean */

    for (size_t i = 0; i < n_dwell; i++) {
        const double angle = 2 * M_PI * (phase + t->bins * (double)i / (double)n);
        const double late = t->lag + walk * ((double)i - ((double)n_dwell - 1) / 2);
        float *x = c->x[d * n_dwell + i];
        const double complex a =
            amplitude * pnr_cis(angle) * pnr_waveform_at(waveform, (double)i - late);

        x[0] += (float)creal(a);
        x[1] += (float)cimag(a);
    }
}

typedef struct counts {
    size_t n, n_first, n_found, n_false, n_more;
} counts;

/* Counts the trials in which all targets are found, before and after CLEAN; the first is the strong
 * one. */
static counts clean_trials(const char *const *settings, double snr_db, const target *targets,
                           size_t n_targets, size_t n_trials)
{
    counts k = {0};
    pnr_error error;
    pnr_clean *clean;
    chain c;

    if (!open_chain(&c, settings))
        skip();
    assert_int_equal(pnr_clean_create(&c.config, c.setup, c.detector, &clean, &error), PNR_OK);

    const pnr_plan *plan = &c.setup->plan;
    const double n = (double)plan->n_samples;

    while (k.n < n_trials) {
        clear_chain(&c);
        add_noise(c.x, plan->batch * dwell_samples(&c), noise_power(&c, snr_db));
        const double shift = uniform() * (plan->filter != NULL ? 1 : n); /* inside its gates */

        for (size_t d = 0; d < plan->batch; d++)
            for (size_t t = 0; t < n_targets; t++) {
                target at = targets[t];

                at.lag = fmod(at.lag + shift, n);
                add_target(&c, d, &at);
            }
        correlate_chain(&c);
        for (size_t d = 0; d < plan->batch; d++, k.n++) {
            pnr_detection found;
            bool is_seen[8] = {false};
            pnr_observed observed;

            detect_dwell(&c, d, &found);
            k.n_first += found.n_echoes;
            observed = (pnr_observed){
                .dwell = &c.result.dwells[d],
                .candidates = c.result.candidates + d * plan->max_candidates,
                .patches = c.result.patches != NULL
                               ? c.result.patches +
                                     d * plan->max_candidates * 2 * PNR_NEIGHBOURS * PNR_NEIGHBOURS
                               : NULL,
            };
            assert_int_equal(pnr_clean_run(clean, c.correlator, &c.windows, d, &observed, &found),
                             PNR_OK);
            k.n_more += found.is_more;
            for (size_t e = 0; e < found.n_echoes; e++) {
                const pnr_echo *echo = &found.echoes[e];
                bool is_target = false;

                for (size_t t = 0; t < n_targets; t++) {
                    const double off = remainder(echo->lag - targets[t].lag - shift, n);
                    const double bins = isfinite(echo->doppler_hz)
                                            ? echo->doppler_hz * c.setup->radar.period_s
                                            : targets[t].bins;
                    const double level = 20 * log10(echo->amplitude / 0.1);

                    if (echo->code == targets[t].code && fabs(off) < 0.5 &&
                        fabs(bins - targets[t].bins) * (double)plan->n_periods < 0.5 &&
                        fabs(level - targets[t].level_db) < 4)
                        is_target = is_seen[t] = true;
                }
                k.n_false += !is_target;
            }
            bool is_all = true;

            for (size_t t = 0; t < n_targets; t++)
                is_all &= is_seen[t];
            k.n_found += is_all;
        }
    }
    print_message("%s, %zu x %zu: %zu dwells, %zu echoes before, all found in %zu, false %zu\n",
                  c.setup->codes[0].code->name, plan->n_periods, plan->n_samples, k.n, k.n_first,
                  k.n_found, k.n_false);
    pnr_clean_destroy(clean);
    close_chain(&c);
    return k;
}

TEST(a_target_45_db_below_is_found)
{
    static const char *const settings[] = {"code.type=random", "code.length=512", "engine.batch=10",
                                           "detector.subtract=2", NULL};
    static const target targets[] = {{100.3, 0, 0, 0}, {230.8, 0, -45, 0}};
    const counts k = clean_trials(settings, 64, targets, 2, 200);

    assert_true(k.n_first < k.n + k.n / 20); /* 37 dB of sidelobes hide it */
    assert_true(k.n_found >= k.n * 98 / 100);
    assert_true(k.n_false <= 1);
}

/* If there is no weak echo, a second search finds none. */
TEST(a_strong_echo_alone_stays_alone)
{
    static const char *const settings[] = {"code.type=random", "code.length=512", "engine.batch=10",
                                           "detector.subtract=3", NULL};
    static const target targets[] = {{100.3, 0, 0, 0}};
    const counts k = clean_trials(settings, 64, targets, 1, 200);

    assert_int_equal(k.n_found, k.n);
    assert_true(k.n_false <= 1);
}

TEST(one_after_another_three_are_found)
{
    static const char *const settings[] = {"code.type=random",      "code.length=600",
                                           "engine.batch=10",       "detector.subtract=4",
                                           "detector.oversample=2", NULL};
    static const target targets[] = {{100.3, 0, 0, 0}, {230.8, 0, -30, 0}, {260.1, 0, -55, 0}};
    const counts k = clean_trials(settings, 73, targets, 3, 100);

    assert_true(k.n_found >= k.n * 97 / 100);
    assert_true(k.n_false <= 1);
}

/* The cross-correlation of Gold codes is 24 dB below the peak, and the weak echoes 40 and 45 dB. */
TEST(of_other_codes_too)
{
    static const char *const settings[] = {
        "code.type=gold",  "code.degree=9",       "code.1.index=1",
        "code.2.index=2",  "code.3.index=3",      "engine.batch=10",
        "engine.name=cpu", "detector.subtract=3", NULL};
    static const target targets[] = {{100.3, 0, 0, 0}, {230.8, 0, -40, 1}, {77.2, 0, -45, 2}};
    const counts k = clean_trials(settings, 64, targets, 3, 100);

    assert_true(k.n_first < k.n + k.n / 20);
    assert_true(k.n_found >= k.n * 97 / 100);
    assert_int_equal(k.n_more, 0);
    assert_true(k.n_false <= 1);
}

/* In a map: near the strong echo in range and in Doppler, where both have sidelobes. */
TEST(in_a_map_too)
{
    static const char *const settings[] = {
        "code.type=random",     "code.length=128",       "engine.batch=4",
        "detector.subtract=2",  "dwell.combine=doppler", "dwell.periods=16",
        "doppler.min_hz=-3000", "doppler.max_hz=12000",  NULL};
    static const target targets[] = {
        {60.3, 0.913, 0, 0}, {63.8, 0.78, -45, 0}, {90.1, -0.21, -46, 0}};
    const counts k = clean_trials(settings, 69, targets, 3, 60);

    assert_true(k.n_found >= k.n * 95 / 100);
    assert_true(k.n_false <= 1);
}

/* With a least-squares filter, where the response to the strong echo decreases slowly between two
 * gates. */
TEST(behind_a_filter_too)
{
    static const char *const one[] = {"code.type=random",
                                      "code.length=1000",
                                      "radar.max_range_m=45000",
                                      "window.filter=least-squares",
                                      "engine.batch=10",
                                      "detector.subtract=2",
                                      NULL};
    static const char *const rows[] = {"code.type=random",
                                       "code.length=1000",
                                       "radar.max_range_m=45000",
                                       "window.filter=least-squares",
                                       "engine.batch=4",
                                       "detector.subtract=2",
                                       "dwell.combine=doppler",
                                       "dwell.periods=8",
                                       NULL};
    static const target targets[] = {{100.3, 0, 0, 0}, {130.8, 0, -45, 0}};
    const counts k = clean_trials(one, 66, targets, 2, 100);
    const counts l = clean_trials(rows, 66, targets, 2, 40);

    assert_true(k.n_found >= k.n * 97 / 100 && k.n_false <= 1);
    assert_true(l.n_found >= l.n * 95 / 100 && l.n_false <= 1);
}

/* A tenth of a sample in a look, too little for a row to be stretched: had the echo of 70 dB stood
 * still there, 44 dB of it would be left. */
TEST(what_walks_goes_too)
{
    static const char *const settings[] = {"code.type=random",       "code.length=128",
                                           "engine.batch=4",         "detector.subtract=2",
                                           "dwell.combine=doppler",  "dwell.periods=16",
                                           "doppler.min_hz=30000",   "doppler.max_hz=45000",
                                           "radar.carrier_hz=0.8e9", NULL};
    static const target targets[] = {{60.3, 4.913, 0, 0}, {80.8, 4.4, -47, 0}};
    const counts k = clean_trials(settings, 70, targets, 2, 60);

    assert_true(k.n_found >= k.n * 95 / 100);
    assert_true(k.n_false <= 2);
}

/* The direct path of a sonar, in a map whose rows have their own time scale: its sidelobes there
 * are more and stronger than the movers. */
TEST(in_a_stretched_map_too)
{
    static const char *const settings[] = {"code.degree=7",
                                           "code.chip_rate_hz=250e3",
                                           "engine.batch=2",
                                           "detector.subtract=2",
                                           "dwell.combine=doppler",
                                           "dwell.periods=32",
                                           "doppler.min_hz=-3000",
                                           "doppler.max_hz=3000",
                                           "radar.carrier_hz=750e3",
                                           "detector.pfa=1e-4",
                                           NULL};
    static const target targets[] = {
        {60.3, 0, 0, 0}, {90.6, 0.053, -45, 0}, {130.8, -0.71, -47, 0}};
    const counts k = clean_trials(settings, 70, targets, 3, 30);

    assert_true(k.n_found >= k.n * 95 / 100);
    assert_true(k.n_false <= 1);
}

TEST(nothing_is_destroyed)
{
    pnr_clean_destroy(NULL);
}
