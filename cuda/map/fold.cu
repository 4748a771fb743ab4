/* SPDX-License-Identifier: MIT */
/* Computes each base as a weighted sum of windows, term by term. It works for any number of windows
 * and any rows. */
#include "cuda/map/samples.h"

#include "cuda/base/check.h"
#include "cuda/base/mix.h"

extern "C" {
#include "engine/stretch.h"
}

#include <cassert>

enum { TOGETHER = 8, CHUNK = 32, TAKE_BLOCKS = 8192 };
static_assert((int)TOGETHER * (int)CHUNK == (int)PNR_CUDA_THREADS, "a thread loads one weight");

/* Returns sample n of a look as pnr_map_clean does; 0 outside the look. */
static __device__ __forceinline__ float2 clean_of_look(const pnr_map &m, const pnr_map_samples &s,
                                                       size_t look, int64_t n)
{
    const int64_t end = (int64_t)m.n_periods * m.n_samples + (m.n_window - m.n_samples);

    if (n < 0 || n >= end)
        return make_float2(0, 0);

    const uint32_t p = (uint32_t)min(n / m.n_samples, (int64_t)m.n_periods - 1);

    return pnr_map_clean(m, s, look, p, (uint32_t)(n - (int64_t)p * m.n_samples));
}

/* One thread computes one sample of a look at another time scale, see pnr_stretch_at. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    stretch_look(pnr_map m, pnr_map_samples s, size_t look, double stretch, float2 *out)
{
    const uint32_t i = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x, p = blockIdx.y;
    const size_t n_look = (size_t)m.n_periods * m.n_samples, n = (size_t)p * m.n_samples + i;

    if (i >= m.n_window)
        return;

    const double moved = ((double)n - 0.5 * ((double)n_look - 1)) * stretch, whole = floor(moved);
    const double step = (moved - whole) * PNR_STRETCH_STEPS;
    const uint32_t row = min((uint32_t)step, (uint32_t)PNR_STRETCH_STEPS - 1);
    const int64_t first = (int64_t)n + (int64_t)whole - (PNR_STRETCH_TAPS / 2 - 1);
    const float part = (float)(step - row), *low = m.interpolation + row * PNR_STRETCH_TAPS;
    float2 sum = {0, 0};

    for (int t = 0; t < PNR_STRETCH_TAPS; t++) {
        const float weight = fmaf(part, low[t + PNR_STRETCH_TAPS] - low[t], low[t]);
        const float2 x = clean_of_look(m, s, look, first + t);

        sum.x = fmaf(weight, x.x, sum.x);
        sum.y = fmaf(weight, x.y, sum.y);
    }
    out[(size_t)p * m.n_window + i] = sum;
}

/* One thread computes one sample of TOGETHER bases. The windows are read in chunks, with their
 * weights in shared memory. Each chunk has its own sum, so that rounding errors stay small. */
template <bool IS_STRETCHED>
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    fold_windows(pnr_map m, pnr_map_samples s, size_t first_look, uint32_t first_base,
                 uint32_t n_bases, const float2 *stretched, float2 *bases)
{
    const size_t look = first_look + blockIdx.z;
    __shared__ float2 weights[TOGETHER][CHUNK];
    const uint32_t first = first_base + blockIdx.y * TOGETHER;
    const uint32_t count = min((uint32_t)TOGETHER, first_base + n_bases - first);
    const uint32_t n = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x;
    const bool is_inside = n < m.n_window;
    const uint32_t i = is_inside ? n : 0;
    float2 total[TOGETHER] = {};

    for (uint32_t chunk = 0; chunk < m.n_periods; chunk += CHUNK) {
        const uint32_t n_terms = min((uint32_t)CHUNK, m.n_periods - chunk);
        const uint32_t b = threadIdx.x / CHUNK, term = threadIdx.x % CHUNK;
        float2 sum[TOGETHER] = {};

        __syncthreads(); /* all threads have read the previous chunk */
        if (b < count && term < n_terms)
            weights[b][term] = s.windows[look * m.n_periods + chunk + term].is_used
                                   ? m.weights[(size_t)(first + b) * m.n_periods + chunk + term]
                                   : make_float2(0, 0);
        else
            weights[b][term] = make_float2(0, 0);
        __syncthreads();
        for (uint32_t t = 0; t < n_terms; t++) {
            const float2 x = IS_STRETCHED ? stretched[(size_t)(chunk + t) * m.n_window + i]
                                          : pnr_map_clean(m, s, look, chunk + t, i);

#pragma unroll
            for (int k = 0; k < TOGETHER; k++) {
                const float2 w = weights[k][t];

                sum[k].x = fmaf(w.x, x.x, fmaf(-w.y, x.y, sum[k].x));
                sum[k].y = fmaf(w.x, x.y, fmaf(w.y, x.x, sum[k].y));
            }
        }
#pragma unroll
        for (int k = 0; k < TOGETHER; k++)
            total[k] = make_float2(total[k].x + sum[k].x, total[k].y + sum[k].y);
    }
    if (n >= m.n_transform)
        return;
#pragma unroll
    for (uint32_t k = 0; k < TOGETHER; k++) {
        float2 *out = bases + ((size_t)blockIdx.z * m.n_bases + first + k) * m.row_stride;

        if (k >= count)
            break;
        if (is_inside) {
            const float2 z = pnr_cuda_rotate_back(total[k], i * m.turns[first + k]);

            out[n] = z;
            /* The window is extended periodically to 2 N - 1. */
            if (!m.is_linear && m.n_transform > m.n_samples && n + 1 < m.n_samples)
                out[n + m.n_samples] = z;
        } else if (m.is_linear || n + 1 >= 2 * m.n_samples) {
            out[n] = make_float2(0, 0);
        }
    }
}

