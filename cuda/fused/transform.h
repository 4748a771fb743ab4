/* SPDX-License-Identifier: MIT */
/* Transforms of 2 to 32 values in the registers of one thread. The butterflies multiply by the
 * twiddles. */
#ifndef PNR_CUDA_FUSED_TRANSFORM_H
#define PNR_CUDA_FUSED_TRANSFORM_H

#include <cstdint>
#include <cuda_runtime.h>

/*
 * Every pass of the fused method transforms R values of a thread:
 *   out[j] = sum_k in[k] w^k W_R^(jk),   W_R = exp(-2 pi i / R)
 * w is the base twiddle of the thread. The pass is a radix-2 decimation in time. The stage of span
 * m multiplies by w^(R/m) W_m^j, j < m/2. A butterfly with any twiddle takes six fused
 * multiply-adds. So w adds no operations on the values. Only R/2 twiddles must be computed from w.
 *
 * The inverse transform uses the same passes. Real and imaginary part are swapped in its input and
 * in its results.
 */

/* Return cos(pi q / 16) for q = 0..8, cos(pi q / 16) for q = 0..16, and sin(pi q / 16) for q =
 * 0..16. The functions are not recursive: nvcc would call a recursive function in every butterfly,
 * and each call would move the values from registers to memory. */
__host__ __device__ constexpr float pnr_fused_cos_low(int q)
{
    return q == 0   ? 1.0f
           : q == 1 ? 0.98078528040323043f
           : q == 2 ? 0.92387953251128674f
           : q == 3 ? 0.83146961230254524f
           : q == 4 ? 0.70710678118654752f
           : q == 5 ? 0.55557023301960222f
           : q == 6 ? 0.38268343236508977f
           : q == 7 ? 0.19509032201612825f
                    : 0.0f;
}
__host__ __device__ constexpr float pnr_fused_cos(int q)
{
    return q <= 8 ? pnr_fused_cos_low(q) : -pnr_fused_cos_low(16 - q);
}
__host__ __device__ constexpr float pnr_fused_sin(int q)
{
    return q <= 8 ? pnr_fused_cos_low(8 - q) : pnr_fused_cos_low(q - 8);
}

/* Reverses the bits of i < n. A decimation in time begins with value reversed(i) at place i. */
__host__ __device__ constexpr int pnr_fused_reversed(int i, int n)
{
    int reversed = 0;

    for (int bit = 1; bit < n; bit *= 2) {
        reversed = reversed * 2 + (i & 1);
        i >>= 1;
    }
    return reversed;
}

static __device__ __forceinline__ float2 pnr_fused_product(float2 a, float2 b)
{
    return make_float2(fmaf(a.x, b.x, -a.y * b.y), fmaf(a.x, b.y, a.y * b.x));
}

/* Returns |c|^2. The real and imaginary part of c are swapped, as after an inverse transform. */
static __device__ __forceinline__ float pnr_fused_power(float2 swapped)
{
    return fmaf(swapped.y, swapped.y, swapped.x * swapped.x);
}

static __device__ __forceinline__ float2 pnr_fused_square(float2 a)
{
    return make_float2(fmaf(a.x, a.x, -a.y * a.y), (a.x + a.x) * a.y);
}

/* Returns exp(-2 pi i index / n). per_index is 2 / n, and n is a power of two, so that the argument
 * of sincospif is exact. */
static __device__ __forceinline__ float2 pnr_fused_twiddle(uint32_t index, float per_index)
{
    float s, c;

    sincospif((float)index * per_index, &s, &c);
    return make_float2(c, -s);
}

/* --- butterflies: a + w b replaces a, and a - w b replaces b --- */

static __device__ __forceinline__ void pnr_fused_pair(float2 &a, float2 &b)
{
    const float2 t = b;

    b = make_float2(a.x - t.x, a.y - t.y);
    a = make_float2(a.x + t.x, a.y + t.y);
}

