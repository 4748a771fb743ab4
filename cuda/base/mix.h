/* SPDX-License-Identifier: MIT */
/* Rotates samples by a phase, and adds values with compensation. */
#ifndef PNR_CUDA_MIX_H
#define PNR_CUDA_MIX_H

#include <cstdint>
#include <cuda_runtime.h>

/* Returns x exp(-2 pi i phase / 2^64). Whole quarter turns are exact. The rest is at most 1/8 turn.
 * The rest is rounded to a float, with an error of at most 5e-8 rad. sincospif adds an error of one
 * ulp. */
static inline __device__ float2 pnr_cuda_rotate_back(float2 x, uint64_t phase)
{
    const uint64_t quarter = (phase + (UINT64_C(1) << 61)) >> 62;
    const int64_t rest = (int64_t)(phase - (quarter << 62));
    float s, c;

    sincospif((float)(int32_t)(rest >> 32) * 0x1p-31f, &s, &c);
    x = make_float2(fmaf(x.x, c, x.y * s), fmaf(x.y, c, -x.x * s));
    /* Multiplies by exp(-i pi/2 quarter): each quarter is a factor of -i. */
    switch (quarter & 3) {
    case 1:
        return make_float2(x.y, -x.x);
    case 2:
        return make_float2(-x.x, -x.y);
    case 3:
        return make_float2(-x.y, x.x);
    default:
        return x;
    }
}

/* Adds with compensation (W. Kahan, 1965), so that a sum of many periods keeps its precision. */
static inline __device__ void pnr_cuda_add(float x, float *sum, float *lost)
{
    const float y = x - *lost;
    const float total = *sum + y;

    *lost = (total - *sum) - y;
    *sum = total;
}

#endif
