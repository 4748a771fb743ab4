/* SPDX-License-Identifier: MIT */
/* Every engine that works here against the reference: same cells, same values, same sums, same
 * bits. */
#include "engine_scenarios.h"

static void test_powers_of_two(void **unused)
{
    static const char *const names[] = {"cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);

        for (size_t i = 0; ops != NULL && i < sizeof powers_of_two / sizeof *powers_of_two; i++)
            agree(ops, &powers_of_two[i]);
    }
}

static void test_agreement(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 3; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);

        if (ops == NULL)
            continue;
        for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
            agree(ops, &scenarios[i]);
        print_message("%s: %zu scenarios agree with the reference\n", names[e],
                      sizeof scenarios / sizeof *scenarios);
    }
}

/* --- method walsh by name: every degree, whatever else auto would take --- */

/* NULL: no such engine here, or it has no such method. */
static const pnr_engine_ops *find_method(const char *name, const char *method)
{
    const pnr_engine_ops *ops = find_engine(name);
    pnr_engine_choice choice;
    pnr_error error = {0};
    world w;

    if (ops == NULL)
        return NULL;
    world_create(&w, &scenarios[0], ops);
    w.plan.method = method;

    const int code = ops->describe(&w.plan, &choice, &error);

    world_destroy(&w, ops);
    if (code == PNR_ECONFIG)
        return NULL;
    if (code != PNR_OK)
        fail_msg("%s", error.text);
    assert_string_equal(choice.method, method);
    return ops;
}

static void check_degree(const pnr_engine_ops *ops, unsigned degree)
{
    const size_t n = ((size_t)1 << degree) - 1;
    const double low = degree < 8 ? 4 : 12;
    scenario s = {.name = "walsh",
                  .n_samples = n,
                  .code = M_SEQUENCE,
                  .format = PNR_FORMAT_CI16,
                  .dwell = PNR_DWELL_SINGLE,
                  .n_periods = 1,
                  .n_dwells = degree < 12 ? 37 : 2,
                  .oversample = 1,
                  .n_channels = 1,
                  .tune = {0, 1},
                  .echo = 0.25,
                  .threshold = low,
                  .delay = uniform()};

    if (degree > 14)
        s.n_dwells = 1;
    agree(ops, &s);
    if (degree > 15)
        return;
    s.name = "walsh, ci8, a strong echo, clipped";
    s.format = PNR_FORMAT_CI8;
    s.echo = 1.1;
    agree(ops, &s);
    if (degree > 14)
        return;
    s.name = "walsh, a gate that wraps, low threshold";
    s.format = PNR_FORMAT_CI16;
    s.echo = 0.1;
    s.gate_first = n - n / 10;
    s.gate_count = n / 3;
    s.threshold = 3;
    s.max_candidates = 64;
    s.conjugate = true;
    agree(ops, &s);
    s.name = "walsh, the strongest alone";
    s.max_candidates = 1;
    agree(ops, &s);
    s.name = "walsh, more maxima than places";
    s.gate_first = 0;
    s.gate_count = n;
    s.echo = 0;
    s.threshold = 2;
    s.max_candidates = 5;
    agree(ops, &s);
    s.name = "walsh, lost and not finite";
    s.format = PNR_FORMAT_CF32;
    s.conjugate = false;
    s.n_dwells = degree < 12 ? 37 : 5;
    s.max_candidates = 0;
    s.echo = 0.2;
    s.threshold = low;
    s.has_lost = true;
    s.has_nonfinite = degree > 9;
    agree(ops, &s);
}

/* Dwells of several periods: all formats, lost and non-finite samples, part of a batch of windows.
 */
