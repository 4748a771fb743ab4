/* SPDX-License-Identifier: MIT */
/* Maps of the cuda engine, method by method, against the reference: every size of the kernels,
 * every number of periods that is transformed, and method fused against library where the reference
 * is slow. */
#include "tests/fixture/map_answer.h"

static const char *const methods[] = {"library", "fused"};

/* Both methods, power and complex, and their bits in any submits. */
static void check(const pnr_engine_ops *ops, const map_scenario *s)
{
    const pnr_engine_ops *reference = find_engine("reference");
    map_world w;

    map_world_create(&w, s, ops);
    for (pnr_want want = PNR_WANT_POWER; want <= PNR_WANT_COMPLEX; want++) {
        map_answer wanted;

        w.plan.method = "auto";
        assert_true(ask_map(reference, &w, want, &wanted));
        for (size_t i = 0; i < 2; i++) {
            map_answer got, quiet;

            w.plan.method = methods[i];
            assert_true(ask_map(ops, &w, want, &got));
            assert_true(ask_map(ops, &w, PNR_WANT_NONE, &quiet));
            compare_maps(&w, methods[i], &got, &wanted, want, 1);
            check_same_bits(&quiet, &got, 0);
            check_map_submits(ops, &w, &quiet, 2);
            map_answer_destroy(&got);
            map_answer_destroy(&quiet);
        }
        map_answer_destroy(&wanted);
    }
    map_world_destroy(&w, ops);
}

TEST(test_lines)
{
    static const map_scenario scenarios[] = {
        {.name = "1024 points, three codes, half bins",
         .n_samples = 1024,
         .code = RANDOM_PHASE,
         .n_codes = 3,
         .format = PNR_FORMAT_CI16,
         .n_dwells = 3,
         .n_hypotheses = 5,
         .hypotheses = {{-10, 0, 1, 0}, {-2, 0, 1, 0}, {0, 0, 1, 0}, {2, 0, 1, 0}, {8, 0, 1, 0}},
         .echo = 0.1,
         .bins = -2.5,
         .threshold = 13},
        {.name = "extended to 2048, twenty codes of a prime length, quarter bins",
         .n_samples = 1009,
         .code = ZADOFF_CHU,
         .n_codes = 20,
         .format = PNR_FORMAT_CF32,
         .n_dwells = 2,
         .n_hypotheses = 3,
         .hypotheses = {{-3, 0, 1, 0}, {0, 0, 1, 0}, {5, 0, 1, 0}},
         .echo = 0.1,
         .bins = 1.25,
         .threshold = 14},
        {.name = "extended to 1024, eleven codes on half lags",
         .n_samples = 257,
         .code = ZADOFF_CHU,
         .n_codes = 11,
         .format = PNR_FORMAT_CI8,
         .n_dwells = 3,
         .oversample = 2,
         .n_hypotheses = 2,
         .hypotheses = {{0, 0, 1, 0}, {1, 0, 1, 0}},
         .echo = 0.2,
         .threshold = 13},
        {.name = "linear, looks, half lags",
         .n_samples = 700,
         .code = RANDOM_PHASE,
         .format = PNR_FORMAT_CF64,
         .n_looks = 3,
         .n_dwells = 3,
         .oversample = 2,
         .n_lags = 301,
         .n_hypotheses = 2,
         .hypotheses = {{-4, 0, 1, 0}, {3, 0, 1, 0}},
         .echo = 0.1,
         .bins = 0.75,
         .threshold = 6},
        {.name = "extended to 8192, two codes, tuned, inverted, one of two channels",
         .n_samples = 2049,
         .code = RANDOM_PHASE,
         .n_codes = 2,
         .format = PNR_FORMAT_CU8,
         .n_dwells = 2,
         .n_channels = 2,
         .channel = 1,
         .tune = {-7, 23},
         .conjugate = true,
         .n_hypotheses = 2,
         .hypotheses = {{-1, 0, 1, 0}, {6, 0, 1, 0}},
         .echo = 0.1,
         .bins = 1.5,
         .threshold = 14},
        {.name = "4096 points, one code",
         .n_samples = 4096,
         .code = RANDOM_PHASE,
         .format = PNR_FORMAT_I16,
         .n_dwells = 2,
         .n_hypotheses = 2,
         .hypotheses = {{-4, 0, 1, 0}, {2, 0, 1, 0}},
         .echo = 0.1,
         .bins = -1,
         .threshold = 14},
        {.name = "8192 points, coherent",
         .n_samples = 8192,
         .code = RANDOM_PHASE,
         .format = PNR_FORMAT_CI16,
         .dwell = PNR_DWELL_COHERENT,
         .n_periods = 2,
         .n_hypotheses = 1,
         .hypotheses = {{1, 0, 1, 0}},
         .echo = 0.05,
         .bins = 0.25,
         .threshold = 15},
        {.name = "4000 extended to 8192, four codes",
         .n_samples = 4000,
         .code = ZADOFF_CHU,
         .n_codes = 4,
         .format = PNR_FORMAT_CI16,
         .n_hypotheses = 1,
         .hypotheses = {{-5, 0, 1, 0}},
         .echo = 0.1,
         .bins = -1.25,
         .threshold = 17},
        {.name = "another time scale",
         .n_samples = 256,
         .code = RANDOM_PHASE,
         .format = PNR_FORMAT_CI16,
         .dwell = PNR_DWELL_COHERENT,
         .n_periods = 4,
         .n_dwells = 2,
         .n_hypotheses = 2,
         .hypotheses = {{-4, 0, 1, 1e-3}, {4, 0, 1, -1e-3}},
         .echo = 0.1,
         .bins = 1,
         .threshold = 12},
        {.name = "CFAR and boxes",
         .n_samples = 300,
         .code = RANDOM_PHASE,
         .format = PNR_FORMAT_CI16,
         .dwell = PNR_DWELL_DOPPLER,
         .n_periods = 12,
         .n_dwells = 2,
         .n_hypotheses = 2,
         .hypotheses = {{-2, -3, 6, 0}, {0, -3, 12, 0}},
         .has_taper = true,
         .remove_mean = true,
         .cfar = {.kind = PNR_CFAR_GO,
                  .axis = PNR_CFAR_ALONG_ROWS,
                  .guard = 1,
                  .training = 5,
                  .stride = 1},
         .factor = 9,
         .exclusion_cells = 4,
         .exclusion_rows = 3,
         .echo = 0.1,
         .bins = 0.2,
         .still = 0.2,
         .threshold = 9},
    };
    const pnr_engine_ops *ops = cuda();

    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        check(ops, &scenarios[i]);
}

