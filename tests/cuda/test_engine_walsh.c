/* SPDX-License-Identifier: MIT */
/* Tests m-sequences on every engine: method walsh where the engine has it for the plan, otherwise
 * another method. Tests every degree, format and kind of dwell, several samples a chip, ties,
 * partial batches, and groups of long windows. */
#include "tests/fixture/answer.h"

static const scenario plain = {.name = "walsh",
                               .n_samples = 1023,
                               .code = M_SEQUENCE,
                               .n_dwells = 5,
                               .echo = 0.2,
                               .threshold = 12,
                               .delay = 0.31};

/* Returns the engine. NULL: the engine does not work here, or does not have the method. */
static const pnr_engine_ops *find_method(const char *name, const char *method)
{
    const pnr_engine_ops *ops = find_engine(name);
    pnr_engine_choice choice;
    pnr_error error = {0};
    world w;

    if (ops == NULL)
        return NULL;
    world_create(&w, &plain, ops);
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

static const char *const names[] = {"cpu", "cuda"};

/* Returns a method that takes q samples a chip. On the GPU walsh takes only one sample a chip. */
static const char *method_of(const pnr_engine_ops *ops, size_t q)
{
    return q > 1 && strcmp(ops->name, "cuda") == 0 ? "auto" : "walsh";
}

/* The time of the reference grows as N^2, and sanitizers make it six times longer. Windows above
 * LONGEST are compared with `library`. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LONGEST = 2047 };
#else
enum { LONGEST = 65535 };
#endif

/* The delays of 37 dwells have every remainder modulo q. */
static size_t dwells_of(size_t n)
{
    return n <= 2047 ? 37 : n <= 8191 ? 2 : 1;
}

static void check_degree(const pnr_engine_ops *ops, unsigned degree, size_t q)
{
    const size_t n = q * (((size_t)1 << degree) - 1);
    const double low = degree < 8 ? 4 : 12;
    scenario s = plain;

    if (n > LONGEST)
        return;
    s.n_samples = n;
    s.n_dwells = dwells_of(n);
    s.echo = 0.25;
    s.threshold = low;
    s.delay = uniform();
    agree(ops, &s);
    if (degree >= 8) {
        /* the energy of the constant hides the echo in the first search, not in the second */
        s.name = "walsh, a constant";
        s.constant = 0.6;
        s.echo = sqrt(2.0 / (double)n);
        agree(ops, &s);
        s.constant = 0;
    }
    if (n > 65535 / 2)
        return;
    s.name = "walsh, ci8, a strong echo, clipped";
    s.format = PNR_FORMAT_CI8;
    s.echo = 1.1;
    agree(ops, &s);
    if (n > 16383)
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
    s.n_dwells = n <= 2047 ? 37 : n <= 8191 ? 5 : 2;
    s.max_candidates = 0;
    s.echo = 0.2;
    s.threshold = low;
    s.has_lost = true;
    s.has_nonfinite = degree > 9;
    agree(ops, &s);
}

/* Checks dwells of several periods: all formats, lost and non-finite samples, and a partial
 * batch. */
static void check_dwells(const pnr_engine_ops *ops, unsigned degree, size_t q)
{
    static const pnr_format formats[] = {PNR_FORMAT_CI16, PNR_FORMAT_CI8, PNR_FORMAT_CF32};
    const size_t n = q * (((size_t)1 << degree) - 1);

    for (size_t f = 0; n <= LONGEST && f < 3; f++) {
        scenario s = plain;

        s.name = "walsh, dwells";
        s.n_samples = n;
        s.format = formats[f];
        s.n_dwells = n < 2048 ? 7 : 2;
        s.echo = f == 1 ? 1.1 : 0.2;
        s.max_candidates = f == 0 ? 1 : 8;
        s.gate_first = f == 0 ? 0 : n / 2;
        s.gate_count = n;
        s.conjugate = f == 2;
        s.has_lost = f != 1;
        s.has_nonfinite = f == 2 && degree > 9;
        s.delay = uniform();
        s.n_periods = 3;
        agree(ops, &s);
        s.n_periods = 1;
        s.n_looks = f == 0 ? (degree < 12 ? 16 : 4) : f == 1 ? 1 : 5;
        s.threshold = degree < 8 ? 3 : 6;
        agree(ops, &s);
        s.max_candidates = 40;
        s.threshold = 1.5;
        s.echo = 0.05;
        agree(ops, &s);
    }
}

TEST(test_walsh)
{
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_method(names[e], "walsh");

        for (unsigned degree = 5; ops != NULL && degree <= 16; degree++)
            check_degree(ops, degree, 1);
        for (unsigned degree = 5; ops != NULL && degree <= 13; degree++)
            check_dwells(ops, degree, 1);
        if (ops != NULL)
            print_message("%s: walsh agrees with the reference, degrees 5 to 16\n", names[e]);
    }
}

