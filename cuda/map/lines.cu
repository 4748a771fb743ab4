/* SPDX-License-Identifier: MIT */
/* Computes the lines of a map with transforms of 1024 to 8192 points. A block transforms a row,
 * multiplies it by the spectrum of each code, and transforms the products back. It writes the
 * values and powers of each line and, without half lags, the sum and the greatest of the powers. If
 * a dwell is one line, the same kernel can search the line instead. */
#include "cuda/fused/window.h"
#include "cuda/map/fused.h"
#include "cuda/map/small.h"

#include "cuda/base/mix.h"
#include "cuda/base/reduce.h"
#include "cuda/base/resources.h"

#include <cassert>

enum { MIN_SAMPLES = 128, MIN_POINTS = 1024, MAX_POINTS = 8192 };

/*
 * A block has GROUPS groups of threads, each with its own window in shared memory. With many codes
 * (OF_CODES) all groups share one row. Shared memory holds the spectrum of this row, and each group
 * multiplies it by the spectra of different codes. With few codes (OF_ROWS) the groups compute
 * different rows, of any dwells. A group transforms its row again for each code. OF_DWELLS is
 * OF_ROWS for dwells of one line: the group also searches the line.
 */
enum lines_kind { OF_CODES, OF_ROWS, OF_DWELLS };

/* Shared memory of a group that searches a dwell. A warp has 1024 points. */
template <int M> struct __align__(16) dwell_memory
{
    union {
        /* first the window, later the correlation c at all lags */
        float2 buffer[pnr_fused_size<M>::BUFFER_BYTES / sizeof(float2)];
        struct {
            float power[pnr_fused_size<M>::L];
            pnr_map_warp_piece pieces[M];
        };
    };
    pnr_map_warp warps[M];
    pnr_map_crew crew;
    double noise;
    float greatest;
};

template <int M, lines_kind KIND> struct lines_size {
    typedef pnr_fused_size<M> window;
    static constexpr int GROUPS = KIND == OF_CODES ? 16 / M : window::WINDOWS;
    static constexpr int THREADS = GROUPS * window::THREADS;
    static constexpr int GROUP_BYTES =
        KIND == OF_DWELLS ? (int)sizeof(dwell_memory<M>) : window::BUFFER_BYTES;
    static constexpr int KEPT_BYTES = KIND == OF_CODES ? window::L * (int)sizeof(float2) : 0;
    static constexpr int BYTES = window::TABLE_BYTES + GROUPS * GROUP_BYTES + KEPT_BYTES;
};

/* --- kernels --- */

/* The line of a dwell that a thread computes, at the integer lags or the half lags above them. */
struct map_line {
    uint32_t dwell, code, row, half;
    bool is_there;
};

/* Sets v[j] to sample n = first + step * j of the input of a row's transform. The input is a window
 * or a base, extended periodically or by zeros. read(i) returns sample i of that window or base.
 * read() is called for every j, since a load after an `if` would wait for the previous load. */
