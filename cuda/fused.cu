/* SPDX-License-Identifier: MIT */
/* Method fused, one kernel: samples in, results out, a window in the registers of a warp or a
 * block.
 */
#include "fused.h"

#include "fused_search.h"
#include "fused_transform.h"
#include "sample.h"

/*
 * N = 32 * M * 32: three passes each way, of 32, M and 32 points. With n = n1 N/32 + n2 32 + n3
 * and k = k1 + 32 k2 + 32 M k3 (k1, n1, k3, n3 < 32; k2, n2 < M)
 *   nk/N = n1 k1/32 + n2 (k1 + 32 k2)/(32 M) + n3 k/N   (mod 1)
 * so that each pass sums over one index and its twiddle is a power of one base for the whole sum:
 *   A[k1][n2][n3] = sum_n1 x W_32^(n1 k1)
 *   B[k1][k2][n3] = sum_n2 A (W_32M^k1)^n2 W_M^(n2 k2)
 *   X[k]          = sum_n3 B (W_N^(k1 + 32 k2))^n3 W_32^(n3 k3)
 * Thread u = 32 n2 + n3 does the first pass; u = M k1 + k2 the others. A thread's bins are k3 =
 * 0..31, and the inverse goes the same way back, the digits' roles exchanged (m1 in the place of
 * k1), so the spectrum is stored in this order and nothing is ever transposed. The second pass only
 * mixes values of k1 rows that the same warp reads and writes.
 */

/* --- formats: raw values as they are; their scale is in the spectrum --- */

struct packed_ci16 {
    typedef int word;
    static constexpr bool IS_FLOAT = false;
    /* Adding 0x7fff makes the two ends the two greatest of 16 bits: one instruction a sample. */
    static __device__ __forceinline__ bool may_clip(const word (&raw)[32], const float2 (&)[32])
    {
        unsigned greatest = 0;

#pragma unroll
        for (int j = 0; j < 32; j++)
            greatest = __viaddmax_u16x2((unsigned)raw[j], 0x7fff7fffu, greatest);
        return greatest >= 0xfffe0000u || (greatest & 0xffffu) >= 0xfffeu;
    }
    static __device__ __forceinline__ float2 value(word w)
    {
        return make_float2((float)(short)(w & 0xffff), (float)(w >> 16));
    }
    static __device__ bool is_clipped(word w)
    {
        return pnr_cuda_is_end((int16_t)(w & 0xffff)) || pnr_cuda_is_end((int16_t)(w >> 16));
    }
};

struct packed_ci8 {
    typedef short word;
    static constexpr bool IS_FLOAT = false;
    static __device__ __forceinline__ bool may_clip(const word (&)[32], const float2 (&v)[32])
    {
        float largest = 0;

#pragma unroll
        for (int j = 0; j < 32; j++)
            largest = fmaxf(largest, fmaxf(fabsf(v[j].x), fabsf(v[j].y)));
        return largest >= 127.0f;
    }
    static __device__ __forceinline__ float2 value(word w)
    {
        return make_float2((float)(signed char)(w & 0xff), (float)(w >> 8));
    }
    static __device__ bool is_clipped(word w)
    {
        return pnr_cuda_is_end((int8_t)(w & 0xff)) || pnr_cuda_is_end((int8_t)(w >> 8));
    }
};

struct packed_cf32 {
    typedef float2 word;
    static constexpr bool IS_FLOAT = true;
    static __device__ __forceinline__ bool may_clip(const word (&)[32], const float2 (&)[32])
    {
        return false;
    }
    static __device__ __forceinline__ float2 value(word w)
    {
        return w;
    }
    static __device__ bool is_clipped(word)
    {
        return false;
    }
};

/* sum |x|^2 of a thread's values. */
static __device__ __forceinline__ float energy_of(const float2 (&v)[32])
{
    float x = 0, y = 0;

#pragma unroll
    for (int j = 0; j < 32; j++) {
        x = fmaf(v[j].x, v[j].x, x);
        y = fmaf(v[j].y, v[j].y, y);
    }
    return x + y;
}

/* Energy, clipped and (upper half) non-finite values of a thread; a value that is not finite
 * becomes 0. What is rare is found by one cheap sign of it, and only then counted. */
