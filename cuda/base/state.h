/* SPDX-License-Identifier: MIT */
/* Headers that the host writes, and data about windows and dwells that one kernel writes and later
 * kernels read. */
#ifndef PNR_CUDA_STATE_H
#define PNR_CUDA_STATE_H

#include "cuda/base/pnr.h"

/* The header of a submit, written by the host. The headers of its windows follow it in memory. */
typedef struct pnr_cuda_job {
    uint64_t sequence; /* number of the submit, counted from 1 */
    uint32_t n_dwells;
    uint32_t has_lost; /* 1: marks of lost samples were uploaded for this submit */
} pnr_cuda_job;

/* The header of one window, written by the host. */
typedef struct pnr_cuda_window {
    uint64_t phase;  /* phase of the oscillator of plan.tune at the first sample, in units of 2^-64
                      * turns */
    uint32_t n_lost; /* number of lost samples of the window */
    uint32_t reserved;
} pnr_cuda_window;

/* Measured sums of a whole window, or of the part of a window that one block measures. */
typedef struct pnr_cuda_energy {
    double energy; /* sum |x|^2, full scale = 1 */
    uint32_t n_clipped;
    uint32_t n_nonfinite;
} pnr_cuda_energy;

/* The sums of one dwell, and the state of its search. */
typedef struct pnr_cuda_dwell {
    pnr_dwell sums;
    double rounding;    /* rounding error of a cell's power; the floor is never set below this
                         * value */
    float threshold;    /* never negative; only cells with a greater power are searched */
    uint32_t is_done;   /* 1: no further search follows */
    uint32_t last_used; /* index of the last used window; n_periods if no window is used */
    uint32_t reserved;
} pnr_cuda_dwell;

#ifdef __CUDACC__
/* Returns how many dwells of [first, first + capacity) belong to the submit. A CUDA graph is
 * recorded once, so its kernels are launched for the greatest number of dwells, `capacity`. */
static inline __device__ uint32_t pnr_cuda_dwells_of(const pnr_cuda_job *job, uint32_t first,
                                                     uint32_t capacity)
{
    const uint32_t n = job->n_dwells;

    return n <= first ? 0 : n - first < capacity ? n - first : capacity;
}
#endif

#endif
