/* SPDX-License-Identifier: MIT */
/* Method walsh above degree 13, second part: transforms columns, searches, and writes profiles. */
#include "cuda/base/resources.h"
#include "cuda/walsh/search.h"
#include "cuda/walsh/transform.h"
#include "cuda/walsh/walsh.h"

#include <cassert>

enum { THREADS = PNR_WALSH_TILE / PNR_WALSH_EACH, FEW = 64 };
static const size_t TILE_BYTES = (PNR_WALSH_TILE + PNR_WALSH_TILE / 32) * sizeof(float2);

/* True if the submit has this window. Grids are as large as the largest submit needs. */
static __device__ __forceinline__ bool is_there(const pnr_cuda_walsh &p, size_t window)
{
    return p.first_dwell + window < p.job->n_dwells;
}

/* --- columns --- */

/* A tile has all 2^ROWS rows of 2^(13 - ROWS) columns. Value e of a tile is in row e >> (13 -
 * ROWS); the low 13 - ROWS bits of e are the column. */
template <int ROWS> struct tile_size {
    static constexpr int COLUMN_BITS = PNR_WALSH_TILE_BITS - ROWS;
    static constexpr int SHIFT = ROWS > 5 ? 3 : 8; /* layout of W, see transform.h */
};

/* Computes W of one tile in the layout tile_size::SHIFT. It overwrites shared memory, so a barrier
 * must separate it from earlier reads of this memory. */
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

        v[r] = in[((size_t)(e >> COLUMN_BITS) << PNR_WALSH_TILE_BITS) +
                  (e & ((1u << COLUMN_BITS) - 1))];
    }
    pnr_walsh_butterflies<(ROWS < 5 ? 5 - ROWS : 0), 5>(v);
    if constexpr (ROWS > 5) {
        pnr_walsh_exchange<PNR_WALSH_TILE_BITS, 8, 3>(shared, v);
        pnr_walsh_butterflies<10 - ROWS, 5>(v);
    }
}

/* Returns u, the index in W of the thread's value r. */
template <int ROWS>
static __device__ __forceinline__ uint32_t cell_of_value(uint32_t tile, uint32_t r)
{
    constexpr int COLUMN_BITS = tile_size<ROWS>::COLUMN_BITS, SHIFT = tile_size<ROWS>::SHIFT;
    const uint32_t e = pnr_walsh_first<SHIFT>() + (r << SHIFT);

    return (e >> COLUMN_BITS << PNR_WALSH_TILE_BITS) | tile << COLUMN_BITS |
           (e & ((1u << COLUMN_BITS) - 1));
}

/* Finds the cells whose power is above `threshold`. Stores each power in p.above at the index of
 * the cell's lag, and appends the lag to p.listed. */
template <int ROWS>
static __device__ void list_cells(const pnr_cuda_walsh &p, size_t window, uint32_t tile,
                                  float threshold, const float2 (&v)[PNR_WALSH_EACH])
{
    const size_t base = window << p.degree;

#pragma unroll
    for (uint32_t r = 0; r < PNR_WALSH_EACH; r++) {
        const float power = pnr_walsh_power(v[r]);
        const uint32_t u = cell_of_value<ROWS>(tile, r);

        if (u != 0 && power > threshold) {
            const uint32_t lag = ((const uint32_t *)p.lag_of)[u];

            p.above[base + lag] = power;
            p.listed[base + atomicAdd(&p.n_listed[window], 1u)] = lag;
        }
    }
}

/* One block transforms one tile. It finds the sum and the greatest of the tile's powers, and lists
 * the cells above the first threshold. It writes the values only if a profile is wanted. */
