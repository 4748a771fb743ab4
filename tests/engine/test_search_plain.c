/* SPDX-License-Identifier: MIT */
/* The search against the rules of engine.h written down once more, slowly. */
#include "engine/search_plain.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

enum { MOST = 700 };

typedef struct slow {
    double floor;
    bool is_close; /* a cell is at the threshold of a later search but for the floor's rounding */
    uint32_t n_above, n_above_first, n_maxima, n_kept;
    uint32_t cell[PNR_MAX_CANDIDATES];
} slow;

static float at(const pnr_power *p, long cell)
{
    const long cells = (long)(p->n_samples * p->oversample);

    cell = (cell + cells) % cells;
    return p->lag[cell % (long)p->oversample][cell / (long)p->oversample];
}

static bool is_maximum(const pnr_power *p, long cell, float threshold)
{
    return at(p, cell) > threshold && at(p, cell) > at(p, cell - 1) &&
           at(p, cell) >= at(p, cell + 1);
}

/* Repeatedly the strongest that is left, of equals the lowest; then by cell. */
static void choose(const pnr_plan *plan, const pnr_power *p, float threshold, slow *out)
{
    const size_t cells = p->n_samples * p->oversample;
    bool taken[2 * MOST] = {false}, inside[2 * MOST] = {false};

    out->n_above = out->n_maxima = out->n_kept = 0;
    for (size_t i = 0; i < plan->gate_count; i++)
        for (size_t h = 0; h < p->oversample; h++)
            inside[(plan->gate_first + i) % p->n_samples * p->oversample + h] = true;
    for (size_t c = 0; c < cells; c++)
        if (inside[c]) {
            out->n_above += at(p, (long)c) > threshold;
            out->n_maxima += is_maximum(p, (long)c, threshold);
        }
    for (size_t k = 0; k < plan->max_candidates; k++) {
        long best = -1;

        for (size_t c = 0; c < cells; c++)
            if (inside[c] && !taken[c] && is_maximum(p, (long)c, threshold) &&
                (best < 0 || at(p, (long)c) > at(p, best)))
                best = (long)c;
        if (best < 0)
            break;
        taken[best] = true;
    }
    for (size_t c = 0; c < cells; c++)
        if (taken[c])
            out->cell[out->n_kept++] = (uint32_t)c;
}

static void search_slowly(const pnr_plan *plan, double energy_of_code, const pnr_power *p,
                          const pnr_dwell *dwell, slow *out)
{
    const size_t n = p->n_samples;
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += (double)p->lag[0][k];
    out->floor = dwell->energy * energy_of_code / (double)n;
    out->is_close = false;
    for (int search = 0; search < PNR_MAX_SEARCHES; search++) {
        bool near[MOST] = {false};
        const double threshold = plan->threshold[dwell->n_periods - 1] * out->floor;
        double taken = 0;
        size_t left = n;

        choose(plan, p, (float)threshold, out);
        for (size_t c = 0; search > 0 && c < n * p->oversample; c++)
            out->is_close |= fabs((double)at(p, (long)c) - threshold) <= 1e-5 * threshold;
        if (search == 0)
            out->n_above_first = out->n_above;
        for (size_t i = 0; i < out->n_kept; i++)
            for (int j = -8; j <= 8; j++)
                near[((long)(out->cell[i] / p->oversample) + j + 100 * (long)n) % (long)n] = true;
        for (size_t k = 0; k < n; k++)
            if (near[k]) {
                taken += (double)p->lag[0][k];
                left--;
            }
        if (search == PNR_MAX_SEARCHES - 1 || out->n_kept == 0 || 2 * left < n)
            return;

        const double rounding = 1e-12 * dwell->energy * energy_of_code * dwell->n_periods;
        const double rest = fmax((sum - taken) / (double)left, rounding);

        if (!(rest < 0.95 * out->floor))
            return;
        out->floor = rest;
        if (out->n_kept == plan->max_candidates)
            return;
    }
}

