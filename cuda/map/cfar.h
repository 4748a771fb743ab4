/* SPDX-License-Identifier: MIT */
/* Constant false alarm rate (CFAR) on a map: a cell is compared with its training cells. */
#ifndef PNR_CUDA_MAP_CFAR_H
#define PNR_CUDA_MAP_CFAR_H

#include "cuda/map/map.h"

static __device__ __forceinline__ bool pnr_map_in_gate(const pnr_map &m, uint32_t lag)
{
    return (lag >= m.gate_first ? lag - m.gate_first : lag + m.n_lags - m.gate_first) <
           m.gate_count;
}

/* Compares the cells of one line, which is a row of a code, with their training cells. */
struct pnr_map_level {
    const pnr_map &m;
    const float *line;    /* powers of the line */
    const double *factor; /* [cells before][cells after], each 0 .. training */
    uint32_t row;

    __device__ __forceinline__ pnr_map_level(const pnr_map &map, const float *power,
                                             uint32_t looks_used, uint32_t line_)
        : m(map), line(power + (size_t)line_ * map.n_cells), factor(NULL), row(line_ % map.n_rows)
    {
        const size_t side = map.training + 1;

        if (map.factor != NULL && looks_used > 0)
            factor = map.factor + (looks_used - 1) * side * side;
    }

    /* Returns the training cell at `distance` before or after a cell; NULL: there is none. */
    __device__ __forceinline__ const float *cell_at(uint32_t cell, uint32_t distance,
                                                    bool is_after) const
    {
        if (m.cfar_axis == PNR_CFAR_ALONG_ROWS) {
            if (is_after ? distance >= m.n_rows - row : distance > row)
                return NULL;
            return is_after ? line + cell + (size_t)distance * m.n_cells
                            : line + cell - (size_t)distance * m.n_cells;
        }

        const uint32_t lag = cell / m.oversample, n = m.n_lags;
        uint32_t other;

        if (m.is_linear) {
            if (is_after ? distance >= n - lag : distance > lag)
                return NULL;
            other = is_after ? lag + distance : lag - distance;
        } else {
            other = (is_after ? lag + distance % n : lag + n - distance % n) % n;
        }
        if (m.is_filtered && !pnr_map_in_gate(m, other))
            return NULL;
        return line + other * m.oversample + cell % m.oversample;
    }

    /* Returns true if a cell is full: it has all training cells along the lags on both sides. */
    __device__ __forceinline__ bool is_full(uint32_t cell) const
    {
        const uint32_t lag = cell >> (m.oversample - 1);
        const uint32_t reach = m.guard + 1 + (m.training - 1) * m.stride;

        return !m.is_linear || (lag >= reach && m.n_lags - lag > reach);
    }

    /* Returns true if lower bounds of the sums before and after a cell also give a lower bound of
     * its level. Then the search can reject a full cell without its exact level. */
    __device__ __forceinline__ bool has_screen() const
    {
        return factor != NULL && m.cfar_axis != PNR_CFAR_ALONG_ROWS && m.cfar_kind != PNR_CFAR_OS &&
               !m.is_filtered;
    }
    __device__ __forceinline__ double full_factor() const
    {
        return factor[m.training * (m.training + 1) + m.training];
    }
    /* The level of a full cell (factor times Z, see plan.h) is at least this value times side_of().
     * The number 1 - 1e-4 covers all rounding errors in single precision. */
    __device__ __forceinline__ float least_factor() const
    {
        return (float)(full_factor() * (1 - 1e-4) / m.training);
    }
    /* A quad is four adjacent cells, and distances are in quads. At distances near() to far() - 1
     * from a quad, on both sides, all cells are training cells of all four cells of the quad.
     * has_quads() returns true if such distances exist. */
    __device__ __forceinline__ uint32_t near() const
    {
        return (m.guard + 7) / 4;
    }
    __device__ __forceinline__ uint32_t far() const
    {
        return (m.guard + 1 + m.training) / 4;
    }
    __device__ __forceinline__ bool has_quads() const
    {
        return m.stride * m.oversample == 1 && near() < far();
    }
    /* Combines the sums of both sides of a full cell. The level of the cell is proportional to the
     * returned value. */
    __device__ __forceinline__ float side_of(float before, float after) const
    {
        return m.cfar_kind == PNR_CFAR_CA   ? 0.5f * (before + after)
               : m.cfar_kind == PNR_CFAR_GO ? fmaxf(before, after)
                                            : fminf(before, after);
    }

