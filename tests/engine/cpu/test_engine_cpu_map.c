/* SPDX-License-Identifier: MIT */
/* Tests the paths of the cpu engine: slow time by sums or by transforms, rotated codes or samples,
 * long transforms in passes, fused lines. The bits must not depend on the number of threads. After
 * create nothing may be allocated. A plan that does not fit is refused, and the error has the
 * numbers. */
#include "tests/fixture/answer.h"

#include <stdatomic.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_COUNTED 0 /* the sanitizers have their own malloc */
#else
#define IS_COUNTED 1
#endif

/* --- a malloc that counts the calls of the test and of the module --- */

#if IS_COUNTED
static atomic_size_t n_allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
__attribute__((visibility("default"))) void *malloc(size_t size)
{
    n_allocations++;
    return __libc_malloc(size);
}
__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
    n_allocations++;
    return __libc_calloc(n, size);
}
#endif

static const scenario own_scenarios[] = {
    S("transforms of 33 periods, quarter bins, two codes", .n_samples = 60, .n_codes = 2,
      .n_periods = 33, .n_dwells = 2,
      .hypotheses = {{-3, -16, 33, 0}, {1, -16, 33, 0}, {6, -16, 30, 0}}, .has_taper = true,
      .cfar = {PNR_CFAR_GO, PNR_CFAR_ALONG_LAGS, 1, 8, 1, NULL}, .factor = 8, .echo = 0.05,
      .bins = 0.3, .threshold = 9),
    S("one code turned, looks, a long map: shared by the threads", .n_samples = 509,
      .format = PNR_FORMAT_CI8, .n_periods = 36, .n_looks = 2, .n_dwells = 2,
      .hypotheses =
          {{-9, -18, 9, 0}, {-5, -18, 36, 0}, {-1, -9, 18, 0}, {1, 0, 1, 0}, {4, -18, 36, 0}},
      .has_lost = true, .cfar = {PNR_CFAR_CA, PNR_CFAR_ALONG_ROWS, 1, 8, 1, NULL}, .factor = 4,
      .echo = 0.03, .bins = -1.2, .threshold = 9),
    S("four codes: samples turned, half lags", .n_samples = 61, .n_codes = 4,
      .format = PNR_FORMAT_CF32, .n_periods = 6, .n_dwells = 4, .oversample = 2,
      .hypotheses = {{-6, -3, 6, 0}, {-2, -3, 6, 0}, {2, -3, 6, 0}}, .has_nonfinite = true,
      .echo = 0.1, .bins = 0.5, .threshold = 9),
    S("the strongest cell outside of the gate", .n_samples = 509, .n_periods = 8, .n_codes = 2,
      .n_dwells = 3, .oversample = 2, .hypotheses = {{0, -4, 8, 0}, {4, -4, 8, 0}},
      .gate_first = 400, .gate_count = 150, .has_outside = true, .max_candidates = 5, .echo = 0.1,
      .bins = 0.3, .still = 0.05, .threshold = 6),
    S("a transform of 8192 in passes, many looks a time", .n_samples = 100, .n_looks = 9,
      .n_dwells = 3, .n_lags = 8090, .hypotheses = {{-5, 0, 1, 0}, {4, 0, 1, 0}}, .echo = 0.1,
      .bins = 1, .threshold = 5),
    S("a transform of 20000 in passes, gates filtered", .n_samples = 200, .n_periods = 3,
      .n_dwells = 2, .n_lags = 19800, .gate_first = 8000, .gate_count = 50,
      .hypotheses = {{0, 0, 1, 0}, {9, 0, 1, 0}}, .has_filter = true, .echo = 0.1, .threshold = 5),
    S("one line, linear, in passes: looks of two periods under CFAR", .n_samples = 200,
      .format = PNR_FORMAT_CI8, .tune = {1, 7}, .n_periods = 2, .n_looks = 3, .n_dwells = 2,
      .n_lags = 19800, .has_lost = true, .cfar = {PNR_CFAR_OS, PNR_CFAR_ALONG_LAGS, 1, 12, 1, NULL},
      .factor = 6, .echo = 0.1, .threshold = 5),
    S("one line, extended, in passes, half lags, cells excluded", .n_samples = 8209,
      .format = PNR_FORMAT_CF32, .n_looks = 2, .n_dwells = 2, .oversample = 2, .exclusion_cells = 3,
      .has_nonfinite = true, .echo = 0.05, .threshold = 9),
    S("bins shifted in passes", .n_samples = 8192, .hypotheses = {{-9, 0, 1, 0}, {429, 0, 1, 0}},
      .echo = 0.03, .bins = 107, .threshold = 13),
    S("no mean: a look with one window left is not there", .n_samples = 75, .n_periods = 2,
      .n_looks = 4, .n_dwells = 2, .hypotheses = {{1, 0, 2, 0}}, .remove_mean = true,
      .has_lost = true, .echo = 0.1, .bins = 0.3, .threshold = 6),
    S("more looks than are read at once", .n_samples = 2048, .n_periods = 8, .n_looks = 140,
      .n_lags = 20, .hypotheses = {{-3, 0, 1, 0}, {1, 0, 1, 0}, {5, 0, 1, 0}}, .remove_mean = true,
      .has_lost = true, .echo = 0.02, .bins = 1, .still = 0.3, .threshold = 4),
};

