/* SPDX-License-Identifier: MIT */
/* Reads one sample of any format on the device, as pnr_format_read does on the host. */
#ifndef PNR_CUDA_SAMPLE_H
#define PNR_CUDA_SAMPLE_H

#include "cuda/base/pnr.h"

#include <cassert>
#include <cuda_runtime.h>

/* The samples of one submit on the device. */
typedef struct pnr_cuda_samples {
    const void *raw; /* [n_windows * n_samples][n_channels] in the plan's format */
    pnr_format format;
    uint32_t n_samples; /* N, samples of a window */
    uint32_t n_channels;
    uint32_t channel;    /* the channel that is correlated */
    float scale, offset; /* value = (raw + offset) * scale; full scale is 1 */
} pnr_cuda_samples;

typedef struct pnr_cuda_sample {
    float2 value; /* full scale = 1; 0 when not finite */
    bool is_clipped;
    bool is_finite; /* also false for a double beyond the range of a float */
} pnr_cuda_sample;

/* I and Q of one sample, read by one load. */
template <typename T> struct alignas(2 * sizeof(T)) pnr_cuda_pair {
    T i, q;
};

static inline __device__ bool pnr_cuda_is_end(int8_t v)
{
    return v == INT8_MIN || v == INT8_MAX;
}
static inline __device__ bool pnr_cuda_is_end(uint8_t v)
{
    return v == 0 || v == UINT8_MAX;
}
static inline __device__ bool pnr_cuda_is_end(int16_t v)
{
    return v == INT16_MIN || v == INT16_MAX;
}
static inline __device__ bool pnr_cuda_is_end(float)
{
    return false;
}
static inline __device__ bool pnr_cuda_is_end(double)
{
    return false;
}

static inline __device__ pnr_cuda_sample pnr_cuda_make_sample(float i, float q, bool is_clipped)
{
    pnr_cuda_sample sample;

    sample.is_finite = isfinite(i) && isfinite(q);
    sample.is_clipped = is_clipped;
    sample.value = sample.is_finite ? make_float2(i, q) : make_float2(0.0f, 0.0f);
    return sample;
}

/* A format defines the type of a component, and whether a sample has a Q component. */
template <typename T, bool IS_COMPLEX> struct pnr_cuda_format {
    typedef T component;
    static constexpr bool HAS_Q = IS_COMPLEX;

    /* index: number of the sample in the submit */
    static __device__ pnr_cuda_sample read(const pnr_cuda_samples &s, size_t index)
    {
        const size_t at = index * s.n_channels + s.channel;

        if (IS_COMPLEX) {
            const pnr_cuda_pair<T> v = ((const pnr_cuda_pair<T> *)s.raw)[at];

            return pnr_cuda_make_sample(((float)v.i + s.offset) * s.scale,
                                        ((float)v.q + s.offset) * s.scale,
                                        pnr_cuda_is_end(v.i) || pnr_cuda_is_end(v.q));
        }

        const T v = ((const T *)s.raw)[at];

        return pnr_cuda_make_sample(((float)v + s.offset) * s.scale, 0.0f, pnr_cuda_is_end(v));
    }
};

/* X(format, type in memory, is complex) */
#define PNR_CUDA_FORMATS(X)                                                                        \
    X(PNR_FORMAT_CI8, int8_t, true)                                                                \
    X(PNR_FORMAT_CU8, uint8_t, true)                                                               \
    X(PNR_FORMAT_CI16, int16_t, true)                                                              \
    X(PNR_FORMAT_CF32, float, true)                                                                \
    X(PNR_FORMAT_CF64, double, true)                                                               \
    X(PNR_FORMAT_I8, int8_t, false)                                                                \
    X(PNR_FORMAT_U8, uint8_t, false)                                                               \
    X(PNR_FORMAT_I16, int16_t, false)                                                              \
    X(PNR_FORMAT_F32, float, false)                                                                \
    X(PNR_FORMAT_F64, double, false)

/* Reads a sample of any format, for kernels that are not compiled for each format. */
static inline __device__ pnr_cuda_sample pnr_cuda_read(const pnr_cuda_samples &s, size_t index)
{
    switch (s.format) {
#define CASE(format, type, is_complex)                                                             \
    case format:                                                                                   \
        return pnr_cuda_format<type, is_complex>::read(s, index);
        PNR_CUDA_FORMATS(CASE)
#undef CASE
    default:
        return pnr_cuda_make_sample(0.0f, 0.0f, false);
    }
}

/* Calls launch(pnr_cuda_format), which launches the kernel of that format. */
template <class LAUNCH> static inline void pnr_cuda_launch_for(pnr_format format, LAUNCH launch)
{
    switch (format) {
#define CASE(format, type, is_complex)                                                             \
    case format:                                                                                   \
        return launch(pnr_cuda_format<type, is_complex>());
        PNR_CUDA_FORMATS(CASE)
#undef CASE
    default:
        assert(!"a format");
    }
}

#endif
