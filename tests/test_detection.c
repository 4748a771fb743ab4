/* SPDX-License-Identifier: MIT */
/* Detection and estimation by statistics, through the real engine: false alarms, gain, accuracy,
 * SNR. */
#include "correlator.h"
#include "detector.h"
#include "setup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Sanitizers make this ten times slower: there the machinery is tested, with wider bounds. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SHARE = 20 };
#else
enum { SHARE = 1 };
#endif

static uint64_t state;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double uniform(void)
{
    return ((double)(next() >> 11) + 0.5) * 0x1p-53;
}

/* Complex white noise of power `power`. */
static void add_noise(float (*x)[2], size_t n, double power)
{
    for (size_t i = 0; i < n; i++) {
        const float r = sqrtf(-(float)power * logf((float)uniform()));
        const float angle = (float)(2 * M_PI) * (float)uniform();

        x[i][0] += r * cosf(angle);
        x[i][1] += r * sinf(angle);
    }
}

/* Everything between samples and echoes. */
typedef struct chain {
    pnr_config config;
    pnr_setup *setup;
    const pnr_engine_ops *ops;
    pnr_correlator *correlator;
    pnr_detector *detector;
    float (*x)[2]; /* [batch][n_periods][n_samples] */
    uint32_t *lost;
    uint64_t *ready;
    pnr_windows windows;
    pnr_result result;
} chain;

/* settings: NULL-terminated. false: no cpu engine here. */
static bool open_chain(chain *c, const char *const *settings)
{
    pnr_error error = {0};

    memset(c, 0, sizeof *c);
    if (pnr_engine_find("cpu", 0, &c->ops, &error) != PNR_OK) {
        print_message("skipped: %s\n", error.text);
        return false;
    }
    pnr_config_init(&c->config);
    assert_int_equal(pnr_config_set(&c->config, "source.rate_hz=1e6", &error), PNR_OK);
    for (; *settings != NULL; settings++)
        if (pnr_config_set(&c->config, *settings, &error) != PNR_OK)
            fail_msg("%s", error.text);
    if (pnr_setup_create(&c->config, PNR_FORMAT_CF32, 1, &c->setup, &error) != PNR_OK ||
        pnr_correlator_create(c->ops, &c->setup->plan, &c->correlator, &error) != PNR_OK ||
        pnr_detector_create(&c->config, c->setup, &c->detector, &error) != PNR_OK)
        fail_msg("%s", error.text);

    const pnr_plan *plan = &c->setup->plan;
    const size_t windows = plan->batch * plan->n_periods;

    c->x = c->ops->alloc(windows * plan->n_samples * sizeof *c->x);
    c->lost = calloc(windows, sizeof *c->lost);
    c->ready = calloc(plan->batch, sizeof *c->ready);
    assert_true(c->x && c->lost && c->ready);
    c->windows = (pnr_windows){.spans = {{c->x, windows * plan->n_samples}, {c->x, 0}},
                               .n_dwells = plan->batch,
                               .n_periods = plan->n_periods,
                               .lost = c->lost,
                               .ready_ns = c->ready};
    return true;
}

static void close_chain(chain *c)
{
    pnr_correlator_destroy(c->correlator);
    pnr_detector_destroy(c->detector);
    pnr_setup_destroy(c->setup);
    pnr_config_clear(&c->config);
    c->ops->free(c->x);
    free(c->lost);
    free(c->ready);
}

static size_t dwell_samples(const chain *c)
{
    return c->setup->plan.n_samples * c->setup->plan.n_periods;
}

static void clear(chain *c)
{
    memset(c->x, 0, c->setup->plan.batch * dwell_samples(c) * sizeof *c->x);
}

