/* SPDX-License-Identifier: MIT */
/* Every engine that works here against the reference: same cells, same values, same sums, same
 * bits. */
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
        const unsigned degree = degree_of(n);
        const uint64_t taps = taps_of(degree);
        uint64_t steps = 0; /* bit t-1: the bit t steps ago */

        for (size_t i = 0; i < n; i++) {
            const unsigned bit = i < degree ? 1 : (unsigned)__builtin_parityll(steps & taps);

            steps = steps << 1 | bit;
            a[i][0] = bit ? -1 : 1;
            a[i][1] = 0;
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

/* Sample i of the stream carries code chip (i - delay) mod N, turned as the plan will turn it back.
 */
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
        .n_dopplers = 1,
        .n_periods = s->n_periods,
        .dwell = s->dwell,
        .oversample = s->oversample,
        .references = (const double(*)[2])w->references,
        .m_degree = s->code == M_SEQUENCE ? degree_of(n) : 0,
        .m_taps = s->code == M_SEQUENCE ? taps_of(degree_of(n)) : 0,
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

static const pnr_engine_ops *find_engine(const char *name)
{
    const pnr_engine_ops *ops;
    pnr_error error = {0};

    if (pnr_engine_find(name, 0, &ops, &error) == PNR_OK)
        return ops;
    print_message("skipped: %s\n", error.text);
    return NULL;
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
static void agree(const pnr_engine_ops *ops, const scenario *s)
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

static const scenario scenarios[] = {
    {"m-sequence 1023",
     1023,
     M_SEQUENCE,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     5,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.2,
     12,
     0,
     0,
     0,
     0.31},
    {"m-sequence 1023, beyond N/2",
     1023,
     M_SEQUENCE,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     5,
     2,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.2,
     12,
     0,
     0,
     0,
     0.74},
    {"m-sequence 8191",
     8191,
     M_SEQUENCE,
     PNR_FORMAT_CI8,
     PNR_DWELL_SINGLE,
     1,
     2,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.1,
     14,
     0,
     0,
     0,
     0.93},
    {"Zadoff-Chu 255",
     255,
     ZADOFF_CHU,
     PNR_FORMAT_CF32,
     PNR_DWELL_SINGLE,
     1,
     7,
     2,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.5,
     10,
     0,
     0,
     0,
     0.6},
    {"Zadoff-Chu 139, a prime",
     139,
     ZADOFF_CHU,
     PNR_FORMAT_CF64,
     PNR_DWELL_SINGLE,
     1,
     9,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.5,
     10,
     0,
     0,
     0,
     0.99},
    {"random phase 10000",
     10000,
     RANDOM_PHASE,
     PNR_FORMAT_CU8,
     PNR_DWELL_SINGLE,
     1,
     2,
     2,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.1,
     14,
     0,
     0,
     0,
     0.5},
    {"tuned and inverted",
     4000,
     RANDOM_PHASE,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     3,
     1,
     1,
     0,
     {-1234567, 4000000},
     1,
     0,
     0,
     0.2,
     13,
     0,
     0,
     0,
     0.2},
    {"coherent, a tune of thirds",
     1000,
     RANDOM_PHASE,
     PNR_FORMAT_CI16,
     PNR_DWELL_COHERENT,
     8,
     3,
     2,
     1,
     0,
     {1, 3},
     0,
     0,
     0,
     0.05,
     12,
     0,
     0,
     0,
     0.7},
    {"incoherent",
     1023,
     M_SEQUENCE,
     PNR_FORMAT_CI16,
     PNR_DWELL_INCOHERENT,
     6,
     3,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.05,
     3.2,
     0,
     0,
     0,
     0.8},
    {"incoherent on half lags",
     1024,
     RANDOM_PHASE,
     PNR_FORMAT_CF32,
     PNR_DWELL_INCOHERENT,
     5,
     2,
     2,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.06,
     3.6,
     0,
     0,
     0,
     0.1},
    {"lost and not finite",
     1024,
     RANDOM_PHASE,
     PNR_FORMAT_CF32,
     PNR_DWELL_COHERENT,
     5,
     3,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.1,
     12,
     1,
     1,
     0,
     0.4},
    {"lost, power sums",
     777,
     RANDOM_PHASE,
     PNR_FORMAT_CI16,
     PNR_DWELL_INCOHERENT,
     5,
     3,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.2,
     4,
     0,
     1,
     0,
     0.4},
    {"real samples, three channels",
     1000,
     RANDOM_PHASE,
     PNR_FORMAT_I16,
     PNR_DWELL_SINGLE,
     1,
     3,
     1,
     3,
     2,
     {1, 4},
     0,
     0,
     0,
     0.3,
     12,
     0,
     0,
     0,
     0.4},
    {"real floats",
     2048,
     RANDOM_PHASE,
     PNR_FORMAT_F32,
     PNR_DWELL_SINGLE,
     1,
     2,
     1,
     2,
     1,
     {1, 5},
     0,
     0,
     0,
     0.3,
     12,
     0,
     0,
     0,
     0.4},
    {"clipped",
     1024,
     RANDOM_PHASE,
     PNR_FORMAT_CI8,
     PNR_DWELL_SINGLE,
     1,
     2,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     1.1,
     12,
     0,
     0,
     0,
     0.4},
    {"a gate that wraps",
     2000,
     RANDOM_PHASE,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     4,
     2,
     1,
     0,
     {0, 1},
     0,
     1900,
     300,
     0.3,
     4,
     0,
     0,
     8,
     0.02},
    {"more maxima than places",
     3000,
     RANDOM_PHASE,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     3,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.0,
     3,
     0,
     0,
     5,
     0.3},
    {"a strong echo over the noise",
     4095,
     RANDOM_PHASE,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     2,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.8,
     14,
     0,
     0,
     0,
     0.6},
    {"a very short code",
     13,
     RANDOM_PHASE,
     PNR_FORMAT_CF32,
     PNR_DWELL_COHERENT,
     40,
     6,
     2,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.3,
     6,
     0,
     0,
     0,
     0.6},
    {"one sample",
     1,
     RANDOM_PHASE,
     PNR_FORMAT_CF32,
     PNR_DWELL_SINGLE,
     1,
     3,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.3,
     6,
     0,
     0,
     0,
     0},
    {.name = "GPS at 4000 samples",
     .n_samples = 4000,
     .code = GPS,
     .format = PNR_FORMAT_CI16,
     .dwell = PNR_DWELL_SINGLE,
     .n_periods = 1,
     .n_dwells = 2,
     .oversample = 2,
     .n_channels = 1,
     .tune = {0, 1},
     .echo = 0.1,
     .threshold = 13,
     .delay = 0.8},
};

/* The lengths that own kernels are made for; too long to ask the reference for all engines. */
static const scenario powers_of_two[] = {
    {"1024",
     1024,
     ZADOFF_CHU,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     40,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.2,
     12,
     0,
     0,
     0,
     0.74},
    {"1024, lost and not finite",
     1024,
     RANDOM_PHASE,
     PNR_FORMAT_CF32,
     PNR_DWELL_SINGLE,
     1,
     21,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.3,
     12,
     1,
     1,
     0,
     0.4},
    {"1024, clipped",
     1024,
     RANDOM_PHASE,
     PNR_FORMAT_CI8,
     PNR_DWELL_SINGLE,
     1,
     17,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     1.1,
     12,
     0,
     0,
     0,
     0.99},
    {"1024, clipped in 16 bits",
     1024,
     RANDOM_PHASE,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     3,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     1.1,
     12,
     0,
     1,
     0,
     0.99},
    {"2048, more maxima than places",
     2048,
     RANDOM_PHASE,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     5,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.0,
     1.5,
     0,
     0,
     5,
     0.3},
    {"2048, a gate that wraps",
     2048,
     RANDOM_PHASE,
     PNR_FORMAT_CF32,
     PNR_DWELL_COHERENT,
     1,
     6,
     1,
     1,
     0,
     {0, 1},
     0,
     1900,
     300,
     0.3,
     4,
     0,
     0,
     8,
     0.02},
    {"4096, a strong echo over the noise",
     4096,
     RANDOM_PHASE,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     4,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.8,
     14,
     0,
     0,
     0,
     0.6},
    {"4096, all places",
     4096,
     RANDOM_PHASE,
     PNR_FORMAT_CI8,
     PNR_DWELL_SINGLE,
     1,
     3,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.1,
     3,
     0,
     0,
     64,
     0.6},
    {"8192",
     8192,
     RANDOM_PHASE,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     3,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.1,
     14,
     0,
     1,
     0,
     0.93},
    {"8192, not finite",
     8192,
     RANDOM_PHASE,
     PNR_FORMAT_CF32,
     PNR_DWELL_SINGLE,
     1,
     2,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.1,
     14,
     1,
     0,
     0,
     0.1},
    {"16384",
     16384,
     RANDOM_PHASE,
     PNR_FORMAT_CI16,
     PNR_DWELL_SINGLE,
     1,
     2,
     1,
     1,
     0,
     {0, 1},
     0,
     0,
     0,
     0.1,
     15,
     0,
     0,
     0,
     0.97},
};

static void test_powers_of_two(void **unused)
{
    static const char *const names[] = {"cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);

        for (size_t i = 0; ops != NULL && i < sizeof powers_of_two / sizeof *powers_of_two; i++)
            agree(ops, &powers_of_two[i]);
    }
}

static void test_agreement(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 3; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);

        if (ops == NULL)
            continue;
        for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
            agree(ops, &scenarios[i]);
        print_message("%s: %zu scenarios agree with the reference\n", names[e],
                      sizeof scenarios / sizeof *scenarios);
    }
}

