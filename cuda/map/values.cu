/* SPDX-License-Identifier: MIT */
/* The steps of a map around the transforms of cuFFT: spectra are multiplied, values are kept. */
#include "cuda/map/values.h"

#include "cuda/base/check.h"
#include "cuda/map/cfar.h"

#include <cassert>

/* This many blocks fill a device. Each takes several lines, so that its start costs little. */
enum { MOST_BLOCKS = 8192 };

/* --- kernels --- */

/* The place of line i of a round. */
struct map_line_place {
    uint32_t dwell, half, line, look; /* line: code n_rows + row */

    __device__ __forceinline__ map_line_place(const pnr_map &m, uint32_t i)
    {
        const uint32_t n_lines = m.n_codes * m.n_rows, of_looks = i / m.n_looks;

        look = i % m.n_looks;
        line = of_looks % n_lines;
        half = of_looks / n_lines % m.oversample;
        dwell = of_looks / n_lines / m.oversample;
    }
};

__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    multiply_lines(pnr_map m, pnr_map_part part, const float2 *bases,
                   const float2 *__restrict__ spectra, float2 *out)
{
    const uint32_t v = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x;

    if (v >= m.n_transform)
        return;
#pragma unroll 2
    for (uint32_t i = blockIdx.y; i < part.n_lines; i += gridDim.y) {
        const map_line_place at(m, part.first + i);
        const uint32_t code = at.line / m.n_rows;
        const pnr_map_row row = m.rows[at.line % m.n_rows];
        const uint32_t from =
            v + row.shift < m.n_transform ? v + row.shift : v + row.shift - m.n_transform;
        const size_t base = ((size_t)at.dwell * m.n_looks + at.look) * m.n_bases + row.base;
        const float2 z = bases[base * m.row_stride + from];
        const float2 a = spectra[((size_t)code * m.oversample + at.half) * m.n_transform + v];

        out[(size_t)i * m.row_stride + v] =
            make_float2(fmaf(z.x, a.x, -z.y * a.y), fmaf(z.x, a.y, z.y * a.x));
    }
}

/* A thread adds up the looks of a line at one lag. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    keep_lines(pnr_map m, pnr_map_part part, const float2 *__restrict__ lines,
               float2 *__restrict__ values, float *__restrict__ power)
{
    const uint32_t lag = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x;
    const uint32_t n_lines = m.n_codes * m.n_rows, end = part.first + part.n_lines;
    const uint32_t last = (end - 1) / m.n_looks;

    if (lag >= m.n_lags)
        return;
    for (uint32_t g = part.first / m.n_looks + blockIdx.y; g <= last; g += gridDim.y) {
        const uint32_t first = max(g * m.n_looks, part.first);
        const map_line_place place(m, first);
        const uint32_t cell = lag * m.oversample + place.half;
        const size_t at = ((size_t)place.dwell * n_lines + place.line) * m.n_cells + cell;
        float sum = place.look == 0 ? 0 : power[at];

#pragma unroll 4
        for (uint32_t i = first; i < min((g + 1) * m.n_looks, end); i++) {
            const size_t look = (size_t)place.dwell * m.n_looks + place.look + (i - first);
            const size_t line = i - part.first;
            float2 c = {0, 0};

            if (!m.is_filtered)
                c = lines[line * m.row_stride + lag];
            else if (pnr_map_in_gate(m, lag))
                c = lines[line * m.gate_count + (lag >= m.gate_first
                                                     ? lag - m.gate_first
                                                     : lag + m.n_lags - m.gate_first)];
            if (values != NULL)
                values[(look * n_lines + place.line) * m.n_cells + cell] = c;
            sum += fmaf(c.x, c.x, c.y * c.y);
        }
        power[at] = sum;
    }
}

/* --- the launchers --- */

static dim3 grid_for(size_t n_values, const pnr_map_part *part)
{
    const size_t wide = (n_values + PNR_CUDA_THREADS - 1) / PNR_CUDA_THREADS;
    const size_t most = (MOST_BLOCKS + wide - 1) / wide;

    return dim3((unsigned)wide, (unsigned)(part->n_lines < most ? part->n_lines : most));
}

int pnr_map_multiply(const pnr_map *m, const pnr_map_part *part, const float2 *bases,
                     const float2 *spectra, float2 *out, cudaStream_t stream, pnr_error *error)
{
    assert(part->n_lines >= 1);
    multiply_lines<<<grid_for(m->n_transform, part), PNR_CUDA_THREADS, 0, stream>>>(
        *m, *part, bases, spectra, out);
    return pnr_cuda_check_launch("multiply_lines", error);
}

int pnr_map_keep(const pnr_map *m, const pnr_map_part *part, const float2 *lines, float2 *values,
                 float *power, cudaStream_t stream, pnr_error *error)
{
    assert(part->n_lines >= 1);
    keep_lines<<<grid_for(m->n_lags, part), PNR_CUDA_THREADS, 0, stream>>>(*m, *part, lines, values,
                                                                           power);
    return pnr_cuda_check_launch("keep_lines", error);
}
