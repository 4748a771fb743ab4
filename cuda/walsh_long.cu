/* SPDX-License-Identifier: MIT */
/* Method walsh above degree 13: rows with the gather, columns with the powers, and the search. */
#include "check.h"
#include "walsh.h"
#include "walsh_search.h"
#include "walsh_transform.h"

#include <cassert>

enum { THREADS = PNR_WALSH_TILE / PNR_WALSH_EACH };
static const size_t TILE_BYTES = (PNR_WALSH_TILE + PNR_WALSH_TILE / 32) * sizeof(float2);

/* Kernels are launched for as many windows as a submit may have. */
static __device__ __forceinline__ bool is_there(const pnr_cuda_walsh &p, size_t window)
{
    return p.first_window + window < p.job->n_dwells;
}

/* --- rows --- */

template <typename T, int BITS> struct row_size {
    static constexpr uint32_t POINTS = 1u << BITS;
    static constexpr uint32_t THREADS = POINTS / PNR_WALSH_EACH;
    static constexpr size_t BYTES = (POINTS + POINTS / 32) * sizeof(float2);
};

/* One block a row: states m = row << BITS | 0 .. 2^BITS - 1; what is measured goes to parts. */
template <typename T, int BITS>
__global__ void __launch_bounds__(row_size<T, BITS>::THREADS)
    walsh_rows(pnr_cuda_walsh p, uint32_t first_window)
{
    typedef row_size<T, BITS> size;
    extern __shared__ uint4 shared[];
    __shared__ double energy_of_warp[size::THREADS / 32];
    __shared__ uint32_t odd_of_warp[size::THREADS / 32];
    float2 *values = (float2 *)shared;
    const size_t window = first_window + blockIdx.y;
    const uint32_t n = (1u << p.degree) - 1, t = threadIdx.x;
    const pnr_cuda_pair<T> *x = (const pnr_cuda_pair<T> *)p.raw + window * n;
    const uint4 *table = (const uint4 *)p.place + ((size_t)blockIdx.x << (BITS - 2)) + t;
    const bool has_zero = blockIdx.x == 0 && t == 0; /* state 0 has no sample */
    pnr_cuda_pair<T> samples[PNR_WALSH_EACH];
    pnr_walsh_measure<T> measure;
    float2 v[PNR_WALSH_EACH];
    uint32_t odd = 0;

    if (!is_there(p, window))
        return; /* the whole block */
#pragma unroll
    for (uint32_t q = 0; q < PNR_WALSH_EACH / 4; q++) {
        const uint4 four = __ldg(table + q * size::THREADS);

        samples[4 * q] = x[four.x];
        samples[4 * q + 1] = x[four.y];
        samples[4 * q + 2] = x[four.z];
        samples[4 * q + 3] = x[four.w];
    }
    if (has_zero)
        samples[0] = {};
#pragma unroll
    for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
        v[r] = measure.take(samples[r]);
    if (measure.is_odd()) {
#pragma unroll
        for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
            odd += pnr_walsh_measure<T>::odd(samples[r]);
    }
    pnr_walsh_transform<BITS>(values, v);

    float2 *out = p.rows + ((window << p.degree) | ((size_t)blockIdx.x << BITS)) + t;

#pragma unroll
    for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
        out[r * size::THREADS] = v[r];

    const double energy = pnr_walsh_sum<size::THREADS>((double)measure.energy, energy_of_warp);

    odd = pnr_walsh_sum<size::THREADS>(odd, odd_of_warp);
    if (t == 0)
        p.parts[(window << (p.degree - BITS)) + blockIdx.x] = {energy, odd & 0xffff, odd >> 16};
}

/* --- columns --- */

/* A tile: all 2^ROWS rows of 2^(13 - ROWS) columns, value e = row << (13 - ROWS) | column. */
template <int ROWS> struct tile_size {
    static constexpr int COLUMN_BITS = PNR_WALSH_TILE_BITS - ROWS;
    static constexpr int SHIFT = ROWS > 5 ? 3 : 8; /* the layout at the end */
};

