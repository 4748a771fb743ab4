/* SPDX-License-Identifier: MIT */
/* The search of small maps in one kernel: a warp or a block takes one dwell, from the sums of its
 * lines to its results. */
#include "cuda/map/gather.h"
#include "cuda/map/scan.h"

#include "cuda/base/check.h"

#include <cassert>

enum { PARTS = PNR_MAP_PARTS, WARP_CELLS = 2048 /* cells of a dwell that one warp searches */ };

/* --- the kernel --- */

/* Returns the sum of value(0 .. n) to all lanes of a warp, with the same bits as pnr_cuda_block_sum
 * in a block whose threads take every PNR_CUDA_THREADS-th value. */
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

/* Shared memory of a warp: the piece that it scans, and the maxima that it keeps. */
struct warp_state {
    union {
        pnr_map_piece piece;
        double taken[PNR_MAX_CANDIDATES * PARTS]; /* in the first warp, after the scan */
    };
    uint64_t kept[2 * PNR_MAX_CANDIDATES];
    uint32_t n_kept;
    uint32_t lags[PNR_NEIGHBOURS];
};

/* Shared memory of the crew of a dwell. */
struct crew_state {
    pnr_map_dwell dwell;
    uint32_t n_above, n_maxima, n_taken; /* of this search */
};

/* Scans the tiles that have a cell above the threshold: warp `rank` of WARPS takes every WARPS-th
 * piece and keeps the strongest max_candidates maxima. */
template <int WARPS>
static __device__ __forceinline__ void scan_small(const pnr_map &m, const pnr_map_search &s,
                                                  uint32_t d, uint32_t rank, crew_state &crew,
                                                  warp_state &own)
{
    const uint32_t n_pieces = pnr_map_pieces(m), lane = threadIdx.x % PNR_CUDA_WARP;
    const float *power = s.power + (size_t)d * s.n_cells;
    const float *greatest = s.greatest + (size_t)d * s.n_tiles;
    uint32_t n_kept = 0;

    for (uint32_t item = rank; item < s.n_tiles * n_pieces; item += WARPS) {
        if (!(greatest[item / n_pieces] > crew.dwell.threshold))
            continue;
        pnr_map_scan_piece<PNR_CUDA_WARP>(own.piece, m, power, crew.dwell.n_looks,
                                          crew.dwell.threshold, item / n_pieces, item % n_pieces);
        if (lane == 0) {
            atomicAdd(&crew.n_above, own.piece.n_above);
            atomicAdd(&crew.n_maxima, own.piece.n_maxima);
        }
        for (uint32_t i = lane; i < own.piece.n_kept; i += PNR_CUDA_WARP)
            own.kept[n_kept + i] = own.piece.maxima[i];
        n_kept += own.piece.n_kept;
        __syncwarp();
        n_kept = pnr_candidates_select(own.kept, n_kept, m.max_candidates);
    }
    if (lane == 0)
        own.n_kept = n_kept;
}

/* Moves the strongest maxima of WARPS warps to the first warp, which calls; returns their number.
 * */
template <int WARPS>
static __device__ __forceinline__ uint32_t join_maxima(const pnr_map &m, warp_state *warps)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP;
    [[maybe_unused]] uint64_t *all = warps->piece.maxima;
    uint32_t n = warps->n_kept;

    if constexpr (WARPS > 1) {
        n = 0;
        for (int w = 0; w < WARPS; w++) {
            for (uint32_t i = lane; i < warps[w].n_kept; i += PNR_CUDA_WARP)
                all[n + i] = warps[w].kept[i];
            n += warps[w].n_kept;
        }
        __syncwarp();
        n = pnr_candidates_select(all, n, m.max_candidates);
        for (uint32_t i = lane; i < n; i += PNR_CUDA_WARP)
            warps->kept[i] = all[i];
        __syncwarp();
    }
    return n;
}
static_assert(PNR_CUDA_WARPS * PNR_MAX_CANDIDATES <= PNR_MAP_PIECE / 2, "the maxima of all warps");

/* Adds up a part of the rows of the columns around kept maximum i, in the order of conclude_search.
 * One warp calls. */
static __device__ __forceinline__ void sum_columns(const pnr_map &m, const float *power, uint32_t i,
                                                   uint32_t part, const uint64_t *kept,
                                                   uint32_t *lags, crew_state &crew, double *taken)
{
    const uint32_t each = (m.n_rows + PARTS - 1) / PARTS;
    const uint32_t first = part * each, end = min(first + each, m.n_rows);
    const uint32_t code = pnr_map_place(m, pnr_candidate_lag(kept[i])).line / m.n_rows;
    const float *own = power + ((size_t)code * m.n_rows + first) * m.n_cells;
    const uint32_t n = pnr_map_list_columns(m, kept, i, lags);

    __syncwarp();

    const double sum = sum_in_order<double>((end - first) * PNR_NEIGHBOURS, [&](uint32_t e) {
        const uint32_t lag = lags[e % PNR_NEIGHBOURS];

        return lag < m.n_lags
                   ? (double)own[(size_t)(e / PNR_NEIGHBOURS) * m.n_cells + lag * m.oversample]
                   : 0.0;
    });

    if (threadIdx.x % PNR_CUDA_WARP == 0) {
        taken[i * PARTS + part] = sum;
        if (part == 0)
            atomicAdd(&crew.n_taken, n);
    }
    __syncwarp();
}

