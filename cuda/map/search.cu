/* SPDX-License-Identifier: MIT */
/* The search of maps: sums, threshold, maxima within their boxes, the rest. */
#include "cuda/map/search.h"

#include "cuda/base/check.h"
#include "cuda/base/reduce.h"
#include "cuda/map/cfar.h"
#include "cuda/map/place.h"
#include "cuda/steps/candidates.h"

#include <cassert>

enum {
    PIECE = 1024, /* cells that a block looks at between barriers */
    PARTS = PNR_MAP_PARTS,
    SCAN_BLOCKS = 1056, /* of a scan, about, of all dwells */
    LEAST_BLOCKS = 64   /* of a scan of one dwell */
};

/* --- sums --- */

/* One block a tile. */
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
        return; /* the whole block */
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

/* Cell `at` of a row as it lies, or NULL where a linear correlation has none. first: n_cells more
 * than it is, so that it is never negative. */
static __device__ __forceinline__ bool is_cell(const pnr_map &m, uint32_t first)
{
    return !m.is_linear || (first >= m.n_cells && first < 2 * m.n_cells);
}

/* P > all cells before it in its own row, >= all behind it, within its box. */
static __device__ bool is_greatest_of_row(const pnr_map &m, const float *line, uint32_t cell,
                                          float here)
{
    for (uint32_t i = 1; i <= m.exclusion_cells; i++) {
        const uint32_t before = cell + m.n_cells - i, behind = cell + m.n_cells + i;

        if ((is_cell(m, before) && !(here > line[before % m.n_cells])) ||
            (is_cell(m, behind) && !(here >= line[behind % m.n_cells])))
            return false;
    }
    return true;
}

/* The same against another row of the box, all of its cells. */
static __device__ bool is_greater_than_row(const pnr_map &m, const float *line, uint32_t cell,
                                           float here, bool is_before)
{
    bool is_so = true;

    for (uint32_t i = 0; i <= 2 * m.exclusion_cells; i++) {
        const uint32_t other = cell + m.n_cells + i - m.exclusion_cells;

        if (is_cell(m, other))
            is_so &= is_before ? here > line[other % m.n_cells] : here >= line[other % m.n_cells];
    }
    return is_so;
}

/* A block's shared memory in a scan. */
struct scan {
    uint64_t maxima[PIECE / 2]; /* no two cells side by side are both maxima */
    uint32_t is_beaten[PIECE / 2];
    uint32_t n_above, n_listed, n_maxima, n_kept, at;
    bool is_last;
};

/* Cells [first, end) of a line: those above are counted, maxima of the row listed. */
static __device__ void scan_row(scan &b, const pnr_map &m, const float *power,
                                const pnr_map_level &level, uint32_t line, uint32_t first,
                                uint32_t end, float threshold)
{
    const bool is_cfar = m.cfar_kind != PNR_CFAR_OFF;
    const float *own = power + (size_t)line * m.n_cells;

    for (uint32_t cell = first + threadIdx.x; cell < end; cell += PNR_CUDA_THREADS) {
        const float here = own[cell];

        if (!(here > threshold) || !pnr_map_in_gate(m, pnr_map_lag(m, cell)) ||
            (is_cfar && !level.is_above(cell, here)))
            continue;
        atomicAdd(&b.n_above, 1u);
        if (is_greatest_of_row(m, own, cell, here)) {
            const uint32_t at = atomicAdd(&b.n_listed, 1u);

            b.maxima[at] = pnr_candidate_key(here, line * m.n_cells + cell);
            b.is_beaten[at] = 0;
        }
    }
}

