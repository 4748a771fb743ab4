/* SPDX-License-Identifier: MIT */
/* Lines of a map within a block, of 1024 to 8192 points: a base transformed, times each code, and
 * back; powers, sums and the greatest of each line. */
#include "cuda/fused/window.h"
#include "cuda/map/fused.h"

#include "cuda/base/check.h"
#include "cuda/base/mix.h"
#include "cuda/base/reduce.h"

#include <cassert>

enum { MIN_SAMPLES = 128, MIN_POINTS = 1024, MAX_POINTS = 8192 };

/*
 * A block has GROUPS groups of threads, each with a window of its own in shared memory. Where there
 * are many codes all groups take one row: its spectrum is kept, and each group does other codes.
 * Else each group takes a row of its own, transformed anew for each of its few codes.
 */
template <int M, bool IS_SHARED> struct lines_size {
    typedef pnr_fused_size<M> window;
    static constexpr int GROUPS = IS_SHARED ? 16 / M : window::WINDOWS;
    static constexpr int THREADS = GROUPS * window::THREADS;
    static constexpr int KEPT_BYTES = IS_SHARED ? window::L * (int)sizeof(float2) : 0;
    static constexpr int BYTES = window::TABLE_BYTES + GROUPS * window::BUFFER_BYTES + KEPT_BYTES;
};

/* --- kernels --- */

/* What a thread works on: one line of one dwell, at the integer lags or the half lags above them */
struct map_line {
    uint32_t dwell, code, row, half;
    bool is_there;
};

/* Sample n of the transform: of a base, rotated by whole bins, extended periodically or by zeros */
static __device__ __forceinline__ float2 sample_at(const pnr_map &m, const float2 *base,
                                                   uint64_t turns, uint32_t n)
{
    const uint32_t i = n < m.n_window ? n : n - m.n_window;

    if (n >= m.n_window && (m.is_linear || n + 1 >= 2 * m.n_window))
        return make_float2(0, 0);

    const float2 z = base[i];

    return turns != 0 ? pnr_cuda_rotate_back(z, i * turns) : z;
}

/* v[j]: c at lag first + step j, its parts swapped, to values, its power added to power; *sum and
 * *most of this thread's. */
template <int N>
static __device__ __forceinline__ void
keep_line(const pnr_map &m, const pnr_map_lines &p, const map_line &line, const float2 (&v)[N],
          uint32_t first, uint32_t step, float *sum, float *most)
{
    const size_t at = ((size_t)line.code * m.n_rows + line.row) * m.n_cells + line.half;
    const size_t all = (size_t)m.n_codes * m.n_rows * m.n_cells;
    float2 *values = p.values + ((size_t)line.dwell * m.n_looks + p.look) * all + at;
    float *power = p.power + (size_t)line.dwell * all + at;

    *sum = *most = 0;
#pragma unroll
    for (int j = 0; j < N; j++) {
        const uint32_t lag = first + step * j;
        float here = fmaf(v[j].y, v[j].y, v[j].x * v[j].x);

        if (!line.is_there || lag >= m.n_lags)
            continue;
        values[(size_t)lag * m.oversample] = make_float2(v[j].y, v[j].x);
        if (p.look > 0)
            here += power[(size_t)lag * m.oversample];
        power[(size_t)lag * m.oversample] = here;
        *most = fmaxf(*most, here);
        *sum += here;
    }
}

/* Of the last look: the line's sum and the greatest of it, over the WARPS warps of its group; sums,
 * greatest: [warps of the block], shared. wait(): for all threads of the group; u: in the group. */
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

