/* SPDX-License-Identifier: MIT */
/* CFAR on the host: compares the power P of each cell with factor * Z (pnr_cfar in plan.h). */
#include "engine/cfar_test.h"

#include "base/multiversion.h"

#include <float.h>
#include <string.h>

/* The training cells of one cell, or of several cells with equal numbers of training cells. */
typedef struct training {
    /* distance, in array elements, from the cell to its nearest training cell; distance from one
     * training cell to the next */
    ptrdiff_t first, step;
    size_t n_before, n_after;
} training;

/*
 * Each cell has its own sums in double, so a sum has only `training` roundings. A sliding sum would
 * carry the rounding error of a strong echo into the noise after the echo. OS needs no sort: if
 * z(r) is the r-th smallest value, P > factor z(r) holds when P > factor z for at least r values.
 */

static size_t rank_of(size_t n)
{
    return (3 * n + 3) / 4; /* ceil(3 n / 4) */
}

/* Returns the level Z of CA, GO or SO from the sums of both sides. */
static double level_of(pnr_cfar_kind kind, const training *t, double before, double after)
{
    if (kind == PNR_CFAR_CA || t->n_before == 0 || t->n_after == 0)
        return (before + after) / (double)(t->n_before + t->n_after);
    before /= (double)t->n_before;
    after /= (double)t->n_after;
    if (kind == PNR_CFAR_GO)
        return before > after ? before : after;
    return before < after ? before : after;
}

static double factor_of(const pnr_search_cfar *s, const training *t)
{
    return s->factor[t->n_before * (s->plan->cfar.training + 1) + t->n_after];
}

/* True if the power of a cell exceeds factor * Z. */
static bool is_above_level(const pnr_search_cfar *s, const training *t, const float *here)
{
    const double factor = factor_of(s, t), power = (double)*here;
    double before = 0, after = 0;
    size_t n_below = 0;

    for (size_t i = 0; i < t->n_before; i++) {
        const double x = (double)here[-t->first - (ptrdiff_t)i * t->step];

        before += x;
        n_below += power > factor * x;
    }
    for (size_t i = 0; i < t->n_after; i++) {
        const double x = (double)here[t->first + (ptrdiff_t)i * t->step];

        after += x;
        n_below += power > factor * x;
    }
    if (!(power > 0))
        return false;
    if (s->plan->cfar.kind == PNR_CFAR_OS)
        return n_below >= rank_of(t->n_before + t->n_after);
    return power > factor * level_of(s->plan->cfar.kind, t, before, after);
}

/* A first test in single precision, SCREEN cells at a time. It reduces the factor by the sum of all
 * rounding errors, so every cell that exceeds factor * Z passes, and few others pass. */
enum { SCREEN = 64, SIXTEENS = SCREEN / 16 };
typedef float sixteen __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t sixteen_counts __attribute__((vector_size(64), aligned(4), may_alias));

PNR_MULTIVERSION static void screen_levels(pnr_cfar_kind kind, const training *t, float factor,
                                           const float *here, bool *may)
{
    const bool is_one = kind == PNR_CFAR_CA || t->n_before == 0 || t->n_after == 0;
    const float all = 1 / (float)(t->n_before + t->n_after);
    const float scale[2] = {is_one ? all : 1 / (float)t->n_before,
                            is_one ? all : 1 / (float)t->n_after};
    sixteen sum[2][SIXTEENS] = {{{0}}};
    float before[SCREEN], after[SCREEN];

    for (size_t i = 0; i < t->n_before; i++) {
        const sixteen *x = (const sixteen *)(here - t->first - (ptrdiff_t)i * t->step);

        for (int v = 0; v < SIXTEENS; v++)
            sum[0][v] += x[v];
    }
    for (size_t i = 0; i < t->n_after; i++) {
        const sixteen *x = (const sixteen *)(here + t->first + (ptrdiff_t)i * t->step);

        for (int v = 0; v < SIXTEENS; v++)
            sum[1][v] += x[v];
    }
    memcpy(before, sum[0], sizeof before);
    memcpy(after, sum[1], sizeof after);
    for (size_t c = 0; c < SCREEN; c++) {
        const float b = before[c] * scale[0], a = after[c] * scale[1];
        const float greater = b > a ? b : a, less = b > a ? a : b;
        const float level = is_one ? a + b : kind == PNR_CFAR_GO ? greater : less;

        may[c] = here[c] > factor * level;
    }
}

PNR_MULTIVERSION static void screen_ranks(const training *t, float factor, const float *here,
                                          bool *may)
{
    const int rank = (int)rank_of(t->n_before + t->n_after);
    const sixteen *power = (const sixteen *)here;
    sixteen_counts below[SIXTEENS] = {{0}}; /* each true comparison adds -1 */
    int32_t count[SCREEN];

    for (size_t i = 0; i < t->n_before + t->n_after; i++) {
        const ptrdiff_t distance = i < t->n_before
                                       ? -t->first - (ptrdiff_t)i * t->step
                                       : t->first + (ptrdiff_t)(i - t->n_before) * t->step;
        const sixteen *x = (const sixteen *)(here + distance);

        for (int v = 0; v < SIXTEENS; v++)
            below[v] += power[v] > factor * x[v];
    }
    memcpy(count, below, sizeof count);
    for (size_t c = 0; c < SCREEN; c++)
        may[c] = -count[c] >= rank;
}

/* Tests up to PNR_SEARCH_BLOCK cells from `here` on. All these cells have the same number of
 * training cells. */
