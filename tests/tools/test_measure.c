/* SPDX-License-Identifier: MIT */
/* Tests the measurements: the samples have the stated echo, and a wrong result is never timed. */
#include "tests/fixture/test.h"
#include "tools/common/measure.h"

#include "correlator/engines.h"
static pnr_setup *make(pnr_config *sized, pnr_config *base, size_t n_samples, size_t batch)
{
    pnr_setup *setup = NULL;
    pnr_error error = {0};

    pnr_measure_configure(base, n_samples, sized);
    sized->engine.batch = batch;
    assert_int_equal(pnr_config_check(sized, &error), PNR_OK);
    assert_int_equal(pnr_setup_create(sized, sized->source.format, 1, &setup, &error), PNR_OK);
    return setup;
}

TEST(test_configure)
{
    pnr_config base, sized;

    pnr_config_init(&base);
    base.radar.min_range_m = 500;
    base.source.tune_hz = (pnr_rational){100, 1};
    for (size_t k = 2; k <= 24; k++) {
        pnr_measure_configure(&base, ((size_t)1 << k) - 1, &sized);
        assert_int_equal(sized.code.type, PNR_CODE_M_SEQUENCE);
        assert_int_equal(sized.code.degree, k);
        if (k > 2) {
            pnr_measure_configure(&base, (size_t)1 << k, &sized);
            assert_int_equal(sized.code.type, PNR_CODE_RANDOM);
            assert_int_equal(sized.code.length, (size_t)1 << k);
        }
    }
    assert_true(sized.radar.min_range_m == 0);
    base.code.chip_rate_hz = (pnr_rational){250000, 1};
    base.source.rate_hz = (pnr_rational){1000000, 1};
    pnr_measure_configure(&base, 4 * 127, &sized);
    assert_int_equal(sized.code.type, PNR_CODE_M_SEQUENCE);
    assert_int_equal(sized.code.degree, 7);
    assert_int_equal(sized.code.chip_rate_hz.num, 250000);
    pnr_measure_configure(&base, 127, &sized);
    assert_int_equal(sized.code.type, PNR_CODE_M_SEQUENCE);
    assert_int_equal(sized.code.chip_rate_hz.num, 0);
    pnr_measure_configure(&base, 3 * 127, &sized);
    assert_int_equal(sized.code.type, PNR_CODE_RANDOM);
    assert_int_equal(sized.code.chip_rate_hz.num, 0);
    assert_int_equal(sized.source.tune_hz.num, 0);
    assert_int_equal(sized.source.rate_hz.num, 1000000);
    assert_int_equal(sized.source.format, PNR_FORMAT_CI16);
    pnr_config_clear(&base);
}

/* c[lag] / E_a is the amplitude of the echo. The rest of x is noise. */
static void check_echo(const pnr_setup *setup, const int16_t (*samples)[2], size_t first)
{
    const size_t n = setup->plan.n_samples, lag = pnr_measure_lag(setup);
    double re = 0, im = 0, energy = 0, code_energy = 0;

    for (size_t i = 0; i < n; i++) {
        const int16_t *raw = samples[first + (i + lag) % n];
        const double x[2] = {raw[0] / 32768.0, raw[1] / 32768.0};
        const double *a = setup->references[i];

        re += x[0] * a[0] + x[1] * a[1];
        im += x[1] * a[0] - x[0] * a[1];
        energy += x[0] * x[0] + x[1] * x[1];
        code_energy += a[0] * a[0] + a[1] * a[1];
    }
    re /= code_energy;
    im /= code_energy;
    /* The error of this mean is 0.2 / sqrt(N) rms. The limit is six times this value. */
    assert_true(fabs(re - 0.2) < 1.2 / sqrt((double)n));
    assert_true(fabs(im) < 1.2 / sqrt((double)n));
    /* |x|^2 has the mean 0.08 and a standard deviation of at most 0.08. */
    assert_true(fabs(energy / (double)n - 0.08) < 6 * 0.08 / sqrt((double)n));
}

