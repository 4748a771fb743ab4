/* SPDX-License-Identifier: MIT */
/* One search of a map. A line of a map is one row of one code. A warp or a block scans the lines
 * for maxima, piece by piece. Between two searches pnr_map_decide sets a lower floor. */
#ifndef PNR_CUDA_MAP_SCAN_H
#define PNR_CUDA_MAP_SCAN_H

#include "cuda/base/reduce.h"
#include "cuda/map/cfar.h"
#include "cuda/map/place.h"

enum { PNR_MAP_PIECE = 1024 }; /* cells of a line that are scanned together */

/* --- maxima --- */

/* Returns true if a line has the cell of number (first - n_cells). The offset n_cells avoids
 * negative numbers. A circular line wraps, so it has all these cells. A linear line has only cells
 * 0 to n_cells - 1. */
static __device__ __forceinline__ bool pnr_map_is_cell(const pnr_map &m, uint32_t first)
{
    return !m.is_linear || (first >= m.n_cells && first < 2 * m.n_cells);
}

/* Returns the power of the cell of number (first - n_cells) in a line that wraps. `first` is below
 * 3 * n_cells. */
static __device__ __forceinline__ float pnr_map_wrapped(const pnr_map &m, const float *line,
                                                        uint32_t first)
{
    const uint32_t once = first < m.n_cells ? first : first - m.n_cells;

    return line[once < m.n_cells ? once : once - m.n_cells];
}

/* Returns true if the power `here` of a cell exceeds all earlier cells of its row within its box
 * (see plan.h), and no later cell of the row within the box exceeds `here`. */
static __device__ bool pnr_map_is_greatest_of_row(const pnr_map &m, const float *line,
                                                  uint32_t cell, float here)
{
    for (uint32_t i = 1; i <= m.exclusion_cells; i++) {
        const uint32_t before = cell + m.n_cells - i, after = cell + m.n_cells + i;

        if ((pnr_map_is_cell(m, before) && !(here > pnr_map_wrapped(m, line, before))) ||
            (pnr_map_is_cell(m, after) && !(here >= pnr_map_wrapped(m, line, after))))
            return false;
    }
    return true;
}

/* Compares the power `here` of a cell with the cells of its box in another row. line: the powers of
 * the other row. If the other row is earlier (is_before), returns true if `here` exceeds all these
 * cells. If it is later, returns true if none of these cells exceeds `here`. */
static __device__ bool pnr_map_is_greater_than_row(const pnr_map &m, const float *line,
                                                   uint32_t cell, float here, bool is_before)
{
    bool is_so = true;

    for (uint32_t i = 0; i <= 2 * m.exclusion_cells; i++) {
        const uint32_t other = cell + m.n_cells + i - m.exclusion_cells;

        if (pnr_map_is_cell(m, other))
            is_so &= is_before ? here > pnr_map_wrapped(m, line, other)
                               : here >= pnr_map_wrapped(m, line, other);
    }
    return is_so;
}

/* --- a piece --- */

/* Waits for all threads of a crew. A crew is a warp or a block. */
template <int THREADS> static __device__ __forceinline__ void pnr_map_sync()
{
    if constexpr (THREADS == PNR_CUDA_WARP)
        __syncwarp();
    else
        __syncthreads();
}

/* Shared memory of a crew for one piece. */
struct pnr_map_piece {
    union {
        float sums[PNR_MAP_PIECE];          /* sums of powers, for pnr_map_screen */
        uint64_t maxima[PNR_MAP_PIECE / 2]; /* at most one of two adjacent cells is a maximum */
    };
    uint8_t is_beaten[PNR_MAP_PIECE / 2];
    uint32_t n_above, n_listed;
    /* set by pnr_map_keep_maxima: the numbers of maxima and of kept maxima in the gate, and, with
     * has_outside, the greatest key of a maximum outside of the gate (0: none) */
    uint32_t n_maxima, n_kept;
    uint64_t outside;
};

/* Adds sums[i + apart] to sums[i] for all i of a piece; sums beyond the piece are 0. The crew
 * proceeds from low to high i, so it reads no sum that it has already changed. */
