/* SPDX-License-Identifier: MIT */
/* A tile of lags: transformed from the rows' columns, and its cells above the threshold. */
#ifndef PNR_CUDA_FUSED_LONG_LAGS_H
#define PNR_CUDA_FUSED_LONG_LAGS_H

#include "candidates.h"
#include "fused_long_columns.h"

/* Of c with its parts swapped, as the inverse leaves it. */
static __device__ __forceinline__ float pnr_fused_long_power(float2 swapped)
{
    return fmaf(swapped.y, swapped.y, swapped.x * swapped.x);
}

/* The lag of the thread's value j. */
template <int P>
static __device__ __forceinline__ uint32_t pnr_fused_lag_of(const pnr_fused_long &p, uint32_t tile,
                                                            int j)
{
    return (pnr_fused_row_of<P>(j) << p.row_bits) + pnr_fused_column<P>(tile);
}

/* W_32P^(ka 2^i), [log2 P][32], where pnr_fused_transform_lags wants them; a barrier must follow.
 */
template <int P> static __device__ __forceinline__ void pnr_fused_prepare_lags(float2 *memory)
{
    if constexpr (P > 1) {
        if (threadIdx.x < 32 * pnr_fused_columns<P>::BITS)
            memory[PNR_FUSED_LONG_TILE + threadIdx.x] =
                pnr_fused_twiddle(threadIdx.x % 32 << threadIdx.x / 32, 1.0f / (16 * P));
    }
}

/* The thread's values of its column. rows: the window's. */
template <int P>
static __device__ __forceinline__ void
pnr_fused_load_lags(const pnr_fused_long &p, const float2 *rows, uint32_t tile, float2 (&v)[32])
{
    const float2 *in =
        rows + (pnr_fused_part<P>() << p.row_bits) + pnr_fused_column<P>(tile);

#pragma unroll
    for (int a = 0; a < 32; a++)
        v[a] = in[(uint32_t)(a * P) << p.row_bits];
}

/* take(j, c): c at lag j of the tile, parts swapped, 0 beyond N, of v as loaded. memory: the tile
 * (free: a barrier before) and what pnr_fused_prepare_lags left behind it. */
template <int P, class TAKE>
static __device__ __forceinline__ void pnr_fused_transform_lags(const pnr_fused_long &p,
                                                                uint32_t tile, float2 *memory,
                                                                float2 (&v)[32], TAKE take)
{
    constexpr int BITS = pnr_fused_columns<P>::BITS;
    const float2 *of_column = p.column_powers + pnr_fused_column<P>(tile);
    const bool is_extended = p.n_samples < p.n_points;
    float2 first[5];

#pragma unroll
    for (int i = 0; i < 5; i++)
        first[i] = __ldg(of_column + ((uint32_t)(BITS + i) << p.row_bits));
    pnr_fused_transform_with<32>(v, first);
    pnr_fused_exchange<P>(
        v, memory,
        [&](uint32_t ka, float2(&x)[P]) {
            if constexpr (P > 1) {
                float2 powers[BITS];

#pragma unroll
                for (int i = 0; i < BITS; i++)
                    powers[i] = pnr_fused_product(__ldg(of_column + ((uint32_t)i << p.row_bits)),
                                                  memory[PNR_FUSED_LONG_TILE + 32 * i + ka]);
                pnr_fused_transform_with<P>(x, powers);
            }
        },
        [&](int j, float2 c) {
            if (is_extended && pnr_fused_lag_of<P>(p, tile, j) >= p.n_samples)
                c = make_float2(0.0f, 0.0f);
            take(j, c);
        });
}

static __device__ __forceinline__ bool pnr_fused_is_in_gate(const pnr_fused_long &p, uint32_t lag)
{
    return (lag >= p.gate_first ? lag - p.gate_first : lag + p.n_samples - p.gate_first) <
           p.gate_count;
}

/* Lists the tile's cells above, in any order. tile_at: of all tiles; its counts: shared, 0; memory:
 * of the exchange, free. All threads call; a barrier must follow. */
template <int P>
static __device__ __forceinline__ void
pnr_fused_list_tile(const pnr_fused_long &p, size_t tile_at, uint32_t tile,
                    const float (&power)[32], bool has_any, float threshold, float *memory,
                    pnr_fused_long_tile *counts)
{
    float *own = memory + threadIdx.x;

    if (!has_any)
        return;
        /* A loop that is not unrolled needs memory, which costs less than 32 copies of its body. */
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
        if (pnr_fused_is_in_gate(p, lag))
            atomicAdd(&counts->n_above, 1u);
    }
}

#endif
