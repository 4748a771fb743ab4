/* SPDX-License-Identifier: MIT */
/* Method fused, long: local maxima among the listed cells, the next floor, neighbours, results. */
#include "candidates.h"
#include "fused_long_lags.h"

#include <cassert>

enum {
    THREADS = PNR_FUSED_LONG_THREADS,
    WARPS = THREADS / PNR_CUDA_WARP,
    NEAR_KEYS = 512 /* held in shared memory; more are in device memory */
};

/* A block's shared memory beside the tile. */
struct searcher {
    pnr_cuda_dwell state;
    uint64_t keys[NEAR_KEYS];
    float2 values[PNR_MAX_CANDIDATES * PNR_NEIGHBOURS]; /* c at the kept keys' neighbours */
    double noise_of_warp[WARPS];
    uint32_t listed_of_warp[WARPS], above_of_warp[WARPS];
    pnr_fused_long_count count; /* of a tile that is listed again */
    uint32_t n_listed, n_above;
    uint32_t n_keys, n_kept;
    uint32_t is_done;
};

/* The tiles' sums in their order; s.state.sums are what is known before the search. Ends with a
 * barrier. */
static __device__ void begin_search(searcher &s, const pnr_fused_long &p, uint32_t window)
{
    double noise = 0;

    for (uint32_t i = threadIdx.x; i < p.n_tiles; i += THREADS)
        noise += p.noise[(size_t)window * p.n_tiles + i];
    noise = pnr_cuda_block_sum(noise, s.noise_of_warp);
    if (threadIdx.x == 0) {
        s.state = p.states[window];
        s.state.sums.noise_sum = s.state.sums.n_periods > 0 ? noise : 0;
    }
    __syncthreads();
}

/* How many are listed. Ends with a barrier. */
static __device__ void count_listed(searcher &s, const pnr_fused_long &p, uint32_t window)
{
    uint32_t n_listed = 0, n_above = 0;

    for (uint32_t i = threadIdx.x; i < p.n_tiles; i += THREADS) {
        const pnr_fused_long_count count = p.counts[(size_t)window * p.n_tiles + i];

        n_listed += count.n_listed;
        n_above += count.n_above;
    }
    n_listed = pnr_cuda_block_sum(n_listed, s.listed_of_warp);
    n_above = pnr_cuda_block_sum(n_above, s.above_of_warp);
    if (threadIdx.x == 0) {
        s.n_listed = n_listed;
        s.n_above = n_above;
        s.n_keys = 0;
    }
    __syncthreads();
}

/* take(lag) of every listed cell, a tile a warp. */
template <class TAKE>
static __device__ __forceinline__ void for_listed(const pnr_fused_long &p, uint32_t window,
                                                  TAKE take)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP;

    for (uint32_t first = threadIdx.x - lane; first < p.n_tiles; first += THREADS) {
        const size_t tile_at = (size_t)window * p.n_tiles + first;
        const uint32_t mine = first + lane < p.n_tiles ? p.counts[tile_at + lane].n_listed : 0;

        for (uint32_t left = __ballot_sync(0xffffffffu, mine > 0); left != 0; left &= left - 1) {
            const int tile = __ffs((int)left) - 1;
            const uint32_t n = __shfl_sync(0xffffffffu, mine, tile);
            const uint32_t *listed = p.listed + (tile_at + tile) * PNR_FUSED_LONG_TILE;

            for (uint32_t i = lane; i < n; i += PNR_CUDA_WARP)
                take(listed[i]);
            __syncwarp();
        }
    }
}

/* Local maxima inside the gate: a lag that is not above is less than one that is. */
static __device__ void list_maxima(searcher &s, const pnr_fused_long &p, uint32_t window,
                                   uint64_t *keys)
{
    const float *above = p.above + (size_t)window * p.n_samples;
    const uint32_t n = p.n_samples;

    for_listed(p, window, [&](uint32_t lag) {
        const float here = above[lag];

        if (pnr_fused_is_in_gate(p, lag) && here > above[lag == 0 ? n - 1 : lag - 1] &&
            here >= above[lag + 1 == n ? 0 : lag + 1])
            keys[atomicAdd(&s.n_keys, 1u)] = pnr_candidate_key(here, lag);
    });
}

/* c at the kept lags' neighbours, a warp each: c[m] = sum_k1 D[k1][m mod N2] W_L^-(k1 m). */
static __device__ void gather_neighbours(searcher &s, const pnr_fused_long &p, const float2 *rows,
                                         const uint64_t *kept)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP, n_rows = p.n_points >> p.row_bits;

    for (uint32_t e = threadIdx.x / PNR_CUDA_WARP; e < s.n_kept * PNR_NEIGHBOURS; e += WARPS) {
        const uint32_t lag = pnr_candidate_neighbour(
            p.n_samples, pnr_candidate_lag(kept[e / PNR_NEIGHBOURS]), e % PNR_NEIGHBOURS);
        const float2 *column = rows + (lag & ((1u << p.row_bits) - 1));
        float2 sum = {0, 0};

#pragma unroll 4
        for (uint32_t row = lane; row < n_rows; row += PNR_CUDA_WARP) {
            const float2 w = pnr_fused_twiddle(row * lag & (p.n_points - 1), p.per_point);
            const float2 x = pnr_fused_product(column[(size_t)row << p.row_bits], w);

            sum.x += x.x;
            sum.y += x.y;
        }
        sum.x = pnr_cuda_warp_sum(sum.x);
        sum.y = pnr_cuda_warp_sum(sum.y);
        if (lane == 0)
            s.values[e] = make_float2(sum.y, sum.x);
    }
}

