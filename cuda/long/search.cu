/* SPDX-License-Identifier: MIT */
/* Method fused, long: finds local maxima among the listed cells, computes the next floor and the
 * neighbours, and writes the results. */
#include "cuda/base/chain.h"
#include "cuda/long/lags.h"

#include <cassert>

enum {
    THREADS = PNR_FUSED_LONG_THREADS,
    WARPS = THREADS / PNR_CUDA_WARP,
    FEW = 512,         /* greatest number of listed cells that are searched in shared memory */
    FEW_OF_TILE = 32,  /* greatest number of cells of one tile that a thread copies */
    FEW_SUMS = 16,     /* candidates, or transforms, whose neighbours are computed at one time */
    ROWS_AT_ONCE = 32, /* rows of a neighbour's sum that are loaded together */
    STEPS = 8,         /* products after which a twiddle is computed exactly again */
    STATE_WORDS = sizeof(pnr_cuda_dwell) / sizeof(uint32_t)
};
static_assert((int)THREADS == (int)PNR_CUDA_THREADS, "pnr_cuda_block_sum takes that many");

/* Shared memory of a block, in addition to the tile. */
struct searcher {
    pnr_cuda_dwell state;
    uint64_t listed[FEW]; /* the listed cells, if they are few */
    uint64_t keys[FEW];
    float2 values[PNR_MAX_CANDIDATES * PNR_NEIGHBOURS]; /* c at the neighbours of the kept keys */
    float power[PNR_MAX_CANDIDATES * PNR_NEIGHBOURS];   /* power at these neighbours */
    double noise_of_warp[WARPS];
    pnr_fused_long_tile relisted; /* a tile that is listed again */
    uint64_t outside; /* with has_outside: the greatest key of a maximum outside of the gate; 0:
                       * there is none */
    uint32_t n_listed, n_above;
    uint32_t n_keys, n_kept;
    uint32_t is_done;
};

/* --- cells above the threshold --- */

/* Counts the listed cells of all tiles, and copies the cells to s.listed if they are few. Returns
 * true if they are many. The first search also loads the state of the dwell, and sums the `noise`
 * of the tiles in a fixed order. All threads call this. The last step is a barrier. */
static __device__ bool collect_tiles(searcher &s, const pnr_fused_long &p, uint32_t dwell,
                                     int search)
{
    const size_t first = (size_t)dwell * p.n_tiles;
    uint32_t state = 0; /* one word of the dwell's state */
    bool is_many = false;
    double noise = 0;

    if (search == 0 && threadIdx.x < STATE_WORDS)
        state = ((const uint32_t *)(p.states + dwell))[threadIdx.x];

    for (uint32_t i = threadIdx.x; i < p.n_tiles; i += THREADS) {
        const pnr_fused_long_tile tile = p.tiles[first + i];

        noise += tile.noise;
        if (tile.n_listed == 0)
            continue;

        const uint32_t at = atomicAdd(&s.n_listed, tile.n_listed);

        atomicAdd(&s.n_above, tile.n_above);
        if (tile.n_listed > FEW_OF_TILE || at + tile.n_listed > FEW)
            is_many = true;
        else
            for (uint32_t e = 0; e < tile.n_listed; e++)
                s.listed[at + e] = p.listed[(first + i) * PNR_FUSED_LONG_TILE + e];
    }
    if (search == 0) {
        if (threadIdx.x < STATE_WORDS)
            ((uint32_t *)&s.state)[threadIdx.x] = state;
        noise = pnr_cuda_block_sum(noise, s.noise_of_warp);
        if (threadIdx.x == 0)
            s.state.sums.noise_sum = s.state.sums.n_periods > 0 ? noise : 0;
    }
    return __syncthreads_or(is_many);
}

/* Appends the key of a local maximum in the gate to the keys. Sets *outside to the key of a maximum
 * outside of the gate if that key is greater. */
static __device__ __forceinline__ void take_maximum(searcher &s, uint64_t *keys, uint64_t key,
                                                    bool is_inside, uint64_t *outside)
{
    if (is_inside)
        keys[atomicAdd(&s.n_keys, 1u)] = key;
    else
        *outside = max(*outside, key);
}

