/* SPDX-License-Identifier: MIT */
/* The search of small maps in one kernel: a warp or a block takes a dwell, from the sums of its
 * lines to its results. */
#include "cuda/map/gather.h"
#include "cuda/map/scan.h"

#include "cuda/base/check.h"

#include <cassert>

enum { PARTS = PNR_MAP_PARTS, WARP_CELLS = 2048 /* of a dwell that is a warp's work */ };

/* --- the kernel --- */

/* The sum of value(0 .. n) to the bit as pnr_cuda_block_sum has it in a block whose threads take
 * every PNR_CUDA_THREADS-th. One warp; all lanes get it. */
template <typename T, class VALUE>
static __device__ __forceinline__ T sum_in_order(uint32_t n, VALUE value)
{
    T total = 0;

    for (uint32_t first = 0; first < min(n, (uint32_t)PNR_CUDA_THREADS); first += PNR_CUDA_WARP) {
        T sum = 0;

        for (uint32_t e = first + threadIdx.x % PNR_CUDA_WARP; e < n; e += PNR_CUDA_THREADS)
            sum += value(e);
        total += pnr_cuda_warp_sum(sum);
    }
    return total;
}

/* A dwell's crew in shared memory. */
struct crew_state {
    pnr_map_dwell dwell;
    uint32_t n_above, n_maxima, n_keys; /* of this search */
};

/* A warp's own shared memory. */
struct warp_state {
    pnr_map_piece piece;
    uint32_t lags[PNR_NEIGHBOURS];
};

/* Pieces of the tiles that hold something above: warp `rank` of WARPS takes every WARPS-th. */
template <int WARPS>
static __device__ __forceinline__ void scan_small(const pnr_map &m, const pnr_map_search &s,
                                                  uint32_t d, uint32_t rank, crew_state &crew,
                                                  warp_state &own, uint64_t *keys)
{
    const uint32_t n_pieces = pnr_map_pieces(m), lane = threadIdx.x % PNR_CUDA_WARP;
    const float *power = s.power + (size_t)d * s.n_cells;
    const float *greatest = s.greatest + (size_t)d * s.n_tiles;

    for (uint32_t item = rank; item < s.n_tiles * n_pieces; item += WARPS) {
        uint32_t at = 0;

        if (!(greatest[item / n_pieces] > crew.dwell.threshold))
            continue;
        pnr_map_scan_piece<PNR_CUDA_WARP>(own.piece, m, power, crew.dwell, item / n_pieces,
                                          item % n_pieces);
        if (lane == 0) {
            atomicAdd(&crew.n_above, own.piece.n_above);
            atomicAdd(&crew.n_maxima, own.piece.n_maxima);
            at = atomicAdd(&crew.n_keys, own.piece.n_kept);
        }
        at = __shfl_sync(0xffffffffu, at, 0);
        for (uint32_t i = lane; i < own.piece.n_kept; i += PNR_CUDA_WARP)
            keys[at + i] = own.piece.maxima[i];
        __syncwarp();
    }
}

/* Powers of a part of the rows around a kept maximum, as conclude_search adds them up. One warp. */
static __device__ __forceinline__ void sum_columns(const pnr_map &m, const pnr_map_search &s,
                                                   uint32_t d, uint32_t i, uint32_t part,
                                                   const uint64_t *kept, uint32_t *lags)
{
    const size_t at = (size_t)d * m.max_candidates + i;
    const uint32_t each = (m.n_rows + PARTS - 1) / PARTS;
    const uint32_t first = min(part * each, m.n_rows), end = min(first + each, m.n_rows);
    const uint32_t code = pnr_map_place(m, pnr_candidate_lag(kept[i])).line / m.n_rows;
    const float *own =
        s.power + (size_t)d * s.n_cells + ((size_t)code * m.n_rows + first) * m.n_cells;
    const uint32_t n = first < end || part == 0 ? pnr_map_list_columns(m, kept, i, lags) : 0;

    __syncwarp();

    const double sum = sum_in_order<double>((end - first) * PNR_NEIGHBOURS, [&](uint32_t e) {
        const uint32_t lag = lags[e % PNR_NEIGHBOURS];

        return lag < m.n_lags
                   ? (double)own[(size_t)(e / PNR_NEIGHBOURS) * m.n_cells + lag * m.oversample]
                   : 0.0;
    });

    if (threadIdx.x % PNR_CUDA_WARP == 0) {
        s.taken[at * PARTS + part] = sum;
        if (part == 0)
            s.n_taken[at] = n;
    }
    __syncwarp();
}

