/* SPDX-License-Identifier: MIT */
/* What the kernels leave for each other about windows and dwells. */
#ifndef PNR_CUDA_STATE_H
#define PNR_CUDA_STATE_H

#include "cuda/base/pnr.h"

/* From the host, one a submit. The windows follow it in memory. */
typedef struct pnr_cuda_job {
    uint64_t sequence; /* of the submit, counted from 1 */
    uint32_t n_dwells;
    uint32_t has_lost; /* the slot's marks of lost samples are this submit's */
} pnr_cuda_job;

/* From the host, one a window. */
typedef struct pnr_cuda_window {
    uint64_t phase;  /* of the tune at the window's first sample, 2^-64 turns */
    uint32_t n_lost; /* samples lost inside */
    uint32_t reserved;
} pnr_cuda_window;

/* Measured, one a segment of a window and one a window. */
typedef struct pnr_cuda_energy {
    double energy; /* sum |x|^2, full scale = 1 */
    uint32_t n_clipped;
    uint32_t n_nonfinite;
} pnr_cuda_energy;

/* One a dwell. */
typedef struct pnr_cuda_dwell {
    pnr_dwell sums;
    double rounding;    /* no floor is lower */
    float threshold;    /* a cell is above when P > threshold; never negative */
    uint32_t is_done;   /* no further search */
    uint32_t last_used; /* the last window used; n_periods: none */
    uint32_t reserved;
} pnr_cuda_dwell;

#ifdef __CUDACC__
/* How many of the dwells [first, first + capacity) the submit really has: kernels are launched for
 * a capacity, so that they can be recorded once. */
static inline __device__ uint32_t pnr_cuda_dwells_of(const pnr_cuda_job *job, uint32_t first,
                                                     uint32_t capacity)
{
    const uint32_t n = job->n_dwells;

    return n <= first ? 0 : n - first < capacity ? n - first : capacity;
}
#endif

#endif