static void check_dwells(const pnr_engine_ops *ops, unsigned degree)
{
    static const pnr_format formats[] = {PNR_FORMAT_CI16, PNR_FORMAT_CI8, PNR_FORMAT_CF32};
    const size_t n = ((size_t)1 << degree) - 1;

    for (size_t f = 0; f < 3; f++) {
        scenario s = {.name = "walsh, dwells",
                      .n_samples = n,
                      .code = M_SEQUENCE,
                      .format = formats[f],
                      .n_dwells = degree < 11 ? 7 : 2,
                      .oversample = 1,
                      .n_channels = 1,
                      .tune = {0, 1},
                      .echo = f == 1 ? 1.1 : 0.2,
                      .threshold = 12,
                      .max_candidates = f == 0 ? 1 : 8,
                      .gate_first = f == 0 ? 0 : n / 2,
                      .gate_count = n,
                      .conjugate = f == 2,
                      .has_lost = f != 1,
                      .has_nonfinite = f == 2 && degree > 9,
                      .delay = uniform()};

        s.dwell = PNR_DWELL_COHERENT;
        s.n_periods = 3;
        agree(ops, &s);
        s.dwell = PNR_DWELL_INCOHERENT;
        s.n_periods = f == 0 ? 16 : f == 1 ? 1 : 5;
        s.threshold = degree < 8 ? 3 : 6;
        agree(ops, &s);
        s.max_candidates = 40;
        s.threshold = 1.5;
        s.echo = 0.05;
        agree(ops, &s);
    }
}

static void test_walsh(void **unused)
{
    static const char *const names[] = {"cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_method(names[e], "walsh");

        for (unsigned degree = 5; ops != NULL && degree <= 16; degree++)
            check_degree(ops, degree);
        for (unsigned degree = 5; ops != NULL && degree <= 13; degree++)
            check_dwells(ops, degree);
        if (ops != NULL)
            print_message("%s: walsh agrees with the reference, degrees 5 to 16\n", names[e]);
    }
}

/* Two equal echoes of integers, `apart` lags from each other, c exactly equal there. */
static void check_walsh_tie(const pnr_engine_ops *ops, unsigned degree, size_t delay, size_t apart)
{
    const size_t n = ((size_t)1 << degree) - 1;
    const scenario s = {.name = "walsh, a tie",
                        .n_samples = n,
                        .code = M_SEQUENCE,
                        .format = PNR_FORMAT_CI16,
                        .dwell = PNR_DWELL_SINGLE,
                        .n_periods = 1,
                        .n_dwells = 1,
                        .oversample = 1,
                        .n_channels = 1,
                        .tune = {0, 1},
                        .threshold = 4,
                        .max_candidates = 1};
    const size_t second = (delay + apart) % n;
    answer got;
    world w;

    world_create(&w, &s, ops);
    w.plan.method = "walsh";
    for (size_t i = 0; i < n; i++) {
        int16_t *x = (int16_t *)(void *)w.samples + 2 * i;

        x[0] = (int16_t)(100 * (w.references[(i + n - delay) % n][0] +
                                w.references[(i + n - second) % n][0]));
        x[1] = 0;
    }
    ask(ops, &w, PNR_WANT_NONE, &got);
    assert_int_equal(got.dwells[0].n_candidates, 1);
    assert_int_equal(got.candidates[0].cell, apart == 1 || delay < second ? delay : second);
    assert_true(got.candidates[0].value[8][0] == got.candidates[0].value[8 + (apart < 9)][0] ||
                apart > 1);
    answer_destroy(&got);
    memset(w.samples, 0, 4 * n); /* silence has no echo */
    ask(ops, &w, PNR_WANT_NONE, &got);
    assert_int_equal(got.dwells[0].n_above, 0);
    assert_int_equal(got.dwells[0].n_candidates, 0);
    answer_destroy(&got);
    world_destroy(&w, ops);
}

static void test_walsh_ties(void **unused)
{
    static const char *const names[] = {"cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_method(names[e], "walsh");

        for (unsigned degree = 7; ops != NULL && degree <= 17; degree++) {
            const size_t n = ((size_t)1 << degree) - 1;

            check_walsh_tie(ops, degree, n - 1, 1);
            check_walsh_tie(ops, degree, 5, 1);
            check_walsh_tie(ops, degree, 5, n / 2);
            check_walsh_tie(ops, degree, n - 20, n / 2);
        }
    }
}