/* Those that another row of their box beats are marked: a thread a maximum and a row. */
static __device__ void scan_boxes(scan &b, const pnr_map &m, const float *power, uint32_t line)
{
    const uint32_t row = line % m.n_rows, first = row - min(row, m.exclusion_rows);
    const uint32_t n_others = min(m.n_rows - 1, row + m.exclusion_rows) - first;

    for (uint32_t e = threadIdx.x; e < b.n_listed * n_others; e += PNR_CUDA_THREADS) {
        const uint32_t i = e / n_others, r = first + e % n_others, other = r < row ? r : r + 1;
        const uint64_t key = b.maxima[i];

        if (!is_greater_than_row(m, power + (size_t)(line - row + other) * m.n_cells,
                                 pnr_map_place(m, pnr_candidate_lag(key)).cell,
                                 pnr_candidate_power(key), other < row))
            b.is_beaten[i] = 1;
    }
}

/* Blocks take the pieces of the tiles that hold something above by turns. Each lists its maxima,
 * the strongest max_candidates of them; where a list stands among the others is chance, and of no
 * matter: the last block puts the strongest of all in order. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) scan_maps(pnr_map m, pnr_map_search s)
{
    __shared__ scan b;
    const uint32_t d = blockIdx.y, n_pieces = (m.tile + PIECE - 1) / PIECE;
    const float *power = s.power + (size_t)d * s.n_cells;
    pnr_map_dwell *state = s.dwells + s.first_dwell + d;
    uint64_t *keys = s.keys + (size_t)d * s.n_tiles * s.tile_keys;

    if (!pnr_map_is_real(s, d) || state->is_done)
        return; /* the whole block */

    const float threshold = state->threshold;

    for (uint32_t item = blockIdx.x; item < state->n_hot * n_pieces; item += gridDim.x) {
        const uint32_t tile = s.hot[(size_t)d * s.n_tiles + item / n_pieces];
        const uint32_t line = tile / m.row_tiles, start = tile % m.row_tiles * m.tile;
        const uint32_t end = min(start + m.tile, m.n_cells);
        const uint32_t first = min(start + item % n_pieces * PIECE, end);
        const pnr_map_level level(m, power, state->n_looks, line);

        if (threadIdx.x == 0)
            b.n_above = b.n_listed = b.n_maxima = b.n_kept = 0;
        __syncthreads();
        scan_row(b, m, power, level, line, first, min(first + PIECE, end), threshold);
        __syncthreads();
        scan_boxes(b, m, power, line);
        __syncthreads();
        if (threadIdx.x < PNR_CUDA_WARP) {
            /* to the front */
            for (uint32_t i = threadIdx.x; i < (b.n_listed + 31) / 32 * 32; i += PNR_CUDA_WARP) {
                const bool is_maximum = i < b.n_listed && !b.is_beaten[i];
                const uint64_t key = i < b.n_listed ? b.maxima[i] : 0;
                const uint32_t kept = __ballot_sync(0xffffffffu, is_maximum);

                if (is_maximum)
                    b.maxima[b.n_maxima + (uint32_t)__popc(kept & ((1u << threadIdx.x) - 1))] = key;
                __syncwarp();
                if (threadIdx.x == 0)
                    b.n_maxima += (uint32_t)__popc(kept);
                __syncwarp();
            }

            const uint32_t n = pnr_candidates_select(b.maxima, b.n_maxima, m.max_candidates);

            if (threadIdx.x == 0) {
                b.n_kept = n;
                atomicAdd(&state->n_above, b.n_above);
                atomicAdd(&state->n_maxima, b.n_maxima);
                b.at = n > 0 ? atomicAdd(&state->n_keys, n) : 0;
            }
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < b.n_kept; i += PNR_CUDA_THREADS)
            keys[b.at + i] = b.maxima[i];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        __threadfence();
        b.is_last = atomicAdd(&state->n_blocks, 1u) + 1 == gridDim.x;
        __threadfence();
    }
    __syncthreads();
    if (!b.is_last || threadIdx.x >= PNR_CUDA_WARP)
        return;

    const uint32_t n =
        pnr_candidates_select(keys, *(volatile uint32_t *)&state->n_keys, m.max_candidates);

    if (threadIdx.x == 0) {
        state->n_kept = n;
        state->n_blocks = 0;
    }
}