template <int T, class FORMAT>
static __device__ __forceinline__ float measure(float2 (&v)[32],
                                                const typename FORMAT::word (&raw)[32],
                                                const typename FORMAT::word *in, uint32_t *odd)
{
    float energy = energy_of(v);

    *odd = 0;
    if (FORMAT::may_clip(raw, v))
#pragma unroll 1
        for (int j = 0; j < 32; j++)
            *odd += FORMAT::is_clipped(in[T * j]);
    if (FORMAT::IS_FLOAT && !isfinite(energy)) {
#pragma unroll
        for (int j = 0; j < 32; j++)
            if (!isfinite(v[j].x) || !isfinite(v[j].y)) {
                v[j] = make_float2(0.0f, 0.0f);
                *odd += 1u << 16;
            }
        energy = energy_of(v);
    }
    return energy;
}

/* Into the L2 cache, by the copy engine: one thread, no register. */
static __device__ __forceinline__ void prefetch(const void *memory, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(memory), "r"(bytes) : "memory");
#else
    (void)memory;
    (void)bytes;
#endif
}

/* The middle pass of a direction, M points at 32 / M places a thread, two of them side by side, in
 * place in shared memory. transform_pair(q, a, b): of both, which are places 2 M q and the next. */
template <int M, class TWIDDLE>
static __device__ __forceinline__ void middle_pass(float2 *middle, TWIDDLE transform_pair)
{
#pragma unroll
    for (int q = 0; q < 16 / M; q++) {
        float2 a[M], b[M];

#pragma unroll
        for (int n = 0; n < M; n++) {
            const float4 x = *(const float4 *)(middle + n * pnr_fused_size<M>::PART + 2 * M * q);

            a[n] = make_float2(x.x, x.y);
            b[n] = make_float2(x.z, x.w);
        }
        transform_pair(q, a, b);
#pragma unroll
        for (int n = 0; n < M; n++)
            *(float4 *)(middle + n * pnr_fused_size<M>::PART + 2 * M * q) =
                make_float4(a[n].x, a[n].y, b[n].x, b[n].y);
    }
    __syncwarp();
}

/* A thread's lags to the profile; 0 of a window that is not used. */
template <int M>
static __device__ __forceinline__ void return_profile(const pnr_cuda_fused &p, const float2 *column,
                                                      uint32_t window, uint32_t u, bool is_used)
{
#pragma unroll 1
    for (uint32_t j = 0; j < 32; j++) {
        const size_t at =
            (size_t)window * pnr_fused_size<M>::N + u + pnr_fused_size<M>::THREADS * j;
        const float2 c = is_used ? column[j * pnr_fused_size<M>::ROW] : make_float2(0.0f, 0.0f);

        if (p.profile != NULL)
            p.profile[at] = make_float2(c.y, c.x);
        else
            p.power[at] = pnr_fused_power(c);
    }
}

/* Shared memory of a block: the windows' values; then (M = 1) the twiddles of each lane and the
 * spectrum, or W_N^u of each thread and W_32M^i. */
template <int M> static constexpr size_t shared_bytes()
{
    typedef pnr_fused_size<M> size;

    return size::WINDOWS * size::BUFFER * sizeof(float2) +
           (M == 1 ? 16 * 32 * sizeof(float2) + size::N * sizeof(float2)
                   : (size::THREADS + 32) * sizeof(float2));
}

