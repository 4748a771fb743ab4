/* SPDX-License-Identifier: MIT */
/* The peak step: powers, noise sum, threshold, local maxima in lag order, a second search,
 * neighbours. */
#include "cuda/steps/peak.h"

#include "cuda/base/check.h"
#include "cuda/steps/candidates.h"

#include <cassert>

enum {
    TILE_MAXIMA = PNR_CUDA_TILE / 2, /* no two adjacent cells are both maxima */
    MERGE_KEYS = 1024,               /* keys of all tiles that shared memory holds */
    DWELL_WORDS = sizeof(pnr_dwell) / sizeof(uint32_t)
};
static_assert(sizeof(pnr_dwell) % sizeof(uint32_t) == 0 &&
                  (int)DWELL_WORDS <= (int)PNR_CUDA_THREADS,
              "a dwell is copied in words, one a thread");

/* The lag of a cell, and 1 for a half lag. oversample is 1 or 2. */
static __device__ uint32_t lag_of(const pnr_cuda_peak &p, uint32_t cell)
{
    return cell >> (p.oversample - 1);
}
static __device__ uint32_t half_of(const pnr_cuda_peak &p, uint32_t cell)
{
    return cell & (p.oversample - 1);
}

/* The address of c of a row at a cell. */
static __device__ const float2 *value_at(const pnr_cuda_peak &p, size_t row, uint32_t cell)
{
    return (half_of(p, cell) == 0 ? p.rows[0] : p.rows[1]) + row * p.row_stride + lag_of(p, cell);
}

static __device__ float power_of_value(float2 c)
{
    return fmaf(c.x, c.x, c.y * c.y);
}

/* --- powers --- */

/* One block takes one tile: computes P of every cell, |c|^2, for an incoherent dwell summed over
 * its windows in order, and the noise sum over the integer lags of the tile. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) power_of_tiles(pnr_cuda_peak p)
{
    __shared__ double scratch[PNR_CUDA_WARPS];
    const size_t dwell = blockIdx.y;
    const uint32_t first = blockIdx.x * PNR_CUDA_TILE + threadIdx.x;
    const uint32_t end = min(blockIdx.x * PNR_CUDA_TILE + PNR_CUDA_TILE, p.n_cells);
    double noise = 0;

    for (uint32_t cell = first; cell < end; cell += PNR_CUDA_THREADS) {
        const float2 *c = value_at(p, dwell * p.dwell_rows, cell);
        float power = 0;

        for (uint32_t row = 0; row < p.dwell_rows; row++, c += p.row_stride)
            power += power_of_value(*c);
        p.power[dwell * p.n_cells + cell] = power;
        if (half_of(p, cell) == 0)
            noise += (double)power;
    }
    noise = pnr_cuda_block_sum(noise, scratch);
    if (threadIdx.x == 0)
        p.noise_parts[dwell * p.n_tiles + blockIdx.x] = noise;
}

/* Writes the complex profile in grid order. An incoherent dwell gives the profile of its last used
 * window, or 0 if it has none. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    pack_tiles(pnr_cuda_peak p, uint32_t first_dwell)
{
    const size_t dwell = blockIdx.y;
    const pnr_dwell *sums = &p.dwells[first_dwell + dwell].sums;
    const uint32_t row = p.is_incoherent ? p.dwells[first_dwell + dwell].last_used : 0;
    const uint32_t end = min(blockIdx.x * PNR_CUDA_TILE + PNR_CUDA_TILE, p.n_cells);

    for (uint32_t cell = blockIdx.x * PNR_CUDA_TILE + threadIdx.x; cell < end;
         cell += PNR_CUDA_THREADS) {
        float2 value = {0, 0};

        if (sums->n_periods > 0)
            value = *value_at(p, dwell * p.dwell_rows + row, cell);
        p.packed[dwell * p.n_cells + cell] = value;
    }
}

/* --- one search --- */

/* True when P[g] > P[g-1] and P[g] >= P[g+1], cyclic. */
static __device__ bool is_maximum(const float *power, uint32_t n_cells, uint32_t cell, float here)
{
    return here > power[cell == 0 ? n_cells - 1 : cell - 1] &&
           here >= power[cell + 1 == n_cells ? 0 : cell + 1];
}

/* The number of stronger keys. It is the place in the order, since no two keys are equal. */
static __device__ uint32_t rank_of(uint64_t key, const uint64_t *keys, uint32_t n_keys)
{
    uint32_t rank = 0;

    for (uint32_t i = 0; i < n_keys; i++)
        rank += keys[i] > key;
    return rank;
}

