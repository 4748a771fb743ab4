/* SPDX-License-Identifier: MIT */
/* Generates samples on the device: noise from a hashed counter, and an echo in every window. */
#include "cuda/bench/resident.h"

#include "cuda/base/check.h"
#include "cuda/base/sample.h"

#include <algorithm>

enum { THREADS = 256, MAX_BLOCKS = 4096 };

typedef struct field {
    void *raw;
    const float2 *codes;           /* [n_codes][N] */
    const uint32_t *lags;          /* [n_dwells] */
    const double *bins;            /* [n_rows], cycles in N samples */
    size_t n_samples;              /* samples of all windows */
    uint32_t n;                    /* N, samples of a window */
    uint32_t n_periods, n_windows; /* periods of a look, windows of a dwell */
    uint32_t n_codes, n_rows;
    uint32_t n_channels;
    uint64_t seed;
    float scale, offset; /* value = (raw + offset) * scale; full scale is 1 */
} field;

/* Hashes a counter: the last step of splitmix64 (G. Steele, D. Lea, C. Flood, 2014). */
static __device__ uint64_t mix(uint64_t z)
{
    z *= UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns a nearly normal value of variance 1: the scaled sum of the four 16-bit parts of r. */
static __device__ float normal(uint64_t r)
{
    const int sum = (int)(r & 0xffff) + (int)(r >> 16 & 0xffff) + (int)(r >> 32 & 0xffff) +
                    (int)(r >> 48) - 2 * 65535;

    return (float)sum * (1.0f / (65536.0f * 0.577350269f));
}

/* Converts a value (full scale is 1) to a raw value of the format. Integers are rounded, and
 * clipped at the ends of their range. */
template <typename T> static __device__ T quantise(float v, float scale, float offset)
{
    const bool is_signed = T(-1) < T(0);
    const float all = sizeof(T) == 1 ? 255.0f : 65535.0f;
    const float low = is_signed ? -(all + 1) / 2 : 0.0f;

    return (T)fminf(fmaxf(rintf(v / scale - offset), low), low + all);
}
template <> __device__ float quantise<float>(float v, float, float)
{
    return v;
}
template <> __device__ double quantise<double>(float v, float, float)
{
    return v;
}

template <class FORMAT> __global__ void __launch_bounds__(THREADS) fill_windows(field f)
{
    typedef typename FORMAT::component T;
    constexpr bool IS_COMPLEX = FORMAT::HAS_Q;

    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < f.n_samples;
         i += (size_t)gridDim.x * THREADS) {
        const uint64_t window = i / f.n;
        const uint32_t n = (uint32_t)(i % f.n), lag = f.lags[window / f.n_windows];
        const float2 a =
            f.codes[(size_t)(lag % f.n_codes) * f.n + (n >= lag ? n - lag : n + f.n - lag)];
        const uint64_t steady = window - window % f.n_periods;
        const double moved = f.bins[lag % f.n_rows] * (double)(i - steady * f.n) / f.n;
        const float noise = 0.2f * 0.707106781f; /* sigma of I and of Q */
        float s, c;
        /* For a format without Q the phase is 0 or pi, so that I has the full power of the echo. */
        const uint64_t turn = mix(f.seed + ~steady) >> (IS_COMPLEX ? 40 : 63);

        sincospif((float)turn * (IS_COMPLEX ? 0x1p-23f : 1.0f) +
                      2.0f * (float)(moved - floor(moved)),
                  &s, &c);

        const float re = 0.2f * (a.x * c - a.y * s) + noise * normal(mix(f.seed + 2 * i));
        const float im = 0.2f * (a.x * s + a.y * c) + noise * normal(mix(f.seed + 2 * i + 1));

        for (uint32_t channel = 0; channel < f.n_channels; channel++) {
            const size_t at = i * f.n_channels + channel;

            if (IS_COMPLEX)
                ((pnr_cuda_pair<T> *)f.raw)[at] = {quantise<T>(re, f.scale, f.offset),
                                                   quantise<T>(im, f.scale, f.offset)};
            else
                ((T *)f.raw)[at] = quantise<T>(re, f.scale, f.offset);
        }
    }
}

int pnr_cuda_bench_fill(const pnr_plan *plan, void *raw, const float2 *codes, const uint32_t *lags,
                        const double *bins, size_t n_rows, uint64_t seed, cudaStream_t stream,
                        pnr_error *error)
{
    const pnr_format_info *format = pnr_format_get(plan->format);
    const size_t n_samples = plan->batch * pnr_plan_windows(plan) * plan->n_samples;
    const size_t n_blocks = std::min<size_t>((n_samples + THREADS - 1) / THREADS, MAX_BLOCKS);
    field f = {};

    f.raw = raw;
    f.codes = codes;
    f.bins = bins;
    f.n_codes = (uint32_t)plan->n_codes;
    f.n_rows = (uint32_t)n_rows;
    f.n_windows = (uint32_t)pnr_plan_windows(plan);
    f.lags = lags;
    f.n_samples = n_samples;
    f.n = (uint32_t)plan->n_samples;
    f.n_periods = (uint32_t)plan->n_periods;
    f.n_channels = (uint32_t)plan->n_channels;
    f.seed = seed;
    f.scale = (float)format->scale;
    f.offset = (float)format->offset;
    pnr_cuda_launch_for(plan->format, [&](auto of_format) {
        fill_windows<decltype(of_format)><<<(unsigned)n_blocks, THREADS, 0, stream>>>(f);
    });
    return pnr_cuda_check_launch("fill_windows", error);
}