/* Every size of the transform over the slow time, from raw samples and from converted ones. */
TEST(test_slow_time)
{
    const pnr_engine_ops *ops = cuda();

    for (size_t k = 32; k <= 1024; k *= 2)
        for (size_t kind = 0; kind < 3; kind++) {
            const int32_t first = -(int32_t)(k / 8);
            const uint32_t rows = (uint32_t)(k / 4);
            map_scenario s = {.name = "quarter bins of many periods",
                              .n_samples = 128 + (size_t)(uniform() * 20),
                              .code = RANDOM_PHASE,
                              .format = kind == 1 ? PNR_FORMAT_CF32 : PNR_FORMAT_CI16,
                              .dwell = PNR_DWELL_DOPPLER,
                              .n_periods = k,
                              .n_dwells = k <= 128 ? 3 : 1,
                              .n_hypotheses = 4,
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
                s.n_lags = 90; /* linear */
                s.n_looks = 2;
            }
            check(ops, &s);
        }
}

/* Maps that the reference takes long for. */
TEST(test_large)
{
    static const map_scenario scenarios[] = {
        {.name = "64 periods of 8192",
         .n_samples = 8192,
         .code = RANDOM_PHASE,
         .format = PNR_FORMAT_CI16,
         .dwell = PNR_DWELL_DOPPLER,
         .n_periods = 64,
         .n_dwells = 2,
         .n_hypotheses = 4,
         .hypotheses = {{0, -8, 16, 0}, {1, -8, 16, 0}, {2, -8, 16, 0}, {3, -8, 16, 0}},
         .echo = 0.01,
         .bins = 0.3,
         .threshold = 16},
        {.name = "4000 extended to 8192, two codes, looks, half lags",
         .n_samples = 4000,
         .code = RANDOM_PHASE,
         .n_codes = 2,
         .format = PNR_FORMAT_CF32,
         .n_looks = 3,
         .n_dwells = 3,
         .oversample = 2,
         .n_hypotheses = 2,
         .hypotheses = {{-4, 0, 1, 0}, {3, 0, 1, 0}},
         .echo = 0.05,
         .bins = 0.75,
         .threshold = 7},
        {.name = "32 codes of 4000",
         .n_samples = 4000,
         .code = GPS,
         .n_codes = 32,
         .format = PNR_FORMAT_CI8,
         .n_dwells = 5,
         .n_hypotheses = 4,
         .hypotheses = {{-22, 0, 1, 0}, {-2, 0, 1, 0}, {0, 0, 1, 0}, {6, 0, 1, 0}},
         .echo = 0.05,
         .bins = 1.5,
         .threshold = 16},
    };
    const pnr_engine_ops *ops = cuda();

    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        map_answer want, got;
        map_world w;

        map_world_create(&w, &scenarios[i], ops);
        w.plan.method = "library";
        assert_true(ask_map(ops, &w, PNR_WANT_POWER, &want));
        w.plan.method = "fused";
        assert_true(ask_map(ops, &w, PNR_WANT_POWER, &got));
        compare_maps(&w, "fused", &got, &want, PNR_WANT_POWER, 1);
        assert_true(want.dwells[0].n_candidates > 0);
        map_answer_destroy(&want);
        map_answer_destroy(&got);
        map_world_destroy(&w, ops);
    }
}