/* Finds local maxima. Every lag that is not listed is weaker than all listed lags. So a cell is
 * compared only with listed neighbours. */
static __device__ void find_among_few(searcher &s, const pnr_fused_long &p)
{
    const uint32_t n = p.n_samples, n_listed = s.n_listed;
    uint64_t outside = 0;

    for (uint32_t i = threadIdx.x; i < n_listed; i += THREADS) {
        const uint64_t key = s.listed[i];
        const uint32_t lag = pnr_candidate_lag(key);
        const uint32_t before = lag == 0 ? n - 1 : lag - 1, after = lag + 1 == n ? 0 : lag + 1;
        const float here = pnr_candidate_power(key);
        const bool is_inside = pnr_candidate_in_gate(p, n, lag);
        bool is_maximum = is_inside || p.has_outside;

        for (uint32_t e = 0; e < n_listed; e++) {
            const uint32_t other = pnr_candidate_lag(s.listed[e]);
            const float there = pnr_candidate_power(s.listed[e]);

            if ((other == before && !(here > there)) || (other == after && !(here >= there)))
                is_maximum = false;
        }
        if (is_maximum)
            take_maximum(s, s.keys, key, is_inside, &outside);
    }
    pnr_candidate_raise(&s.outside, outside);
}

/* Calls take(key) for every listed cell. Each warp reads one tile at a time. */
template <class TAKE>
static __device__ __forceinline__ void for_listed(const pnr_fused_long &p, uint32_t dwell,
                                                  TAKE take)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP;

    for (uint32_t tile = threadIdx.x / PNR_CUDA_WARP; tile < p.n_tiles; tile += WARPS) {
        const size_t at = (size_t)dwell * p.n_tiles + tile;
        const uint32_t n = p.tiles[at].n_listed;

        for (uint32_t i = lane; i < n; i += PNR_CUDA_WARP)
            take(p.listed[at * PNR_FUSED_LONG_TILE + i]);
    }
}

/* Finds local maxima among many cells, with an array of their powers. All threads call this. */
static __device__ void find_among_many(searcher &s, const pnr_fused_long &p, uint32_t dwell,
                                       uint64_t *keys)
{
    float *above = p.above + (size_t)dwell * p.n_samples;
    const uint32_t n = p.n_samples;
    uint64_t outside = 0;

    for_listed(p, dwell,
               [&](uint64_t key) { above[pnr_candidate_lag(key)] = pnr_candidate_power(key); });
    __syncthreads();
    for_listed(p, dwell, [&](uint64_t key) {
        const uint32_t lag = pnr_candidate_lag(key);
        const float here = pnr_candidate_power(key);
        const bool is_inside = pnr_candidate_in_gate(p, n, lag);

        if ((is_inside || p.has_outside) && here > above[lag == 0 ? n - 1 : lag - 1] &&
            here >= above[lag + 1 == n ? 0 : lag + 1])
            take_maximum(s, keys, key, is_inside, &outside);
    });
    pnr_candidate_raise(&s.outside, outside);
    __syncthreads();
    for_listed(p, dwell, [&](uint64_t key) { above[pnr_candidate_lag(key)] = 0; });
}

/* Lists the cells of a tile that are above the lower threshold. */
template <int P, bool IS_SUM>
static __device__ __forceinline__ void relist_tile(searcher &s, const pnr_fused_long &p,
                                                   uint32_t dwell, uint32_t tile, float2 *memory)
{
    const float threshold = s.state.threshold;
    const size_t tile_at = (size_t)dwell * p.n_tiles + tile;
    const float2 *rows = p.rows + (size_t)dwell * p.n_sums * p.n_points;
    float power[32], top = 0;
    float2 v[32];

    if (threadIdx.x == 0) {
        s.relisted = p.tiles[tile_at];
        s.relisted.n_listed = s.relisted.n_above = 0;
    }
    pnr_fused_load_lags<P>(p, rows, tile, v);
    pnr_fused_powers_of_tile<P, IS_SUM>(p, rows, tile, memory, pnr_fused_lag_powers<P>(p, tile), v,
                                        power, [](uint32_t, const float2(&)[32]) {});
#pragma unroll
    for (int j = 0; j < 32; j++)
        top = fmaxf(power[j], top);
    __syncthreads();
    pnr_fused_list_tile<P>(p, tile_at, tile, power, top > threshold, threshold, (float *)memory,
                           &s.relisted);
    __syncthreads();
    if (threadIdx.x == 0)
        p.tiles[tile_at] = s.relisted;
}