/* Checks a strong and a weak echo at the offsets `delay` + 0 .. q - 1. The candidates must be those
 * of the reference, with both echoes. */
static void check_two_echoes(const pnr_engine_ops *ops, unsigned degree, size_t q)
{
    const size_t n = q * (((size_t)1 << degree) - 1), first = below(n);
    const pnr_engine_ops *reference = find_engine("reference");
    scenario s = plain;
    answer got, want;
    world w;

    s.name = "walsh, a strong and a weak echo";
    s.n_samples = n;
    s.n_dwells = q;
    s.echo = s.delay = 0;
    world_create(&w, &s, ops);
    w.plan.method = method_of(ops, q);
    for (size_t i = 0; i < n * q; i++) {
        const size_t strong = (first + i / n) % n, weak = (strong + n / 3) % n;
        int16_t *x = (int16_t *)(void *)w.samples + 2 * i;
        const double *a = w.references[(i % n + n - strong) % n];
        const double *b = w.references[(i % n + n - weak) % n];

        x[0] = (int16_t)lrint(8000 * a[0] + 50 * gaussian());
        x[1] = (int16_t)lrint(1600 * b[0] + 50 * gaussian());
    }
    ask(ops, &w, PNR_WANT_COMPLEX, &got);
    w.plan.method = "auto";
    ask(reference, &w, PNR_WANT_COMPLEX, &want);
    compare_answers(&w, ops->name, &got, &want, 1);
    for (size_t d = 0; d < q; d++) {
        const size_t strong = (first + d) % n, weak = (strong + n / 3) % n;
        const pnr_candidate *c = answer_candidates(&got, d);
        int n_met = 0;

        for (uint32_t i = 0; i < got.dwells[d].n_candidates; i++)
            n_met += c[i].cell == strong || c[i].cell == weak;
        assert_int_equal(n_met, 2);
    }
    answer_destroy(&got);
    answer_destroy(&want);
    world_destroy(&w, ops);
}

TEST(test_walsh_parts)
{
    static const size_t samples[] = {2, 3, 4, 10};

    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_method(names[e], "walsh");

        for (size_t i = 0; ops != NULL && i < 4; i++)
            for (unsigned degree = 5; degree <= 13 && samples[i] << degree <= 16384; degree++) {
                check_degree(ops, degree, samples[i]);
                if (degree == 5 || degree == (samples[i] < 4 ? 10 : 7))
                    check_dwells(ops, degree, samples[i]);
                if (degree > 6 && degree < 10)
                    check_two_echoes(ops, degree, samples[i]);
            }
        if (ops == NULL)
            continue;
        check_degree(ops, 5, 16);
        check_degree(ops, 14, 2);
        print_message("%s: walsh agrees at 2, 3, 4, 10 and 16 samples a chip\n", names[e]);
    }
}

/* With several samples a chip, auto chooses walsh on the CPU. On the GPU auto chooses fused, or
 * library for short codes, and walsh refuses the plan. */
TEST(test_walsh_parts_words)
{
    static const struct {
        size_t q, chips, oversample;
        /* the method that auto chooses on each engine; the refusal of walsh on the CPU */
        const char *cpu, *cuda, *words;
    } cases[] = {{4, 511, 1, "walsh", "fused", NULL},
                 {4, 31, 1, "walsh", "library", NULL},
                 {4, 511, 2, "library", "fused", "half lags"},
                 {17, 511, 1, "library", "fused", "samples a chip"}};

    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const pnr_engine_ops *ops = find_method(names[i % 2], "walsh");
        const bool is_cuda = i % 2 == 1;
        const char *words = is_cuda ? "several samples a chip" : cases[i / 2].words;
        scenario s = plain;
        pnr_engine_choice choice;
        pnr_error error = {0};
        world w;

        if (ops == NULL)
            continue;
        s.n_samples = cases[i / 2].q * cases[i / 2].chips;
        s.oversample = cases[i / 2].oversample;
        world_create(&w, &s, ops);
        assert_int_equal(w.plan.m_samples, cases[i / 2].q);
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
        assert_string_equal(choice.method, is_cuda ? cases[i / 2].cuda : cases[i / 2].cpu);
        w.plan.method = "walsh";
        if (words != NULL) {
            assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
            assert_non_null(strstr(error.text, words));
        } else {
            assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
            assert_non_null(strstr(choice.why, "4 polyphase parts"));
            assert_int_equal(choice.n_transform, cases[i / 2].chips + 1);
        }
        world_destroy(&w, ops);
    }
}

/* Checks two equal echoes of integer samples, `apart` lags from each other, where c is exactly
 * equal at both lags. */
