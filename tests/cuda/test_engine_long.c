/* SPDX-License-Identifier: MIT */
/* Tests method fused above 16384 points. The judge is the reference where it is fast enough, and
 * method library at greater lengths. */
#include "tests/fixture/answer.h"

enum { FIRST_BITS = 15, LAST_BITS = 22 };

static scenario scenario_of(const char *name, size_t n_samples)
{
    return (scenario){.name = name,
                      .n_samples = n_samples,
                      .n_dwells = 2,
                      .echo = 0.05,
                      .threshold = 16,
                      .delay = uniform()};
}

/* Gets the answer of the reference, or of a method of the engine. */
static void ask_judge(const pnr_engine_ops *ops, world *w, const char *judge, pnr_want wanted,
                      answer *out)
{
    if (strcmp(judge, "reference") == 0)
        ask(find_engine(judge), w, wanted, out);
    else
        ask_method(ops, w, judge, wanted, out);
}

/* Compares fused with a judge: the reference, or another method. Without the profile the results
 * must have the same bits. */
static void agree_long(const pnr_engine_ops *ops, const scenario *s, const char *judge,
                       pnr_want wanted)
{
    answer want, powers = {0}, got, quiet;
    world w;

    world_create(&w, s, ops);
    ask_judge(ops, &w, judge, wanted, &want);
    if (w.s.n_looks > 1 && wanted == PNR_WANT_COMPLEX) {
        ask_judge(ops, &w, judge, PNR_WANT_POWER, &powers);
        want.powers = powers.profile;
    }
    ask_method(ops, &w, "fused", wanted, &got);
    compare_answers(&w, "fused", &got, &want, 1);
    ask_method(ops, &w, "fused", PNR_WANT_NONE, &quiet);
    check_same_bits(&quiet, &got, 0);
    answer_destroy(&want);
    answer_destroy(&powers);
    answer_destroy(&got);
    answer_destroy(&quiet);
    world_destroy(&w, ops);
}

/* The length 2^15 itself, and lengths that are extended to 2^15, 2^16 and 2^17. */
TEST(test_reference)
{
    static const size_t lengths[] = {32768, 8193, 16383, 20000};
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const size_t n = lengths[i];
        scenario s = scenario_of("long", n);

        agree_long(ops, &s, "reference", PNR_WANT_COMPLEX);
        s.name = "long, conjugate, a gate that wraps, many above";
        s.format = PNR_FORMAT_CI8;
        s.conjugate = true;
        s.gate_first = n - n / 10;
        s.gate_count = n / 3;
        s.threshold = 4;
        s.echo = 0.3;
        s.max_candidates = 64;
        s.n_dwells = 1;
        agree_long(ops, &s, "reference", PNR_WANT_COMPLEX);
        s.name = "long, lost and not finite";
        s.format = PNR_FORMAT_CF32;
        s.conjugate = false;
        s.gate_count = 0;
        s.gate_first = 0;
        s.threshold = 15;
        s.max_candidates = 3;
        s.n_dwells = n > 20000 ? 2 : 5;
        s.has_lost = true;
        s.has_nonfinite = true;
        agree_long(ops, &s, "reference", PNR_WANT_COMPLEX);
        s.name = "long, CFAR";
        s.cfar = (pnr_cfar){PNR_CFAR_GO, PNR_CFAR_ALONG_LAGS, 1, 8, 1, NULL};
        s.factor = 10;
        s.n_dwells = 1;
        agree_long(ops, &s, "reference", PNR_WANT_COMPLEX);
    }
}

/* Tests samples that the first kernel cannot read: several periods, tunes, several channels, other
 * formats. */
TEST(test_prepared)
{
    static const pnr_format formats[] = {PNR_FORMAT_CI16, PNR_FORMAT_CU8, PNR_FORMAT_CF64,
                                         PNR_FORMAT_CF32};
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        scenario s = scenario_of("long, coherent", f == 3 ? 32768 : 8500);

        s.format = formats[f];
        s.n_periods = 1 + f;
        s.tune = (pnr_rational){f < 2 ? -1234567 : 0, 4000000};
        s.conjugate = f % 2 == 1;
        s.has_lost = f > 0;
        s.n_dwells = 2;
        agree_long(ops, &s, "reference", PNR_WANT_COMPLEX);
    }
    for (size_t f = 0; f < 2; f++) {
        scenario s = scenario_of("long, channels", 9000);

        s.format = f == 0 ? PNR_FORMAT_CI16 : PNR_FORMAT_I16;
        s.n_channels = 3;
        s.channel = 1 + f;
        s.tune = (pnr_rational){(int64_t)f, 5};
        s.echo = 0.2;
        agree_long(ops, &s, "reference", PNR_WANT_COMPLEX);
    }
}

