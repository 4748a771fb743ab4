/* SPDX-License-Identifier: MIT */
/* The steps of a map before and after the inverse transforms of cuFFT: multiply the spectra, copy
 * the values and sum their powers. */
#ifndef PNR_CUDA_MAP_VALUES_H
#define PNR_CUDA_MAP_VALUES_H

#include "cuda/map/map.h"

/* Lines [first, first + n_lines) of a round. A line is one row of one code of one look. Lines are
 * counted in the order [n_dwells][oversample][n_codes * n_rows][n_looks]. */
typedef struct pnr_map_part {
    uint32_t first, n_lines;
} pnr_map_part;

/* Shifts the base of each line and multiplies it by the spectrum of the line's code. out:
 * [n_lines][row_stride]; bases: all bases of the round, [n_dwells][n_looks][n_bases][row_stride];
 * spectra: [n_codes][oversample][L]. If each base has one line and no shift, out may be the memory
 * of the bases of these lines. */
int pnr_map_multiply(const pnr_map *map, const pnr_map_part *part, const float2 *bases,
                     const float2 *spectra, float2 *out, cudaStream_t stream, pnr_error *error);

/* Copies the values c of a part's lines to the values of the round, unless `values` is NULL. lines:
 * [n_lines][row_stride], or [n_lines][gate_count] with a filter. values:
 * [n_dwells][n_looks][n_codes * n_rows][n_cells]. The lines of look 0 set `power` to |c|^2. The
 * lines of later looks add |c|^2 to `power`. */
int pnr_map_keep(const pnr_map *map, const pnr_map_part *part, const float2 *lines, float2 *values,
                 float *power, cudaStream_t stream, pnr_error *error);

#endif