template <int THREADS>
static __device__ __forceinline__ void pnr_map_add_apart(float *sums, uint32_t apart)
{
    constexpr int EACH = 4; /* sums that a thread reads before it writes them */
    const uint32_t thread = threadIdx.x % THREADS;

#pragma unroll 2
    for (uint32_t first = thread; first < PNR_MAP_PIECE; first += EACH * THREADS) {
        float sum[EACH];

#pragma unroll
        for (uint32_t k = 0; k < EACH; k++) {
            const uint32_t at = first + THREADS * k;

            sum[k] = sums[at] + (at + apart < PNR_MAP_PIECE ? sums[at + apart] : 0.0f);
        }
        pnr_map_sync<THREADS>();
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++)
            sums[first + THREADS * k] = sum[k];
    }
    pnr_map_sync<THREADS>();
}
static_assert(PNR_MAP_PIECE % (4 * PNR_CUDA_THREADS) == 0, "all threads go on together");

enum { PNR_MAP_QUADS = PNR_MAP_PIECE / 4 }; /* quads of a piece; a quad is 4 adjacent cells */

/* Returns the index of the thread's cell j in its piece. With has_quads, cells 4 i to 4 i + 3 of a
 * thread are one quad. Otherwise adjacent threads process adjacent cells. */
template <int THREADS>
static __device__ __forceinline__ uint32_t pnr_map_at(bool has_quads, uint32_t j)
{
    const uint32_t thread = threadIdx.x % THREADS;

    return has_quads ? 4 * (thread + THREADS * (j / 4)) + j % 4 : thread + THREADS * j;
}

/* Like pnr_map_screen, but faster. Requires level.has_quads(). The four cells of a quad share two
 * sums, one per side. Each sum adds the powers of quads. Their distances from this quad are near()
 * to far() - 1 quads (see pnr_map_level). */
template <int THREADS>
static __device__ __forceinline__ uint32_t pnr_map_screen_quads(const pnr_map &m,
                                                                const pnr_map_level &level,
                                                                const float *own, uint32_t first,
                                                                uint32_t end, float threshold,
                                                                float *sums)
{
    constexpr int EACH = PNR_MAP_QUADS / THREADS, TOGETHER = EACH < 4 ? EACH : 4;
    const float factor = level.least_factor();
    float *const greatest = sums + PNR_MAP_QUADS;
    uint32_t is_left = 0;

#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const uint32_t q = threadIdx.x % THREADS + THREADS * k;
        float sum = 0, most = 0;

#pragma unroll
        for (uint32_t cell = first + 4 * q; cell < first + 4 * q + 4; cell++) {
            const float here = cell < end ? own[cell] : 0.0f;

            sum += here;
            most = fmaxf(most, here);
        }
        sums[q] = sum;
        greatest[q] = most;
    }
    pnr_map_sync<THREADS>();
#pragma unroll 1
    for (int part = 0; part < EACH; part += TOGETHER) {
        const uint32_t quad = threadIdx.x % THREADS + THREADS * part;
        float before[TOGETHER] = {}, after[TOGETHER] = {};

#pragma unroll 1
        for (uint32_t apart = level.near(); apart < level.far(); apart++)
#pragma unroll
            for (int k = 0; k < TOGETHER; k++) {
                const uint32_t q = quad + THREADS * k;

                before[k] += q >= apart ? sums[q - apart] : 0.0f;
                after[k] += q + apart < PNR_MAP_QUADS ? sums[q + apart] : 0.0f;
            }
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
            const uint32_t q = quad + THREADS * k, cell = first + 4 * q;
            const bool is_full = !m.is_linear || (level.is_full(cell) && level.is_full(cell + 3));
            const float least =
                is_full ? fmaxf(threshold, factor * level.side_of(before[k], after[k])) : threshold;

            if (greatest[q] > least)
#pragma unroll 1
                for (uint32_t i = 0; i < 4; i++)
                    is_left |= (uint32_t)(cell + i < end && own[cell + i] > least)
                               << (4 * (part + k) + i);
        }
    }
    pnr_map_sync<THREADS>(); /* after this barrier the maxima overwrite the sums */
    return is_left;
}

