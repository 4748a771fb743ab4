/* SPDX-License-Identifier: MIT */
/* The peak step: powers, noise sum, threshold, local maxima in lag order, a second search,
 * neighbours. */
#ifndef PNR_CUDA_PEAK_H
#define PNR_CUDA_PEAK_H

#include "cuda/base/shape.h"
#include "cuda/base/state.h"

#include <cuda_runtime.h>

/* Result of one tile of the grid of a dwell. */
typedef struct pnr_cuda_tile {
    uint32_t n_above;
    uint32_t n_maxima;
    uint32_t n_kept; /* the strongest, at most max_candidates */
} pnr_cuda_tile;

/* Memory and parameters of the search. */
typedef struct pnr_cuda_peak {
    const float2 *rows[2];   /* [oversample] of [n_rows][row_stride]: c at k and at k + 1/2 */
    float *power;            /* [round_dwells][n_cells] */
    double *noise_parts;     /* [round_dwells][n_tiles]: sum of P over the integer lags */
    pnr_cuda_tile *tiles;    /* [round_dwells][n_tiles] */
    uint64_t *keys;          /* [round_dwells][n_tiles][max_candidates]: see pnr_candidate_key */
    float2 *packed;          /* want complex: [round_dwells][n_cells], else NULL */
    pnr_cuda_dwell *dwells;  /* [batch], from pnr_cuda_measure */
    const double *threshold; /* [n_periods] times floor */
    pnr_dwell *out_dwells;   /* [batch] */
    pnr_candidate *out_candidates; /* [batch][max_candidates] */
    uint32_t n_samples;            /* N */
    uint32_t row_stride;           /* from row to row, values */
    uint32_t oversample;
    uint32_t n_cells;
    uint32_t n_tiles;
    uint32_t dwell_rows;
    uint32_t is_incoherent;
    uint32_t max_candidates;
    uint32_t gate_first, gate_count; /* integer lags */
} pnr_cuda_peak;

/* Fills power (and packed) of a round and searches it. Dwells [first_dwell, first_dwell + n_dwells)
 * of the submit get their sums and candidates. PNR_OK, or as pnr_cuda_check. */
int pnr_cuda_find_peaks(const pnr_cuda_shape *shape, const pnr_cuda_peak *peak, size_t first_dwell,
                        size_t n_dwells, cudaStream_t stream, pnr_error *error);

/* Any kernel of this module, to test whether a device can run it. */
const void *pnr_cuda_a_kernel(void);

#endif