/* A dwell once more: the strongest echo is gone, and what is in flight stays. */
static void check_again(const pnr_engine_ops *ops, const map_scenario *s, const char *method)
{
    const pnr_engine_ops *both[] = {find_engine("reference"), ops};
    pnr_candidate found[2] = {{0}};
    pnr_dwell dwells[2];
    map_world w;

    map_world_create(&w, s, ops);
    float(*replica)[2] = calloc(s->n_samples, sizeof *replica);

    assert_non_null(replica);
    for (size_t e = 0; e < 2; e++) {
        pnr_plan plan = w.plan;
        pnr_engine *engine;
        pnr_error error = {0};
        pnr_result result, repeated;

        plan.method = e == 0 ? "auto" : method;
        if (both[e]->create(&plan, &engine, &error) != PNR_OK)
            fail_msg("%s", error.text);
        assert_int_equal(both[e]->submit(engine, &(pnr_job){&w.windows, 5}), PNR_OK);
        assert_int_equal(both[e]->collect(engine, true, &result), PNR_OK);

        const size_t d = result.n_dwells - 1;
        const pnr_candidate *first = &result.candidates[d * plan.max_candidates];
        const size_t code = first->code * plan.oversample * plan.n_samples;

        assert_true(result.dwells[d].n_candidates > 0);
        for (size_t n = 0; n < plan.n_samples; n++)
            for (int q = 0; q < 2; q++)
                replica[n][q] =
                    (float)
                        w.references[code + (n + plan.n_samples - first->cell) % plan.n_samples][q];

        const pnr_removal removal = {(const float(*)[2])replica, {0.03, -0.02}, 0.25};

        assert_int_equal(both[e]->submit(engine, &(pnr_job){&w.windows, 6}), PNR_OK);
        assert_int_equal(both[e]->search_without(engine, &w.windows, d, &removal, 1, &repeated),
                         PNR_OK);
        assert_int_equal(repeated.n_dwells, 1);
        dwells[e] = repeated.dwells[0];
        assert_true(repeated.dwells[0].n_candidates > 0);
        found[e] = repeated.candidates[0];
        assert_int_equal(both[e]->collect(engine, true, &result), PNR_OK);
        assert_int_equal(result.tag, 6);
        both[e]->destroy(engine);
    }
    compare_sums(&w, "again", &dwells[1], &dwells[0], map_tolerance(&w, w.s.n_dwells - 1));
    assert_true(is_same_place(&found[0], &found[1]));
    for (int k = 0; k < PNR_NEIGHBOURS; k++)
        for (int q = 0; q < 2; q++)
            assert_true(fabs((double)(found[0].value[k][q] - found[1].value[k][q])) <=
                        8 * map_tolerance(&w, w.s.n_dwells - 1));
    free(replica);
    map_world_destroy(&w, ops);
}

TEST(test_again)
{
    const pnr_engine_ops *ops = cuda();
    map_scenario s = {.name = "once more",
                      .n_samples = 150,
                      .code = RANDOM_PHASE,
                      .n_codes = 2,
                      .format = PNR_FORMAT_CI16,
                      .n_dwells = 3,
                      .tune = {3, 17},
                      .conjugate = true,
                      .echo = 0.4,
                      .threshold = 9};

    check_again(ops, &s, "library");
    check_again(ops, &s, "fused");
    s = (map_scenario){.name = "once more, without the mean",
                       .n_samples = 150,
                       .code = RANDOM_PHASE,
                       .format = PNR_FORMAT_CF32,
                       .dwell = PNR_DWELL_DOPPLER,
                       .n_periods = 32,
                       .n_dwells = 2,
                       .n_hypotheses = 1,
                       .hypotheses = {{0, -16, 32, 0}},
                       .remove_mean = true,
                       .has_lost = true,
                       .has_nonfinite = true,
                       .echo = 0.4,
                       .bins = 0.1,
                       .threshold = 9};
    check_again(ops, &s, "library");
    check_again(ops, &s, "fused");
}

/* What maps cannot have is said in words. */
TEST(test_words)
{
    const pnr_engine_ops *ops = cuda();
    const map_scenario s = {.name = "words",
                            .n_samples = 127,
                            .code = M_SEQUENCE,
                            .n_codes = 2,
                            .format = PNR_FORMAT_CI16,
                            .threshold = 9};
    pnr_engine_choice choice;
    pnr_error error = {0};
    map_world w;

    map_world_create(&w, &s, ops);
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
    map_world_destroy(&w, ops);
}