/* --- method walsh by name: every degree, whatever else auto would take --- */

/* NULL: no such engine here, or it has no such method. */
static const pnr_engine_ops *find_method(const char *name, const char *method)
{
    const pnr_engine_ops *ops = find_engine(name);
    pnr_engine_choice choice;
    pnr_error error = {0};
    world w;

    if (ops == NULL)
        return NULL;
    world_create(&w, &scenarios[0], ops);
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

static void check_degree(const pnr_engine_ops *ops, unsigned degree)
{
    const size_t n = ((size_t)1 << degree) - 1;
    const double low = degree < 8 ? 4 : 12;
    scenario s = {.name = "walsh",
                  .n_samples = n,
                  .code = M_SEQUENCE,
                  .format = PNR_FORMAT_CI16,
                  .dwell = PNR_DWELL_SINGLE,
                  .n_periods = 1,
                  .n_dwells = degree < 12 ? 37 : 2,
                  .oversample = 1,
                  .n_channels = 1,
                  .tune = {0, 1},
                  .echo = 0.25,
                  .threshold = low,
                  .delay = uniform()};

    if (degree > 14)
        s.n_dwells = 1;
    agree(ops, &s);
    if (degree > 15)
        return;
    s.name = "walsh, ci8, a strong echo, clipped";
    s.format = PNR_FORMAT_CI8;
    s.echo = 1.1;
    agree(ops, &s);
    if (degree > 14)
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
    s.n_dwells = degree < 12 ? 37 : 5;
    s.max_candidates = 0;
    s.echo = 0.2;
    s.threshold = low;
    s.has_lost = true;
    s.has_nonfinite = degree > 9;
    agree(ops, &s);
}

static void test_walsh(void **unused)
{
    static const char *const names[] = {"cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_method(names[e], "walsh");

        for (unsigned degree = 5; ops != NULL && degree <= 16; degree++)
            check_degree(ops, degree);
        if (ops != NULL)
            print_message("%s: walsh agrees with the reference, degrees 5 to 16\n", names[e]);
    }
}

/* Two equal echoes of integers, `apart` lags from each other, c exactly equal there. */
static void check_walsh_tie(const pnr_engine_ops *ops, unsigned degree, size_t delay, size_t apart)
{
    const size_t n = ((size_t)1 << degree) - 1;
    const scenario s = {.name = "walsh, a tie",
                        .n_samples = n,
                        .code = M_SEQUENCE,
                        .format = PNR_FORMAT_CI16,
                        .dwell = PNR_DWELL_SINGLE,
                        .n_periods = 1,
                        .n_dwells = 1,
                        .oversample = 1,
                        .n_channels = 1,
                        .tune = {0, 1},
                        .threshold = 4,
                        .max_candidates = 1};
    const size_t second = (delay + apart) % n;
    answer got;
    world w;

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

static void test_walsh_ties(void **unused)
{
    static const char *const names[] = {"cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_method(names[e], "walsh");

        for (unsigned degree = 7; ops != NULL && degree <= 17; degree++) {
            const size_t n = ((size_t)1 << degree) - 1;

            check_walsh_tie(ops, degree, n - 1, 1);
            check_walsh_tie(ops, degree, 5, 1);
            check_walsh_tie(ops, degree, 5, n / 2);
            check_walsh_tie(ops, degree, n - 20, n / 2);
        }
    }
}

/* The bits of a dwell do not depend on which others are submitted with it. */
static void test_walsh_batches(void **unused)
{
    static const char *const names[] = {"cpu", "cuda"};
    static const unsigned degrees[] = {6, 10, 11, 13, 14, 17};

    (void)unused;
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_method(names[e], "walsh");

        for (size_t l = 0; ops != NULL && l < 6; l++) {
            scenario s = scenarios[0];
            pnr_error error = {0};
            pnr_engine *engine;
            answer all;
            world w;

            s.n_samples = ((size_t)1 << degrees[l]) - 1;
            s.n_dwells = 7;
            s.threshold = 4;
            world_create(&w, &s, ops);
            w.plan.method = "walsh";
            w.windows.spans[0] = (pnr_span){w.samples, s.n_samples * 7};
            w.windows.spans[1] = (pnr_span){w.samples, 0};
            ask(ops, &w, PNR_WANT_NONE, &all);

            pnr_plan plan = w.plan;

            plan.batch = 2;
            if (ops->create(&plan, &engine, &error) != PNR_OK)
                fail_msg("%s", error.text);
            for (size_t d = 0; d < 7;) {
                const size_t count = d % 3 == 0 || d == 6 ? 1 : 2;
                pnr_windows v = w.windows;
                pnr_result result;

                v.first_sample += d * s.n_samples;
                v.n_dwells = count;
                v.spans[0] = (pnr_span){w.samples + 4 * d * s.n_samples, count * s.n_samples};
                assert_int_equal(ops->submit(engine, &(pnr_job){&v, d}), PNR_OK);
                assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
                for (size_t i = 0; i < count; i++, d++) {
                    assert_memory_equal(&result.dwells[i], &all.dwells[d], sizeof *all.dwells);
                    assert_memory_equal(&result.candidates[i * plan.max_candidates],
                                        &all.candidates[d * plan.max_candidates],
                                        all.dwells[d].n_candidates * sizeof *all.candidates);
                }
            }
            ops->destroy(engine);
            answer_destroy(&all);
            world_destroy(&w, ops);
        }
    }
}

/* N = 65535 costs the reference seconds, so it is asked once for all engines. */
static void test_long_m_sequence(void **unused)
{
    static const scenario s = {"m-sequence 65535",
                               65535,
                               M_SEQUENCE,
                               PNR_FORMAT_CI16,
                               PNR_DWELL_SINGLE,
                               1,
                               1,
                               1,
                               1,
                               0,
                               {0, 1},
                               0,
                               0,
                               0,
                               0.05,
                               16,
                               0,
                               0,
                               0,
                               0.87};
    static const char *const names[] = {"cpu", "cuda"};
    const pnr_engine_ops *reference;
    answer want;
    world w;

    (void)unused;
    assert_int_equal(pnr_engine_find("reference", 0, &reference, NULL), PNR_OK);
    world_create(&w, &s, reference);
    ask(reference, &w, PNR_WANT_COMPLEX, &want);
    for (size_t e = 0; e < 2; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);
        answer got;

        if (ops == NULL)
            continue;
        ask(ops, &w, PNR_WANT_COMPLEX, &got);
        compare_dwell(&w, &got.dwells[0], got.candidates, &want.dwells[0], want.candidates);
        compare_profile(&w, &want.dwells[0], got.profile, want.profile);
        assert_int_equal(got.candidates[0].cell, (size_t)(0.87 * 65535));
        answer_destroy(&got);
    }
    answer_destroy(&want);
    world_destroy(&w, reference);
}