/* One block takes one tile: counts the cells above the threshold, and lists the strongest
 * max_candidates of its local maxima. The order of a list does not matter: the merge sorts by
 * key. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    scan_tiles(pnr_cuda_peak p, uint32_t first_dwell)
{
    __shared__ uint64_t maxima[TILE_MAXIMA];
    __shared__ uint32_t n_above, n_maxima;
    const size_t dwell = blockIdx.y;
    const pnr_cuda_dwell *state = p.dwells + first_dwell + dwell;

    if (state->is_done)
        return; /* the whole block */
    if (threadIdx.x == 0)
        n_above = n_maxima = 0;
    __syncthreads();

    const float *power = p.power + dwell * p.n_cells;
    const float threshold = state->threshold;
    const uint32_t end = min(blockIdx.x * PNR_CUDA_TILE + PNR_CUDA_TILE, p.n_cells);

    for (uint32_t cell = blockIdx.x * PNR_CUDA_TILE + threadIdx.x; cell < end;
         cell += PNR_CUDA_THREADS) {
        const float here = power[cell];

        if (!(here > threshold) || !pnr_candidate_in_gate(p, p.n_samples, lag_of(p, cell)))
            continue;
        atomicAdd(&n_above, 1u);
        if (is_maximum(power, p.n_cells, cell, here))
            maxima[atomicAdd(&n_maxima, 1u)] = pnr_candidate_key(here, cell);
    }
    __syncthreads();

    const size_t tile = dwell * p.n_tiles + blockIdx.x;
    uint64_t *keys = p.keys + tile * p.max_candidates;

    for (uint32_t i = threadIdx.x; i < n_maxima; i += PNR_CUDA_THREADS) {
        const uint32_t place =
            n_maxima <= p.max_candidates ? i : rank_of(maxima[i], maxima, n_maxima);

        if (place < p.max_candidates)
            keys[place] = maxima[i];
    }
    if (threadIdx.x == 0)
        p.tiles[tile] = {n_above, n_maxima, min(n_maxima, p.max_candidates)};
}

/* --- merging the tiles of a dwell --- */

/* Shared memory of a block in the merge. */
struct merge {
    uint64_t keys[MERGE_KEYS];
    uint64_t kept[PNR_MAX_CANDIDATES];
    pnr_candidate candidates[PNR_MAX_CANDIDATES];
    double double_of_warp[PNR_CUDA_WARPS];
    uint32_t count_of_warp[PNR_CUDA_WARPS];
    uint64_t weakest; /* no weaker key will be kept */
    uint32_t n_keys;
    uint32_t n_above, n_maxima;
    uint32_t is_done;
};

/* Keeps the strongest max_candidates of the keys, in their order. All threads call, after a
 * barrier; it ends with one. */
static __device__ void keep_strongest(merge &m, uint32_t max_candidates)
{
    const uint32_t n_keys = m.n_keys;
    const uint32_t n_kept = min(n_keys, max_candidates);

    for (uint32_t i = threadIdx.x; i < n_keys; i += PNR_CUDA_THREADS) {
        const uint32_t rank = rank_of(m.keys[i], m.keys, n_keys);

        if (rank < max_candidates)
            m.kept[rank] = m.keys[i];
    }
    __syncthreads();
    if (threadIdx.x < n_kept)
        m.keys[threadIdx.x] = m.kept[threadIdx.x];
    if (threadIdx.x == 0) {
        m.n_keys = n_kept;
        if (n_kept == max_candidates)
            m.weakest = m.kept[n_kept - 1];
    }
    __syncthreads();
}

/* Reads the counts and lists of the tiles. Afterwards m.kept is in lag order and m.n_keys long. It
 * ends with a barrier. */
static __device__ void merge_lists(merge &m, const pnr_cuda_peak &p, size_t dwell)
{
    if (threadIdx.x == 0) {
        m.n_keys = m.n_above = m.n_maxima = 0;
        m.weakest = 0;
    }
    __syncthreads();
    for (uint32_t first = 0; first < p.n_tiles; first += PNR_CUDA_THREADS) {
        const size_t tile = dwell * p.n_tiles + first + threadIdx.x;
        pnr_cuda_tile my = {0, 0, 0};

        if (first + threadIdx.x < p.n_tiles)
            my = p.tiles[tile];
        if (my.n_above > 0) {
            atomicAdd(&m.n_above, my.n_above);
            atomicAdd(&m.n_maxima, my.n_maxima);
        }
        for (uint32_t i = 0; __syncthreads_or(i < my.n_kept); i++) {
            const bool is_full = m.n_keys > MERGE_KEYS - PNR_CUDA_THREADS;

            __syncthreads(); /* all have read n_keys before one adds to it */
            if (is_full)
                keep_strongest(m, p.max_candidates);
            if (i < my.n_kept) {
                const uint64_t key = p.keys[tile * p.max_candidates + i];

                if (key > m.weakest)
                    m.keys[atomicAdd(&m.n_keys, 1u)] = key;
            }
        }
    }
    __syncthreads();
    keep_strongest(m, p.max_candidates);
    if (threadIdx.x < m.n_keys) {
        const uint32_t cell = pnr_candidate_lag(m.keys[threadIdx.x]);
        uint32_t place = 0;

        for (uint32_t i = 0; i < m.n_keys; i++)
            place += pnr_candidate_lag(m.keys[i]) < cell;
        m.kept[place] = m.keys[threadIdx.x];
    }
    __syncthreads();
}