/* Calls relist_tile for each tile with a cell above the lower threshold. Every warp finds the same
 * tiles. The last step is a barrier. */
template <int P, bool IS_SUM>
static __device__ void relist_tiles(searcher &s, const pnr_fused_long &p, uint32_t dwell,
                                    float2 *memory)
{
    const pnr_fused_long_tile *tiles = p.tiles + (size_t)dwell * p.n_tiles;
    const float threshold = s.state.threshold;

    for (uint32_t first = 0; first < p.n_tiles; first += PNR_CUDA_WARP) {
        const uint32_t mine = first + threadIdx.x % PNR_CUDA_WARP;
        uint32_t left = __ballot_sync(0xffffffffu, mine < p.n_tiles && tiles[mine].top > threshold);

        for (; left != 0; left &= left - 1)
            relist_tile<P, IS_SUM>(s, p, dwell, first + (uint32_t)__ffs((int)left) - 1, memory);
    }
    __syncthreads();
}

/* --- neighbours --- */

/* Returns the part of warp w in the sum c[lag] = sum_k1 D[k1][lag mod N2] W_L^-(k1 lag). Its rows
 * are k1 = w, w + WARPS, and so on. Each lane has its own lag. */
static __device__ float2 sum_rows(const pnr_fused_long &p, const float2 *rows, uint32_t lag)
{
    const uint32_t n_rows = p.n_points >> p.row_bits, mask = p.n_points - 1;
    const float2 *column = rows + (lag & ((1u << p.row_bits) - 1));
    const float2 turn = pnr_fused_twiddle(lag * WARPS & mask, p.per_point);
    float2 sum = {0, 0};

    for (uint32_t first = threadIdx.x / PNR_CUDA_WARP; first < n_rows;
         first += WARPS * ROWS_AT_ONCE) {
        float2 v[ROWS_AT_ONCE];

#pragma unroll
        for (uint32_t i = 0; i < ROWS_AT_ONCE; i++) {
            const uint32_t row = first + i * WARPS;

            v[i] = row < n_rows ? column[(size_t)row << p.row_bits] : make_float2(0.0f, 0.0f);
        }
#pragma unroll
        for (uint32_t i = 0; i < ROWS_AT_ONCE && first + i * WARPS < n_rows; i += STEPS) {
            float2 w = pnr_fused_twiddle((first + i * WARPS) * lag & mask, p.per_point);

#pragma unroll
            for (uint32_t step = 0; step < STEPS; step++) {
                const float2 x = pnr_fused_product(v[i + step], w);

                sum.x += x.x;
                sum.y += x.y;
                w = pnr_fused_product(w, turn);
            }
        }
    }
    return sum;
}

/* Returns the sum of element e over all warps. */
static __device__ float2 sum_parts(const float2 *memory, uint32_t e)
{
    float2 sum = {0, 0};

#pragma unroll
    for (uint32_t w = 0; w < WARPS; w++) {
        sum.x += memory[w * FEW_SUMS * PNR_NEIGHBOURS + e].x;
        sum.y += memory[w * FEW_SUMS * PNR_NEIGHBOURS + e].y;
    }
    return make_float2(sum.y, sum.x); /* real and imaginary part are swapped in the rows */
}

/* Computes c at the neighbours of the kept lags. memory: the shared memory that pnr_fused_exchange
 * uses, too. All threads call this. The last step is a barrier. */
