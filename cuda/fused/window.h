/* SPDX-License-Identifier: MIT */
/* A window of the one-kernel fused method: its threads, its shared memory, its two transforms. */
#ifndef PNR_CUDA_FUSED_WINDOW_H
#define PNR_CUDA_FUSED_WINDOW_H

#include "cuda/fused/fused.h"
#include "cuda/fused/transform.h"

/*
 * L = 32 * M * 32. A transform has three passes, of 32, M and 32 points. With n = n1 L/32 + n2 32 +
 * n3 and k = k1 + 32 k2 + 32 M k3 (k1, n1, k3, n3 < 32; k2, n2 < M)
 *   nk/L = n1 k1/32 + n2 (k1 + 32 k2)/(32 M) + n3 k/L   (mod 1)
 * So each pass sums over one index, and its twiddles are powers of one base (W_N = exp(-2 pi i/N)):
 *   A[k1][n2][n3] = sum_n1 x W_32^(n1 k1)
 *   B[k1][k2][n3] = sum_n2 A (W_32M^k1)^n2 W_M^(n2 k2)
 *   X[k]          = sum_n3 B (W_L^(k1 + 32 k2))^n3 W_32^(n3 k3)
 * In the first pass thread u has n2 and n3 with u = 32 n2 + n3. In the other passes thread u has k1
 * and k2 with u = M k1 + k2. A thread's bins are k3 = 0..31. The inverse sums over k3, then over
 * k2, then over k1. So each thread multiplies its own bins by the spectrum, which is stored in the
 * order of the threads, and nothing is transposed. The second pass combines only values of rows
 * k1 that the same warp reads and writes.
 */
template <int M> struct pnr_fused_size {
    static constexpr int THREADS = 32 * M; /* threads of a window, each with 32 values */
    static constexpr int L = 1024 * M;
    /* In shared memory the 32 * M values of one k1 are a row. Two empty places follow every 32
     * values, so that neither rows nor columns have bank conflicts. The search reads the same place
     * of all rows. For M >= 8 these places would be in one bank, so two more empty places follow
     * each row. */
    static constexpr int PART = 34, ROW = PART * M + (M >= 8 ? 2 : 0);
    static constexpr int WINDOWS = M == 1 ? 16 : 1; /* greatest number of windows in a block */
    static constexpr int BLOCKS = M == 1   ? 1
                                  : M == 2 ? 8
                                  : M == 4 ? 4
                                  : M == 8 ? 2
                                           : 1; /* blocks on each multiprocessor */
    static constexpr int BUFFER_BYTES = 32 * ROW * (int)sizeof(float2);
    /* The table contains the pairs (W_L^i, W_L^8i), i < THREADS, with an empty pair after every 32
     * pairs. The values W_32M^i, i < 32, follow the pairs. With M = 1 the table contains all
     * twiddles of each lane instead. */
    static constexpr int MIDDLE_AT = 2 * (THREADS + M);
    static constexpr int TABLE_BYTES = (M == 1 ? 16 * 32 : MIDDLE_AT + 32) * (int)sizeof(float2);
};

/* Waits for the threads of one window. If a block has several windows, each window has its own
 * barrier. */
template <int M, bool IS_ALONE = true> static __device__ __forceinline__ void pnr_fused_sync()
{
    if (M == 1)
        __syncwarp();
    else if (IS_ALONE)
        __syncthreads();
    else
        asm volatile("bar.sync %0, %1;"
                     :
                     : "r"(1 + threadIdx.x / pnr_fused_size<M>::THREADS),
                       "n"(pnr_fused_size<M>::THREADS)
                     : "memory");
}

/* Returns a condition that is the same in all lanes of a warp. The vote tells the compiler that all
 * lanes agree. Without the vote, every shuffle in a branch on the condition becomes a call. */
static __device__ __forceinline__ bool pnr_fused_agreed(bool is_so)
{
    return __all_sync(0xffffffffu, is_so);
}

/* True for the first warp of the window. */
template <int M> static __device__ __forceinline__ bool pnr_fused_is_first()
{
    return M == 1 || pnr_fused_agreed(threadIdx.x < 32);
}