/* One search. */
template <int WARPS>
static __device__ __forceinline__ void search_once(const pnr_map &m, const pnr_map_search &s,
                                                   uint32_t d, uint32_t rank, int search,
                                                   crew_state &crew, warp_state &own)
{
    constexpr int THREADS = WARPS * PNR_CUDA_WARP;
    const bool is_first = threadIdx.x % THREADS == 0;
    uint64_t *keys = s.keys + (size_t)d * s.n_tiles * s.tile_keys;
    const double *taken = s.taken + (size_t)d * m.max_candidates * PARTS;
    const uint32_t *n_taken = s.n_taken + (size_t)d * m.max_candidates;

    if (is_first)
        crew.n_above = crew.n_maxima = crew.n_keys = 0;
    pnr_map_sync<THREADS>();
    scan_small<WARPS>(m, s, d, rank, crew, own, keys);
    pnr_map_sync<THREADS>();
    if (rank == 0) {
        const uint32_t n = pnr_candidates_select(keys, crew.n_keys, m.max_candidates);

        if (is_first) {
            crew.dwell.n_above = crew.n_above;
            crew.dwell.n_maxima = crew.n_maxima;
            crew.dwell.n_kept = n;
        }
    }
    pnr_map_sync<THREADS>();
    for (uint32_t item = rank; item < crew.dwell.n_kept * PARTS; item += WARPS)
        sum_columns(m, s, d, item / PARTS, item % PARTS, keys, own.lags);
    pnr_map_sync<THREADS>();
    if (rank == 0) {
        const uint32_t n_kept = crew.dwell.n_kept;
        const double sum =
            sum_in_order<double>(n_kept * PARTS, [&](uint32_t e) { return taken[e]; });
        const uint32_t n = sum_in_order<uint32_t>(n_kept, [&](uint32_t e) { return n_taken[e]; });

        if (is_first)
            pnr_map_decide(m, &crew.dwell, search, sum, n);
    }
    pnr_map_sync<THREADS>();
}

template <int WARPS>
__global__ void __launch_bounds__(PNR_CUDA_THREADS, 3)
    search_small(pnr_map m, pnr_map_search s, int n_searches)
{
    constexpr int THREADS = WARPS * PNR_CUDA_WARP, CREWS = PNR_CUDA_THREADS / THREADS;
    __shared__ crew_state crews[CREWS];
    __shared__ warp_state warps[PNR_CUDA_WARPS];
    const uint32_t d = blockIdx.x * CREWS + threadIdx.x / THREADS;
    const uint32_t rank = threadIdx.x % THREADS / PNR_CUDA_WARP;
    const bool is_first = threadIdx.x % THREADS == 0;
    crew_state &crew = crews[threadIdx.x / THREADS];
    warp_state &own = warps[threadIdx.x / PNR_CUDA_WARP];

    if (d >= s.n_dwells || !pnr_map_is_real(s, d))
        return; /* the whole crew */
    if (rank == 0) {
        const double noise = sum_in_order<double>(
            s.n_tiles, [&](uint32_t e) { return s.noise[(size_t)d * s.n_tiles + e]; });

        if (is_first) {
            crew.dwell = s.dwells[s.first_dwell + d];
            crew.dwell.is_done = crew.dwell.sums.n_periods == 0;
            crew.dwell.sums.noise_sum = crew.dwell.is_done ? 0 : noise;
        }
    }
    pnr_map_sync<THREADS>();
    for (int search = 0; search < n_searches && !crew.dwell.is_done; search++)
        search_once<WARPS>(m, s, d, rank, search, crew, own);
    if (is_first)
        s.results.dwells[s.first_dwell + d] = crew.dwell.sums;
    for (uint32_t i = rank; i < crew.dwell.sums.n_candidates; i += WARPS)
        pnr_map_gather(m, s, d, i, threadIdx.x % PNR_CUDA_WARP, PNR_CUDA_WARP);
}

/* --- the launcher --- */

int pnr_map_search_small(const pnr_map *m, const pnr_map_search *s, int n_searches,
                         cudaStream_t stream, pnr_error *error)
{
    const bool is_warps = s->n_cells <= WARP_CELLS;
    const uint32_t n_crews = is_warps ? PNR_CUDA_WARPS : 1;
    const uint32_t n_blocks = (s->n_dwells + n_crews - 1) / n_crews;

    assert(s->n_dwells >= 1);
    if (is_warps)
        search_small<1><<<n_blocks, PNR_CUDA_THREADS, 0, stream>>>(*m, *s, n_searches);
    else
        search_small<PNR_CUDA_WARPS><<<n_blocks, PNR_CUDA_THREADS, 0, stream>>>(*m, *s, n_searches);
    return pnr_cuda_check_launch("search_small", error);
}