template <int M, class FORMAT>
__global__ void __launch_bounds__(pnr_fused_size<M>::THREADS *pnr_fused_size<M>::WINDOWS,
                                  pnr_fused_size<M>::BLOCKS) correlate_windows(pnr_cuda_fused p)
{
    typedef pnr_fused_size<M> size;
    typedef typename FORMAT::word word;
    constexpr int T = size::THREADS, N = size::N, PART = size::PART, ROW = size::ROW;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ pnr_fused_search<M> searches[size::WINDOWS];
    const int of_block = __shfl_sync(0xffffffffu, threadIdx.x / T, 0);
    const int u = threadIdx.x % T, k1 = u / M, k2 = u % M;
    float2 *const buffer = (float2 *)memory + of_block * size::BUFFER;
    float2 *const table = (float2 *)memory + size::WINDOWS * size::BUFFER;
    float2 *const small_table = table + T;                  /* M > 1 */
    float4 *const spectrum = (float4 *)(table + 16 * 32);   /* M = 1 */
    float2 *const column = buffer + u / 32 * PART + u % 32; /* + k1 ROW */
    float2 *const row = buffer + k1 * ROW + k2 * PART;
    float2 *const middle = buffer + k1 * ROW + 2 * k2; /* + n2 PART + 2 M q */
    pnr_fused_search<M> &s = searches[of_block];

    if constexpr (M == 1) {
        for (int i = threadIdx.x; i < 32; i += blockDim.x) {
            float2 set[16];

            pnr_fused_derive<32>(pnr_fused_twiddle(i, 2.0f / N), set);
            for (int q = 0; q < 8; q++)
                ((float4 *)table)[q * 32 + i] =
                    make_float4(set[2 * q].x, set[2 * q].y, set[2 * q + 1].x, set[2 * q + 1].y);
        }
        for (int i = threadIdx.x; i < N / 2; i += blockDim.x)
            spectrum[i] = p.spectrum[i];
    } else {
        for (int i = threadIdx.x; i < T; i += blockDim.x)
            table[i] = pnr_fused_twiddle(i, 2.0f / N);
        for (int i = threadIdx.x; i < 32; i += blockDim.x)
            small_table[i] = pnr_fused_twiddle(i, 2.0f / (32 * M));
    }
    __syncthreads();

    /* The last pass of a direction, base twiddle W_N^index. */
    const auto last_pass = [&](float2(&v)[32], int index) {
        if constexpr (M == 1) {
            float2 set[16];

#pragma unroll
            for (int q = 0; q < 8; q++) {
                const float4 x = ((const float4 *)table)[q * 32 + u];

                set[2 * q] = make_float2(x.x, x.y);
                set[2 * q + 1] = make_float2(x.z, x.w);
            }
            pnr_fused_transform_by<32>(v, set);
        } else {
            pnr_fused_transform_at<32>(v, table[index]);
        }
    };
    const uint32_t step = gridDim.x * size::WINDOWS;
    const uint32_t n_windows = pnr_cuda_dwells_of(p.job, 0, p.n_windows);

#pragma unroll 1
    for (uint32_t window = blockIdx.x * size::WINDOWS + of_block; window < n_windows;
         window += step) {
        const word *in = (const word *)p.raw + (size_t)window * N + u;
        uint32_t n_lost = 0, odd;
        word raw[32];
        float2 v[32];

#pragma unroll
        for (int j = 0; j < 32; j++)
            raw[j] = __ldcs(in + T * j);
        if (u == 0) {
            n_lost = p.windows[window].n_lost;
            if (n_windows - window > step)
                prefetch(in + (size_t)step * N, N * sizeof(word));
        }
#pragma unroll
        for (int j = 0; j < 32; j++)
            v[j] = FORMAT::value(raw[j]);

        const double energy = pnr_cuda_warp_sum((double)measure<T, FORMAT>(v, raw, in, &odd));

        if (__any_sync(0xffffffffu, odd != 0))
            odd = pnr_cuda_warp_sum(odd);
        if (u % 32 == 0) {
            s.energy[u / 32] = energy;
            s.odd[u / 32] = odd;
        }

        pnr_fused_transform<32>(v);
#pragma unroll
        for (int k = 0; k < 32; k++)
            column[k * ROW] = v[k];
        pnr_fused_sync<M>();
        if (u == 0)
            pnr_fused_begin<M>(s, p, n_lost);
        if constexpr (M > 1) {
            float2 set[M / 2];

            pnr_fused_derive<M>(small_table[k1], set);
            middle_pass<M>(middle, [&](int, float2(&a)[M], float2(&b)[M]) {
                pnr_fused_transform_by<M>(a, set);
                pnr_fused_transform_by<M>(b, set);
            });
        }
#pragma unroll
        for (int j = 0; j < 16; j++) {
            const float4 x = *(const float4 *)(row + 2 * j);

            v[2 * j] = make_float2(x.x, x.y);
            v[2 * j + 1] = make_float2(x.z, x.w);
        }
        last_pass(v, k1 + 32 * k2);

        /* X conj(A), parts swapped for the way back. */
#pragma unroll
        for (int j = 0; j < 16; j++) {
            const float4 h = M == 1 ? spectrum[j * T + u] : __ldg(p.spectrum + j * T + u);
            const float2 a = pnr_fused_product(v[2 * j], make_float2(h.x, h.y));
            const float2 b = pnr_fused_product(v[2 * j + 1], make_float2(h.z, h.w));

            v[2 * j] = make_float2(a.y, a.x);
            v[2 * j + 1] = make_float2(b.y, b.x);
        }

        pnr_fused_transform<32>(v);
#pragma unroll
        for (int j = 0; j < 16; j++)
            *(float4 *)(row + 2 * j) =
                make_float4(v[2 * j].x, v[2 * j].y, v[2 * j + 1].x, v[2 * j + 1].y);
        if constexpr (M > 1) {
            __syncwarp();
            middle_pass<M>(middle, [&](int q, float2(&a)[M], float2(&b)[M]) {
                const float4 w = *(const float4 *)(small_table + 2 * k2 + 2 * M * q);

                pnr_fused_transform_at<M>(a, make_float2(w.x, w.y));
                pnr_fused_transform_at<M>(b, make_float2(w.z, w.w));
            });
        }
        pnr_fused_sync<M>();
#pragma unroll
        for (int k = 0; k < 32; k++)
            v[k] = column[k * ROW];
        last_pass(v, u);

        /* v[j] is c at lag u + T j, parts swapped. */
        pnr_fused_groups groups;
        float best = 0, sum = 0;

#pragma unroll
        for (int g = 0; g < PNR_FUSED_GROUPS; g++) {
            groups.best[g] = groups.sum[g] = 0;
#pragma unroll
            for (int j = g * PNR_FUSED_GROUP; j < (g + 1) * PNR_FUSED_GROUP; j++) {
                const float power = pnr_fused_power(v[j]);

                groups.sum[g] += power;
                groups.best[g] = fmaxf(groups.best[g], power);
            }
            sum += groups.sum[g];
            best = fmaxf(best, groups.best[g]);
        }

        const float threshold = s.threshold;
        const double noise = pnr_cuda_warp_sum((double)sum);

        if (u % 32 == 0)
            s.noise[u / 32] = noise;
        const bool is_above = best > threshold;

        __syncwarp();

        const bool is_quiet =
            !(M == 1 ? __any_sync(0xffffffffu, is_above) : __syncthreads_or(is_above));

        if (!is_quiet || p.profile != NULL || p.power != NULL) {
            /* Every thread puts back what it has read: nobody else has touched these places. */
#pragma unroll
            for (int k = 0; k < 32; k++)
                column[k * ROW] = v[k];
            if (p.profile != NULL || p.power != NULL)
                return_profile<M>(p, column, window, u, threshold < INFINITY);
            if (!is_quiet)
                pnr_fused_look<M>(s, p, buffer, column, window, u, groups, sum);
        }
        if (u < 32)
            pnr_fused_finish<M>(s, p, window, u);
    }
}