/* W of one tile in the layout tile_size::SHIFT. Free shared memory: a barrier before. */
template <int ROWS>
static __device__ __forceinline__ void transform_tile(const pnr_cuda_walsh &p, size_t window,
                                                      uint32_t tile, float2 *shared,
                                                      float2 (&v)[PNR_WALSH_EACH])
{
    constexpr int COLUMN_BITS = tile_size<ROWS>::COLUMN_BITS;
    const float2 *in = p.rows + (window << p.degree) + ((size_t)tile << COLUMN_BITS);

#pragma unroll
    for (uint32_t r = 0; r < PNR_WALSH_EACH; r++) {
        const uint32_t e = r * THREADS + threadIdx.x;

        v[r] = in[((size_t)(e >> COLUMN_BITS) << p.row_bits) + (e & ((1u << COLUMN_BITS) - 1))];
    }
    pnr_walsh_butterflies<(ROWS < 5 ? 5 - ROWS : 0), 5>(v);
    if constexpr (ROWS > 5) {
        pnr_walsh_exchange<8, 3>(shared, v);
        pnr_walsh_butterflies<10 - ROWS, 5>(v);
    }
}

/* The cell u of the thread's value r. */
template <int ROWS>
static __device__ __forceinline__ uint32_t cell_of_value(const pnr_cuda_walsh &p, uint32_t tile,
                                                         uint32_t r)
{
    constexpr int COLUMN_BITS = tile_size<ROWS>::COLUMN_BITS, SHIFT = tile_size<ROWS>::SHIFT;
    const uint32_t e = pnr_walsh_first<SHIFT>() + (r << SHIFT);

    return (e >> COLUMN_BITS << p.row_bits) | tile << COLUMN_BITS | (e & ((1u << COLUMN_BITS) - 1));
}

/* One block a tile: the sum and the greatest of its powers; no profile is written, but if wanted.
 */
template <int ROWS>
__global__ void __launch_bounds__(THREADS, 2) walsh_columns(pnr_cuda_walsh p, uint32_t first_window)
{
    extern __shared__ uint4 shared[];
    __shared__ double noise_of_warp[THREADS / 32];
    __shared__ uint32_t top_of_block;
    const size_t window = first_window + blockIdx.y;
    const uint32_t tile = blockIdx.x;
    float2 v[PNR_WALSH_EACH];
    float top = 0, sum = 0;

    if (!is_there(p, window))
        return; /* the whole block */
    if (threadIdx.x == 0)
        top_of_block = 0;
    transform_tile<ROWS>(p, window, tile, (float2 *)shared, v);
    if (p.cells != NULL) {
#pragma unroll
        for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
            p.cells[(window << p.degree) + cell_of_value<ROWS>(p, tile, r)] = v[r];
    }
    /* The greatest power is added last and in double: it may be a strong echo's. */
#pragma unroll
    for (uint32_t r = 0; r < PNR_WALSH_EACH; r++) {
        const bool is_lag = r != 0 || tile != 0 || threadIdx.x != 0; /* W[0] is none */
        const float power = is_lag ? pnr_walsh_power(v[r]) : 0.0f;

        sum += fminf(power, top);
        top = fmaxf(power, top);
    }

    const double noise = pnr_walsh_sum<THREADS>((double)sum + (double)top, noise_of_warp);

    for (int other = 16; other > 0; other /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
    if (threadIdx.x % 32 == 0) /* positive floats order as their bits do */
        atomicMax(&top_of_block, __float_as_uint(top));
    __syncthreads();
    if (threadIdx.x == 0) {
        p.noise[window * gridDim.x + tile] = noise;
        p.top[window * gridDim.x + tile] = __uint_as_float(top_of_block);
    }
}

/* The profile in lag order. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    walsh_profiles(pnr_cuda_walsh p, uint32_t first_window)
{
    const size_t window = first_window + blockIdx.y;
    const uint32_t n = (1u << p.degree) - 1;

    if (!is_there(p, window))
        return; /* the whole block */

    const bool is_used = p.dwells[window].n_periods > 0;

    for (uint32_t k = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x; k < n;
         k += gridDim.x * PNR_CUDA_THREADS) {
        const size_t at = window * n + k;
        float2 c = {0, 0};

        if (is_used)
            c = p.cells[(window << p.degree) + __ldg((const uint32_t *)p.cell_of + k)];
        if (p.profile != NULL)
            p.profile[at] = make_float2(p.scale * c.x, p.conjugate * p.scale * c.y);
        if (p.power != NULL)
            p.power[at] = p.scale * p.scale * pnr_walsh_power(c);
    }
}