static void check_walsh_tie(const pnr_engine_ops *ops, unsigned degree, size_t q, size_t delay,
                            size_t apart)
{
    const size_t n = q * (((size_t)1 << degree) - 1);
    const size_t second = (delay + apart) % n;
    scenario s = plain;
    answer got;
    world w;

    s.name = "walsh, a tie";
    s.n_samples = n;
    s.n_dwells = s.max_candidates = 1;
    s.echo = s.delay = 0;
    s.threshold = 4;
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

/* Only walsh computes exactly equal powers, because its sums of integers are exact. */
TEST(test_walsh_ties)
{
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_method(names[e], "walsh");
        const bool is_cuda = e == 1;

        for (unsigned degree = 7; ops != NULL && degree <= 17; degree++)
            for (size_t q = 1; q <= (degree < 15 && !is_cuda ? 4 : 1); q += 1 + degree % 3) {
                const size_t n = q * (((size_t)1 << degree) - 1);

                check_walsh_tie(ops, degree, q, n - 1, 1);
                check_walsh_tie(ops, degree, q, 5, 1);
                check_walsh_tie(ops, degree, q, 5, n / 2);
                check_walsh_tie(ops, degree, q, n - 20, n / 2);
            }
    }
}

/* The bits of a dwell do not depend on the other dwells of its submit. */
TEST(test_walsh_batches)
{
    static const unsigned degrees[] = {6, 10, 11, 13, 14, 17, 7, 15};
    static const size_t samples[] = {1, 1, 1, 1, 1, 1, 5, 2};

    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_method(names[e], "walsh");

        for (size_t l = 0; ops != NULL && l < 8; l++) {
            scenario s = plain;
            answer all;
            world w;

            s.n_samples = samples[l] * (((size_t)1 << degrees[l]) - 1);
            s.n_dwells = 7;
            s.threshold = 4;
            world_create(&w, &s, ops);
            w.plan.method = method_of(ops, samples[l]);
            world_wrap(&w, w.n_view);
            ask(ops, &w, PNR_WANT_NONE, &all);
            check_submits(ops, &w, &all, 2);
            answer_destroy(&all);
            world_destroy(&w, ops);
        }
    }
}

/* Compares walsh with `library`, with one echo in each dwell. These windows are too long for the
 * reference. */
static void check_against_library(const pnr_engine_ops *ops, const scenario *s, size_t q)
{
    answer want, got;
    world w;

    world_create(&w, s, ops);
    w.plan.method = "library";
    ask(ops, &w, PNR_WANT_NONE, &want);
    w.plan.method = method_of(ops, q);
    ask(ops, &w, PNR_WANT_NONE, &got);
    compare_answers(&w, ops->name, &got, &want, 1);
    for (size_t d = 0; d < s->n_dwells; d++) {
        assert_int_equal(got.dwells[d].n_candidates, 1);
        assert_int_equal(got.candidates[d * got.max_candidates].cell,
                         want.candidates[d * want.max_candidates].cell);
    }
    answer_destroy(&want);
    answer_destroy(&got);
    world_destroy(&w, ops);
}

/* Long windows are computed in groups, each with separate scratch memory. */
TEST(test_walsh_groups)
{
    static const unsigned degrees[] = {22, 21};
    const pnr_engine_ops *ops = find_method("cuda", "walsh");

    for (size_t l = 0; ops != NULL && l < 2; l++) {
        scenario s = plain;

        s.name = "walsh, groups of windows";
        s.n_samples = ((size_t)1 << degrees[l]) - 1;
        s.format = l == 0 ? PNR_FORMAT_CI16 : PNR_FORMAT_CI8;
        s.n_dwells = l == 0 ? 3 : 5;
        s.echo = 0.03;
        s.threshold = 25;
        s.delay = uniform();
        check_against_library(ops, &s, 1);
    }
}

/* Tests several samples a chip with parts of up to 2^13 samples. */
TEST(test_walsh_long_parts)
{
    static const struct {
        unsigned degree;
        size_t q, n_dwells;
    } cases[] = {{13, 3, 5}, {13, 4, 5},  {11, 10, 5}, {12, 10, 5}, {13, 10, 5},
                 {16, 2, 5}, {15, 16, 2}, {18, 3, 2},  {20, 4, 1}};

    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_method(names[e], "walsh");

        for (size_t l = 0; ops != NULL && l < sizeof cases / sizeof *cases; l++) {
            scenario s = plain;

            s.name = "walsh, long parts";
            s.n_samples = cases[l].q * (((size_t)1 << cases[l].degree) - 1);
            s.n_dwells = cases[l].n_dwells;
            s.echo = 0.03;
            s.threshold = 30;
            s.max_candidates = 1;
            s.delay = uniform();
            check_against_library(ops, &s, cases[l].q);
        }
    }
}