static void check_delay(const pnr_engine_ops *ops, size_t n, size_t delay)
{
    scenario s = scenarios[3];
    answer got;
    world w;

    s.n_samples = n;
    s.n_dwells = 1;
    s.oversample = 1;
    s.threshold = 3;
    world_create(&w, &s, ops);
    for (size_t i = 0; i < n; i++) {
        const double *a = w.references[(i + n - delay) % n];
        const double x[2] = {0.25 * a[0], 0.25 * a[1]};

        (void)pnr_format_write(s.format, x, w.samples + 8 * i);
    }
    ask(ops, &w, PNR_WANT_COMPLEX, &got);
    assert_int_equal(got.dwells[0].n_candidates, 1);
    assert_int_equal(got.candidates[0].cell, delay);
    for (size_t k = 0; k < n; k++) { /* Zadoff-Chu: all other lags are 0 */
        const double peak = k == delay ? 0.25 * (double)n : 0;

        assert_true(fabs((double)got.profile[2 * k] - peak) < 1e-4);
        assert_true(fabs((double)got.profile[2 * k + 1]) < 1e-4);
    }
    answer_destroy(&got);
    world_destroy(&w, ops);
}

/* Noise-free and by hand: c at the echo's lag is A sum|a|^2, elsewhere the autocorrelation. Kills a
 * wrong conjugate (the echo would vanish), an off-by-one beyond N/2, a missing 1/N. */