/* The bits of a dwell do not depend on which others are submitted with it. */
static void test_walsh_batches(void **unused)
{
    static const char *const names[] = {"cpu", "cuda"};
    static const unsigned degrees[] = {6, 10, 11, 13, 14, 17};

    (void)unused;
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_method(names[e], "walsh");

        for (size_t l = 0; ops != NULL && l < 6; l++) {
            scenario s = scenarios[0];
            pnr_error error = {0};
            pnr_engine *engine;
            answer all;
            world w;

            s.n_samples = ((size_t)1 << degrees[l]) - 1;
            s.n_dwells = 7;
            s.threshold = 4;
            world_create(&w, &s, ops);
            w.plan.method = "walsh";
            w.windows.spans[0] = (pnr_span){w.samples, s.n_samples * 7};
            w.windows.spans[1] = (pnr_span){w.samples, 0};
            ask(ops, &w, PNR_WANT_NONE, &all);

            pnr_plan plan = w.plan;

            plan.batch = 2;
            if (ops->create(&plan, &engine, &error) != PNR_OK)
                fail_msg("%s", error.text);
            for (size_t d = 0; d < 7;) {
                const size_t count = d % 3 == 0 || d == 6 ? 1 : 2;
                pnr_windows v = w.windows;
                pnr_result result;

                v.first_sample += d * s.n_samples;
                v.n_dwells = count;
                v.spans[0] = (pnr_span){w.samples + 4 * d * s.n_samples, count * s.n_samples};
                assert_int_equal(ops->submit(engine, &(pnr_job){&v, d}), PNR_OK);
                assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
                for (size_t i = 0; i < count; i++, d++) {
                    assert_memory_equal(&result.dwells[i], &all.dwells[d], sizeof *all.dwells);
                    assert_memory_equal(&result.candidates[i * plan.max_candidates],
                                        &all.candidates[d * plan.max_candidates],
                                        all.dwells[d].n_candidates * sizeof *all.candidates);
                }
            }
            ops->destroy(engine);
            answer_destroy(&all);
            world_destroy(&w, ops);
        }
    }
}

/* Long windows are worked on in groups, each with scratch memory of its own: the last of three is
 * like `library` says too. */
static void test_walsh_groups(void **unused)
{
    static const unsigned degrees[] = {22, 21};
    const pnr_engine_ops *ops = find_method("cuda", "walsh");

    (void)unused;
    for (size_t l = 0; ops != NULL && l < 2; l++) {
        const scenario s = {.name = "walsh, groups of windows",
                            .n_samples = ((size_t)1 << degrees[l]) - 1,
                            .code = M_SEQUENCE,
                            .format = l == 0 ? PNR_FORMAT_CI16 : PNR_FORMAT_CI8,
                            .dwell = PNR_DWELL_SINGLE,
                            .n_periods = 1,
                            .n_dwells = l == 0 ? 3 : 5,
                            .oversample = 1,
                            .n_channels = 1,
                            .tune = {0, 1},
                            .echo = 0.03,
                            .threshold = 25,
                            .delay = uniform()};
        answer want, got;
        world w;

        world_create(&w, &s, ops);
        w.plan.method = "library";
        ask(ops, &w, PNR_WANT_NONE, &want);
        w.plan.method = "walsh";
        ask(ops, &w, PNR_WANT_NONE, &got);
        for (size_t d = 0; d < s.n_dwells; d++) {
            assert_int_equal(got.dwells[d].n_candidates, 1);
            assert_int_equal(got.candidates[d * got.max_candidates].cell,
                             want.candidates[d * want.max_candidates].cell);
            compare_dwell(&w, &got.dwells[d], &got.candidates[d * got.max_candidates],
                          &want.dwells[d], &want.candidates[d * want.max_candidates]);
        }
        answer_destroy(&want);
        answer_destroy(&got);
        world_destroy(&w, ops);
    }
}