static __device__ void gather_neighbours(searcher &s, const pnr_fused_long &p, uint32_t dwell,
                                         const uint64_t *kept, float2 *memory)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP, warp = threadIdx.x / PNR_CUDA_WARP;
    const float2 *rows = p.rows + (size_t)dwell * p.n_points;

    for (uint32_t first = 0; first < s.n_kept; first += FEW_SUMS) {
        const uint32_t n = min(s.n_kept - first, (uint32_t)FEW_SUMS);

        for (uint32_t i = 0; i < n && lane < PNR_NEIGHBOURS; i++)
            memory[(warp * FEW_SUMS + i) * PNR_NEIGHBOURS + lane] = sum_rows(
                p, rows,
                pnr_candidate_neighbour(p.n_samples, pnr_candidate_lag(kept[first + i]), lane));
        __syncthreads();
        for (uint32_t e = threadIdx.x; e < n * PNR_NEIGHBOURS; e += THREADS) {
            const float2 c = sum_parts(memory, e);

            s.values[first * PNR_NEIGHBOURS + e] = c;
            s.power[first * PNR_NEIGHBOURS + e] = fmaf(c.x, c.x, c.y * c.y);
        }
        __syncthreads();
    }
}

/* Does the work of gather_neighbours for a sum of powers. A value is the sum over t of c_t[lag]
 * conj(c_t[k]), divided by sqrt(sum_t |c_t[k]|^2). t is the number of a transform, and k is the lag
 * of the candidate. */
static __device__ void gather_sums(searcher &s, const pnr_fused_long &p, uint32_t dwell,
                                   const uint64_t *kept, float2 *memory)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP, warp = threadIdx.x / PNR_CUDA_WARP;
    const float2 *rows = p.rows + (size_t)dwell * p.n_sums * p.n_points;

    for (uint32_t i = 0; i < s.n_kept; i++) {
        const uint32_t lag = pnr_candidate_neighbour(p.n_samples, pnr_candidate_lag(kept[i]),
                                                     min(lane, PNR_NEIGHBOURS - 1u));
        double re = 0, im = 0, power = 0, centre = 0;

        for (uint32_t first = 0; first < p.n_sums; first += FEW_SUMS) {
            const uint32_t n = min(p.n_sums - first, (uint32_t)FEW_SUMS);

            for (uint32_t t = 0; t < n && lane < PNR_NEIGHBOURS; t++)
                memory[(warp * FEW_SUMS + t) * PNR_NEIGHBOURS + lane] =
                    sum_rows(p, rows + (size_t)(first + t) * p.n_points, lag);
            __syncthreads();
            for (uint32_t t = 0; t < n && threadIdx.x < PNR_NEIGHBOURS; t++) {
                const float2 a = sum_parts(memory, t * PNR_NEIGHBOURS + threadIdx.x);
                const float2 b = sum_parts(memory, t * PNR_NEIGHBOURS + PNR_CANDIDATE_REACH);

                re += (double)a.x * b.x + (double)a.y * b.y;
                im += (double)a.y * b.x - (double)a.x * b.y;
                power += (double)a.x * a.x + (double)a.y * a.y;
                centre += (double)b.x * b.x + (double)b.y * b.y;
            }
            __syncthreads();
        }
        if (threadIdx.x < PNR_NEIGHBOURS) {
            const double scale = centre > 0 ? 1 / sqrt(centre) : 0;

            s.values[i * PNR_NEIGHBOURS + threadIdx.x] =
                make_float2((float)(re * scale), (float)(im * scale));
            s.power[i * PNR_NEIGHBOURS + threadIdx.x] = (float)power;
        }
    }
    __syncthreads();
}

/* --- the search --- */

/* Lowers the threshold for another search, or writes the results of the dwell. The caller has
 * computed the kept keys and their neighbours. The first warp calls this. */
