/* SPDX-License-Identifier: MIT */
/* Searches large maps with many blocks for a dwell. The kernels sum the tiles, scan them, and lower
 * the floor between two scans. */
#include "cuda/map/search.h"

#include "cuda/base/check.h"
#include "cuda/map/scan.h"

#include <cassert>

enum {
    PARTS = PNR_MAP_PARTS,
    SMALL_CELLS = 16384, /* greatest number of cells of a dwell that one block searches */
    SCAN_BLOCKS = 1056,  /* roughly the number of blocks that scan all dwells */
    LEAST_BLOCKS = 64    /* least number of blocks that scan one dwell */
};

/* --- sums --- */

/* One block sums the powers of one tile at integer lags, and finds the greatest power of the
 * tile. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) measure_tiles(pnr_map m, pnr_map_search s)
{
    __shared__ double scratch[PNR_CUDA_WARPS];
    __shared__ uint32_t greatest;
    const uint32_t line = blockIdx.x / m.row_tiles, d = blockIdx.y;
    const uint32_t first = blockIdx.x % m.row_tiles * m.tile, end = min(first + m.tile, m.n_cells);
    const float *power = s.power + (size_t)d * s.n_cells + (size_t)line * m.n_cells;
    double noise = 0;
    float most = 0;

    if (!pnr_map_is_real(s, d))
        return; /* the whole block returns */
    if (threadIdx.x == 0)
        greatest = 0;
    __syncthreads();
    for (uint32_t cell = first + threadIdx.x; cell < end; cell += PNR_CUDA_THREADS) {
        const float p = power[cell];

        most = fmaxf(most, p);
        if ((cell & (m.oversample - 1)) == 0)
            noise += (double)p;
    }
    noise = pnr_cuda_block_sum(noise, scratch);
    atomicMax(&greatest, __float_as_uint(most));
    __syncthreads();
    if (threadIdx.x == 0) {
        s.noise[(size_t)d * s.n_tiles + blockIdx.x] = noise;
        s.greatest[(size_t)d * s.n_tiles + blockIdx.x] = __uint_as_float(greatest);
    }
}

/* --- one search --- */

/* Blocks scan pieces of the tiles that have a cell above the threshold. A block appends the
 * strongest maxima in the gate of each piece to s.keys, in any order. The last block of a dwell
 * selects the strongest maxima of the dwell. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) scan_maps(pnr_map m, pnr_map_search s)
{
    __shared__ pnr_map_piece b;
    __shared__ uint32_t at;
    __shared__ bool is_last;
    const uint32_t d = blockIdx.y, n_pieces = pnr_map_pieces(m);
    pnr_map_dwell *state = s.dwells + s.first_dwell + d;
    uint64_t *keys = s.keys + (size_t)d * s.n_tiles * s.tile_keys;

    if (!pnr_map_is_real(s, d) || state->is_done)
        return; /* the whole block returns */

    const float threshold = state->threshold;
    const uint32_t n_looks = state->n_looks, n_items = state->n_hot * n_pieces;

    for (uint32_t item = blockIdx.x; item < n_items; item += gridDim.x) {
        const uint32_t tile = s.hot[(size_t)d * s.n_tiles + item / n_pieces];

        pnr_map_scan_piece<PNR_CUDA_THREADS>(b, m, s.power + (size_t)d * s.n_cells, n_looks,
                                             threshold, tile, item % n_pieces);
        if (threadIdx.x == 0) {
            atomicAdd(&state->n_above, b.n_above);
            atomicAdd(&state->n_maxima, b.n_maxima);
            pnr_candidate_raise(&state->outside, b.outside);
            at = b.n_kept > 0 ? atomicAdd(&state->n_keys, b.n_kept) : 0;
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < b.n_kept; i += PNR_CUDA_THREADS)
            keys[at + i] = b.maxima[i];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(&state->n_blocks, 1u) + 1 == gridDim.x;
        __threadfence();
    }
    __syncthreads();
    if (!is_last || threadIdx.x >= PNR_CUDA_WARP)
        return;

    const uint32_t n =
        pnr_candidates_select(keys, *(volatile uint32_t *)&state->n_keys, pnr_candidate_most(m),
                              *(volatile uint64_t *)&state->outside);

    if (threadIdx.x == 0) {
        state->n_kept = n;
        state->n_blocks = 0;
    }
}