/* Rejects most cells in single precision. Sets bit j of the result if the thread's cell j exceeds
 * the threshold and may exceed its CFAR level. pnr_map_level then compares the cell in double
 * precision. The sum of each side contains the nearest 2^k training cells, where 2^k is the
 * greatest power of two <= m.training. A sum of 2^k cells is computed from two sums of 2^(k - 1)
 * cells. Cells beyond the piece count as 0. So a sum never exceeds the sum over all training cells
 * of its side. */
template <int THREADS>
static __device__ __forceinline__ uint32_t pnr_map_screen(const pnr_map &m,
                                                          const pnr_map_level &level,
                                                          const float *own, uint32_t first,
                                                          uint32_t end, float threshold,
                                                          float *sums)
{
    constexpr int CELLS = PNR_MAP_PIECE / THREADS;
    const uint32_t thread = threadIdx.x % THREADS, step = m.stride * m.oversample;
    const uint32_t after = (m.guard + 1) * m.oversample;
    uint32_t n = 1, is_left = 0;

#pragma unroll(CELLS < 8 ? CELLS : 8)
    for (uint32_t at = thread; at < PNR_MAP_PIECE; at += THREADS)
        sums[at] = first + at < end ? own[first + at] : 0.0f;
    pnr_map_sync<THREADS>();
    for (; 2 * n <= m.training; n *= 2)
        pnr_map_add_apart<THREADS>(sums, n * step);

    const float factor = level.least_factor();
    const uint32_t before = after + (n - 1) * step;

#pragma unroll(CELLS < 8 ? CELLS : 8)
    for (int j = 0; j < CELLS; j++) {
        const uint32_t at = thread + THREADS * j;
        const float a = at >= before ? sums[at - before] : 0.0f;
        const float b = at + after < PNR_MAP_PIECE ? sums[at + after] : 0.0f;
        const float here = first + at < end ? own[first + at] : 0.0f;

        const bool is_refused =
            here <= factor * level.side_of(a, b) && (!m.is_linear || level.is_full(first + at));

        is_left |= (uint32_t)(here > threshold && !is_refused) << j;
    }
    pnr_map_sync<THREADS>(); /* after this barrier the maxima overwrite the sums */
    return is_left;
}

/* Scans cells [first, end) of a line. Counts the cells in the gate that exceed the threshold and
 * their CFAR level. Lists the maxima of the line among these cells and, with has_outside, among
 * the cells outside of the gate. */
template <int THREADS>
static __device__ __forceinline__ void
pnr_map_scan_line(pnr_map_piece &b, const pnr_map &m, const float *power,
                  const pnr_map_level &level, uint32_t line, uint32_t first, uint32_t end,
                  float threshold)
{
    constexpr int CELLS = PNR_MAP_PIECE / THREADS;
    const bool is_cfar = m.cfar_kind != PNR_CFAR_OFF;
    const float *own = power + (size_t)line * m.n_cells;
    const uint32_t thread = threadIdx.x % THREADS;
    const bool has_quads = level.has_screen() && level.has_quads();
    uint32_t is_left = 0;

    if (has_quads) {
        is_left = pnr_map_screen_quads<THREADS>(m, level, own, first, end, threshold, b.sums);
    } else if (level.has_screen()) {
        is_left = pnr_map_screen<THREADS>(m, level, own, first, end, threshold, b.sums);
    } else {
#pragma unroll(CELLS < 16 ? CELLS : 16)
        for (int j = 0; j < CELLS; j++) {
            const uint32_t cell = first + thread + THREADS * j;

            is_left |= (uint32_t)(cell < end && own[cell] > threshold) << j;
        }
    }
    for (; is_left != 0; is_left &= is_left - 1) {
        const uint32_t cell = first + pnr_map_at<THREADS>(has_quads, __ffs((int)is_left) - 1);
        const float here = own[cell];
        const bool is_inside = pnr_map_in_gate(m, pnr_map_lag(m, cell));

        if (!(is_inside || m.has_outside) || (is_cfar && !level.is_above(cell, here)))
            continue;
        if (is_inside)
            atomicAdd(&b.n_above, 1u);
        if (pnr_map_is_greatest_of_row(m, own, cell, here)) {
            const uint32_t at = atomicAdd(&b.n_listed, 1u);

            b.maxima[at] = pnr_candidate_key(here, line * m.n_cells + cell);
            b.is_beaten[at] = 0;
        }
    }
}