static __device__ void finish_search(searcher &s, const pnr_fused_long &p, const uint64_t *kept,
                                     uint32_t dwell, int search)
{
    const auto value = [&](uint32_t i, uint32_t j) { return s.values[i * PNR_NEIGHBOURS + j]; };
    const auto power = [&](uint32_t i, uint32_t j) { return s.power[i * PNR_NEIGHBOURS + j]; };
    const uint32_t n_kept = s.n_kept;
    pnr_dwell &sums = s.state.sums;
    const double rest = pnr_candidates_rest(kept, n_kept, p.n_samples, sums.noise_sum, power);
    const double floor = fmax(rest, s.state.rounding);
    const bool is_last = search + 1 == PNR_MAX_SEARCHES || isinf(rest) ||
                         !(floor < PNR_LOWER_FLOOR(n_kept) * sums.floor);
    /* If no more candidates in the gate may be kept, a lower threshold adds only weaker ones. */
    const bool is_done = is_last || s.n_keys >= pnr_candidate_most(p);

    __syncwarp();
    if (threadIdx.x == 0) {
        if (search == 0)
            sums.n_above = s.n_above;
        sums.n_maxima = s.n_keys;
        sums.n_candidates = n_kept;
        if (!is_last)
            sums.floor = floor;
        if (!is_done)
            s.state.threshold = (float)(p.threshold[sums.n_periods - 1] * floor);
        s.is_done = is_done;
        s.n_listed = s.n_keys = 0;
        s.outside = 0;
    }
    __syncwarp();
    if (!is_done)
        return;
    pnr_candidates_return(kept, n_kept, p.candidates + (size_t)dwell * p.max_candidates, value);
    if (threadIdx.x < sizeof(pnr_dwell) / sizeof(uint32_t))
        ((uint32_t *)(p.dwells + dwell))[threadIdx.x] = ((const uint32_t *)&sums)[threadIdx.x];
}

/* A block searches one dwell. One launch searches the dwells of one stream: every second group of
 * n_group dwells, from dwell `first` on. */
template <int P, bool IS_SUM>
__global__ void __launch_bounds__(THREADS, IS_SUM ? 1 : 2)
    fused_search(pnr_fused_long p, uint32_t first, uint32_t n_group)
{
    extern __shared__ float4 memory[];
    __shared__ searcher s;
    const uint32_t dwell = first + blockIdx.x / n_group * 2 * n_group + blockIdx.x % n_group;

    pnr_chain_next();
    if (threadIdx.x == 0) {
        s.n_listed = s.n_above = s.n_keys = 0;
        s.outside = 0;
    }
    __syncthreads();
    pnr_chain_wait();
    for (int search = 0;; search++) {
        const uint32_t n_dwells = p.job->n_dwells;
        const bool is_many = collect_tiles(s, p, dwell, search);
        uint64_t *keys = is_many ? p.keys + (size_t)dwell * (p.n_samples / 2 + 1) : s.keys;

        if (dwell >= n_dwells)
            return; /* the whole block returns */
        if (is_many)
            find_among_many(s, p, dwell, keys);
        else
            find_among_few(s, p);
        __syncthreads();
        if (threadIdx.x < PNR_CUDA_WARP) {
            const uint32_t n_kept =
                pnr_candidates_select(keys, s.n_keys, pnr_candidate_most(p), s.outside);

            if (threadIdx.x == 0)
                s.n_kept = n_kept;
        }
        __syncthreads();
        if (IS_SUM)
            gather_sums(s, p, dwell, keys, (float2 *)memory);
        else
            gather_neighbours(s, p, dwell, keys, (float2 *)memory);
        if (threadIdx.x < PNR_CUDA_WARP)
            finish_search(s, p, keys, dwell, search);
        __syncthreads();
        if (s.is_done)
            return; /* the whole block returns */
        if (search == 0)
            pnr_fused_prepare_lags<P>((float2 *)memory);
        __syncthreads();
        relist_tiles<P, IS_SUM>(s, p, dwell, (float2 *)memory);
    }
}

/* --- the table of kernels --- */

pnr_fused_long_launch pnr_fused_long_search(uint32_t column_bits, bool is_sum)
{
#define ROW(p)                                                                                     \
    {                                                                                              \
        {fused_search<p, false>, THREADS, pnr_fused_columns<p>::LAGS_SHARED},                      \
        {                                                                                          \
            fused_search<p, true>, THREADS, pnr_fused_columns<p>::SUMS_SHARED                      \
        }                                                                                          \
    }
    static const pnr_fused_long_launch table[][2] = {ROW(1), ROW(2), ROW(4), ROW(8), ROW(16)};
#undef ROW

    assert(column_bits >= 5 && column_bits <= 9);
    return table[column_bits - 5][is_sum];
}