/* --- between two searches --- */

/* Lists the tiles that have a cell above the threshold, in any order. All threads of the block call
 * this, after a barrier. */
static __device__ void list_hot(const pnr_map &m, const pnr_map_search &s, pnr_map_dwell *state,
                                uint32_t d)
{
    const float threshold = state->threshold;

    if (state->is_done)
        return; /* the whole block returns */
    if (threadIdx.x == 0)
        state->n_hot = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < s.n_tiles; i += PNR_CUDA_THREADS)
        if (s.greatest[(size_t)d * s.n_tiles + i] > threshold)
            s.hot[(size_t)d * s.n_tiles + atomicAdd(&state->n_hot, 1u)] = i;
}

/* One block prepares the first search of one dwell. It sums s.noise over all tiles, and lists the
 * tiles that have a cell above the threshold. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) begin_search(pnr_map m, pnr_map_search s)
{
    __shared__ double scratch[PNR_CUDA_WARPS];
    const uint32_t d = blockIdx.x;
    pnr_map_dwell *state = s.dwells + s.first_dwell + d;
    double noise = 0;

    if (!pnr_map_is_real(s, d))
        return; /* the whole block returns */
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < s.n_tiles; i += PNR_CUDA_THREADS)
        noise += s.noise[(size_t)d * s.n_tiles + i];
    noise = pnr_cuda_block_sum(noise, scratch);
    if (threadIdx.x == 0) {
        state->is_done = state->sums.n_periods == 0;
        state->sums.noise_sum = state->is_done ? 0 : noise;
    }
    __syncthreads();
    list_hot(m, s, state, d);
}

/* PARTS blocks sum the powers in the columns around one kept maximum, each block over a part of the
 * rows. The last block of a dwell adds these sums and lists the tiles of the next search. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    conclude_search(pnr_map m, pnr_map_search s, int search)
{
    __shared__ double scratch[PNR_CUDA_WARPS];
    __shared__ uint32_t lags[PNR_NEIGHBOURS], n_lags, counts[PNR_CUDA_WARPS];
    __shared__ bool is_last;
    const uint32_t i = blockIdx.x / PARTS, part = blockIdx.x % PARTS, d = blockIdx.y;
    pnr_map_dwell *state = s.dwells + s.first_dwell + d;
    const uint64_t *kept = s.keys + (size_t)d * s.n_tiles * s.tile_keys;
    double *taken = s.taken + (size_t)d * m.max_candidates * PARTS;
    uint32_t *n_taken = s.n_taken + (size_t)d * m.max_candidates;

    if (!pnr_map_is_real(s, d) || state->is_done)
        return; /* the whole block returns */
    if (i < state->n_kept) {
        const uint32_t each = (m.n_rows + PARTS - 1) / PARTS;
        const uint32_t first = min(part * each, m.n_rows), end = min(first + each, m.n_rows);
        double sum = 0;

        if (threadIdx.x < PNR_CUDA_WARP) {
            const uint32_t n = pnr_map_list_columns(m, kept, i, lags);

            if (threadIdx.x == 0)
                n_lags = n;
        }
        __syncthreads();

        const uint32_t code = pnr_map_place(m, pnr_candidate_lag(kept[i])).line / m.n_rows;
        const float *own =
            s.power + (size_t)d * s.n_cells + ((size_t)code * m.n_rows + first) * m.n_cells;

#pragma unroll 4
        for (uint32_t e = threadIdx.x; e < (end - first) * PNR_NEIGHBOURS; e += PNR_CUDA_THREADS) {
            const uint32_t lag = lags[e % PNR_NEIGHBOURS];
            const size_t row = e / PNR_NEIGHBOURS;

            sum += lag < m.n_lags ? (double)own[row * m.n_cells + lag * m.oversample] : 0.0;
        }
        sum = pnr_cuda_block_sum(sum, scratch);
        if (threadIdx.x == 0) {
            taken[i * PARTS + part] = sum;
            if (part == 0)
                n_taken[i] = n_lags;
        }
    }
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(&state->n_blocks, 1u) + 1 == gridDim.x;
        __threadfence();
    }
    __syncthreads();
    if (!is_last)
        return; /* all threads of the block return */

    double sum = 0;
    uint32_t n = 0;

    /* These loads are volatile, because the first-level cache may hold old values of the arrays. */
    for (uint32_t e = threadIdx.x; e < state->n_kept * PARTS; e += PNR_CUDA_THREADS)
        sum += ((volatile double *)taken)[e];
    for (uint32_t e = threadIdx.x; e < state->n_kept; e += PNR_CUDA_THREADS)
        n += ((volatile uint32_t *)n_taken)[e];
    sum = pnr_cuda_block_sum(sum, scratch);
    n = pnr_cuda_block_sum(n, counts);
    if (threadIdx.x == 0) {
        state->n_blocks = 0;
        pnr_map_decide(m, state, search, sum, n);
    }
    __syncthreads();
    list_hot(m, s, state, d);
}

