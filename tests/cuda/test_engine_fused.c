/* SPDX-License-Identifier: MIT */
/* Tests method fused up to 16384 points against the reference: every class of lengths, every kind
 * of dwell, format, gate and list. Also tests the results alone. */
#include "tests/fixture/answer.h"

enum { MAX_POINTS = 16384 };

static scenario scenario_of(const char *name, size_t n_samples)
{
    return (scenario){.name = name,
                      .n_samples = n_samples,
                      .n_dwells = n_samples < 3000 ? 5 : 2,
                      .echo = 0.2,
                      .threshold = 13,
                      .delay = uniform()};
}

/* Adds another echo to every window. Its delay exceeds that of the first echo by `later` N. */
static void add_echo(world *w, double amplitude, double later)
{
    const scenario *s = &w->s;
    const size_t n = s->n_samples, bytes = pnr_format_get(s->format)->bytes;

    for (size_t i = 0; i < w->n_view; i++) {
        const size_t delay = world_delay(w, i / world_dwell(w)) + (size_t)(later * (double)n);
        const double *a = w->references[(i % n + n - delay % n) % n];
        char *sample = w->samples + (i * s->n_channels + s->channel) * bytes;
        double x[2];

        (void)pnr_format_read(s->format, sample, x);
        x[0] += amplitude * a[0];
        x[1] += amplitude * a[1];
        (void)pnr_format_write(s->format, x, sample);
    }
}

/* Checks a world whose plan names method fused. */
static void check_world(const pnr_engine_ops *ops, world *w)
{
    const pnr_want wanted = w->s.n_looks > 1 ? PNR_WANT_POWER : PNR_WANT_COMPLEX;
    pnr_engine_choice choice;
    pnr_error error = {0};
    answer want;

    w->plan.method = "fused";
    if (ops->describe(&w->plan, &choice, &error) != PNR_OK)
        fail_msg("%s, N = %zu: %s", w->s.name, w->s.n_samples, error.text);
    assert_string_equal(choice.method, "fused");
    assert_true(choice.n_transform <= MAX_POINTS && choice.n_transform >= w->s.n_samples);
    w->plan.method = "auto";
    ask(find_engine("reference"), w, wanted, &want);
    w->plan.method = "fused";
    agree_by(ops, w, &want);
    answer_destroy(&want);
}

static void check(const pnr_engine_ops *ops, const scenario *s)
{
    world w;

    world_create(&w, s, ops);
    check_world(ops, &w);
    world_destroy(&w, ops);
}

/* Tests every size of the kernels, with windows of that size and with extended windows. */
TEST(test_lengths)
{
    static const size_t lengths[] = {128,  129,  255,  500,  512,  513,  1000, 1023, 1024, 1025,
                                     1500, 2000, 2047, 2048, 2049, 4000, 4095, 4096, 8191, 8192};
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        scenario s = scenario_of("single", lengths[i]);

        s.code = lengths[i] % 2 == 1 ? ZADOFF_CHU : RANDOM_PHASE;
        s.n_dwells = lengths[i] < 3000 ? 37 : 2;
        check(ops, &s);
        if (lengths[i] > 5000)
            continue;
        s = scenario_of("incoherent", lengths[i]);
        s.n_looks = 4;
        s.echo = 0.06;
        s.threshold = 4.5;
        check(ops, &s);
        s = scenario_of("coherent, half lags, tuned, inverted", lengths[i]);
        s.n_periods = 3;
        s.n_dwells = 2;
        s.oversample = 2;
        s.tune = (pnr_rational){-7, 23};
        s.conjugate = true;
        check(ops, &s);
    }
}

TEST(test_formats)
{
    static const pnr_format formats[] = {
        PNR_FORMAT_CI8, PNR_FORMAT_CU8, PNR_FORMAT_CI16, PNR_FORMAT_CF32, PNR_FORMAT_CF64,
        PNR_FORMAT_I8,  PNR_FORMAT_U8,  PNR_FORMAT_I16,  PNR_FORMAT_F32,  PNR_FORMAT_F64};
    static const size_t lengths[] = {1024, 700, 2048};
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t i = 0; i < 3 * sizeof formats / sizeof *formats; i++) {
        scenario s = scenario_of("a format", lengths[i % 3]);

        s.format = formats[i / 3];
        s.threshold = 14;
        check(ops, &s);
        s.name = "a format, clipped";
        s.echo = 1.1;
        check(ops, &s);
        s.name = "a format, the second of two channels";
        s.echo = 0.3;
        s.n_channels = 2;
        s.channel = 1;
        s.tune = (pnr_rational){1, 4};
        check(ops, &s);
    }
}

TEST(test_losses)
{
    static const size_t lengths[] = {1024, 1023, 4096, 3000};
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t i = 0; i < 12; i++) {
        scenario s = scenario_of("lost and not finite", lengths[i / 3]);

        s.format = PNR_FORMAT_CF32;
        *(i % 3 == 1 ? &s.n_periods : &s.n_looks) = i % 3 > 0 ? 5 : 1;
        s.n_dwells = 6;
        s.threshold = i % 3 == 2 ? 5 : 13;
        s.has_lost = s.has_nonfinite = true;
        check(ops, &s);
    }
}

