/* SPDX-License-Identifier: MIT */
/* Walsh-Hadamard transform of a block: 32 values a thread, exchanged through shared memory. */
#ifndef PNR_CUDA_WALSH_TRANSFORM_H
#define PNR_CUDA_WALSH_TRANSFORM_H

#include "sample.h"
#include "walsh.h"

#include <cuda_runtime.h>

/* Where value e of a block lies in shared memory: one place is left free after 32, so that no
 * access below meets a bank conflict. */
static __device__ __forceinline__ uint32_t pnr_walsh_at(uint32_t e)
{
    return e + (e >> 5);
}

/* The layout SHIFT: a thread holds the values whose index bits SHIFT .. SHIFT + 4 are the register.
 * Its first value, and how far the others are from it in shared memory. */
template <int SHIFT> static __device__ __forceinline__ uint32_t pnr_walsh_first()
{
    return threadIdx.x >> SHIFT << (SHIFT + 5) | (threadIdx.x & ((1u << SHIFT) - 1));
}
template <int SHIFT> static __device__ __forceinline__ constexpr uint32_t pnr_walsh_step(uint32_t r)
{
    return (r << SHIFT) + (r << SHIFT >> 5);
}

template <int SHIFT>
static __device__ __forceinline__ void pnr_walsh_store(float2 *shared,
                                                       const float2 (&v)[PNR_WALSH_EACH])
{
    float2 *at = shared + pnr_walsh_at(pnr_walsh_first<SHIFT>());

#pragma unroll
    for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
        at[pnr_walsh_step<SHIFT>(r)] = v[r];
}

template <int SHIFT>
static __device__ __forceinline__ void pnr_walsh_load(const float2 *shared,
                                                      float2 (&v)[PNR_WALSH_EACH])
{
    const float2 *at = shared + pnr_walsh_at(pnr_walsh_first<SHIFT>());

#pragma unroll
    for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
        v[r] = at[pnr_walsh_step<SHIFT>(r)];
}

/* Sums and differences over the register's bits FROM .. TO - 1. */
template <int FROM, int TO>
static __device__ __forceinline__ void pnr_walsh_butterflies(float2 (&v)[PNR_WALSH_EACH])
{
    if constexpr (FROM < TO) {
#pragma unroll
        for (int i = 0; i < PNR_WALSH_EACH; i++) {
            if ((i >> FROM & 1) == 0) {
                const float2 a = v[i], b = v[i + (1 << FROM)];

                v[i] = make_float2(a.x + b.x, a.y + b.y);
                v[i + (1 << FROM)] = make_float2(a.x - b.x, a.y - b.y);
            }
        }
        pnr_walsh_butterflies<FROM + 1, TO>(v);
    }
}

/* From layout FROM to layout TO; a thread stores only where it last loaded. */
template <int FROM, int TO>
static __device__ __forceinline__ void pnr_walsh_exchange(float2 *shared,
                                                          float2 (&v)[PNR_WALSH_EACH])
{
    pnr_walsh_store<FROM>(shared, v);
    __syncthreads();
    pnr_walsh_load<TO>(shared, v);
}

/* The transform over the low BITS index bits, 5 to 13, from layout 0 to layout BITS - 5. */
template <int BITS>
static __device__ __forceinline__ void pnr_walsh_transform(float2 *shared,
                                                           float2 (&v)[PNR_WALSH_EACH])
{
    pnr_walsh_butterflies<0, 5>(v);
    if constexpr (BITS > 5 && BITS <= 10) {
        pnr_walsh_exchange<0, BITS - 5>(shared, v);
        pnr_walsh_butterflies<10 - BITS, 5>(v);
    }
    if constexpr (BITS > 10) {
        pnr_walsh_exchange<0, 5>(shared, v);
        pnr_walsh_butterflies<0, 5>(v);
        pnr_walsh_exchange<5, BITS - 5>(shared, v);
        pnr_walsh_butterflies<15 - BITS, 5>(v);
    }
}

/* --- samples, and what is measured of them --- */

/* Integers: energy without rounding; the greatest magnitude tells whether any may be clipped. */
template <typename T> struct pnr_walsh_measure {
    uint64_t energy = 0;
    float greatest = 0;

    __device__ __forceinline__ float2 take(pnr_cuda_pair<T> x)
    {
        const int i = x.i, q = x.q;
        const float2 v = make_float2((float)i, (float)q);

        energy += (uint32_t)(i * i) + (uint32_t)(q * q);
        greatest = fmaxf(greatest, fmaxf(fabsf(v.x), fabsf(v.y)));
        return v;
    }
    __device__ __forceinline__ bool is_odd() const
    {
        return greatest >= (float)(sizeof(T) == 1 ? INT8_MAX : INT16_MAX);
    }
    /* Clipped in the lower half, non-finite in the upper one. */
    static __device__ __forceinline__ uint32_t odd(pnr_cuda_pair<T> x)
    {
        return pnr_cuda_is_end(x.i) || pnr_cuda_is_end(x.q);
    }
};

template <> struct pnr_walsh_measure<float> {
    double energy = 0;
    bool has_nonfinite = false;

    __device__ __forceinline__ float2 take(pnr_cuda_pair<float> x)
    {
        if (!isfinite(x.i) || !isfinite(x.q)) {
            has_nonfinite = true;
            return make_float2(0.0f, 0.0f);
        }
        energy = fma((double)x.i, (double)x.i, fma((double)x.q, (double)x.q, energy));
        return make_float2(x.i, x.q);
    }
    __device__ __forceinline__ bool is_odd() const
    {
        return has_nonfinite;
    }
    static __device__ __forceinline__ uint32_t odd(pnr_cuda_pair<float> x)
    {
        return !isfinite(x.i) || !isfinite(x.q) ? 0x10000 : 0;
    }
};

/* The sum over the TEAM threads of a window, TEAM a power of two; all threads of the block call,
 * each gets its window's. Always in the same order. scratch: [block's warps], shared. */
template <int TEAM, typename T> static __device__ __forceinline__ T pnr_walsh_sum(T x, T *scratch)
{
    for (int lane = (TEAM < 32 ? TEAM : 32) / 2; lane > 0; lane /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, lane);
    if constexpr (TEAM > 32) {
        T total = 0;

        __syncthreads(); /* the last sum has been read */
        if (threadIdx.x % 32 == 0)
            scratch[threadIdx.x / 32] = x;
        __syncthreads();
        for (int warp = 0; warp < TEAM / 32; warp++)
            total += scratch[warp];
        x = total;
    }
    return x;
}

static __device__ __forceinline__ float pnr_walsh_power(float2 c)
{
    return fmaf(c.x, c.x, c.y * c.y);
}

#endif
