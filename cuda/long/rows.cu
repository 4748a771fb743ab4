/* SPDX-License-Identifier: MIT */
/* Method fused, long: transforms rows forward, multiplies them by the spectrum of the code, and
 * transforms them back in place. Some blocks sum the measurements of the samples. */
#include "cuda/base/chain.h"
#include "cuda/base/reduce.h"
#include "cuda/fused/transform.h"
#include "cuda/long/long.h"

#include <cassert>

/*
 * A row of N2 = 32 * M * 32 points needs three passes in each direction, of 32, M and 32 points.
 * The order of the threads and the layout of the shared memory are those of fused/window.h. In
 * addition sample n2 of row k1 has a factor W_L^(k1 n2). With n2 = d1 N2/32 + d2 32 + d3 this
 * factor is the product of three powers, one for each pass, with the exponents d1, d2 and d3. The
 * bases of these powers are W_L^(k1 N2/32), W_L^(32 k1) and W_L^k1. The twiddle base of each pass
 * is multiplied by the base of its power.
 */
template <int M> struct row_size {
    static constexpr int THREADS = 32 * M; /* threads of a row */
    static constexpr int POINTS = 1024 * M;
    static constexpr int PART = 34, ROW = PART * M; /* no bank conflicts for rows or columns */
    static constexpr int BUFFER = 32 * ROW;         /* float2 values of shared memory for a row */
    static constexpr int EACH = M == 1 ? 4 : 1;     /* rows of a block */
    static constexpr int BLOCKS = 16 / (M * EACH);  /* blocks of a multiprocessor */
    static constexpr int WARPS = M * EACH;          /* warps of a block */
    static constexpr int BITS = pnr_fused_bits(M);
    static constexpr size_t SHARED = (EACH * BUFFER + 32 * BITS) * sizeof(float2);
};

/* Waits for the threads of one row. */
template <int M> static __device__ __forceinline__ void sync_row()
{
    if (M == 1)
        __syncwarp();
    else
        __syncthreads();
}

/* Sums the parts of a window in a fixed order, and sets the first threshold. One warp calls
 * this. */
static __device__ void begin_window(const pnr_fused_long &p, uint32_t window)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP;
    const uint32_t n = p.n_samples;
    double energy = 0;
    uint32_t n_clipped = 0, n_nonfinite = 0;

#pragma unroll 4
    for (uint32_t i = lane; i < p.n_tiles; i += PNR_CUDA_WARP) {
        const pnr_cuda_energy part = p.parts[(size_t)window * p.n_tiles + i];

        energy += part.energy;
        n_clipped += part.n_clipped;
        n_nonfinite += part.n_nonfinite;
    }
    energy = pnr_cuda_warp_sum(energy) * (p.scale * p.scale);
    n_clipped = pnr_cuda_warp_sum(n_clipped);
    n_nonfinite = pnr_cuda_warp_sum(n_nonfinite);
    if (lane != 0)
        return;

    const uint32_t n_lost = p.windows[window].n_lost;
    const bool is_used = (uint64_t)n_lost + n_nonfinite <= n / 2;
    pnr_cuda_dwell state = {};

    if (is_used) {
        state.sums.energy = energy;
        /* The mean power of a cell if the samples are noise alone: sum |x|^2 code_energy / N. */
        state.sums.floor = energy * p.floor_of_energy;
        state.sums.n_valid = n - n_lost - n_nonfinite;
        state.sums.n_periods = 1;
        state.rounding = 1e-12 * energy * p.code_energy;
    }
    state.sums.n_clipped = n_clipped;
    state.sums.n_nonfinite = n_nonfinite;
    state.threshold = is_used ? (float)(p.threshold[0] * state.sums.floor) : INFINITY;
    p.states[window] = state;
    p.nonfinite[window] = n_nonfinite;
}

