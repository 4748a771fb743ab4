/* SPDX-License-Identifier: MIT */
/* Method fused, one kernel: samples in, results out, a window in the registers of a warp or a
 * block.
 */
#ifndef PNR_CUDA_FUSED_H
#define PNR_CUDA_FUSED_H

#include "shape.h"
#include "state.h"

#include <cuda_runtime.h>

/* What the kernel works on. A dwell is one window. */
typedef struct pnr_cuda_fused {
    const void *raw;                /* [n_windows][N], one channel, in the plan's format */
    const pnr_cuda_job *job;        /* how many there really are */
    const pnr_cuda_window *windows; /* [n_windows] */
    /* conj(DFT of the code) * scale / N, two bins beside each other in the order of the threads:
     * see pnr_cuda_fused_place */
    const float4 *spectrum;
    pnr_dwell *dwells;         /* [n_windows] */
    pnr_candidate *candidates; /* [n_windows][max_candidates] */
    uint32_t *nonfinite;       /* [n_windows] */
    float *power;              /* [n_windows][N], or NULL */
    float2 *profile;           /* [n_windows][N], or NULL */
    double scale;              /* full scale = raw * scale */
    double code_energy;        /* sum |a|^2 */
    double threshold;          /* times floor */
    uint32_t n_windows;        /* at most */
    uint32_t max_candidates;
    uint32_t gate_first, gate_count;
} pnr_cuda_fused;

typedef void (*pnr_cuda_fused_kernel)(pnr_cuda_fused);

/* One instance of the kernel. */
typedef struct pnr_cuda_fused_size {
    pnr_format format;
    uint32_t n_samples;
    pnr_cuda_fused_kernel kernel;
    uint32_t n_threads; /* a block */
    uint32_t n_windows; /* that a block works on at one time */
    size_t shared_bytes, static_bytes;
} pnr_cuda_fused_size;

/* The instance for a format and length; NULL: none. */
const pnr_cuda_fused_size *pnr_cuda_fused_find(pnr_format format, size_t n_samples);

/* Where bin k of N lies in the spectrum, in float2. */
size_t pnr_cuda_fused_place(size_t n_samples, size_t k);

#endif