/* Compares sums of powers: with the profile of powers, and with the complex profile of the last
 * window. */
static void agree_sum(const pnr_engine_ops *ops, const scenario *s)
{
    agree_long(ops, s, "reference", PNR_WANT_COMPLEX);
    agree_long(ops, s, "reference", PNR_WANT_POWER);
}

TEST(test_sums)
{
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t k = 1; k <= 5; k += 2) {
        scenario s = scenario_of("long, incoherent", k == 5 ? 8193 : 9000);

        s.n_looks = k;
        s.n_dwells = 3;
        s.threshold = 20;
        s.max_candidates = k == 3 ? 3 : 20;
        s.format = k == 3 ? PNR_FORMAT_CF32 : PNR_FORMAT_CI16;
        s.has_nonfinite = k == 3;
        agree_sum(ops, &s);
        s.name = "long, incoherent, lost, a strong echo";
        s.has_lost = true;
        s.echo = 0.5;
        agree_sum(ops, &s);
        s.name = "long, incoherent, many above";
        s.threshold = (double)k;
        s.max_candidates = 64;
        s.n_dwells = 1;
        agree_sum(ops, &s);
    }
    scenario s = scenario_of("long, incoherent", 40000);

    s.n_looks = 2;
    s.n_dwells = 1;
    agree_sum(ops, &s);
}

/* Adds echoes over the whole period. One strong echo hides the others from the first search, and
 * clips samples. */
static void add_echoes(world *w, size_t n_echoes, double amplitude)
{
    const size_t n = w->s.n_samples;
    int16_t(*x)[2] = (int16_t(*)[2])(void *)w->samples;

    for (size_t e = 0; e < n_echoes; e++) {
        const size_t delay = below(n);
        const double phase = 2 * M_PI * uniform();
        const double re = amplitude * 32768 * cos(phase), im = amplitude * 32768 * sin(phase);

        for (size_t i = 0; i < n * w->s.n_dwells; i++) {
            const double *a = w->references[(i % n + n - delay) % n];

            x[i][0] = (int16_t)lrint(x[i][0] + re * a[0] - im * a[1]);
            x[i][1] = (int16_t)lrint(x[i][1] + re * a[1] + im * a[0]);
        }
    }
}

static void check_echoes(const pnr_engine_ops *ops, size_t n, size_t n_echoes, double strong,
                         size_t max_candidates, double threshold)
{
    scenario s = scenario_of("long, several echoes", n);
    answer want, got;
    world w;

    s.echo = strong;
    s.max_candidates = max_candidates;
    s.threshold = threshold;
    s.n_dwells = n < 1 << 20 ? 3 : 1;
    world_create(&w, &s, ops);
    add_echoes(&w, n_echoes, 0.03);
    ask_method(ops, &w, "library", PNR_WANT_COMPLEX, &want);
    ask_method(ops, &w, "fused", PNR_WANT_COMPLEX, &got);
    compare_answers(&w, "fused", &got, &want, 1);
    for (size_t d = 0; d < s.n_dwells; d++)
        print_message("N = %zu: %u above, %u maxima, %u kept\n", n, got.dwells[d].n_above,
                      got.dwells[d].n_maxima, got.dwells[d].n_candidates);
    answer_destroy(&want);
    answer_destroy(&got);
    world_destroy(&w, ops);
}

/* Compares maps of one line, with CFAR and with larger exclusion zones. */
static void agree_maps(const pnr_engine_ops *ops, size_t n, pnr_format format)
{
    scenario s = scenario_of("long, boxes", n);

    s.format = format;
    s.n_dwells = n < 1 << 18 ? 5 : 1;
    s.exclusion_cells = 3;
    s.threshold = 18;
    agree_long(ops, &s, "library", PNR_WANT_COMPLEX);
    s.name = "long, CFAR, a gate that wraps, lost";
    s.cfar = (pnr_cfar){PNR_CFAR_CA, PNR_CFAR_ALONG_LAGS, 2, 16, 1, NULL};
    s.factor = 12;
    s.gate_first = n - n / 10;
    s.gate_count = n / 3;
    s.has_lost = true;
    agree_long(ops, &s, "library", PNR_WANT_POWER);
}

/* Compares every length with library in every format, with few and with many cells above the
 * threshold. */
