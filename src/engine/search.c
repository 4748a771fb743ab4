/* SPDX-License-Identifier: MIT */
/* Searches a dwell: finds the cells above the threshold. A cell that is also the maximum of its box
 * is a candidate. The candidates are in the order of code, row and cell. Then estimates the floor
 * without the echoes, and searches again. engine/plan.h defines "above" and "box". */
#include "engine/search.h"

#include "base/multiversion.h"
#include "engine/cfar_test.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = PNR_SEARCH_BLOCK,
    LANES = 16, /* parallel sums in doubles */
    FLOAT_LANES = 64,
    FLOAT_BLOCK = 4096, /* floats that are added before their sum is added to a double */
    REACH = PNR_NEIGHBOURS / 2
};

/* One search: its conditions, and the candidates found so far. */
typedef struct search {
    pnr_search_cfar map; /* map.factor: NULL without CFAR */
    float threshold;
    bool is_plain;
    const pnr_search_line *lines;    /* NULL: the lines are not scanned yet */
    const pnr_search_places *places; /* NULL: the powers are in the order of lags */
    pnr_candidate *kept;             /* the kept candidates in the gate; after a scan, also
                                      * `outside` */
    size_t n_kept, most;             /* most: greatest number of candidates in the gate */
    pnr_candidate outside;           /* the strongest outside of the gate; power 0: none */
    bool is_full;                    /* n_kept has reached `most` */
    uint32_t n_above, n_maxima;
} search;

/* --- sums and maxima of powers --- */

/* Adds n values, `step` apart, in a fixed order, so that all vector widths give the same bits. */
PNR_MULTIVERSION static double sum_exactly(const float *x, size_t n, size_t step)
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

/* Adds the values of each block in floats, and the sums of the blocks in doubles. Only plans for
 * which pnr_plan_is_plain is true use this faster sum. */
PNR_MULTIVERSION static double sum_in_floats(const float *x, size_t n, size_t step)
{
    double total = 0;

    for (size_t first = 0; first < n; first += FLOAT_BLOCK) {
        const size_t count = n - first < FLOAT_BLOCK ? n - first : FLOAT_BLOCK;
        float lane[FLOAT_LANES] = {0};
        size_t i = 0;

        for (; i + FLOAT_LANES <= count; i += FLOAT_LANES)
            for (size_t l = 0; l < FLOAT_LANES; l++)
                lane[l] += x[(first + i + l) * step];
        for (; i < count; i++)
            lane[i % FLOAT_LANES] += x[(first + i) * step];
        for (size_t half = FLOAT_LANES / 2; half > 0; half /= 2)
            for (size_t l = 0; l < half; l++)
                lane[l] += lane[l + half];
        total += (double)lane[0];
    }
    return total;
}

PNR_MULTIVERSION static float greatest_of(const float *x, size_t n)
{
    float lane[FLOAT_LANES] = {0};
    size_t i = 0;

    for (; i + FLOAT_LANES <= n; i += FLOAT_LANES)
        for (size_t l = 0; l < FLOAT_LANES; l++)
            lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
    for (; i < n; i++)
        lane[i % FLOAT_LANES] = x[i] > lane[i % FLOAT_LANES] ? x[i] : lane[i % FLOAT_LANES];
    for (size_t half = FLOAT_LANES / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] = lane[l + half] > lane[l] ? lane[l + half] : lane[l];
    return lane[0];
}

static const float *row_of(const search *s, size_t code, size_t row)
{
    return s->map.power + (code * s->map.n_rows + row) * s->map.n_cells;
}

static float power_at(const search *s, size_t code, size_t row, size_t cell)
{
    return row_of(s, code, row)[s->places != NULL ? s->places->place[cell] : cell];
}

/* Sums P over the integer lags of a line. */
static double sum_line(const search *s, size_t number)
{
    const pnr_plan *plan = s->map.plan;
    const size_t n = s->places != NULL ? s->places->n_places : plan->n_lags;
    const float *line = s->map.power + number * s->map.n_cells;

    return s->is_plain ? sum_in_floats(line, n, plan->oversample)
                       : sum_exactly(line, n, plan->oversample);
}

/* --- candidates --- */

static bool is_before(const pnr_candidate *a, const pnr_candidate *b)
{
    return a->code != b->code ? a->code < b->code
           : a->row != b->row ? a->row < b->row
                              : a->cell < b->cell;
}

/* Inserts a candidate in the order of code, row and cell. */
static void insert_candidate(search *s, const pnr_candidate *candidate)
{
    size_t at;

    for (at = s->n_kept; at > 0 && is_before(candidate, &s->kept[at - 1]); at--)
        s->kept[at] = s->kept[at - 1];
    s->kept[at] = *candidate;
    s->n_kept++;
}

