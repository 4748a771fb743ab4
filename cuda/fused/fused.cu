/* SPDX-License-Identifier: MIT */
/* Method fused, the plain kernel, for dwells of one window that is as long as the transform. */
#include "cuda/fused/fused.h"

#include "cuda/fused/format.h"
#include "cuda/fused/search.h"

#include <cuda_pipeline.h>

/* Returns the greatest of three floats >= 0. Their bits, as integers, have the same order. */
static __device__ __forceinline__ float greatest_of(float a, float b, float c)
{
    return __uint_as_float(
        __vimax3_u32(__float_as_uint(a), __float_as_uint(b), __float_as_uint(c)));
}

/* Returns sum |x|^2 of the values of a thread. *greatest: the greatest of eight parts of the sum.
 * The test for clipped values uses this part, because the whole sum reaches the power of a clipped
 * value more often. */
static __device__ __forceinline__ float energy_of(const float2 (&v)[32], float *greatest)
{
    float part[8] = {};

#pragma unroll
    for (int j = 0; j < 32; j++) {
        part[j % 4] = fmaf(v[j].x, v[j].x, part[j % 4]);
        part[j % 4 + 4] = fmaf(v[j].y, v[j].y, part[j % 4 + 4]);
    }
    *greatest = 0;
#pragma unroll
    for (int i = 0; i < 8; i += 2)
        *greatest = greatest_of(*greatest, part[i], part[i + 1]);
    return ((part[0] + part[1]) + (part[2] + part[3])) +
           ((part[4] + part[5]) + (part[6] + part[7]));
}

/* Returns the sum of the powers of the values of a thread. *best: the greatest power. */
static __device__ __forceinline__ float sum_powers(const float2 (&v)[32], float *best)
{
    float sum = 0;

    *best = 0;
#pragma unroll
    for (int j = 0; j < 32; j += 4) {
        const float a = pnr_fused_power(v[j]), b = pnr_fused_power(v[j + 1]);
        const float c = pnr_fused_power(v[j + 2]), d = pnr_fused_power(v[j + 3]);

        sum += (a + b) + (c + d);
        *best = greatest_of(greatest_of(*best, a, b), c, d);
    }
    return sum;
}

/* Returns the energy of the values of a thread and sets non-finite values to 0. *odd: the number of
 * clipped values in the lower 16 bits, of non-finite values in the upper 16. Clipped values are
 * counted only if a part of the energy reaches the power of a clipped value. This is so in few
 * windows. */
template <int T, class FORMAT>
static __device__ __forceinline__ float
measure_values(float2 (&v)[32], const typename FORMAT::word (&raw)[32],
               const typename FORMAT::word *in, uint32_t *odd)
{
    /* the greatest integer of half a word: a clipped sample has |x| >= END */
    constexpr float END = (float)((1u << (4 * sizeof(typename FORMAT::word) - 1)) - 1);
    float greatest, energy = energy_of(v, &greatest);

    *odd = 0;
    if constexpr (!FORMAT::IS_FLOAT) {
        if (greatest >= END * END && FORMAT::may_clip(raw, v))
#pragma unroll 1
            for (int j = 0; j < 32; j++)
                *odd += FORMAT::is_clipped(in[T * j]);
    } else if (!isfinite(energy)) {
#pragma unroll
        for (int j = 0; j < 32; j++)
            if (!isfinite(v[j].x) || !isfinite(v[j].y)) {
                v[j] = make_float2(0.0f, 0.0f);
                *odd += 1u << 16;
            }
        energy = energy_of(v, &greatest);
    }
    return energy;
}

/* Starts to load 32 words of a window into the L2 cache. */
template <class WORD>
static __device__ __forceinline__ void prefetch_words(const WORD *window, int u)
{
    constexpr int LINE = 128 / sizeof(WORD);

#pragma unroll
    for (int i = 0; i < 32; i += LINE)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(window + 32 * u + i));
}

/* Writes the values or powers at a thread's lags to the profile, or zeros for a window that is not
 * used. */
template <int M>
static __device__ __forceinline__ void return_profile(const pnr_cuda_fused &p, const float2 *column,
                                                      uint32_t window, uint32_t u, bool is_used)
{
    typedef pnr_fused_size<M> size;

#pragma unroll 1
    for (uint32_t j = 0; j < 32; j++) {
        const size_t at = (size_t)window * size::L + u + size::THREADS * j;
        const float2 c = is_used ? column[j * size::ROW] : make_float2(0.0f, 0.0f);

        if (p.profile != NULL)
            p.profile[at] = make_float2(c.y, c.x);
        else
            p.power[at] = pnr_fused_power(c);
    }
}

/* Shared memory of a block: the table, the spectrum (only if M = 1), and for each window the state
 * of its search and its values. */
template <int M> struct plain_size : pnr_fused_size<M> {
    static constexpr int WINDOWS_AT =
        pnr_fused_size<M>::TABLE_BYTES + (M == 1 ? 1024 * (int)sizeof(float2) : 0);
};