/* --- the search --- */

/* A block's shared memory beside the tile. */
struct searcher {
    pnr_walsh_window window;
    float2 values[PNR_MAX_CANDIDATES * PNR_NEIGHBOURS]; /* of the kept keys */
    double energy[PNR_CUDA_WARPS], noise[PNR_CUDA_WARPS];
    uint32_t odd[PNR_CUDA_WARPS];
    uint32_t hot[1 << (PNR_WALSH_MAX_DEGREE - PNR_WALSH_TILE_BITS - 5)]; /* bits: tiles above */
};

/* Sums of the window's parts, in their order, and the first threshold. */
static __device__ void begin_search(searcher &s, const pnr_cuda_walsh &p, size_t window,
                                    uint32_t n_tiles)
{
    const uint32_t n_rows = 1u << (p.degree - p.row_bits), n = (1u << p.degree) - 1;
    double energy = 0, noise = 0;
    uint32_t n_clipped = 0, n_nonfinite = 0;

    for (uint32_t i = threadIdx.x; i < n_rows; i += THREADS) {
        const pnr_cuda_energy part = p.parts[window * n_rows + i];

        energy += part.energy;
        n_clipped += part.n_clipped;
        n_nonfinite += part.n_nonfinite;
    }
    for (uint32_t i = threadIdx.x; i < n_tiles; i += THREADS)
        noise += p.noise[window * n_tiles + i];
    energy = pnr_walsh_sum<THREADS>(energy, s.energy);
    noise = pnr_walsh_sum<THREADS>(noise, s.noise);
    n_clipped = pnr_walsh_sum<THREADS>(n_clipped, s.odd);
    n_nonfinite = pnr_walsh_sum<THREADS>(n_nonfinite, s.odd);
    if (threadIdx.x == 0) {
        pnr_walsh_begin(s.window, p, n, p.windows[window].n_lost, energy, noise, n_clipped,
                        n_nonfinite);
        p.nonfinite[window] = n_nonfinite;
    }
    __syncthreads();
}

/* Every cell above of the tiles that have one: its power by lag, and the lag in the list. All
 * threads; ends with a barrier. */
