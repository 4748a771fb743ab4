/* SPDX-License-Identifier: MIT */
/* Threshold or CFAR, maxima within their boxes in order of code, row and cell, and the second look
 * with a floor that is free of echoes. */
#include "engine/search.h"

#include "base/wide.h"
#include "engine/cfar_test.h"
#include "engine/plan.h"
#include "engine/search_plain.h"

#include <math.h>
#include <string.h>

enum { BLOCK = PNR_SEARCH_BLOCK, LANES = 16, REACH = PNR_NEIGHBOURS / 2 };

/* One search of a map: what it goes by, and what it has found so far. */
typedef struct search {
    pnr_search_cfar map; /* factor: NULL without CFAR */
    float threshold;
    const pnr_search_line *lines; /* NULL: not found beforehand */
    pnr_candidate *kept;
    size_t n_kept;
    uint32_t n_above, n_maxima;
} search;

/* Every step-th of n values; in a fixed order, so that all vector widths give the same bits. */
PNR_WIDE static double sum_of(const float *x, size_t n, size_t step)
{
    double lane[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] += (double)x[(i + l) * step];
    for (; i < n; i++)
        lane[i % LANES] += (double)x[i * step];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static const float *row_of(const search *s, size_t code, size_t row)
{
    return s->map.power + (code * s->map.n_rows + row) * s->map.n_cells;
}

/* Candidates come in order, so that of equals the last one goes. */
static void keep(search *s, const pnr_candidate *candidate)
{
    if (s->n_kept == s->map.plan->max_candidates) {
        size_t weakest = 0;

        for (size_t i = 1; i < s->n_kept; i++)
            if (s->kept[i].power <= s->kept[weakest].power)
                weakest = i;
        if (candidate->power <= s->kept[weakest].power)
            return;
        memmove(&s->kept[weakest], &s->kept[weakest + 1],
                (s->n_kept - weakest - 1) * sizeof *s->kept);
        s->n_kept--;
    }
    s->kept[s->n_kept++] = *candidate;
}

/* P > all cells before it and >= all behind it within its box. */
static bool is_greatest(const search *s, size_t code, size_t row, size_t cell)
{
    const pnr_plan *plan = s->map.plan;
    const float here = row_of(s, code, row)[cell];
    const size_t first = row - (row < plan->exclusion_rows ? row : plan->exclusion_rows);
    const size_t below = s->map.n_rows - 1 - row;
    const size_t last = row + (below < plan->exclusion_rows ? below : plan->exclusion_rows);
    const size_t reach =
        plan->exclusion_cells < s->map.n_cells ? plan->exclusion_cells : s->map.n_cells;

    for (size_t r = first; r <= last; r++) {
        const float *line = row_of(s, code, r);

        for (size_t i = 0; i <= 2 * reach; i++) {
            const size_t at = cell + s->map.n_cells + i - reach; /* + n_cells: never negative */

            if ((r == row && i == reach) ||
                (plan->linear && (at < s->map.n_cells || at >= 2 * s->map.n_cells)))
                continue;

            const float other = line[at % s->map.n_cells];
            const bool is_before = r < row || (r == row && i < reach);

            if (is_before ? !(here > other) : !(here >= other))
                return false;
        }
    }
    return true;
}

static void look_at(search *s, size_t code, size_t row, size_t cell)
{
    if (!(row_of(s, code, row)[cell] > s->threshold)) /* by its neighbours only */
        return;
    s->n_above++;
    if (is_greatest(s, code, row, cell)) {
        s->n_maxima++;
        keep(s, &(pnr_candidate){.cell = (uint32_t)cell,
                                 .code = (uint16_t)code,
                                 .row = (uint32_t)row,
                                 .power = row_of(s, code, row)[cell]});
    }
}

/* --- the map --- */

/* The gate's cells of a row in ascending parts [first, end): one that wraps has its upper part at
 * the lowest lags. */
static size_t parts_of(const pnr_plan *plan, size_t (*parts)[2])
{
    const size_t n = plan->n_lags, end = plan->gate_first + plan->gate_count;
    size_t count = 0;

    if (end > n) {
        parts[count][0] = 0;
        parts[count++][1] = (end - n) * plan->oversample;
    }
    parts[count][0] = plan->gate_first * plan->oversample;
    parts[count++][1] = (end < n ? end : n) * plan->oversample;
    return count;
}

/* A part of a row. Whole blocks below a threshold, nearly all of them, cost one maximum. */
static void look_through(search *s, size_t number, const size_t part[2])
{
    const float *line = s->map.power + number * s->map.n_cells;

    for (size_t at = part[0]; at < part[1]; at += BLOCK) {
        const size_t n = part[1] - at < BLOCK ? part[1] - at : BLOCK;
        bool is_above[BLOCK];

        if (s->map.factor != NULL) {
            pnr_search_cfar_test(&s->map, number, part, at, n, is_above);
        } else {
            if (!(pnr_search_greatest(line + at, n) > s->threshold))
                continue;
            for (size_t i = 0; i < n; i++)
                is_above[i] = line[at + i] > s->threshold;
        }
        for (size_t i = pnr_search_next(is_above, 0, n); i < n;
             i = pnr_search_next(is_above, i + 1, n))
            look_at(s, number / s->map.n_rows, number % s->map.n_rows, at + i);
    }
}

/* What CFAR has found beforehand. */
static void look_at_marked(search *s, size_t number)
{
    for (size_t w = 0; w < pnr_search_words(s->map.plan); w++)
        for (uint64_t rest = s->lines[number].above[w]; rest != 0; rest &= rest - 1)
            look_at(s, number / s->map.n_rows, number % s->map.n_rows,
                    64 * w + (size_t)__builtin_ctzll(rest));
}

/* The gate of every row. */
static void look(search *s)
{
    size_t parts[2][2];
    const size_t n_parts = parts_of(s->map.plan, parts);

    for (size_t number = 0; number < s->map.plan->n_codes * s->map.n_rows; number++) {
        if (s->lines != NULL && s->map.factor != NULL)
            look_at_marked(s, number);
        else if (s->lines == NULL || s->lines[number].greatest > s->threshold)
            for (size_t i = 0; i < n_parts; i++)
                look_through(s, number, parts[i]);
    }
}

static size_t centre_of(const search *s, size_t i)
{
    return s->kept[i].cell / s->map.plan->oversample;
}

/* Is the column of candidate i's code at this lag taken out for a candidate before it? */
static bool is_taken(const search *s, size_t i, size_t lag)
{
    for (size_t e = 0; e < i; e++) {
        const size_t centre = centre_of(s, e);
        const size_t apart = lag > centre ? lag - centre : centre - lag;

        if (s->kept[e].code == s->kept[i].code &&
            (apart <= REACH || (!s->map.plan->linear && s->map.plan->n_lags - apart <= REACH)))
            return true;
    }
    return false;
}

/* The mean power of the columns that no kept candidate reaches, or -INFINITY when there is none or
 * fewer than half of the columns are left. */
static double rest_of(const search *s, double noise_sum)
{
    const pnr_plan *plan = s->map.plan;
    const size_t n = plan->n_lags;
    const size_t n_columns = plan->n_codes * (plan->filter != NULL ? plan->gate_count : n);
    double taken = 0;
    size_t n_taken = 0;

    if (s->n_kept == 0)
        return -INFINITY;
    for (size_t i = 0; i < s->n_kept; i++) {
        const float *column = row_of(s, s->kept[i].code, 0);

        /* each lag once, also of a code that is shorter than the neighbourhood */
        for (size_t j = 0; j < PNR_NEIGHBOURS && j < n; j++) {
            const size_t at = centre_of(s, i) + n * PNR_NEIGHBOURS + j - REACH, lag = at % n;

            if ((plan->linear && at / n != PNR_NEIGHBOURS) ||
                (plan->filter != NULL && !pnr_search_is_in_gate(plan, lag)) || is_taken(s, i, lag))
                continue;
            taken += sum_of(column + lag * plan->oversample, s->map.n_rows, s->map.n_cells);
            n_taken++;
        }
    }
    if (n_columns - n_taken < (n_columns + 1) / 2)
        return -INFINITY;
    return (noise_sum - taken) / (double)((n_columns - n_taken) * s->map.n_rows);
}

static search search_of(const pnr_plan *plan, const float *power, size_t looks_used)
{
    const size_t side = plan->cfar.training + 1;
    const bool is_cfar = plan->cfar.kind != PNR_CFAR_OFF && looks_used > 0;

    return (search){
        .map = {.plan = plan,
                .power = power,
                .n_rows = pnr_plan_rows(plan),
                .n_cells = plan->n_lags * plan->oversample,
                .factor = is_cfar ? plan->cfar.factor + (looks_used - 1) * side * side : NULL},
    };
}

size_t pnr_search_words(const pnr_plan *plan)
{
    return plan->cfar.kind != PNR_CFAR_OFF ? (plan->n_lags * plan->oversample + 63) / 64 : 0;
}

void pnr_search_map_line(const pnr_plan *plan, const float *power, size_t looks_used, size_t number,
                         pnr_search_line *line)
{
    const search s = search_of(plan, power, looks_used);
    const float *cells = power + number * s.map.n_cells;
    size_t parts[2][2];
    const size_t n_parts = parts_of(plan, parts);

    line->sum = sum_of(cells, plan->n_lags, plan->oversample);
    line->greatest = 0;
    for (size_t w = 0; w < pnr_search_words(plan); w++)
        line->above[w] = 0;
    for (size_t p = 0; p < n_parts; p++)
        for (size_t at = parts[p][0]; at < parts[p][1]; at += BLOCK) {
            const size_t n = parts[p][1] - at < BLOCK ? parts[p][1] - at : BLOCK;
            bool is_above[BLOCK];

            if (s.map.factor == NULL) {
                const float greatest = pnr_search_greatest(cells + at, n);

                line->greatest = greatest > line->greatest ? greatest : line->greatest;
                continue;
            }
            pnr_search_cfar_test(&s.map, number, parts[p], at, n, is_above);
            for (size_t i = pnr_search_next(is_above, 0, n); i < n;
                 i = pnr_search_next(is_above, i + 1, n))
                line->above[(at + i) / 64] |= (uint64_t)1 << (at + i) % 64;
        }
}

void pnr_search_map(const pnr_plan *plan, double energy_of_code, const float *power,
                    size_t looks_used, const pnr_search_line *lines, pnr_dwell *dwell,
                    pnr_candidate *out)
{
    const bool is_cfar = plan->cfar.kind != PNR_CFAR_OFF;
    search s = search_of(plan, power, looks_used);

    s.lines = lines;
    s.kept = out;
    dwell->noise_sum = 0;
    dwell->n_above = 0;
    if (dwell->n_periods > 0 && looks_used > 0) {
        for (size_t i = 0; i < plan->n_codes * s.map.n_rows; i++)
            dwell->noise_sum +=
                lines != NULL ? lines[i].sum
                              : sum_of(power + i * s.map.n_cells, plan->n_lags, plan->oversample);
        for (int i = 0; i < (is_cfar ? 1 : PNR_MAX_SEARCHES); i++) {
            s.threshold =
                (float)((is_cfar ? PNR_CFAR_LEAST : plan->threshold[dwell->n_periods - 1]) *
                        dwell->floor);
            s.n_kept = 0;
            s.n_above = s.n_maxima = 0;
            look(&s);
            if (i == 0)
                dwell->n_above = s.n_above;

            const double rest = rest_of(&s, dwell->noise_sum);
            const double rounding = 1e-12 * dwell->energy * energy_of_code * dwell->n_periods;
            const double floor = rest > rounding ? rest : rounding;

            if (isinf(rest) ||
                (!is_cfar && (i + 1 == PNR_MAX_SEARCHES || !(floor < 0.95 * dwell->floor))))
                break;
            dwell->floor = floor;
            if (s.n_kept == plan->max_candidates)
                break; /* what a lower threshold adds is weaker than these */
        }
    } else {
        dwell->floor = 0;
    }
    dwell->n_maxima = s.n_maxima;
    dwell->n_candidates = (uint32_t)s.n_kept;
}