static void test_by_hand(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 3; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);

        /* a length that is transformed itself, and a prime that is extended */
        for (size_t i = 0; ops != NULL && i < 2; i++)
            for (size_t delay = 0; delay < (i == 0 ? 75 : 61); delay++)
                check_delay(ops, i == 0 ? 75 : 61, delay);
    }
}

/* Ties: two equal echoes, all samples exact, give equal powers; the kept one is the lower lag. */
static void test_tie(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 3; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);
        scenario s = scenarios[0];
        answer got;
        world w;

        if (ops == NULL)
            continue;
        s.n_samples = 16;
        s.code = RANDOM_PHASE;
        s.format = PNR_FORMAT_CF32;
        s.n_dwells = 1;
        s.threshold = 2;
        s.max_candidates = 1;
        world_create(&w, &s, ops);
        /* the code is an impulse: c = x */
        memset(w.references, 0, 16 * sizeof *w.references);
        w.references[0][0] = 1;
        float(*x)[2] = (float(*)[2])(void *)w.samples;
        memset(x, 0, 16 * sizeof *x);
        x[11][0] = 0.5f;
        x[4][1] = -0.5f;
        ask(ops, &w, PNR_WANT_NONE, &got);
        assert_int_equal(got.dwells[0].n_maxima, 2);
        assert_int_equal(got.dwells[0].n_candidates, 1);
        assert_int_equal(got.candidates[0].cell, 4);
        /* silence has no echo */
        answer_destroy(&got);
        memset(x, 0, 16 * sizeof *x);
        ask(ops, &w, PNR_WANT_NONE, &got);
        assert_int_equal(got.dwells[0].n_candidates, 0);
        assert_int_equal(got.dwells[0].n_above, 0);
        answer_destroy(&got);
        world_destroy(&w, ops);
    }
}