/* Keeps a candidate. If `most` candidates are kept already, drops the weakest of all; of equally
 * weak ones, the last in the order of code, row and cell. The order of the calls has no
 * influence. */
static void keep_candidate(search *s, const pnr_candidate *candidate)
{
    if (s->n_kept == s->most) {
        size_t weakest = 0;

        for (size_t i = 1; i < s->n_kept; i++)
            if (s->kept[i].power <= s->kept[weakest].power)
                weakest = i;
        if (candidate->power < s->kept[weakest].power ||
            (candidate->power == s->kept[weakest].power && is_before(&s->kept[weakest], candidate)))
            return;
        memmove(&s->kept[weakest], &s->kept[weakest + 1],
                (s->n_kept - weakest - 1) * sizeof *s->kept);
        s->n_kept--;
    }
    insert_candidate(s, candidate);
}

/* True if `here`, the power of a cell, is greater than every power before the cell in its box, and
 * at least equal to every power after the cell. */
static bool is_greatest(const search *s, size_t code, size_t row, size_t cell, float here)
{
    const pnr_plan *plan = s->map.plan;
    const size_t n_cells = s->map.n_cells;
    const size_t first = row - (row < plan->exclusion_rows ? row : plan->exclusion_rows);
    const size_t below = s->map.n_rows - 1 - row;
    const size_t last = row + (below < plan->exclusion_rows ? below : plan->exclusion_rows);
    const size_t reach = plan->exclusion_cells < n_cells ? plan->exclusion_cells : n_cells;

    for (size_t r = first; r <= last; r++)
        for (size_t i = 0; i <= 2 * reach; i++) {
            const size_t at = cell + n_cells + i - reach; /* n_cells avoids a negative index */

            if ((r == row && i == reach) || (plan->linear && (at < n_cells || at >= 2 * n_cells)))
                continue;

            const float other = power_at(s, code, r, at % n_cells);
            const bool is_earlier = r < row || (r == row && i < reach);

            if (is_earlier ? !(here > other) : !(here >= other))
                return false;
        }
    return true;
}

/* Keeps a cell outside of the gate if it is the maximum of its box and the strongest such cell so
 * far. */
static void take_outside(search *s, const pnr_candidate *candidate)
{
    if (s->map.plan->has_outside && candidate->power >= s->outside.power &&
        (candidate->power > s->outside.power || is_before(candidate, &s->outside)) &&
        is_greatest(s, candidate->code, candidate->row, candidate->cell, candidate->power))
        s->outside = *candidate;
}

/* Counts a cell that is above the CFAR level or the threshold, and keeps the cell when it is a
 * maximum. */
static void take_cell(search *s, size_t number, size_t cell)
{
    const size_t code = number / s->map.n_rows, row = number % s->map.n_rows;
    const float here = power_at(s, code, row, cell);
    const pnr_candidate candidate = {
        .cell = (uint32_t)cell, .code = (uint16_t)code, .row = (uint32_t)row, .power = here};

    if (!(here > s->threshold)) /* with CFAR, a cell above its CFAR level may be below the
                                 * threshold */
        return;
    if (!pnr_plan_is_in_gate(s->map.plan, cell / s->map.plan->oversample)) {
        take_outside(s, &candidate);
        return;
    }
    s->n_above++;
    if (is_greatest(s, code, row, cell, here)) {
        s->n_maxima++;
        keep_candidate(s, &candidate);
    }
}

/* --- the scan of a dwell --- */

/* Lists the parts [first, end) of a row that must be scanned, in ascending order. Returns the
 * number of parts. If the gate wraps, part 0 begins at lag 0, and part 1 at gate_first. If
 * has_outside, or if the powers are in the order of places, the whole row is one part. */
static size_t split_gate(const search *s, size_t (*parts)[2])
{
    const pnr_plan *plan = s->map.plan;
    const size_t n = plan->n_lags, end = plan->gate_first + plan->gate_count;
    size_t count = 0;

    if (s->places != NULL) {
        parts[0][0] = 0;
        parts[0][1] = s->places->n_places;
        return 1;
    }
    if (plan->has_outside) {
        parts[0][0] = 0;
        parts[0][1] = s->map.n_cells;
        return 1;
    }
    if (end > n) {
        parts[count][0] = 0;
        parts[count++][1] = (end - n) * plan->oversample;
    }
    parts[count][0] = plan->gate_first * plan->oversample;
    parts[count++][1] = (end < n ? end : n) * plan->oversample;
    return count;
}