/* Tests lists of candidates: strong and weak echoes, gates that wrap, and thresholds so low that
 * lists overflow. */
TEST(test_searches)
{
    static const size_t lengths[] = {1024, 600, 2048, 1999, 4096, 8192};
    static const size_t places[] = {1, 2, 5, 64};
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            const size_t n = lengths[l];
            scenario s = scenario_of("a strong and two weak echoes", n);
            world w;

            s.max_candidates = places[p];
            s.echo = 0.7;
            s.code = ZADOFF_CHU;
            s.n_dwells = 3;
            world_create(&w, &s, ops);
            add_echo(&w, 0.08, 0.3);
            add_echo(&w, 0.1, 0.3 + 5.0 / (double)n); /* the lag is within 8 of the previous echo */
            check_world(ops, &w);
            world_destroy(&w, ops);

            s = scenario_of("a gate that wraps", n);
            s.max_candidates = places[p];
            s.gate_first = n - n / 10;
            s.gate_count = n / 3;
            s.delay = 0.02;
            s.threshold = 4;
            check(ops, &s);

            s = scenario_of("more maxima than places", n);
            s.max_candidates = places[p];
            s.echo = 0;
            s.threshold = 0.6;
            check(ops, &s);
            s.name = "more maxima than places, incoherent, half lags";
            s.oversample = 2;
            s.n_looks = 2;
            s.n_dwells = 2;
            if (n <= 2048)
                check(ops, &s);
            s = scenario_of("an echo over noise above", n);
            s.max_candidates = places[p];
            s.threshold = 0.9;
            check(ops, &s);
        }
}

/* Impulses at lags whose values the transform computes exactly: of two equal powers the lower lag
 * is kept. Silence has no echo. */
TEST(test_ties)
{
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t n = 1024; n <= MAX_POINTS; n *= 2) {
        scenario s = scenario_of("a tie", n);
        answer got;
        world w;

        s.format = PNR_FORMAT_CF32;
        s.n_dwells = 1;
        s.threshold = 2;
        s.max_candidates = 1;
        world_create(&w, &s, ops);
        w.plan.method = "fused";
        memset(w.references, 0, n * sizeof *w.references);
        w.references[0][0] = 1;
        float(*x)[2] = (float(*)[2])(void *)w.samples;
        memset(x, 0, n * sizeof *x);
        x[n / 2][0] = x[0][0] = 0.5f;
        ask(ops, &w, PNR_WANT_NONE, &got);
        assert_int_equal(got.dwells[0].n_maxima, 2);
        assert_int_equal(got.dwells[0].n_candidates, 1);
        assert_int_equal(got.candidates[0].cell, 0);
        assert_true(got.candidates[0].power == 0.25f && got.candidates[0].value[8][0] == 0.5f);
        answer_destroy(&got);
        memset(x, 0, n * sizeof *x);
        ask(ops, &w, PNR_WANT_NONE, &got);
        assert_int_equal(got.dwells[0].n_candidates, 0);
        assert_int_equal(got.dwells[0].n_above, 0);
        assert_true(got.dwells[0].noise_sum == 0);
        answer_destroy(&got);
        world_destroy(&w, ops);
    }
}

/* The bits of a dwell depend neither on the other dwells of the submit nor on the number of windows
 * that a block takes. */
TEST(test_submits)
{
    static const size_t lengths[] = {1024, 1023, 300, 4096, 5000};
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t l = 0; l < 2 * sizeof lengths / sizeof *lengths; l++) {
        scenario s = scenario_of("pieces", lengths[l / 2]);
        answer all;
        world w;

        s.n_dwells = 45;
        s.n_looks = l % 2 == 0 ? 1 : 3;
        s.threshold = 3;
        world_create(&w, &s, ops);
        w.plan.method = "fused";
        ask(ops, &w, PNR_WANT_NONE, &all);
        check_submits(ops, &w, &all, 19);
        answer_destroy(&all);
        world_destroy(&w, ops);
    }
}

/* The submit has so many dwells that a block takes several. The results equal those of method
 * library. The sidelobes of the code are 0, so that rounding never decides whether the floor is
 * lowered. */
TEST(test_many)
{
    static const size_t lengths[] = {1024, 600, 300, 2048, 1023, 4096, 1601, 8191, 16384};
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t l = 0; l < 2 * sizeof lengths / sizeof *lengths; l++) {
        scenario s = scenario_of("many", lengths[l / 2]);
        answer want, got;
        world w;

        s.code = ZADOFF_CHU;
        s.n_dwells = 4000000 / s.n_samples;
        s.max_candidates = l % 2 == 0 ? 1 : 6;
        s.conjugate = l % 2 == 1;
        s.echo = 0.3;
        world_create(&w, &s, ops);
        w.plan.method = "library";
        ask(ops, &w, PNR_WANT_NONE, &want);
        w.plan.method = "fused";
        ask(ops, &w, PNR_WANT_NONE, &got);
        compare_answers(&w, "fused", &got, &want, 1);
        for (size_t d = 0; d < s.n_dwells; d++)
            assert_int_equal(answer_candidates(&got, d)->cell, answer_candidates(&want, d)->cell);
        answer_destroy(&want);
        answer_destroy(&got);
        world_destroy(&w, ops);
    }
}