/* Fills the table of the block; a barrier must follow. */
template <int M> static __device__ __forceinline__ void pnr_fused_fill_table(float2 *table)
{
    typedef pnr_fused_size<M> size;

    if constexpr (M == 1) {
        /* Computes each twiddle of pnr_fused_derive<32>(W_L^lane) directly. Twiddle m/4 + j of a
         * lane is W_L^(32 lane / m) W_m^j, for span m. Twiddle 0 is for span 2. A lane loads two
         * twiddles at a time. */
        for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) {
            const int lane = i % 32, at = i / 32;
            const int span = at == 0 ? 2 : 4 << (31 - __clz(at)), j = at == 0 ? 0 : at - span / 4;

            table[(at / 2 * 32 + lane) * 2 + at % 2] =
                pnr_fused_twiddle((32 * lane + 1024 * j) / span, 2.0f / size::L);
        }
    } else {
        for (int i = threadIdx.x; i < 2 * size::THREADS; i += blockDim.x)
            table[i + i / 64 * 2] =
                pnr_fused_twiddle(i % 2 == 0 ? i / 2 : 8 * (i / 2), 2.0f / size::L);
        for (int i = threadIdx.x; i < 32; i += blockDim.x)
            table[size::MIDDLE_AT + i] = pnr_fused_twiddle(i, 2.0f / (32 * M));
    }
}

