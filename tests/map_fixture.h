/* SPDX-License-Identifier: MIT */
/* A scenario for maps: codes, hypotheses, looks, gates; samples with an echo, clutter, lost and
 * non-finite ones. */
#ifndef PNR_MAP_FIXTURE_H
#define PNR_MAP_FIXTURE_H

#include "engine_fixture.h"

enum { MAX_HYPOTHESES = 6 };

typedef struct map_scenario {
    const char *name;
    size_t n_samples;
    code_kind code; /* of the first; the others are Zadoff-Chu, or random, too */
    size_t n_codes; /* 0: 1 */
    pnr_format format;
    pnr_dwell_kind dwell;
    size_t n_periods, n_looks, n_dwells, oversample; /* 0: 1 */
    size_t n_channels, channel;                      /* 0: 1 */
    pnr_rational tune;
    bool conjugate;
    size_t n_lags;                 /* of a linear correlation; 0: circular */
    size_t gate_first, gate_count; /* 0: all that can be */
    size_t n_hypotheses;           /* 0: none listed */
    pnr_hypothesis hypotheses[MAX_HYPOTHESES];
    bool has_taper, remove_mean, has_filter, has_lost, has_nonfinite;
    pnr_cfar cfar;                                /* without its factor */
    double factor;                                /* the factor of many training cells */
    size_t exclusion_cells, exclusion_rows;       /* 0: 1 */
    size_t max_candidates;                        /* 0: 16 */
    double echo, bins, stretch, still, threshold; /* amplitudes; noise is 0.1 rms */
} map_scenario;

typedef struct map_world {
    map_scenario s;
    pnr_plan plan;
    double (*references)[2];
    double *threshold, *taper, (*filter)[2], *factor;
    size_t n_view; /* samples */
    char *samples;
    bool *is_lost; /* [n_view] */
    uint32_t *lost;
    pnr_lost_run *runs;
    uint64_t *ready;
    pnr_windows windows;
    double filter_gain; /* the largest sum of magnitudes of a row */
} map_world;

static size_t or_one(size_t n)
{
    return n > 0 ? n : 1;
}

static void zadoff_chu(size_t n, size_t root, double (*a)[2])
{
    for (size_t i = 0; i < n; i++) {
        const double turns = fmod((double)(root * (i * (i + (n & 1)) % (2 * n))), 2 * (double)n);

        a[i][0] = cos(M_PI * turns / (double)n);
        a[i][1] = -sin(M_PI * turns / (double)n);
    }
}

static void make_references(map_world *w)
{
    const size_t n = w->s.n_samples, oversample = w->plan.oversample;

    for (size_t c = 0; c < w->plan.n_codes; c++) {
        double(*a)[2] = w->references + c * oversample * n;

        /* A Zadoff-Chu code a whole bin away is the same code at another lag: rows a bin apart then
         * have cells of the same power, which engines round differently. */
        if (c == 0 || w->s.code == RANDOM_PHASE)
            make_code(w->s.code, n, a);
        else
            zadoff_chu(n, 3 + 2 * c, a);
        if (oversample == 2)
            half_later((const double(*)[2])a, n, a + n);
    }
}

/* Losses: windows that lose a third, in two pieces; windows that are gone but for three samples;
 * one loss across a border, and one behind the last window. */
static void lose_samples(map_world *w)
{
    const size_t n = w->s.n_samples, windows = pnr_plan_windows(&w->plan) * w->windows.n_dwells;
    const pnr_format format = w->s.format;
    const size_t bytes = pnr_plan_sample_bytes(&w->plan);
    const int zero = format == PNR_FORMAT_CU8 || format == PNR_FORMAT_U8 ? 0x80 : 0;
    size_t run = 0;

    for (size_t p = 0; p < windows; p++)
        for (size_t i = 0; i < n; i++)
            w->is_lost[p * n + i] =
                (p % 3 == 1 && (i < n / 6 || (i > n / 2 && i <= n / 2 + n / 6))) ||
                (p % 7 == 4 && i >= 3);
    for (size_t i = 0; i < 5 && windows > 2; i++)
        w->is_lost[3 * n - 3 + i] = true;
    w->is_lost[w->n_view - 1] = true;
    for (size_t i = 0; i < w->n_view; i++) {
        if (!w->is_lost[i])
            continue;
        memset(w->samples + i * bytes, zero, bytes);
        if (i / n < windows)
            w->lost[i / n]++;
        if (i == 0 || !w->is_lost[i - 1])
            w->runs[run++] = (pnr_lost_run){i, 0};
        w->runs[run - 1].count++;
    }
    w->windows.n_lost_runs = run;
}