/* N = 65535 costs the reference seconds, so it is asked once for all engines. */
static void test_long_m_sequence(void **unused)
{
    static const scenario s = {"m-sequence 65535",
                               65535,
                               M_SEQUENCE,
                               PNR_FORMAT_CI16,
                               PNR_DWELL_SINGLE,
                               1,
                               1,
                               1,
                               1,
                               0,
                               {0, 1},
                               0,
                               0,
                               0,
                               0.05,
                               16,
                               0,
                               0,
                               0,
                               0.87};
    static const char *const names[] = {"cpu", "cuda"};
    const pnr_engine_ops *reference;
    answer want;
    world w;

    (void)unused;
    assert_int_equal(pnr_engine_find("reference", 0, &reference, NULL), PNR_OK);
    world_create(&w, &s, reference);
    ask(reference, &w, PNR_WANT_COMPLEX, &want);
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);
        answer got;

        if (ops == NULL)
            continue;
        ask(ops, &w, PNR_WANT_COMPLEX, &got);
        compare_dwell(&w, &got.dwells[0], got.candidates, &want.dwells[0], want.candidates);
        compare_profile(&w, &want.dwells[0], got.profile, want.profile);
        assert_int_equal(got.candidates[0].cell, (size_t)(0.87 * 65535));
        answer_destroy(&got);
    }
    answer_destroy(&want);
    world_destroy(&w, reference);
}

static void check_delay(const pnr_engine_ops *ops, size_t n, size_t delay)
{
    scenario s = scenarios[3];
    answer got;
    world w;

    s.n_samples = n;
    s.n_dwells = 1;
    s.oversample = 1;
    s.threshold = 3;
    world_create(&w, &s, ops);
    for (size_t i = 0; i < n; i++) {
        const double *a = w.references[(i + n - delay) % n];
        const double x[2] = {0.25 * a[0], 0.25 * a[1]};

        (void)pnr_format_write(s.format, x, w.samples + 8 * i);
    }
    ask(ops, &w, PNR_WANT_COMPLEX, &got);
    assert_int_equal(got.dwells[0].n_candidates, 1);
    assert_int_equal(got.candidates[0].cell, delay);
    for (size_t k = 0; k < n; k++) { /* Zadoff-Chu: all other lags are 0 */
        const double peak = k == delay ? 0.25 * (double)n : 0;

        assert_true(fabs((double)got.profile[2 * k] - peak) < 1e-4);
        assert_true(fabs((double)got.profile[2 * k + 1]) < 1e-4);
    }
    answer_destroy(&got);
    world_destroy(&w, ops);
}

/* Noise-free and by hand: c at the echo's lag is A sum|a|^2, elsewhere the autocorrelation. Kills a
 * wrong conjugate (the echo would vanish), an off-by-one beyond N/2, a missing 1/N. */
static void test_by_hand(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 3; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);

        /* a length that is transformed itself, and a prime that is extended */
        for (size_t i = 0; ops != NULL && i < 2; i++)
            for (size_t delay = 0; delay < (i == 0 ? 75 : 61); delay++)
                check_delay(ops, i == 0 ? 75 : 61, delay);
    }
}

/* Ties: two equal echoes, all samples exact, give equal powers; the kept one is the lower lag. */
static void test_tie(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 3; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);
        scenario s = scenarios[0];
        answer got;
        world w;

        if (ops == NULL)
            continue;
        s.n_samples = 16;
        s.code = RANDOM_PHASE;
        s.format = PNR_FORMAT_CF32;
        s.n_dwells = 1;
        s.threshold = 2;
        s.max_candidates = 1;
        world_create(&w, &s, ops);
        /* the code is an impulse: c = x */
        memset(w.references, 0, 16 * sizeof *w.references);
        w.references[0][0] = 1;
        float(*x)[2] = (float(*)[2])(void *)w.samples;
        memset(x, 0, 16 * sizeof *x);
        x[11][0] = 0.5f;
        x[4][1] = -0.5f;
        ask(ops, &w, PNR_WANT_NONE, &got);
        assert_int_equal(got.dwells[0].n_maxima, 2);
        assert_int_equal(got.dwells[0].n_candidates, 1);
        assert_int_equal(got.candidates[0].cell, 4);
        /* silence has no echo */
        answer_destroy(&got);
        memset(x, 0, 16 * sizeof *x);
        ask(ops, &w, PNR_WANT_NONE, &got);
        assert_int_equal(got.dwells[0].n_candidates, 0);
        assert_int_equal(got.dwells[0].n_above, 0);
        answer_destroy(&got);
        world_destroy(&w, ops);
    }
}