/* The first warp, when the kept keys and their neighbours are known: a lower threshold for another
 * search, or the window is done. */
static __device__ void decide(searcher &s, const pnr_fused_long &p, const uint64_t *kept,
                              uint32_t window, int search)
{
    const auto value = [&](uint32_t i, uint32_t j) { return s.values[i * PNR_NEIGHBOURS + j]; };
    const uint32_t n_kept = s.n_kept;
    pnr_dwell &sums = s.state.sums;
    const double rest = pnr_candidates_rest(kept, n_kept, p.n_samples, sums.noise_sum, value);
    const double floor = fmax(rest, s.state.rounding);
    const bool is_last = search + 1 == PNR_MAX_SEARCHES || n_kept == 0 || isinf(rest) ||
                         !(floor < 0.95 * sums.floor);
    /* Beside max_candidates kept ones a lower threshold adds only weaker ones. */
    const bool is_done = is_last || n_kept == p.max_candidates;

    __syncwarp();
    if (threadIdx.x == 0) {
        if (search == 0)
            sums.n_above = s.n_above;
        sums.n_maxima = s.n_keys;
        sums.n_candidates = n_kept;
        if (!is_last)
            sums.floor = floor;
        s.state.threshold = (float)(p.threshold * sums.floor);
        s.is_done = is_done;
    }
    __syncwarp();
    if (!is_done)
        return;
    pnr_candidates_return(kept, n_kept, p.candidates + (size_t)window * p.max_candidates, value);
    if (threadIdx.x < sizeof(pnr_dwell) / sizeof(uint32_t))
        ((uint32_t *)(p.dwells + window))[threadIdx.x] = ((const uint32_t *)&sums)[threadIdx.x];
}

/* A tile's cells above the lower threshold. */
template <int P>
static __device__ __forceinline__ void list_tile_again(searcher &s, const pnr_fused_long &p,
                                                       uint32_t window, uint32_t tile,
                                                       const float2 *rows, float2 *memory)
{
    const float threshold = s.state.threshold;
    float power[32], top = 0;
    float2 v[32];

    if (threadIdx.x == 0)
        s.count = {};
    pnr_fused_transform_lags<P>(p, rows, tile, memory, v);
#pragma unroll
    for (int j = 0; j < 32; j++) {
        power[j] = pnr_fused_long_power(v[j]);
        top = fmaxf(power[j], top);
    }
    __syncthreads();
    pnr_fused_list_tile<P>(p, window, tile, power, top > threshold, threshold, (float *)memory,
                           &s.count);
    __syncthreads();
}

/* Of the tiles that have one. Every warp finds the same tiles. */
template <int P>
static __device__ void list_again(searcher &s, const pnr_fused_long &p, uint32_t window,
                                  const float2 *rows, float2 *memory)
{
    const float *top = p.top + (size_t)window * p.n_tiles;

    for (uint32_t first = 0; first < p.n_tiles; first += PNR_CUDA_WARP) {
        const uint32_t mine = first + threadIdx.x % PNR_CUDA_WARP;
        uint32_t left =
            __ballot_sync(0xffffffffu, mine < p.n_tiles && top[mine] > s.state.threshold);

        for (; left != 0; left &= left - 1)
            list_tile_again<P>(s, p, window, first + (uint32_t)__ffs((int)left) - 1, rows, memory);
    }
}

/* One block a window. */
template <int P>
__global__ void __launch_bounds__(THREADS, 1)
    fused_search(pnr_fused_long p, uint32_t first, uint32_t)
{
    extern __shared__ float4 memory[];
    __shared__ searcher s;
    const uint32_t window = first + blockIdx.x;
    const float2 *rows = p.rows + (size_t)blockIdx.x * p.n_points;

    if (window >= p.job->n_dwells)
        return; /* the whole block */
    pnr_fused_prepare_lags<P>((float2 *)memory);
    begin_search(s, p, window);
    for (int search = 0;; search++) {
        count_listed(s, p, window);

        uint64_t *keys =
            s.n_listed <= NEAR_KEYS ? s.keys : p.keys + (size_t)window * (p.n_samples / 2 + 1);

        list_maxima(s, p, window, keys);
        __syncthreads();
        for_listed(p, window,
                   [&](uint32_t lag) { p.above[(size_t)window * p.n_samples + lag] = 0; });
        if (threadIdx.x < PNR_CUDA_WARP) {
            const uint32_t n_kept = pnr_candidates_select(keys, s.n_keys, p.max_candidates);

            if (threadIdx.x == 0)
                s.n_kept = n_kept;
        }
        __syncthreads();
        gather_neighbours(s, p, rows, keys);
        __syncthreads();
        if (threadIdx.x < PNR_CUDA_WARP)
            decide(s, p, keys, window, search);
        __syncthreads();
        if (s.is_done)
            return; /* the whole block */
        list_again<P>(s, p, window, rows, (float2 *)memory);
    }
}

/* --- the table --- */

pnr_fused_long_launch pnr_fused_long_search(uint32_t column_bits)
{
#define ROW(p)                                                                                     \
    {                                                                                              \
        fused_search<p>, THREADS, pnr_fused_columns<p>::LAGS_SHARED                                \
    }
    static const pnr_fused_long_launch table[] = {ROW(1), ROW(2), ROW(4), ROW(8), ROW(16)};
#undef ROW

    assert(column_bits >= 5 && column_bits <= 9);
    return table[column_bits - 5];
}