template <int ROWS>
static __device__ void list_above(searcher &s, const pnr_cuda_walsh &p, size_t window,
                                  uint32_t n_tiles, float2 *shared)
{
    const uint32_t n = (1u << p.degree) - 1;
    const float threshold = s.window.threshold;
    const size_t base = window << p.degree;
    float2 v[PNR_WALSH_EACH];

    for (uint32_t first = threadIdx.x & ~31u; first < n_tiles; first += THREADS) {
        const uint32_t tile = first + threadIdx.x % 32;
        const uint32_t hot = __ballot_sync(
            0xffffffffu, tile < n_tiles && p.top[window * n_tiles + tile] > threshold);

        if (threadIdx.x % 32 == 0)
            s.hot[first / 32] = hot;
    }
    __syncthreads();
    for (uint32_t tile = 0; tile < n_tiles; tile++) {
        if (s.hot[tile / 32] == 0) {
            tile |= 31;
            continue;
        }
        if ((s.hot[tile / 32] >> tile % 32 & 1) == 0)
            continue;
        transform_tile<ROWS>(p, window, tile, shared, v);
#pragma unroll
        for (uint32_t r = 0; r < PNR_WALSH_EACH; r++) {
            const float power = pnr_walsh_power(v[r]);
            const uint32_t u = cell_of_value<ROWS>(p, tile, r);

            if (u != 0 && power > threshold) {
                const uint32_t lag = ((const uint32_t *)p.lag_of)[u];

                p.above[base + lag] = power;
                p.listed[base + atomicAdd(&s.window.n_listed, 1u)] = lag;
                if (pnr_walsh_is_in_gate(p, n, lag))
                    atomicAdd(&s.window.n_above, 1u);
            }
        }
        __syncthreads();
    }
    __syncthreads();
}

/* Local maxima among the listed: a lag that is not above is less than one that is. All threads;
 * ends with a barrier, and with all of p.above 0 again. */
static __device__ void list_maxima(searcher &s, const pnr_cuda_walsh &p, size_t window)
{
    const uint32_t n = (1u << p.degree) - 1, n_listed = s.window.n_listed;
    const size_t base = window << p.degree;
    float *above = p.above + base;

    for (uint32_t i = threadIdx.x; i < n_listed; i += THREADS) {
        const uint32_t lag = p.listed[base + i];
        const float here = above[lag];

        if (pnr_walsh_is_in_gate(p, n, lag) && here > above[lag == 0 ? n - 1 : lag - 1] &&
            here >= above[lag + 1 == n ? 0 : lag + 1])
            p.keys[base / 2 + atomicAdd(&s.window.n_keys, 1u)] = pnr_walsh_key(here, lag);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n_listed; i += THREADS)
        above[p.listed[base + i]] = 0;
}

/* W at the kept lags' neighbours: a signed sum over the column each, one warp each. */
template <int ROWS>
static __device__ void sum_neighbours(searcher &s, const pnr_cuda_walsh &p, size_t window,
                                      const uint64_t *kept)
{
    const uint32_t n = (1u << p.degree) - 1, lane = threadIdx.x % 32;
    const float2 *rows = p.rows + (window << p.degree);

    for (uint32_t e = threadIdx.x / 32; e < s.window.n_kept * PNR_NEIGHBOURS; e += THREADS / 32) {
        const uint32_t lag =
            pnr_walsh_neighbour(n, pnr_walsh_lag(kept[e / PNR_NEIGHBOURS]), e % PNR_NEIGHBOURS);
        const uint32_t u = ((const uint32_t *)p.cell_of)[lag];
        const uint32_t u_row = u >> p.row_bits, column = u & ((1u << p.row_bits) - 1);
        float2 sum = {0, 0};

#pragma unroll 4
        for (uint32_t row = lane; row < 1u << ROWS; row += 32) {
            const float2 x = rows[((size_t)row << p.row_bits) + column];
            const float sign = __popc(row & u_row) & 1 ? -1.0f : 1.0f;

            sum.x = fmaf(sign, x.x, sum.x);
            sum.y = fmaf(sign, x.y, sum.y);
        }
        sum.x = pnr_cuda_warp_sum(sum.x);
        sum.y = pnr_cuda_warp_sum(sum.y);
        if (lane == 0)
            s.values[e] = sum;
    }
}