/* Compares each maximum with the other rows of its box. Marks the maximum if
 * pnr_map_is_greater_than_row returns false for at least one row. A thread compares one maximum
 * with one row at a time. */
template <int THREADS>
static __device__ __forceinline__ void pnr_map_scan_boxes(pnr_map_piece &b, const pnr_map &m,
                                                          const float *power, uint32_t line)
{
    const uint32_t row = line % m.n_rows, first = row - min(row, m.exclusion_rows);
    const uint32_t n_others = min(m.n_rows - 1, row + m.exclusion_rows) - first;

    for (uint32_t e = threadIdx.x % THREADS; e < b.n_listed * n_others; e += THREADS) {
        const uint32_t i = e / n_others, r = first + e % n_others, other = r < row ? r : r + 1;
        const uint64_t key = b.maxima[i];

        if (!pnr_map_is_greater_than_row(m, power + (size_t)(line - row + other) * m.n_cells,
                                         pnr_map_place(m, pnr_candidate_lag(key)).cell,
                                         pnr_candidate_power(key), other < row))
            b.is_beaten[i] = 1;
    }
}

/* Drops the maxima that pnr_map_scan_boxes has marked. Moves the strongest remaining maxima in the
 * gate to the front, and finds the strongest remaining maximum outside of it. One warp calls
 * this. */
static __device__ __forceinline__ void pnr_map_keep_maxima(pnr_map_piece &b, const pnr_map &m)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP, n_listed = b.n_listed;
    uint32_t n_maxima = 0;

    for (uint32_t i = lane; i < (n_listed + 31) / 32 * 32; i += PNR_CUDA_WARP) {
        bool is_maximum = i < n_listed && !b.is_beaten[i];
        const uint64_t key = i < n_listed ? b.maxima[i] : 0;

        if (m.has_outside && is_maximum && !pnr_map_in_gate(m, pnr_map_centre(m, key))) {
            pnr_candidate_raise(&b.outside, key);
            is_maximum = false;
        }

        const uint32_t kept = __ballot_sync(0xffffffffu, is_maximum);

        if (is_maximum)
            b.maxima[n_maxima + (uint32_t)__popc(kept & ((1u << lane) - 1))] = key;
        n_maxima += (uint32_t)__popc(kept);
        __syncwarp();
    }

    const uint32_t n_kept = pnr_candidates_select(b.maxima, n_maxima, pnr_candidate_most(m), 0);

    if (lane == 0) {
        b.n_maxima = n_maxima;
        b.n_kept = n_kept;
    }
    __syncwarp();
}

/* Lists the maxima above the threshold in piece `number` of a tile. The threads of the crew may
 * read b after their next barrier. n_looks: the number of looks that the dwell uses. */
template <int THREADS>
static __device__ __forceinline__ void
pnr_map_scan_piece(pnr_map_piece &b, const pnr_map &m, const float *power, uint32_t n_looks,
                   float threshold, uint32_t tile, uint32_t number)
{
    const uint32_t line = tile / m.row_tiles, start = tile % m.row_tiles * m.tile;
    const uint32_t end = min(start + m.tile, m.n_cells);
    const uint32_t first = min(start + number * PNR_MAP_PIECE, end);
    const uint32_t thread = threadIdx.x % THREADS;
    const pnr_map_level level(m, power, n_looks, line);

    if (thread == 0) {
        b.n_above = b.n_listed = 0;
        b.outside = 0;
    }
    pnr_map_sync<THREADS>();
    pnr_map_scan_line<THREADS>(b, m, power, level, line, first, min(first + PNR_MAP_PIECE, end),
                               threshold);
    pnr_map_sync<THREADS>();
    pnr_map_scan_boxes<THREADS>(b, m, power, line);
    pnr_map_sync<THREADS>();
    if (thread < PNR_CUDA_WARP)
        pnr_map_keep_maxima(b, m);
}

