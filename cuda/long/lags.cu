/* SPDX-License-Identifier: MIT */
/* Method fused, long: computes the value and the power at every lag, and lists the cells above the
 * threshold. */
#include "cuda/base/chain.h"
#include "cuda/long/lags.h"

#include <cassert>

/* Returns the index of the last used transform of a dwell. Its values are the complex profile. */
static __device__ __forceinline__ uint32_t returned_of(const pnr_fused_long &p, uint32_t dwell)
{
    return p.n_sums > 1 ? min(p.states[dwell].last_used, p.n_sums - 1) : 0;
}

/* Writes the values at the lags of the tile to the profile, or zeros for a dwell that uses no
 * window. */
template <int P>
static __device__ __forceinline__ void return_values(const pnr_fused_long &p, uint32_t dwell,
                                                     uint32_t tile, const float2 (&swapped)[32])
{
    float2 *out = p.profile + (size_t)dwell * p.n_samples;
    const bool is_used = p.states[dwell].sums.n_periods > 0;

#pragma unroll
    for (int j = 0; j < 32; j++) {
        const uint32_t lag = pnr_fused_lag_of<P>(p, tile, j);

        if (lag < p.n_samples)
            out[lag] = is_used ? make_float2(swapped[j].y, swapped[j].x) : make_float2(0.0f, 0.0f);
    }
}

template <int P>
static __device__ __forceinline__ void return_powers(const pnr_fused_long &p, uint32_t dwell,
                                                     uint32_t tile, const float (&power)[32])
{
    float *out = p.power + (size_t)dwell * p.n_samples;
    const bool is_used = p.states[dwell].sums.n_periods > 0;

#pragma unroll
    for (int j = 0; j < 32; j++) {
        const uint32_t lag = pnr_fused_lag_of<P>(p, tile, j);

        if (lag < p.n_samples)
            out[lag] = is_used ? power[j] : 0.0f;
    }
}

/* A block computes one tile of lags of one dwell; blockIdx.y is the dwell's number in the group. */
template <int P, bool IS_SUM>
__global__ void __launch_bounds__(PNR_FUSED_LONG_THREADS, IS_SUM ? 1 : 2)
    fused_lags(pnr_fused_long p, uint32_t first, uint32_t)
{
    extern __shared__ float4 memory[];
    __shared__ double noise_of_warp[PNR_FUSED_LONG_THREADS / 32];
    __shared__ float top_of_warp[PNR_FUSED_LONG_THREADS / 32];
    __shared__ pnr_fused_long_tile of_block;
    const uint32_t dwell = first + blockIdx.y, tile = blockIdx.x;
    const size_t tile_at = (size_t)dwell * p.n_tiles + tile;
    const float2 *rows = p.rows + (size_t)dwell * p.n_sums * p.n_points;
    const pnr_fused_lag_powers<P> of_column(p, tile);
    const uint32_t n_dwells = p.job->n_dwells;
    float power[32], sum = 0, top = 0;
    float2 v[32];

    pnr_chain_next();
    pnr_fused_prepare_lags<P>((float2 *)memory);
    if (threadIdx.x == 0)
        of_block = {};
    pnr_chain_wait();
    pnr_fused_load_lags<P>(p, rows, tile, v);

    const float threshold = p.states[dwell].threshold;

    /* The loads precede this test, so that the thread waits for memory only once. */
    if (dwell >= n_dwells)
        return; /* the whole block returns */
    pnr_fused_powers_of_tile<P, IS_SUM>(p, rows, tile, (float2 *)memory, of_column, v, power,
                                        [&](uint32_t t, const float2(&c)[32]) {
                                            if (p.profile != NULL && t == returned_of(p, dwell))
                                                return_values<P>(p, dwell, tile, c);
                                        });
    if (p.power != NULL)
        return_powers<P>(p, dwell, tile, power);
        /* The greatest power is added last and in double precision. It may belong to a strong echo;
         * then a float sum would lose the other powers. */
#pragma unroll
    for (int j = 0; j < 32; j++) {
        sum += fminf(power[j], top);
        top = fmaxf(power[j], top);
    }

    const double noise = pnr_cuda_warp_sum((double)sum + (double)top);
    const bool has_any = p.listed != NULL && top > threshold;

    for (int other = 16; other > 0; other /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
    if (threadIdx.x % 32 == 0) {
        noise_of_warp[threadIdx.x / 32] = noise;
        top_of_warp[threadIdx.x / 32] = top;
    }

    if (__syncthreads_or(has_any)) {
        pnr_fused_list_tile<P>(p, tile_at, tile, power, has_any, threshold, (float *)memory,
                               &of_block);
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < PNR_FUSED_LONG_THREADS / 32; warp++)
            top = fmaxf(top, top_of_warp[warp]);
        of_block.top = top;
        of_block.noise = pnr_fused_sum_warps(noise_of_warp);
        p.tiles[tile_at] = of_block;
    }
}

/* --- the table of kernels --- */

pnr_fused_long_launch pnr_fused_long_lags(uint32_t column_bits, bool is_sum)
{
#define ROW(p)                                                                                     \
    {                                                                                              \
        {fused_lags<p, false>, PNR_FUSED_LONG_THREADS, pnr_fused_columns<p>::LAGS_SHARED},         \
        {                                                                                          \
            fused_lags<p, true>, PNR_FUSED_LONG_THREADS, pnr_fused_columns<p>::SUMS_SHARED         \
        }                                                                                          \
    }
    static const pnr_fused_long_launch table[][2] = {ROW(1), ROW(2), ROW(4), ROW(8), ROW(16)};
#undef ROW

    assert(column_bits >= 5 && column_bits <= 9);
    return table[column_bits - 5][is_sum];
}