static void test_block(const pnr_search_cfar *s, const training *t, const float *here, size_t n,
                       bool *is_above)
{
    const double roundings = (double)(t->n_before + t->n_after + 8);
    const float factor = (float)(factor_of(s, t) * (1 - roundings * FLT_EPSILON));

    for (size_t c = 0; c < n; c++)
        is_above[c] = true;
    for (size_t c = 0; n >= SCREEN && c < n; c += SCREEN) {
        const size_t at = c + SCREEN < n ? c : n - SCREEN; /* the last cells may be tested twice */

        if (s->plan->cfar.kind == PNR_CFAR_OS)
            screen_ranks(t, factor, here + at, is_above + at);
        else
            screen_levels(s->plan->cfar.kind, t, factor, here + at, is_above + at);
    }
    for (size_t c = pnr_search_next(is_above, 0, n); c < n; c = pnr_search_next(is_above, c + 1, n))
        is_above[c] = is_above_level(s, t, here + c);
}

/* Returns the training cell `distance` lags before or after a cell; NULL: no such cell. */
static const float *training_cell(const pnr_search_cfar *s, const float *line, size_t cell,
                                  size_t distance, bool is_after)
{
    const pnr_plan *plan = s->plan;
    const size_t n = plan->n_lags, lag = cell / plan->oversample;
    size_t other;

    if (plan->linear && (is_after ? lag + distance >= n : lag < distance))
        return NULL;
    if (distance >= n)
        distance %= n;
    other = is_after ? lag + distance : lag + n - distance;
    other -= other >= n ? n : 0;
    if (plan->filter != NULL && !pnr_plan_is_in_gate(plan, other))
        return NULL;
    return line + other * plan->oversample + cell % plan->oversample;
}

/* Tests a cell near an end of its row. First copies its training cells next to each other. */
static bool is_above_at_end(const pnr_search_cfar *s, const float *line, size_t cell)
{
    const pnr_cfar *cfar = &s->plan->cfar;
    training t = {.first = 1, .step = 1};
    float around[2 * PNR_MAX_TRAINING + 1], *here = around + PNR_MAX_TRAINING;

    *here = line[cell];
    for (size_t i = 0; i < 2 * cfar->training; i++) {
        const bool is_after = i % 2 == 1;
        const float *z =
            training_cell(s, line, cell, cfar->guard + 1 + i / 2 * cfar->stride, is_after);

        if (z != NULL)
            here[is_after ? (ptrdiff_t)++t.n_after : -(ptrdiff_t)++t.n_before] = *z;
    }
    return t.n_before + t.n_after > 0 && is_above_level(s, &t, here);
}

/* Tests cells [at, at + n) of a row. They lie in the part [first, end) of the gate. */
static void test_along_lags(const pnr_search_cfar *s, const float *line, size_t first, size_t end,
                            size_t at, size_t n, bool *is_above)
{
    const pnr_plan *plan = s->plan;
    const pnr_cfar *cfar = &plan->cfar;
    const size_t reach = (cfar->guard + 1 + (cfar->training - 1) * cfar->stride) * plan->oversample;
    const size_t low = plan->filter != NULL ? first : 0;
    const size_t high = plan->filter != NULL ? end : s->n_cells;
    const training t = {.first = (ptrdiff_t)((cfar->guard + 1) * plan->oversample),
                        .step = (ptrdiff_t)(cfar->stride * plan->oversample),
                        .n_before = cfar->training,
                        .n_after = cfar->training};
    /* [from, to): the cells whose training cells all exist and do not wrap. The training cells must
     * lie in the row; with a filter, in the part of the gate */
    size_t from = low + reach > at ? low + reach : at;
    size_t to = high < reach ? 0 : high - reach;

    if (to > at + n)
        to = at + n;
    if (from >= to)
        from = to = at + n;
    for (size_t cell = at; cell < from; cell++)
        is_above[cell - at] = is_above_at_end(s, line, cell);
    if (from < to)
        test_block(s, &t, line + from, to - from, is_above + (from - at));
    for (size_t cell = to; cell < at + n; cell++)
        is_above[cell - at] = is_above_at_end(s, line, cell);
}

/* Counts the training cells on one side of a row. `room` rows exist on this side. */
static size_t training_rows(const pnr_cfar *cfar, size_t room)
{
    const size_t n = room <= cfar->guard ? 0 : (room - cfar->guard - 1) / cfar->stride + 1;

    return n < cfar->training ? n : cfar->training;
}

static void test_along_rows(const pnr_search_cfar *s, const float *line, size_t row, size_t at,
                            size_t n, bool *is_above)
{
    const pnr_cfar *cfar = &s->plan->cfar;
    const training t = {.first = (ptrdiff_t)((cfar->guard + 1) * s->n_cells),
                        .step = (ptrdiff_t)(cfar->stride * s->n_cells),
                        .n_before = training_rows(cfar, row),
                        .n_after = training_rows(cfar, s->n_rows - 1 - row)};

    if (t.n_before + t.n_after == 0)
        memset(is_above, 0, n * sizeof *is_above);
    else
        test_block(s, &t, line + at, n, is_above);
}

void pnr_search_cfar_test(const pnr_search_cfar *s, size_t number, const size_t part[2], size_t at,
                          size_t n, bool *is_above)
{
    const float *line = s->power + number * s->n_cells;

    if (s->plan->cfar.axis == PNR_CFAR_ALONG_LAGS)
        test_along_lags(s, line, part[0], part[1], at, n, is_above);
    else
        test_along_rows(s, line, number % s->n_rows, at, n, is_above);
}
