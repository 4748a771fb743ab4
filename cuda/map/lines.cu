/* SPDX-License-Identifier: MIT */
/* Lines of a map, each within one block, of 1024 to 8192 points: a row is transformed, multiplied
 * by each code and transformed back. Each line's powers, their sum and the greatest are kept. */
#include "cuda/fused/window.h"
#include "cuda/map/fused.h"

#include "cuda/base/mix.h"
#include "cuda/base/reduce.h"
#include "cuda/base/resources.h"

#include <cassert>

enum { MIN_SAMPLES = 128, MIN_POINTS = 1024, MAX_POINTS = 8192 };

/*
 * A block has GROUPS groups of threads, each with its own window in shared memory. With many codes
 * all groups take one row: its spectrum is kept, and each group does other codes. With few codes
 * each group takes another row, of any dwell, and transforms it again for each code.
 */
template <int M, bool IS_SHARED> struct lines_size {
    typedef pnr_fused_size<M> window;
    static constexpr int GROUPS = IS_SHARED ? 16 / M : window::WINDOWS;
    static constexpr int THREADS = GROUPS * window::THREADS;
    static constexpr int KEPT_BYTES = IS_SHARED ? window::L * (int)sizeof(float2) : 0;
    static constexpr int BYTES = window::TABLE_BYTES + GROUPS * window::BUFFER_BYTES + KEPT_BYTES;
};

/* --- kernels --- */

/* The line of a dwell that a thread works on, at the integer lags or the half lags above them. */
struct map_line {
    uint32_t dwell, code, row, half;
    bool is_there;
};

/* Sets v[j] to sample n = first + step j of a row's transform: a window or a base, extended
 * periodically or by zeros. read(i) returns its sample i. It is called for every j, since a load
 * after an `if` would wait for the load before. */
template <int N, class READ>
static __device__ __forceinline__ void extend(const pnr_map &m, uint32_t first, uint32_t step,
                                              float2 (&v)[N], READ read)
{
#pragma unroll
    for (int j = 0; j < N; j++) {
        const uint32_t n = first + step * j, i = n < m.n_window ? n : n - m.n_window;

        v[j] = read(min(i, m.n_window - 1));
    }
#pragma unroll
    for (int j = 0; j < N; j++) {
        const uint32_t n = first + step * j;

        if (n >= m.n_window && (m.is_linear || n + 1 >= 2 * m.n_window))
            v[j] = make_float2(0, 0);
    }
}

/* Rotates v[j] by `turns` a sample. */
template <int N>
static __device__ __forceinline__ void rotate(const pnr_map &m, uint64_t turns, uint32_t first,
                                              uint32_t step, float2 (&v)[N])
{
#pragma unroll
    for (int j = 0; j < N; j++) {
        const uint32_t n = first + step * j;

        v[j] = pnr_cuda_rotate_back(v[j], (n < m.n_window ? n : n - m.n_window) * turns);
    }
}

/* Loads the samples of a row's transform from its base. */
template <int N>
static __device__ __forceinline__ void load_row(const pnr_map &m, const pnr_map_lines &p,
                                                uint32_t dwell, const pnr_map_row &row,
                                                uint32_t first, uint32_t step, float2 (&v)[N])
{
    const float2 *base =
        p.bases + (((size_t)dwell * m.n_looks + p.look) * m.n_bases + row.base) * m.row_stride;

    extend(m, first, step, v, [&](uint32_t i) { return base[i]; });
    if (row.shift != 0)
        rotate(m, row.shift * p.bin_turns, first, step, v);
}

/* Loads them from the raw window, if a look is one window. */
template <int N>
static __device__ __forceinline__ void load_window(const pnr_map &m, const pnr_map_lines &p,
                                                   uint32_t dwell, const pnr_map_row &row,
                                                   uint32_t first, uint32_t step, float2 (&v)[N])
{
    const size_t look = (size_t)(p.first_dwell + dwell) * m.n_looks + p.look;
    const float2 w = pnr_map_weight(m, p.samples, look, row.base);
    const uint64_t turns = m.turns[row.base];

    if (p.samples.stream != NULL)
        extend(m, first, step, v, [&](uint32_t i) { return pnr_map_there(m, p.samples, look, i); });
    else
        extend(m, first, step, v,
               [&](uint32_t i) { return pnr_map_raw(m, p.samples, look, 0, i); });
#pragma unroll
    for (int j = 0; j < N; j++)
        v[j] = pnr_map_weighted(w, v[j]);
#pragma unroll 1
    for (int way = 0; way < 2; way++) {
        const uint64_t by = way == 0 ? turns : row.shift * p.bin_turns;

        if (by != 0)
            rotate(m, by, first, step, v);
    }
}

