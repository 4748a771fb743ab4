/* SPDX-License-Identifier: MIT */
/* Method fused, long: transforms the columns of the raw samples, and measures the samples. */
#include "cuda/base/chain.h"
#include "cuda/base/reduce.h"
#include "cuda/fused/format.h"
#include "cuda/long/columns.h"

#include <cassert>

/* Loads the thread's 32 samples n = place + stride * a of a periodically extended window. */
template <class FORMAT>
static __device__ __forceinline__ void
    load_extended(typename FORMAT::word (&raw)[32], const typename FORMAT::word *window,
                  uint32_t place, uint32_t stride, uint32_t n_samples)
{
#pragma unroll
    for (int a = 0; a < 32; a++) {
        const uint32_t n = place + a * stride;

        raw[a] = typename FORMAT::word{};
        if (n < 2 * n_samples - 1)
            raw[a] = window[n < n_samples ? n : n - n_samples];
    }
}

/* Returns sum |x|^2 of the first n_own values. */
static __device__ __forceinline__ float energy_of(const float2 (&v)[32], uint32_t n_own)
{
    float x = 0, y = 0;

#pragma unroll
    for (int a = 0; a < 32; a++)
        if (a < n_own) {
            x = fmaf(v[a].x, v[a].x, x);
            y = fmaf(v[a].y, v[a].y, y);
        }
    return x + y;
}

/* Returns the energy of the first n_own values; the other values are copies of samples, or zeros.
 * Sets non-finite values to 0. *odd: the number of clipped values in the lower 16 bits, of
 * non-finite values in the upper 16. */
template <class FORMAT>
static __device__ __forceinline__ float
measure_values(float2 (&v)[32], const typename FORMAT::word (&raw)[32],
               const typename FORMAT::word *in, uint32_t stride, uint32_t n_own, uint32_t *odd)
{
    float energy = energy_of(v, n_own);

    *odd = 0;
    if (FORMAT::may_clip(raw, v))
#pragma unroll 1
        for (uint32_t a = 0; a < n_own; a++)
            *odd += FORMAT::is_clipped(in[(size_t)a * stride]);
    if (FORMAT::IS_FLOAT) {
        bool is_finite = true;

        /* The non-finite value may be one of the copies. */
#pragma unroll
        for (int a = 0; a < 32; a++)
            is_finite = is_finite && isfinite(v[a].x) && isfinite(v[a].y);
        if (!is_finite || !isfinite(energy)) {
#pragma unroll
            for (int a = 0; a < 32; a++)
                if (!isfinite(v[a].x) || !isfinite(v[a].y)) {
                    v[a] = make_float2(0.0f, 0.0f);
                    *odd += a < n_own ? 1u << 16 : 0;
                }
            energy = energy_of(v, n_own);
        }
    }
    return energy;
}

/* A block transforms one tile of columns; blockIdx.y is the transform's number in the group. Three
 * blocks on a multiprocessor gain 3 % with short columns and lose 12 % with long ones. */