/* --- between two searches --- */

/* Is a column of this code at this lag taken out for one of the first n kept? */
static __device__ bool is_taken(const pnr_map &m, const uint64_t *kept, uint32_t n, uint32_t code,
                                uint32_t lag)
{
    for (uint32_t e = 0; e < n; e++) {
        const pnr_map_place at(m, pnr_candidate_lag(kept[e]));
        const uint32_t centre = pnr_map_lag(m, at.cell);
        const uint32_t apart = lag > centre ? lag - centre : centre - lag;

        if (at.line / m.n_rows == code &&
            (apart <= PNR_CANDIDATE_REACH ||
             (!m.is_linear && m.n_lags - apart <= PNR_CANDIDATE_REACH)))
            return true;
    }
    return false;
}

/* The columns around kept i that are not taken out for one before it; returns how many. lags:
 * [PNR_NEIGHBOURS], n_lags where there is none. One warp; all lanes get it. */
static __device__ uint32_t list_columns(const pnr_map &m, const uint64_t *kept, uint32_t i,
                                        uint32_t *lags)
{
    const uint32_t j = threadIdx.x;
    bool is_new = false;

    if (j < PNR_NEIGHBOURS) {
        const uint32_t lag = pnr_map_neighbour(m, pnr_map_centre(m, kept[i]), j);
        const uint32_t code = pnr_map_place(m, pnr_candidate_lag(kept[i])).line / m.n_rows;

        /* each lag once, also of a code that is shorter than the neighbourhood */
        is_new = j < m.n_lags && lag < m.n_lags && (!m.is_filtered || pnr_map_in_gate(m, lag)) &&
                 !is_taken(m, kept, i, code, lag);
        lags[j] = is_new ? lag : m.n_lags;
    }
    return (uint32_t)__popc(__ballot_sync(0xffffffffu, is_new));
}

/* Thread 0: a lower floor for the next search, or the dwell is done. */
static __device__ void decide(const pnr_map &m, pnr_map_dwell *state, int search, double taken,
                              uint32_t n_taken)
{
    const bool is_cfar = m.cfar_kind != PNR_CFAR_OFF;
    const uint64_t n_columns = (uint64_t)m.n_codes * (m.is_filtered ? m.gate_count : m.n_lags);
    const bool has_rest = state->n_kept > 0 && n_columns - n_taken >= (n_columns + 1) / 2;
    pnr_dwell *sums = &state->sums;
    /* the mean power of the columns that no kept candidate reaches */
    const double rest = (sums->noise_sum - taken) / (double)((n_columns - n_taken) * m.n_rows);
    const double floor = fmax(rest, state->rounding);
    bool is_done = !has_rest ||
                   (!is_cfar && (search + 1 == PNR_MAX_SEARCHES || !(floor < 0.95 * sums->floor)));

    if (search == 0)
        sums->n_above = state->n_above;
    if (!is_done) {
        sums->floor = floor;
        /* a lower threshold adds only weaker ones */
        is_done = is_cfar || state->n_kept == m.max_candidates;
    }
    if (is_done) {
        sums->n_maxima = state->n_maxima;
        sums->n_candidates = state->n_kept;
        state->is_done = 1;
        return;
    }
    state->threshold = (float)(m.threshold[sums->n_periods - 1] * floor);
    state->n_above = state->n_maxima = state->n_keys = 0;
}

/* The tiles that hold something above, in any order. All threads, after a barrier. */
static __device__ void list_hot(const pnr_map &m, const pnr_map_search &s, pnr_map_dwell *state,
                                uint32_t d)
{
    const float threshold = state->threshold;

    if (state->is_done)
        return; /* the whole block */
    if (threadIdx.x == 0)
        state->n_hot = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < s.n_tiles; i += PNR_CUDA_THREADS)
        if (s.greatest[(size_t)d * s.n_tiles + i] > threshold)
            s.hot[(size_t)d * s.n_tiles + atomicAdd(&state->n_hot, 1u)] = i;
}

