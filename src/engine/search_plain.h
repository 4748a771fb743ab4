/* SPDX-License-Identifier: MIT */
/* The candidate search of the CPU engines, and the plain twin of the GPU's: rules in engine.h. */
#ifndef PNR_SEARCH_H
#define PNR_SEARCH_H

#include "engine/engine.h"

/* One dwell's power on the search grid; owner: the engine. */
typedef struct pnr_power {
    const float
        *lag[2]; /* lag[0][k] at integer lag k, lag[1][k] at k + 1/2 (oversample 2); [n_samples] */
    size_t n_samples;  /* N */
    size_t oversample; /* 1 or 2 */
    /* NULL, or with oversample 1 the powers are in another order: lag k at lag[0][place[k]], which
     * has n_places, 0 where there is no lag; lag_at[place] is the lag. */
    const uint32_t *place, *lag_at;
    size_t n_places;
} pnr_power;

/*
 * Searches as engine.h says. Reads dwell->energy and dwell->n_periods; sets noise_sum, floor,
 * n_above, n_maxima and n_candidates; fills cell and power of out[0 .. n_candidates-1] (value is
 * the engine's to gather). energy_of_code: E_a. Never fails, never allocates.
 */
void pnr_search_dwell(const pnr_plan *plan, double energy_of_code, const pnr_power *power,
                      pnr_dwell *dwell, pnr_candidate *out);

/* The integer lag at the centre of a candidate's neighbours plus offset j = -8..8, mod N. */
size_t pnr_search_lag(const pnr_plan *plan, uint32_t cell, int j);

/* The greatest of n powers, 0 at least. */
float pnr_search_greatest(const float *x, size_t n);

#endif