/* The lag of neighbour j = 0..16 of a candidate, mod N, for any N >= 1. */
static __device__ uint32_t neighbour_lag(const pnr_cuda_peak &p, uint64_t key, uint32_t j)
{
    const uint32_t n = p.n_samples;

    return (lag_of(p, pnr_candidate_lag(key)) + n - PNR_CANDIDATE_REACH % n + j) % n;
}

/* The floor without the kept echoes: the mean P of the integer lags that none of them reaches, or
 * -INFINITY if fewer than half the lags remain. Only thread 0 gets it. N > 17. */
static __device__ double floor_without(merge &m, const pnr_cuda_peak &p, const float *power,
                                       double noise_sum)
{
    double taken = 0;
    uint32_t n_taken = 0;

    for (uint32_t i = threadIdx.x; i < m.n_keys * PNR_NEIGHBOURS; i += PNR_CUDA_THREADS) {
        const uint32_t lag = neighbour_lag(p, m.kept[i / PNR_NEIGHBOURS], i % PNR_NEIGHBOURS);
        bool is_counted = false;

        for (uint32_t e = 0; e < i / PNR_NEIGHBOURS && !is_counted; e++)
            is_counted =
                pnr_candidate_reaches(p.n_samples, lag_of(p, pnr_candidate_lag(m.kept[e])), lag);
        if (!is_counted) {
            taken += (double)power[(size_t)lag * p.oversample];
            n_taken++;
        }
    }
    taken = pnr_cuda_block_sum(taken, m.double_of_warp);
    n_taken = pnr_cuda_block_sum(n_taken, m.count_of_warp);
    if (threadIdx.x != 0 || 2 * (uint64_t)(p.n_samples - n_taken) < p.n_samples)
        return -INFINITY;
    return (noise_sum - taken) / (double)(p.n_samples - n_taken);
}

/* Reads the value of candidate i at neighbour j: c[lag], or for an incoherent dwell the sum over
 * windows c[lag] conj(c[k]) / sqrt(P[k]). */
static __device__ void gather_neighbour(merge &m, const pnr_cuda_peak &p, size_t dwell, uint32_t i,
                                        uint32_t j)
{
    const uint64_t key = m.kept[i];
    const float2 *c = p.rows[0] + dwell * p.dwell_rows * p.row_stride;
    const uint32_t lag = neighbour_lag(p, key, j);
    float *value = m.candidates[i].value[j];

    if (!p.is_incoherent) {
        value[0] = c[lag].x;
        value[1] = c[lag].y;
        return;
    }

    const uint32_t centre = lag_of(p, pnr_candidate_lag(key));
    double re = 0, im = 0, power = 0;

    for (uint32_t row = 0; row < p.dwell_rows; row++, c += p.row_stride) {
        const double ar = c[lag].x, ai = c[lag].y, br = c[centre].x, bi = c[centre].y;

        re += ar * br + ai * bi;
        im += ai * br - ar * bi;
        power += br * br + bi * bi;
    }

    const double scale = power > 0 ? 1 / sqrt(power) : 0;

    value[0] = (float)(re * scale);
    value[1] = (float)(im * scale);
}

/* Copies adjacent words, so that a warp writes them together. */
static __device__ void copy_words(uint32_t *to, const uint32_t *from, uint32_t n_words)
{
    for (uint32_t i = threadIdx.x; i < n_words; i += PNR_CUDA_THREADS)
        to[i] = from[i];
}

