/* SPDX-License-Identifier: MIT */
/* Reduces the cells of a profile or map to the resolution of a picture. Computes the ranges and the
 * Doppler bins of the picture. */
#ifndef PNR_MAP_H
#define PNR_MAP_H

#include "publisher/message.h"

#include <stdbool.h>

/* One profile or map. A profile is a map of one code and one row, at Doppler 0. The creator of a
 * pnr_map owns its cells. They are valid until the creator's next map. */
typedef struct pnr_map {
    pnr_report head; /* the members that pnr_message_read_profile sets */
    pnr_map_info info;
    const void *cells; /* powers, or (I, Q) pairs if info.row.is_complex, as floats; not aligned */
} pnr_map;

/* Sets bins[i], i < n_bins, to the greatest power of range bin i, divided by the noise floor.
 * Searches n_rows rows from first_row on. code: 1 .. n_codes, or 0: all codes. Bin i begins at cell
 * i * cells_per_bin of the gate and has at least one cell. A bin outside the gate becomes NAN. */
void pnr_map_reduce(const pnr_map *map, size_t code, size_t first_row, size_t n_rows,
                    double cells_per_bin, size_t n_bins, float *bins);

/* Returns the range at the middle of a cell of the gate. The edges of the cell are at cell - 0.5
 * and cell + 0.5. */
double pnr_map_range_m(const pnr_profile_info *info, double cell);
bool pnr_map_is_km(const pnr_profile_info *info); /* true: the ranges of the gate are shown in km */

/* Bins at equal steps of Doppler. They cover all rows of a map. */
typedef struct pnr_doppler_bins {
    double first_hz, step_hz; /* the middle of bin 0, and the distance of adjacent bins */
    size_t n_bins;            /* at most the number of rows of the map */
} pnr_doppler_bins;

pnr_doppler_bins pnr_doppler_bins_of(const pnr_map_info *map, size_t most_bins);
/* Finds the rows within half a step of the middle of a bin, or the nearest row if there are none.
 * Returns their number. *first_row: the first of them. */
size_t pnr_doppler_bins_rows(const pnr_doppler_bins *doppler, const pnr_map_info *map, size_t bin,
                             size_t *first_row);

/* Returns the smallest step of 10^n, 2 10^n or 5 10^n that is at least `least`. least > 0. */
double pnr_round_step(double least);

#endif
