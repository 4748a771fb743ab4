/* SPDX-License-Identifier: MIT */
/* Long transforms of the cpu engine: every cell against double precision, and the same bits by one
 * thread or several. */
#include "base/transform.h"
#include "correlator/engines.h"
#include "tests/fixture/dwell_kind.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

#include <float.h>

enum { N_DWELLS = 3 };

typedef struct shape {
    size_t n_samples, n_periods, oversample;
    pnr_dwell_kind dwell;
    const char *why; /* what describe must say */
} shape;

static const shape shapes[] = {
    {16384, 1, 1, PNR_DWELL_SINGLE, "64 x 256 in three passes"},
    {16000, 1, 2, PNR_DWELL_SINGLE, "at N = 16000 itself"}, /* just too short */
    {20000, 1, 2, PNR_DWELL_SINGLE, "80 x 250 in three passes"},
    {20000, 3, 1, PNR_DWELL_COHERENT, "80 x 250 in three passes"},
    {32767, 1, 1, PNR_DWELL_SINGLE, "in three passes"},  /* extended */
    {8209, 2, 2, PNR_DWELL_COHERENT, "in three passes"}, /* a prime */
    {12007, 3, 2, PNR_DWELL_INCOHERENT, "in three passes"},
    {19683, 2, 1, PNR_DWELL_INCOHERENT, "81 x 243 in three passes"},
    {117649, 1, 1, PNR_DWELL_SINGLE, "343 x 343 in three passes"},
};

typedef struct world {
    pnr_plan plan;
    double (*references)[2];
    float (*samples)[2]; /* [N_DWELLS][n_periods][n_samples] */
    uint32_t *lost;
    uint64_t *ready;
    double *threshold;
    pnr_windows windows;
} world;

/* A code of random phases, its echo at 0.6 N (beyond half), and noise. */
static void world_create(world *w, const shape *s)
{
    const size_t n = s->n_samples, total = N_DWELLS * s->n_periods * n;

    w->references = calloc(2 * n, sizeof *w->references);
    w->samples = calloc(total, sizeof *w->samples);
    w->lost = calloc(N_DWELLS * s->n_periods, sizeof *w->lost);
    w->ready = calloc(N_DWELLS, sizeof *w->ready);
    w->threshold = calloc(s->n_periods, sizeof *w->threshold);
    assert_true(w->references && w->samples && w->lost && w->ready && w->threshold);
    for (size_t i = 0; i < 2 * n; i++) {
        const double phase = 2 * M_PI * uniform();

        w->references[i][0] = cos(phase);
        w->references[i][1] = sin(phase);
    }
    for (size_t i = 0; i < total; i++) {
        const double *a = w->references[(i % n + n - n * 6 / 10) % n];

        w->samples[i][0] = (float)(0.05 * a[0] + 0.3 * (uniform() - 0.5));
        w->samples[i][1] = (float)(0.05 * a[1] + 0.3 * (uniform() - 0.5));
    }
    for (size_t p = 0; p < s->n_periods; p++)
        w->threshold[p] = 14;
    /* the view wraps inside the second window */
    w->windows = (pnr_windows){
        .spans = {{w->samples, n + 333}, {w->samples + n + 333, total - n - 333}},
        .n_dwells = N_DWELLS,
        .n_periods = s->n_periods,
        .lost = w->lost,
        .ready_ns = w->ready,
    };
    w->plan = (pnr_plan){
        .n_samples = n,
        .format = PNR_FORMAT_CF32,
        .n_channels = 1,
        .n_used_channels = 1,
        .n_codes = 1,
        .n_hypotheses = 1,
        .n_looks = s->dwell == PNR_DWELL_INCOHERENT ? s->n_periods : 1,
        .n_lags = n,
        .exclusion_cells = 1,
        .exclusion_rows = 1,
        .n_periods = s->dwell == PNR_DWELL_INCOHERENT ? 1 : s->n_periods,
        .oversample = s->oversample,
        .references = (const double(*)[2])w->references,
        .tune = {0, 1},
        .gate_count = n,
        .threshold = w->threshold,
        .max_candidates = 8,
        .batch = N_DWELLS,
        .depth = 1,
        .want_profile = PNR_WANT_COMPLEX,
        .method = "auto",
    };
}

static void world_destroy(world *w)
{
    free(w->references);
    free(w->samples);
    free(w->lost);
    free(w->ready);
    free(w->threshold);
}

/* The engine's profile of all dwells, its sums and candidates. */
typedef struct answer {
    float (*profile)[2];
    pnr_dwell dwells[N_DWELLS];
    pnr_candidate candidates[N_DWELLS * 8];
} answer;