TEST(test_fill)
{
    static const size_t sizes[] = {127, 1000, 1024};
    pnr_config base, sized;

    pnr_config_init(&base);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        pnr_setup *setup = make(&sized, &base, sizes[s], 1);
        const size_t n = 4 * sizes[s];
        int16_t(*samples)[2] = calloc(n, sizeof *samples), (*again)[2] = calloc(n, sizeof *again);

        pnr_measure_fill(setup, samples, n);
        pnr_measure_fill(setup, again, n);
        assert_memory_equal(samples, again, n * sizeof *samples);
        for (size_t period = 0; period < 4; period++)
            check_echo(setup, (const int16_t(*)[2])samples, period * sizes[s]);
        free(samples);
        free(again);
        pnr_setup_destroy(setup);
    }
    pnr_config_clear(&base);
}

/* Samples that need several tiles continue without a seam. */
TEST(test_fill_repeats)
{
    const size_t n_samples = 100003, n = 12 * n_samples;
    pnr_config base, sized;
    pnr_setup *setup;
    int16_t(*samples)[2] = calloc(n, sizeof *samples);

    pnr_config_init(&base);
    setup = make(&sized, &base, n_samples, 1);
    pnr_measure_fill(setup, samples, n);
    for (size_t period = 0; period < 12; period++)
        check_echo(setup, (const int16_t(*)[2])samples, period * n_samples);
    free(samples);
    pnr_setup_destroy(setup);
    pnr_config_clear(&base);
}

TEST(test_time)
{
    const pnr_engine_ops *ops = NULL;
    pnr_config base, sized;
    pnr_error error = {0};
    pnr_timing timing;
    pnr_setup *setup;
    pnr_measure *measure = NULL;
    pnr_measurement run;
    size_t lags[3];

    pnr_config_init(&base);
    /* The engine undoes an offset of the carrier, conjugation, and the sum of two periods. */
    pnr_measure_configure(&base, 127, &sized);
    sized.source.tune_hz = (pnr_rational){12345, 1};
    sized.source.spectrum = PNR_SPECTRUM_INVERTED;
    sized.dwell.periods = 2;
    sized.dwell.combine = PNR_COMBINE_INCOHERENT;
    sized.engine.batch = 3;
    assert_int_equal(pnr_setup_create(&sized, sized.source.format, 1, &setup, &error), PNR_OK);
    assert_int_equal(pnr_engine_find("reference", 0, &ops, &error), PNR_OK);
    for (pnr_measure_mode mode = PNR_MEASURE_ANEW; mode <= PNR_MEASURE_PINNED; mode++) {
        assert_int_equal(pnr_measure_create(ops, setup, mode, &measure, &error), PNR_OK);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(pnr_measure_run(measure, &run, lags, &error), PNR_OK);
            for (size_t d = 0; d < 3; d++)
                assert_int_equal(lags[d], pnr_measure_lag(setup));
            assert_true(run.total_ns > 0);
        }
        pnr_measure_destroy(measure);
    }

    assert_int_equal(pnr_measure_time(ops, setup, PNR_MEASURE_PINNED, 9, &timing, &error),
                     PNR_EUSAGE);
    assert_int_equal(pnr_measure_time(ops, setup, PNR_MEASURE_PINNED, 10, &timing, &error), PNR_OK);
    assert_true(timing.median_ns > 0 && timing.median_ns <= timing.p99_ns);
    pnr_setup_destroy(setup);
    pnr_config_clear(&base);
}

/* --- an engine that answers at once, with one candidate at `cell` or with none --- */

typedef struct liar {
    pnr_dwell dwell;
    pnr_candidate candidate;
} liar;

static void *liar_alloc(size_t bytes)
{
    return calloc(1, bytes);
}

static int liar_create(const pnr_plan *plan, pnr_engine **engine, pnr_error *error)
{
    liar *l = calloc(1, sizeof *l);

    (void)error;
    assert_non_null(l);
    l->candidate.power = 1;
    l->candidate.cell = (uint32_t)((plan->gate_first + plan->gate_count / 3) * plan->oversample);
    l->dwell.n_candidates = 1;
    *engine = (pnr_engine *)l;
    return PNR_OK;
}

static int off_by_one_create(const pnr_plan *plan, pnr_engine **engine, pnr_error *error)
{
    const int code = liar_create(plan, engine, error);

    ((liar *)*engine)->candidate.cell++;
    return code;
}

static int silent_create(const pnr_plan *plan, pnr_engine **engine, pnr_error *error)
{
    const int code = liar_create(plan, engine, error);

    ((liar *)*engine)->dwell.n_candidates = 0;
    return code;
}