/* --- the launchers --- */

size_t pnr_map_tile_keys(const pnr_map *m)
{
    return (size_t)pnr_map_pieces(*m) * m->max_candidates;
}

int pnr_map_measure_tiles(const pnr_map *m, const pnr_map_search *s, cudaStream_t stream,
                          pnr_error *error)
{
    assert(s->n_dwells >= 1 && s->n_dwells <= 65535);
    assert(s->n_tiles == m->n_codes * m->n_rows * m->row_tiles);
    measure_tiles<<<dim3(s->n_tiles, s->n_dwells), PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    return pnr_cuda_check_launch("measure_tiles", error);
}

static int search_large(const pnr_map *m, const pnr_map_search *s, cudaStream_t stream,
                        pnr_error *error)
{
    const uint32_t n_items = s->n_tiles * pnr_map_pieces(*m);
    const uint32_t share = SCAN_BLOCKS / s->n_dwells;
    const uint32_t most = share > LEAST_BLOCKS ? share : (uint32_t)LEAST_BLOCKS;
    const dim3 scanners(n_items < most ? n_items : most, s->n_dwells);
    int code;

    assert(s->n_dwells >= 1 && s->n_dwells <= 65535);
    begin_search<<<s->n_dwells, PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    if ((code = pnr_cuda_check_launch("begin_search", error)) != PNR_OK)
        return code;
    for (int search = 0; search < pnr_map_searches(*m); search++) {
        scan_maps<<<scanners, PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
        if ((code = pnr_cuda_check_launch("scan_maps", error)) != PNR_OK)
            return code;
        conclude_search<<<dim3(m->max_candidates * PARTS, s->n_dwells), PNR_CUDA_THREADS, 0,
                          stream>>>(*m, *s, search);
        if ((code = pnr_cuda_check_launch("conclude_search", error)) != PNR_OK)
            return code;
    }
    return pnr_map_return(m, s, stream, error);
}

int pnr_map_find(const pnr_map *m, const pnr_map_search *s, cudaStream_t stream, pnr_error *error)
{
    const int code = s->n_cells <= SMALL_CELLS ? pnr_map_search_small(m, s, stream, error)
                                               : search_large(m, s, stream, error);

    return code == PNR_OK ? pnr_map_return_all(m, s, stream, error) : code;
}