template <int N, class READ>
static __device__ __forceinline__ void extend(const pnr_map &m, uint32_t first, uint32_t step,
                                              float2 (&v)[N], READ read)
{
    if (step * N <= m.n_window) {
#pragma unroll
        for (int j = 0; j < N; j++)
            v[j] = read(first + step * j);
        return;
    }
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

/* Multiplies v[j] by exp(-2 pi i n turns / 2^64). n is the index of this sample in the window or
 * base. */
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

/* Loads the samples of a row's transform from a window, without a base. A look is one window
 * here. */
template <int N>
static __device__ __forceinline__ void load_window(const pnr_map &m, const pnr_map_lines &p,
                                                   uint32_t dwell, const pnr_map_row &row,
                                                   uint32_t first, uint32_t step, float2 (&v)[N])
{
    const size_t look = (size_t)(p.search.first_dwell + dwell) * m.n_looks + p.look;
    const float2 w = pnr_map_weight(m, p.samples, look, row.base);
    const uint64_t turns = m.turns[row.base];

    if (p.samples.stream != NULL)
        extend(m, first, step, v, [&](uint32_t i) { return pnr_map_there(m, p.samples, look, i); });
    else
        extend(m, first, step, v,
               [&](uint32_t i) { return pnr_map_raw(m, p.samples, look, 0, i); });
    if (w.x != 1 || w.y != 0)
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

/* Starts to load the raw window of a later dwell into the L2 cache. Each lane u loads 128 bytes. */
static __device__ __forceinline__ void prefetch_window(const pnr_map &m, const pnr_map_lines &p,
                                                       uint32_t dwell, uint32_t u)
{
    const size_t look = (size_t)(p.search.first_dwell + dwell) * m.n_looks + p.look;
    const uint32_t i = u * 32; /* the lane's first sample; a sample has 4 bytes */

    if (p.bases == NULL && p.samples.stream == NULL &&
        p.search.first_dwell + dwell < p.search.job->n_dwells && i < m.n_window)
        asm volatile("prefetch.global.L2 [%0];" ::"l"((const short2 *)p.samples.raw.raw +
                                                      look * m.n_samples + i));
}

/* Writes a thread's part of a line: c to `values` (unless NULL) and |c|^2 to `power`. v[j] is c at
 * lag first + step * j, with real and imaginary part swapped. has_before: `power` has the powers of
 * earlier looks, and |c|^2 is added to them. *sum, *most: the sum and the greatest of the powers
 * that the thread writes. */
template <int N>
static __device__ __forceinline__ void
keep_line(const pnr_map &m, bool has_before, bool is_there, float2 *values, float *power,
          const float2 (&v)[N], uint32_t first, uint32_t step, float *sum, float *most)
{
    constexpr int EACH = 8; /* powers of earlier looks that are loaded together */

    *sum = *most = 0;
#pragma unroll
    for (int chunk = 0; chunk < N; chunk += EACH) {
        float before[EACH] = {};

        if (has_before)
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                const uint32_t lag = min(first + step * (chunk + k), m.n_lags - 1);

                before[k] = power[(size_t)lag * m.oversample];
            }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const float2 c = v[chunk + k];
            const uint32_t lag = first + step * (chunk + k);
            const bool is_cell = is_there && lag < m.n_lags;
            const float own = fmaf(c.y, c.y, c.x * c.x), here = has_before ? own + before[k] : own;

            if (is_cell) {
                if (values != NULL)
                    values[(size_t)lag * m.oversample] = make_float2(c.y, c.x);
                power[(size_t)lag * m.oversample] = here;
            }
            *most = fmaxf(*most, is_cell ? here : 0);
            *sum += is_cell ? here : 0;
        }
    }
}

/* Sets *noise to the sum of a line's powers and *top to the greatest power. The WARPS warps of a
 * group call this. sum, most: the sum and the greatest of a thread's powers. sums, greatest: shared
 * memory, one value for each warp of the block. wait() waits for all threads of the group. u: the
 * thread's number in the group. */
template <int WARPS, class WAIT>
static __device__ __forceinline__ void sum_line(bool is_there, float sum, float most, double *sums,
                                                float *greatest, uint32_t u, double *noise,
                                                float *top, WAIT wait)
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
    if (u != 0 || !is_there)
        return;
    for (int w = 1; w < WARPS; w++) {
        total += sums[warp + w];
        most = fmaxf(most, greatest[warp + w]);
    }
    *noise = total;
    *top = most;
}

/* Stores the values and powers of a line of one look. After the last look also stores the sum and
 * the greatest of the powers, unless the plan has half lags. */
template <int M, bool IS_ALONE>
static __device__ __forceinline__ void finish_line(const pnr_map &m, const pnr_map_lines &p,
                                                   const map_line &line, const float2 (&v)[32],
                                                   double *sums, float *greatest, uint32_t u)
{
    typedef pnr_fused_size<M> window;
    const size_t lines = (size_t)m.n_codes * m.n_rows, at = (size_t)line.code * m.n_rows + line.row;
    const size_t tile = line.dwell * lines + at;
    const size_t of_look = ((size_t)line.dwell * m.n_looks + p.look) * lines + at;
    float sum, most;

    keep_line(m, p.look > 0, line.is_there, p.search.values + of_look * m.n_cells + line.half,
              p.search.power + tile * m.n_cells + line.half, v, u, window::THREADS, &sum, &most);
    if (p.look + 1 == m.n_looks && m.oversample == 1)
        sum_line<window::THREADS / 32>(line.is_there, sum, most, sums, greatest, u,
                                       p.search.noise + tile, p.search.greatest + tile,
                                       [] { pnr_fused_sync<M, IS_ALONE>(); });
}

