/* SPDX-License-Identifier: MIT */
/* Method fused: one kernel computes the results from the samples. The registers of a warp or a
 * block hold a window. */
#ifndef PNR_CUDA_FUSED_H
#define PNR_CUDA_FUSED_H

#include "cuda/steps/convert.h"

#include <cuda_runtime.h>

/* Argument of the kernels. N: samples of a window. L: points of a transform. L is N, or at least
 * 2N - 1. */
typedef struct pnr_cuda_fused {
    pnr_cuda_conversion conversion; /* its sums are NULL: the kernels measure the samples */
    const pnr_cuda_job *job;        /* header of the submit, with its number of dwells */
    /* [oversample][L]: conj(DFT of the code) / L in the order of pnr_cuda_fused_place. A float4 has
     * bins k and k + T, where T is the number of threads of a window. The plain kernel's spectrum
     * includes the scale of the samples. */
    const float4 *spectrum;
    const double *threshold;   /* [n_periods], in units of the floor */
    double first_threshold;    /* threshold[0] */
    pnr_dwell *dwells;         /* [n_dwells] */
    pnr_candidate *candidates; /* [n_dwells][max_candidates] */
    uint32_t *nonfinite;       /* [n_dwells][n_periods] */
    float *power;              /* [n_dwells][n_cells], or NULL */
    float2 *profile;           /* [n_dwells][n_cells], or NULL */
    double code_energy;        /* sum |a|^2 of the code a */
    uint32_t n_dwells;         /* greatest number of dwells; the job has the actual number */
    uint32_t n_periods;
    uint32_t is_incoherent;
    uint32_t oversample;
    uint32_t max_candidates;
    uint32_t has_outside; /* 1: one candidate may be outside of the gate, see plan.h */
    uint32_t gate_first, gate_count;
    uint32_t window_bytes; /* bytes of shared memory for each window that a block works on */
} pnr_cuda_fused;

typedef void (*pnr_cuda_fused_kernel)(pnr_cuda_fused);

/* One instance of a kernel. */
typedef struct pnr_cuda_fused_size {
    pnr_cuda_fused_kernel kernel;
    uint32_t n_transform;  /* L, points of the transform */
    uint32_t n_threads;    /* threads of a window */
    uint32_t max_windows;  /* greatest number of windows that a block works on at one time */
    uint32_t table_bytes;  /* shared memory of a block, without its windows */
    uint32_t window_bytes; /* shared memory of each window */
} pnr_cuda_fused_size;

/* Finds the plain kernel. It supports dwells of one window with N = L, and one channel of ci8, ci16
 * or cf32. It supports neither half lags nor a frequency shift nor conjugation. NULL: no such
 * instance. */
const pnr_cuda_fused_size *pnr_cuda_fused_find_plain(pnr_format format, size_t n_transform);
/* Finds the kernel for all other dwells; NULL: no such instance. Each window needs
 * pnr_cuda_fused_cells_bytes of shared memory in addition to window_bytes. */
const pnr_cuda_fused_size *pnr_cuda_fused_find_dwells(size_t n_transform);
size_t pnr_cuda_fused_cells_bytes(const pnr_plan *plan);

/* Returns the index of bin k in a spectrum of n_transform float2 values. */
size_t pnr_cuda_fused_place(size_t n_transform, size_t k);

#endif