template <int M, bool IS_SHARED>
__global__ void __launch_bounds__(lines_size<M, IS_SHARED>::THREADS, IS_SHARED || M == 1 ? 1
                                                                     : M == 8            ? 2
                                                                                         : 4)
    correlate_lines(pnr_map m, pnr_map_lines p)
{
    typedef pnr_fused_size<M> window;
    typedef lines_size<M, IS_SHARED> block;
    extern __shared__ float4 memory[];
    __shared__ double sums[block::THREADS / 32];
    __shared__ float greatest[block::THREADS / 32];
    float2 *table = (float2 *)memory;
    const uint32_t group = threadIdx.x / window::THREADS, u = threadIdx.x % window::THREADS;
    float2 *buffer = table + (window::TABLE_BYTES + group * window::BUFFER_BYTES) / sizeof(float2);
    float4 *kept = (float4 *)(table + (window::TABLE_BYTES + block::GROUPS * window::BUFFER_BYTES) /
                                          sizeof(float2)) +
                   u;
    const uint32_t dwell = blockIdx.y;
    const uint32_t row = IS_SHARED ? blockIdx.x % m.n_rows : blockIdx.x * block::GROUPS + group;
    const uint32_t first = IS_SHARED ? blockIdx.x / m.n_rows * p.part_codes * m.oversample : 0;
    const uint32_t most_items = m.n_codes * m.oversample;
    const uint32_t n_items =
        IS_SHARED ? min(p.part_codes * m.oversample, most_items - first) : most_items;
    const uint32_t step = IS_SHARED ? block::GROUPS : 1;
    const pnr_map_row line = m.rows[min(row, m.n_rows - 1)];
    const float2 *base =
        p.bases + (((size_t)dwell * m.n_looks + p.look) * m.n_bases + line.base) * m.row_stride;
    const bool is_last = p.look + 1 == m.n_looks && m.oversample == 1;

    if (p.first_dwell + dwell >= p.job->n_dwells)
        return; /* the whole block */
    pnr_fused_fill_table<M>(table);
    __syncthreads();

    const pnr_fused_thread<M, !IS_SHARED> thread(table, buffer, (int)u);

    for (uint32_t item = 0; item < n_items; item += step) {
        const uint32_t mine = first + item + (IS_SHARED ? group : 0);
        const bool is_there = mine < first + n_items && row < m.n_rows;
        const uint32_t number = is_there ? mine : first;
        const float4 *spectrum = p.spectra + (size_t)number * (window::L / 2);
        float2 v[32];

        if (!IS_SHARED || item == 0) {
#pragma unroll
            for (int j = 0; j < 32; j++)
                v[j] = sample_at(m, base, line.shift * p.bin_turns, u + window::THREADS * j);
        }
        if constexpr (!IS_SHARED) {
            thread.correlate(v, spectrum, [] {});
        } else {
            if (item == 0) {
                thread.first_pass(v);
                thread.finish_forward(v);
                if (group == 0)
#pragma unroll
                    for (int j = 0; j < 16; j++)
                        kept[j * window::THREADS] =
                            make_float4(v[2 * j].x, v[2 * j].y, v[2 * j + 1].x, v[2 * j + 1].y);
                __syncthreads(); /* all groups */
            }
#pragma unroll
            for (int j = 0; j < 16; j++) {
                const float4 z = kept[j * window::THREADS];

                v[2 * j] = make_float2(z.x, z.y);
                v[2 * j + 1] = make_float2(z.z, z.w);
            }
            thread.multiply(v, spectrum);
            pnr_fused_sync<M, false>(); /* nobody reads any more what the line before has left */
            thread.inverse(v);
        }

        const map_line own = {dwell, number / m.oversample, row, number % m.oversample, is_there};
        float sum, most;

        keep_line(m, p, own, v, u, window::THREADS, &sum, &most);
        if (is_last)
            sum_line<window::THREADS / 32>(m, p, own, sum, most, sums, greatest, u,
                                           [] { pnr_fused_sync<M, !IS_SHARED>(); });
    }
}

/* --- the launcher --- */

typedef void (*lines_kernel)(pnr_map, pnr_map_lines);

typedef struct instance {
    size_t n_points;
    bool is_shared;
    lines_kernel kernel;
    unsigned n_groups, n_threads;
    int n_bytes;
} instance;

template <int M, bool IS_SHARED> static instance make()
{
    typedef lines_size<M, IS_SHARED> size;

    return {(size_t)size::window::L, IS_SHARED,     correlate_lines<M, IS_SHARED>,
            (unsigned)size::GROUPS,  size::THREADS, size::BYTES};
}

size_t pnr_map_lines_groups(size_t n_points)
{
    return 16 * 1024 / n_points;
}

/* Sharing a row is worth it where its codes keep half of the groups busy; a window in a warp shares
 * nothing. */
static const instance *find(const pnr_map *m, size_t n_points)
{
    static const instance table[] = {
        make<2, true>(),  make<4, true>(),  make<8, true>(),  make<1, false>(),
        make<2, false>(), make<4, false>(), make<8, false>(),
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

size_t pnr_map_lines_bytes(const pnr_map *m, size_t n_points)
{
    return (size_t)find(m, n_points)->n_bytes + 512; /* and what is static */
}

int pnr_map_lines_prepare(const pnr_map *m, size_t n_points, pnr_error *error)
{
    const instance *i = find(m, n_points);

    return pnr_cuda_check(cudaFuncSetAttribute((const void *)i->kernel,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               i->n_bytes),
                          "shared memory", error);
}

int pnr_map_correlate(const pnr_map *m, const pnr_map_lines *lines, size_t n_points,
                      size_t n_dwells, cudaStream_t stream, pnr_error *error)
{
    const instance *i = find(m, n_points);
    const uint32_t n_parts = (m->n_codes + lines->part_codes - 1) / lines->part_codes;
    const dim3 grid(i->is_shared ? m->n_rows * n_parts
                                 : (m->n_rows + i->n_groups - 1) / i->n_groups,
                    (unsigned)n_dwells);

    assert(i != NULL && n_dwells >= 1 && n_dwells <= 65535);
    i->kernel<<<grid, i->n_threads, (size_t)i->n_bytes, stream>>>(*m, *lines);
    return pnr_cuda_check_launch("correlate_lines", error);
}