/* The same dwells in submits of 1, 2, 3, 1, two in flight, over one engine of batch 3; every view
 * wraps inside a window, at an odd sample. */
static void check_pieces(const pnr_engine_ops *ops, const world *w, const answer *all)
{
    static const size_t sizes[] = {1, 2, 3, 1};
    const size_t dwell = w->s.n_samples * w->s.n_periods;
    const size_t bytes = pnr_plan_sample_bytes(&w->plan);
    pnr_plan plan = w->plan;
    pnr_engine *engine;
    pnr_error error = {0};
    size_t submitted = 0, collected = 0, n_in = 0, n_out = 0;

    plan.batch = 3;
    if (ops->create(&plan, &engine, &error) != PNR_OK)
        fail_msg("%s", error.text);
    while (collected < 7) {
        pnr_result result;

        if (n_in < 4 && n_in - n_out < 2) {
            const size_t n = sizes[n_in];
            const size_t first = (n * dwell / 2 + 26 * (n_in + 1)) | 1;
            const char *samples = w->samples + submitted * dwell * bytes;
            pnr_windows v = w->windows;

            assert_true(first % w->s.n_samples > 0 && first < n * dwell);
            v.first_sample += submitted * dwell;
            v.n_dwells = n;
            v.spans[0] = (pnr_span){samples, first};
            v.spans[1] = (pnr_span){samples + first * bytes, n * dwell - first};
            assert_int_equal(ops->submit(engine, &(pnr_job){&v, submitted}), PNR_OK);
            submitted += n;
            n_in++;
            continue;
        }
        if (n_in - n_out == 2)
            assert_int_equal(ops->submit(engine, &(pnr_job){&w->windows, 0}), PNR_EAGAIN);
        assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
        assert_int_equal(result.tag, collected);
        for (size_t d = 0; d < result.n_dwells; d++, collected++) {
            assert_memory_equal(&result.dwells[d], &all->dwells[collected], sizeof *result.dwells);
            assert_memory_equal(&result.candidates[d * plan.max_candidates],
                                &all->candidates[collected * plan.max_candidates],
                                all->dwells[collected].n_candidates * sizeof *all->candidates);
        }
        n_out++;
    }
    assert_int_equal(collected, 7);
    ops->destroy(engine);
}

