/* SPDX-License-Identifier: MIT */
/* Tests the maps of each method of the cuda engine against the reference: every size of the
 * kernels, and every number of periods that is transformed. Where the reference is slow, compares
 * method fused with library. */
#include "tests/fixture/answer.h"

static const char *const methods[] = {"library", "fused"};

/* Compares both methods for powers and for complex values. The bits must be the same in submits of
 * any size. */
static void check(const pnr_engine_ops *ops, const scenario *s)
{
    const pnr_engine_ops *reference = find_engine("reference");
    answer powers, values;
    world w;

    world_create(&w, s, ops);
    ask(reference, &w, PNR_WANT_POWER, &powers);
    ask(reference, &w, PNR_WANT_COMPLEX, &values);
    values.powers = powers.profile;
    for (size_t i = 0; i < 2; i++) {
        w.plan.method = methods[i];
        agree_by(ops, &w, &powers);
        agree_by(ops, &w, &values);
    }
    answer_destroy(&values);
    answer_destroy(&powers);
    world_destroy(&w, ops);
}

TEST(test_lines)
{
    static const scenario scenarios[] = {
        S("1024 points, three codes, half bins", .n_samples = 1024, .n_codes = 3, .n_dwells = 3,
          .hypotheses = {{-10, 0, 1, 0}, {-2, 0, 1, 0}, {0, 0, 1, 0}, {2, 0, 1, 0}, {8, 0, 1, 0}},
          .echo = 0.1, .bins = -2.5, .threshold = 13),
        S("extended to 2048, twenty codes of a prime length, quarter bins", .n_samples = 1009,
          .code = ZADOFF_CHU, .n_codes = 20, .format = PNR_FORMAT_CF32, .n_dwells = 2,
          .hypotheses = {{-3, 0, 1, 0}, {0, 0, 1, 0}, {5, 0, 1, 0}}, .echo = 0.1, .bins = 1.25,
          .threshold = 14),
        S("extended to 1024, eleven codes on half lags", .n_samples = 257, .code = ZADOFF_CHU,
          .n_codes = 11, .format = PNR_FORMAT_CI8, .n_dwells = 3, .oversample = 2,
          .hypotheses = {{0, 0, 1, 0}, {1, 0, 1, 0}}, .echo = 0.2, .threshold = 13),
        S("linear, looks, half lags", .n_samples = 700, .format = PNR_FORMAT_CF64, .n_looks = 3,
          .n_dwells = 3, .oversample = 2, .n_lags = 301,
          .hypotheses = {{-4, 0, 1, 0}, {3, 0, 1, 0}}, .echo = 0.1, .bins = 0.75, .threshold = 6),
        S("extended to 8192, two codes, tuned, inverted, one of two channels", .n_samples = 2049,
          .n_codes = 2, .format = PNR_FORMAT_CU8, .n_channels = 2, .channel = 1, .tune = {-7, 23},
          .conjugate = true, .n_dwells = 2, .hypotheses = {{-1, 0, 1, 0}, {6, 0, 1, 0}},
          .echo = 0.1, .bins = 1.5, .threshold = 14),
        S("4096 points, one code", .n_samples = 4096, .format = PNR_FORMAT_I16, .n_dwells = 2,
          .hypotheses = {{-4, 0, 1, 0}, {2, 0, 1, 0}}, .echo = 0.1, .bins = -1, .threshold = 14),
        S("8192 points, coherent", .n_samples = 8192, .n_periods = 2, .hypotheses = {{1, 0, 1, 0}},
          .echo = 0.05, .bins = 0.25, .threshold = 15),
        S("4000 extended to 8192, four codes", .n_samples = 4000, .code = ZADOFF_CHU, .n_codes = 4,
          .hypotheses = {{-5, 0, 1, 0}}, .echo = 0.1, .bins = -1.25, .threshold = 17),
        S("another time scale", .n_samples = 256, .n_periods = 4, .n_dwells = 2,
          .hypotheses = {{-4, 0, 1, 1e-3}, {4, 0, 1, -1e-3}}, .echo = 0.1, .bins = 1,
          .threshold = 12),
        S("CFAR and boxes", .n_samples = 300, .n_periods = 12, .n_dwells = 2,
          .hypotheses = {{-2, -3, 6, 0}, {0, -3, 12, 0}}, .has_taper = true, .remove_mean = true,
          .cfar = {.kind = PNR_CFAR_GO,
                   .axis = PNR_CFAR_ALONG_ROWS,
                   .guard = 1,
                   .training = 5,
                   .stride = 1},
          .factor = 9, .exclusion_cells = 4, .exclusion_rows = 3, .echo = 0.1, .bins = 0.2,
          .still = 0.2, .threshold = 9),
    };
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        check(ops, &scenarios[i]);
}

/* Dwells of one line, which the kernel of the lines searches. With a returned map the search of
 * maps finds the candidates instead, and the bits must be the same. */
