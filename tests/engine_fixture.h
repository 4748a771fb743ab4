/* SPDX-License-Identifier: MIT */
/* A scenario for engines: samples with an echo in each window, the plan, and how answers are
 * compared. */
#ifndef PNR_ENGINE_FIXTURE_H
#define PNR_ENGINE_FIXTURE_H

#include "code.h"
#include "engine.h"
#include "plan.h"
#include "setup.h"
#include "transform.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* --- fresh random inputs: the seed is printed, and PNR_SEED repeats a run --- */

static uint64_t state;

static void seed_random(void)
{
    const char *seed = getenv("PNR_SEED");

    state = seed != NULL ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    fprintf(stderr, "PNR_SEED=%llu\n", (unsigned long long)state);
}

static double uniform(void) /* splitmix64 */
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double gaussian(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

/* --- codes --- */

typedef enum { M_SEQUENCE, ZADOFF_CHU, RANDOM_PHASE, GPS } code_kind;

/* Primitive taps of every degree that is used here, bit t-1 for tap t. */
static uint64_t taps_of(unsigned degree)
{
    static const unsigned char taps[][4] = {
        [3] = {3, 2},
        [4] = {4, 3},
        [5] = {5, 3},
        [6] = {6, 5},
        [7] = {7, 6},
        [8] = {8, 6, 5, 4},
        [9] = {9, 5},
        [10] = {10, 7},
        [11] = {11, 9},
        [12] = {12, 11, 10, 4},
        [13] = {13, 12, 11, 8},
        [14] = {14, 13, 12, 2},
        [15] = {15, 14},
        [16] = {16, 15, 13, 4},
        [17] = {17, 14},
        [18] = {18, 11},
        [19] = {19, 18, 17, 14},
        [20] = {20, 17},
        [21] = {21, 19},
        [22] = {22, 21},
    };
    uint64_t mask = 0;

    assert_in_range(degree, 3, sizeof taps / sizeof *taps - 1);
    for (int i = 0; i < 4 && taps[degree][i] > 0; i++)
        mask |= UINT64_C(1) << (taps[degree][i] - 1);
    return mask;
}

static unsigned degree_of(size_t n)
{
    unsigned degree = 0;

    while (((size_t)1 << degree) - 1 < n)
        degree++;
    return degree;
}

/* PRN 7, 1023 chips over n samples. */
static void make_gps(size_t n, double (*a)[2])
{
    pnr_config config;
    pnr_code *code;

    pnr_config_init(&config);
    config.code.type = PNR_CODE_GPS_L1CA;
    config.code.prn = 7;
    assert_int_equal(pnr_code_create(&config, &code, NULL), PNR_OK);
    assert_int_equal(pnr_code_sample(code, &config, n, a, NULL), PNR_OK);
    pnr_code_destroy(code);
    pnr_config_clear(&config);
}

/* Samples of a chip, where n are an m-sequence's: as few as can be. */
static size_t chip_samples_of(size_t n)
{
    size_t q = 1;

    while (n % q != 0 || (n / q & (n / q + 1)) != 0)
        q++;
    return q;
}

static void make_code(code_kind kind, size_t n, double (*a)[2])
{
    if (kind == GPS) {
        make_gps(n, a);
        return;
    }

    for (size_t i = 0; i < n; i++) {
        double phase = 2 * M_PI * uniform();

        if (kind == ZADOFF_CHU)
            phase = -M_PI * 7 * fmod((double)i * (double)(i + (n & 1)), 2 * (double)n) / (double)n;
        a[i][0] = cos(phase);
        a[i][1] = sin(phase);
    }
    if (kind == M_SEQUENCE) {
        const size_t chip_samples = chip_samples_of(n);
        const unsigned degree = degree_of(n / chip_samples);
        const uint64_t taps = taps_of(degree);
        uint64_t steps = 0; /* bit t-1: the bit t steps ago */

        for (size_t i = 0; i < n / chip_samples; i++) {
            const unsigned bit = i < degree ? 1 : (unsigned)__builtin_parityll(steps & taps);

            steps = steps << 1 | bit;
            for (size_t r = 0; r < chip_samples; r++) {
                a[chip_samples * i + r][0] = bit ? -1 : 1;
                a[chip_samples * i + r][1] = 0;
            }
        }
    }
}

/* a(n - 1/2) by the phase ramp, the Nyquist bin as a cosine (which is 0 at half a sample). */
static void half_later(const double (*a)[2], size_t n, double (*out)[2])
{
    memcpy(out, a, n * sizeof *out);
    assert_int_equal(pnr_transform_forward(out, n), PNR_OK);
    for (size_t m = 0; m < n; m++) {
        const double f = m <= n / 2 ? (double)m : (double)m - (double)n;
        const double angle = -M_PI * f / (double)n;
        const double c = cos(angle) / (double)n, s = sin(angle) / (double)n;
        const double re = out[m][0] * c - out[m][1] * s, im = out[m][0] * s + out[m][1] * c;

        out[m][0] = 2 * m == n ? 0 : re;
        out[m][1] = 2 * m == n ? 0 : im;
    }
    assert_int_equal(pnr_transform_inverse(out, n), PNR_OK);
}

/* --- one case: a plan, samples with an echo in each window --- */

typedef struct scenario {
    const char *name;
    size_t n_samples;
    code_kind code;
    pnr_format format;
    pnr_dwell_kind dwell;
    size_t n_periods, n_dwells, oversample;
    size_t n_channels, channel;
    pnr_rational tune;
    bool conjugate;
    size_t gate_first, gate_count; /* count 0: all */
    double echo;                   /* amplitude; noise is 0.1 rms */
    double threshold;              /* ratio */
    bool has_nonfinite, has_lost;
    size_t max_candidates; /* 0: 16 */
    double delay;          /* of N: 0.31, or beyond N/2 */
} scenario;

typedef struct world {
    scenario s;
    pnr_plan plan;
    double (*references)[2];
    double *threshold;
    char *samples;
    uint32_t *lost;
    uint64_t *ready;
    pnr_windows windows;
} world;

/* Sample i of the stream carries code chip (i - delay) mod N,
 * turned as the plan will turn it back. */
static void fill_samples(world *w)
{
    const scenario *s = &w->s;
    const size_t n = s->n_samples, total = n * s->n_periods * s->n_dwells;
    const size_t bytes = pnr_format_get(s->format)->bytes;
    const uint64_t first = w->windows.first_sample;

    for (size_t i = 0; i < total; i++) {
        const size_t d = i / (n * s->n_periods);
        const size_t delay = ((size_t)(s->delay * (double)n) + 37 * d) % n;
        const double *a = w->references[(i % n + n - delay) % n];
        const double angle = 2 * M_PI * ldexp((double)pnr_rational_phase(s->tune, first + i), -64);
        const double er = s->echo * cos(angle + 1), ei = s->echo * sin(angle + 1);

        for (size_t c = 0; c < s->n_channels; c++) {
            double x[2] = {0.0707 * gaussian(), 0.0707 * gaussian()};

            if (c == s->channel) {
                x[0] += er * a[0] - ei * a[1];
                x[1] += er * a[1] + ei * a[0];
            }
            if (s->conjugate)
                x[1] = -x[1];
            if (s->has_nonfinite && i % 331 == 5)
                x[i % 2] = i % 3 ? (double)NAN : (double)INFINITY;
            (void)pnr_format_write(s->format, x, w->samples + (i * s->n_channels + c) * bytes);
        }
    }
    for (size_t p = 0; s->has_lost && p < s->n_periods * s->n_dwells; p++) {
        /* every third window loses a third, every fifth nearly all */
        const size_t count = p % 5 == 4 ? n - 3 : p % 3 == 1 ? n / 3 : 0;

        w->lost[p] = (uint32_t)count;
        memset(w->samples + p * n * bytes * s->n_channels, 0, count * bytes * s->n_channels);
    }
}

static void world_create(world *w, const scenario *s, const pnr_engine_ops *ops)
{
    const size_t n = s->n_samples, windows = s->n_periods * s->n_dwells;
    const size_t sample = s->n_channels * pnr_format_get(s->format)->bytes;
    const size_t split = (size_t)(uniform() * (double)(n * windows)); /* where the view wraps */
    const size_t chip_samples = s->code == M_SEQUENCE ? chip_samples_of(n) : 0;

    memset(w, 0, sizeof *w);
    w->s = *s;
    w->references = calloc(s->oversample * n, sizeof *w->references);
    w->threshold = calloc(s->n_periods, sizeof *w->threshold);
    w->samples = ops->alloc(n * windows * sample);
    w->lost = calloc(windows, sizeof *w->lost);
    w->ready = calloc(s->n_dwells, sizeof *w->ready);
    assert_true(w->references && w->threshold && w->samples && w->lost && w->ready);
    make_code(s->code, n, w->references);
    if (s->oversample == 2)
        half_later((const double(*)[2])w->references, n, w->references + n);
    for (size_t p = 0; p < s->n_periods; p++)
        w->threshold[p] = s->threshold;
    w->windows = (pnr_windows){
        .spans = {{w->samples, split}, {w->samples + split * sample, n * windows - split}},
        .first_sample = UINT64_C(5000000000) + (uint64_t)(uniform() * 1e9),
        .n_dwells = s->n_dwells,
        .n_periods = s->n_periods,
        .lost = w->lost,
        .ready_ns = w->ready,
    };
    w->plan = (pnr_plan){
        .n_samples = n,
        .format = s->format,
        .n_channels = s->n_channels,
        .first_channel = s->channel,
        .n_used_channels = 1,
        .n_codes = 1,
        .n_hypotheses = 1,
        .n_looks = 1,
        .n_lags = n,
        .exclusion_cells = 1,
        .exclusion_rows = 1,
        .n_periods = s->n_periods,
        .dwell = s->dwell,
        .oversample = s->oversample,
        .references = (const double(*)[2])w->references,
        .m_degree = s->code == M_SEQUENCE ? degree_of(n / chip_samples) : 0,
        .m_taps = s->code == M_SEQUENCE ? taps_of(degree_of(n / chip_samples)) : 0,
        .m_samples = chip_samples,
        .tune = s->tune,
        .conjugate = s->conjugate,
        .gate_first = s->gate_first,
        .gate_count = s->gate_count > 0 ? s->gate_count : n,
        .threshold = w->threshold,
        .max_candidates = s->max_candidates > 0 ? s->max_candidates : 16,
        .batch = s->n_dwells,
        .depth = 2,
        .method = "auto",
    };
    fill_samples(w);
}

static void world_destroy(world *w, const pnr_engine_ops *ops)
{
    free(w->references);
    free(w->threshold);
    ops->free(w->samples);
    free(w->lost);
    free(w->ready);
}

/* A result that outlives its engine. */
typedef struct answer {
    size_t n_dwells, max_candidates, n_windows, n_values;
    pnr_dwell *dwells;
    pnr_candidate *candidates;
    uint32_t *nonfinite;
    float *profile;
} answer;

static void *copy(const void *from, size_t bytes)
{
    void *to = malloc(bytes > 0 ? bytes : 1);

    assert_non_null(to);
    return memcpy(to, from, bytes);
}

static void keep_answer(const world *w, const pnr_plan *plan, const pnr_result *r, answer *out)
{
    const size_t each = plan->want_profile == PNR_WANT_NONE ? 0
                        : plan->want_profile == PNR_WANT_COMPLEX
                            ? 2 * plan->n_samples * plan->oversample
                            : plan->n_samples * plan->oversample;

    out->n_dwells = r->n_dwells;
    out->max_candidates = plan->max_candidates;
    out->n_windows = r->n_dwells * w->s.n_periods;
    out->n_values = each * r->n_dwells;
    out->dwells = copy(r->dwells, r->n_dwells * sizeof *r->dwells);
    out->candidates =
        copy(r->candidates, r->n_dwells * plan->max_candidates * sizeof *r->candidates);
    out->nonfinite = copy(r->nonfinite, out->n_windows * sizeof *r->nonfinite);
    out->profile = each > 0 ? copy(r->profile, out->n_values * sizeof *r->profile) : NULL;
}

static void answer_destroy(answer *a)
{
    free(a->dwells);
    free(a->candidates);
    free(a->nonfinite);
    free(a->profile);
}

/* One submit of all dwells. */
static void ask(const pnr_engine_ops *ops, const world *w, pnr_want want, answer *out)
{
    pnr_plan plan = w->plan;
    pnr_engine *engine;
    pnr_error error = {0};
    pnr_result result;
    const pnr_job job = {&w->windows, 77};

    plan.want_profile = want;
    if (ops->create(&plan, &engine, &error) != PNR_OK)
        fail_msg("%s: %s", ops->name, error.text);
    assert_int_equal(ops->collect(engine, true, &result), PNR_EAGAIN);
    assert_int_equal(ops->submit(engine, &job), PNR_OK);
    assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
    assert_int_equal(result.tag, 77);
    assert_int_equal(result.n_dwells, w->s.n_dwells);
    keep_answer(w, &plan, &result, out);
    ops->destroy(engine);
}

/* eps sqrt(log2 N), relative to sqrt(sum|x|^2 sum|a|^2), a over all periods; the factor is the
 * transforms' own constant. */
static double tolerance(const world *w, const pnr_dwell *dwell)
{
    const double n = (double)w->s.n_samples;

    return 2.0 * FLT_EPSILON * sqrt(log2(n) + 1) *
           sqrt(dwell->energy * pnr_plan_code_energy(&w->plan) * dwell->n_periods);
}

static void compare_profile(const world *w, const pnr_dwell *dwell, const float *got,
                            const float *want)
{
    const double allowed = tolerance(w, dwell);

    for (size_t cell = 0; cell < w->s.n_samples * w->s.oversample; cell++) {
        const double apart = hypot((double)(got[2 * cell] - want[2 * cell]),
                                   (double)(got[2 * cell + 1] - want[2 * cell + 1]));

        if (!(apart <= allowed))
            fail_msg("%s: cell %zu is %g%+gi, not %g%+gi: apart %g, allowed %g", w->s.name, cell,
                     (double)got[2 * cell], (double)got[2 * cell + 1], (double)want[2 * cell],
                     (double)want[2 * cell + 1], apart, allowed);
    }
}

/* Sums agree; the kept candidates are the reference's, save those whose power is within tolerance
 * of the threshold, of a neighbour, or of the weakest kept. */
static void compare_dwell(const world *w, const pnr_dwell *got, const pnr_candidate *g,
                          const pnr_dwell *want, const pnr_candidate *r)
{
    const double allowed = tolerance(w, want);
    size_t j = 0, n_same = 0;

    assert_int_equal(got->n_periods, want->n_periods);
    assert_int_equal(got->n_valid, want->n_valid);
    assert_int_equal(got->n_clipped, want->n_clipped);
    assert_int_equal(got->n_nonfinite, want->n_nonfinite);
    assert_true(fabs(got->energy - want->energy) <= 1e-6 * want->energy);
    assert_true(fabs(got->noise_sum - want->noise_sum) <= 1e-5 * want->noise_sum);
    /* The reference adds powers in lanes of 16 floats: what a strong echo's lane is rounded by, 15
     * halves of epsilon, stays when the echo is taken out. */
    if (!(fabs(got->floor - want->floor) <=
          1e-5 * want->floor + 8 * FLT_EPSILON * want->noise_sum / (double)w->s.n_samples))
        fail_msg("%s, N = %zu: floor %.9g, not %.9g; %u of %u candidates, %u of %u above",
                 w->s.name, w->s.n_samples, got->floor, want->floor, got->n_candidates,
                 want->n_candidates, got->n_above, want->n_above);
    for (size_t i = 0; i < got->n_candidates; i++) {
        while (j < want->n_candidates && r[j].cell < g[i].cell)
            j++;
        if (j == want->n_candidates || r[j].cell != g[i].cell)
            continue;
        n_same++;
        assert_true(fabs((double)g[i].power - (double)r[j].power) <=
                    2 * sqrt((double)r[j].power) * allowed + allowed * allowed);
        for (int k = 0; k < PNR_NEIGHBOURS; k++)
            for (int q = 0; q < 2; q++)
                if (!(fabs((double)(g[i].value[k][q] - r[j].value[k][q])) <= 2 * allowed))
                    fail_msg("%s: cell %u, neighbour %d: %g, not %g (allowed %g)", w->s.name,
                             g[i].cell, k - 8, (double)g[i].value[k][q], (double)r[j].value[k][q],
                             2 * allowed);
    }
    /* With the thresholds used here, at most one borderline candidate in a dwell is ever met. */
    if (n_same + 1 < want->n_candidates || n_same + 1 < got->n_candidates)
        fail_msg("%s: %zu candidates of %u and %u are the same", w->s.name, n_same,
                 got->n_candidates, want->n_candidates);
}

/* The world's dwells, whose samples lie in one piece, in submits of 1 .. batch by turns: the bits
 * of `all`, those of one submit. */
static inline void check_submits(const pnr_engine_ops *ops, const world *w, const answer *all,
                                 size_t batch)
{
    const size_t dwell = w->s.n_samples * w->s.n_periods;
    const size_t bytes = dwell * pnr_plan_sample_bytes(&w->plan);
    pnr_plan plan = w->plan;
    pnr_engine *engine;
    pnr_error error = {0};

    plan.batch = batch;
    if (ops->create(&plan, &engine, &error) != PNR_OK)
        fail_msg("%s", error.text);
    for (size_t d = 0, i = 0; d < w->s.n_dwells; i++) {
        const size_t left = w->s.n_dwells - d;
        const size_t count = i % batch + 1 < left ? i % batch + 1 : left;
        pnr_windows v = w->windows;
        pnr_result result;

        v.first_sample += d * dwell;
        v.n_dwells = count;
        v.spans[0] = (pnr_span){w->samples + d * bytes, count * dwell};
        assert_int_equal(ops->submit(engine, &(pnr_job){&v, d}), PNR_OK);
        assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
        for (size_t k = 0; k < count; k++, d++) {
            assert_memory_equal(&result.dwells[k], &all->dwells[d], sizeof *all->dwells);
            assert_memory_equal(&result.candidates[k * plan.max_candidates],
                                &all->candidates[d * plan.max_candidates],
                                all->dwells[d].n_candidates * sizeof *all->candidates);
        }
    }
    ops->destroy(engine);
}

static const pnr_engine_ops *find_engine(const char *name)
{
    const pnr_engine_ops *ops;
    pnr_error error = {0};

    if (pnr_engine_find(name, 0, &ops, &error) == PNR_OK)
        return ops;
    print_message("skipped: %s\n", error.text);
    return NULL;
}

/* The cuda engine when it works here; else the test is skipped. */
static inline const pnr_engine_ops *cuda(void)
{
    const pnr_engine_ops *ops = find_engine("cuda");

    if (ops == NULL)
        skip();
    return ops;
}

/* One method against the reference's answer to the same world. */
static void agree_by(const pnr_engine_ops *ops, const world *w, const answer *want)
{
    const scenario *s = &w->s;
    const bool is_sum = s->dwell == PNR_DWELL_INCOHERENT;
    answer got, again;

    ask(ops, w, is_sum ? PNR_WANT_POWER : PNR_WANT_COMPLEX, &got);
    ask(ops, w, PNR_WANT_NONE, &again);
    assert_memory_equal(got.nonfinite, want->nonfinite, want->n_windows * sizeof *want->nonfinite);
    for (size_t d = 0; d < s->n_dwells; d++) {
        const size_t each = want->n_values / s->n_dwells;

        compare_dwell(w, &got.dwells[d], &got.candidates[d * got.max_candidates], &want->dwells[d],
                      &want->candidates[d * want->max_candidates]);
        if (!is_sum)
            compare_profile(w, &want->dwells[d], got.profile + d * each, want->profile + d * each);
        /* the same bits, whether the profile is asked for or not */
        assert_memory_equal(&got.dwells[d], &again.dwells[d], sizeof got.dwells[d]);
        assert_memory_equal(&got.candidates[d * got.max_candidates],
                            &again.candidates[d * got.max_candidates],
                            got.dwells[d].n_candidates * sizeof *got.candidates);
    }
    answer_destroy(&got);
    answer_destroy(&again);
}

/* Every method that an engine has for the plan, by name, and what auto takes. */
static inline void agree(const pnr_engine_ops *ops, const scenario *s)
{
    static const char *const methods[] = {"auto", "library", "fused", "walsh"};
    const pnr_engine_ops *reference;
    answer want;
    world w;

    assert_int_equal(pnr_engine_find("reference", 0, &reference, NULL), PNR_OK);
    world_create(&w, s, ops);
    ask(reference, &w, s->dwell == PNR_DWELL_INCOHERENT ? PNR_WANT_POWER : PNR_WANT_COMPLEX, &want);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        pnr_engine_choice choice;
        pnr_error error = {0};

        w.plan.method = methods[i];
        if (ops->describe(&w.plan, &choice, &error) == PNR_OK)
            agree_by(ops, &w, &want);
        else if (i == 0)
            fail_msg("%s: %s", ops->name, error.text);
    }
    answer_destroy(&want);
    world_destroy(&w, ops);
}

#endif
