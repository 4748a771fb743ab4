/* SPDX-License-Identifier: MIT */
/* Method walsh above degree 13, first part: sorts the samples by rows and transforms the rows. */
#include "cuda/base/resources.h"
#include "cuda/walsh/search.h"
#include "cuda/walsh/transform.h"
#include "cuda/walsh/walsh.h"

#include <cassert>

/* State m belongs to row m >> 13. A row has 2^13 states. Consecutive samples belong to states that
 * are scattered over all rows. A block that fetched the samples of a row from raw memory would use
 * only 4 of every 32 bytes that it reads from the L2 cache. So the samples are sorted first. A
 * block reads a chunk of 2^14 consecutive samples into shared memory and writes them row by row,
 * four at a time (a quad). If a row has fewer than four samples left in the chunk, zeros fill the
 * quad. In sorted memory a row is contiguous. A block loads the row to shared memory, where it can
 * read the samples in any order. The row transforms are over the low 13 bits of m. The column
 * transforms (columns.cu) are over the high bits. */

enum {
    SORT_THREADS = 512,
    SORT_EACH = PNR_WALSH_CHUNK_QUADS / SORT_THREADS, /* quads of a thread */
    ROW_THREADS = PNR_WALSH_TILE / PNR_WALSH_EACH
};
static_assert(SORT_EACH * SORT_THREADS == PNR_WALSH_CHUNK_QUADS, "threads do equal parts");
static_assert(SORT_EACH * PNR_WALSH_QUAD <= 64, "a measure holds so many samples");

static const uint32_t NO_QUAD = UINT32_MAX;

template <typename T> struct alignas(2 * PNR_WALSH_QUAD * sizeof(T)) quad {
    pnr_cuda_pair<T> x[PNR_WALSH_QUAD];
};

/* --- sorting --- */

/* Shared memory: a chunk, extended at both ends to multiples of 16 bytes, and then zeros. NO_SAMPLE
 * of tables.cu is the index of one of these zeros. */
template <typename T> struct sort_size {
    static constexpr uint32_t SAMPLES = PNR_WALSH_CHUNK * sizeof(pnr_cuda_pair<T>) + 16;
    static constexpr uint32_t ZEROS = 32 * sizeof(pnr_cuda_pair<T>);
    static constexpr uint32_t BYTES = SAMPLES + ZEROS;
};

/* One block sorts chunk number blockIdx.x of several windows, and writes the sums of these chunks
 * to p.parts. */