/* One thread computes sample n of some bases. A look is one window here. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    take_windows(pnr_map m, pnr_map_samples s, size_t first_look, uint32_t n_looks, float2 *bases)
{
    const uint32_t n = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x;
    const bool is_copy = n >= m.n_window;
    const bool is_there = !is_copy || (!m.is_linear && n + 1 < 2 * m.n_window);
    const uint32_t i = !is_there ? 0 : is_copy ? n - m.n_window : n;

    if (n >= m.n_transform)
        return;
    for (uint32_t r = blockIdx.y; r < n_looks * m.n_bases; r += gridDim.y) {
        const uint32_t base = r % m.n_bases;
        const size_t look = first_look + r / m.n_bases;
        const float2 x =
            s.stream != NULL ? pnr_map_clean(m, s, look, 0, i) : pnr_map_raw(m, s, look, 0, i);
        const float2 z = pnr_map_weighted(pnr_map_weight(m, s, look, base), x);
        const uint64_t turns = m.turns[base];

        bases[(size_t)r * m.row_stride + n] = !is_there    ? make_float2(0, 0)
                                              : turns == 0 ? z
                                                           : pnr_cuda_rotate_back(z, i * turns);
    }
}

/* --- the launcher --- */

/* Computes the bases of one look at another time scale. */
static int fold_stretched(const pnr_map *m, const pnr_map_samples *s, size_t look,
                          const pnr_map_stretch *scale, float2 *stretched, float2 *bases,
                          dim3 places, cudaStream_t stream, pnr_error *error)
{
    const dim3 samples((m->n_window + PNR_CUDA_THREADS - 1) / PNR_CUDA_THREADS, m->n_periods);
    int code;

    stretch_look<<<samples, PNR_CUDA_THREADS, 0, stream>>>(*m, *s, look, scale->stretch, stretched);
    if ((code = pnr_cuda_check_launch("stretch_look", error)) != PNR_OK)
        return code;
    fold_windows<true><<<places, PNR_CUDA_THREADS, 0, stream>>>(*m, *s, look, scale->first_base,
                                                                scale->n_bases, stretched, bases);
    return pnr_cuda_check_launch("fold_windows", error);
}

int pnr_map_fold(const pnr_map *m, const pnr_map_samples *s, size_t first_look, size_t n_looks,
                 const pnr_map_stretch *scale, float2 *stretched, float2 *bases,
                 cudaStream_t stream, pnr_error *error)
{
    dim3 places((m->n_transform + PNR_CUDA_THREADS - 1) / PNR_CUDA_THREADS,
                (scale->n_bases + TOGETHER - 1) / TOGETHER, (unsigned)n_looks);
    int code = PNR_OK;

    if (scale->n_bases == m->n_bases && scale->stretch == 0 && m->n_periods == 1) {
        const size_t most = (TAKE_BLOCKS + places.x - 1) / places.x, n = n_looks * m->n_bases;

        assert(n <= UINT32_MAX);
        places = dim3(places.x, (unsigned)(n < most ? n : most));
        take_windows<<<places, PNR_CUDA_THREADS, 0, stream>>>(*m, *s, first_look, (uint32_t)n_looks,
                                                              bases);
        return pnr_cuda_check_launch("take_windows", error);
    }
    assert(places.y <= 65535 && n_looks <= 65535);
    if (scale->stretch == 0) {
        fold_windows<false><<<places, PNR_CUDA_THREADS, 0, stream>>>(
            *m, *s, first_look, scale->first_base, scale->n_bases, NULL, bases);
        return pnr_cuda_check_launch("fold_windows", error);
    }
    assert(m->n_periods <= 65535);
    places.z = 1;
    for (size_t i = 0; code == PNR_OK && i < n_looks; i++)
        code = fold_stretched(m, s, first_look + i, scale, stretched,
                              bases + i * m->n_bases * m->row_stride, places, stream, error);
    return code;
}
