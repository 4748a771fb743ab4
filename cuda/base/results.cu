/* SPDX-License-Identifier: MIT */
/* Results of a submit: a method writes them on the device, and a kernel copies them to the host. */
#include "cuda/base/results.h"

#include "cuda/base/check.h"

#include <cassert>

enum {
    MAX_BLOCKS = 16, /* enough blocks for the full rate of the link; most of the device stays
                      * free */
    DWELL_WORDS = sizeof(pnr_dwell) / sizeof(uint64_t),
    CANDIDATE_WORDS = sizeof(pnr_candidate) / sizeof(uint64_t)
};
static_assert(sizeof(pnr_dwell) % sizeof(uint64_t) == 0, "whole words");
static_assert(sizeof(pnr_candidate) % sizeof(uint64_t) == 0, "whole words");

typedef struct returning {
    const pnr_cuda_job *job;
    pnr_cuda_results from, to;
    uint32_t *count; /* finished blocks; 0 before and after the kernel */
    volatile uint64_t *sequence;
    uint32_t n_periods, max_candidates;
    size_t profile_values;
    uint32_t patch_words; /* words of 8 bytes in a patch */
} returning;

/* A warp copies adjacent words, so that they cross the link in few, long packets. */
template <typename T>
static __device__ void copy_all(T *to, const T *from, size_t n, size_t first, size_t step)
{
    for (size_t i = first; i < n; i += step)
        to[i] = from[i];
}

__global__ void __launch_bounds__(PNR_CUDA_THREADS) return_results(returning r)
{
    const uint32_t n_dwells = r.job->n_dwells;
    const uint32_t first = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x;
    const uint32_t step = gridDim.x * PNR_CUDA_THREADS;
    const uint32_t row = r.max_candidates * CANDIDATE_WORDS;
    const uint64_t *candidates = (const uint64_t *)r.from.candidates;

    copy_all((uint64_t *)r.to.dwells, (const uint64_t *)r.from.dwells,
             (size_t)n_dwells * DWELL_WORDS, first, step);
    copy_all(r.to.nonfinite, r.from.nonfinite, (size_t)n_dwells * r.n_periods, first, step);
    /* i is below 2^20 dwells * 64 candidates * 19 words < 2^32 */
    for (uint32_t i = first; i < n_dwells * row; i += step)
        if (i % row < r.from.dwells[i / row].n_candidates * CANDIDATE_WORDS)
            ((uint64_t *)r.to.candidates)[i] = candidates[i];
    copy_all(r.to.profile, r.from.profile, n_dwells * r.profile_values, first, step);
    for (uint32_t i = 0; r.patch_words > 0 && i < n_dwells * r.max_candidates; i++)
        if (i % r.max_candidates < r.from.dwells[i / r.max_candidates].n_candidates)
            copy_all((uint64_t *)r.to.patches + (size_t)i * r.patch_words,
                     (const uint64_t *)r.from.patches + (size_t)i * r.patch_words, r.patch_words,
                     first, step);

    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(r.count, 1u) + 1 == gridDim.x) {
        *r.count = 0;
        __threadfence_system();
        *r.sequence = r.job->sequence;
    }
}

/* --- the launcher --- */

int pnr_cuda_return_results(const pnr_cuda_shape *shape, size_t max_candidates,
                            const pnr_cuda_job *job, const pnr_cuda_results *from,
                            const pnr_cuda_results *to, uint32_t *count,
                            volatile uint64_t *sequence, size_t n_dwells, cudaStream_t stream,
                            pnr_error *error)
{
    const size_t words = n_dwells * (max_candidates * (CANDIDATE_WORDS + shape->patch_values / 2) +
                                     shape->profile_values);
    const size_t n_blocks = (words + PNR_CUDA_THREADS - 1) / PNR_CUDA_THREADS;
    returning r = {};

    assert(n_dwells >= 1 && n_dwells <= shape->batch && max_candidates >= 1);
    r.job = job;
    r.from = *from;
    r.to = *to;
    r.count = count;
    r.sequence = sequence;
    r.n_periods = (uint32_t)shape->n_periods;
    r.max_candidates = (uint32_t)max_candidates;
    r.profile_values = shape->profile_values;
    r.patch_words = (uint32_t)(shape->patch_values / 2);
    return_results<<<(unsigned)(n_blocks < (size_t)MAX_BLOCKS ? n_blocks : (size_t)MAX_BLOCKS),
                     PNR_CUDA_THREADS, 0, stream>>>(r);
    return pnr_cuda_check_launch("return_results", error);
}
