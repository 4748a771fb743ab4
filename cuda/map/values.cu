/* SPDX-License-Identifier: MIT */
/* The steps of a map before and after the inverse transforms of cuFFT: multiply the spectra, copy
 * the values and sum their powers. */
#include "cuda/map/values.h"

#include "cuda/base/check.h"
#include "cuda/map/cfar.h"

#include <cassert>

enum {
    MOST_BLOCKS =
        /* enough blocks for the whole device; each block computes several lines, because the start
         * of a block takes time */
    8192,
    PLACES = 4, /* values of a line that a thread computes; they share the divisions that find the
                 * line */
    BLOCK_PLACES = PLACES * PNR_CUDA_THREADS
};

/* --- kernels --- */

/* The dwell, half lag, code, row and look of line number i of a round. */
struct map_line_place {
    uint32_t dwell, half, line, look; /* line: code * n_rows + row */

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
    const uint32_t first = blockIdx.x * BLOCK_PLACES + threadIdx.x;

    for (uint32_t i = blockIdx.y; i < part.n_lines; i += gridDim.y) {
        const map_line_place at(m, part.first + i);
        const pnr_map_row row = m.rows[at.line % m.n_rows];
        const size_t look = (size_t)at.dwell * m.n_looks + at.look;
        const size_t code = at.line / m.n_rows;
        const float2 *base = bases + (look * m.n_bases + row.base) * m.row_stride;
        const float2 *spectrum = spectra + (code * m.oversample + at.half) * m.n_transform;
        float2 z[PLACES], a[PLACES];

        /* All loads precede the stores, which may overwrite the loaded values. */
#pragma unroll
        for (uint32_t e = 0; e < PLACES; e++) {
            const uint32_t v = min(first + e * PNR_CUDA_THREADS, m.n_transform - 1);
            const uint32_t from = v + row.shift;

            z[e] = base[from < m.n_transform ? from : from - m.n_transform];
            a[e] = spectrum[v];
        }
#pragma unroll
        for (uint32_t e = 0; e < PLACES; e++) {
            const uint32_t v = first + e * PNR_CUDA_THREADS;

            if (v < m.n_transform)
                out[(size_t)i * m.row_stride + v] = make_float2(
                    fmaf(z[e].x, a[e].x, -z[e].y * a[e].y), fmaf(z[e].x, a[e].y, z[e].y * a[e].x));
        }
    }
}

/* Returns c of a line at a lag. With a filter, returns 0 outside of the gate. */
static __device__ __forceinline__ float2 value_at(const pnr_map &m, const float2 *line,
                                                  uint32_t lag)
{
    if (!m.is_filtered)
        return line[lag];
    if (!pnr_map_in_gate(m, lag))
        return make_float2(0, 0);
    return line[lag >= m.gate_first ? lag - m.gate_first : lag + m.n_lags - m.gate_first];
}

/* A thread copies c at PLACES lags of a row of a code to `values`, for each look, and adds up the
 * powers of these looks. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    keep_lines(pnr_map m, pnr_map_part part, const float2 *__restrict__ lines,
               float2 *__restrict__ values, float *__restrict__ power)
{
    const uint32_t first_lag = blockIdx.x * BLOCK_PLACES + threadIdx.x;
    const uint32_t n_lines = m.n_codes * m.n_rows, end = part.first + part.n_lines;
    const uint32_t stride = m.is_filtered ? m.gate_count : m.row_stride;
    const uint32_t last = (end - 1) / m.n_looks;

    for (uint32_t g = part.first / m.n_looks + blockIdx.y; g <= last; g += gridDim.y) {
        const uint32_t first = max(g * m.n_looks, part.first);
        const uint32_t after = min((g + 1) * m.n_looks, end);
        const map_line_place place(m, first);
        float *own = power + ((size_t)place.dwell * n_lines + place.line) * m.n_cells + place.half;
        float sum[PLACES];

#pragma unroll
        for (uint32_t e = 0; e < PLACES; e++) {
            const uint32_t lag = first_lag + e * PNR_CUDA_THREADS;

            sum[e] = place.look == 0 || lag >= m.n_lags ? 0.0f : own[lag * m.oversample];
        }
        for (uint32_t i = first; i < after; i++) {
            const size_t look = (size_t)place.dwell * m.n_looks + place.look + (i - first);
            const size_t to = (look * n_lines + place.line) * m.n_cells + place.half;
            float2 c[PLACES];

#pragma unroll
            for (uint32_t e = 0; e < PLACES; e++)
                c[e] = value_at(m, lines + (size_t)(i - part.first) * stride,
                                min(first_lag + e * PNR_CUDA_THREADS, m.n_lags - 1));
#pragma unroll
            for (uint32_t e = 0; e < PLACES; e++) {
                const uint32_t lag = first_lag + e * PNR_CUDA_THREADS;

                if (values != NULL && lag < m.n_lags)
                    values[to + lag * m.oversample] = c[e];
                sum[e] += fmaf(c[e].x, c[e].x, c[e].y * c[e].y);
            }
        }
#pragma unroll
        for (uint32_t e = 0; e < PLACES; e++) {
            const uint32_t lag = first_lag + e * PNR_CUDA_THREADS;

            if (lag < m.n_lags)
                own[lag * m.oversample] = sum[e];
        }
    }
}

/* --- the launchers --- */

static dim3 grid_for(size_t n_values, const pnr_map_part *part)
{
    const size_t wide = (n_values + BLOCK_PLACES - 1) / BLOCK_PLACES;
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
