/* SPDX-License-Identifier: MIT */
/* Compares the search with a simple search that tests every cell, on random dwells of all kinds. */
#include "engine/search.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

#include <float.h>

enum { MAX_TRAINING = 40, MAX_LOOKS = 2, MOST = 700 };

/* --- the simple search, which lists all cells of the gate --- */

typedef struct plain {
    const pnr_plan *plan;
    const float *power;
    size_t n_rows, n_cells, looks_used;
} plain;

/* Gives the value at a row and cell of a code. Returns false if there is no such cell. */
static bool value_at(const plain *m, size_t code, long row, long cell, float *value)
{
    const long n = (long)m->n_cells;

    if (row < 0 || row >= (long)m->n_rows || (m->plan->linear && (cell < 0 || cell >= n)))
        return false;
    cell = ((cell % n) + n) % n;
    *value = m->power[(code * m->n_rows + (size_t)row) * m->n_cells + (size_t)cell];
    return true;
}

static bool in_gate(const pnr_plan *plan, size_t lag)
{
    for (size_t i = 0; i < plan->gate_count; i++)
        if ((plan->gate_first + i) % plan->n_lags == lag)
            return true;
    return false;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Gives the level of a cell, which is Z times the factor. Returns false if the cell has no training
 * cell. */
static bool limit_of(const plain *m, size_t code, long row, long cell, double *limit)
{
    const pnr_plan *plan = m->plan;
    const pnr_cfar *cfar = &plan->cfar;
    double z[2 * MAX_TRAINING], mean[2] = {0};
    size_t n = 0, count[2] = {0};

    for (int after = 0; after < 2; after++)
        for (size_t i = 0; i < cfar->training; i++) {
            const long d = (long)(cfar->guard + 1 + i * cfar->stride) * (after ? 1 : -1);
            const long os = (long)plan->oversample, lags = (long)plan->n_lags;
            const bool rows = cfar->axis == PNR_CFAR_ALONG_ROWS;
            float value;

            if (!value_at(m, code, rows ? row + d : row, rows ? cell : cell + d * os, &value) ||
                (!rows && plan->filter != NULL &&
                 !in_gate(plan, (size_t)((((cell / os + d) % lags) + lags) % lags))))
                continue;
            z[n++] = (double)value;
            mean[after] += (double)value;
            count[after]++;
        }
    if (n == 0)
        return false;

    const double factor = cfar->factor[((m->looks_used - 1) * (cfar->training + 1) + count[0]) *
                                           (cfar->training + 1) +
                                       count[1]];
    const double all = (mean[0] + mean[1]) / (double)n;

    for (int after = 0; after < 2; after++)
        mean[after] = count[after] > 0 ? mean[after] / (double)count[after] : all;
    qsort(z, n, sizeof *z, by_value);
    switch (cfar->kind) {
    case PNR_CFAR_CA:
        *limit = factor * all;
        break;
    case PNR_CFAR_GO:
        *limit = factor * fmax(mean[0], mean[1]);
        break;
    case PNR_CFAR_SO:
        *limit = factor * fmin(mean[0], mean[1]);
        break;
    default:
        *limit = factor * z[(size_t)ceil(0.75 * (double)n) - 1];
    }
    return true;
}

static bool is_maximum(const plain *m, size_t code, long row, long cell, float here)
{
    const long rows = (long)m->plan->exclusion_rows, cells = (long)m->plan->exclusion_cells;

    for (long r = -rows; r <= rows; r++)
        for (long c = -cells; c <= cells; c++) {
            float other;

            if ((r == 0 && c == 0) || !value_at(m, code, row + r, cell + c, &other))
                continue;
            if (r < 0 || (r == 0 && c < 0) ? other >= here : other > here)
                return false;
        }
    return true;
}

static int by_power(const void *a, const void *b)
{
    const pnr_candidate *x = a, *y = b;

    if (x->power != y->power)
        return x->power > y->power ? -1 : 1;
    return x->code != y->code   ? (int)x->code - (int)y->code
           : x->row != y->row   ? (int)x->row - (int)y->row
           : x->cell != y->cell ? (int)x->cell - (int)y->cell
                                : 0;
}

static int by_place(const void *a, const void *b)
{
    const pnr_candidate *x = a, *y = b;

    return x->code != y->code   ? (int)x->code - (int)y->code
           : x->row != y->row   ? (int)x->row - (int)y->row
           : x->cell != y->cell ? (int)x->cell - (int)y->cell
                                : 0;
}

/* Writes all maxima above their levels to `all`: first those that are kept, in the order of code,
 * row and cell. Returns whether all places in the gate are taken. */
static bool look_plainly(const plain *m, double floor, pnr_dwell *dwell, pnr_candidate *all)
{
    const pnr_plan *plan = m->plan;
    const size_t most = plan->max_candidates - (plan->has_outside ? 1 : 0);
    pnr_candidate outside = {.power = 0};
    size_t n = 0, above = 0;

    for (size_t code = 0; code < plan->n_codes; code++)
        for (size_t row = 0; row < m->n_rows; row++)
            for (size_t cell = 0; cell < m->n_cells; cell++) {
                double limit = (double)(float)(plan->threshold[dwell->n_periods - 1] * floor);
                float here = 0;

                value_at(m, code, (long)row, (long)cell, &here);
                if (plan->has_outside && !in_gate(plan, cell / plan->oversample) &&
                    (double)here > limit && here > outside.power &&
                    is_maximum(m, code, (long)row, (long)cell, here))
                    outside = (pnr_candidate){.code = (uint16_t)code,
                                              .row = (uint32_t)row,
                                              .cell = (uint32_t)cell,
                                              .power = here};
                if (!in_gate(plan, cell / plan->oversample) || !(here > 0) ||
                    (plan->cfar.kind != PNR_CFAR_OFF && !((double)here > 1e-6 * floor)) ||
                    (plan->cfar.kind != PNR_CFAR_OFF &&
                     !limit_of(m, code, (long)row, (long)cell, &limit)) ||
                    !((double)here > limit))
                    continue;
                above++;
                if (is_maximum(m, code, (long)row, (long)cell, here))
                    all[n++] = (pnr_candidate){.code = (uint16_t)code,
                                               .row = (uint32_t)row,
                                               .cell = (uint32_t)cell,
                                               .power = here};
            }
    qsort(all, n, sizeof *all, by_power);
    dwell->n_above = (uint32_t)above;
    dwell->n_maxima = (uint32_t)n;
    dwell->n_candidates = (uint32_t)(n < most ? n : most);
    if (outside.power > 0)
        all[dwell->n_candidates++] = outside;
    qsort(all, dwell->n_candidates, sizeof *all, by_place);
    return n >= most;
}

/* Returns the mean of the columns that no kept candidate reaches, or -1 if fewer than half of the
 * columns are left. */
static double rest_plainly(const plain *m, const pnr_dwell *dwell, const pnr_candidate *kept)
{
    const pnr_plan *plan = m->plan;
    size_t n_columns = 0, n_left = 0;
    double sum = 0;

    for (size_t code = 0; code < plan->n_codes; code++)
        for (size_t lag = 0; lag < plan->n_lags; lag++) {
            bool taken = false;

            if (plan->filter != NULL && !in_gate(plan, lag))
                continue;
            for (size_t i = 0; i < dwell->n_candidates; i++)
                for (long j = -8; j <= 8; j++) {
                    const long at = (long)(kept[i].cell / plan->oversample) + j;
                    const long n = (long)plan->n_lags;

                    taken |= kept[i].code == code &&
                             (plan->linear ? at : ((at % n) + n) % n) == (long)lag;
                }
            n_columns++;
            if (taken)
                continue;
            n_left++;
            for (size_t row = 0; row < m->n_rows; row++)
                sum += (double)
                           m->power[(code * m->n_rows + row) * m->n_cells + lag * plan->oversample];
        }
    return 2 * n_left >= n_columns ? sum / (double)(n_left * m->n_rows) : -1;
}

/* Returns the greatest rounding error of the floor of a plain dwell, whose powers are added in
 * floats. A power takes part in at most 11 sums of its lane and 6 sums of lanes (MOST = 700 powers,
 * 64 lanes). The error of a strong echo in these sums stays when the echo is subtracted, and at
 * least half of the lags share it: 17 (FLT_EPSILON / 2) noise_sum / (n / 2). */
static double floor_error(const pnr_plan *plan, const pnr_dwell *dwell)
{
    return 1e-5 * dwell->floor + 17 * FLT_EPSILON * dwell->noise_sum / (double)plan->n_lags;
}

/* Tells whether rounding decides if some cell is above the threshold. */
static bool is_close(const plain *m, const pnr_dwell *dwell)
{
    const double ratio = m->plan->threshold[dwell->n_periods - 1];

    for (size_t i = 0; i < m->plan->n_codes * m->n_rows * m->n_cells; i++)
        if (fabs((double)m->power[i] - ratio * dwell->floor) <= ratio * floor_error(m->plan, dwell))
            return true;
    return false;
}

/* Searches a dwell. Returns whether rounding decides the number of searches or what a later search
 * finds. */
static bool search_plainly(const plain *m, double energy_of_code, pnr_dwell *dwell,
                           pnr_candidate *all)
{
    bool is_any_close = false;
    const bool is_cfar = m->plan->cfar.kind != PNR_CFAR_OFF;
    uint32_t n_above = 0;

    dwell->noise_sum = 0;
    for (size_t i = 0; i < m->plan->n_codes * m->n_rows * m->n_cells; i += m->plan->oversample)
        dwell->noise_sum += (double)m->power[i];
    for (int i = 0; i < (is_cfar ? 1 : 3); i++) {
        bool is_full;
        double rest;

        is_any_close |= i > 0 && is_close(m, dwell);
        is_full = look_plainly(m, dwell->floor, dwell, all);
        n_above = i == 0 ? dwell->n_above : n_above;
        rest = rest_plainly(m, dwell, all);
        if (rest < 0)
            break;
        rest = fmax(rest, 1e-12 * dwell->energy * energy_of_code * dwell->n_periods);

        const double lower = (dwell->n_candidates > 0 ? 0.95 : 0.7) * dwell->floor;

        is_any_close |= !is_cfar && i < 2 && fabs(rest - lower) <= floor_error(m->plan, dwell);
        if (!is_cfar && (i == 2 || rest >= lower))
            break;
        dwell->floor = rest;
        if (is_full)
            break;
    }
    dwell->n_above = n_above;
    return is_any_close;
}

/* --- random dwells --- */

typedef struct world {
    pnr_plan plan;
    pnr_hypothesis hypotheses[2];
    double threshold[6], *factor, filter[1][2];
    float *power;
    size_t n_values, n_rows;
} world;

/* Returns a plan of one window of n samples. Its gate has all lags, and it keeps one candidate. */
static pnr_plan plain_plan(size_t n, const double *threshold)
{
    return (pnr_plan){.n_samples = n,
                      .n_lags = n,
                      .n_codes = 1,
                      .n_hypotheses = 1,
                      .n_looks = 1,
                      .n_periods = 1,
                      .oversample = 1,
                      .threshold = threshold,
                      .gate_count = n,
                      .exclusion_cells = 1,
                      .exclusion_rows = 1,
                      .max_candidates = 1};
}

static void world_create(world *w, size_t n_lags)
{
    const size_t training = 1 + below(uniform() < 0.1 ? MAX_TRAINING : 6);
    const bool linear = n_lags > 40 && uniform() < 0.4;
    pnr_plan *p = &w->plan;
    size_t n_factors;

    memset(w, 0, sizeof *w);
    w->hypotheses[0].n_rows = 1 + (uint32_t)below(7);
    w->hypotheses[1].n_rows = 1 + (uint32_t)below(3);
    for (size_t i = 0; i < 6; i++)
        w->threshold[i] = 1 + 4 * uniform();
    *p = (pnr_plan){
        .n_samples = n_lags,
        .n_lags = n_lags,
        .linear = linear,
        .n_codes = 1 + below(3),
        .n_hypotheses = 1 + below(2),
        .hypotheses = w->hypotheses,
        .n_looks = MAX_LOOKS,
        .n_periods = 3,
        .oversample = 1 + below(2),
        .threshold = w->threshold,
        .gate_first = linear ? 8 + below(10) : below(n_lags),
        .gate_count = linear ? n_lags - 30 : 1 + below(n_lags),
        .exclusion_cells = 1 + below(uniform() < 0.1 ? 100 : 4),
        .exclusion_rows = 1 + below(3),
        .max_candidates = 1 + below(uniform() < 0.5 ? 4 : 64),
        .cfar = {.kind = (pnr_cfar_kind)below(5),
                 .axis = (pnr_cfar_axis)below(2),
                 .guard = below(3),
                 .training = training,
                 .stride = 1 + below(3)},
    };
    w->n_rows = w->hypotheses[0].n_rows + (p->n_hypotheses > 1 ? w->hypotheses[1].n_rows : 0);
    if (p->oversample == 1 && uniform() < 0.3)
        /* only the number of candidates is tested here, so the filter is a dummy */
        p->filter = (const double(*)[2])w->filter;
    if (!linear && p->filter == NULL && p->cfar.kind == PNR_CFAR_OFF && p->max_candidates > 1)
        p->has_outside = uniform() < 0.5;
    n_factors = MAX_LOOKS * (training + 1) * (training + 1);
    w->factor = calloc(n_factors, sizeof *w->factor);
    w->n_values = p->n_codes * w->n_rows * n_lags * p->oversample;
    w->power = calloc(w->n_values, sizeof *w->power);
    assert_true(w->factor != NULL && w->power != NULL);
    for (size_t i = 0; i < n_factors; i++)
        w->factor[i] = 0.7 + 3 * uniform();
    p->cfar.factor = w->factor;

    const bool has_ties = uniform() < 0.5;

    for (size_t i = 0; i < w->n_values; i++) {
        const double power = -log(1 - uniform()) * (uniform() < 0.02 ? 50 : 1);

        if (p->filter == NULL || in_gate(p, i / p->oversample % n_lags))
            w->power[i] = (float)(has_ties ? floor(4 * power) / 4 : power);
    }
}

/* Checks that the bits are the same if all lines are scanned beforehand, beginning with the last
 * line. */
static void check_lines(const world *w, size_t looks, double energy_of_code, const pnr_dwell *empty,
                        const pnr_dwell *want, const pnr_candidate *candidates)
{
    const pnr_plan *p = &w->plan;
    const size_t n_lines = p->n_codes * w->n_rows, n_words = pnr_search_words(p);
    pnr_search_line *lines = calloc(n_lines, sizeof *lines);
    uint64_t *above = malloc((n_lines * n_words + 1) * sizeof *above);
    pnr_dwell got = *empty;
    pnr_candidate out[PNR_MAX_CANDIDATES];

    assert_true(lines != NULL && above != NULL);
    memset(above, 0xff, (n_lines * n_words + 1) * sizeof *above);
    memset(out, 0xff, sizeof out);
    for (size_t i = n_lines; i-- > 0;) {
        lines[i].above = above + i * n_words;
        pnr_search_scan_line(p, w->power, looks, i, &lines[i]);
    }
    assert_true(above[n_lines * n_words] == UINT64_MAX);
    pnr_search_dwell(p, energy_of_code, w->power, looks, lines, NULL, &got, out);
    assert_memory_equal(&got, want, sizeof got);
    assert_memory_equal(out, candidates, sizeof out);
    free(lines);
    free(above);
}

/* Numbers of random dwells that had a second search, too many maxima, or equal powers. */
typedef struct met {
    size_t n_repeated, n_overfull, n_tied;
} met;

static void check(const world *w, const pnr_dwell *empty, double energy_of_code, size_t looks,
                  met *count)
{
    const pnr_plan *p = &w->plan;
    /* sums of a plain dwell are in single precision */
    const bool is_plain = pnr_plan_is_plain(p);
    const double rounding = is_plain ? 1e-5 : 1e-12;
    pnr_dwell got = *empty, want = *empty;
    const plain m = {p, w->power, w->n_rows, p->n_lags * p->oversample, looks};
    pnr_candidate *all = calloc(w->n_values, sizeof *all);
    pnr_candidate out[PNR_MAX_CANDIDATES];

    memset(out, 0xff, sizeof out);
    assert_non_null(all);

    const bool is_rounded = search_plainly(&m, energy_of_code, &want, all);

    pnr_search_dwell(p, energy_of_code, w->power, looks, NULL, NULL, &got, out);
    check_lines(w, looks, energy_of_code, empty, &got, out);
    assert_true(fabs(got.noise_sum - want.noise_sum) <= rounding * want.noise_sum);
    assert_int_equal(got.n_above, want.n_above);
    if (!is_rounded || !is_plain) {
        assert_true(fabs(got.floor - want.floor) <=
                    (is_plain ? floor_error(p, &want) : 10 * rounding * want.floor));
        assert_int_equal(got.n_maxima, want.n_maxima);
        assert_int_equal(got.n_candidates, want.n_candidates);
        for (size_t i = 0; i < got.n_candidates; i++) {
            assert_int_equal(out[i].code, all[i].code);
            assert_int_equal(out[i].row, all[i].row);
            assert_int_equal(out[i].cell, all[i].cell);
            assert_int_equal(out[i].channel, 0);
            assert_true(out[i].power == all[i].power);
        }
        count->n_repeated += want.floor < 0.9 * empty->floor;
        count->n_overfull += want.n_maxima > want.n_candidates;
        for (size_t i = 1; i < got.n_candidates; i++)
            if (out[i].power == out[i - 1].power) {
                count->n_tied++;
                break;
            }
    }
    free(all);
}

TEST(test_random)
{
    size_t n_found[5] = {0};
    met count = {0};

    for (size_t trial = 0; trial < 2500; trial++) {
        world w;

        /* some codes are shorter than a neighbourhood, and some rows longer than a block */
        world_create(&w, trial % 50 == 0  ? 700 + below(900)
                         : trial % 5 == 0 ? 1 + below(20)
                                          : 20 + below(150));

        const pnr_dwell empty = {
            .energy = 1 + uniform(), .n_periods = 1 + (uint32_t)below(6), .floor = uniform()};

        check(&w, &empty, 3, 1 + below(MAX_LOOKS), &count);
        n_found[w.plan.cfar.kind]++;
        free(w.factor);
        free(w.power);
    }
    for (size_t i = 0; i < 5; i++)
        assert_true(n_found[i] > 100);
}

/* Tests plain dwells: one code, one row, one window, a threshold, and echoes of up to 5000 times
 * the noise. */
TEST(test_plain)
{
    static float power[2 * MOST];
    met count = {0};

    for (int round = 0; round < 3000; round++) {
        const size_t n = 1 + below(MOST), oversample = 1 + below(2);
        const bool is_coarse = below(2) == 0; /* few levels of power, so that many are equal */
        world w = {.threshold = {1 + (double)below(90) / 10},
                   .power = power,
                   .n_values = n * oversample,
                   .n_rows = 1};
        pnr_dwell empty = {.n_periods = 1};

        w.plan = plain_plan(n, w.threshold);
        w.plan.oversample = oversample;
        w.plan.gate_first = below(n);
        w.plan.gate_count = 1 + below(n);
        w.plan.max_candidates = 1 + below(9);
        w.plan.has_outside = w.plan.max_candidates > 1 && below(2) == 0;
        for (size_t i = 0; i < w.n_values; i++) {
            const double x = -log(1 - uniform());

            power[i] = is_coarse ? floorf((float)x * 2) / 2 : (float)x;
        }
        for (size_t echoes = below(4); echoes > 0; echoes--)
            power[below(w.n_values)] = (float)(10 + below(5000));
        for (size_t k = 0; k < n; k++)
            empty.floor += (double)power[k * oversample] / (double)n;
        empty.energy = empty.floor; /* the code has the energy N */
        check(&w, &empty, (double)n, 1, &count);
    }
    /* the random dwells contained all cases that this test is for */
    assert_true(count.n_repeated > 100 && count.n_overfull > 100 && count.n_tied > 100);
}

/* The order of the powers does not change the result, even if some powers belong to no lag. Powers
 * are whole numbers, so that sums do not depend on the order. */
TEST(test_places)
{
    static float power[MOST], placed[2 * MOST];
    static uint32_t place[MOST], lag_at[2 * MOST];
    const pnr_search_places places = {place, lag_at, (size_t)2 * MOST};

    for (int round = 0; round < 1000; round++) {
        const size_t n = 1 + below(MOST);
        const double threshold = 1 + (double)below(60) / 10;
        pnr_plan plan = plain_plan(n, &threshold);
        pnr_candidate found[PNR_MAX_CANDIDATES], want[PNR_MAX_CANDIDATES];
        pnr_dwell dwell = {.energy = 8, .n_periods = 1, .floor = 8}, same = dwell;

        plan.gate_first = below(n);
        plan.gate_count = 1 + below(n);
        plan.max_candidates = 1 + below(9);
        plan.has_outside = plan.max_candidates > 1 && below(2) == 0;
        memset(placed, 0, sizeof placed);
        for (size_t k = 0; k < n; k++) {
            size_t at = below((size_t)2 * MOST);

            power[k] = (float)(1 + below(below(20) == 0 ? 500 : 20)); /* 0 marks a free place */
            while (placed[at] != 0)
                at = (at + 1) % ((size_t)2 * MOST);
            placed[at] = power[k];
            place[k] = (uint32_t)at;
            lag_at[at] = (uint32_t)k;
        }
        pnr_search_dwell(&plan, (double)n, power, 1, NULL, NULL, &dwell, want);
        pnr_search_dwell(&plan, (double)n, placed, 1, NULL, &places, &same, found);
        assert_memory_equal(&same, &dwell, sizeof dwell);
        for (size_t i = 0; i < dwell.n_candidates; i++) {
            assert_int_equal(found[i].cell, want[i].cell);
            assert_true(found[i].power == want[i].power);
        }
    }
}

TEST(test_neighbour_lags)
{
    const pnr_plan plan = {.n_lags = 1023, .oversample = 2}, tiny = {.n_lags = 5, .oversample = 1};

    assert_int_equal(pnr_search_lag(&plan, 7, 0), 3); /* cell 7 is lag 3.5 */
    assert_int_equal(pnr_search_lag(&plan, 0, -8), 1015);
    assert_int_equal(pnr_search_lag(&plan, 2044, 8), 7);
    assert_int_equal(pnr_search_lag(&tiny, 1, -8), 3);
    assert_int_equal(pnr_search_lag(&tiny, 4, 8), 2);
}

/* With noise of power 1 and an echo of 10^14, the CFAR level beyond the echo is that of the
 * noise. */
TEST(test_beside_a_strong_echo)
{
    enum { N = 4096, TRAINING = 8 };
    const double threshold = 5;
    double factor[(TRAINING + 1) * (TRAINING + 1)];
    static float power[N];

    for (size_t i = 0; i < sizeof factor / sizeof *factor; i++)
        factor[i] = 1.5;
    for (pnr_cfar_kind kind = PNR_CFAR_CA; kind <= PNR_CFAR_OS; kind++) {
        pnr_plan plan = plain_plan(N, &threshold);
        pnr_dwell dwell = {.energy = 1, .n_periods = 1, .floor = 1};
        pnr_candidate out[8];

        plan.max_candidates = 8;
        plan.cfar = (pnr_cfar){.kind = kind,
                               .axis = PNR_CFAR_ALONG_LAGS,
                               .guard = 1,
                               .training = TRAINING,
                               .stride = 1,
                               .factor = factor};
        for (size_t i = 0; i < N; i++)
            power[i] = 1;
        power[1000] = 1e14f;
        /* the first cell whose training cells do not contain the echo */
        power[1000 + TRAINING + 3] = 1.6f;
        power[3000] = 1.6f;
        power[4000] = 1.4f;
        pnr_search_dwell(&plan, 1, power, 1, NULL, NULL, &dwell, out);
        assert_int_equal(dwell.n_candidates, 3);
        assert_int_equal(out[0].cell, 1000);
        assert_int_equal(out[1].cell, 1000 + TRAINING + 3);
        assert_int_equal(out[2].cell, 3000);
        /* the floor does not contain the power of the echo */
        assert_true(fabs(dwell.floor - 1) < 0.02);
    }
}

/* If no window is used, nothing is found, whatever the powers are. */
TEST(test_nothing_used)
{
    const double threshold = 1;
    const float power[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    pnr_plan plan = plain_plan(8, &threshold);
    pnr_dwell dwell = {.noise_sum = 7, .n_above = 7, .n_maxima = 7, .n_candidates = 7};
    const pnr_dwell none = {0};
    pnr_candidate out[1];

    plan.n_looks = 2;
    pnr_search_dwell(&plan, 1, power, 0, NULL, NULL, &dwell, out);
    assert_memory_equal(&dwell, &none, sizeof none);
}