template <typename T>
__global__ void __launch_bounds__(SORT_THREADS, sizeof(T) == 4 ? 1 : 2) walsh_sort(pnr_cuda_walsh p)
{
    typedef sort_size<T> size;
    extern __shared__ uint4 shared[];
    __shared__ double energy_of_warp[SORT_THREADS / 32];
    __shared__ uint32_t odd_of_warp[SORT_THREADS / 32];
    char *stage = (char *)shared;
    const uint32_t t = threadIdx.x, n = (1u << p.degree) - 1;
    const uint32_t n_windows = pnr_cuda_dwells_of(p.job, p.first_dwell, p.n_dwells);
    const uint32_t start = blockIdx.x * PNR_WALSH_CHUNK;
    const uint32_t count = min((uint32_t)PNR_WALSH_CHUNK, n - start);
    uint2 source[SORT_EACH];
    uint32_t target[SORT_EACH];

#pragma unroll
    for (uint32_t e = 0; e < SORT_EACH; e++) {
        const size_t at = (size_t)blockIdx.x * PNR_WALSH_CHUNK_QUADS + e * SORT_THREADS + t;

        source[e] = __ldg((const uint2 *)p.source + at);
        target[e] = __ldg(p.target + at);
    }
    for (uint32_t i = size::SAMPLES / 4 + t; i < size::BYTES / 4; i += SORT_THREADS)
        ((uint32_t *)stage)[i] = 0;

    for (uint32_t window = blockIdx.y; window < n_windows; window += gridDim.y) {
        const size_t begin =
            ((size_t)(p.first_dwell + window) * n + start) * sizeof(pnr_cuda_pair<T>);
        const uint32_t before = (uint32_t)(begin % 16);
        const uint32_t bytes = before + count * (uint32_t)sizeof(pnr_cuda_pair<T>);
        const pnr_cuda_pair<T> *x = (const pnr_cuda_pair<T> *)(stage + before);
        quad<T> *out = (quad<T> *)p.sorted + (size_t)window * p.n_quads;
        pnr_walsh_measure<T> measure;
        uint32_t odd = 0;

        __syncthreads(); /* all threads have read the previous window */
        pnr_walsh_fetch<SORT_THREADS>(stage, (const char *)p.raw + begin - before,
                                      (bytes + 15) / 16 * 16);
        __pipeline_wait_prior(0);
        __syncthreads();
#pragma unroll
        for (uint32_t e = 0; e < SORT_EACH; e++) {
            if (target[e] == NO_QUAD)
                continue;

            const uint32_t at[PNR_WALSH_QUAD] = {source[e].x & 0xffff, source[e].x >> 16,
                                                 source[e].y & 0xffff, source[e].y >> 16};
            quad<T> four;

#pragma unroll
            for (uint32_t i = 0; i < PNR_WALSH_QUAD; i++)
                four.x[i] = measure.take(x[at[i]]);
            out[target[e]] = four;
        }

        const double energy = pnr_walsh_sum<SORT_THREADS>((double)measure.energy(), energy_of_warp);
        if (__syncthreads_or(measure.is_odd())) { /* clipped and non-finite samples are rare, so
                                                   * this second pass costs little */
            for (uint32_t i = t; i < count; i += SORT_THREADS)
                odd += pnr_walsh_measure<T>::odd(x[i]);
            odd = pnr_walsh_sum<SORT_THREADS>(odd, odd_of_warp);
        }
        if (t == 0)
            p.parts[window * gridDim.x + blockIdx.x] = {energy, odd & 0xffff, odd >> 16};
    }
}

/* --- rows --- */

template <typename T> struct row_size {
    static constexpr uint32_t VALUES = (PNR_WALSH_TILE + PNR_WALSH_TILE / 32) * sizeof(float2);
    static constexpr uint32_t BYTES = VALUES + PNR_WALSH_ROW_QUADS * sizeof(quad<T>);
};

/* Sums the parts of a window in order, and sets its first threshold. One warp calls this. */
static __device__ void sum_parts(const pnr_cuda_walsh &p, uint32_t window)
{
    const uint32_t n_chunks = 1u << (p.degree - PNR_WALSH_CHUNK_BITS), n = (1u << p.degree) - 1;
    const pnr_cuda_energy sum = pnr_cuda_sum_energies(p.parts + window * n_chunks, n_chunks);

    if (threadIdx.x == 0) {
        p.sums[window] = sum;
        p.nonfinite[window] = sum.n_nonfinite;
        p.limit[window] = pnr_walsh_threshold(
            p, pnr_walsh_is_used(n, p.windows[window].n_lost, sum.n_nonfinite), sum.energy);
    }
}

/* One block transforms row number blockIdx.x of several windows. During a transform it copies the
 * samples of the next window to shared memory. */