/* The bits of a dwell do not depend on which others are submitted with it, nor on where the view
 * wraps. */
static void test_batches(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda"};
    static const size_t lengths[] = {512, 1023, 10000, 20000, 1024, 8192};
    static const pnr_format formats[] = {PNR_FORMAT_CI16, PNR_FORMAT_CF32};

    (void)unused;
    for (size_t i = 0; i < 3 * 6 * 2; i++) {
        const size_t e = i / 12, length = i / 2 % 6;
        const pnr_engine_ops *ops = find_engine(names[e]);
        scenario s = scenarios[8];
        answer all;
        world w;

        s.n_samples = lengths[length];
        s.format = formats[i % 2];
        s.code = RANDOM_PHASE;
        s.n_dwells = 7;
        s.n_periods = e == 0 || length >= 4 ? 1 : 3;
        if (length >= 4) /* own kernels take windows one by one */
            s.dwell = PNR_DWELL_SINGLE;
        if (ops == NULL || (e == 0 && s.n_samples > 2000))
            continue;
        world_create(&w, &s, ops);
        w.windows.spans[0] = (pnr_span){w.samples, s.n_samples * s.n_periods * 7};
        w.windows.spans[1] = (pnr_span){w.samples, 0};
        ask(ops, &w, PNR_WANT_NONE, &all);
        check_pieces(ops, &w, &all);
        answer_destroy(&all);
        world_destroy(&w, ops);
    }
}

