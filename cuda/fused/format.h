/* SPDX-License-Identifier: MIT */
/* Sample formats of the fused methods. Values are raw; the spectrum contains their scale. */
#ifndef PNR_CUDA_FUSED_FORMAT_H
#define PNR_CUDA_FUSED_FORMAT_H

#include "cuda/base/sample.h"

/* Each format defines the type `word` of a sample in memory, value(word) and is_clipped(word).
 * may_clip(raw, v) is a cheap test of the 32 samples of a thread. If it returns false, none of them
 * is clipped, and the kernel need not count the clipped samples. */

typedef struct pnr_fused_ci16 {
    typedef int word;
    static constexpr pnr_format FORMAT = PNR_FORMAT_CI16;
    static constexpr bool IS_FLOAT = false;
    /* After the addition of 0x7fff modulo 2^16, the two ends of the range are the two greatest
     * values. One instruction adds and computes the maximum. Four separate maxima need not wait for
     * each other. */
    static __device__ __forceinline__ bool may_clip(const word (&raw)[32], const float2 (&)[32])
    {
        unsigned greatest[4] = {};

#pragma unroll
        for (int j = 0; j < 32; j++)
            greatest[j % 4] = __viaddmax_u16x2((unsigned)raw[j], 0x7fff7fffu, greatest[j % 4]);

        const unsigned all =
            __vmaxu2(__vimax3_u16x2(greatest[0], greatest[1], greatest[2]), greatest[3]);

        return all >= 0xfffe0000u || (all & 0xffffu) >= 0xfffeu;
    }
    /* This is in assembly language, because the compiler would convert each value twice instead of
     * storing it in a register. The unit for 16 bits converts I and the unit for 32 bits converts
     * Q, so that both units work at the same time. */
    static __device__ __forceinline__ float2 value(word w)
    {
        float2 v;

        asm("{.reg .b16 i, q; .reg .b32 t; mov.b32 {i, q}, %2; shr.s32 t, %2, 16;"
            "cvt.rn.f32.s16 %0, i; cvt.rn.f32.s32 %1, t;}"
            : "=f"(v.x), "=f"(v.y)
            : "r"(w));
        return v;
    }
    static __device__ __forceinline__ bool is_clipped(word w)
    {
        return pnr_cuda_is_end((int16_t)(w & 0xffff)) || pnr_cuda_is_end((int16_t)(w >> 16));
    }
} pnr_fused_ci16;

typedef struct pnr_fused_ci8 {
    typedef short word;
    static constexpr pnr_format FORMAT = PNR_FORMAT_CI8;
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
    static __device__ __forceinline__ bool is_clipped(word w)
    {
        return pnr_cuda_is_end((int8_t)(w & 0xff)) || pnr_cuda_is_end((int8_t)(w >> 8));
    }
} pnr_fused_ci8;

typedef struct pnr_fused_cf32 {
    typedef float2 word;
    static constexpr pnr_format FORMAT = PNR_FORMAT_CF32;
    static constexpr bool IS_FLOAT = true;
    static __device__ __forceinline__ bool may_clip(const word (&)[32], const float2 (&)[32])
    {
        return false;
    }
    static __device__ __forceinline__ float2 value(word w)
    {
        return w;
    }
    static __device__ __forceinline__ bool is_clipped(word)
    {
        return false;
    }
} pnr_fused_cf32;

#endif