/* Searches a dwell of one line in shared memory. The search treats the dwell as a round of one
 * dwell. */
template <int M>
static __device__ __forceinline__ void
search_line(const pnr_map &m, const pnr_map_searcher<M> &searcher, dwell_memory<M> &own,
            const float2 (&v)[32], double *sums, float *greatest, uint32_t u)
{
    constexpr uint32_t THREADS = pnr_fused_size<M>::THREADS;
    float sum, most;

    pnr_fused_sync<M>(); /* all threads have read their columns */
    keep_line(m, false, true, NULL, own.power, v, u, THREADS, &sum, &most);
    sum_line<M>(true, sum, most, sums, greatest, u, &own.noise, &own.greatest,
                [] { pnr_fused_sync<M>(); });
    pnr_fused_sync<M>();
    searcher.sum_lines();
    searcher.search();
    if (own.crew.dwell.sums.n_candidates == 0)
        return; /* all threads of the group return */
#pragma unroll
    for (int j = 0; j < 32; j++)
        own.buffer[u + THREADS * j] = make_float2(v[j].y, v[j].x);
    pnr_fused_sync<M>();
    searcher.gather();
}

/* A kernel's shared memory: the twiddles, a window for each group, then the row's spectrum. */
template <int M, lines_kind KIND> struct lines_memory {
    typedef lines_size<M, KIND> block;
    typedef pnr_fused_size<M> window;
    float2 *table, *buffer;
    float4 *kept; /* first value of the row's spectrum that the thread stores */

    __device__ __forceinline__ lines_memory(float4 *memory, uint32_t group, uint32_t u)
        : table((float2 *)memory)
    {
        float2 *const buffers = table + window::TABLE_BYTES / sizeof(float2);

        buffer = buffers + group * (block::GROUP_BYTES / sizeof(float2));
        kept = (float4 *)(buffers + block::GROUPS * (block::GROUP_BYTES / sizeof(float2))) + u;
    }
};

/* The groups of a block correlate one row of a dwell with different codes. */
template <int M>
__global__ void __launch_bounds__(lines_size<M, OF_CODES>::THREADS, 1)
    correlate_codes(pnr_map m, pnr_map_lines p, uint32_t)
{
    typedef pnr_fused_size<M> window;
    typedef lines_size<M, OF_CODES> block;
    extern __shared__ float4 memory[];
    __shared__ double sums[block::THREADS / 32];
    __shared__ float greatest[block::THREADS / 32];
    const uint32_t group = threadIdx.x / window::THREADS, u = threadIdx.x % window::THREADS;
    const lines_memory<M, OF_CODES> own(memory, group, u);
    const uint32_t dwell = blockIdx.y, row = blockIdx.x % m.n_rows;
    const uint32_t first = blockIdx.x / m.n_rows * p.part_codes * m.oversample;
    const uint32_t n_items = min(p.part_codes * m.oversample, m.n_codes * m.oversample - first);
    float2 v[32];

    if (p.search.first_dwell + dwell >= p.search.job->n_dwells)
        return; /* the whole block returns */
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
    __syncthreads(); /* all groups need the spectrum */
    for (uint32_t item = group; item < n_items + group; item += block::GROUPS) {
        const bool is_there = item < n_items;
        const uint32_t number = is_there ? first + item : first;
        const map_line line = {dwell, number / m.oversample, row, number % m.oversample, is_there};

#pragma unroll
        for (int j = 0; j < 16; j++) {
            const float4 z = own.kept[j * window::THREADS];

            v[2 * j] = make_float2(z.x, z.y);
            v[2 * j + 1] = make_float2(z.z, z.w);
        }
        thread.multiply(v, p.spectra + (size_t)number * (window::L / 2));
        pnr_fused_sync<M, false>(); /* all threads have read the previous line */
        thread.inverse(v);
        finish_line<M, false>(m, p, line, v, sums, greatest, u);
    }
}