static void liar_destroy(pnr_engine *engine)
{
    free(engine);
}

static int liar_submit(pnr_engine *engine, const pnr_job *job)
{
    (void)engine;
    (void)job;
    return PNR_OK;
}

static int liar_collect(pnr_engine *engine, bool wait, pnr_result *result)
{
    const liar *l = (const liar *)engine;

    (void)wait;
    memset(result, 0, sizeof *result);
    result->n_dwells = 1;
    result->dwells = &l->dwell;
    result->candidates = &l->candidate;
    result->stage_ns[PNR_STAGE_PEAK] = 1;
    return PNR_OK;
}

TEST(test_wrong_answers)
{
    static const struct {
        int (*create)(const pnr_plan *plan, pnr_engine **engine, pnr_error *error);
        int code;
    } cases[] = {
        {liar_create, PNR_OK}, {off_by_one_create, PNR_EENGINE}, {silent_create, PNR_EENGINE}};
    pnr_config base, sized;
    pnr_setup *setup;

    pnr_config_init(&base);
    setup = make(&sized, &base, 127, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pnr_engine_ops ops = {
            .abi = PNR_ENGINE_ABI,
            .name = "liar",
            .alloc = liar_alloc,
            .free = free,
            .create = cases[i].create,
            .destroy = liar_destroy,
            .submit = liar_submit,
            .collect = liar_collect,
        };
        pnr_timing timing;
        pnr_error error = {0};

        setup->plan.measure = i == 0;
        assert_int_equal(pnr_measure_time(&ops, setup, PNR_MEASURE_PINNED, 10, &timing, &error),
                         cases[i].code);
        if (cases[i].code == PNR_OK) {
            assert_true(timing.stage_median_ns[PNR_STAGE_PEAK] == 1);
            assert_true(timing.stage_median_ns[PNR_STAGE_UPLOAD] == 0);
            assert_true(timing.explained > 0 && timing.explained <= 1);
        } else {
            assert_non_null(strstr(error.text, "liar"));
        }
    }
    pnr_setup_destroy(setup);
    pnr_config_clear(&base);
}

/* The echo of every dwell is found at its lag, also in a real format. */
TEST(test_scatter)
{
    static const pnr_format formats[] = {PNR_FORMAT_CI16, PNR_FORMAT_CU8, PNR_FORMAT_CF32,
                                         PNR_FORMAT_I8, PNR_FORMAT_F64};
    static const uint32_t lags[] = {0, 1, 126, 63};
    enum { N_DWELLS = sizeof lags / sizeof lags[0], N_PERIODS = 2, N = 127, BYTES = 16 };
    unsigned char memory[N_DWELLS * N_PERIODS * N * BYTES], again[sizeof memory];

    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        const unsigned bytes = pnr_format_get(formats[f])->bytes;
        pnr_config base, sized;
        pnr_setup *setup;

        pnr_config_init(&base);
        base.source.format = formats[f];
        base.dwell.periods = N_PERIODS;
        base.dwell.combine = PNR_COMBINE_INCOHERENT;
        setup = make(&sized, &base, N, N_DWELLS);
        pnr_measure_scatter(&setup->plan, 7, lags, memory);
        pnr_measure_scatter(&setup->plan, 7, lags, again);
        assert_memory_equal(memory, again, N_DWELLS * N_PERIODS * N * bytes);
        for (size_t w = 0; w < N_DWELLS * N_PERIODS; w++) {
            double best = -1;
            size_t best_lag = N;

            for (size_t k = 0; k < N; k++) {
                double re = 0, im = 0;

                for (size_t n = 0; n < N; n++) {
                    const double *a = setup->plan.references[n];
                    double x[2];

                    pnr_format_read(formats[f], memory + (w * N + (n + k) % N) * bytes, x);
                    re += x[0] * a[0] + x[1] * a[1];
                    im += x[1] * a[0] - x[0] * a[1];
                }
                if (re * re + im * im > best) {
                    best = re * re + im * im;
                    best_lag = k;
                }
            }
            assert_int_equal(best_lag, lags[w / N_PERIODS]);
        }
        pnr_setup_destroy(setup);
        pnr_config_clear(&base);
    }
}