/* One block a window. */
template <int ROWS>
__global__ void __launch_bounds__(THREADS, 2) walsh_search(pnr_cuda_walsh p, uint32_t n_tiles)
{
    extern __shared__ uint4 shared[];
    __shared__ searcher s;
    const uint32_t n = (1u << p.degree) - 1;
    const size_t window = blockIdx.x;
    uint64_t *keys = p.keys + (window << p.degree) / 2;

    if (!is_there(p, window))
        return; /* the whole block */
    begin_search(s, p, window, n_tiles);
    for (int search = 0; search < PNR_MAX_SEARCHES; search++) {
        list_above<ROWS>(s, p, window, n_tiles, (float2 *)shared);
        list_maxima(s, p, window);
        __syncthreads();
        if (threadIdx.x < 32) {
            const uint32_t n_kept = pnr_walsh_select(keys, s.window.n_keys, p.max_candidates);

            if (threadIdx.x == 0)
                s.window.n_kept = n_kept;
        }
        __syncthreads();
        sum_neighbours<ROWS>(s, p, window, keys);
        __syncthreads();
        if (threadIdx.x < 32)
            pnr_walsh_decide(
                s.window, p, n, keys, (uint32_t)window, search,
                [&](uint32_t i, uint32_t j) { return s.values[i * PNR_NEIGHBOURS + j]; });
        __syncthreads();
        if (s.window.is_done)
            break;
    }
    if (threadIdx.x == 0)
        pnr_walsh_scale(s.window, p);
    __syncthreads();
    if (threadIdx.x < PNR_WALSH_DWELL_WORDS)
        ((uint32_t *)(p.dwells + window))[threadIdx.x] =
            ((const uint32_t *)&s.window.sums)[threadIdx.x];
}

/* --- the launcher --- */

typedef void (*long_kernel)(pnr_cuda_walsh, uint32_t);

static const struct {
    pnr_format format;
    uint32_t row_bits;
    long_kernel kernel;
    size_t bytes;
} row_kernels[] = {
#define ROW(format, type, bits) {format, bits, walsh_rows<type, bits>, row_size<type, bits>::BYTES},
    ROW(PNR_FORMAT_CI8, int8_t, 11) ROW(PNR_FORMAT_CI16, int16_t, 11)
        ROW(PNR_FORMAT_CF32, float, 11) ROW(PNR_FORMAT_CI8, int8_t, 12)
            ROW(PNR_FORMAT_CI16, int16_t, 12) ROW(PNR_FORMAT_CF32, float, 12)
#undef ROW
};
static const size_t N_ROW_KERNELS = sizeof row_kernels / sizeof *row_kernels;

/* By log2 of the number of rows, from 3. */
enum { FIRST_ROWS = 3, LAST_ROWS = 10 };
static const struct {
    long_kernel columns, search;
} column_kernels[] = {
    {walsh_columns<3>, walsh_search<3>}, {walsh_columns<4>, walsh_search<4>},
    {walsh_columns<5>, walsh_search<5>}, {walsh_columns<6>, walsh_search<6>},
    {walsh_columns<7>, walsh_search<7>}, {walsh_columns<8>, walsh_search<8>},
    {walsh_columns<9>, walsh_search<9>}, {walsh_columns<10>, walsh_search<10>},
};

size_t pnr_cuda_walsh_long_bytes(void)
{
    return TILE_BYTES + sizeof(searcher);
}

static int allow(long_kernel kernel, size_t bytes, pnr_error *error)
{
    return pnr_cuda_check(cudaFuncSetAttribute((const void *)kernel,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               (int)bytes),
                          "shared memory", error);
}

int pnr_cuda_walsh_long_open(pnr_error *error)
{
    int code = PNR_OK;

    for (size_t i = 0; code == PNR_OK && i < N_ROW_KERNELS; i++)
        code = allow(row_kernels[i].kernel, row_kernels[i].bytes, error);
    for (size_t i = 0; code == PNR_OK && i <= LAST_ROWS - FIRST_ROWS; i++)
        if ((code = allow(column_kernels[i].columns, TILE_BYTES, error)) == PNR_OK)
            code = allow(column_kernels[i].search, TILE_BYTES, error);
    return code;
}