template <typename T>
__global__ void __launch_bounds__(ROW_THREADS, sizeof(T) == 4 ? 1 : 2) walsh_rows(pnr_cuda_walsh p)
{
    extern __shared__ uint4 shared[];
    float2 *values = (float2 *)shared;
    quad<T> *stage = (quad<T> *)((char *)shared + row_size<T>::VALUES);
    const uint32_t t = threadIdx.x;
    const uint32_t n_windows = pnr_cuda_dwells_of(p.job, p.first_dwell, p.n_dwells);
    const uint32_t first = p.first_quad[blockIdx.x], count = p.first_quad[blockIdx.x + 1] - first;
    const uint4 *table = (const uint4 *)p.place + (blockIdx.x << (PNR_WALSH_TILE_BITS - 3)) + t;
    uint4 place[PNR_WALSH_EACH / 8];
    const auto fetch = [&](uint32_t window) {
        const quad<T> *from = (const quad<T> *)p.sorted + (size_t)window * p.n_quads + first;

        pnr_walsh_fetch<ROW_THREADS, (sizeof *from < 16 ? sizeof *from : 16)>(
            stage, from, count * (uint32_t)sizeof *from);
    };

    if (blockIdx.y >= n_windows)
        return; /* the whole block returns */
    fetch(blockIdx.y);
#pragma unroll
    for (uint32_t q = 0; q < PNR_WALSH_EACH / 8; q++)
        place[q] = __ldg(table + q * ROW_THREADS);
    for (uint32_t window = blockIdx.y; window < n_windows; window += gridDim.y) {
        const pnr_cuda_pair<T> *x = (const pnr_cuda_pair<T> *)stage;
        float2 v[PNR_WALSH_EACH];

        if (blockIdx.x == 0 && t < 32)
            sum_parts(p, window);
        __pipeline_wait_prior(0);
        __syncthreads();
        pnr_walsh_gather<T>(
            x, [&](uint32_t q) { return place[q]; },
            [&](uint32_t r, pnr_cuda_pair<T> sample) {
                v[r] = make_float2((float)sample.i, (float)sample.q);
            });
        pnr_walsh_transform<PNR_WALSH_TILE_BITS>(values, v, [&] {
            if (window + gridDim.y < n_windows)
                fetch(window + gridDim.y);
        });

        float2 *out = p.rows +
                      (((size_t)window << p.degree) | ((size_t)blockIdx.x << PNR_WALSH_TILE_BITS)) +
                      t;

#pragma unroll
        for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
            out[r * ROW_THREADS] = v[r];
    }
}

/* --- the launcher --- */

static const struct {
    pnr_format format;
    pnr_cuda_walsh_kernel sort, rows;
    size_t sort_bytes, rows_bytes;
} kernels[] = {
#define ROW(format, type)                                                                          \
    {format, walsh_sort<type>, walsh_rows<type>, sort_size<type>::BYTES, row_size<type>::BYTES},
    ROW(PNR_FORMAT_CI8, int8_t) ROW(PNR_FORMAT_CI16, int16_t) ROW(PNR_FORMAT_CF32, float)
#undef ROW
};
static const size_t N_KERNELS = sizeof kernels / sizeof *kernels;

static size_t find_kernels(pnr_format format)
{
    size_t i = 0;

    while (i < N_KERNELS && kernels[i].format != format)
        i++;
    assert(i < N_KERNELS);
    return i;
}

size_t pnr_cuda_walsh_long_bytes(pnr_format format)
{
    const size_t i = find_kernels(format), own = 4096; /* greatest static shared memory */
    const size_t sort = kernels[i].sort_bytes, rows = kernels[i].rows_bytes;

    return own + (sort > rows ? sort : rows);
}

int pnr_cuda_walsh_rows_open(pnr_format format, pnr_error *error)
{
    const size_t i = find_kernels(format);
    const int code =
        pnr_cuda_allow_shared((const void *)kernels[i].sort, kernels[i].sort_bytes, error);

    return code != PNR_OK
               ? code
               : pnr_cuda_allow_shared((const void *)kernels[i].rows, kernels[i].rows_bytes, error);
}

/* Returns the grid. A block reads its tables once and computes several windows. There are enough
 * blocks for the whole device. */
static dim3 blocks_for(uint32_t n_pieces, uint32_t n_windows)
{
    const uint32_t enough = 256;
    const uint32_t n_sets = (enough + n_pieces - 1) / n_pieces;

    return dim3(n_pieces, n_sets < n_windows ? n_sets : n_windows);
}

int pnr_cuda_walsh_launch_rows(const pnr_cuda_walsh *walsh, pnr_format format, cudaStream_t stream,
                               pnr_error *error)
{
    const size_t i = find_kernels(format);
    const dim3 chunks = blocks_for(pnr_cuda_walsh_chunks(walsh->degree), walsh->n_dwells);
    const dim3 rows = blocks_for(pnr_cuda_walsh_rows(walsh->degree), walsh->n_dwells);
    int code;

    kernels[i].sort<<<chunks, SORT_THREADS, kernels[i].sort_bytes, stream>>>(*walsh);
    if ((code = pnr_cuda_check_launch("walsh_sort", error)) != PNR_OK)
        return code;
    kernels[i].rows<<<rows, ROW_THREADS, kernels[i].rows_bytes, stream>>>(*walsh);
    return pnr_cuda_check_launch("walsh_rows", error);
}