TEST(test_library)
{
    static const pnr_format formats[] = {PNR_FORMAT_CI16, PNR_FORMAT_CI8, PNR_FORMAT_CF32};
    const pnr_engine_ops *ops = need_engine("cuda");

    for (unsigned bits = FIRST_BITS; bits <= LAST_BITS; bits++) {
        const size_t n = (size_t)1 << bits;

        for (size_t f = 0; f < 3; f++) {
            scenario s = scenario_of("long, against library", n);

            s.format = formats[f];
            s.n_dwells = bits < 18 ? 5 : 1;
            s.threshold = 20;
            agree_long(ops, &s, "library", PNR_WANT_COMPLEX);
        }
        agree_maps(ops, n, formats[bits % 3]);
        check_echoes(ops, n, 6, 0.03, 8, 20);
        /* the other echoes are hidden until the second search */
        check_echoes(ops, n, 6, 0.5, 8, 20);
        check_echoes(ops, n, 1, 0.5, 64, 1); /* a third of all cells are above the threshold */
    }
    agree_maps(ops, 10000, PNR_FORMAT_CI16);
    agree_maps(ops, (1 << 17) + 1, PNR_FORMAT_CF32);
    check_echoes(ops, (1 << 17) + 1, 3, 0.3, 8, 20);
    check_echoes(ops, 300000, 3, 0.3, 8, 20);
    check_echoes(ops, 1000003, 3, 0.3, 8, 20);
    check_echoes(ops, (1 << 21) - 1, 3, 0.3, 8, 20);
}

/* The bits of a dwell do not depend on the other dwells of its submit. */
TEST(test_batches)
{
    static const size_t lengths[] = {32768, 30000, 1 << 18, 1 << 21};
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        scenario s = scenario_of("long, batches", lengths[l]);
        answer all;
        world w;

        s.n_dwells = 7;
        s.threshold = 8;
        s.echo = 0.4;
        world_create(&w, &s, ops);
        world_wrap(&w, w.n_view);
        ask_method(ops, &w, "fused", PNR_WANT_NONE, &all);
        check_submits(ops, &w, &all, 3);
        answer_destroy(&all);
        world_destroy(&w, ops);
    }
}

/* Two equal samples lie half a period apart, and the code is an impulse. Both powers are exactly
 * equal, and the lower lag is kept. Silence has no echo. */
TEST(test_tie)
{
    const pnr_engine_ops *ops = need_engine("cuda");

    for (unsigned bits = FIRST_BITS; bits <= 18; bits++) {
        const size_t n = (size_t)1 << bits;
        scenario s = scenario_of("long, a tie", n);
        answer got;
        world w;

        s.n_dwells = 1;
        s.max_candidates = 1;
        s.threshold = 4;
        world_create(&w, &s, ops);
        memset(w.references, 0, n * sizeof *w.references);
        w.references[0][0] = 1;
        memset(w.samples, 0, n * 4);
        int16_t(*x)[2] = (int16_t(*)[2])(void *)w.samples;
        x[n / 2 + 77][0] = 16384;
        x[77][0] = 16384;
        ask_method(ops, &w, "fused", PNR_WANT_COMPLEX, &got);
        assert_true(got.profile[2 * 77] == got.profile[2 * (77 + n / 2)]);
        assert_int_equal(got.dwells[0].n_maxima, 2);
        assert_int_equal(got.dwells[0].n_candidates, 1);
        assert_int_equal(got.candidates[0].cell, 77);
        answer_destroy(&got);
        memset(w.samples, 0, n * 4);
        ask_method(ops, &w, "fused", PNR_WANT_NONE, &got);
        assert_int_equal(got.dwells[0].n_above, 0);
        assert_int_equal(got.dwells[0].n_candidates, 0);
        answer_destroy(&got);
        world_destroy(&w, ops);
    }
}

/* Longer windows are refused with a reason, and auto takes another method. */
TEST(test_words)
{
    const pnr_engine_ops *ops = need_engine("cuda");
    scenario s = scenario_of("too long", ((size_t)1 << 21) + 1);
    pnr_engine_choice choice;
    pnr_error error = {0};
    world w;

    s.n_dwells = 1;
    world_create(&w, &s, ops);
    w.plan.method = "fused";
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
    assert_non_null(strstr(error.text, "2^22"));
    w.plan.method = "auto";
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    assert_string_equal(choice.method, "library");
    w.plan.n_samples = w.plan.n_lags = 30000;
    w.plan.gate_count = 30000;
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    assert_string_equal(choice.method, "fused");
    assert_int_equal(choice.n_transform, 65536);
    assert_non_null(strstr(choice.why, "three kernels"));
    world_destroy(&w, ops);
}