/* The butterfly with w = -i. */
static __device__ __forceinline__ void pnr_fused_pair_quarter(float2 &a, float2 &b)
{
    const float2 t = make_float2(b.y, -b.x);

    b = make_float2(a.x - t.x, a.y - t.y);
    a = make_float2(a.x + t.x, a.y + t.y);
}

static __device__ __forceinline__ void pnr_fused_pair_by(float2 &a, float2 &b, float wx, float wy)
{
    const float x = fmaf(-wy, b.y, fmaf(wx, b.x, a.x));
    const float y = fmaf(wy, b.x, fmaf(wx, b.y, a.y));

    b = make_float2(fmaf(2.0f, a.x, -x), fmaf(2.0f, a.y, -y));
    a = make_float2(x, y);
}

/* --- transforms with base twiddle 1 --- */

/* These templates are recursive, since nvcc does not unroll a loop over the spans. */
template <int R, int SPAN> static __device__ __forceinline__ void pnr_fused_stages(float2 (&a)[R])
{
    if constexpr (SPAN <= R) {
#pragma unroll
        for (int i = 0; i < R / 2; i++) {
            const int j = i % (SPAN / 2), at = i / (SPAN / 2) * SPAN + j, q = j * (32 / SPAN);

            if (q == 0)
                pnr_fused_pair(a[at], a[at + SPAN / 2]);
            else if (q == 8)
                pnr_fused_pair_quarter(a[at], a[at + SPAN / 2]);
            else
                pnr_fused_pair_by(a[at], a[at + SPAN / 2], pnr_fused_cos(q), -pnr_fused_sin(q));
        }
        pnr_fused_stages<R, SPAN * 2>(a);
    }
}

/* Replaces v[j] by sum_k v[k] W_R^(jk). */
template <int R> static __device__ __forceinline__ void pnr_fused_transform(float2 (&v)[R])
{
    float2 a[R];

#pragma unroll
    for (int i = 0; i < R; i++)
        a[i] = v[pnr_fused_reversed(i, R)];
    pnr_fused_stages<R, 2>(a);
#pragma unroll
    for (int i = 0; i < R; i++)
        v[i] = a[i];
}

/* --- transforms with any base twiddle w --- */

/* Derives the twiddles of the stages. set[0] is the twiddle of span 2. set[m/4 + j], j < m/4, is
 * the twiddle w^(R/m) W_m^j of span m >= 4. The second half of a span, j >= m/4, is -i times the
 * first half and is not stored. */
template <int R, int SPAN>
static __device__ __forceinline__ void pnr_fused_derive_spans(float2 w, float2 (&set)[R / 2])
{
    if constexpr (SPAN >= 2) {
        constexpr int first = SPAN == 2 ? 0 : SPAN / 4;

        set[first] = w;
#pragma unroll
        for (int j = 1; j < SPAN / 4; j++) {
            const int q = j * (32 / SPAN);

            set[first + j] = pnr_fused_product(w, make_float2(pnr_fused_cos(q), -pnr_fused_sin(q)));
        }
        if constexpr (SPAN > 2)
            pnr_fused_derive_spans<R, SPAN / 2>(pnr_fused_square(w), set);
    }
}

template <int R>
static __device__ __forceinline__ void pnr_fused_derive(float2 w, float2 (&set)[R / 2])
{
    pnr_fused_derive_spans<R, R>(w, set);
}

template <int R, int SPAN>
static __device__ __forceinline__ void pnr_fused_stages_by(float2 (&a)[R],
                                                           const float2 (&set)[R / 2])
{
    if constexpr (SPAN <= R) {
        constexpr int first = SPAN == 2 ? 0 : SPAN / 4, n = SPAN == 2 ? 1 : SPAN / 4;

#pragma unroll
        for (int i = 0; i < R / 2; i++) {
            const int j = i % (SPAN / 2), at = i / (SPAN / 2) * SPAN + j;

            if (j < n) {
                const float2 w = set[first + j];

                pnr_fused_pair_by(a[at], a[at + SPAN / 2], w.x, w.y);
            } else {
                const float2 w = set[first + j - n];

                pnr_fused_pair_by(a[at], a[at + SPAN / 2], w.y, -w.x);
            }
        }
        pnr_fused_stages_by<R, SPAN * 2>(a, set);
    }
}