/* One thread of a row, and its places in shared memory. */
template <int M> struct row_thread {
    typedef row_size<M> size;
    const float2 *table; /* [BITS][32]: W_32M^(j 2^b) */
    float2 *column;      /* column[k * ROW] is value k of the thread */
    float2 *own;
    float2 *middle; /* values of the thread in the middle pass, see pnr_fused_middle */
    int u, k1, k2;

    __device__ __forceinline__ row_thread(const float2 *table_, float2 *buffer, int u_)
        : table(table_), u(u_), k1(u_ / M), k2(u_ % M)
    {
        column = buffer + u / 32 * size::PART + u % 32;
        own = buffer + k1 * size::ROW + k2 * size::PART;
        middle = buffer + k1 * size::ROW + 2 * k2;
    }

    /* Transforms v, samples of a row, to the spectrum of the row. row_powers: W_L^(r 2^i), where r
     * is the number of the row. thread_powers: the table of all threads. */
    __device__ __forceinline__ void forward(float2 (&v)[32], const float2 *row_powers,
                                            const float2 *thread_powers) const
    {
        float2 powers[5];

#pragma unroll
        for (int i = 0; i < 5; i++)
            powers[i] = __ldg(row_powers + 5 + size::BITS + i);
        pnr_fused_transform_with<32>(v, powers);
        sync_row<M>();
#pragma unroll
        for (int k = 0; k < 32; k++)
            column[k * size::ROW] = v[k];
        sync_row<M>();
        if constexpr (M > 1) {
            float2 middle_powers[size::BITS], set[M / 2];

#pragma unroll
            for (int i = 0; i < size::BITS; i++)
                middle_powers[i] = pnr_fused_product(table[32 * i + k1], __ldg(row_powers + 5 + i));
            pnr_fused_set_spans<M, M>(middle_powers, set);
            pnr_fused_middle<M, size::PART>(middle, [&](int, float2(&a)[M], float2(&b)[M]) {
                pnr_fused_transform_by<M>(a, set);
                pnr_fused_transform_by<M>(b, set);
            });
        }
#pragma unroll
        for (int j = 0; j < 16; j++) {
            const float4 x = *(const float4 *)(own + 2 * j);

            v[2 * j] = make_float2(x.x, x.y);
            v[2 * j + 1] = make_float2(x.z, x.w);
        }
#pragma unroll
        for (int i = 0; i < 5; i++)
            powers[i] = pnr_fused_product(__ldg(thread_powers + i * size::THREADS + u),
                                          __ldg(row_powers + i));
        pnr_fused_transform_with<32>(v, powers);
    }

    /* Transforms v, a spectrum, back to a row. Real and imaginary part are swapped in v. */
    __device__ __forceinline__ void inverse(float2 (&v)[32], const float2 *thread_powers) const
    {
        float2 powers[5];

        pnr_fused_transform<32>(v);
#pragma unroll
        for (int j = 0; j < 16; j++)
            *(float4 *)(own + 2 * j) =
                make_float4(v[2 * j].x, v[2 * j].y, v[2 * j + 1].x, v[2 * j + 1].y);
        if constexpr (M > 1) {
            __syncwarp();
            pnr_fused_middle<M, size::PART>(middle, [&](int q, float2(&a)[M], float2(&b)[M]) {
                float2 of_a[size::BITS], of_b[size::BITS];

#pragma unroll
                for (int i = 0; i < size::BITS; i++) {
                    const float4 w = *(const float4 *)(table + 32 * i + 2 * k2 + 2 * M * q);

                    of_a[i] = make_float2(w.x, w.y);
                    of_b[i] = make_float2(w.z, w.w);
                }
                pnr_fused_transform_with<M>(a, of_a);
                pnr_fused_transform_with<M>(b, of_b);
            });
        }
        sync_row<M>();
#pragma unroll
        for (int k = 0; k < 32; k++)
            v[k] = column[k * size::ROW];
#pragma unroll
        for (int i = 0; i < 5; i++)
            powers[i] = __ldg(thread_powers + (5 + i) * size::THREADS + u);
        pnr_fused_transform_with<32>(v, powers);
    }
};

