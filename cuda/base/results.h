/* SPDX-License-Identifier: MIT */
/* Results of a submit: a method writes them on the device, and a kernel copies them to the host. */
#ifndef PNR_CUDA_RESULTS_H
#define PNR_CUDA_RESULTS_H

#include "cuda/base/shape.h"
#include "cuda/base/state.h"

#include <cuda_runtime.h>

/* All pointers point to device memory, or all point to pinned host memory. */
typedef struct pnr_cuda_results {
    pnr_dwell *dwells;         /* [batch] */
    pnr_candidate *candidates; /* [batch][max_candidates] */
    uint32_t *nonfinite;       /* [n_windows] */
    float *profile;            /* [batch][profile_values], or NULL */
    float *patches;            /* [batch][max_candidates][patch_values], or NULL */
} pnr_cuda_results;

/* Enqueues a kernel that copies the results of all dwells of the job to the host. n_dwells: the job
 * has at most this many dwells. After all results the kernel writes job->sequence to *sequence.
 * count: number of finished blocks, in device memory; it is 0 before and after the copy. PNR_OK, or
 * as pnr_cuda_check. */
int pnr_cuda_return_results(const pnr_cuda_shape *shape, size_t max_candidates,
                            const pnr_cuda_job *job, const pnr_cuda_results *from,
                            const pnr_cuda_results *to, uint32_t *count,
                            volatile uint64_t *sequence, size_t n_dwells, cudaStream_t stream,
                            pnr_error *error);

#endif