/* Sets the sizes that are fixed for dwells of one line. The compiler then knows them, and the
 * kernel needs fewer instructions. */
static __device__ __forceinline__ void narrow(pnr_map &m, pnr_map_lines &p)
{
    m.n_codes = m.n_rows = m.n_looks = m.oversample = m.row_tiles = p.search.n_tiles = 1;
    m.tile = m.n_cells = p.search.n_cells = m.n_lags;
    m.is_filtered = p.look = 0;
}

/* The n_rows rows of all dwells are divided among the groups. A block of several groups fills a
 * large table once, and then computes many rows. A block of one group computes one row. */
template <int M, lines_kind KIND>
__global__ void __launch_bounds__(lines_size<M, KIND>::THREADS, pnr_fused_size<M>::BLOCKS)
    correlate_rows(pnr_map m, pnr_map_lines p, uint32_t n_rows)
{
    typedef pnr_fused_size<M> window;
    typedef lines_size<M, KIND> block;
    extern __shared__ float4 memory[];
    __shared__ double sums[block::THREADS / 32];
    __shared__ float greatest[block::THREADS / 32];
    const uint32_t group = threadIdx.x / window::THREADS, u = threadIdx.x % window::THREADS;
    const lines_memory<M, KIND> own(memory, group, u);
    const uint32_t begin = blockIdx.x * block::GROUPS + group, step = gridDim.x * block::GROUPS;
    /* These values are loaded before the table is filled, so that the loads overlap that work. */
    const uint32_t n_dwells_first = p.search.job->n_dwells;
    const pnr_map_row base_first = m.rows[begin % m.n_rows];

    if (KIND == OF_DWELLS)
        narrow(m, p);
    pnr_fused_fill_table<M>(own.table);
    __syncthreads();

    const pnr_fused_thread<M, true> thread(own.table, own.buffer, (int)u);

    for (uint32_t i = begin; i < n_rows; i += step) {
        const uint32_t dwell = i / m.n_rows, row = i % m.n_rows;
        /* With OF_DWELLS, or if a group computes only one row, the values loaded above are
         * valid. */
        const bool is_first = block::GROUPS == 1 || KIND == OF_DWELLS;
        const uint32_t n_dwells = is_first ? n_dwells_first : p.search.job->n_dwells;
        const pnr_map_row base = is_first ? base_first : m.rows[row];

        if (p.search.first_dwell + dwell >= n_dwells)
            return; /* the whole group returns */
        for (uint32_t item = 0; item < m.n_codes * m.oversample; item++) {
            const map_line line = {dwell, item / m.oversample, row, item % m.oversample, true};
            dwell_memory<M> &whole = *(dwell_memory<M> *)own.buffer;
            pnr_map_search one = p.search;
            const pnr_map_searcher<M> searcher = {m,          one,          0,          u / 32,
                                                  whole.crew, whole.pieces, whole.warps};
            float2 v[32];

            if (p.bases != NULL)
                load_row(m, p, dwell, base, u, window::THREADS, v);
            else
                load_window(m, p, dwell, base, u, window::THREADS, v);
            if (M == 1 && item == 0)
                prefetch_window(m, p, (i + step) / m.n_rows, u);
            if constexpr (KIND == OF_DWELLS) {
                one.first_dwell += dwell;
                one.values = whole.buffer;
                one.power = whole.power;
                one.noise = &whole.noise;
                one.greatest = &whole.greatest;
                pnr_fused_sync<M>(); /* all threads have read the state of the previous dwell */
                searcher.load_state();
            }
            thread.correlate(v, p.spectra + (size_t)item * (window::L / 2), [] {});
            if constexpr (KIND == OF_DWELLS)
                search_line<M>(m, searcher, whole, v, sums, greatest, u);
            else
                finish_line<M, true>(m, p, line, v, sums, greatest, u);
        }
        if (block::GROUPS == 1)
            return; /* each block computes one row, because there are as many blocks as rows */
    }
}