/* Rows and columns of all windows, the groups by turns on both streams. */
static int transform_groups(const pnr_cuda_walsh *walsh, pnr_format format, uint32_t n_group,
                            const pnr_cuda_walsh_streams *streams, pnr_error *error)
{
    const uint32_t rows = walsh->degree - walsh->row_bits;
    const long_kernel columns = column_kernels[rows - FIRST_ROWS].columns;
    bool is_side = false;
    size_t own = 0;

    while (own < N_ROW_KERNELS &&
           (row_kernels[own].format != format || row_kernels[own].row_bits != walsh->row_bits))
        own++;
    assert(own < N_ROW_KERNELS);
    for (uint32_t first = 0; first < walsh->n_windows; first += n_group) {
        const uint32_t left = walsh->n_windows - first;
        const uint32_t count = left < n_group ? left : n_group;
        const cudaStream_t stream = is_side ? streams->side : streams->main;
        int code;

        row_kernels[own]
            .kernel<<<dim3(1u << rows, count), (1u << walsh->row_bits) / PNR_WALSH_EACH,
                      row_kernels[own].bytes, stream>>>(*walsh, first);
        if ((code = pnr_cuda_check_launch("walsh_rows", error)) != PNR_OK)
            return code;
        columns<<<dim3(pnr_cuda_walsh_tiles(walsh->degree), count), THREADS, TILE_BYTES, stream>>>(
            *walsh, first);
        if ((code = pnr_cuda_check_launch("walsh_columns", error)) != PNR_OK)
            return code;
        is_side = !is_side;
    }
    return PNR_OK;
}

/* The side stream begins after all that is in the main one, which then waits for it. */
static int fork_and_join(const pnr_cuda_walsh *walsh, pnr_format format, uint32_t n_group,
                         const pnr_cuda_walsh_streams *streams, pnr_error *error)
{
    int code;

    if (n_group >= walsh->n_windows)
        return transform_groups(walsh, format, n_group, streams, error);
    if ((code = pnr_cuda_check(cudaEventRecord(streams->fork, streams->main), "fork", error)) !=
            PNR_OK ||
        (code = pnr_cuda_check(cudaStreamWaitEvent(streams->side, streams->fork, 0), "fork",
                               error)) != PNR_OK)
        return code;
    if ((code = transform_groups(walsh, format, n_group, streams, error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaEventRecord(streams->join, streams->side), "join", error)) !=
            PNR_OK ||
        (code = pnr_cuda_check(cudaStreamWaitEvent(streams->main, streams->join, 0), "join",
                               error)) != PNR_OK)
        (void)cudaStreamSynchronize(streams->side); /* nothing may outlive this call */
    return code;
}

int pnr_cuda_walsh_long(const pnr_cuda_walsh *walsh, pnr_format format, uint32_t n_group,
                        const pnr_cuda_walsh_streams *streams, pnr_error *error)
{
    const uint32_t rows = walsh->degree - walsh->row_bits;
    const uint32_t n_tiles = pnr_cuda_walsh_tiles(walsh->degree);
    int code;

    assert(rows >= FIRST_ROWS && rows <= LAST_ROWS && n_group >= 1 && n_group <= 65535);
    if ((code = fork_and_join(walsh, format, n_group, streams, error)) != PNR_OK)
        return code;
    column_kernels[rows - FIRST_ROWS]
        .search<<<walsh->n_windows, THREADS, TILE_BYTES, streams->main>>>(*walsh, n_tiles);
    if ((code = pnr_cuda_check_launch("walsh_search", error)) != PNR_OK || walsh->cells == NULL)
        return code;
    for (uint32_t first = 0; code == PNR_OK && first < walsh->n_windows; first += n_group) {
        const uint32_t left = walsh->n_windows - first;

        walsh_profiles<<<dim3(n_tiles, left < n_group ? left : n_group), PNR_CUDA_THREADS, 0,
                         streams->main>>>(*walsh, first);
        code = pnr_cuda_check_launch("walsh_profiles", error);
    }
    return code;
}