/* --- the instances --- */

template <int M, class FORMAT> static pnr_cuda_fused_size instance(pnr_format format)
{
    typedef pnr_fused_size<M> size;

    return {format,
            (uint32_t)size::N,
            correlate_windows<M, FORMAT>,
            (uint32_t)(size::THREADS * size::WINDOWS),
            (uint32_t)size::WINDOWS,
            shared_bytes<M>(),
            size::WINDOWS * sizeof(pnr_fused_search<M>)};
}

const pnr_cuda_fused_size *pnr_cuda_fused_find(pnr_format format, size_t n_samples)
{
    static const pnr_cuda_fused_size table[] = {
#define FORMATS(m)                                                                                 \
    instance<m, packed_ci8>(PNR_FORMAT_CI8), instance<m, packed_ci16>(PNR_FORMAT_CI16),            \
        instance<m, packed_cf32>(PNR_FORMAT_CF32)
        FORMATS(1), FORMATS(2), FORMATS(4), FORMATS(8), FORMATS(16),
#undef FORMATS
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].format == format && table[i].n_samples == n_samples)
            return &table[i];
    return NULL;
}

size_t pnr_cuda_fused_place(size_t n_samples, size_t k)
{
    const size_t m = n_samples / 1024, n_threads = 32 * m;
    const size_t u = k % 32 * m + k / 32 % m, k3 = k / n_threads;

    return (k3 / 2 * n_threads + u) * 2 + k3 % 2;
}
