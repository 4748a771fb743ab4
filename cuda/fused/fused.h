/* SPDX-License-Identifier: MIT */
/* Method fused, one kernel: samples in, results out, a window in the registers of a warp or a
 * block.
 */
#ifndef PNR_CUDA_FUSED_H
#define PNR_CUDA_FUSED_H

#include "cuda/steps/convert.h"

#include <cuda_runtime.h>

/* What the kernels work on. N samples a window, L the transform: N, or at least 2N - 1. */
typedef struct pnr_cuda_fused {
    pnr_cuda_conversion conversion; /* sums: NULL, the kernels measure themselves */
    const pnr_cuda_job *job;        /* how many dwells there really are */
    /* [oversample][L]: conj(DFT of the code) / L, two bins beside each other in the order of the
     * threads, see pnr_cuda_fused_place; times the samples' scale for the plain kernel */
    const float4 *spectrum;
    const double *threshold;   /* [n_periods] times floor */
    double first_threshold;    /* threshold[0], at hand */
    pnr_dwell *dwells;         /* [n_dwells] */
    pnr_candidate *candidates; /* [n_dwells][max_candidates] */
    uint32_t *nonfinite;       /* [n_dwells][n_periods] */
    float *power;              /* [n_dwells][n_cells], or NULL */
    float2 *profile;           /* [n_dwells][n_cells], or NULL */
    double code_energy;        /* sum |a|^2 */
    uint32_t n_dwells;         /* at most */
    uint32_t n_periods;
    uint32_t is_incoherent;
    uint32_t oversample;
    uint32_t max_candidates;
    uint32_t gate_first, gate_count;
    uint32_t window_bytes; /* of shared memory for each window that a block works on */
} pnr_cuda_fused;

typedef void (*pnr_cuda_fused_kernel)(pnr_cuda_fused);

/* One instance of a kernel. */
typedef struct pnr_cuda_fused_size {
    pnr_cuda_fused_kernel kernel;
    uint32_t n_transform; /* L */
    uint32_t n_threads;   /* a window */
    uint32_t max_windows; /* that a block works on at one time */
    uint32_t table_bytes; /* of shared memory for a block, and for each window */
    uint32_t window_bytes;
} pnr_cuda_fused_size;

/* The plain kernel: dwells of one window with N = L, one channel of ci8, ci16 or cf32, no half
 * lags, nothing mixed. NULL: no such instance. */
const pnr_cuda_fused_size *pnr_cuda_fused_find_plain(pnr_format format, size_t n_transform);
/* The kernel for all else; further bytes a window: pnr_cuda_fused_cells_bytes. NULL: none. */
const pnr_cuda_fused_size *pnr_cuda_fused_find_dwells(size_t n_transform);
size_t pnr_cuda_fused_cells_bytes(const pnr_plan *plan);

/* Where bin k of L lies in the spectrum, in float2. */
size_t pnr_cuda_fused_place(size_t n_transform, size_t k);

#endif