/* Replaces v[j] by sum_k v[k] w^k W_R^(jk). set: the output of pnr_fused_derive(w). */
template <int R>
static __device__ __forceinline__ void pnr_fused_transform_by(float2 (&v)[R],
                                                              const float2 (&set)[R / 2])
{
    float2 a[R];

#pragma unroll
    for (int i = 0; i < R; i++)
        a[i] = v[pnr_fused_reversed(i, R)];
    pnr_fused_stages_by<R, 2>(a, set);
#pragma unroll
    for (int i = 0; i < R; i++)
        v[i] = a[i];
}

template <int R>
static __device__ __forceinline__ void pnr_fused_transform_at(float2 (&v)[R], float2 w)
{
    float2 set[R / 2];

    pnr_fused_derive<R>(w, set);
    pnr_fused_transform_by<R>(v, set);
}

/* --- more accurate transforms: squaring w adds errors, so all w^(2^i) are given --- */

__host__ __device__ constexpr int pnr_fused_bits(int n)
{
    int bits = 0;

    while (1 << bits < n)
        bits++;
    return bits;
}

template <int R, int SPAN>
static __device__ __forceinline__ void
pnr_fused_set_spans(const float2 (&powers)[pnr_fused_bits(R)], float2 (&set)[R / 2])
{
    if constexpr (SPAN >= 2) {
        constexpr int first = SPAN == 2 ? 0 : SPAN / 4;
        const float2 w = powers[pnr_fused_bits(R / SPAN)];

        set[first] = w;
#pragma unroll
        for (int j = 1; j < SPAN / 4; j++) {
            const int q = j * (32 / SPAN);

            set[first + j] = pnr_fused_product(w, make_float2(pnr_fused_cos(q), -pnr_fused_sin(q)));
        }
        pnr_fused_set_spans<R, SPAN / 2>(powers, set);
    }
}

/* Replaces v[j] by sum_k v[k] w^k W_R^(jk). powers[i]: w^(2^i). */
template <int R>
static __device__ __forceinline__ void
pnr_fused_transform_with(float2 (&v)[R], const float2 (&powers)[pnr_fused_bits(R)])
{
    float2 set[R / 2];

    pnr_fused_set_spans<R, R>(powers, set);
    pnr_fused_transform_by<R>(v, set);
}

/* --- a pass in shared memory --- */

/* Does the middle pass of the forward or inverse transform in place. A thread does 32 / M
 * transforms of M points, two at a time. transform_pair(q, a, b) does two transforms: `a` begins at
 * place 2 M q and `b` at place 2 M q + 1. The next point of a transform is PART places further.
 * Only one warp reads and writes these places. */
template <int M, int PART, class TRANSFORM>
static __device__ __forceinline__ void pnr_fused_middle(float2 *middle, TRANSFORM transform_pair)
{
#pragma unroll
    for (int q = 0; q < 16 / M; q++) {
        float2 a[M], b[M];

#pragma unroll
        for (int n = 0; n < M; n++) {
            const float4 x = *(const float4 *)(middle + n * PART + 2 * M * q);

            a[n] = make_float2(x.x, x.y);
            b[n] = make_float2(x.z, x.w);
        }
        transform_pair(q, a, b);
#pragma unroll
        for (int n = 0; n < M; n++)
            *(float4 *)(middle + n * PART + 2 * M * q) =
                make_float4(a[n].x, a[n].y, b[n].x, b[n].y);
    }
    __syncwarp();
}

#endif
