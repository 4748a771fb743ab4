/* SPDX-License-Identifier: MIT */
/* Tests long transforms of the cpu engine: compares every cell with double precision, and the bits
 * of one thread with those of several threads. */
#include "base/transform.h"
#include "tests/fixture/answer.h"

static const struct {
    size_t n_samples, n_periods, n_looks, oversample;
    const char *why; /* words that describe must give */
} shapes[] = {
    {16384, 1, 1, 1, "64 x 256 in three passes"},
    {16000, 1, 1, 2, "at N = 16000 itself"}, /* just too short for three passes */
    {20000, 1, 1, 2, "80 x 250 in three passes"},
    {20000, 3, 1, 1, "80 x 250 in three passes"},
    {32767, 1, 1, 1, "in three passes"}, /* the period is extended */
    {8209, 2, 1, 2, "in three passes"},  /* the length is a prime */
    {12007, 1, 3, 2, "in three passes"},
    {19683, 1, 2, 1, "81 x 243 in three passes"},
    {117649, 1, 1, 1, "343 x 343 in three passes"},
};

/* Gets the answer that this number of threads computes. */
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
    assert_int_equal(ops->submit(engine, &(pnr_job){&w->windows, 5}), PNR_OK);
    assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
    answer_keep(&plan, &result, out);
    for (int stage = PNR_STAGE_CONVERT; stage <= PNR_STAGE_PEAK; stage++)
        assert_int_equal(result.stage_ns[stage] > 0, measure);
    ops->destroy(engine);
}

/* c[k] = sum_n x[(n + k) mod N] conj(a[n]) in double precision. */
static void correlate(double (*x)[2], const double (*code)[2], size_t n)
{
    double(*a)[2] = malloc(n * sizeof *a);

    assert_non_null(a);
    memcpy(a, code, n * sizeof *a);
    assert_int_equal(pnr_transform_forward(a, n), PNR_OK);
    assert_int_equal(pnr_transform_forward(x, n), PNR_OK);
    for (size_t i = 0; i < n; i++) {
        const double re = x[i][0] * a[i][0] + x[i][1] * a[i][1];
        const double im = x[i][1] * a[i][0] - x[i][0] * a[i][1];

        x[i][0] = re / (double)n;
        x[i][1] = im / (double)n;
    }
    assert_int_equal(pnr_transform_inverse(x, n), PNR_OK);
    free(a);
}

/* Compares the profile of dwell d, the sum of the windows of the last look, with double precision.
 * Checks also that the power at the echo's cell, over all looks, is that of the candidate. */
static void compare_precisely(const world *w, size_t d, const answer *got)
{
    const size_t n = w->s.n_samples, windows = pnr_plan_windows(&w->plan);
    const size_t centre = world_delay(w, d);
    const double allowed = 0.9 * tolerance(w, d, &got->dwells[d]);
    const pnr_candidate *found = answer_candidates(got, d);
    double(*x)[2] = malloc(n * sizeof *x), power = 0;

    assert_non_null(x);
    for (size_t h = 0; h < w->s.oversample; h++) {
        for (size_t p = 0; p < windows; p++) {
            const float(*samples)[2] = (const float(*)[2])(void *)w->samples;

            if (p % w->s.n_periods == 0)
                memset(x, 0, n * sizeof *x);
            for (size_t i = 0; i < 2 * n; i++)
                x[i / 2][i % 2] += (double)samples[(d * windows + p) * n + i / 2][i % 2];
            if ((p + 1) % w->s.n_periods != 0)
                continue;
            correlate(x, (const double(*)[2])w->references + h * n, n);
            if (h == 0)
                power += x[centre][0] * x[centre][0] + x[centre][1] * x[centre][1];
        }
        for (size_t k = 0; k < n; k++) {
            const float *c = got->profile + 2 * ((d * n + k) * w->s.oversample + h);
            const double apart = hypot((double)c[0] - x[k][0], (double)c[1] - x[k][1]);

            if (!(apart <= allowed))
                fail_msg("N = %zu, lag %zu + %zu/2: apart %g, allowed %g", n, k, h, apart, allowed);
        }
    }
    free(x);
    for (size_t i = 0; i < got->dwells[d].n_candidates; i++)
        if (found[i].cell == centre * w->s.oversample) {
            assert_true(fabs((double)found[i].power - power) <= 4 * sqrt(power) * allowed);
            return;
        }
    fail_msg("N = %zu: no candidate at lag %zu", n, centre);
}

TEST(test_long)
{
    const pnr_engine_ops *ops = need_engine("cpu");

    for (size_t i = 0; i < COUNT(shapes); i++) {
        static const size_t threads[] = {1, 2, 5, 1};
        const scenario s = S("long", .n_samples = shapes[i].n_samples, .format = PNR_FORMAT_CF32,
                             .n_periods = shapes[i].n_periods, .n_looks = shapes[i].n_looks,
                             .n_dwells = 3, .oversample = shapes[i].oversample, .max_candidates = 8,
                             .echo = 0.05, .delay = 0.6, .threshold = 14);
        pnr_engine_choice choice;
        answer first;
        world w;

        world_create(&w, &s, ops);
        world_wrap(&w, s.n_samples + 333); /* the view wraps inside the second window */
        assert_int_equal(ops->describe(&w.plan, &choice, NULL), PNR_OK);
        assert_string_equal(choice.method, "library");
        if (strstr(choice.why, shapes[i].why) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", choice.why, shapes[i].why);
        ask_threads(ops, &w, 1, false, &first);
        assert_true(choice.host_bytes > 3 * first.n_values * sizeof *first.profile);
        for (size_t d = 0; d < s.n_dwells; d++)
            compare_precisely(&w, d, &first);
        for (size_t t = 1; t < COUNT(threads); t++) {
            answer again;

            ask_threads(ops, &w, threads[t], t == 3, &again);
            check_same_bits(&again, &first, 0);
            answer_destroy(&again);
        }
        answer_destroy(&first);
        world_destroy(&w, ops);
    }
}
