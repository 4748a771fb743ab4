/* SPDX-License-Identifier: MIT */
/* The candidate search on the host. It gives the same results as the searches on the GPU; plan.h
 * has the rules. */
#ifndef PNR_SEARCH_H
#define PNR_SEARCH_H

#include "engine/engine.h"

/* The results of one scan of a line, which is a row of one code. Threads may scan lines before the
 * search. */
typedef struct pnr_search_line {
    double sum;      /* sum of P over the integer lags */
    float greatest;  /* greatest P in the gate, or in the whole line if plan.has_outside; at
                      * least 0 */
    uint64_t *above; /* CFAR: [pnr_search_words]. Cell c is above if bit c mod 64 of word
                      * c / 64 is set */
} pnr_search_line;

/* The order of the powers of method walsh. It is not the order of lags. This order occurs only with
 * one code, one row, oversample 1, a circular correlation and no CFAR. */
typedef struct pnr_search_places {
    const uint32_t *place;  /* [n_lags]: lag k is at power[place[k]] */
    const uint32_t *lag_at; /* [n_places]: the lag whose power is at each place */
    size_t n_places;        /* number of powers; the power at a place without a lag is 0 */
} pnr_search_places;

/* Returns the number of words in `above` of a line; 0 without CFAR. */
size_t pnr_search_words(const pnr_plan *plan);
/* Scans line `number` = code * rows + row of the powers of a dwell. Sets sum, greatest and the
 * words of `above`. With CFAR, greatest is 0. */
void pnr_search_scan_line(const pnr_plan *plan, const float *power, size_t looks_used,
                          size_t number, pnr_search_line *line);

/*
 * Searches one dwell as plan.h says. power: [n_codes][n_rows][n_lags * oversample]. Reads
 * dwell->energy, n_periods and floor. The floor that it reads is the mean of P if all of x is
 * noise. Sets noise_sum, floor (after the last search), n_above, n_maxima and n_candidates. Fills
 * cell, code, row, channel and power of out[0 .. n_candidates - 1]; the engine gathers `value`.
 * energy_of_code: E_a. looks_used: looks with a used window. lines: [n_codes][n_rows] from
 * pnr_search_scan_line; NULL: the search scans the lines itself, with the same results. places:
 * NULL when the powers are in the order of lags; else lines is NULL. Without a used window all
 * counts and sums are 0. Never fails, never allocates.
 *
 * Rules that plan.h does not give: the box of a cell covers all cells of the lag grid, also those
 * outside the gate. With a filter a training cell at a lag outside the gate does not exist. With
 * CFAR the rest becomes the floor even if it exceeds 0.95 of the floor; when fewer than half of the
 * columns are left, the floor does not change.
 */
void pnr_search_dwell(const pnr_plan *plan, double energy_of_code, const float *power,
                      size_t looks_used, const pnr_search_line *lines,
                      const pnr_search_places *places, pnr_dwell *dwell, pnr_candidate *out);

/* Returns the integer lag that is j = -8 .. 8 lags from the centre of a candidate, mod n_lags. */
size_t pnr_search_lag(const pnr_plan *plan, uint32_t cell, int j);

#endif
