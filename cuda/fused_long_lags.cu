/* SPDX-License-Identifier: MIT */
/* Method fused, long: columns back to lags, their powers' sums, and the few cells above. */
#include "chain.h"
#include "fused_long_lags.h"

#include <cassert>

/* A lag to the profile; 0 of a window that is not used. */
static __device__ __forceinline__ void return_lag(const pnr_fused_long &p, uint32_t window,
                                                  uint32_t lag, float2 swapped, bool is_used)
{
    const size_t at = (size_t)window * p.n_samples + lag;
    const float2 c = is_used ? make_float2(swapped.y, swapped.x) : make_float2(0.0f, 0.0f);

    if (lag >= p.n_samples)
        return;
    if (p.profile != NULL)
        p.profile[at] = c;
    else
        p.power[at] = pnr_fused_long_power(is_used ? swapped : c);
}

/* One block a tile; blockIdx.y: the window of the group. */
template <int P>
__global__ void __launch_bounds__(PNR_FUSED_LONG_THREADS, 2)
    fused_lags(pnr_fused_long p, uint32_t first, uint32_t)
{
    extern __shared__ float4 memory[];
    __shared__ double noise_of_warp[PNR_FUSED_LONG_THREADS / 32];
    __shared__ float top_of_warp[PNR_FUSED_LONG_THREADS / 32];
    __shared__ pnr_fused_long_tile of_block;
    const uint32_t window = first + blockIdx.y, tile = blockIdx.x;
    const size_t tile_at = (size_t)window * p.n_tiles + tile;
    const uint32_t n_dwells = p.job->n_dwells;
    const bool is_returned = p.profile != NULL || p.power != NULL;
    float power[32], sum = 0, top = 0;
    float2 v[32];

    pnr_chain_next();
    pnr_fused_prepare_lags<P>((float2 *)memory);
    if (threadIdx.x == 0)
        of_block = {};
    pnr_chain_wait();

    const float threshold = p.states[window].threshold;

    pnr_fused_load_lags<P>(p, p.rows + (size_t)window * p.n_points, tile, v);
    if (window >= n_dwells)
        return; /* the whole block */
    /* The greatest power is added last and in double: it may be a strong echo's, beside which a
     * float sum cannot hold the others. */
    pnr_fused_transform_lags<P>(p, tile, (float2 *)memory, v, [&](int j, float2 c) {
        if (is_returned)
            return_lag(p, window, pnr_fused_lag_of<P>(p, tile, j), c, threshold < INFINITY);
        power[j] = pnr_fused_long_power(c);
        sum += fminf(power[j], top);
        top = fmaxf(power[j], top);
    });

    const double noise = pnr_cuda_warp_sum((double)sum + (double)top);
    const bool has_any = top > threshold;

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

/* --- the table --- */

pnr_fused_long_launch pnr_fused_long_lags(uint32_t column_bits)
{
#define ROW(p)                                                                                     \
    {                                                                                              \
        fused_lags<p>, PNR_FUSED_LONG_THREADS, pnr_fused_columns<p>::LAGS_SHARED                   \
    }
    static const pnr_fused_long_launch table[] = {ROW(1), ROW(2), ROW(4), ROW(8), ROW(16)};
#undef ROW

    assert(column_bits >= 5 && column_bits <= 9);
    return table[column_bits - 5];
}
