/* SPDX-License-Identifier: MIT */
/* The middle steps of a map around a library's transforms: spectra multiplied, values kept. */
#include "cuda/map/values.h"

#include "cuda/base/check.h"
#include "cuda/map/cfar.h"

#include <cassert>

/* --- kernels --- */

__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    multiply_lines(pnr_map m, pnr_map_part part, const float2 *bases, const float2 *spectra,
                   float2 *out)
{
    const uint32_t v = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x;

    if (v >= m.n_transform)
        return;
    for (uint32_t i = blockIdx.y; i < part.n_lines; i += gridDim.y) {
        const uint32_t line = part.first + i, code = line / m.n_rows;
        const pnr_map_row row = m.rows[line % m.n_rows];
        const uint32_t from =
            v + row.shift < m.n_transform ? v + row.shift : v + row.shift - m.n_transform;
        const float2 z = bases[(size_t)row.base * m.row_stride + from];
        const float2 a = spectra[((size_t)code * m.oversample + part.half) * m.n_transform + v];

        out[(size_t)i * m.row_stride + v] =
            make_float2(fmaf(z.x, a.x, -z.y * a.y), fmaf(z.x, a.y, z.y * a.x));
    }
}

__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    keep_lines(pnr_map m, pnr_map_part part, const float2 *lines, float2 *values, float *power)
{
    const uint32_t lag = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x;

    if (lag >= m.n_lags)
        return;
    for (uint32_t i = blockIdx.y; i < part.n_lines; i += gridDim.y) {
        const size_t at = (size_t)(part.first + i) * m.n_cells + lag * m.oversample + part.half;
        float2 c = {0, 0};

        if (!m.is_filtered)
            c = lines[(size_t)i * m.row_stride + lag];
        else if (pnr_map_in_gate(m, lag))
            c = lines[(size_t)i * m.gate_count +
                      (lag >= m.gate_first ? lag - m.gate_first : lag + m.n_lags - m.gate_first)];

        const float p = fmaf(c.x, c.x, c.y * c.y);

        values[at] = c;
        power[at] = part.look == 0 ? p : power[at] + p;
    }
}

/* --- the launchers --- */

static dim3 grid_for(size_t n_values, const pnr_map_part *part)
{
    return dim3((unsigned)((n_values + PNR_CUDA_THREADS - 1) / PNR_CUDA_THREADS),
                part->n_lines < 65535 ? part->n_lines : 65535);
}

int pnr_map_multiply(const pnr_map *m, const pnr_map_part *part, const float2 *bases,
                     const float2 *spectra, float2 *out, cudaStream_t stream, pnr_error *error)
{
    assert(part->n_lines >= 1 && part->first + part->n_lines <= m->n_codes * m->n_rows);
    multiply_lines<<<grid_for(m->n_transform, part), PNR_CUDA_THREADS, 0, stream>>>(
        *m, *part, bases, spectra, out);
    return pnr_cuda_check_launch("multiply_lines", error);
}

int pnr_map_keep(const pnr_map *m, const pnr_map_part *part, const float2 *lines, float2 *values,
                 float *power, cudaStream_t stream, pnr_error *error)
{
    assert(part->n_lines >= 1 && part->first + part->n_lines <= m->n_codes * m->n_rows);
    keep_lines<<<grid_for(m->n_lags, part), PNR_CUDA_THREADS, 0, stream>>>(*m, *part, lines, values,
                                                                           power);
    return pnr_cuda_check_launch("keep_lines", error);
}
