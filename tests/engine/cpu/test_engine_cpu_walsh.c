/* SPDX-License-Identifier: MIT */
/* Method walsh of the cpu engine: every degree against the reference, and the same bits whatever
 * the batch, the threads, and where the view wraps. */
#include "code/code.h"
#include "correlator/engines.h"
#include "tests/fixture/dwell_kind.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

#include <float.h>

enum { N_DWELLS = 3, MOST = 8 };

typedef struct variant {
    const char *name;
    pnr_format format;
    pnr_dwell_kind dwell;
    size_t n_periods, n_channels, channel;
    pnr_rational tune;
    bool conjugate, has_nonfinite, has_lost, gate_wraps;
    double threshold, delay; /* ratio; of N */
} variant;

static const variant variants[] = {
    {"int16, beyond N/2", PNR_FORMAT_CI16, PNR_DWELL_SINGLE, 1, 1, 0, {0, 1}, 0, 0, 0, 0, 9, 0.74},
    {"int8, conjugated", PNR_FORMAT_CI8, PNR_DWELL_SINGLE, 1, 1, 0, {0, 1}, 1, 0, 0, 0, 9, 0.31},
    {"int16, power sums, lost",
     PNR_FORMAT_CI16,
     PNR_DWELL_INCOHERENT,
     4,
     1,
     0,
     {0, 1},
     0,
     0,
     1,
     0,
     4,
     0.93},
    {"int16, coherent", PNR_FORMAT_CI16, PNR_DWELL_COHERENT, 3, 1, 0, {0, 1}, 1, 0, 1, 0, 9, 0.55},
    {"int16, tuned", PNR_FORMAT_CI16, PNR_DWELL_SINGLE, 1, 1, 0, {-1, 3}, 1, 0, 0, 0, 9, 0.66},
    {"second of two int16 channels",
     PNR_FORMAT_CI16,
     PNR_DWELL_INCOHERENT,
     2,
     2,
     1,
     {0, 1},
     1,
     0,
     0,
     0,
     5,
     0.9},
    {"last of three int8 channels",
     PNR_FORMAT_CI8,
     PNR_DWELL_INCOHERENT,
     2,
     3,
     2,
     {0, 1},
     0,
     0,
     0,
     0,
     5,
     0.6},
    {"float, coherent, not finite",
     PNR_FORMAT_CF32,
     PNR_DWELL_COHERENT,
     3,
     1,
     0,
     {0, 1},
     0,
     1,
     1,
     0,
     9,
     0.52},
    {"float, power sums, not finite",
     PNR_FORMAT_CF32,
     PNR_DWELL_INCOHERENT,
     3,
     1,
     0,
     {1, 5},
     0,
     1,
     0,
     0,
     4,
     0.8},
    {"real uint8", PNR_FORMAT_U8, PNR_DWELL_SINGLE, 1, 1, 0, {1, 4}, 0, 0, 0, 0, 9, 0.99},
    {"a gate that wraps, low threshold",
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     1,
     2.5,
     0.02},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

typedef struct world {
    pnr_plan plan;
    pnr_code *code;
    double threshold[4];
    char *samples;
    uint32_t lost[N_DWELLS * 4];
    uint64_t ready[N_DWELLS];
    pnr_windows windows;
} world;

static void fill(world *w, const variant *v)
{
    const size_t n = w->plan.n_samples, total = N_DWELLS * v->n_periods * n;
    const size_t bytes = pnr_format_get(v->format)->bytes;

    for (size_t i = 0; i < total; i++) {
        const size_t delay = ((size_t)(v->delay * (double)n) + i / n / v->n_periods * 37) % n;
        const uint64_t first = w->windows.first_sample + i;
        const double phase = 1 + 2 * M_PI * ldexp((double)pnr_rational_phase(v->tune, first), -64);
        const double a = 0.25 * w->code->chips[(i % n + n - delay) % n][0];

        for (size_t c = 0; c < v->n_channels; c++) {
            double x[2] = {0.4 * (uniform() - 0.5), 0.4 * (uniform() - 0.5)};

            if (c == v->channel) {
                x[0] += a * cos(phase);
                x[1] += v->conjugate ? -a * sin(phase) : a * sin(phase);
            }
            if (v->has_nonfinite && i % 31 == 5)
                x[i % 2] = i % 3 ? (double)NAN : (double)INFINITY;
            (void)pnr_format_write(v->format, x, w->samples + (i * v->n_channels + c) * bytes);
        }
    }
    for (size_t p = 0; v->has_lost && p < N_DWELLS * v->n_periods; p++) {
        const size_t count = p % 5 == 4 ? n - 1 : p % 3 == 1 ? n / 3 : 0;

        w->lost[p] = (uint32_t)count;
        memset(w->samples + p * n * v->n_channels * bytes, 0, count * v->n_channels * bytes);
    }
}

static void wrap_at(world *w, size_t sample)
{
    const size_t total = N_DWELLS * pnr_plan_dwell_samples(&w->plan);

    w->windows.spans[0] = (pnr_span){w->samples, sample};
    w->windows.spans[1] =
        (pnr_span){w->samples + sample * pnr_plan_sample_bytes(&w->plan), total - sample};
}

static void world_create(world *w, const pnr_engine_ops *ops, unsigned degree, const variant *v)
{
    const size_t n = ((size_t)1 << degree) - 1;
    char text[32];
    pnr_config config;
    pnr_error error = {0};

    memset(w, 0, sizeof *w);
    pnr_config_init(&config);
    snprintf(text, sizeof text, "code.degree=%u", degree);
    assert_int_equal(pnr_config_set(&config, "code.type=m-sequence", &error), PNR_OK);
    assert_int_equal(pnr_config_set(&config, text, &error), PNR_OK);
    assert_int_equal(pnr_code_create(&config, &w->code, &error), PNR_OK);
    pnr_config_clear(&config);
    for (size_t p = 0; p < v->n_periods; p++)
        w->threshold[p] = v->threshold;
    w->plan = (pnr_plan){
        .n_samples = n,
        .format = v->format,
        .n_channels = v->n_channels,
        .first_channel = v->channel,
        .n_used_channels = 1,
        .n_codes = 1,
        .n_hypotheses = 1,
        .n_looks = v->dwell == PNR_DWELL_INCOHERENT ? v->n_periods : 1,
        .n_lags = n,
        .exclusion_cells = 1,
        .exclusion_rows = 1,
        .n_periods = v->dwell == PNR_DWELL_INCOHERENT ? 1 : v->n_periods,
        .oversample = 1,
        .references = (const double(*)[2])w->code->chips,
        .m_degree = w->code->degree,
        .m_taps = w->code->taps,
        .m_samples = 1,
        .tune = v->tune,
        .conjugate = v->conjugate,
        .gate_first = v->gate_wraps ? n - n / 4 : 0,
        .gate_count = v->gate_wraps ? n / 2 : n,
        .threshold = w->threshold,
        .max_candidates = MOST,
        .batch = N_DWELLS,
        .depth = 1,
        .want_profile = v->dwell == PNR_DWELL_INCOHERENT ? PNR_WANT_POWER : PNR_WANT_COMPLEX,
        .method = "auto",
    };
    w->samples = ops->alloc(N_DWELLS * v->n_periods * n * pnr_plan_sample_bytes(&w->plan));
    assert_non_null(w->samples);
    w->windows = (pnr_windows){
        .first_sample = UINT64_C(7000000000) + (uint64_t)(uniform() * 1e6),
        .n_dwells = N_DWELLS,
        .n_periods = v->n_periods,
        .lost = w->lost,
        .ready_ns = w->ready,
    };
    fill(w, v);
    wrap_at(w, (size_t)(uniform() * (double)(N_DWELLS * v->n_periods * n)));
}

static void world_destroy(world *w, const pnr_engine_ops *ops)
{
    pnr_code_destroy(w->code);
    ops->free(w->samples);
}

typedef struct answer {
    pnr_dwell dwells[N_DWELLS];
    pnr_candidate candidates[N_DWELLS * MOST];
    size_t each; /* floats a dwell */
    float *profile;
} answer;

/* All dwells in submits of `batch`. */
static void ask(const pnr_engine_ops *ops, const world *w, const char *method, size_t threads,
                size_t batch, answer *out)
{
    const size_t dwell = pnr_plan_dwell_samples(&w->plan);
    const size_t bytes = pnr_plan_sample_bytes(&w->plan);
    pnr_plan plan = w->plan;
    pnr_engine *engine;
    pnr_error error = {0};

    memset(out, 0, sizeof *out);
    out->each = w->plan.n_samples * (w->plan.want_profile == PNR_WANT_COMPLEX ? 2 : 1);
    assert_non_null(out->profile = calloc(N_DWELLS * out->each, sizeof *out->profile));
    plan.method = method;
    plan.threads = threads;
    plan.batch = batch;
    if (ops->create(&plan, &engine, &error) != PNR_OK)
        fail_msg("%s", error.text);
    for (size_t d = 0; d < N_DWELLS; d += batch) {
        pnr_windows view = w->windows;
        pnr_result result;

        if (batch < N_DWELLS) { /* without a wrap, one dwell after the other */
            view.first_sample += d * dwell;
            view.spans[0] = (pnr_span){w->samples + d * dwell * bytes, dwell};
            view.spans[1] = (pnr_span){NULL, 0};
            view.n_dwells = 1;
            view.lost += d * pnr_plan_windows(&plan);
        }
        assert_int_equal(ops->submit(engine, &(pnr_job){&view, d}), PNR_OK);
        assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
        for (size_t i = 0; i < result.n_dwells; i++) {
            out->dwells[d + i] = result.dwells[i];
            memcpy(out->candidates + (d + i) * MOST, result.candidates + i * MOST,
                   result.dwells[i].n_candidates * sizeof *out->candidates);
        }
        memcpy(out->profile + d * out->each, result.profile,
               result.n_dwells * out->each * sizeof *out->profile);
    }
    ops->destroy(engine);
}

/* As every engine: 2 eps sqrt(log2 N) of sqrt(sum|x|^2 sum|a|^2). */
static double tolerance(const world *w, const pnr_dwell *dwell)
{
    const double n = (double)w->plan.n_samples;

    return 2.0 * (double)FLT_EPSILON * sqrt(log2(n) + 1) *
           sqrt(dwell->energy * n * dwell->n_periods);
}

static void compare(const world *w, const variant *v, size_t d, const answer *got,
                    const answer *want)
{
    const pnr_dwell *g = &got->dwells[d], *r = &want->dwells[d];
    const double allowed = tolerance(w, r);
    size_t n_same = 0;

    assert_int_equal(g->n_periods, r->n_periods);
    assert_int_equal(g->n_valid, r->n_valid);
    assert_int_equal(g->n_clipped, r->n_clipped);
    assert_int_equal(g->n_nonfinite, r->n_nonfinite);
    assert_true(fabs(g->energy - r->energy) <= 1e-6 * r->energy);
    assert_true(fabs(g->noise_sum - r->noise_sum) <= 1e-5 * r->noise_sum);
    for (size_t i = 0; i < got->each; i++) {
        const double a = (double)got->profile[d * got->each + i],
                     b = (double)want->profile[d * got->each + i];
        const bool is_power = v->dwell == PNR_DWELL_INCOHERENT;

        if (!(fabs(a - b) <= (is_power ? 2 * sqrt(b) * allowed + allowed * allowed : allowed)))
            fail_msg("%s, N = %zu, dwell %zu, float %zu: %g, not %g (allowed %g)", v->name,
                     w->plan.n_samples, d, i, a, b, allowed);
    }
    for (size_t i = 0; i < g->n_candidates; i++)
        for (size_t j = 0; j < r->n_candidates; j++) {
            const pnr_candidate *a = &got->candidates[d * MOST + i],
                                *b = &want->candidates[d * MOST + j];

            if (a->cell != b->cell)
                continue;
            n_same++;
            for (int k = 0; k < PNR_NEIGHBOURS; k++)
                for (int q = 0; q < 2; q++)
                    assert_true(fabs((double)(a->value[k][q] - b->value[k][q])) <= 3 * allowed);
        }
    /* at most one borderline candidate in a dwell, which may push out another */
    if (n_same + 1 < r->n_candidates || n_same + 1 < g->n_candidates)
        fail_msg("%s, N = %zu, dwell %zu: %zu candidates of %u and %u are the same", v->name,
                 w->plan.n_samples, d, n_same, g->n_candidates, r->n_candidates);
}

static const pnr_engine_ops *find(const char *name)
{
    const pnr_engine_ops *ops;
    pnr_error error = {0};

    if (pnr_engine_find(name, 0, &ops, &error) == PNR_OK)
        return ops;
    print_message("skipped: %s\n", error.text);
    return NULL;
}

static void agree(const pnr_engine_ops *ops, unsigned degree, const variant *v)
{
    answer got, want;
    world w;

    world_create(&w, ops, degree, v);
    ask(ops, &w, "walsh", 2, N_DWELLS, &got);
    ask(find("reference"), &w, "auto", 0, N_DWELLS, &want);
    for (size_t d = 0; d < N_DWELLS; d++)
        compare(&w, v, d, &got, &want);
    free(got.profile);
    free(want.profile);
    world_destroy(&w, ops);
}

TEST(test_degrees)
{
    const pnr_engine_ops *ops = find("cpu");

    for (unsigned degree = 3; ops != NULL && degree <= 15; degree++)
        for (size_t i = 0; i < N_VARIANTS; i++) /* the reference is slow at the long ones */
            if (degree <= 10 || (degree <= 12 && i % 3 == degree % 3) || i == degree - 13)
                agree(ops, degree, &variants[i]);
}

/* Where the reference would take minutes: the same as by FFT, to both tolerances; in rows and
 * columns, by a team. */
TEST(test_long)
{
    const pnr_engine_ops *ops = find("cpu");

    for (unsigned degree = 16; ops != NULL && degree <= 19; degree++)
        for (size_t i = degree % 3; i < N_VARIANTS; i += 3) {
            answer got, want;
            world w;

            world_create(&w, ops, degree, &variants[i]);
            ask(ops, &w, "walsh", 2, N_DWELLS, &got);
            ask(ops, &w, "library", 2, N_DWELLS, &want);
            for (size_t d = 0; d < N_DWELLS; d++)
                compare(&w, &variants[i], d, &got, &want);
            free(got.profile);
            free(want.profile);
            world_destroy(&w, ops);
        }
}

static void assert_same(const answer *a, const answer *b)
{
    assert_memory_equal(a->dwells, b->dwells, sizeof a->dwells);
    assert_memory_equal(a->candidates, b->candidates, sizeof a->candidates);
    assert_memory_equal(a->profile, b->profile, N_DWELLS * a->each * sizeof *a->profile);
}

/* The same bits by one thread or several, in one submit or three, wherever the view wraps: a window
 * in two pieces is converted first, one in a piece may be gathered as it is. */
TEST(test_same_bits)
{
    static const unsigned degrees[] = {3, 6, 10, 13, 16, 18};
    const pnr_engine_ops *ops = find("cpu");

    for (size_t g = 0; ops != NULL && g < sizeof degrees / sizeof *degrees; g++)
        for (size_t i = 0; i < N_VARIANTS; i++) {
            const size_t n = ((size_t)1 << degrees[g]) - 1;
            answer first, again;
            world w;

            world_create(&w, ops, degrees[g], &variants[i]);
            wrap_at(&w, n);
            ask(ops, &w, "walsh", 1, N_DWELLS, &first);
            for (size_t t = 0; t < 4; t++) {
                wrap_at(&w, t == 0 ? 1 : t == 1 ? n - 1 : t == 2 ? n + n / 2 : 3 * n);
                ask(ops, &w, t == 2 ? "auto" : "walsh", 1 + 2 * t, t == 3 ? 1 : N_DWELLS, &again);
                assert_same(&again, &first);
                free(again.profile);
            }
            free(first.profile);
            world_destroy(&w, ops);
        }
}

TEST(test_words)
{
    const pnr_engine_ops *ops = find("cpu");
    pnr_engine_choice choice;
    pnr_error error = {0};
    world w;

    if (ops == NULL)
        return;
    world_create(&w, ops, 10, &variants[0]);
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
    memcpy(halves, w.code->chips, 1023 * sizeof *halves);
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

    world_create(&w, ops, 2, &variants[0]);
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    assert_string_equal(choice.method, "library");
    w.plan.method = "walsh";
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
    assert_non_null(strstr(error.text, "too short"));
    world_destroy(&w, ops);
}