/* One thread of a window, and its places in the buffer. */
template <int M, bool IS_ALONE = true> struct pnr_fused_thread {
    typedef pnr_fused_size<M> size;
    const float2 *table;
    float2 *column, *row, *middle;
    int u, k1, k2;

    __device__ __forceinline__ pnr_fused_thread(const float2 *table_, float2 *buffer, int u_)
        : table(table_), u(u_), k1(u_ / M), k2(u_ % M)
    {
        column = buffer + u / 32 * size::PART + u % 32; /* column[k * ROW] is value k of the
                                                         * thread */
        row = buffer + k1 * size::ROW + k2 * size::PART;
        /* values of the thread in the middle pass, see pnr_fused_middle */
        middle = buffer + k1 * size::ROW + 2 * k2;
    }

    __device__ __forceinline__ void put_column(const float2 (&v)[32]) const
    {
#pragma unroll
        for (int k = 0; k < 32; k++)
            column[k * size::ROW] = v[k];
    }
    __device__ __forceinline__ void get_column(float2 (&v)[32]) const
    {
#pragma unroll
        for (int k = 0; k < 32; k++)
            v[k] = column[k * size::ROW];
    }

    __device__ __forceinline__ void get_row(float2 (&v)[32]) const
    {
#pragma unroll
        for (int j = 0; j < 16; j++) {
            const float4 x = *(const float4 *)(row + 2 * j);

            v[2 * j] = make_float2(x.x, x.y);
            v[2 * j + 1] = make_float2(x.z, x.w);
        }
    }

    /* Does the first pass, and writes the values to the buffer. */
    __device__ __forceinline__ void first_pass(float2 (&v)[32]) const
    {
        pnr_fused_transform<32>(v);
        pnr_fused_sync<M, IS_ALONE>(); /* all threads have read the old values */
        put_column(v);
        pnr_fused_sync<M, IS_ALONE>();
    }

    /* Does the last pass of either transform, with the base twiddle W_L^at. */
    __device__ __forceinline__ void last_pass(float2 (&v)[32], int at) const
    {
        /* Keeps the compiler from holding values derived from `at` in registers. */
        asm volatile("" : "+r"(at));

        const float4 w = ((const float4 *)table)[at + at / 32];
        float2 set[16];

        /* Twiddles derived from w^8 of the table have a smaller error than those from w. */
        pnr_fused_derive<32>(make_float2(w.x, w.y), set);
        set[1] = make_float2(w.z, w.w);
        set[0] = pnr_fused_square(set[1]);
        pnr_fused_transform_by<32>(v, set);
    }

    /* Does the passes after the first. On return v[j] is bin k1 + 32 k2 + 32 M j. */
    __device__ __forceinline__ void finish_forward(float2 (&v)[32]) const
    {
        float2 set[M / 2];

        pnr_fused_derive<M>(table[size::MIDDLE_AT + k1], set);
        pnr_fused_middle<M, size::PART>(middle, [&](int, float2(&a)[M], float2(&b)[M]) {
            pnr_fused_transform_by<M>(a, set);
            pnr_fused_transform_by<M>(b, set);
        });
        get_row(v);
        last_pass(v, k1 + 32 * k2);
    }

    /* Multiplies v by the spectrum, and swaps real and imaginary part for the inverse transform.
     * All loads use one address with constant offsets. */
    __device__ __forceinline__ void multiply(float2 (&v)[32], const float4 *spectrum) const
    {
        const float4 *const own = spectrum + u;

#pragma unroll
        for (int j = 0; j < 16; j++) {
            const float4 h = own[j * size::THREADS];
            const float2 a = pnr_fused_product(v[2 * j], make_float2(h.x, h.y));
            const float2 b = pnr_fused_product(v[2 * j + 1], make_float2(h.z, h.w));

            v[2 * j] = make_float2(a.y, a.x);
            v[2 * j + 1] = make_float2(b.y, b.x);
        }
    }

    /* On return v[j] is the correlation at lag u + THREADS * j, with real and imaginary part
     * swapped. */
    __device__ __forceinline__ void inverse(float2 (&v)[32]) const
    {
        pnr_fused_transform<32>(v);
#pragma unroll
        for (int j = 0; j < 16; j++)
            *(float4 *)(row + 2 * j) =
                make_float4(v[2 * j].x, v[2 * j].y, v[2 * j + 1].x, v[2 * j + 1].y);
        __syncwarp();
        pnr_fused_middle<M, size::PART>(middle, [&](int q, float2(&a)[M], float2(&b)[M]) {
            const float4 w = *(const float4 *)(table + size::MIDDLE_AT + 2 * k2 + 2 * M * q);

            pnr_fused_transform_at<M>(a, make_float2(w.x, w.y));
            pnr_fused_transform_at<M>(b, make_float2(w.z, w.w));
        });
        pnr_fused_sync<M, IS_ALONE>();
        get_column(v);
        last_pass(v, u);
    }

    /* With M = 1 both directions are two passes of 32 with the same twiddles. A loop runs the same
     * instructions twice, so that they stay in the instruction cache. */
    template <class BETWEEN>
    __device__ __forceinline__ void correlate_in_warp(float2 (&v)[32], const float4 *spectrum,
                                                      BETWEEN between) const
    {
        float2 set[16];

#pragma unroll
        for (int q = 0; q < 8; q++) {
            const float4 w = ((const float4 *)table)[q * 32 + u];

            set[2 * q] = make_float2(w.x, w.y);
            set[2 * q + 1] = make_float2(w.z, w.w);
        }
#pragma unroll 1
        for (int way = 0; way < 2; way++) {
            first_pass(v);
            get_row(v);
            __syncwarp(); /* all lanes have read their rows */
            pnr_fused_transform_by<32>(v, set);
            if (way == 0) {
                between();
                multiply(v, spectrum);
            }
        }
    }

    /* On entry v[j] is sample u + THREADS * j. On return v[j] is the correlation at lag u +
     * THREADS * j, with real and imaginary part swapped. between() is called after a barrier of
     * the window's threads. After correlate() a thread may write only to its own column of the
     * buffer. */
    template <class BETWEEN>
    __device__ __forceinline__ void correlate(float2 (&v)[32], const float4 *spectrum,
                                              BETWEEN between) const
    {
        if constexpr (M == 1) {
            correlate_in_warp(v, spectrum, between);
        } else {
            first_pass(v);
            between();
            finish_forward(v);
            multiply(v, spectrum);
            inverse(v);
        }
    }
};

/* Returns the index in the buffer of sample i, or of the value at lag i. */
template <int M> static __device__ __forceinline__ uint32_t pnr_fused_at(uint32_t i)
{
    typedef pnr_fused_size<M> size;

    return i / size::THREADS * size::ROW + i % size::THREADS / 32 * size::PART + i % 32;
}

#endif