/* Does one search. */
template <int WARPS>
static __device__ __forceinline__ void search_once(const pnr_map &m, const pnr_map_search &s,
                                                   uint32_t d, uint32_t rank, int search,
                                                   crew_state &crew, warp_state *warps)
{
    constexpr int THREADS = WARPS * PNR_CUDA_WARP;
    const bool is_first = threadIdx.x % THREADS == 0;
    /* Only these parts have rows; the sum of the others is 0. */
    const uint32_t each = (m.n_rows + PARTS - 1) / PARTS, n_parts = (m.n_rows + each - 1) / each;

    if (is_first)
        crew.n_above = crew.n_maxima = crew.n_taken = 0;
    pnr_map_sync<THREADS>();
    scan_small<WARPS>(m, s, d, rank, crew, warps[rank]);
    pnr_map_sync<THREADS>();
    if (rank == 0) {
        const uint32_t n = join_maxima<WARPS>(m, warps);

        if (is_first) {
            crew.dwell.n_above = crew.n_above;
            crew.dwell.n_maxima = crew.n_maxima;
            crew.dwell.n_kept = n;
        }
    }
    pnr_map_sync<THREADS>();

    const uint32_t n_kept = crew.dwell.n_kept;

    for (uint32_t item = rank; item < n_kept * n_parts; item += WARPS)
        sum_columns(m, s.power + (size_t)d * s.n_cells, item / n_parts, item % n_parts, warps->kept,
                    warps[rank].lags, crew, warps->taken);
    pnr_map_sync<THREADS>();
    if (rank == 0) {
        const double sum = sum_in_order<double>(n_kept * PARTS, [&](uint32_t e) {
            return e % PARTS < n_parts ? warps->taken[e] : 0.0;
        });

        if (is_first)
            pnr_map_decide(m, &crew.dwell, search, sum, crew.n_taken);
    }
    pnr_map_sync<THREADS>();
}

template <int WARPS>
__global__ void __launch_bounds__(PNR_CUDA_THREADS, 4)
    search_small(pnr_map m, pnr_map_search s, int n_searches)
{
    constexpr int THREADS = WARPS * PNR_CUDA_WARP, CREWS = PNR_CUDA_THREADS / THREADS;
    __shared__ crew_state crews[CREWS];
    __shared__ warp_state all_warps[PNR_CUDA_WARPS];
    const uint32_t d = blockIdx.x * CREWS + threadIdx.x / THREADS;
    const uint32_t rank = threadIdx.x % THREADS / PNR_CUDA_WARP;
    const bool is_first = threadIdx.x % THREADS == 0;
    crew_state &crew = crews[threadIdx.x / THREADS];
    warp_state *warps = all_warps + threadIdx.x / THREADS * WARPS;

    if (d >= s.n_dwells)
        return; /* the whole crew */
    if (rank == 0) {
        const uint64_t *from = (const uint64_t *)(s.dwells + s.first_dwell + d);

        for (uint32_t i = threadIdx.x % PNR_CUDA_WARP; i < sizeof crew.dwell / sizeof *from;
             i += PNR_CUDA_WARP)
            ((uint64_t *)&crew.dwell)[i] = from[i];

        const double noise = sum_in_order<double>(
            s.n_tiles, [&](uint32_t e) { return s.noise[(size_t)d * s.n_tiles + e]; });

        __syncwarp();
        if (is_first) {
            crew.dwell.is_done = crew.dwell.sums.n_periods == 0;
            crew.dwell.sums.noise_sum = crew.dwell.is_done ? 0 : noise;
        }
    }
    if (!pnr_map_is_real(s, d))
        return; /* the whole crew */
    pnr_map_sync<THREADS>();
    for (int search = 0; search < n_searches && !crew.dwell.is_done; search++)
        search_once<WARPS>(m, s, d, rank, search, crew, warps);
    if (is_first)
        s.results.dwells[s.first_dwell + d] = crew.dwell.sums;
    for (uint32_t i = rank; i < crew.dwell.sums.n_candidates; i += WARPS)
        pnr_map_gather(m, s, d, i, warps->kept[i], threadIdx.x % PNR_CUDA_WARP, PNR_CUDA_WARP);
}

static_assert(sizeof(pnr_map_dwell) % sizeof(uint64_t) == 0, "copied in whole words");

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