/* One block takes one dwell: selects the strongest of all tiles. Then it lowers the floor for the
 * next search, or writes the results of the dwell. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    merge_tiles(pnr_cuda_peak p, uint32_t first_dwell, int search)
{
    __shared__ merge m;
    const size_t dwell = blockIdx.x;
    pnr_cuda_dwell *state = p.dwells + first_dwell + dwell;
    const float *power = p.power + dwell * p.n_cells;

    if (state->is_done)
        return; /* the whole block */
    if (search == 0) {
        double noise = 0;

        for (uint32_t i = threadIdx.x; i < p.n_tiles; i += PNR_CUDA_THREADS)
            noise += p.noise_parts[dwell * p.n_tiles + i];
        noise = pnr_cuda_block_sum(noise, m.double_of_warp);
        if (threadIdx.x == 0)
            state->sums.noise_sum = noise;
    }
    __syncthreads();
    merge_lists(m, p, dwell);

    /* Only the value of thread 0 counts. */
    const double rest = floor_without(m, p, power, state->sums.noise_sum);

    if (threadIdx.x == 0) {
        pnr_dwell *sums = &state->sums;
        const double floor = fmax(rest, state->rounding);

        if (search == 0)
            sums->n_above = m.n_above;
        m.is_done = search + 1 == PNR_MAX_SEARCHES || p.n_samples <= PNR_NEIGHBOURS ||
                    isinf(rest) || !(floor < PNR_LOWER_FLOOR(m.n_keys) * sums->floor);
        if (!m.is_done) {
            sums->floor = floor;
            m.is_done = m.n_keys == p.max_candidates; /* a lower threshold adds only weaker ones */
        }
        if (!m.is_done) {
            state->threshold = (float)(p.threshold[sums->n_periods - 1] * floor);
        } else {
            sums->n_maxima = m.n_maxima;
            sums->n_candidates = m.n_keys;
            state->is_done = 1;
        }
    }
    __syncthreads();
    if (!m.is_done)
        return; /* the whole block */
    for (uint32_t i = threadIdx.x; i < m.n_keys * PNR_NEIGHBOURS; i += PNR_CUDA_THREADS)
        gather_neighbour(m, p, dwell, i / PNR_NEIGHBOURS, i % PNR_NEIGHBOURS);
    if (threadIdx.x < m.n_keys) {
        pnr_candidate *candidate = m.candidates + threadIdx.x;

        candidate->cell = pnr_candidate_lag(m.kept[threadIdx.x]);
        candidate->code = 0;
        candidate->channel = 0;
        candidate->row = 0;
        candidate->power = pnr_candidate_power(m.kept[threadIdx.x]);
    }
    __syncthreads();
    copy_words((uint32_t *)(p.out_candidates + (first_dwell + dwell) * p.max_candidates),
               (const uint32_t *)m.candidates, m.n_keys * PNR_CANDIDATE_WORDS);
    copy_words((uint32_t *)(p.out_dwells + first_dwell + dwell), (const uint32_t *)&state->sums,
               DWELL_WORDS);
}

/* --- the launcher --- */

const void *pnr_cuda_a_kernel(void)
{
    return (const void *)power_of_tiles;
}

int pnr_cuda_find_peaks(const pnr_cuda_shape *shape, const pnr_cuda_peak *peak, size_t first_dwell,
                        size_t n_dwells, cudaStream_t stream, pnr_error *error)
{
    const dim3 grid((unsigned)shape->n_tiles, (unsigned)n_dwells);
    int code;

    assert(n_dwells >= 1 && n_dwells <= shape->round_dwells && n_dwells <= 65535);
    assert(first_dwell + n_dwells <= shape->batch);
    assert(peak->n_cells == shape->n_cells && peak->n_tiles == shape->n_tiles);
    assert(peak->max_candidates >= 1 && peak->max_candidates <= PNR_MAX_CANDIDATES);
    assert(peak->gate_first < peak->n_samples && peak->gate_count <= peak->n_samples);

    power_of_tiles<<<grid, PNR_CUDA_THREADS, 0, stream>>>(*peak);
    if ((code = pnr_cuda_check_launch("power_of_tiles", error)) != PNR_OK)
        return code;
    if (peak->packed != NULL) {
        pack_tiles<<<grid, PNR_CUDA_THREADS, 0, stream>>>(*peak, (uint32_t)first_dwell);
        if ((code = pnr_cuda_check_launch("pack_tiles", error)) != PNR_OK)
            return code;
    }
    for (int search = 0; search < PNR_MAX_SEARCHES; search++) {
        scan_tiles<<<grid, PNR_CUDA_THREADS, 0, stream>>>(*peak, (uint32_t)first_dwell);
        if ((code = pnr_cuda_check_launch("scan_tiles", error)) != PNR_OK)
            return code;
        merge_tiles<<<(unsigned)n_dwells, PNR_CUDA_THREADS, 0, stream>>>(
            *peak, (uint32_t)first_dwell, search);
        if ((code = pnr_cuda_check_launch("merge_tiles", error)) != PNR_OK)
            return code;
    }
    return PNR_OK;
}
