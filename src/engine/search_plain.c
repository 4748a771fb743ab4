/* SPDX-License-Identifier: MIT */
/* Threshold, local maxima in lag order, and the second look with a floor that is free of echoes. */
#include "engine/search_plain.h"

#include "base/wide.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 1024, SUM_BLOCK = 4096, LANES = 64, REACH = PNR_NEIGHBOURS / 2 };

/* The kept candidates of one search, in lag order, and what was counted on the way. */
typedef struct found {
    pnr_candidate *kept;
    size_t n_kept;
    uint32_t n_above;
    uint32_t n_maxima;
} found;

size_t pnr_search_lag(const pnr_plan *plan, uint32_t cell, int j)
{
    const size_t n = plan->n_samples;
    const size_t back = (size_t)REACH % n; /* start REACH lags below, without going negative */
    const size_t centre = cell / plan->oversample;

    return (centre + n - back + (size_t)(j + REACH)) % n;
}

/* Sums in a fixed order, so that the result never depends on the machine's vector width: floats in
 * LANES sums within SUM_BLOCK, these by halves, doubles between the blocks. */
PNR_WIDE static double sum_of(const float *x, size_t n)
{
    double total = 0;

    for (size_t first = 0; first < n; first += SUM_BLOCK) {
        const size_t count = n - first < SUM_BLOCK ? n - first : SUM_BLOCK;
        float lane[LANES] = {0};
        size_t i = 0;

        for (; i + LANES <= count; i += LANES)
            for (size_t l = 0; l < LANES; l++)
                lane[l] += x[first + i + l];
        for (; i < count; i++)
            lane[i % LANES] += x[first + i];
        for (size_t half = LANES / 2; half > 0; half /= 2)
            for (size_t l = 0; l < half; l++)
                lane[l] += lane[l + half];
        total += (double)lane[0];
    }
    return total;
}

PNR_WIDE float pnr_search_greatest(const float *x, size_t n)
{
    float lane[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
    for (; i < n; i++)
        lane[i % LANES] = x[i] > lane[i % LANES] ? x[i] : lane[i % LANES];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] = lane[l + half] > lane[l] ? lane[l + half] : lane[l];
    return lane[0];
}

static float power_at(const pnr_power *power, size_t cell)
{
    if (power->place != NULL)
        return power->lag[0][power->place[cell]];
    return power->lag[cell % power->oversample][cell / power->oversample];
}

/* Keeps the strongest, of equals those at the lowest lags, in lag order, in whichever order they
 * come. */
static void keep(found *f, size_t max_candidates, uint32_t cell, float value)
{
    size_t at;

    if (f->n_kept == max_candidates) {
        size_t weakest = 0;

        for (size_t i = 1; i < f->n_kept; i++)
            if (f->kept[i].power <= f->kept[weakest].power)
                weakest = i;
        if (value < f->kept[weakest].power ||
            (value == f->kept[weakest].power && cell > f->kept[weakest].cell))
            return;
        memmove(&f->kept[weakest], &f->kept[weakest + 1],
                (f->n_kept - weakest - 1) * sizeof *f->kept);
        f->n_kept--;
    }
    for (at = f->n_kept; at > 0 && f->kept[at - 1].cell > cell; at--)
        f->kept[at] = f->kept[at - 1];
    f->kept[at].cell = cell;
    f->kept[at].power = value;
    f->kept[at].code = 0;
    f->kept[at].channel = 0;
    f->kept[at].row = 0;
    f->n_kept++;
}

static void look_at(const pnr_plan *plan, const pnr_power *power, float threshold, size_t cell,
                    found *f)
{
    const size_t n_cells = power->n_samples * power->oversample;
    const float here = power_at(power, cell);

    if (!(here > threshold))
        return;
    f->n_above++;
    if (here > power_at(power, cell == 0 ? n_cells - 1 : cell - 1) &&
        here >= power_at(power, cell + 1 == n_cells ? 0 : cell + 1)) {
        f->n_maxima++;
        keep(f, plan->max_candidates, (uint32_t)cell, here);
    }
}

/* Integer lags [first, end) and, with oversample 2, the half lags above each of them. Whole blocks
 * below the threshold, nearly all of them, cost one maximum. */