/* The same dwells in submits of 1, 2, 3, 1, two in flight, over one engine of batch 3; every view
 * wraps inside a window, at an odd sample. */
static void check_pieces(const pnr_engine_ops *ops, const world *w, const answer *all)
{
    static const size_t sizes[] = {1, 2, 3, 1};
    const size_t dwell = w->s.n_samples * w->s.n_periods;
    const size_t bytes = pnr_plan_sample_bytes(&w->plan);
    pnr_plan plan = w->plan;
    pnr_engine *engine;
    pnr_error error = {0};
    size_t submitted = 0, collected = 0, n_in = 0, n_out = 0;

    plan.batch = 3;
    if (ops->create(&plan, &engine, &error) != PNR_OK)
        fail_msg("%s", error.text);
    while (collected < 7) {
        pnr_result result;

        if (n_in < 4 && n_in - n_out < 2) {
            const size_t n = sizes[n_in];
            const size_t first = (n * dwell / 2 + 26 * (n_in + 1)) | 1;
            const char *samples = w->samples + submitted * dwell * bytes;
            pnr_windows v = w->windows;

            assert_true(first % w->s.n_samples > 0 && first < n * dwell);
            v.first_sample += submitted * dwell;
            v.n_dwells = n;
            v.spans[0] = (pnr_span){samples, first};
            v.spans[1] = (pnr_span){samples + first * bytes, n * dwell - first};
            assert_int_equal(ops->submit(engine, &(pnr_job){&v, submitted}), PNR_OK);
            submitted += n;
            n_in++;
            continue;
        }
        if (n_in - n_out == 2)
            assert_int_equal(ops->submit(engine, &(pnr_job){&w->windows, 0}), PNR_EAGAIN);
        assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
        assert_int_equal(result.tag, collected);
        for (size_t d = 0; d < result.n_dwells; d++, collected++) {
            assert_memory_equal(&result.dwells[d], &all->dwells[collected], sizeof *result.dwells);
            assert_memory_equal(&result.candidates[d * plan.max_candidates],
                                &all->candidates[collected * plan.max_candidates],
                                all->dwells[collected].n_candidates * sizeof *all->candidates);
        }
        n_out++;
    }
    assert_int_equal(collected, 7);
    ops->destroy(engine);
}

/* The bits of a dwell do not depend on which others are submitted with it, nor on where the view
 * wraps. */
static void test_batches(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda"};
    static const size_t lengths[] = {512, 1023, 10000, 20000, 1024, 8192};
    static const pnr_format formats[] = {PNR_FORMAT_CI16, PNR_FORMAT_CF32};

    (void)unused;
    for (size_t i = 0; i < 3 * 6 * 2; i++) {
        const size_t e = i / 12, length = i / 2 % 6;
        const pnr_engine_ops *ops = find_engine(names[e]);
        scenario s = scenarios[8];
        answer all;
        world w;

        s.n_samples = lengths[length];
        s.format = formats[i % 2];
        s.code = RANDOM_PHASE;
        s.n_dwells = 7;
        s.n_periods = e == 0 || length >= 4 ? 1 : 3;
        if (length >= 4) /* own kernels take windows one by one */
            s.dwell = PNR_DWELL_SINGLE;
        if (ops == NULL || (e == 0 && s.n_samples > 2000))
            continue;
        world_create(&w, &s, ops);
        w.windows.spans[0] = (pnr_span){w.samples, s.n_samples * s.n_periods * 7};
        w.windows.spans[1] = (pnr_span){w.samples, 0};
        ask(ops, &w, PNR_WANT_NONE, &all);
        check_pieces(ops, &w, &all);
        answer_destroy(&all);
        world_destroy(&w, ops);
    }
}