/* --- the launcher --- */

typedef void (*lines_kernel)(pnr_map, pnr_map_lines, uint32_t);

typedef struct instance {
    size_t n_points;
    lines_kind kind;
    lines_kernel kernel;
    unsigned n_groups, n_threads;
    int n_bytes;
} instance;

template <int M, lines_kind KIND> static instance make(lines_kernel kernel)
{
    typedef lines_size<M, KIND> size;

    return {(size_t)size::window::L, KIND,          kernel,
            (unsigned)size::GROUPS,  size::THREADS, size::BYTES};
}

size_t pnr_map_lines_groups(size_t n_points)
{
    return 16 * 1024 / n_points;
}

/* Finds the kernel. Groups share a row if the row has work for more than half of the groups. Groups
 * of one warp never share a row. */
static const instance *find(const pnr_map *m, size_t n_points, bool is_whole)
{
#define CODES(m) make<m, OF_CODES>(correlate_codes<m>)
#define ROWS(m)                                                                                    \
    make<m, OF_ROWS>(correlate_rows<m, OF_ROWS>), make<m, OF_DWELLS>(correlate_rows<m, OF_DWELLS>)
    static const instance table[] = {CODES(2), CODES(4), CODES(8), ROWS(1),
                                     ROWS(2),  ROWS(4),  ROWS(8)};
#undef CODES
#undef ROWS
    const size_t n_groups = pnr_map_lines_groups(n_points);
    const bool is_shared =
        n_points > MIN_POINTS && 2 * (size_t)m->n_codes * m->oversample > n_groups;
    const lines_kind kind = is_whole ? OF_DWELLS : is_shared ? OF_CODES : OF_ROWS;

    for (const instance &i : table)
        if (i.n_points == n_points && i.kind == kind)
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
    return find(m, n_points, false)->kind == OF_ROWS;
}

size_t pnr_map_lines_bytes(const pnr_map *m, size_t n_points, bool is_whole)
{
    /* The static shared memory takes at most 512 bytes. */
    return (size_t)find(m, n_points, is_whole)->n_bytes + 512;
}

bool pnr_map_lines_is_whole(const pnr_map *m, size_t n_points, size_t block_bytes)
{
    return (size_t)m->n_codes * m->n_rows * m->n_looks * m->oversample == 1 &&
           pnr_map_lines_bytes(m, n_points, true) <= block_bytes;
}

int pnr_map_lines_prepare(const pnr_map *m, size_t n_points, bool is_whole, pnr_error *error)
{
    const instance *i = find(m, n_points, is_whole);

    return pnr_cuda_allow_shared((const void *)i->kernel, (size_t)i->n_bytes, error);
}

/* Returns how many blocks the device runs at one time, or a large number if this is unknown. */
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
                      cudaStream_t stream, pnr_error *error)
{
    const instance *i = find(m, n_points, lines->is_whole);
    const size_t n_dwells = lines->search.n_dwells;
    const size_t n_rows = m->n_rows * n_dwells;
    const size_t n_blocks = (n_rows + i->n_groups - 1) / i->n_groups;
    const uint32_t n_parts = (m->n_codes + lines->part_codes - 1) / lines->part_codes;
    dim3 grid(m->n_rows * n_parts, (unsigned)n_dwells);

    assert(i != NULL && n_dwells >= 1 && n_dwells <= 65535 && n_rows <= UINT32_MAX / 2);
    if (i->kind != OF_CODES) {
        const size_t most = i->n_groups > 1 ? resident_blocks(i) : n_blocks;

        grid = dim3((unsigned)(n_blocks < most ? n_blocks : most));
    }
    i->kernel<<<grid, i->n_threads, (size_t)i->n_bytes, stream>>>(*m, *lines, (uint32_t)n_rows);
    return pnr_cuda_check_launch("correlate_lines", error);
}