template <int ROWS> __global__ void __launch_bounds__(THREADS, 2) walsh_columns(pnr_cuda_walsh p)
{
    extern __shared__ uint4 shared[];
    __shared__ double noise_of_warp[THREADS / 32];
    __shared__ uint32_t top_of_block;
    const size_t window = blockIdx.y;
    const uint32_t tile = blockIdx.x;
    float2 v[PNR_WALSH_EACH];
    float top = 0, sum = 0;

    if (!is_there(p, window))
        return; /* the whole block returns */
    if (threadIdx.x == 0)
        top_of_block = 0;

    const float threshold = p.limit[window];

    transform_tile<ROWS>(p, window, tile, (float2 *)shared, v);
    if (p.cells != NULL) {
#pragma unroll
        for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
            p.cells[(window << p.degree) + cell_of_value<ROWS>(tile, r)] = v[r];
    }
    /* The greatest power is added last, in double precision. So the power of a strong echo adds no
     * rounding error to the sum of the other powers. */
#pragma unroll
    for (uint32_t r = 0; r < PNR_WALSH_EACH; r++) {
        const bool is_lag = r != 0 || tile != 0 || threadIdx.x != 0; /* W[0] belongs to no lag */
        const float power = is_lag ? pnr_walsh_power(v[r]) : 0.0f;

        sum += fminf(power, top);
        top = fmaxf(power, top);
    }
    if (top > threshold)
        list_cells<ROWS>(p, window, tile, threshold, v);

    const double noise = pnr_walsh_sum<THREADS>((double)sum + (double)top, noise_of_warp);

    for (int other = 16; other > 0; other /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
    if (threadIdx.x % 32 == 0) /* positive floats and their bits have the same order */
        atomicMax(&top_of_block, __float_as_uint(top));
    __syncthreads();
    if (threadIdx.x == 0) {
        p.noise[window * gridDim.x + tile] = noise;
        p.top[window * gridDim.x + tile] = __uint_as_float(top_of_block);
    }
}

/* Writes the profile in lag order. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) walsh_profiles(pnr_cuda_walsh p)
{
    const size_t window = blockIdx.y;
    const uint32_t n = (1u << p.degree) - 1;

    if (!is_there(p, window))
        return; /* the whole block returns */

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

/* Shared memory of a block, in addition to the tile. */
struct searcher {
    double noise[THREADS / 32];
    uint64_t keys[PNR_WALSH_LISTED], few[FEW];
    /* index u of W for each neighbour of the kept keys */
    uint32_t cells[PNR_MAX_CANDIDATES * PNR_NEIGHBOURS];
    float2 values[PNR_MAX_CANDIDATES * PNR_NEIGHBOURS]; /* W at these neighbours */
    uint32_t hot[1 << (PNR_WALSH_MAX_DEGREE - PNR_WALSH_TILE_BITS -
                       5)]; /* a bit for each tile that has a cell above the threshold */
    uint64_t outside; /* with has_outside: the greatest key of a maximum outside of the gate; 0:
                       * there is none */
    uint32_t n_above, n_maxima, n_kept;
    float threshold;
    bool has_next;
};

/* Returns the state of a dwell before the first search. Sums p.noise over its tiles in a fixed
 * order. */
static __device__ pnr_walsh_dwell begin_search(searcher &s, const pnr_cuda_walsh &p, size_t window,
                                               uint32_t n_tiles)
{
    const uint32_t n = (1u << p.degree) - 1, n_lost = p.windows[window].n_lost;
    const pnr_cuda_energy sum = p.sums[window];
    const bool is_used = pnr_walsh_is_used(n, n_lost, sum.n_nonfinite);
    double noise = 0;

    for (uint32_t i = threadIdx.x; i < n_tiles; i += THREADS)
        noise += p.noise[window * n_tiles + i];
    noise = pnr_walsh_sum<THREADS>(noise, s.noise);
    return pnr_walsh_begin(p, n, is_used, is_used ? sum.energy : 0, is_used ? noise : 0,
                           is_used ? n - n_lost - sum.n_nonfinite : 0, sum.n_clipped,
                           sum.n_nonfinite);
}

/* Before a repeated search, lists every cell above s.threshold. All threads call this. The last
 * step is a barrier. */
template <int ROWS>
static __device__ void list_above(searcher &s, const pnr_cuda_walsh &p, size_t window,
                                  uint32_t n_tiles, float2 *shared)
{
    const float threshold = s.threshold;
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
        list_cells<ROWS>(p, window, tile, threshold, v);
        __syncthreads();
    }
    __syncthreads();
}

/* Returns the address of key i of the list. The first FEW keys, usually all, are in shared
 * memory. */
static __device__ __forceinline__ uint64_t *key_at(searcher &s, const pnr_cuda_walsh &p,
                                                   size_t window, uint32_t i)
{
    return i < FEW ? &s.few[i] : p.keys + (window << p.degree) / 2 + i;
}

/* Lists the keys of local maxima. At a lag that is not listed, p.above is 0. The true power there
 * is below all listed powers, so the comparisons give the same results. All threads call this.
 * Afterwards p.above is 0 everywhere. */