/* amplitude exp(i phase) a(n - delay) onto every period of dwell d */
static void add_echo(chain *c, size_t d, double delay, double amplitude, double phase)
{
    const size_t n = c->setup->plan.n_samples;
    double(*a)[2] = malloc(n * sizeof *a);
    const double re = amplitude * cos(phase), im = amplitude * sin(phase);

    assert_non_null(a);
    assert_int_equal(pnr_waveform_shift(c->setup->waveform, delay, a), PNR_OK);
    for (size_t p = 0; p < c->setup->plan.n_periods; p++)
        for (size_t i = 0; i < n; i++) {
            float *x = c->x[d * dwell_samples(c) + p * n + i];

            x[0] += (float)(re * a[i][0] - im * a[i][1]);
            x[1] += (float)(re * a[i][1] + im * a[i][0]);
        }
    free(a);
}

static void correlate(chain *c)
{
    pnr_windows windows;

    assert_int_equal(pnr_correlator_submit(c->correlator, &c->windows), PNR_OK);
    assert_int_equal(pnr_correlator_collect(c->correlator, true, &windows, &c->result), PNR_OK);
}

static void detect(const chain *c, size_t d, pnr_detection *out)
{
    pnr_detector_detect(c->detector, &c->result.dwells[d],
                        &c->result.candidates[d * c->setup->plan.max_candidates], out);
}

static bool is_within(const char *what, double got, double want, double share)
{
    const bool is_good = fabs(got - want) <= share * want;

    print_message("%s: %.5g, asked %.5g (%+.1f %%)\n", what, got, want, 100 * (got / want - 1));
    return is_good;
}

/* Searches in noise alone: how many find anything, and how many cells are above. */
static void false_alarms(const char *const *settings, double pfa, size_t n_searches, double share)
{
    size_t n_found = 0, n_above = 0, n_done = 0;
    char name[96];
    chain c;

    if (!open_chain(&c, settings))
        return;
    n_searches /= SHARE;
    share *= SHARE == 1 ? 1 : sqrt(SHARE);
    while (n_done < n_searches) {
        clear(&c);
        add_noise(c.x, c.setup->plan.batch * dwell_samples(&c), 0.01);
        correlate(&c);
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
    assert_true(search_is_good && cell_is_good);
}

static void test_false_alarms(void **unused)
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

    (void)unused;
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

        clear(&c);
        add_noise(c.x, c.setup->plan.batch * n, noise);
        for (size_t d = 0; d < c.setup->plan.batch; d++)
            add_echo(&c, d, delays[d] = uniform() * (double)n, amplitude, 7 * uniform());
        correlate(&c);
        for (size_t d = 0; d < c.setup->plan.batch; d++, n_done++) {
            pnr_detection found;
            double snr = 0;

            detect(&c, d, &found);
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
    assert_true((double)n_missed < 0.01 * (double)n_done);
    return 10 * log10(sum / (double)(n_done - n_missed));
}

static void test_processing_gain(void **unused)
{
    double before = NAN;

    (void)unused;
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
        if (log2_n > 8 && SHARE == 1 && fabs(snr - before - 10 * log10(2)) > 0.1)
            fail_msg("2^%u to 2^%u: %.3f dB, not 3.01", log2_n - 1, log2_n, snr - before);
        assert_true(fabs(snr - (-10 + 10 * log10(2) * log2_n)) < (SHARE == 1 ? 0.15 : 1));
        before = snr;
    }
}

/* What many trials at one fraction of a sample give. */
typedef struct accuracy {
    double bias, rms, sigma, normalised, snr_db, amplitude;
} accuracy;