/* Calls take_cell for a cell that is above the CFAR level or the threshold. at: index of the power
 * of the cell in the line. If `above` is not NULL, only marks the cell in this bitmap. */
static void take_place(search *s, size_t number, size_t at, uint64_t *above)
{
    const size_t cell = s->places != NULL ? s->places->lag_at[at] : at;

    if (above != NULL)
        above[cell / 64] |= (uint64_t)1 << cell % 64;
    else
        take_cell(s, number, cell);
}

/* Scans a part of a row, block by block. Without CFAR nearly every block is below the threshold;
 * only the maximum of such a block is computed. Calls take_place for each cell that is above. */
static void scan_part(search *s, size_t number, const size_t part[2], uint64_t *above)
{
    const float *line = s->map.power + number * s->map.n_cells;

    for (size_t at = part[0]; at < part[1]; at += BLOCK) {
        const size_t n = part[1] - at < BLOCK ? part[1] - at : BLOCK;
        bool is_above[BLOCK];

        if (s->map.factor != NULL) {
            pnr_search_cfar_test(&s->map, number, part, at, n, is_above);
        } else {
            if (!(greatest_of(line + at, n) > s->threshold))
                continue;
            for (size_t i = 0; i < n; i++)
                is_above[i] = line[at + i] > s->threshold;
        }
        for (size_t i = pnr_search_next(is_above, 0, n); i < n;
             i = pnr_search_next(is_above, i + 1, n))
            take_place(s, number, at + i, above);
    }
}

/* Calls take_cell for each marked cell of a line. pnr_search_scan_line has marked the cells above
 * the CFAR level in `above`. */
static void take_marked_cells(search *s, size_t number)
{
    for (size_t w = 0; w < pnr_search_words(s->map.plan); w++)
        for (uint64_t rest = s->lines[number].above[w]; rest != 0; rest &= rest - 1)
            take_cell(s, number, 64 * w + (size_t)__builtin_ctzll(rest));
}

/* Scans the gate of every row, or all cells if has_outside. */
static void scan_dwell(search *s)
{
    size_t parts[2][2];
    const size_t n_parts = split_gate(s, parts);

    s->n_kept = 0;
    s->n_above = s->n_maxima = 0;
    s->outside = (pnr_candidate){.code = UINT16_MAX};
    for (size_t number = 0; number < s->map.plan->n_codes * s->map.n_rows; number++) {
        if (s->lines != NULL && s->map.factor != NULL)
            take_marked_cells(s, number);
        else if (s->lines == NULL || s->lines[number].greatest > s->threshold)
            for (size_t i = 0; i < n_parts; i++)
                scan_part(s, number, parts[i], NULL);
    }
    s->is_full = s->n_kept == s->most;
    if (s->outside.power > 0)
        insert_candidate(s, &s->outside);
}

/* --- the mean of the columns without echoes --- */

size_t pnr_search_lag(const pnr_plan *plan, uint32_t cell, int j)
{
    const size_t n = plan->n_lags;

    return (cell / plan->oversample + n * PNR_NEIGHBOURS + (size_t)(j + REACH) - REACH) % n;
}

static size_t centre_of(const search *s, size_t i)
{
    return s->kept[i].cell / s->map.plan->oversample;
}

/* True if a candidate before i already excludes this lag for the code of candidate i. */
static bool is_left_out(const search *s, size_t i, size_t lag)
{
    for (size_t e = 0; e < i; e++) {
        const size_t centre = centre_of(s, e);
        const size_t distance = lag > centre ? lag - centre : centre - lag;

        if (s->kept[e].code == s->kept[i].code &&
            (distance <= REACH ||
             (!s->map.plan->linear && s->map.plan->n_lags - distance <= REACH)))
            return true;
    }
    return false;
}

/* Sums P of all rows at an integer lag of a code. */
static double sum_column(const search *s, size_t code, size_t lag)
{
    if (s->map.n_rows == 1)
        return (double)power_at(s, code, 0, lag * s->map.plan->oversample);
    return sum_exactly(row_of(s, code, 0) + lag * s->map.plan->oversample, s->map.n_rows,
                       s->map.n_cells);
}

/* Returns the mean power of the columns that no kept candidate excludes, or -INFINITY if fewer than
 * half of the columns remain. */