/* Returns the number of pieces of a tile. */
static __host__ __device__ __forceinline__ uint32_t pnr_map_pieces(const pnr_map &m)
{
    return (m.tile + PNR_MAP_PIECE - 1) / PNR_MAP_PIECE;
}

/* --- between two searches --- */

/* Returns true if one of the first n kept candidates excludes the column of a code at a lag. */
static __device__ bool pnr_map_is_taken(const pnr_map &m, const uint64_t *kept, uint32_t n,
                                        uint32_t code, uint32_t lag)
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

/* Lists the columns around kept candidate i, except columns that an earlier candidate excludes. A
 * column is one lag in all rows of a code. Returns the number of columns to all lanes. lags:
 * [PNR_NEIGHBOURS], the lag of each column, or m.n_lags where there is no column. One warp calls
 * this. */
static __device__ uint32_t pnr_map_list_columns(const pnr_map &m, const uint64_t *kept, uint32_t i,
                                                uint32_t *lags)
{
    const uint32_t j = threadIdx.x % PNR_CUDA_WARP;
    bool is_new = false;

    if (j < PNR_NEIGHBOURS) {
        const uint32_t lag = pnr_map_neighbour(m, pnr_map_centre(m, kept[i]), j);
        const uint32_t code = pnr_map_place(m, pnr_candidate_lag(kept[i])).line / m.n_rows;

        /* Each lag is counted once, even if a row has fewer than PNR_NEIGHBOURS lags. */
        is_new = j < m.n_lags && lag < m.n_lags && (!m.is_filtered || pnr_map_in_gate(m, lag)) &&
                 !pnr_map_is_taken(m, kept, i, code, lag);
        lags[j] = is_new ? lag : m.n_lags;
    }
    return (uint32_t)__popc(__ballot_sync(0xffffffffu, is_new));
}

/* Computes the floor without the kept candidates. Lowers the threshold for another search, or marks
 * the dwell as done. taken, n_taken: the power and the number of the columns that the kept
 * candidates exclude. One thread calls this. */
static __device__ void pnr_map_decide(const pnr_map &m, pnr_map_dwell *state, int search,
                                      double taken, uint32_t n_taken)
{
    const bool is_cfar = m.cfar_kind != PNR_CFAR_OFF;
    const uint64_t n_columns = (uint64_t)m.n_codes * (m.is_filtered ? m.gate_count : m.n_lags);
    const bool has_rest = n_columns - n_taken >= (n_columns + 1) / 2;
    pnr_dwell *sums = &state->sums;
    /* The mean power of the columns that no kept candidate excludes. */
    const double rest = (sums->noise_sum - taken) / (double)((n_columns - n_taken) * m.n_rows);
    const double floor = fmax(rest, state->rounding);
    bool is_done =
        !has_rest || (!is_cfar && (search + 1 == PNR_MAX_SEARCHES ||
                                   !(floor < PNR_LOWER_FLOOR(state->n_kept) * sums->floor)));

    if (search == 0)
        sums->n_above = state->n_above;
    if (!is_done) {
        sums->floor = floor;
        /* If no more candidates in the gate may be kept, a lower threshold adds only weaker
         * ones. */
        is_done = is_cfar || state->n_maxima >= pnr_candidate_most(m);
    }
    if (is_done) {
        sums->n_maxima = state->n_maxima;
        sums->n_candidates = state->n_kept;
        state->is_done = 1;
        return;
    }
    state->threshold = (float)(m.threshold[sums->n_periods - 1] * floor);
    state->n_above = state->n_maxima = state->n_keys = 0;
    state->outside = 0;
}

#endif