/* Starts to load the raw window of a later dwell into the L2 cache: 128 bytes for lane u. */
static __device__ __forceinline__ void prefetch_window(const pnr_map &m, const pnr_map_lines &p,
                                                       uint32_t dwell, uint32_t u)
{
    const size_t look = (size_t)(p.first_dwell + dwell) * m.n_looks + p.look;
    const uint32_t i = u * 32; /* the lane's first sample of 4 bytes */

    if (p.bases == NULL && p.samples.stream == NULL && p.first_dwell + dwell < p.job->n_dwells &&
        i < m.n_window)
        asm volatile("prefetch.global.L2 [%0];" ::"l"((const short2 *)p.samples.raw.raw +
                                                      look * m.n_samples + i));
}

/* Writes v[j], c at lag first + step j with its parts swapped, to values, and adds its power to
 * power. *sum and *most are the sum and the greatest of the thread's powers. */
template <int N>
static __device__ __forceinline__ void
keep_line(const pnr_map &m, const pnr_map_lines &p, const map_line &line, const float2 (&v)[N],
          uint32_t first, uint32_t step, float *sum, float *most)
{
    constexpr int EACH = 8; /* loads of earlier looks' powers that run together */
    const size_t at = ((size_t)line.code * m.n_rows + line.row) * m.n_cells + line.half;
    const size_t all = (size_t)m.n_codes * m.n_rows * m.n_cells;
    float2 *values = p.values + ((size_t)line.dwell * m.n_looks + p.look) * all + at;
    float *power = p.power + (size_t)line.dwell * all + at;

    *sum = *most = 0;
#pragma unroll
    for (int chunk = 0; chunk < N; chunk += EACH) {
        float before[EACH] = {};

        if (p.look > 0)
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                const uint32_t lag = min(first + step * (chunk + k), m.n_lags - 1);

                before[k] = power[(size_t)lag * m.oversample];
            }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const float2 c = v[chunk + k];
            const uint32_t lag = first + step * (chunk + k);
            const bool is_cell = line.is_there && lag < m.n_lags;
            const float here = fmaf(c.y, c.y, c.x * c.x) + before[k];

            if (is_cell) {
                values[(size_t)lag * m.oversample] = make_float2(c.y, c.x);
                power[(size_t)lag * m.oversample] = here;
            }
            *most = fmaxf(*most, is_cell ? here : 0);
            *sum += is_cell ? here : 0;
        }
    }
}

/* Sets the line's sum and greatest power of the last look, from the WARPS warps of its group. sums,
 * greatest: [warps of the block], shared. wait() waits for all threads of the group; u is the
 * thread's number in the group. */
template <int WARPS, class WAIT>
static __device__ __forceinline__ void
sum_line(const pnr_map &m, const pnr_map_lines &p, const map_line &line, float sum, float most,
         double *sums, float *greatest, uint32_t u, WAIT wait)
{
    const uint32_t warp = threadIdx.x / PNR_CUDA_WARP;
    double total = pnr_cuda_warp_sum((double)sum);

#pragma unroll
    for (int other = PNR_CUDA_WARP / 2; other > 0; other /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, other));
    if (u % PNR_CUDA_WARP == 0) {
        sums[warp] = total;
        greatest[warp] = most;
    }
    wait();
    if (u != 0 || !line.is_there)
        return;
    for (int w = 1; w < WARPS; w++) {
        total += sums[warp + w];
        most = fmaxf(most, greatest[warp + w]);
    }

    const size_t tile = ((size_t)line.dwell * m.n_codes + line.code) * m.n_rows + line.row;

    p.noise[tile] = total;
    p.greatest[tile] = most;
}

/* A kernel's shared memory: the twiddles, a window for each group, then the row's spectrum. */
template <int M, bool IS_SHARED> struct lines_memory {
    typedef lines_size<M, IS_SHARED> block;
    typedef pnr_fused_size<M> window;
    float2 *table, *buffer;
    float4 *kept; /* the thread's first value of the row's spectrum */

    __device__ __forceinline__ lines_memory(float4 *memory, uint32_t group, uint32_t u)
        : table((float2 *)memory)
    {
        float2 *const buffers = table + window::TABLE_BYTES / sizeof(float2);

        buffer = buffers + group * (window::BUFFER_BYTES / sizeof(float2));
        kept = (float4 *)(buffers + block::GROUPS * (window::BUFFER_BYTES / sizeof(float2))) + u;
    }
};

