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

/* Returns sample n of a look or of its margins, see stretch.h. n is -M .. (samples of the look) + M
 * - 1. Inside the look this is the sample of pnr_map_clean. In the margins the samples are repeated
 * periodically and fade out. */
static __device__ __forceinline__ float2 extended(const pnr_map &m, const pnr_map_samples &s,
                                                  size_t look, int64_t n)
{
    const int64_t period = m.n_samples;
    const int64_t end = (int64_t)m.n_periods * period + (m.n_window - m.n_samples);
    const int64_t beyond = n < 0 ? -n : n - end + 1;
    const int64_t i = n < 0     ? period - 1 - (-n - 1) % period
                      : n < end ? n
                                : end - period + (n - end) % period;
    const uint32_t p = (uint32_t)min(i / period, (int64_t)m.n_periods - 1);
    const float2 x = pnr_map_clean(m, s, look, p, (uint32_t)(i - (int64_t)p * period));
    const int64_t left = (int64_t)m.margin + 1 - beyond;
    const float sine =
        left > PNR_STRETCH_FADE ? 1 : sinpif((float)left / (2 * (PNR_STRETCH_FADE + 1)));

    return make_float2(sine * sine * x.x, sine * sine * x.y);
}

/* One thread writes one of the L values: a sample of the look or of its margins, or 0. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    take_look(pnr_map m, pnr_map_samples s, size_t look, float2 *samples, float2 *halves)
{
    const uint32_t i = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x;
    const uint64_t n = (uint64_t)m.n_periods * m.n_samples + (m.n_window - m.n_samples);

    if (i < m.n_doubling)
        samples[i] = halves[i] = i < n + 2 * (uint64_t)m.margin
                                     ? extended(m, s, look, (int64_t)i - m.margin)
                                     : make_float2(0, 0);
}

static __host__ __device__ __forceinline__ bool has_band(const pnr_map &m)
{
    return m.band[1] > m.band[0];
}

/* Returns true if a stretched look contains bin v, by the rule of pnr_stretch_keeps. */
static __device__ __forceinline__ bool keeps_bin(const pnr_map &m, uint32_t v)
{
    const double at = (double)v / (double)m.n_doubling;
    const double above = at - m.band[0] - floor(at - m.band[0]);

    return 2 * (uint64_t)v != m.n_doubling &&
           (!has_band(m) || (above > 0 && above < m.band[1] - m.band[0]));
}

/* One thread multiplies one bin of a look by the weight of pnr_stretch_half. With a band the thread
 * also writes the bin to `samples`, divided by L, or 0 outside of the band. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    shift_bins(pnr_map m, float2 *samples, float2 *halves)
{
    const uint32_t length = m.n_doubling, v = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x;

    if (v >= length)
        return;

    const double at = 2 * (uint64_t)v < length ? (double)v : (double)v - length;
    const float scale = keeps_bin(m, v) ? 1 / (float)length : 0;
    const float2 x = halves[v];
    float c, d;

    sincospif((float)(at / length), &d, &c);
    halves[v] = make_float2((x.x * c - x.y * d) * scale, (x.x * d + x.y * c) * scale);
    if (has_band(m))
        samples[v] = make_float2(x.x * scale, x.y * scale);
}

/* One thread computes one sample of a look at another time scale, see pnr_stretch_at. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    stretch_look(pnr_map m, double stretch, const float2 *samples, const float2 *halves,
                 float2 *out)
{
    const uint32_t i = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x, p = blockIdx.y;
    const size_t n_look = (size_t)m.n_periods * m.n_samples, n = (size_t)p * m.n_samples + i;

    if (i >= m.n_window)
        return;

    const double moved = (2 * (double)n - ((double)n_look - 1)) * stretch, whole = floor(moved);
    const double step = (moved - whole) * PNR_STRETCH_STEPS;
    const uint32_t row = min((uint32_t)step, (uint32_t)PNR_STRETCH_STEPS - 1);
    const int64_t first = 2 * (int64_t)n + (int64_t)whole - (PNR_STRETCH_TAPS / 2 - 1);
    const float part = (float)(step - row), *low = m.interpolation + row * PNR_STRETCH_TAPS;
    float2 sum = {0, 0};

    for (int t = 0; t < PNR_STRETCH_TAPS; t++) {
        const float weight = fmaf(part, low[t + PNR_STRETCH_TAPS] - low[t], low[t]);
        const int64_t at = first + t;
        const float2 x = ((at & 1) == 0 ? samples : halves)[(at >> 1) + m.margin];

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
            /* The window is extended periodically to 2 N - 1 samples. */
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

static dim3 blocks_of(uint32_t n)
{
    return dim3((n + PNR_CUDA_THREADS - 1) / PNR_CUDA_THREADS);
}

/* Computes the samples of a look at n + 1/2. If the samples are limited to a band, also computes
 * the limited samples at n. */
