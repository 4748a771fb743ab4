/* SPDX-License-Identifier: MIT */
/* The measure step: sums the energy of every window, counts its clipped and non-finite samples, and
 * finds the windows that a dwell uses. */
#ifndef PNR_CUDA_ENERGY_H
#define PNR_CUDA_ENERGY_H

#include "cuda/base/sample.h"
#include "cuda/base/shape.h"
#include "cuda/base/state.h"

/* All pointers are to device memory. */
typedef struct pnr_cuda_measured {
    const pnr_cuda_window *windows; /* [n_windows] */
    pnr_cuda_energy *parts;         /* [n_windows][n_segments] */
    pnr_cuda_energy *sums;          /* [n_windows] */
    pnr_cuda_dwell *dwells;         /* [n_dwells] */
    uint32_t *nonfinite;            /* [n_windows] */
    const double *threshold;        /* [n_periods], in units of the floor */
    double code_energy;             /* sum |a|^2 of the code a */
} pnr_cuda_measured;

/* A window is used if at most half of its samples are lost or non-finite. */
static inline __device__ bool pnr_cuda_is_used(const pnr_cuda_window &window,
                                               const pnr_cuda_energy &sum, uint32_t n_samples)
{
    return (uint64_t)window.n_lost + sum.n_nonfinite <= n_samples / 2;
}

/* Measures n_dwells dwells and sets their states for the first search. Returns PNR_OK, or the error
 * of pnr_cuda_check. */
int pnr_cuda_measure(const pnr_cuda_shape *shape, const pnr_cuda_samples *samples,
                     const pnr_cuda_measured *measured, size_t n_dwells, cudaStream_t stream,
                     pnr_error *error);

#endif