/* Dwell d has an echo of code d mod n_codes that moves, and a still one beside it. */
static void fill_map_samples(map_world *w)
{
    const map_scenario *s = &w->s;
    const size_t n = s->n_samples, dwell = n * pnr_plan_windows(&w->plan);
    const size_t bytes = pnr_format_get(s->format)->bytes;
    const size_t lags = s->n_lags > 0 ? s->n_lags : n;

    for (size_t i = 0; i < w->n_view; i++) {
        const size_t d = i / dwell;
        const size_t delay = lags * 2 / 5 + d % 3, still = lags / 3;
        const size_t code = d % w->plan.n_codes * w->plan.oversample;
        const double(*a)[2] = (const double(*)[2])(w->references + code * n);
        const double *moving = a[(i + n * 64 - delay) % n], *at_rest = a[(i + n * 64 - still) % n];
        const uint64_t phase = pnr_rational_phase(s->tune, w->windows.first_sample + i);
        const double mixed = 2 * M_PI * ldexp((double)phase, -64);
        const double angle = mixed + 2 * M_PI * s->bins * (double)(i % dwell) / (double)n + 1;
        const double er = s->echo * cos(angle), ei = s->echo * sin(angle);
        const double sr = s->still * cos(mixed), si = s->still * sin(mixed);

        for (size_t c = 0; c < w->plan.n_channels; c++) {
            double x[2] = {0.0707 * gaussian(), 0.0707 * gaussian()};

            if (c == s->channel) {
                x[0] += er * moving[0] - ei * moving[1] + sr * at_rest[0] - si * at_rest[1];
                x[1] += er * moving[1] + ei * moving[0] + sr * at_rest[1] + si * at_rest[0];
            }
            if (s->conjugate)
                x[1] = -x[1];
            if (s->has_nonfinite && i % 331 == 5)
                x[i % 2] = i % 3 ? (double)NAN : (double)INFINITY;
            (void)pnr_format_write(s->format, x, w->samples + (i * w->plan.n_channels + c) * bytes);
        }
    }
    if (s->has_lost)
        lose_samples(w);
}

static void make_tables(map_world *w)
{
    const pnr_plan *p = &w->plan;
    const size_t side = p->cfar.training + 1;

    for (size_t i = 0; i < pnr_plan_windows(p); i++)
        w->threshold[i] = w->s.threshold * (1 + 0.01 * (double)i);
    for (size_t i = 0; i < p->n_periods; i++) /* raised cosine, not quite symmetric */
        w->taper[i] = 1.1 - cos(2 * M_PI * ((double)i + 0.6) / (double)p->n_periods);
    for (size_t i = 0; i < p->n_looks * side * side; i++)
        w->factor[i] = w->s.factor * (1 + 1.0 / (1 + (double)(i % side + i / side % side)));
    for (size_t k = 0; k < p->gate_count && w->s.has_filter; k++) {
        double sum = 0;

        for (size_t j = 0; j < p->gate_count; j++) {
            double *h = w->filter[k * p->gate_count + j];

            h[0] = (k == j) + 0.02 * gaussian();
            h[1] = 0.02 * gaussian();
            sum += hypot(h[0], h[1]);
        }
        w->filter_gain = fmax(w->filter_gain, sum);
    }
}

