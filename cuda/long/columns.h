/* SPDX-License-Identifier: MIT */
/* Transforms columns of the four-step transform in two passes. A column has 32 P points. A block
 * transforms a tile of columns. */
#ifndef PNR_CUDA_FUSED_LONG_COLUMNS_H
#define PNR_CUDA_FUSED_LONG_COLUMNS_H

#include "cuda/fused/transform.h"
#include "cuda/long/long.h"

/*
 * A column has points a P + b (a < 32, b < P) and bins k = ka + 32 i (ka < 32, i < P), with
 *   (a P + b) k / (32 P) = a ka/32 + b ka/(32 P) + b i/P   (mod 1)
 * So thread (b, column) sums over a, and thread (ka, column) sums over b with the twiddle base
 * W_32P^ka. A thread has 32 / P values of ka: b, b + P, .. Between the passes value ka of thread t
 * is at tile[ka * THREADS + t].
 */
template <int P> struct pnr_fused_columns {
    static constexpr uint32_t ROWS = 32 * P;
    static constexpr uint32_t COLUMNS = PNR_FUSED_LONG_THREADS / P; /* columns of a tile */
    static constexpr int BITS = pnr_fused_bits(P);
    /* Shared memory: the tile, then the twiddles. The twiddles are 32 sets of P / 2 for the samples
     * kernel, and log2 P sets of 32 for the lags kernel. With P = 1 no values are exchanged, but
     * pnr_fused_list_tile needs half the bytes of a tile. */
    static constexpr size_t SAMPLES_SHARED =
        P == 1 ? 0 : (PNR_FUSED_LONG_TILE + 16 * P) * sizeof(float2);
    static constexpr size_t LAGS_SHARED = P == 1
                                              ? PNR_FUSED_LONG_TILE * sizeof(float)
                                              : (PNR_FUSED_LONG_TILE + 32 * BITS) * sizeof(float2);
    /* LAGS_SHARED, and a tile for the sum of powers */
    static constexpr size_t SUMS_SHARED = LAGS_SHARED + PNR_FUSED_LONG_TILE * sizeof(float);
};

/* pnr_fused_part returns b of the thread. pnr_fused_column returns the column of the thread. See
 * pnr_fused_columns. */
template <int P> static __device__ __forceinline__ uint32_t pnr_fused_part()
{
    return threadIdx.x / pnr_fused_columns<P>::COLUMNS;
}
template <int P> static __device__ __forceinline__ uint32_t pnr_fused_column(uint32_t tile)
{
    return tile * pnr_fused_columns<P>::COLUMNS + threadIdx.x % pnr_fused_columns<P>::COLUMNS;
}

/* Returns the row of the thread's result j in the transformed column: bin ka + 32 i, see
 * pnr_fused_columns. */
template <int P> static __device__ __forceinline__ uint32_t pnr_fused_row_of(int j)
{
    return P == 1 ? (uint32_t)j : pnr_fused_part<P>() + j / P * P + j % P * 32;
}

/* Does the second pass. second(ka, x) transforms x, the P values b = 0..P-1 of the first pass at
 * this ka. Calls take(j, c) for each result c of the thread; j = 0..31 is the number of the result.
 * The memory of the tile must be free: the caller has passed a barrier. No barrier follows the last
 * read. With P = 1 there is neither a second pass nor a barrier. */
template <int P, class SECOND, class TAKE>
static __device__ __forceinline__ void pnr_fused_exchange(const float2 (&v)[32], float2 *tile,
                                                          SECOND second, TAKE take)
{
    constexpr uint32_t COLUMNS = pnr_fused_columns<P>::COLUMNS;

    if constexpr (P == 1) {
#pragma unroll
        for (int j = 0; j < 32; j++)
            take(j, v[j]);
    } else {
#pragma unroll
        for (int k = 0; k < 32; k++)
            tile[k * PNR_FUSED_LONG_THREADS + threadIdx.x] = v[k];
        __syncthreads();
#pragma unroll
        for (int q = 0; q < 32 / P; q++) {
            const uint32_t ka = pnr_fused_part<P>() + q * P;
            float2 x[P];

#pragma unroll
            for (int i = 0; i < P; i++)
                x[i] = tile[ka * PNR_FUSED_LONG_THREADS + i * COLUMNS + threadIdx.x % COLUMNS];
            second(ka, x);
#pragma unroll
            for (int i = 0; i < P; i++)
                take(q * P + i, x[i]);
        }
    }
}

/* Returns the sum over the warps of a block. Thread 0 calls this after a barrier. */
template <typename T> static __device__ __forceinline__ T pnr_fused_sum_warps(const T *of_warp)
{
    T sum = 0;

#pragma unroll
    for (int warp = 0; warp < PNR_FUSED_LONG_THREADS / 32; warp++)
        sum += of_warp[warp];
    return sum;
}

#endif