static void look_through(const pnr_plan *plan, const pnr_power *power, float threshold,
                         size_t first, size_t end, found *f)
{
    for (size_t lag = first; lag < end; lag += BLOCK) {
        const size_t count = end - lag < BLOCK ? end - lag : BLOCK;
        int above = 0;

        for (size_t h = 0; h < power->oversample; h++)
            above |= pnr_search_greatest(power->lag[h] + lag, count) > threshold;
        if (!above)
            continue;
        for (size_t cell = lag * power->oversample; cell < (lag + count) * power->oversample;
             cell++)
            look_at(plan, power, threshold, cell, f);
    }
}

/* The same in the order of places, of which the gate takes any. */
static void look_through_places(const pnr_plan *plan, const pnr_power *power, float threshold,
                                found *f)
{
    const size_t n = power->n_samples;

    for (size_t first = 0; first < power->n_places; first += BLOCK) {
        const size_t left = power->n_places - first, count = left < BLOCK ? left : BLOCK;
        const float *here = power->lag[0] + first;

        if (!(pnr_search_greatest(here, count) > threshold))
            continue;
        for (size_t i = 0; i < count; i++)
            if (here[i] > threshold) {
                const size_t lag = power->lag_at[first + i];

                if ((lag + n - plan->gate_first) % n < plan->gate_count)
                    look_at(plan, power, threshold, lag, f);
            }
    }
}

/* The gate. */
static void look(const pnr_plan *plan, const pnr_power *power, float threshold, found *f)
{
    const size_t n = power->n_samples, end = plan->gate_first + plan->gate_count;

    if (power->place != NULL) {
        look_through_places(plan, power, threshold, f);
        return;
    }
    if (end > n) /* it wraps: its upper part holds the lowest lags */
        look_through(plan, power, threshold, 0, end - n, f);
    look_through(plan, power, threshold, plan->gate_first, end < n ? end : n, f);
}

static int is_near(const pnr_plan *plan, uint32_t cell, size_t lag)
{
    const size_t centre = cell / plan->oversample;
    const size_t apart = lag > centre ? lag - centre : centre - lag;

    return apart <= REACH || plan->n_samples - apart <= REACH;
}

/* The mean power of the integer lags that no kept candidate reaches, or -INFINITY when there is
 * none or fewer than half the lags are left. */
static double rest_of(const pnr_plan *plan, const pnr_power *power, double noise_sum,
                      const found *f)
{
    double taken = 0;
    size_t n_taken = 0;

    if (f->n_kept == 0 || plan->n_samples <= PNR_NEIGHBOURS)
        return -INFINITY;
    for (size_t i = 0; i < f->n_kept; i++)
        for (int j = -REACH; j <= REACH; j++) {
            const size_t lag = pnr_search_lag(plan, f->kept[i].cell, j);
            int counted = 0;

            for (size_t e = 0; e < i && !counted; e++)
                counted = is_near(plan, f->kept[e].cell, lag);
            if (!counted) {
                taken += (double)power_at(power, lag * plan->oversample);
                n_taken++;
            }
        }
    if (plan->n_samples - n_taken < (plan->n_samples + 1) / 2)
        return -INFINITY;
    return (noise_sum - taken) / (double)(plan->n_samples - n_taken);
}

void pnr_search_dwell(const pnr_plan *plan, double energy_of_code, const pnr_power *power,
                      pnr_dwell *dwell, pnr_candidate *out)
{
    const size_t n = plan->n_samples;
    found f = {.kept = out};

    dwell->noise_sum = 0;
    dwell->floor = 0;
    dwell->n_above = 0;
    if (dwell->n_periods > 0) {
        const double ratio = plan->threshold[dwell->n_periods - 1];

        dwell->noise_sum = sum_of(power->lag[0], power->place != NULL ? power->n_places : n);
        dwell->floor = dwell->energy * energy_of_code / (double)n;
        for (int search = 0; search < PNR_MAX_SEARCHES; search++) {
            const float threshold = (float)(ratio * dwell->floor);

            f = (found){.kept = out};
            look(plan, power, threshold, &f);
            if (search == 0)
                dwell->n_above = f.n_above;

            const double rest = rest_of(plan, power, dwell->noise_sum, &f);
            const double rounding = 1e-12 * dwell->energy * energy_of_code * dwell->n_periods;
            const double floor = rest > rounding ? rest : rounding;

            if (search + 1 == PNR_MAX_SEARCHES || isinf(rest) || !(floor < 0.95 * dwell->floor))
                break;
            dwell->floor = floor;
            if (f.n_kept == plan->max_candidates)
                break; /* what a lower threshold adds is weaker than these */
        }
    }
    dwell->n_maxima = f.n_maxima;
    dwell->n_candidates = (uint32_t)f.n_kept;
}
