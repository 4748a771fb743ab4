/* SPDX-License-Identifier: MIT */
/* Computes the correlation at the lags of a tile from columns of the transformed rows, and lists
 * the cells above the threshold. */
#ifndef PNR_CUDA_FUSED_LONG_LAGS_H
#define PNR_CUDA_FUSED_LONG_LAGS_H

#include "cuda/long/columns.h"
#include "cuda/steps/candidates.h"

/* Returns the lag of the thread's value j. */
template <int P>
static __device__ __forceinline__ uint32_t pnr_fused_lag_of(const pnr_fused_long &p, uint32_t tile,
                                                            int j)
{
    return (pnr_fused_row_of<P>(j) << p.row_bits) + pnr_fused_column<P>(tile);
}

/* Writes the table [log2 P][32] of W_32P^(k 2^i), i < log2 P, k < 32, for pnr_fused_transform_lags.
 * A barrier must follow. */
template <int P> static __device__ __forceinline__ void pnr_fused_prepare_lags(float2 *memory)
{
    if constexpr (P > 1) {
        if (threadIdx.x < 32 * pnr_fused_columns<P>::BITS)
            memory[PNR_FUSED_LONG_TILE + threadIdx.x] =
                pnr_fused_twiddle(threadIdx.x % 32 << threadIdx.x / 32, 1.0f / (16 * P));
    }
}

/* Loads the values of the thread's column. rows: the rows of the window. */
template <int P>
static __device__ __forceinline__ void
pnr_fused_load_lags(const pnr_fused_long &p, const float2 *rows, uint32_t tile, float2 (&v)[32])
{
    const float2 *in = rows + (pnr_fused_part<P>() << p.row_bits) + pnr_fused_column<P>(tile);

#pragma unroll
    for (int a = 0; a < 32; a++)
        v[a] = in[(uint32_t)(a * P) << p.row_bits];
}

/* Twiddles of the thread's column: W_L^(m1 2^i). */
template <int P> struct pnr_fused_lag_powers {
    static constexpr int BITS = pnr_fused_columns<P>::BITS;
    float2 first[5], second[P > 1 ? BITS : 1];

    __device__ __forceinline__ pnr_fused_lag_powers(const pnr_fused_long &p, uint32_t tile)
    {
        const float2 *of_column = p.column_powers + pnr_fused_column<P>(tile);

#pragma unroll
        for (int i = 0; i < 5; i++)
            first[i] = __ldg(of_column + ((uint32_t)(BITS + i) << p.row_bits));
#pragma unroll
        for (int i = 0; i < BITS; i++)
            second[i] = __ldg(of_column + ((uint32_t)i << p.row_bits));
    }
};

/* Transforms the loaded values. On return v[j] is c at pnr_fused_lag_of(j), with real and imaginary
 * part swapped, or 0 if this lag is not below N. memory: a tile that no thread reads any more,
 * followed by the output of pnr_fused_prepare_lags. */
template <int P>
static __device__ __forceinline__ void
pnr_fused_transform_lags(const pnr_fused_long &p, uint32_t tile, float2 *memory,
                         const pnr_fused_lag_powers<P> &of_column, float2 (&v)[32])
{
    constexpr int BITS = pnr_fused_columns<P>::BITS;

    pnr_fused_transform_with<32>(v, of_column.first);
    pnr_fused_exchange<P>(
        v, memory,
        [&](uint32_t ka, float2(&x)[P]) {
            if constexpr (P > 1) {
                float2 powers[BITS];

#pragma unroll
                for (int i = 0; i < BITS; i++)
                    powers[i] = pnr_fused_product(of_column.second[i],
                                                  memory[PNR_FUSED_LONG_TILE + 32 * i + ka]);
                pnr_fused_transform_with<P>(x, powers);
            }
        },
        [&](int j, float2 c) { v[j] = c; });
    if (p.n_samples < p.n_points) {
#pragma unroll
        for (int j = 0; j < 32; j++)
            if (pnr_fused_lag_of<P>(p, tile, j) >= p.n_samples)
                v[j] = make_float2(0.0f, 0.0f);
    }
}

/* Sets power[j] to the power at pnr_fused_lag_of(j), summed over the transforms of the dwell in
 * order. Calls seen(t, v) for each transform t. On entry v has the loaded values of the first
 * transform. memory: as in pnr_fused_transform_lags; with IS_SUM a tile for the sum follows. */
template <int P, bool IS_SUM, class SEEN>
static __device__ __forceinline__ void
pnr_fused_powers_of_tile(const pnr_fused_long &p, const float2 *rows, uint32_t tile, float2 *memory,
                         const pnr_fused_lag_powers<P> &of_column, float2 (&v)[32],
                         float (&power)[32], SEEN seen)
{
    float *sums = (float *)((char *)memory + pnr_fused_columns<P>::LAGS_SHARED) + threadIdx.x;

#pragma unroll 1
    for (uint32_t t = 0; IS_SUM && t + 1 < p.n_sums; t++) {
        pnr_fused_transform_lags<P>(p, tile, memory, of_column, v);
        seen(t, v);
#pragma unroll
        for (int j = 0; j < 32; j++)
            sums[j * PNR_FUSED_LONG_THREADS] =
                (t > 0 ? sums[j * PNR_FUSED_LONG_THREADS] : 0.0f) + pnr_fused_power(v[j]);
        rows += p.n_points;
        pnr_fused_load_lags<P>(p, rows, tile, v);
        __syncthreads();
    }
    pnr_fused_transform_lags<P>(p, tile, memory, of_column, v);
    seen(p.n_sums - 1, v);
#pragma unroll
    for (int j = 0; j < 32; j++) {
        power[j] = pnr_fused_power(v[j]);
        if (IS_SUM && p.n_sums > 1)
            power[j] = sums[j * PNR_FUSED_LONG_THREADS] + power[j];
    }
}

/* Lists the cells of the tile above the threshold, in any order, and counts them in *counts.
 * tile_at: number of the tile among the tiles of all dwells. counts: in shared memory, 0 before the
 * call. memory: the shared memory of pnr_fused_exchange, which is free again. All threads call
 * this; a barrier must follow. */
template <int P>
static __device__ __forceinline__ void
pnr_fused_list_tile(const pnr_fused_long &p, size_t tile_at, uint32_t tile,
                    const float (&power)[32], bool has_any, float threshold, float *memory,
                    pnr_fused_long_tile *counts)
{
    float *own = memory + threadIdx.x;

    if (!has_any)
        return;
        /* The second loop is not unrolled, so it reads the powers from an array in memory. This
         * costs less time than 32 copies of the loop's body. */
#pragma unroll
    for (int j = 0; j < 32; j++)
        own[j * PNR_FUSED_LONG_THREADS] = power[j];
#pragma unroll 1
    for (int j = 0; j < 32; j++) {
        const float here = own[j * PNR_FUSED_LONG_THREADS];

        if (!(here > threshold))
            continue;

        const uint32_t lag = pnr_fused_lag_of<P>(p, tile, j);

        p.listed[tile_at * PNR_FUSED_LONG_TILE + atomicAdd(&counts->n_listed, 1u)] =
            pnr_candidate_key(here, lag);
        if (pnr_candidate_in_gate(p, p.n_samples, lag))
            atomicAdd(&counts->n_above, 1u);
    }
}

#endif
