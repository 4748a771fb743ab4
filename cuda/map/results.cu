/* SPDX-License-Identifier: MIT */
/* What a map's search has found, with its neighbours and patches, and the whole map when it is
 * asked for, to the results. */
#include "cuda/map/place.h"

#include "cuda/base/check.h"

#include <cassert>

enum { PATCH = PNR_NEIGHBOURS * PNR_NEIGHBOURS, RETURN_BLOCKS = 1024 };

/* --- kernels --- */

/* Sum over looks c conj(c[0]) / sqrt(P[0]), c itself where there is one look. stride: of a look. */
static __device__ float2 joined(const pnr_map &m, const float2 *c, const float2 *centre,
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

/* One block a candidate: its head, its neighbours, and with several rows those around it. The first
 * one's block returns the dwell too. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) gather_maps(pnr_map m, pnr_map_search s)
{
    const uint32_t i = blockIdx.x, d = blockIdx.y, dwell = s.first_dwell + d;
    const pnr_map_dwell *state = s.dwells + dwell;
    const uint64_t key = s.keys[(size_t)d * s.n_tiles * s.tile_keys + i];

    if (!pnr_map_is_real(s, d))
        return; /* the whole block */
    if (i == 0 && threadIdx.x == 0)
        s.results.dwells[dwell] = state->sums;
    if (i >= state->sums.n_candidates)
        return; /* the whole block */

    const pnr_map_place at(m, pnr_candidate_lag(key));
    const uint32_t code = at.line / m.n_rows, row = at.line % m.n_rows,
                   centre = pnr_map_lag(m, at.cell);
    const size_t out = (size_t)dwell * m.max_candidates + i;
    pnr_candidate *candidate = s.results.candidates + out;
    const float2 *values = s.values + (size_t)d * m.n_looks * s.n_cells;
    const float2 *line = values + (size_t)at.line * m.n_cells;

    if (threadIdx.x == 0) {
        candidate->cell = at.cell;
        candidate->code = (uint16_t)code;
        candidate->channel = 0;
        candidate->row = row;
        candidate->power = pnr_candidate_power(key);
    }
    for (uint32_t e = threadIdx.x; e < PATCH; e += PNR_CUDA_THREADS) {
        const uint32_t r = row + e / PNR_NEIGHBOURS, j = e % PNR_NEIGHBOURS; /* r: 8 too many */
        const uint32_t lag = pnr_map_neighbour(m, centre, j);
        float2 value = {0, 0};

        if (r >= PNR_CANDIDATE_REACH && r < m.n_rows + PNR_CANDIDATE_REACH && lag < m.n_lags) {
            const uint32_t other = code * m.n_rows + r - PNR_CANDIDATE_REACH;

            value = joined(m, values + (size_t)other * m.n_cells + lag * m.oversample,
                           line + centre * m.oversample, s.n_cells);
        }
        if (r == row + PNR_CANDIDATE_REACH) {
            candidate->value[j][0] = value.x;
            candidate->value[j][1] = value.y;
        }
        if (s.results.patches != NULL)
            ((float2 *)s.results.patches)[out * PATCH + e] = value;
    }
}

/* The whole map, when it is asked for; complex of the last look used, 0 when there is none. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) return_maps(pnr_map m, pnr_map_search s)
{
    const uint32_t d = blockIdx.y, dwell = s.first_dwell + d;
    const uint32_t look = s.dwells[dwell].last_look;

    if (!pnr_map_is_real(s, d))
        return; /* the whole block */
    for (uint32_t i = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x; i < s.n_cells;
         i += gridDim.x * PNR_CUDA_THREADS) {
        const size_t at = (size_t)dwell * s.n_cells + i;

        if (s.wants_power)
            s.results.profile[at] = s.power[(size_t)d * s.n_cells + i];
        else
            ((float2 *)s.results.profile)[at] =
                look < m.n_looks ? s.values[((size_t)d * m.n_looks + look) * s.n_cells + i]
                                 : make_float2(0, 0);
    }
}

/* --- the launcher --- */

int pnr_map_return(const pnr_map *m, const pnr_map_search *s, cudaStream_t stream, pnr_error *error)
{
    int code;

    assert(s->n_dwells >= 1 && s->n_dwells <= 65535);
    gather_maps<<<dim3(m->max_candidates, s->n_dwells), PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    if ((code = pnr_cuda_check_launch("gather_maps", error)) != PNR_OK ||
        s->results.profile == NULL)
        return code;
    return_maps<<<dim3(RETURN_BLOCKS, s->n_dwells), PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    return pnr_cuda_check_launch("return_maps", error);
}
