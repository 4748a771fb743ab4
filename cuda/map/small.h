/* SPDX-License-Identifier: MIT */
/* The search of a small map by a crew, which is one warp or several. It begins with the sums of the
 * tiles and ends with the results. */
#ifndef PNR_CUDA_MAP_SMALL_H
#define PNR_CUDA_MAP_SMALL_H

#include "cuda/map/gather.h"
#include "cuda/map/scan.h"

/* Shared memory of a warp for the piece that it scans. After the search the contents are not
 * needed. */
union pnr_map_warp_piece {
    pnr_map_piece piece;
    double taken[PNR_MAX_CANDIDATES * PNR_MAP_PARTS]; /* results of sum_columns, in pieces[0]
                                                       * only */
};

/* Shared memory of a warp: the maxima that it keeps. */
struct pnr_map_warp {
    uint64_t kept[2 * PNR_MAX_CANDIDATES];
    uint64_t outside; /* see pnr_map_piece */
    uint32_t n_kept;
    uint32_t lags[PNR_NEIGHBOURS];
};

/* Shared memory of the crew. */
struct pnr_map_crew {
    pnr_map_dwell dwell;
    /* numbers of the current search: cells above the threshold, maxima, columns around maxima */
    uint32_t n_above, n_maxima, n_taken;
};

/* Returns the sum of value(e) for all e < n to all lanes of a warp. The sum has the same bits as
 * pnr_cuda_block_sum in a block whose threads add every PNR_CUDA_THREADS-th value. */
template <typename T, class VALUE>
static __device__ __forceinline__ T pnr_map_sum_in_order(uint32_t n, VALUE value)
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

/* Warp `rank` of the crew of dwell d. All warps of the crew call load_state, sum_lines, search and
 * gather together. */