/* Submits all dwells of a world twice to one engine with this number of threads. */
static void ask_threads(const pnr_engine_ops *ops, const world *w, size_t threads, bool measure,
                        answer *out)
{
    pnr_plan plan = w->plan;
    pnr_engine *engine;
    pnr_result result;

    plan.want_profile = PNR_WANT_COMPLEX;
    plan.threads = threads;
    plan.measure = measure;
    engine = create_engine(ops, &plan);
    for (int i = 0; i < 2; i++) {
#if IS_COUNTED
        const size_t before = n_allocations;
#endif

        assert_int_equal(ops->submit(engine, &(pnr_job){&w->windows, 5}), PNR_OK);
        assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
#if IS_COUNTED
        assert_int_equal(n_allocations - before, 0);
#endif
    }
    answer_keep(&plan, &result, out);
    for (int stage = PNR_STAGE_CONVERT; stage <= PNR_STAGE_PEAK; stage++)
        assert_int_equal(result.stage_ns[stage] > 0, measure);
    ops->destroy(engine);
}

TEST(test_own_ways)
{
    const pnr_engine_ops *ops = need_engine("cpu"), *reference = find_engine("reference");

    for (size_t i = 0; i < COUNT(own_scenarios); i++) {
        static const size_t threads[] = {1, 2, 5, 1};
        answer want, powers, first;
        world w;

        world_create(&w, &own_scenarios[i], ops);
        ask(reference, &w, PNR_WANT_POWER, &powers);
        ask(reference, &w, PNR_WANT_COMPLEX, &want);
        want.powers = powers.profile;
        ask_threads(ops, &w, 1, false, &first);
        compare_answers(&w, "cpu", &first, &want, 1);
        for (size_t t = 1; t < 4; t++) {
            answer again;

            ask_threads(ops, &w, threads[t], t == 3, &again);
            check_same_bits(&again, &first, 0);
            answer_destroy(&again);
        }
        answer_destroy(&want);
        answer_destroy(&powers);
        answer_destroy(&first);
        world_destroy(&w, ops);
    }
}

static void expect(const pnr_engine_ops *ops, const pnr_plan *plan, int code, const char *word)
{
    pnr_engine_choice choice;
    pnr_error error = {0};
    const char *text = choice.why;

    assert_int_equal(ops->describe(plan, &choice, &error), code);
    text = code == PNR_OK ? choice.why : error.text;
    if (strstr(text, word) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", text, word);
}

TEST(test_describe)
{
    const pnr_engine_ops *ops = need_engine("cpu");
    pnr_engine_choice choice;
    world w;

    world_create(&w, &own_scenarios[0], ops);
    expect(ops, &w.plan, PNR_OK, "63 transforms a look forward, 96 x 2 back (rows x codes)");
    assert_int_equal(ops->describe(&w.plan, &choice, NULL), PNR_OK);
    assert_string_equal(choice.method, "library");
    assert_int_equal(choice.n_transform, 60);
    assert_true(choice.host_bytes > 2 * 96 * 60 * sizeof(float));
    w.plan.method = "walsh";
    expect(ops, &w.plan, PNR_EUNSUPPORTED, "library's");
    w.plan.method = "auto";
    w.plan.n_looks = 1 << 30; /* the spectra would need too much memory */
    expect(ops, &w.plan, PNR_EUNSUPPORTED, "MiB, and this machine has");
    w.plan.n_looks = 1;
    w.plan.n_codes = 65535; /* the powers would need too much memory */
    w.plan.n_periods = (size_t)1 << 30;
    w.plan.hypotheses = &(pnr_hypothesis){.n_rows = 1 << 30};
    w.plan.n_hypotheses = 1;
    expect(ops, &w.plan, PNR_EUNSUPPORTED, "1073741824 rows");
    world_destroy(&w, ops);
}