/* All groups of a block take one row of a dwell, and each group does other codes. */
template <int M>
__global__ void __launch_bounds__(lines_size<M, true>::THREADS, 1)
    correlate_codes(pnr_map m, pnr_map_lines p, uint32_t)
{
    typedef pnr_fused_size<M> window;
    typedef lines_size<M, true> block;
    extern __shared__ float4 memory[];
    __shared__ double sums[block::THREADS / 32];
    __shared__ float greatest[block::THREADS / 32];
    const uint32_t group = threadIdx.x / window::THREADS, u = threadIdx.x % window::THREADS;
    const lines_memory<M, true> own(memory, group, u);
    const uint32_t dwell = blockIdx.y, row = blockIdx.x % m.n_rows;
    const uint32_t first = blockIdx.x / m.n_rows * p.part_codes * m.oversample;
    const uint32_t n_items = min(p.part_codes * m.oversample, m.n_codes * m.oversample - first);
    const bool is_last = p.look + 1 == m.n_looks && m.oversample == 1;
    float2 v[32];

    if (p.first_dwell + dwell >= p.job->n_dwells)
        return; /* the whole block */
    pnr_fused_fill_table<M>(own.table);
    __syncthreads();

    const pnr_fused_thread<M, false> thread(own.table, own.buffer, (int)u);

    load_row(m, p, dwell, m.rows[row], u, window::THREADS, v);
    thread.first_pass(v);
    thread.finish_forward(v);
    if (group == 0)
#pragma unroll
        for (int j = 0; j < 16; j++)
            own.kept[j * window::THREADS] =
                make_float4(v[2 * j].x, v[2 * j].y, v[2 * j + 1].x, v[2 * j + 1].y);
    __syncthreads(); /* all groups */
    for (uint32_t item = group; item < n_items + group; item += block::GROUPS) {
        const bool is_there = item < n_items;
        const uint32_t number = is_there ? first + item : first;
        const map_line line = {dwell, number / m.oversample, row, number % m.oversample, is_there};
        float sum, most;

#pragma unroll
        for (int j = 0; j < 16; j++) {
            const float4 z = own.kept[j * window::THREADS];

            v[2 * j] = make_float2(z.x, z.y);
            v[2 * j + 1] = make_float2(z.z, z.w);
        }
        thread.multiply(v, p.spectra + (size_t)number * (window::L / 2));
        pnr_fused_sync<M, false>(); /* all have read the values of the line before */
        thread.inverse(v);
        keep_line(m, p, line, v, u, window::THREADS, &sum, &most);
        if (is_last)
            sum_line<window::THREADS / 32>(m, p, line, sum, most, sums, greatest, u,
                                           [] { pnr_fused_sync<M, false>(); });
    }
}

/* Each group takes other rows, of the n_rows of all dwells. A block of several groups, whose table
 * is large, takes rows until all are done; a block of one group takes one row. */
template <int M>
__global__ void __launch_bounds__(lines_size<M, false>::THREADS, pnr_fused_size<M>::BLOCKS)
    correlate_rows(pnr_map m, pnr_map_lines p, uint32_t n_rows)
{
    typedef pnr_fused_size<M> window;
    typedef lines_size<M, false> block;
    extern __shared__ float4 memory[];
    __shared__ double sums[block::THREADS / 32];
    __shared__ float greatest[block::THREADS / 32];
    const uint32_t group = threadIdx.x / window::THREADS, u = threadIdx.x % window::THREADS;
    const lines_memory<M, false> own(memory, group, u);
    const bool is_last = p.look + 1 == m.n_looks && m.oversample == 1;
    const uint32_t begin = blockIdx.x * block::GROUPS + group, step = gridDim.x * block::GROUPS;
    /* Loaded before the table is filled, so that the loads overlap with that work. */
    const uint32_t n_dwells_first = p.job->n_dwells;
    const pnr_map_row base_first = m.rows[begin % m.n_rows];

    pnr_fused_fill_table<M>(own.table);
    __syncthreads();

    const pnr_fused_thread<M, true> thread(own.table, own.buffer, (int)u);

    for (uint32_t i = begin; i < n_rows; i += step) {
        const uint32_t dwell = i / m.n_rows, row = i % m.n_rows;
        const uint32_t n_dwells = block::GROUPS == 1 ? n_dwells_first : p.job->n_dwells;
        const pnr_map_row base = block::GROUPS == 1 ? base_first : m.rows[row];

        if (p.first_dwell + dwell >= n_dwells)
            return; /* the whole group */
        for (uint32_t item = 0; item < m.n_codes * m.oversample; item++) {
            const map_line line = {dwell, item / m.oversample, row, item % m.oversample, true};
            float2 v[32];
            float sum, most;

            if (p.bases != NULL)
                load_row(m, p, dwell, base, u, window::THREADS, v);
            else
                load_window(m, p, dwell, base, u, window::THREADS, v);
            if (M == 1 && item == 0)
                prefetch_window(m, p, (i + step) / m.n_rows, u);
            thread.correlate(v, p.spectra + (size_t)item * (window::L / 2), [] {});
            keep_line(m, p, line, v, u, window::THREADS, &sum, &most);
            if (is_last)
                sum_line<window::THREADS / 32>(m, p, line, sum, most, sums, greatest, u,
                                               [] { pnr_fused_sync<M, true>(); });
        }
        if (block::GROUPS == 1)
            return; /* as many blocks as rows */
    }
}

