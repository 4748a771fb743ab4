/* SPDX-License-Identifier: MIT */
/* Writes candidates to the results after the search of a map has found them. */
#ifndef PNR_CUDA_MAP_GATHER_H
#define PNR_CUDA_MAP_GATHER_H

#include "cuda/map/place.h"

/* Returns the sum over looks of c conj(centre), divided by sqrt(sum |centre|^2). If there is only
 * one look, returns c itself. stride: the number of values from one look to the next. */
static __device__ float2 pnr_map_joined(const pnr_map &m, const float2 *c, const float2 *centre,
                                        size_t stride)
{
    double re = 0, im = 0, power = 0;

    if (m.n_looks == 1)
        return *c;
    for (uint32_t look = 0; look < m.n_looks; look++) {
        const float2 a = c[look * stride], b = centre[look * stride];

        re += (double)a.x * (double)b.x + (double)a.y * (double)b.y;
        im += (double)a.y * (double)b.x - (double)a.x * (double)b.y;
        power += (double)b.x * (double)b.x + (double)b.y * (double)b.y;
    }

    const double scale = power > 0 ? 1 / sqrt(power) : 0;

    return make_float2((float)(re * scale), (float)(im * scale));
}

/* Writes candidate i of dwell d of the round: its place and power, its neighbours and, if the map
 * has several rows, its patch. key: the key of the candidate. All n_threads threads of a warp or
 * block call this. */
static __device__ __forceinline__ void pnr_map_gather(const pnr_map &m, const pnr_map_search &s,
                                                      uint32_t d, uint32_t i, uint64_t key,
                                                      uint32_t thread, uint32_t n_threads)
{
    const pnr_map_place at(m, pnr_candidate_lag(key));
    const uint32_t code = at.line / m.n_rows, row = at.line % m.n_rows,
                   centre = pnr_map_lag(m, at.cell);
    const size_t out = (size_t)(s.first_dwell + d) * m.max_candidates + i;
    pnr_candidate *candidate = s.results.candidates + out;
    const float2 *values = s.values + (size_t)d * m.n_looks * s.n_cells;
    const float2 *line = values + (size_t)at.line * m.n_cells;
    /* With one row there is no patch. */
    const uint32_t first = m.n_rows > 1 ? 0 : PNR_CANDIDATE_REACH * PNR_NEIGHBOURS;
    const uint32_t n = m.n_rows > 1 ? PNR_NEIGHBOURS * PNR_NEIGHBOURS : PNR_NEIGHBOURS;

    if (thread == 0) {
        candidate->cell = at.cell;
        candidate->code = (uint16_t)code;
        candidate->channel = 0;
        candidate->row = row;
        candidate->power = pnr_candidate_power(key);
    }
    for (uint32_t e = first + thread; e < first + n; e += n_threads) {
        const uint32_t r = row + e / PNR_NEIGHBOURS, j = e % PNR_NEIGHBOURS; /* the row is r - 8 */
        const uint32_t lag = pnr_map_neighbour(m, centre, j);
        float2 value = {0, 0};

        if (r >= PNR_CANDIDATE_REACH && r < m.n_rows + PNR_CANDIDATE_REACH && lag < m.n_lags) {
            const uint32_t other = code * m.n_rows + r - PNR_CANDIDATE_REACH;

            value = pnr_map_joined(m, values + (size_t)other * m.n_cells + lag * m.oversample,
                                   line + centre * m.oversample, s.n_cells);
        }
        if (r == row + PNR_CANDIDATE_REACH) {
            candidate->value[j][0] = value.x;
            candidate->value[j][1] = value.y;
        }
        if (s.results.patches != NULL)
            ((float2 *)s.results.patches)[out * PNR_NEIGHBOURS * PNR_NEIGHBOURS + e] = value;
    }
}

#endif