TEST(test_random)
{
    static float power[2][MOST];
    int n_repeated = 0, n_overfull = 0, n_tied = 0;

    for (int round = 0; round < 3000; round++) {
        const size_t n = 1 + below(MOST), oversample = 1 + below(2);
        const double threshold[3] = {1 + (double)below(90) / 10, 4, 3};
        const bool coarse = below(2) == 0; /* few levels: many ties */
        const pnr_power p = {.lag = {power[0], power[1]}, .n_samples = n, .oversample = oversample};
        const pnr_plan plan = {.n_samples = n,
                               .oversample = oversample,
                               .gate_first = below(n),
                               .gate_count = 1 + below(n),
                               .threshold = threshold,
                               .max_candidates = 1 + below(9)};
        pnr_candidate found[PNR_MAX_CANDIDATES];
        pnr_dwell dwell = {.n_periods = 1};
        double mean = 0;
        slow want;

        for (size_t h = 0; h < oversample; h++)
            for (size_t k = 0; k < n; k++) {
                const double x = -log(((double)below(1u << 30) + 1) / ((1u << 30) + 1.0));

                power[h][k] = coarse ? floorf((float)x * 2) / 2 : (float)x;
            }
        for (uint64_t echoes = below(4); echoes > 0; echoes--)
            power[below(oversample)][below(n)] = (float)(10 + below(5000));
        for (size_t k = 0; k < n; k++)
            mean += (double)power[0][k] / (double)n;
        dwell.energy = mean; /* with energy_of_code = N the floor is the mean */
        pnr_search_dwell(&plan, (double)n, &p, &dwell, found);
        search_slowly(&plan, (double)n, &p, &dwell, &want);
        assert_true(fabs(dwell.floor - want.floor) <= 1e-4 * want.floor);
        assert_int_equal(dwell.n_above, want.n_above_first);
        if (want.is_close)
            continue;
        assert_int_equal(dwell.n_maxima, want.n_maxima);
        assert_int_equal(dwell.n_candidates, want.n_kept);
        for (size_t i = 0; i < want.n_kept; i++) {
            assert_int_equal(found[i].cell, want.cell[i]);
            assert_true(found[i].power == at(&p, (long)want.cell[i]));
        }
        n_repeated += want.floor < 0.9 * mean;
        n_overfull += want.n_maxima > want.n_kept;
        n_tied += coarse && want.n_kept > 1;
    }
    /* the rounds did meet what they are for */
    assert_true(n_repeated > 100 && n_overfull > 100 && n_tied > 100);
}

/* The same powers in any order of places, some of them without a lag: the same answer. Whole
 * numbers, so that sums do not depend on the order. */
TEST(test_places)
{
    static float power[MOST], placed[2 * MOST];
    static uint32_t place[MOST], lag_at[2 * MOST];

    for (int round = 0; round < 1000; round++) {
        const size_t n = 1 + below(MOST);
        const double threshold = 1 + (double)below(60) / 10;
        const pnr_power in_order = {.lag = {power, NULL}, .n_samples = n, .oversample = 1};
        const pnr_power elsewhere = {.lag = {placed, NULL},
                                     .n_samples = n,
                                     .oversample = 1,
                                     .place = place,
                                     .lag_at = lag_at,
                                     .n_places = (size_t)2 * MOST};
        const pnr_plan plan = {.n_samples = n,
                               .oversample = 1,
                               .gate_first = below(n),
                               .gate_count = 1 + below(n),
                               .threshold = &threshold,
                               .max_candidates = 1 + below(9)};
        pnr_candidate found[PNR_MAX_CANDIDATES], want[PNR_MAX_CANDIDATES];
        pnr_dwell dwell = {.energy = 8, .n_periods = 1}, same = dwell;

        memset(placed, 0, sizeof placed);
        for (size_t k = 0; k < n; k++) {
            size_t at = below((size_t)2 * MOST);

            power[k] = (float)(1 + below(below(20) == 0 ? 500 : 20)); /* 0: free */
            while (placed[at] != 0)
                at = (at + 1) % ((size_t)2 * MOST);
            placed[at] = power[k];
            place[k] = (uint32_t)at;
            lag_at[at] = (uint32_t)k;
        }
        pnr_search_dwell(&plan, (double)n, &in_order, &dwell, want);
        pnr_search_dwell(&plan, (double)n, &elsewhere, &same, found);
        assert_memory_equal(&same, &dwell, sizeof dwell);
        for (size_t i = 0; i < dwell.n_candidates; i++) {
            assert_int_equal(found[i].cell, want[i].cell);
            assert_true(found[i].power == want[i].power);
        }
    }
}

TEST(test_neighbour_lags)
{
    const pnr_plan plan = {.n_samples = 1023, .oversample = 2};
    const pnr_plan tiny = {.n_samples = 5, .oversample = 1};

    assert_int_equal(pnr_search_lag(&plan, 7, 0), 3); /* lag 3.5 */
    assert_int_equal(pnr_search_lag(&plan, 0, -8), 1015);
    assert_int_equal(pnr_search_lag(&plan, 2044, 8), 7);
    assert_int_equal(pnr_search_lag(&tiny, 1, -8), 3);
    assert_int_equal(pnr_search_lag(&tiny, 4, 8), 2);
}