/* --- the launcher --- */

typedef void (*lines_kernel)(pnr_map, pnr_map_lines, uint32_t);

typedef struct instance {
    size_t n_points;
    bool is_shared;
    lines_kernel kernel;
    unsigned n_groups, n_threads;
    int n_bytes;
} instance;

template <int M, bool IS_SHARED> static instance make(lines_kernel kernel)
{
    typedef lines_size<M, IS_SHARED> size;

    return {(size_t)size::window::L, IS_SHARED,     kernel,
            (unsigned)size::GROUPS,  size::THREADS, size::BYTES};
}

size_t pnr_map_lines_groups(size_t n_points)
{
    return 16 * 1024 / n_points;
}

/* A row is shared when its codes keep more than half of the groups busy. A window in a warp is not
 * shared. */
static const instance *find(const pnr_map *m, size_t n_points)
{
    static const instance table[] = {
        make<2, true>(correlate_codes<2>), make<4, true>(correlate_codes<4>),
        make<8, true>(correlate_codes<8>), make<1, false>(correlate_rows<1>),
        make<2, false>(correlate_rows<2>), make<4, false>(correlate_rows<4>),
        make<8, false>(correlate_rows<8>),
    };
    const size_t n_groups = pnr_map_lines_groups(n_points);
    const bool is_shared =
        n_points > MIN_POINTS && 2 * (size_t)m->n_codes * m->oversample > n_groups;

    for (const instance &i : table)
        if (i.n_points == n_points && i.is_shared == is_shared)
            return &i;
    return NULL;
}

size_t pnr_map_lines_points(const pnr_plan *plan)
{
    const size_t n = plan->n_samples;
    const bool is_exact = !plan->linear && (n & (n - 1)) == 0 && n >= MIN_POINTS;
    const size_t least = plan->linear ? pnr_plan_window_samples(plan) : is_exact ? n : 2 * n - 1;
    size_t points = MIN_POINTS;

    while (points < least)
        points *= 2;
    return n >= MIN_SAMPLES && points <= MAX_POINTS ? points : 0;
}

bool pnr_map_lines_takes_windows(const pnr_map *m, size_t n_points)
{
    return !find(m, n_points)->is_shared;
}

size_t pnr_map_lines_bytes(const pnr_map *m, size_t n_points)
{
    return (size_t)find(m, n_points)->n_bytes + 512; /* 512 for the static variables */
}

int pnr_map_lines_prepare(const pnr_map *m, size_t n_points, pnr_error *error)
{
    const instance *i = find(m, n_points);

    return pnr_cuda_allow_shared((const void *)i->kernel, (size_t)i->n_bytes, error);
}

/* Returns the blocks that the device runs at one time, or a large number if this is unknown. */
static size_t resident_blocks(const instance *i)
{
    int device, n_processors, n_blocks;

    if (cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&n_processors, cudaDevAttrMultiProcessorCount, device) ==
            cudaSuccess &&
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, (const void *)i->kernel,
                                                      (int)i->n_threads,
                                                      (size_t)i->n_bytes) == cudaSuccess &&
        n_blocks > 0)
        return (size_t)n_blocks * (size_t)n_processors;
    (void)cudaGetLastError();
    return 65535;
}

int pnr_map_correlate(const pnr_map *m, const pnr_map_lines *lines, size_t n_points,
                      size_t n_dwells, cudaStream_t stream, pnr_error *error)
{
    const instance *i = find(m, n_points);
    const size_t n_rows = m->n_rows * n_dwells;
    const size_t n_blocks = (n_rows + i->n_groups - 1) / i->n_groups;
    const uint32_t n_parts = (m->n_codes + lines->part_codes - 1) / lines->part_codes;
    dim3 grid(m->n_rows * n_parts, (unsigned)n_dwells);

    assert(i != NULL && n_dwells >= 1 && n_dwells <= 65535 && n_rows <= UINT32_MAX / 2);
    if (!i->is_shared) {
        const size_t most = i->n_groups > 1 ? resident_blocks(i) : n_blocks;

        grid = dim3((unsigned)(n_blocks < most ? n_blocks : most));
    }
    i->kernel<<<grid, i->n_threads, (size_t)i->n_bytes, stream>>>(*m, *lines, (uint32_t)n_rows);
    return pnr_cuda_check_launch("correlate_lines", error);
}
