/* SPDX-License-Identifier: MIT */
/* Places in a map: lines, cells, lags, and the neighbours of a candidate. */
#ifndef PNR_CUDA_MAP_PLACE_H
#define PNR_CUDA_MAP_PLACE_H

#include "cuda/map/search.h"
#include "cuda/steps/candidates.h"

/* The place of cell number `at`. Cells are numbered by code, row, and cell of the row. */
struct pnr_map_place {
    uint32_t line; /* code * n_rows + row */
    uint32_t cell;

    __device__ __forceinline__ pnr_map_place(const pnr_map &m, uint32_t at)
        : line(m.n_codes * m.n_rows == 1 ? 0 : at / m.n_cells), cell(at - line * m.n_cells)
    {
    }
};

static __device__ __forceinline__ uint32_t pnr_map_lag(const pnr_map &m, uint32_t cell)
{
    return cell >> (m.oversample - 1);
}

static __device__ __forceinline__ uint32_t pnr_map_centre(const pnr_map &m, uint64_t key)
{
    return pnr_map_lag(m, pnr_map_place(m, pnr_candidate_lag(key)).cell);
}

/* Returns the lag of neighbour j of a lag. If a linear correlation has no such neighbour, returns
 * n_lags. */
static __device__ __forceinline__ uint32_t pnr_map_neighbour(const pnr_map &m, uint32_t lag,
                                                             uint32_t j)
{
    if (!m.is_linear)
        return (lag + m.n_lags - PNR_CANDIDATE_REACH % m.n_lags + j) % m.n_lags;
    return lag + j < PNR_CANDIDATE_REACH || lag + j - PNR_CANDIDATE_REACH >= m.n_lags
               ? m.n_lags
               : lag + j - PNR_CANDIDATE_REACH;
}

static __device__ __forceinline__ bool pnr_map_is_real(const pnr_map_search &s, uint32_t d)
{
    return s.first_dwell + d < s.job->n_dwells;
}

#endif
