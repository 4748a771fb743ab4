/* SPDX-License-Identifier: MIT */
/* Tests method walsh of the cpu engine against the reference at every degree. The bits must be the
 * same for any batch, any number of threads, and any place at which the view wraps. */
#include "tests/fixture/answer.h"

static const scenario variants[] = {
    S("int16, beyond N/2", .delay = 0.74, .threshold = 9),
    S("int8, conjugated", .format = PNR_FORMAT_CI8, .conjugate = true, .delay = 0.31,
      .threshold = 9),
    S("int16, looks, lost", .n_looks = 4, .has_lost = true, .delay = 0.93, .threshold = 4),
    S("int16, coherent", .conjugate = true, .n_periods = 3, .has_lost = true, .delay = 0.55,
      .threshold = 9),
    S("int16, tuned", .tune = {-1, 3}, .conjugate = true, .delay = 0.66, .threshold = 9),
    S("second of two int16 channels", .n_channels = 2, .channel = 1, .conjugate = true,
      .n_looks = 2, .delay = 0.9, .threshold = 5),
    S("last of three int8 channels", .format = PNR_FORMAT_CI8, .n_channels = 3, .channel = 2,
      .n_looks = 2, .delay = 0.6, .threshold = 5),
    S("float, coherent, not finite", .format = PNR_FORMAT_CF32, .n_periods = 3, .has_lost = true,
      .has_nonfinite = true, .delay = 0.52, .threshold = 9),
    S("float, looks, not finite", .format = PNR_FORMAT_CF32, .tune = {1, 5}, .n_looks = 3,
      .has_nonfinite = true, .delay = 0.8, .threshold = 4),
    S("real uint8", .format = PNR_FORMAT_U8, .tune = {1, 4}, .delay = 0.99, .threshold = 9),
    S("a gate that wraps, low threshold", .gate_first = 1, .delay = 0.02, .threshold = 2.5),
    S("a gate that wraps, and the strongest cell outside", .gate_first = 1, .has_outside = true,
      .delay = 0.6, .threshold = 4),
    S("looks of two periods, cells excluded", .n_looks = 3, .n_periods = 2, .has_lost = true,
      .exclusion_cells = 3, .delay = 0.41, .threshold = 4),
    S("CFAR: powers in the order of lags", .n_looks = 2,
      .cfar = {PNR_CFAR_CA, PNR_CFAR_ALONG_LAGS, 1, 6, 1, NULL}, .factor = 9, .delay = 0.37),
};

static void world_create_variant(world *w, const pnr_engine_ops *ops, unsigned degree,
                                 size_t variant)
{
    const size_t n = ((size_t)1 << degree) - 1;
    scenario s = variants[variant];

    s.n_samples = n;
    s.code = M_SEQUENCE;
    s.n_dwells = 3;
    s.max_candidates = 8;
    s.echo = 0.25;
    if (s.gate_first > 0) {
        s.gate_first = n - n / 4;
        s.gate_count = n / 2;
    }
    world_create(w, &s, ops);
}

/* Gets the answer that this method computes with this number of threads. */
static void ask_threads(const pnr_engine_ops *ops, const world *w, const char *method,
                        size_t threads, answer *out)
{
    pnr_plan plan = w->plan;

    plan.method = method;
    plan.threads = threads;
    plan.want_profile = w->s.n_looks > 1 ? PNR_WANT_POWER : PNR_WANT_COMPLEX;
    ask_plan(ops, w, &plan, out);
}

/* Compares walsh with two threads with a method of the engine `judge`. */
static void agree_on(const pnr_engine_ops *ops, unsigned degree, size_t variant,
                     const pnr_engine_ops *judge, const char *method)
{
    answer got, want;
    world w;

    world_create_variant(&w, ops, degree, variant);
    ask_threads(ops, &w, "walsh", 2, &got);
    ask_threads(judge, &w, method, 2, &want);
    compare_answers(&w, "walsh", &got, &want, 1);
    answer_destroy(&got);
    answer_destroy(&want);
    world_destroy(&w, ops);
}

TEST(test_degrees)
{
    const pnr_engine_ops *ops = need_engine("cpu"), *reference = find_engine("reference");

    for (unsigned degree = 3; degree <= 15; degree++)
        for (size_t i = 0; i < COUNT(variants); i++) /* the reference is slow at high degrees */
            if (degree <= 10 || (degree <= 12 && i % 3 == degree % 3) || i == degree - 13)
                agree_on(ops, degree, i, reference, "auto");
}

/* Compares walsh with the FFT at degrees for which the reference would take minutes. At these
 * degrees a team of threads computes rows and columns. */
TEST(test_long)
{
    const pnr_engine_ops *ops = need_engine("cpu");

    for (unsigned degree = 16; degree <= 19; degree++)
        for (size_t i = degree % 3; i < COUNT(variants); i += 3)
            agree_on(ops, degree, i, ops, "library");
}

/* The bits must be the same with one thread or several, in one submit or three, and wherever the
 * view wraps. A window that wraps is converted first. A window that does not wrap may be gathered
 * directly. */
TEST(test_same_bits)
{
    static const unsigned degrees[] = {3, 6, 10, 13, 16, 18};
    const pnr_engine_ops *ops = need_engine("cpu");

    for (size_t g = 0; g < COUNT(degrees); g++)
        for (size_t i = 0; i < COUNT(variants); i++) {
            const size_t n = ((size_t)1 << degrees[g]) - 1;
            const size_t wraps[] = {1, n - 1, n + n / 2, 3 * n};
            answer first, again;
            world w;

            world_create_variant(&w, ops, degrees[g], i);
            world_wrap(&w, n);
            ask_threads(ops, &w, "walsh", 1, &first);
            for (size_t t = 0; t < COUNT(wraps); t++) {
                world_wrap(&w, wraps[t]);
                ask_threads(ops, &w, t == 2 ? "auto" : "walsh", 1 + 2 * t, &again);
                check_same_bits(&again, &first, 0);
                answer_destroy(&again);
            }
            w.plan.method = "walsh";
            w.plan.threads = 7;
            check_submits(ops, &w, &first, 1);
            answer_destroy(&first);
            world_destroy(&w, ops);
        }
}

TEST(test_words)
{
    const pnr_engine_ops *ops = need_engine("cpu");
    pnr_engine_choice choice;
    pnr_error error = {0};
    world w;

    world_create_variant(&w, ops, 10, 0);
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    assert_string_equal(choice.method, "walsh");
    assert_int_equal(choice.n_transform, 1024);
    assert_true(choice.host_bytes > 1024 * 20);
    assert_non_null(strstr(choice.why, "N = 1023 exactly"));
    w.plan.method = "library";
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    assert_string_equal(choice.method, "library");

    double(*halves)[2] = calloc((size_t)2 * 1023, sizeof *halves);

    assert_non_null(halves);
    memcpy(halves, w.references, 1023 * sizeof *halves);
    w.plan.references = (const double(*)[2])halves;
    w.plan.oversample = 2;
    w.plan.method = "auto";
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    assert_string_equal(choice.method, "library");
    w.plan.method = "walsh";
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
    assert_non_null(strstr(error.text, "half lags"));
    w.plan.oversample = 1;
    w.plan.m_degree = 0;
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
    assert_non_null(strstr(error.text, "no m-sequence of whole samples a chip"));
    free(halves);
    world_destroy(&w, ops);

    world_create_variant(&w, ops, 2, 0);
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    assert_string_equal(choice.method, "library");
    w.plan.method = "walsh";
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
    assert_non_null(strstr(error.text, "too short"));
    world_destroy(&w, ops);
}