/* In the first blocks each warp calls begin_window for one window. The other blocks transform rows:
 * row 0 of all windows, then row 1 and so on, so that each row of the code's spectrum is read
 * once. */
template <int M>
__global__ void __launch_bounds__(row_size<M>::THREADS *row_size<M>::EACH, row_size<M>::BLOCKS)
    fused_rows(pnr_fused_long p, uint32_t first, uint32_t count)
{
    typedef row_size<M> size;
    constexpr int T = size::THREADS;
    extern __shared__ float4 memory[];

    const uint32_t n_begin = (count + size::WARPS - 1) / size::WARPS;

    pnr_chain_next();
    if (blockIdx.x < n_begin) {
        const uint32_t i = blockIdx.x * size::WARPS + threadIdx.x / PNR_CUDA_WARP;

        pnr_chain_wait();
        if (p.parts != NULL && i < count && first + i < p.job->n_dwells)
            begin_window(p, first + i);
        return; /* the whole block returns */
    }

    const int of_block = __shfl_sync(0xffffffffu, threadIdx.x / T, 0);
    const int u = threadIdx.x % T;
    float2 *const buffer = (float2 *)memory + of_block * size::BUFFER;
    float2 *const table = (float2 *)memory + size::EACH * size::BUFFER;
    const row_thread<M> thread(table, buffer, u);
    const uint32_t n_tasks = count * (p.n_points / size::POINTS);
    const uint32_t step = (gridDim.x - n_begin) * size::EACH;

    for (int i = threadIdx.x; i < 32 * size::BITS; i += blockDim.x)
        /* W_32M^(j 2^b) at table[32 b + j], j < 32 */
        table[i] = pnr_fused_twiddle(i % 32 << i / 32, 2.0f / T);
    __syncthreads();
    pnr_chain_wait();

#pragma unroll 1
    for (uint32_t task = (blockIdx.x - n_begin) * size::EACH + of_block; task < n_tasks;
         task += step) {
        const uint32_t row = task / count;
        const uint32_t window = first + task - row * count;
        const uint32_t n_windows = p.job->n_dwells * p.n_sums;
        float2 *const values =
            p.rows + (size_t)window * p.n_points + (size_t)row * size::POINTS + u;
        const float4 *const spectrum = p.spectrum + (size_t)row * (size::POINTS / 2) + u;
        const float2 *const row_powers = p.row_powers + row * PNR_FUSED_LONG_POWERS;
        float2 v[32];

#pragma unroll
        for (int j = 0; j < 32; j++)
            v[j] = values[T * j];
        if (window >= n_windows)
            continue; /* all threads of the row continue */
        thread.forward(v, row_powers, p.thread_powers);

        /* Multiplies by the spectrum and swaps real and imaginary part for the inverse
         * transform. */
#pragma unroll
        for (int j = 0; j < 16; j++) {
            const float4 h = __ldg(spectrum + j * T);
            const float2 a = pnr_fused_product(v[2 * j], make_float2(h.x, h.y));
            const float2 b = pnr_fused_product(v[2 * j + 1], make_float2(h.z, h.w));

            v[2 * j] = make_float2(a.y, a.x);
            v[2 * j + 1] = make_float2(b.y, b.x);
        }

        thread.inverse(v, p.thread_powers);
#pragma unroll
        for (int j = 0; j < 32; j++)
            values[T * j] = v[j];
    }
}

/* --- the table of kernels --- */

pnr_fused_long_launch pnr_fused_long_rows(uint32_t row_bits)
{
#define ROW(m)                                                                                     \
    {                                                                                              \
        fused_rows<m>, row_size<m>::THREADS *row_size<m>::EACH, row_size<m>::SHARED                \
    }
    static const pnr_fused_long_launch table[] = {ROW(1), ROW(2), ROW(4), ROW(8)};
#undef ROW

    assert(row_bits >= 10 && row_bits <= 13);
    return table[row_bits - 10];
}
