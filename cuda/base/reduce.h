/* SPDX-License-Identifier: MIT */
/* Sums over a warp and a block in a fixed order. */
#ifndef PNR_CUDA_REDUCE_H
#define PNR_CUDA_REDUCE_H

#include "cuda/base/shape.h"
#include "cuda/base/state.h"

#include <cuda_runtime.h>

enum { PNR_CUDA_WARP = 32, PNR_CUDA_WARPS = PNR_CUDA_THREADS / PNR_CUDA_WARP };

/* Returns the sum of x over the 32 lanes to every lane. All lanes must call this. */
template <typename T> static inline __device__ T pnr_cuda_warp_sum(T x)
{
    for (int lane = PNR_CUDA_WARP / 2; lane > 0; lane /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

/* Returns the sum of n energies, in a fixed order, to every lane. All 32 lanes must call this. */
static inline __device__ pnr_cuda_energy pnr_cuda_sum_energies(const pnr_cuda_energy *parts,
                                                               uint32_t n)
{
    pnr_cuda_energy sum = {0, 0, 0};

    for (uint32_t i = threadIdx.x % PNR_CUDA_WARP; i < n; i += PNR_CUDA_WARP) {
        const pnr_cuda_energy part = parts[i];

        sum.energy += part.energy;
        sum.n_clipped += part.n_clipped;
        sum.n_nonfinite += part.n_nonfinite;
    }
    sum.energy = pnr_cuda_warp_sum(sum.energy);
    sum.n_clipped = pnr_cuda_warp_sum(sum.n_clipped);
    sum.n_nonfinite = pnr_cuda_warp_sum(sum.n_nonfinite);
    return sum;
}

/* Returns the sum of x to thread 0, and 0 to the other threads. All PNR_CUDA_THREADS threads must
 * call this. scratch: [PNR_CUDA_WARPS], shared; it can be used again after the next barrier of the
 * block. */
template <typename T> static inline __device__ T pnr_cuda_block_sum(T x, T *scratch)
{
    T total = 0;

    x = pnr_cuda_warp_sum(x);
    if (threadIdx.x % PNR_CUDA_WARP == 0)
        scratch[threadIdx.x / PNR_CUDA_WARP] = x;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int warp = 0; warp < PNR_CUDA_WARPS; warp++)
            total += scratch[warp];
    return total;
}

#endif