template <int P, class FORMAT>
__global__ void __launch_bounds__(PNR_FUSED_LONG_THREADS, P <= 2 ? 3 : 2)
    fused_samples(pnr_fused_long p, uint32_t first, uint32_t)
{
    typedef typename FORMAT::word word;
    extern __shared__ float4 memory[];
    __shared__ double energy_of_warp[PNR_FUSED_LONG_THREADS / 32];
    __shared__ uint32_t odd_of_warp[PNR_FUSED_LONG_THREADS / 32];
    float2 *const tile = (float2 *)memory, *const table = tile + PNR_FUSED_LONG_TILE;
    const uint32_t window = first + blockIdx.y;
    const uint32_t column = pnr_fused_column<P>(blockIdx.x);
    const uint32_t stride = (uint32_t)P << p.row_bits;
    const uint32_t place = (pnr_fused_part<P>() << p.row_bits) + column;
    const word *in = (const word *)p.raw + (size_t)window * p.n_input + place;
    uint32_t odd, n_own = 32;
    word raw[32];
    float2 v[32];

    const uint32_t n_windows = p.job->n_dwells * p.n_sums;

    pnr_chain_next();
    if (p.parts == NULL)
        pnr_chain_wait(); /* an earlier kernel writes the samples */
    if (p.n_input == p.n_points) {
#pragma unroll
        for (int a = 0; a < 32; a++)
            raw[a] = __ldcs(in + a * stride);
    } else {
        load_extended<FORMAT>(raw, in - place, place, stride, p.n_input);
        n_own = place < p.n_input ? (p.n_input - 1 - place) / stride + 1 : 0;
    }
    /* The loads precede this test, so that the thread waits for memory only once. They are valid
     * because the memory has space for the windows of a full submit. */
    if (window >= n_windows) {
        pnr_chain_wait();
        return; /* the whole block returns */
    }
    if constexpr (P > 1) {
        if (threadIdx.x < 32) {
            float2 powers[pnr_fused_bits(P)], set[P / 2];

#pragma unroll
            for (int i = 0; i < pnr_fused_bits(P); i++)
                powers[i] = pnr_fused_twiddle(threadIdx.x << i, 1.0f / (16 * P));
            pnr_fused_set_spans<P, P>(powers, set);
#pragma unroll
            for (int i = 0; i < P / 2; i++)
                table[threadIdx.x * (P / 2) + i] = set[i];
        }
    }
#pragma unroll
    for (int a = 0; a < 32; a++)
        v[a] = FORMAT::value(raw[a]);

    const double energy =
        pnr_cuda_warp_sum((double)measure_values<FORMAT>(v, raw, in, stride, n_own, &odd));

    if (__any_sync(0xffffffffu, odd != 0))
        odd = pnr_cuda_warp_sum(odd);
    if (threadIdx.x % 32 == 0) {
        energy_of_warp[threadIdx.x / 32] = energy;
        odd_of_warp[threadIdx.x / 32] = odd;
    }
#pragma unroll
    for (int a = 0; a < 32; a++)
        v[a].y *= p.conjugate;
    pnr_fused_transform<32>(v);
    pnr_chain_wait();

    float2 *out = p.rows + (size_t)window * p.n_points + column;

    pnr_fused_exchange<P>(
        v, tile,
        [&](uint32_t ka, float2(&x)[P]) {
            if constexpr (P > 1) {
                float2 set[P / 2];

#pragma unroll
                for (int i = 0; i < P / 2; i++)
                    set[i] = table[ka * (P / 2) + i];
                pnr_fused_transform_by<P>(x, set);
            }
        },
        [&](int j, float2 c) { out[pnr_fused_row_of<P>(j) << p.row_bits] = c; });
    if constexpr (P == 1)
        __syncthreads();
    if (p.parts != NULL && threadIdx.x == 0) {
        uint32_t n_clipped = 0, n_nonfinite = 0;

#pragma unroll
        for (int warp = 0; warp < PNR_FUSED_LONG_THREADS / 32; warp++) {
            n_clipped += odd_of_warp[warp] & 0xffff;
            n_nonfinite += odd_of_warp[warp] >> 16;
        }
        p.parts[(size_t)window * p.n_tiles + blockIdx.x] = {pnr_fused_sum_warps(energy_of_warp),
                                                            n_clipped, n_nonfinite};
    }
}

/* --- the table of kernels --- */

pnr_fused_long_launch pnr_fused_long_samples(pnr_format format, uint32_t column_bits)
{
    static const struct {
        pnr_format format;
        uint32_t column_bits;
        pnr_fused_long_kernel kernel;
        size_t shared_bytes;
    } table[] = {
#define ROW(bits, type)                                                                            \
    {type::FORMAT, bits, fused_samples<(1 << bits) / 32, type>,                                    \
     pnr_fused_columns<(1 << bits) / 32>::SAMPLES_SHARED}
#define FORMATS(bits) ROW(bits, pnr_fused_ci8), ROW(bits, pnr_fused_ci16), ROW(bits, pnr_fused_cf32)
        FORMATS(5), FORMATS(6), FORMATS(7), FORMATS(8), FORMATS(9),
#undef FORMATS
#undef ROW
    };
    size_t i = 0;

    while (table[i].format != format || table[i].column_bits != column_bits)
        i++;
    assert(i < sizeof table / sizeof *table);
    return {table[i].kernel, PNR_FUSED_LONG_THREADS, table[i].shared_bytes};
}