static accuracy trials(chain *c, double fraction, double snr_db, size_t n_trials)
{
    const size_t n = c->setup->plan.n_samples, periods = c->setup->plan.n_periods;
    const double energy = pnr_waveform_energy(c->setup->waveform) * (double)periods;
    const double rate = pnr_rational_double(c->setup->radar.rate_hz);
    const double amplitude = 0.1, noise = energy * amplitude * amplitude / pow(10, snr_db / 10);
    accuracy a = {0};
    size_t n_done = 0;

    while (n_done < n_trials) {
        const double lag = floor(uniform() * (double)n) + fraction;

        clear(c);
        add_noise(c->x, c->setup->plan.batch * dwell_samples(c), noise);
        for (size_t d = 0; d < c->setup->plan.batch; d++)
            add_echo(c, d, lag, amplitude, 7 * uniform());
        correlate(c);
        for (size_t d = 0; d < c->setup->plan.batch; d++, n_done++) {
            pnr_detection found;

            detect(c, d, &found);
            assert_true(found.n_echoes >= 1);

            const pnr_echo *echo = &found.echoes[0];
            double error = echo->lag - lag;

            error -= (double)n * floor(error / (double)n + 0.5);
            assert_true(fabs(error) < 1);
            a.bias += error;
            a.rms += error * error;
            a.sigma += echo->delay_sigma_s * rate;
            a.normalised += pow(error / (echo->delay_sigma_s * rate), 2);
            a.snr_db += pow(10, echo->snr_db / 10);
            a.amplitude += echo->amplitude;
        }
    }
    a.bias /= (double)n_done;
    a.rms = sqrt(a.rms / (double)n_done);
    a.sigma /= (double)n_done;
    a.normalised /= (double)n_done;
    a.snr_db = 10 * log10(a.snr_db / (double)n_done);
    a.amplitude /= (double)n_done * amplitude;
    return a;
}

static void check_accuracy(const char *const *settings, double snr_db, double allowed)
{
    const double slack = SHARE == 1 ? 0 : 0.3; /* fewer trials */
    chain c;

    if (!open_chain(&c, settings))
        return;
    for (double fraction = 0; fraction < 1; fraction += 0.125) {
        const accuracy a = trials(&c, fraction, snr_db, 4000 / SHARE);
        const double bound =
            1 / sqrt(2 * pow(10, snr_db / 10) * pnr_waveform_bandwidth(c.setup->waveform));

        print_message("%s x %zu, %g dB, fraction %.3f: rms %.3f of the bound, bias %+.3f sigma, "
                      "normalised variance %.3f, SNR %+.3f dB, amplitude %.4f\n",
                      c.setup->code->name, c.setup->plan.n_periods, snr_db, fraction, a.rms / bound,
                      a.bias / bound, a.normalised, a.snr_db - snr_db, a.amplitude);
        assert_true(a.rms <= (allowed + slack) * bound);
        assert_true(fabs(a.bias) <= (0.3 + slack) * bound);
        assert_true(fabs(a.normalised - 1) < 0.25 + 2 * slack);
        assert_true(fabs(a.snr_db - snr_db) < 0.1 + slack);
        assert_true(fabs(a.amplitude - 1) < 0.01);
    }
    close_chain(&c);
}

static void test_accuracy(void **unused)
{
    static const char *const m_sequence[] = {"code.degree=10", "engine.batch=100", NULL};
    static const char *const half_lags[] = {"code.degree=9", "detector.oversample=2",
                                            "engine.batch=100", NULL};
    static const char *const random_phase[] = {"code.type=random", "code.length=1000",
                                               "dwell.periods=3",  "dwell.combine=coherent",
                                               "engine.batch=50",  NULL};
    static const char *const gps[] = {"code.type=gps-l1ca", "code.prn=7",
                                      "source.rate_hz=4e6", "code.chip_rate_hz=1.023e6",
                                      "engine.batch=25",    NULL};
    static const char *const looks[] = {"code.degree=9", "dwell.periods=4",
                                        "dwell.combine=incoherent", "engine.batch=50", NULL};

    (void)unused;
    check_accuracy(m_sequence, 30, 1.10);
    check_accuracy(half_lags, 30, 1.10);
    check_accuracy(random_phase, 30, 1.10);
    check_accuracy(gps, 30, 1.10);
    check_accuracy(looks, 30, 1.10);
    check_accuracy(m_sequence, 50, 1.10);
}

int main(void)
{
    const char *seed = getenv("PNR_SEED");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_false_alarms),
        cmocka_unit_test(test_processing_gain),
        cmocka_unit_test(test_accuracy),
    };

    state = seed != NULL ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) | 1;
    fprintf(stderr, "PNR_SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