/* What an engine lacks is said in words. */
static void test_words(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda"};

    (void)unused;
    for (size_t e = 0; e < 3; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);
        pnr_engine_choice choice;
        pnr_error error = {0};
        world w;

        if (ops == NULL)
            continue;
        world_create(&w, &scenarios[3], ops);
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
        assert_true(choice.n_transform >= 255 && choice.method[0] != '\0');
        w.plan.n_codes = 3;
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
        assert_non_null(strstr(error.text, "3 codes"));
        w.plan.n_codes = 1;
        w.plan.reference = PNR_REFERENCE_CHANNEL;
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EUNSUPPORTED);
        w.plan.reference = PNR_REFERENCE_STORED;
        w.plan.method = "magic";
        assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_ECONFIG);
        assert_non_null(strstr(error.text, "magic"));
        world_destroy(&w, ops);
    }

    const pnr_engine_ops *ops;
    pnr_error error = {0};

    assert_int_equal(pnr_engine_find("no-such-engine", 0, &ops, &error), PNR_EUNAVAILABLE);
    assert_non_null(strstr(error.text, "no-such-engine"));
    assert_null(ops);
}

/* A plan whose reference is not the m-sequence that it names is refused. */
static void test_m_sequence_plan(void **unused)
{
    const pnr_engine_ops *ops = find_engine("reference");
    pnr_engine_choice choice;
    pnr_error error = {0};
    world w;

    (void)unused;
    world_create(&w, &scenarios[0], ops);
    assert_int_equal(w.plan.m_degree, 10);
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_OK);
    w.references[700][0] = -w.references[700][0];
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    assert_non_null(strstr(error.text, "degree 10"));
    w.references[700][0] = -w.references[700][0];
    w.references[1][1] = 1e-9;
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    w.references[1][1] = 0;
    w.plan.m_taps = taps_of(9);
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    w.plan.m_taps = UINT64_C(1) << 9; /* x^10 + 1: no maximal period */
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    w.plan.m_taps = taps_of(10);
    w.plan.m_degree = 25;
    assert_int_equal(ops->describe(&w.plan, &choice, &error), PNR_EINTERNAL);
    world_destroy(&w, ops);
}

/* The setup names an m-sequence at one sample a chip, and no other. */
static void test_m_sequence_setup(void **unused)
{
    static const char *const rates[] = {"source.rate_hz=1e6", "source.rate_hz=2e6"};

    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        const pnr_engine_ops *ops = find_engine("reference");
        pnr_engine_choice choice;
        pnr_config config;
        pnr_setup *setup;
        pnr_error error = {0};

        pnr_config_init(&config);
        assert_int_equal(pnr_config_set(&config, rates[i], &error), PNR_OK);
        assert_int_equal(pnr_config_set(&config, "code.type=m-sequence", &error), PNR_OK);
        assert_int_equal(pnr_config_set(&config, "code.degree=7", &error), PNR_OK);
        assert_int_equal(pnr_config_set(&config, "code.chip_rate_hz=1e6", &error), PNR_OK);
        if (pnr_setup_create(&config, PNR_FORMAT_CI16, 1, &setup, &error) != PNR_OK)
            fail_msg("%s", error.text);
        assert_int_equal(setup->plan.n_samples, i == 0 ? 127 : 254);
        assert_int_equal(setup->plan.m_degree, i == 0 ? 7 : 0);
        assert_int_equal(ops->describe(&setup->plan, &choice, &error), PNR_OK);
        pnr_setup_destroy(setup);
        pnr_config_clear(&config);
    }
}

static void test_lengths(void **unused)
{
    (void)unused;
    assert_true(pnr_plan_is_direct(4000));
    assert_int_equal(pnr_plan_transform_length(4000), 4000);
    assert_false(pnr_plan_is_direct(1023));
    assert_true(pnr_plan_transform_length(1023) >= 2045);
    assert_int_equal(pnr_plan_transform_length(1), 1);
}

int main(void)
{
    const char *seed = getenv("PNR_SEED");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_powers_of_two),
        cmocka_unit_test(test_walsh),
        cmocka_unit_test(test_walsh_ties),
        cmocka_unit_test(test_walsh_batches),
        cmocka_unit_test(test_long_m_sequence),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_tie),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_m_sequence_plan),
        cmocka_unit_test(test_m_sequence_setup),
    };

    state = seed != NULL ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    fprintf(stderr, "PNR_SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