static int double_look(const pnr_map *m, const pnr_map_samples *s, size_t look,
                       const pnr_map_stretching *with, cudaStream_t stream, pnr_error *error)
{
    const dim3 blocks = blocks_of(m->n_doubling);
    int code;

    take_look<<<blocks, PNR_CUDA_THREADS, 0, stream>>>(*m, *s, look, with->samples, with->halves);
    if ((code = pnr_cuda_check_launch("take_look", error)) != PNR_OK ||
        (code = pnr_cuda_transforms_run(&with->transforms, with->halves, 1, CUFFT_FORWARD,
                                        error)) != PNR_OK)
        return code;
    shift_bins<<<blocks, PNR_CUDA_THREADS, 0, stream>>>(*m, with->samples, with->halves);
    code = pnr_cuda_check_launch("shift_bins", error);
    if (code == PNR_OK && has_band(*m))
        code = pnr_cuda_transforms_run(&with->transforms, with->samples, 1, CUFFT_INVERSE, error);
    return code == PNR_OK
               ? pnr_cuda_transforms_run(&with->transforms, with->halves, 1, CUFFT_INVERSE, error)
               : code;
}

/* Returns the blocks that compute the bases of n_looks looks at one time scale. */
static dim3 places_of(const pnr_map *m, const pnr_map_stretch *scale, size_t n_looks)
{
    const uint32_t groups = (scale->n_bases + TOGETHER - 1) / TOGETHER;

    assert(groups <= 65535 && n_looks <= 65535);
    return dim3(blocks_of(m->n_transform).x, groups, (unsigned)n_looks);
}

/* Computes the bases of one look at all time scales with a stretch. bases: the bases of this
 * look. */
static int fold_stretched(const pnr_map *m, const pnr_map_samples *s, size_t look,
                          const pnr_map_plan *tables, const pnr_map_stretching *with, float2 *bases,
                          cudaStream_t stream, pnr_error *error)
{
    const dim3 samples(blocks_of(m->n_window).x, m->n_periods);
    int code = double_look(m, s, look, with, stream, error);

    assert(m->n_periods <= 65535);
    for (size_t i = 0; code == PNR_OK && i < tables->n_stretches; i++) {
        const pnr_map_stretch *scale = &tables->stretches[i];

        if (scale->stretch == 0)
            continue;
        stretch_look<<<samples, PNR_CUDA_THREADS, 0, stream>>>(*m, scale->stretch, with->samples,
                                                               with->halves, with->stretched);
        if ((code = pnr_cuda_check_launch("stretch_look", error)) != PNR_OK)
            return code;
        fold_windows<true><<<places_of(m, scale, 1), PNR_CUDA_THREADS, 0, stream>>>(
            *m, *s, look, scale->first_base, scale->n_bases, with->stretched, bases);
        code = pnr_cuda_check_launch("fold_windows", error);
    }
    return code;
}

/* Computes the bases of looks of one window, at one time scale. */
static int take_looks(const pnr_map *m, const pnr_map_samples *s, size_t first_look, size_t n_looks,
                      float2 *bases, cudaStream_t stream, pnr_error *error)
{
    const dim3 samples = blocks_of(m->n_transform);
    const size_t most = (TAKE_BLOCKS + samples.x - 1) / samples.x, n = n_looks * m->n_bases;

    assert(n <= UINT32_MAX);
    take_windows<<<dim3(samples.x, (unsigned)(n < most ? n : most)), PNR_CUDA_THREADS, 0, stream>>>(
        *m, *s, first_look, (uint32_t)n_looks, bases);
    return pnr_cuda_check_launch("take_windows", error);
}

int pnr_map_fold(const pnr_map *m, const pnr_map_samples *s, size_t first_look, size_t n_looks,
                 const pnr_map_plan *tables, const pnr_map_stretching *with, float2 *bases,
                 cudaStream_t stream, pnr_error *error)
{
    int code = PNR_OK;

    if (m->margin == 0 && m->n_periods == 1)
        return take_looks(m, s, first_look, n_looks, bases, stream, error);
    for (size_t i = 0; code == PNR_OK && i < tables->n_stretches; i++) {
        const pnr_map_stretch *scale = &tables->stretches[i];

        if (scale->stretch != 0)
            continue;
        fold_windows<false><<<places_of(m, scale, n_looks), PNR_CUDA_THREADS, 0, stream>>>(
            *m, *s, first_look, scale->first_base, scale->n_bases, NULL, bases);
        code = pnr_cuda_check_launch("fold_windows", error);
    }
    for (size_t i = 0; code == PNR_OK && m->margin > 0 && i < n_looks; i++)
        code = fold_stretched(m, s, first_look + i, tables, with,
                              bases + i * m->n_bases * m->row_stride, stream, error);
    return code;
}
