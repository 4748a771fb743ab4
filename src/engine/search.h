/* SPDX-License-Identifier: MIT */
/* The candidate search of a map on the host, and the plain twin of the GPU's: rules in engine.h. */
#ifndef PNR_SEARCH_MAP_H
#define PNR_SEARCH_MAP_H

#include "engine/engine.h"

/* What a search wants to know of one line, a row of one code: threads may find it beforehand, line
 * by line. */
typedef struct pnr_search_line {
    double sum;      /* of P over the integer lags */
    float greatest;  /* P in the gate; 0 at least */
    uint64_t *above; /* CFAR: [pnr_search_words] bit c mod 64 of c / 64: is cell c above? */
} pnr_search_line;

/* 0 without CFAR. */
size_t pnr_search_words(const pnr_plan *plan);
/* Of line code * rows + row, from the whole map: sum, greatest, and to what above points. */
void pnr_search_map_line(const pnr_plan *plan, const float *power, size_t looks_used, size_t number,
                         pnr_search_line *line);

/*
 * Searches one dwell's map as engine.h says. power: [n_codes][n_rows][n_lags * oversample]. Reads
 * dwell->energy, n_periods and floor (all of x noise); sets noise_sum, floor (the rest), n_above,
 * n_maxima and n_candidates; fills cell, code, row, channel and power of out[0 .. n_candidates - 1]
 * (value is the engine's to gather). energy_of_code: E_a. looks_used: looks with a used window.
 * lines: [n_codes][n_rows] what pnr_search_map_line found, or NULL: it is found now; the same
 * answer. Without a used window all counts and sums are 0. Never fails, never allocates.
 *
 * Where engine.h leaves room: the box of the exclusion is over all cells of the lag grid, also
 * those outside the gate. With a filter a training cell at a lag outside the gate does not exist.
 * With CFAR the rest is the floor also where it is more than 0.95 of what it was; when no candidate
 * is kept, or fewer than half of the columns are left, the floor stays as it came.
 */
void pnr_search_map(const pnr_plan *plan, double energy_of_code, const float *power,
                    size_t looks_used, const pnr_search_line *lines, pnr_dwell *dwell,
                    pnr_candidate *out);

#endif
