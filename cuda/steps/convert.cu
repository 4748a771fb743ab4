/* SPDX-License-Identifier: MIT */
/* The convert step: converts raw samples to the rows that are transformed. */
#include "cuda/steps/convert.h"

#include "cuda/base/check.h"
#include "cuda/base/mix.h"
#include "cuda/steps/energy.h"

#include <cassert>

enum { PLACES = 4 }; /* samples of a row that a thread writes */

/* Returns sample n of a row, summed over the used windows of the row. */
template <typename FORMAT>
static __device__ float2 converted(const pnr_cuda_conversion &c, size_t first_window,
                                   uint32_t n_windows, uint32_t n)
{
    const uint32_t n_samples = c.samples.n_samples;
    float2 sum = {0, 0}, lost = {0, 0};

    for (size_t w = first_window; w < first_window + n_windows; w++) {
        const pnr_cuda_window window = c.windows[w];

        if (!pnr_cuda_is_used(window, c.sums[w], n_samples))
            continue;

        float2 x = FORMAT::read(c.samples, w * n_samples + n).value;

        if (c.is_conjugated)
            x.y = -x.y;
        if (c.is_tuned)
            x = pnr_cuda_rotate_back(x, window.phase + n * c.step);
        pnr_cuda_add(x.x, &sum.x, &lost.x);
        pnr_cuda_add(x.y, &sum.y, &lost.y);
    }
    return sum;
}

template <typename FORMAT>
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    convert_rows(pnr_cuda_conversion c, uint32_t row_windows, uint32_t n_rows, uint32_t n_transform,
                 uint32_t row_stride, float2 *rows)
{
    const uint32_t n_samples = c.samples.n_samples;
    const uint32_t first = blockIdx.x * (PLACES * PNR_CUDA_THREADS) + threadIdx.x;

    for (uint32_t row = blockIdx.y; row < n_rows; row += gridDim.y) {
        float2 *out = rows + (size_t)row * row_stride;

        for (uint32_t i = 0; i < PLACES; i++) {
            const uint32_t n = first + i * PNR_CUDA_THREADS;

            if (n < n_samples) {
                const float2 x = converted<FORMAT>(c, (size_t)row * row_windows, row_windows, n);

                out[n] = x;
                if (n_transform > n_samples && n + 1 < n_samples)
                    out[n_samples + n] = x;
            } else if (n + 1 >= 2 * n_samples && n < n_transform) {
                out[n] = make_float2(0.0f, 0.0f);
            }
        }
    }
}

/* --- the launcher --- */

int pnr_cuda_convert(const pnr_cuda_shape *shape, const pnr_cuda_conversion *conversion,
                     size_t n_dwells, float2 *rows, cudaStream_t stream, pnr_error *error)
{
    const size_t n_rows = n_dwells * shape->n_looks;
    const size_t block = PLACES * PNR_CUDA_THREADS;
    const dim3 grid((unsigned)((shape->n_transform + block - 1) / block),
                    (unsigned)(n_rows < 65535 ? n_rows : 65535));

    assert(n_dwells >= 1 && n_dwells <= shape->batch);
    assert(shape->n_transform == shape->n_samples ||
           shape->n_transform >= 2 * shape->n_samples - 1);
    pnr_cuda_launch_for(conversion->samples.format, [&](auto of_format) {
        convert_rows<decltype(of_format)><<<grid, PNR_CUDA_THREADS, 0, stream>>>(
            *conversion, (uint32_t)(shape->n_periods / shape->n_looks), (uint32_t)n_rows,
            (uint32_t)shape->n_transform, (uint32_t)shape->row_stride, rows);
    });
    return pnr_cuda_check_launch("convert_rows", error);
}