TEST(test_whole_dwells)
{
    static const scenario scenarios[] = {
        S("1024 points, many dwells, boxes", .n_samples = 1024, .n_dwells = 3, .exclusion_cells = 3,
          .echo = 0.1, .threshold = 5),
        S("extended to 1024, more dwells than the device takes together, CA", .n_samples = 128,
          .n_dwells = 5000, .cfar = {PNR_CFAR_CA, PNR_CFAR_ALONG_LAGS, 2, 16, 1, NULL}, .factor = 6,
          .echo = 0.1, .threshold = 9),
        S("2048 points, GO on a gate, lost", .n_samples = 2048, .n_dwells = 4, .gate_first = 1900,
          .gate_count = 700, .cfar = {PNR_CFAR_GO, PNR_CFAR_ALONG_LAGS, 1, 8, 2, NULL}, .factor = 7,
          .has_lost = true, .echo = 0.05, .threshold = 9),
        S("extended to 4096, SO, periods, rotated", .n_samples = 1500, .format = PNR_FORMAT_CF32,
          .n_periods = 3, .n_dwells = 3, .hypotheses = {{-3, 1, 1, 0}},
          .cfar = {PNR_CFAR_SO, PNR_CFAR_ALONG_LAGS, 2, 12, 1, NULL}, .factor = 9,
          .has_nonfinite = true, .echo = 0.05, .bins = -0.4, .threshold = 9),
        S("linear in 4096, OS, converted", .n_samples = 2500, .format = PNR_FORMAT_CU8,
          .conjugate = true, .n_dwells = 3, .n_lags = 1200,
          .cfar = {PNR_CFAR_OS, PNR_CFAR_ALONG_LAGS, 1, 10, 1, NULL}, .factor = 6, .echo = 0.1,
          .threshold = 9),
        S("8192 points, CA, all places taken", .n_samples = 8192, .n_dwells = 2,
          .max_candidates = 64, .cfar = {PNR_CFAR_CA, PNR_CFAR_ALONG_LAGS, 2, 16, 1, NULL},
          .factor = 1.5, .echo = 0.05, .threshold = 9),
        S("4000 extended to 8192, CA, a strong echo", .n_samples = 4000, .n_dwells = 3,
          .cfar = {PNR_CFAR_CA, PNR_CFAR_ALONG_LAGS, 2, 16, 1, NULL}, .factor = 10, .echo = 0.5,
          .threshold = 9),
    };
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        check(ops, &scenarios[i]);
}

/* Tests every size of the transform over the slow time, from raw samples and from converted
 * samples. */
TEST(test_slow_time)
{
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t k = 32; k <= 1024; k *= 2)
        for (size_t kind = 0; kind < 3; kind++) {
            const int32_t first = -(int32_t)(k / 8);
            const uint32_t rows = (uint32_t)(k / 4);
            scenario s = {.name = "quarter bins of many periods",
                          .n_samples = 128 + below(20),
                          .format = kind == 1 ? PNR_FORMAT_CF32 : PNR_FORMAT_CI16,
                          .n_periods = k,
                          .n_dwells = k <= 128 ? 3 : 1,
                          .hypotheses = {{-4, first, rows, 0},
                                         {-3, first, rows, 0},
                                         {2, first, rows, 0},
                                         {3, first, rows, 0}},
                          .has_taper = kind != 0,
                          .remove_mean = kind == 2,
                          .has_lost = kind == 2,
                          .has_nonfinite = kind == 1,
                          .exclusion_rows = 2,
                          .echo = 0.03,
                          .bins = 0.55,
                          .still = kind == 2 ? 0.3 : 0,
                          .threshold = 15};

            if (kind == 0 && k <= 64) {
                s.n_lags = 90; /* a linear correlation */
                s.n_looks = 2;
            }
            check(ops, &s);
        }
}

/* Maps for which the reference takes long. */
TEST(test_large)
{
    static const scenario scenarios[] = {
        S("64 periods of 8192", .n_samples = 8192, .n_periods = 64, .n_dwells = 2,
          .hypotheses = {{0, -8, 16, 0}, {1, -8, 16, 0}, {2, -8, 16, 0}, {3, -8, 16, 0}},
          .echo = 0.01, .bins = 0.3, .threshold = 16),
        S("4000 extended to 8192, two codes, looks, half lags", .n_samples = 4000, .n_codes = 2,
          .format = PNR_FORMAT_CF32, .n_looks = 3, .n_dwells = 3, .oversample = 2,
          .hypotheses = {{-4, 0, 1, 0}, {3, 0, 1, 0}}, .echo = 0.05, .bins = 0.75, .threshold = 7),
        S("32 codes of 4000", .n_samples = 4000, .code = GPS, .n_codes = 32,
          .format = PNR_FORMAT_CI8, .n_dwells = 5,
          .hypotheses = {{-22, 0, 1, 0}, {-2, 0, 1, 0}, {0, 0, 1, 0}, {6, 0, 1, 0}}, .echo = 0.05,
          .bins = 1.5, .threshold = 16),
    };
    const pnr_engine_ops *ops = need_engine("cuda");

    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        answer want, got;
        world w;

        world_create(&w, &scenarios[i], ops);
        w.plan.method = "library";
        ask(ops, &w, PNR_WANT_POWER, &want);
        w.plan.method = "fused";
        ask(ops, &w, PNR_WANT_POWER, &got);
        compare_answers(&w, "fused", &got, &want, 1);
        assert_true(want.dwells[0].n_candidates > 0);
        answer_destroy(&want);
        answer_destroy(&got);
        world_destroy(&w, ops);
    }
}

/* A method states which part of a map it does not support. */
TEST(test_words)
{
    const pnr_engine_ops *ops = need_engine("cuda");
    const scenario s = {
        .name = "words", .n_samples = 127, .code = M_SEQUENCE, .n_codes = 2, .threshold = 9};
    pnr_engine_choice choice;
    pnr_error error = {0};
    world w;

    world_create(&w, &s, ops);
    w.plan.method = "walsh";
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
    assert_non_null(strstr(error.text, "walsh knows no maps"));
    w.plan.method = "fused";
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
    assert_non_null(strstr(error.text, "127 samples"));
    w.plan.method = "magic";
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_ECONFIG);
    w.plan.method = "auto";
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    assert_string_equal(choice.method, "library");
    world_destroy(&w, ops);
}