static __device__ void list_maxima(searcher &s, const pnr_cuda_walsh &p, size_t window)
{
    const uint32_t n = (1u << p.degree) - 1, n_listed = p.n_listed[window];
    const size_t base = window << p.degree;
    float *above = p.above + base;
    uint64_t outside = 0;

    for (uint32_t i = threadIdx.x; i < n_listed; i += THREADS) {
        const uint32_t lag = p.listed[base + i];
        const float here = above[lag];
        const bool is_inside = pnr_candidate_in_gate(p, n, lag);

        if (!is_inside && !p.has_outside)
            continue;
        if (is_inside)
            atomicAdd(&s.n_above, 1u);
        if (!(here > above[lag == 0 ? n - 1 : lag - 1]) ||
            !(here >= above[lag + 1 == n ? 0 : lag + 1]))
            continue;

        const uint64_t key = pnr_candidate_key(here, lag);

        if (is_inside)
            *key_at(s, p, window, atomicAdd(&s.n_maxima, 1u)) = key;
        else
            outside = max(outside, key);
    }
    pnr_candidate_raise(&s.outside, outside);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n_listed; i += THREADS)
        above[p.listed[base + i]] = 0;
    if (threadIdx.x == 0)
        p.n_listed[window] = 0;
}

/* Returns the strongest keys, sorted by lag. The first warp calls this. */
static __device__ pnr_walsh_list select_keys(searcher &s, const pnr_cuda_walsh &p, size_t window)
{
    pnr_walsh_list list = {s.keys, 0, 0};

    for (uint32_t first = 0; first < s.n_maxima; first += PNR_CUDA_WARP) {
        const uint32_t i = first + threadIdx.x;
        const bool has_key = i < s.n_maxima;

        pnr_walsh_add(list, has_key, has_key ? *key_at(s, p, window, i) : 0, pnr_candidate_most(p));
    }
    pnr_walsh_keep(list, pnr_candidate_most(p), s.outside);
    return list;
}

/* Finds the index u of W for each neighbour of the kept lags. All threads call this. */
static __device__ void find_neighbours(searcher &s, const pnr_cuda_walsh &p)
{
    const uint32_t n = (1u << p.degree) - 1;

    for (uint32_t e = threadIdx.x; e < s.n_kept * PNR_NEIGHBOURS; e += THREADS) {
        const uint64_t key = s.keys[e / PNR_NEIGHBOURS];

        s.cells[e] =
            ((const uint32_t *)
                 p.cell_of)[pnr_candidate_neighbour(n, pnr_candidate_lag(key), e % PNR_NEIGHBOURS)];
    }
}

/* Computes W at the neighbours. W at each neighbour is a signed sum over a column. Each of the 8
 * warps computes three sums at a time, so that the 17 neighbours of a candidate are loaded
 * together. */
template <int ROWS>
static __device__ void sum_neighbours(searcher &s, const pnr_cuda_walsh &p, size_t window)
{
    constexpr uint32_t WARPS = THREADS / 32, EACH = (PNR_NEIGHBOURS + WARPS - 1) / WARPS;
    const uint32_t lane = threadIdx.x % 32, n = s.n_kept * PNR_NEIGHBOURS;
    const float2 *rows = p.rows + (window << p.degree);

    for (uint32_t first = threadIdx.x / 32; first < n; first += EACH * WARPS) {
        uint32_t u[EACH];
        float2 sum[EACH] = {};

#pragma unroll
        for (uint32_t i = 0; i < EACH; i++)
            u[i] = s.cells[min(first + i * WARPS, n - 1)];
#pragma unroll 8
        for (uint32_t row = lane; row < 1u << ROWS; row += 32) {
#pragma unroll
            for (uint32_t i = 0; i < EACH; i++) {
                const float2 x = rows[((size_t)row << PNR_WALSH_TILE_BITS) + u[i] % PNR_WALSH_TILE];
                const uint32_t common = row & (u[i] >> PNR_WALSH_TILE_BITS);
                const float sign = __popc(common) & 1 ? -1.0f : 1.0f;

                sum[i].x = fmaf(sign, x.x, sum[i].x);
                sum[i].y = fmaf(sign, x.y, sum[i].y);
            }
        }
#pragma unroll
        for (uint32_t i = 0; i < EACH; i++) {
            sum[i].x = pnr_cuda_warp_sum(sum[i].x);
            sum[i].y = pnr_cuda_warp_sum(sum[i].y);
            if (lane == 0 && first + i * WARPS < n)
                s.values[first + i * WARPS] = sum[i];
        }
    }
}

