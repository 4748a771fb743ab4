/* SPDX-License-Identifier: MIT */
/* Detection by statistics, through the real engine: false alarms and the gain of the correlation */
#include "tests/fixture/detection_fixture.h"

static bool is_within(const char *what, double got, double want, double share)
{
    const bool is_good = fabs(got - want) <= share * want;

    print_message("%s: %.5g, asked %.5g (%+.1f %%)\n", what, got, want, 100 * (got / want - 1));
    return is_good;
}

/* Searches noise alone, and counts the searches with a candidate and the cells above. */
static void false_alarms(const char *const *settings, double pfa, size_t n_searches, double share)
{
    size_t n_found = 0, n_above = 0, n_done = 0;
    char name[96];
    chain c;

    if (!open_chain(&c, settings))
        return;
    n_searches /= SHARE;
    while (n_done < n_searches) {
        clear_chain(&c);
        add_noise(c.x, c.setup->plan.batch * dwell_samples(&c), 0.01);
        correlate_chain(&c);
        for (size_t d = 0; d < c.setup->plan.batch; d++, n_done++) {
            n_found += c.result.dwells[d].n_maxima > 0;
            n_above += c.result.dwells[d].n_above;
        }
    }
    snprintf(name, sizeof name, "false alarms a search, N = %zu x %zu, oversample %zu",
             c.setup->plan.n_samples, c.setup->plan.n_periods, c.setup->plan.oversample);

    const double cells = (double)(c.setup->plan.gate_count * c.setup->plan.oversample);
    const bool search_is_good = is_within(name, (double)n_found / (double)n_done, pfa, share);
    const bool cell_is_good =
        is_within("  a cell", (double)n_above / (double)n_done / cells, c.setup->pfa_cell, share);

    close_chain(&c);
    assert_on_average(search_is_good && cell_is_good);
}

TEST(test_false_alarms)
{
    static const char *const percent[] = {"code.degree=7", "detector.pfa=1e-2", "engine.batch=500",
                                          NULL};
    static const char *const permille[] = {"code.degree=7", "detector.pfa=1e-3", "engine.batch=500",
                                           NULL};
    static const char *const half_lags[] = {"code.degree=7", "detector.pfa=1e-2",
                                            "detector.oversample=2", "engine.batch=500", NULL};
    static const char *const half_lags_permille[] = {
        "code.degree=6", "detector.pfa=1e-3", "detector.oversample=2", "engine.batch=500", NULL};
    static const char *const looks[] = {"code.degree=7",    "detector.pfa=1e-2",
                                        "dwell.periods=4",  "dwell.combine=incoherent",
                                        "engine.batch=500", NULL};
    static const char *const gated[] = {"code.degree=7",          "detector.pfa=1e-2",
                                        "radar.min_range_m=3000", "radar.max_range_m=9000",
                                        "engine.batch=500",       NULL};
    static const char *const oversampled[] = {"code.type=random",         "code.length=40",
                                              "code.chip_rate_hz=250000", "detector.pfa=1e-2",
                                              "engine.batch=500",         NULL};

    false_alarms(percent, 1e-2, 200000, 0.10);
    false_alarms(permille, 1e-3, 500000, 0.20);
    false_alarms(half_lags, 1e-2, 200000, 0.10);
    false_alarms(half_lags_permille, 1e-3, 500000, 0.20);
    false_alarms(looks, 1e-2, 100000, 0.14);
    false_alarms(gated, 1e-2, 150000, 0.12);
    false_alarms(oversampled, 1e-2, 150000, 0.12);
}

/* The SNR after correlation, mean over many dwells in power; echo within a third of a sample of a
 * lag. */
static double mean_snr_db(unsigned log2_n, double input_snr_db, size_t n_dwells)
{
    char length[32], batch[32];
    const char *const settings[] = {"code.type=random",      length, "detector.pfa=0.3",
                                    "detector.oversample=2", batch,  NULL};
    const size_t n = (size_t)1 << log2_n;
    const double noise = 0.01, amplitude = sqrt(noise * pow(10, input_snr_db / 10));
    double sum = 0;
    size_t n_done = 0, n_missed = 0;
    chain c;

    snprintf(length, sizeof length, "code.length=%zu", n);
    snprintf(batch, sizeof batch, "engine.batch=%zu", n < 1 << 14 ? ((size_t)1 << 17) / n : 4);
    if (!open_chain(&c, settings))
        return NAN;
    while (n_done < n_dwells) {
        double delays[1024];

        clear_chain(&c);
        add_noise(c.x, c.setup->plan.batch * n, noise);
        for (size_t d = 0; d < c.setup->plan.batch; d++) {
            double(*a)[2] = delayed_code(&c, delays[d] = uniform() * (double)n);

            add_echo(&c, d, (const double(*)[2])a, amplitude, 7 * uniform());
            free(a);
        }
        correlate_chain(&c);
        for (size_t d = 0; d < c.setup->plan.batch; d++, n_done++) {
            pnr_detection found;
            double snr = 0;

            detect_dwell(&c, d, &found);
            for (size_t i = 0; i < found.n_echoes; i++) {
                double apart = fabs(found.echoes[i].lag - delays[d]);

                apart = fmin(apart, (double)n - apart);
                if (apart < 1)
                    snr = pow(10, found.echoes[i].snr_db / 10);
            }
            n_missed += snr == 0;
            sum += snr;
        }
    }
    close_chain(&c);
    assert_on_average((double)n_missed < 0.01 * (double)n_done);
    return 10 * log10(sum / (double)(n_done - n_missed));
}

TEST(test_processing_gain)
{
    double before = NAN;

    for (unsigned log2_n = 8; log2_n <= 18; log2_n++) {
        const size_t n_dwells = log2_n <= 10   ? 20000
                                : log2_n <= 13 ? 3000
                                : log2_n <= 16 ? 300
                                               : 60;
        const double snr = mean_snr_db(log2_n, -10, n_dwells / SHARE < 8 ? 8 : n_dwells / SHARE);

        if (isnan(snr))
            return;
        print_message("N = 2^%u: %.2f dB after correlation, theory %.2f\n", log2_n, snr,
                      -10 + 10 * log10(2) * log2_n);
        assert_on_average(log2_n == 8 || fabs(snr - before - 10 * log10(2)) < 0.1);
        assert_on_average(fabs(snr - (-10 + 10 * log10(2) * log2_n)) < 0.15);
        before = snr;
    }
}