static void map_world_create(map_world *w, const map_scenario *s, const pnr_engine_ops *ops)
{
    const size_t n = s->n_samples, lags = s->n_lags > 0 ? s->n_lags : n;
    const size_t channels = or_one(s->n_channels);
    const size_t bytes = channels * pnr_format_get(s->format)->bytes;
    const size_t first = s->n_lags > 0 && s->gate_first == 0 ? 8 : s->gate_first;
    const size_t count = s->gate_count > 0 ? s->gate_count : s->n_lags > 0 ? lags - 16 : lags;
    const size_t windows = or_one(s->n_periods) * or_one(s->n_looks) * or_one(s->n_dwells);
    const size_t side = s->cfar.training + 1;
    const size_t chip_samples = s->code == M_SEQUENCE ? chip_samples_of(n) : 0;

    memset(w, 0, sizeof *w);
    w->s = *s;
    w->n_view = windows * n + (s->n_lags > 0 ? s->n_lags - 1 : 0);
    w->references = calloc(or_one(s->n_codes) * or_one(s->oversample) * n, sizeof *w->references);
    w->threshold = calloc(windows, sizeof *w->threshold);
    w->taper = calloc(or_one(s->n_periods), sizeof *w->taper);
    w->filter = calloc(count * count, sizeof *w->filter);
    w->factor = calloc(or_one(s->n_looks) * side * side, sizeof *w->factor);
    w->samples = ops->alloc(w->n_view * bytes);
    w->is_lost = calloc(w->n_view, sizeof *w->is_lost);
    w->lost = calloc(windows, sizeof *w->lost);
    w->runs = calloc(w->n_view, sizeof *w->runs);
    w->ready = calloc(or_one(s->n_dwells), sizeof *w->ready);
    assert_true(w->references && w->threshold && w->taper && w->filter && w->factor && w->samples &&
                w->is_lost && w->lost && w->runs && w->ready);

    const size_t split = (size_t)(uniform() * (double)w->n_view); /* where the view wraps */

    w->windows = (pnr_windows){
        .spans = {{w->samples, split}, {w->samples + split * bytes, w->n_view - split}},
        .first_sample = UINT64_C(5000000000) + (uint64_t)(uniform() * 1e9),
        .n_dwells = or_one(s->n_dwells),
        .n_periods = or_one(s->n_periods) * or_one(s->n_looks),
        .lost = w->lost,
        .lost_runs = w->runs,
        .ready_ns = w->ready,
    };
    w->plan = (pnr_plan){
        .n_samples = n,
        .format = s->format,
        .n_channels = channels,
        .first_channel = s->channel,
        .n_used_channels = 1,
        .n_codes = or_one(s->n_codes),
        .n_hypotheses = or_one(s->n_hypotheses),
        .hypotheses = s->n_hypotheses > 0 ? w->s.hypotheses : NULL,
        .n_periods = or_one(s->n_periods),
        .n_looks = or_one(s->n_looks),
        .dwell = s->dwell,
        .linear = s->n_lags > 0,
        .n_lags = lags,
        .remove_mean = s->remove_mean,
        .taper = s->has_taper ? w->taper : NULL,
        .filter = s->has_filter ? (const double(*)[2])w->filter : NULL,
        .cfar = s->cfar,
        .exclusion_cells = or_one(s->exclusion_cells),
        .exclusion_rows = or_one(s->exclusion_rows),
        .oversample = or_one(s->oversample),
        .references = (const double(*)[2])w->references,
        .m_degree = chip_samples > 0 ? degree_of(n / chip_samples) : 0,
        .m_taps = chip_samples > 0 ? taps_of(degree_of(n / chip_samples)) : 0,
        .m_samples = chip_samples,
        .tune = s->tune.den != 0 ? s->tune : (pnr_rational){0, 1},
        .conjugate = s->conjugate,
        .gate_first = first,
        .gate_count = count,
        .threshold = w->threshold,
        .max_candidates = s->max_candidates > 0 ? s->max_candidates : 16,
        .batch = or_one(s->n_dwells),
        .depth = 2,
        .method = "auto",
    };
    w->s.tune = w->plan.tune;
    w->plan.cfar.factor = w->factor;
    w->filter_gain = 1;
    make_tables(w);
    make_references(w);
    fill_map_samples(w);
}

static void map_world_destroy(map_world *w, const pnr_engine_ops *ops)
{
    free(w->references);
    free(w->threshold);
    free(w->taper);
    free(w->filter);
    free(w->factor);
    ops->free(w->samples);
    free(w->is_lost);
    free(w->lost);
    free(w->runs);
    free(w->ready);
}

#endif