/* What an engine lacks is said in words. */
static void test_words(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 3; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);
        pnr_engine_choice choice;
        pnr_error error = {0};
        world w;

        if (ops == NULL)
            continue;
        world_create(&w, &scenarios[3], ops);
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
        assert_true(choice.n_transform >= 255 && choice.method[0] != '\0');
        w.plan.n_codes = 3;
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
        assert_non_null(strstr(error.text, "3 codes"));
        w.plan.n_codes = 1;
        w.plan.reference = PNR_REFERENCE_CHANNEL;
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
        w.plan.reference = PNR_REFERENCE_STORED;
        w.plan.method = "magic";
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_ECONFIG);
        assert_non_null(strstr(error.text, "magic"));
        world_destroy(&w, ops);
    }

    const pnr_engine_ops *ops;
    pnr_error error = {0};

    assert_int_equal(pnr_engine_find("no-such-engine", 0, &ops, &error), PNR_EUNAVAILABLE);
    assert_non_null(strstr(error.text, "no-such-engine"));
    assert_null(ops);
}

/* A plan whose reference is not the m-sequence that it names is refused. */
static void test_m_sequence_plan(void **unused)
{
    const pnr_engine_ops *ops = find_engine("reference");
    pnr_engine_choice choice;
    pnr_error error = {0};
    world w;

    (void)unused;
    world_create(&w, &scenarios[0], ops);
    assert_int_equal(w.plan.m_degree, 10);
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    w.references[700][0] = -w.references[700][0];
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    assert_non_null(strstr(error.text, "degree 10"));
    w.references[700][0] = -w.references[700][0];
    w.references[1][1] = 1e-9;
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    w.references[1][1] = 0;
    w.plan.m_taps = taps_of(9);
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    w.plan.m_taps = UINT64_C(1) << 9; /* x^10 + 1: no maximal period */
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    w.plan.m_taps = taps_of(10);
    w.plan.m_degree = 25;
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    world_destroy(&w, ops);
}

/* The setup names an m-sequence at one sample a chip, and no other. */
static void test_m_sequence_setup(void **unused)
{
    static const char *const rates[] = {"source.rate_hz=1e6", "source.rate_hz=2e6"};

    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        const pnr_engine_ops *ops = find_engine("reference");
        pnr_engine_choice choice;
        pnr_config config;
        pnr_setup *setup;
        pnr_error error = {0};

        pnr_config_init(&config);
        assert_int_equal(pnr_config_set(&config, rates[i], &error), PNR_OK);
        assert_int_equal(pnr_config_set(&config, "code.type=m-sequence", &error), PNR_OK);
        assert_int_equal(pnr_config_set(&config, "code.degree=7", &error), PNR_OK);
        assert_int_equal(pnr_config_set(&config, "code.chip_rate_hz=1e6", &error), PNR_OK);
        if (pnr_setup_create(&config, PNR_FORMAT_CI16, 1, &setup, &error) != PNR_OK)
            fail_msg("%s", error.text);
        assert_int_equal(setup->plan.n_samples, i == 0 ? 127 : 254);
        assert_int_equal(setup->plan.m_degree, i == 0 ? 7 : 0);
        assert_int_equal(ops->describe(&setup->plan, &choice, &error), PNR_OK);
        pnr_setup_destroy(setup);
        pnr_config_clear(&config);
    }
}

static void test_lengths(void **unused)
{
    (void)unused;
    assert_true(pnr_plan_is_direct(4000));
    assert_int_equal(pnr_plan_transform_length(4000), 4000);
    assert_false(pnr_plan_is_direct(1023));
    assert_true(pnr_plan_transform_length(1023) >= 2045);
    assert_int_equal(pnr_plan_transform_length(1), 1);
}

int main(void)
{
    const char *seed = getenv("PNR_SEED");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_powers_of_two),
        cmocka_unit_test(test_walsh),
        cmocka_unit_test(test_walsh_ties),
        cmocka_unit_test(test_walsh_batches),
        cmocka_unit_test(test_walsh_groups),
        cmocka_unit_test(test_long_m_sequence),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_tie),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_m_sequence_plan),
        cmocka_unit_test(test_m_sequence_setup),
    };

    state = seed != NULL ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    fprintf(stderr, "PNR_SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