/* One block a dwell: the sum of all tiles, and where the first search looks. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) begin_search(pnr_map m, pnr_map_search s)
{
    __shared__ double scratch[PNR_CUDA_WARPS];
    const uint32_t d = blockIdx.x;
    pnr_map_dwell *state = s.dwells + s.first_dwell + d;
    double noise = 0;

    if (!pnr_map_is_real(s, d))
        return; /* the whole block */
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

/* PARTS blocks a kept maximum: a part of the rows of the columns around it. The last block of a
 * dwell adds up, and says where the next search looks. */
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
        return; /* the whole block */
    if (i < state->n_kept) {
        const uint32_t each = (m.n_rows + PARTS - 1) / PARTS;
        const uint32_t first = min(part * each, m.n_rows), end = min(first + each, m.n_rows);
        double sum = 0;

        if (threadIdx.x < PNR_CUDA_WARP) {
            const uint32_t n = list_columns(m, kept, i, lags);

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
        return; /* the whole block */

    double sum = 0;
    uint32_t n = 0;

    /* by the volatile way: what other blocks have written is not in this one's cache */
    for (uint32_t e = threadIdx.x; e < state->n_kept * PARTS; e += PNR_CUDA_THREADS)
        sum += ((volatile double *)taken)[e];
    for (uint32_t e = threadIdx.x; e < state->n_kept; e += PNR_CUDA_THREADS)
        n += ((volatile uint32_t *)n_taken)[e];
    sum = pnr_cuda_block_sum(sum, scratch);
    n = pnr_cuda_block_sum(n, counts);
    if (threadIdx.x == 0) {
        state->n_blocks = 0;
        decide(m, state, search, sum, n);
    }
    __syncthreads();
    list_hot(m, s, state, d);
}

/* --- the launchers --- */

size_t pnr_map_tile_keys(const pnr_map *m)
{
    return (size_t)((m->tile + PIECE - 1) / PIECE) * m->max_candidates;
}

int pnr_map_measure_tiles(const pnr_map *m, const pnr_map_search *s, cudaStream_t stream,
                          pnr_error *error)
{
    assert(s->n_dwells >= 1 && s->n_dwells <= 65535);
    assert(s->n_tiles == m->n_codes * m->n_rows * m->row_tiles);
    measure_tiles<<<dim3(s->n_tiles, s->n_dwells), PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    return pnr_cuda_check_launch("measure_tiles", error);
}

int pnr_map_find(const pnr_map *m, const pnr_map_search *s, cudaStream_t stream, pnr_error *error)
{
    const int n_searches = m->cfar_kind != PNR_CFAR_OFF ? 1 : PNR_MAX_SEARCHES;
    const uint32_t n_items = s->n_tiles * ((m->tile + PIECE - 1) / PIECE);
    const uint32_t share = SCAN_BLOCKS / s->n_dwells;
    const uint32_t most = share > LEAST_BLOCKS ? share : (uint32_t)LEAST_BLOCKS;
    const dim3 scanners(n_items < most ? n_items : most, s->n_dwells);
    int code;

    assert(s->n_dwells >= 1 && s->n_dwells <= 65535);
    begin_search<<<s->n_dwells, PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    if ((code = pnr_cuda_check_launch("begin_search", error)) != PNR_OK)
        return code;
    for (int search = 0; search < n_searches; search++) {
        scan_maps<<<scanners, PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
        if ((code = pnr_cuda_check_launch("scan_maps", error)) != PNR_OK)
            return code;
        conclude_search<<<dim3(m->max_candidates * PARTS, s->n_dwells), PNR_CUDA_THREADS, 0,
                          stream>>>(*m, *s, search);
        if ((code = pnr_cuda_check_launch("conclude_search", error)) != PNR_OK)
            return code;
    }
    return PNR_OK;
}