template <int WARPS> struct pnr_map_searcher {
    enum { THREADS = WARPS * PNR_CUDA_WARP, PARTS = PNR_MAP_PARTS };
    const pnr_map &m;
    const pnr_map_search &s;
    uint32_t d, rank;
    pnr_map_crew &crew;
    pnr_map_warp_piece *pieces; /* [WARPS] */
    pnr_map_warp *warps;        /* [WARPS] */

    static __device__ __forceinline__ uint32_t lane()
    {
        return threadIdx.x % PNR_CUDA_WARP;
    }
    static __device__ __forceinline__ bool is_first()
    {
        return threadIdx.x % THREADS == 0;
    }

    /* Scans the tiles that have a cell above the threshold: a warp scans every WARPS-th piece and
     * keeps the strongest maxima in the gate, and the strongest one outside of it. */
    __device__ __forceinline__ void scan() const
    {
        const uint32_t n_pieces = pnr_map_pieces(m);
        const float *power = s.power + (size_t)d * s.n_cells;
        const float *greatest = s.greatest + (size_t)d * s.n_tiles;
        pnr_map_piece &piece = pieces[rank].piece;
        pnr_map_warp &own = warps[rank];
        uint32_t n_kept = 0;

        if (lane() == 0)
            own.outside = 0;
        for (uint32_t item = rank; item < s.n_tiles * n_pieces; item += WARPS) {
            if (!(greatest[item / n_pieces] > crew.dwell.threshold))
                continue;
            pnr_map_scan_piece<PNR_CUDA_WARP>(piece, m, power, crew.dwell.n_looks,
                                              crew.dwell.threshold, item / n_pieces,
                                              item % n_pieces);
            if (lane() == 0) {
                atomicAdd(&crew.n_above, piece.n_above);
                atomicAdd(&crew.n_maxima, piece.n_maxima);
                own.outside = max(own.outside, piece.outside);
            }
            for (uint32_t i = lane(); i < piece.n_kept; i += PNR_CUDA_WARP)
                own.kept[n_kept + i] = piece.maxima[i];
            n_kept += piece.n_kept;
            __syncwarp();
            n_kept = pnr_candidates_select(own.kept, n_kept, pnr_candidate_most(m), 0);
        }
        if (lane() == 0)
            own.n_kept = n_kept;
    }

    /* Moves the strongest maxima of all warps, with the one outside of the gate, to the first warp,
     * and returns their number. Only the first warp calls this. */
    __device__ __forceinline__ uint32_t join_maxima() const
    {
        [[maybe_unused]] uint64_t *all = pieces->piece.maxima;
        uint32_t n = warps->n_kept;
        uint64_t outside = warps->outside;

        if constexpr (WARPS > 1) {
            n = 0;
            for (int w = 0; w < WARPS; w++) {
                for (uint32_t i = lane(); i < warps[w].n_kept; i += PNR_CUDA_WARP)
                    all[n + i] = warps[w].kept[i];
                n += warps[w].n_kept;
                outside = max(outside, warps[w].outside);
            }
            __syncwarp();
            n = pnr_candidates_select(all, n, pnr_candidate_most(m), outside);
            for (uint32_t i = lane(); i < n; i += PNR_CUDA_WARP)
                warps->kept[i] = all[i];
            __syncwarp();
        } else if (m.has_outside) {
            n = pnr_candidates_select(warps->kept, n, pnr_candidate_most(m), outside);
        }
        return n;
    }
    static_assert(WARPS * PNR_MAX_CANDIDATES <= PNR_MAP_PIECE / 2, "the maxima of all warps");

    /* Sums the powers of the columns around kept maximum i over one part of the rows, in the same
     * order as conclude_search. */
    __device__ __forceinline__ void sum_columns(uint32_t i, uint32_t part) const
    {
        const uint32_t each = (m.n_rows + PARTS - 1) / PARTS;
        const uint32_t first = part * each, end = min(first + each, m.n_rows);
        const uint32_t code = pnr_map_place(m, pnr_candidate_lag(warps->kept[i])).line / m.n_rows;
        const float *own =
            s.power + (size_t)d * s.n_cells + ((size_t)code * m.n_rows + first) * m.n_cells;
        uint32_t *lags = warps[rank].lags;
        const uint32_t n = pnr_map_list_columns(m, warps->kept, i, lags);

        __syncwarp();

        const auto power = [&](uint32_t e) {
            const uint32_t lag = lags[e % PNR_NEIGHBOURS];
            const size_t row = e / PNR_NEIGHBOURS;

            return lag < m.n_lags ? (double)own[row * m.n_cells + lag * m.oversample] : 0.0;
        };
        const double sum = pnr_map_sum_in_order<double>((end - first) * PNR_NEIGHBOURS, power);

        if (lane() == 0) {
            pieces->taken[i * PARTS + part] = sum;
            if (part == 0)
                atomicAdd(&crew.n_taken, n);
        }
        __syncwarp();
    }

    __device__ __forceinline__ void search_once(int search) const
    {
        /* Only the first n_parts parts have rows. The sum of each other part is 0. */
        const uint32_t each = (m.n_rows + PARTS - 1) / PARTS,
                       n_parts = (m.n_rows + each - 1) / each;

        if (is_first())
            crew.n_above = crew.n_maxima = crew.n_taken = 0;
        pnr_map_sync<THREADS>();
        scan();
        pnr_map_sync<THREADS>();
        if (rank == 0) {
            const uint32_t n = join_maxima();

            if (is_first()) {
                crew.dwell.n_above = crew.n_above;
                crew.dwell.n_maxima = crew.n_maxima;
                crew.dwell.n_kept = n;
            }
        }
        pnr_map_sync<THREADS>();

        const uint32_t n_kept = crew.dwell.n_kept;

        for (uint32_t item = rank; item < n_kept * n_parts; item += WARPS)
            sum_columns(item / n_parts, item % n_parts);
        pnr_map_sync<THREADS>();
        if (rank == 0) {
            const double sum = pnr_map_sum_in_order<double>(n_kept * PARTS, [&](uint32_t e) {
                return e % PARTS < n_parts ? pieces->taken[e] : 0.0;
            });

            if (is_first())
                pnr_map_decide(m, &crew.dwell, search, sum, crew.n_taken);
        }
        pnr_map_sync<THREADS>();
    }

    __device__ __forceinline__ void load_state() const
    {
        const uint64_t *from = (const uint64_t *)(s.dwells + s.first_dwell + d);

        if (rank == 0)
            for (uint32_t i = lane(); i < sizeof crew.dwell / sizeof *from; i += PNR_CUDA_WARP)
                ((uint64_t *)&crew.dwell)[i] = from[i];
    }
    static_assert(sizeof(pnr_map_dwell) % sizeof(uint64_t) == 0, "copied in whole words");

    /* Sums s.noise over all tiles of the dwell. A barrier must follow. */
    __device__ __forceinline__ void sum_lines() const
    {
        const auto line = [&](uint32_t e) { return s.noise[(size_t)d * s.n_tiles + e]; };

        if (rank != 0)
            return;

        const double noise =
            s.n_tiles == 1 ? line(0) : pnr_map_sum_in_order<double>(s.n_tiles, line);

        __syncwarp();
        if (is_first()) {
            crew.dwell.is_done = crew.dwell.sums.n_periods == 0;
            crew.dwell.sums.noise_sum = crew.dwell.is_done ? 0 : noise;
        }
    }

    /* Runs all searches, and writes the sums of the dwell. */
    __device__ __forceinline__ void search() const
    {
        const int n_searches = pnr_map_searches(m);

        pnr_map_sync<THREADS>();
        for (int i = 0; i < n_searches && !crew.dwell.is_done; i++)
            search_once(i);
        if (is_first())
            s.results.dwells[s.first_dwell + d] = crew.dwell.sums;
    }

    /* Writes the candidates. */
    __device__ __forceinline__ void gather() const
    {
        for (uint32_t i = rank; i < crew.dwell.sums.n_candidates; i += WARPS)
            pnr_map_gather(m, s, d, i, warps->kept[i], lane(), PNR_CUDA_WARP);
    }
};

#endif