template <int M, class FORMAT>
__global__ void __launch_bounds__(pnr_fused_size<M>::THREADS *pnr_fused_size<M>::WINDOWS,
                                  pnr_fused_size<M>::BLOCKS) correlate_windows(pnr_cuda_fused p)
{
    typedef plain_size<M> size;
    typedef typename FORMAT::word word;
    constexpr int T = size::THREADS, L = size::L;
    extern __shared__ __align__(16) unsigned char memory[];
    const int of_block = M > 1 ? 0 : __shfl_sync(0xffffffffu, threadIdx.x / T, 0);
    unsigned char *const own = memory + size::WINDOWS_AT + of_block * p.window_bytes;
    pnr_fused_search<M> &s = *(pnr_fused_search<M> *)own;
    float2 *const buffer = (float2 *)(own + sizeof s), *const table = (float2 *)memory;
    float4 *const spectrum = (float4 *)(memory + size::TABLE_BYTES); /* used with M = 1 */
    const pnr_fused_thread<M> thread(table, buffer, threadIdx.x % T);
    const pnr_fused_view<M, true> view = {buffer};
    const int u = thread.u;
    const uint32_t together = M > 1 ? 1 : blockDim.x / T, step = gridDim.x * together;
    uint32_t window = of_block * gridDim.x + blockIdx.x, n_lost = 0; /* first window of the
                                                                      * thread */
    word raw[32];

    /* For a window after the last one of the submit, this loads old samples. */
    const auto load = [&](uint32_t w) {
        const word *in = (const word *)p.conversion.samples.raw + (size_t)w * L + u;

#pragma unroll
        for (int j = 0; j < 32; j++)
            raw[j] = __ldcs(in + T * j);
        if (u < 32)
            n_lost = p.conversion.windows[w].n_lost;
    };

    /* Loads the number of windows first, since all threads wait for it. The samples arrive while
     * the table is filled. */
    const uint32_t n_windows = pnr_cuda_dwells_of(p.job, 0, p.n_dwells);

    if constexpr (M == 1)
        for (int i = threadIdx.x; i < L / 2; i += blockDim.x)
            __pipeline_memcpy_async(spectrum + i, p.spectrum + i, sizeof *spectrum);
    if (window < p.n_dwells)
        load(window);
    pnr_fused_fill_table<M>(table);
    if (u == 0) {
        s.n_windows = n_windows;
        s.odd = 0;
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();

#pragma unroll 1
    for (; window < s.n_windows; window += step) {
        const word *in = (const word *)p.conversion.samples.raw + (size_t)window * L + u;
        float2 v[32];
        uint32_t odd;

#pragma unroll
        for (int j = 0; j < 32; j++)
            v[j] = FORMAT::value(raw[j]);
        pnr_fused_note_energy(s, measure_values<T, FORMAT>(v, raw, in, &odd), u);
        if (odd != 0)
            atomicAdd(&s.odd, odd);
        if (s.n_windows - window > step)
            prefetch_words((const word *)p.conversion.samples.raw + (size_t)(window + step) * L, u);
        thread.correlate(v, M == 1 ? spectrum : p.spectrum, [&] {
            if (!pnr_fused_is_first<M>())
                return;

            const double scale = (double)p.conversion.samples.scale;
            pnr_dwell dwell = {};

            pnr_fused_count(s, p, &dwell, window, L, n_lost, scale * scale, u % 32);
            pnr_fused_begin(s, p, dwell, L, p.first_threshold, u % 32);
        });
        /* Stores the values for the search. The arithmetic before and after hides the time of the
         * stores. */
        thread.put_column(v);

        const float threshold = s.threshold;
        float best;
        const float sum = sum_powers(v, &best);
        const float2 found = pnr_fused_note_found(s, best, sum, threshold, u);

        if (p.profile != NULL || p.power != NULL)
            return_profile<M>(p, thread.column, window, u, threshold < INFINITY);
        /* The next samples arrive during the search. After its last window the thread loads the
         * same samples again: with an `if` around the load, the old samples would occupy registers
         * throughout the loop. */
        load(s.n_windows - window > step ? window + step : window);
        pnr_fused_sync<M>();
        if (pnr_fused_is_first<M>())
            pnr_fused_search_dwell(s, view, p, window, u % 32, found);
    }
}

/* --- the instances --- */

template <int M, class FORMAT> static pnr_cuda_fused_size instance()
{
    typedef plain_size<M> size;

    return {
        correlate_windows<M, FORMAT>, (uint32_t)size::L,
        (uint32_t)size::THREADS,      (uint32_t)size::WINDOWS,
        (uint32_t)size::WINDOWS_AT,   (uint32_t)(sizeof(pnr_fused_search<M>) + size::BUFFER_BYTES)};
}

const pnr_cuda_fused_size *pnr_cuda_fused_find_plain(pnr_format format, size_t n_transform)
{
    static const struct {
        pnr_format format;
        pnr_cuda_fused_size size;
    } table[] = {
#define FORMATS(m)                                                                                 \
    {PNR_FORMAT_CI8, instance<m, pnr_fused_ci8>()},                                                \
        {PNR_FORMAT_CI16, instance<m, pnr_fused_ci16>()},                                          \
        {PNR_FORMAT_CF32, instance<m, pnr_fused_cf32>()}
        FORMATS(1), FORMATS(2), FORMATS(4), FORMATS(8), FORMATS(16),
#undef FORMATS
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].format == format && table[i].size.n_transform == n_transform)
            return &table[i].size;
    return NULL;
}

size_t pnr_cuda_fused_place(size_t n_transform, size_t k)
{
    const size_t m = n_transform / 1024, n_threads = 32 * m;
    const size_t u = k % 32 * m + k / 32 % m, k3 = k / n_threads;

    return (k3 / 2 * n_threads + u) * 2 + k3 % 2;
}