static void ask(const pnr_engine_ops *ops, const world *w, size_t threads, bool measure,
                answer *out)
{
    const size_t bytes = N_DWELLS * w->plan.n_samples * w->plan.oversample * sizeof *out->profile;
    pnr_plan plan = w->plan;
    pnr_engine *engine;
    pnr_error error = {0};
    pnr_result result;

    plan.threads = threads;
    plan.measure = measure;
    if (ops->create(&plan, &engine, &error) != PNR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(ops->submit(engine, &(pnr_job){&w->windows, 5}), PNR_OK);
    assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
    memset(out, 0, sizeof *out);
    assert_non_null(out->profile = malloc(bytes));
    memcpy(out->profile, result.profile, bytes);
    memcpy(out->dwells, result.dwells, sizeof out->dwells);
    for (size_t d = 0; d < N_DWELLS; d++)
        memcpy(out->candidates + d * 8, result.candidates + d * 8,
               result.dwells[d].n_candidates * sizeof *out->candidates);
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

/* Dwell d's profile: of a coherent dwell the sum of its windows, of an incoherent one the last. Its
 * power at the strongest cell is the candidate's. */
static void compare(const world *w, const shape *s, size_t d, const answer *got)
{
    const size_t n = s->n_samples;
    const pnr_dwell *dwell = &got->dwells[d];
    const double allowed =
        2 * (double)FLT_EPSILON * sqrt(log2((double)n)) *
        sqrt(dwell->energy * pnr_plan_code_energy(&w->plan) * (double)s->n_periods);
    const size_t centre = n * 6 / 10;
    double(*x)[2] = malloc(n * sizeof *x), power = 0;

    assert_non_null(x);
    for (size_t h = 0; h < s->oversample; h++) {
        memset(x, 0, n * sizeof *x);
        for (size_t p = 0; p < s->n_periods; p++) {
            if (s->dwell == PNR_DWELL_INCOHERENT)
                memset(x, 0, n * sizeof *x);
            for (size_t i = 0; i < n; i++) {
                x[i][0] += (double)w->samples[(d * s->n_periods + p) * n + i][0];
                x[i][1] += (double)w->samples[(d * s->n_periods + p) * n + i][1];
            }
            if (s->dwell == PNR_DWELL_INCOHERENT || p + 1 == s->n_periods) {
                correlate(x, (const double(*)[2])w->references + h * n, n);
                if (h == 0)
                    power += x[centre][0] * x[centre][0] + x[centre][1] * x[centre][1];
            }
        }
        for (size_t k = 0; k < n; k++) {
            const float *c = got->profile[(d * n + k) * s->oversample + h];
            const double apart = hypot((double)c[0] - x[k][0], (double)c[1] - x[k][1]);

            if (!(apart <= allowed))
                fail_msg("N = %zu, lag %zu + %zu/2: apart %g, allowed %g", n, k, h, apart, allowed);
        }
    }
    free(x);
    assert_true(dwell->n_candidates >= 1);
    for (size_t i = 0; i < dwell->n_candidates; i++)
        if (got->candidates[d * 8 + i].cell == centre * s->oversample) {
            assert_true(fabs((double)got->candidates[d * 8 + i].power - power) <=
                        4 * sqrt(power) * allowed);
            return;
        }
    fail_msg("N = %zu: no candidate at lag %zu", n, centre);
}

TEST(test_long)
{
    const pnr_engine_ops *ops;
    pnr_error error = {0};

    if (pnr_engine_find("cpu", 0, &ops, &error) != PNR_OK) {
        print_message("skipped: %s\n", error.text);
        return;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        static const size_t threads[] = {1, 2, 5, 1};
        const shape *s = &shapes[i];
        const size_t bytes = N_DWELLS * s->n_samples * s->oversample * 2 * sizeof(float);
        pnr_engine_choice choice;
        answer first;
        world w;

        world_create(&w, s);
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
        assert_string_equal(choice.method, "library");
        if (strstr(choice.why, s->why) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", choice.why, s->why);
        assert_true(choice.host_bytes > bytes);
        ask(ops, &w, 1, false, &first);
        for (size_t d = 0; d < N_DWELLS; d++)
            compare(&w, s, d, &first);
        for (size_t t = 1; t < 4; t++) {
            answer again;

            ask(ops, &w, threads[t], t == 3, &again);
            assert_memory_equal(again.profile, first.profile, bytes);
            assert_memory_equal(again.dwells, first.dwells, sizeof first.dwells);
            assert_memory_equal(again.candidates, first.candidates, sizeof first.candidates);
            free(again.profile);
        }
        free(first.profile);
        world_destroy(&w);
    }
}