/* One block searches one window, and writes its results. */
template <int ROWS> __global__ void __launch_bounds__(THREADS, 2) walsh_search(pnr_cuda_walsh p)
{
    extern __shared__ uint4 shared[];
    __shared__ searcher s;
    const uint32_t n = (1u << p.degree) - 1, n_tiles = 1u << ROWS;
    const size_t window = blockIdx.x;
    const auto value = [&](uint32_t i, uint32_t j) { return s.values[i * PNR_NEIGHBOURS + j]; };
    pnr_walsh_list list = {};

    if (!is_there(p, window))
        return; /* the whole block returns */

    pnr_walsh_dwell dwell = begin_search(s, p, window, n_tiles);

    for (int search = 0;; search++) {
        if (threadIdx.x == 0) {
            s.n_above = s.n_maxima = 0;
            s.outside = 0;
        }
        __syncthreads();
        if (search > 0)
            list_above<ROWS>(s, p, window, n_tiles, (float2 *)shared);
        list_maxima(s, p, window);
        __syncthreads();
        if (threadIdx.x < 32) {
            list = select_keys(s, p, window);
            if (threadIdx.x == 0)
                s.n_kept = list.n;
        }
        __syncthreads();
        find_neighbours(s, p);
        __syncthreads();
        sum_neighbours<ROWS>(s, p, window);
        __syncthreads();
        if (threadIdx.x < 32) {
            dwell.sums.n_maxima = s.n_maxima;

            const bool has_next =
                pnr_walsh_has_next(dwell, p, n, list, search, [&](uint32_t i, uint32_t j) {
                    return pnr_walsh_power(value(i, j));
                });

            if (search == 0)
                dwell.sums.n_above = s.n_above;
            if (threadIdx.x == 0) {
                s.has_next = has_next;
                s.threshold = dwell.threshold;
            }
        }
        __syncthreads();
        if (!s.has_next)
            break;
    }
    if (threadIdx.x < 32)
        pnr_walsh_write_candidates(p, window, list, value);
    if (threadIdx.x == 0)
        pnr_walsh_write_dwell(p, window, dwell);
}

/* --- the launcher --- */

/* Entry i has the kernels for 2^(i + 1) rows. */
static const struct {
    pnr_cuda_walsh_kernel columns, search;
} kernels[] = {
    {walsh_columns<1>, walsh_search<1>}, {walsh_columns<2>, walsh_search<2>},
    {walsh_columns<3>, walsh_search<3>}, {walsh_columns<4>, walsh_search<4>},
    {walsh_columns<5>, walsh_search<5>}, {walsh_columns<6>, walsh_search<6>},
    {walsh_columns<7>, walsh_search<7>}, {walsh_columns<8>, walsh_search<8>},
    {walsh_columns<9>, walsh_search<9>},
};

static size_t find_kernels(uint32_t degree)
{
    const size_t i = degree - PNR_WALSH_TILE_BITS - 1;

    assert(i < sizeof kernels / sizeof *kernels);
    return i;
}

int pnr_cuda_walsh_columns_open(uint32_t degree, pnr_error *error)
{
    const size_t i = find_kernels(degree);
    const int code = pnr_cuda_allow_shared((const void *)kernels[i].columns, TILE_BYTES, error);

    return code == PNR_OK
               ? pnr_cuda_allow_shared((const void *)kernels[i].search, TILE_BYTES, error)
               : code;
}

int pnr_cuda_walsh_launch_columns(const pnr_cuda_walsh *walsh, cudaStream_t stream,
                                  pnr_error *error)
{
    const size_t i = find_kernels(walsh->degree);
    const dim3 tiles(pnr_cuda_walsh_rows(walsh->degree), walsh->n_dwells);
    int code;

    kernels[i].columns<<<tiles, THREADS, TILE_BYTES, stream>>>(*walsh);
    if ((code = pnr_cuda_check_launch("walsh_columns", error)) != PNR_OK)
        return code;
    kernels[i].search<<<walsh->n_dwells, THREADS, TILE_BYTES, stream>>>(*walsh);
    if ((code = pnr_cuda_check_launch("walsh_search", error)) != PNR_OK || walsh->cells == NULL)
        return code;
    walsh_profiles<<<tiles, PNR_CUDA_THREADS, 0, stream>>>(*walsh);
    return pnr_cuda_check_launch("walsh_profiles", error);
}