    __device__ __forceinline__ double level_of(uint32_t n_before, uint32_t n_after, double before,
                                               double after) const
    {
        if (m.cfar_kind == PNR_CFAR_CA || n_before == 0 || n_after == 0)
            return (before + after) / (double)(n_before + n_after);
        before /= (double)n_before;
        after /= (double)n_after;
        return m.cfar_kind == PNR_CFAR_GO ? fmax(before, after) : fmin(before, after);
    }

    /* Returns true if the training cells lie along the lags, all of them exist, and no index of
     * them wraps more than once. Then they can be loaded without a test before each load. */
    __device__ __forceinline__ bool is_plain(uint32_t cell) const
    {
        return m.cfar_axis != PNR_CFAR_ALONG_ROWS && !m.is_filtered && is_full(cell) &&
               m.guard + 1 + (m.training - 1) * m.stride < m.n_lags;
    }

    /* Returns true if a cell exceeds its level. The kind OS compares the cell's power P with f
     * z(r), where f is the factor and z(r) is the r-th smallest training value. No sorting is
     * needed: P exceeds f z(r) if P exceeds f z for at least r training values z. */
    __device__ bool is_above(uint32_t cell, float power) const
    {
        return is_plain(cell) ? is_above_plain(cell, power) : is_above_any(cell, power);
    }

    __device__ __forceinline__ bool decide(float power, double f, uint32_t n_before,
                                           uint32_t n_after, double before, double after,
                                           uint32_t n_below) const
    {
        if (m.cfar_kind == PNR_CFAR_OS)
            return n_below >= (3 * (n_before + n_after) + 3) / 4;
        return (double)power > f * level_of(n_before, n_after, before, after);
    }

    __device__ __forceinline__ bool is_above_plain(uint32_t cell, float power) const
    {
        const double f = full_factor(), here = (double)power;
        const uint32_t lag = cell / m.oversample, half = cell % m.oversample, n = m.n_lags;
        uint32_t n_below = 0;
        double before = 0, after = 0;

#pragma unroll 8
        for (uint32_t i = 0; i < m.training; i++) {
            const uint32_t distance = m.guard + 1 + i * m.stride;
            const uint32_t low = lag >= distance ? lag - distance : lag + n - distance;
            const uint32_t high = lag + distance < n ? lag + distance : lag + distance - n;
            const double x = (double)line[low * m.oversample + half];
            const double y = (double)line[high * m.oversample + half];

            before += x;
            after += y;
            if (m.cfar_kind == PNR_CFAR_OS)
                n_below += (here > f * x) + (here > f * y);
        }
        return decide(power, f, m.training, m.training, before, after, n_below);
    }

    __device__ bool is_above_any(uint32_t cell, float power) const
    {
        uint32_t n_before = 0, n_after = 0, n_below = 0;
        double before = 0, after = 0;

#pragma unroll 1
        for (uint32_t i = 0; i < m.training; i++) {
            n_before += cell_at(cell, m.guard + 1 + i * m.stride, false) != NULL;
            n_after += cell_at(cell, m.guard + 1 + i * m.stride, true) != NULL;
        }
        if (n_before + n_after == 0)
            return false;

        const double f = factor[n_before * (m.training + 1) + n_after], here = (double)power;

#pragma unroll 1
        for (uint32_t i = 0; i < m.training; i++) {
            const float *x = cell_at(cell, m.guard + 1 + i * m.stride, false);
            const float *y = cell_at(cell, m.guard + 1 + i * m.stride, true);

            if (x != NULL) {
                before += (double)*x;
                n_below += here > f * (double)*x;
            }
            if (y != NULL) {
                after += (double)*y;
                n_below += here > f * (double)*y;
            }
        }
        return decide(power, f, n_before, n_after, before, after, n_below);
    }
};

#endif