static double find_rest(const search *s, double noise_sum)
{
    const pnr_plan *plan = s->map.plan;
    const size_t n = plan->n_lags;
    const size_t n_columns = plan->n_codes * (plan->filter != NULL ? plan->gate_count : n);
    double sum = 0;
    size_t n_out = 0;

    for (size_t i = 0; i < s->n_kept; i++) {
        /* each lag counts once, even if the code is shorter than the neighbourhood */
        for (size_t j = 0; j < PNR_NEIGHBOURS && j < n; j++) {
            const size_t at = centre_of(s, i) + n * PNR_NEIGHBOURS + j - REACH, lag = at % n;

            if ((plan->linear && at / n != PNR_NEIGHBOURS) ||
                (plan->filter != NULL && !pnr_plan_is_in_gate(plan, lag)) || is_left_out(s, i, lag))
                continue;
            sum += sum_column(s, s->kept[i].code, lag);
            n_out++;
        }
    }
    if (n_columns - n_out < (n_columns + 1) / 2)
        return -INFINITY;
    return (noise_sum - sum) / (double)((n_columns - n_out) * s->map.n_rows);
}

/* --- the functions of search.h --- */

static search begin_search(const pnr_plan *plan, const float *power, size_t looks_used)
{
    const size_t side = plan->cfar.training + 1;
    const bool is_cfar = plan->cfar.kind != PNR_CFAR_OFF && looks_used > 0;

    return (search){
        .map = {.plan = plan,
                .power = power,
                .n_rows = pnr_plan_rows(plan),
                .n_cells = plan->n_lags * plan->oversample,
                .factor = is_cfar ? plan->cfar.factor + (looks_used - 1) * side * side : NULL},
        .is_plain = pnr_plan_is_plain(plan),
        .most = plan->max_candidates - (plan->has_outside ? 1 : 0),
    };
}

size_t pnr_search_words(const pnr_plan *plan)
{
    return plan->cfar.kind != PNR_CFAR_OFF ? (plan->n_lags * plan->oversample + 63) / 64 : 0;
}

void pnr_search_scan_line(const pnr_plan *plan, const float *power, size_t looks_used,
                          size_t number, pnr_search_line *line)
{
    search s = begin_search(plan, power, looks_used);
    const float *cells = power + number * s.map.n_cells;
    size_t parts[2][2];
    const size_t n_parts = split_gate(&s, parts);

    line->sum = sum_line(&s, number);
    line->greatest = 0;
    for (size_t w = 0; w < pnr_search_words(plan); w++)
        line->above[w] = 0;
    for (size_t p = 0; p < n_parts; p++) {
        if (s.map.factor != NULL) {
            scan_part(&s, number, parts[p], line->above);
        } else {
            const float greatest = greatest_of(cells + parts[p][0], parts[p][1] - parts[p][0]);

            line->greatest = greatest > line->greatest ? greatest : line->greatest;
        }
    }
}

/* Runs all searches of a dwell that has a used window. */
static void repeat_search(search *s, double energy_of_code, pnr_dwell *dwell)
{
    const pnr_plan *plan = s->map.plan;
    const bool is_cfar = plan->cfar.kind != PNR_CFAR_OFF;
    const double ratio = is_cfar ? PNR_CFAR_LEAST : plan->threshold[dwell->n_periods - 1];
    const double rounding = 1e-12 * dwell->energy * energy_of_code * dwell->n_periods;

    for (int i = 0; i < (is_cfar ? 1 : PNR_MAX_SEARCHES); i++) {
        s->threshold = (float)(ratio * dwell->floor);
        scan_dwell(s);
        if (i == 0)
            dwell->n_above = s->n_above;

        const double rest = find_rest(s, dwell->noise_sum);
        const double floor = rest > rounding ? rest : rounding;

        if (isinf(rest) || (!is_cfar && (i + 1 == PNR_MAX_SEARCHES ||
                                         !(floor < PNR_LOWER_FLOOR(s->n_kept) * dwell->floor))))
            break;
        dwell->floor = floor;
        if (s->is_full)
            break; /* a lower threshold adds only weaker candidates */
    }
}

void pnr_search_dwell(const pnr_plan *plan, double energy_of_code, const float *power,
                      size_t looks_used, const pnr_search_line *lines,
                      const pnr_search_places *places, pnr_dwell *dwell, pnr_candidate *out)
{
    search s = begin_search(plan, power, looks_used);

    s.lines = lines;
    s.places = places;
    s.kept = out;
    dwell->noise_sum = 0;
    dwell->n_above = 0;
    if (dwell->n_periods > 0 && looks_used > 0) {
        for (size_t i = 0; i < plan->n_codes * s.map.n_rows; i++)
            dwell->noise_sum += lines != NULL ? lines[i].sum : sum_line(&s, i);
        repeat_search(&s, energy_of_code, dwell);
    } else {
        dwell->floor = 0;
    }
    dwell->n_maxima = s.n_maxima;
    dwell->n_candidates = (uint32_t)s.n_kept;
}
