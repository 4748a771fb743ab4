/* SPDX-License-Identifier: MIT */
/* Writes the candidates of large maps, and whole maps on request, to the results. */
#include "cuda/map/gather.h"

#include "cuda/base/check.h"

#include <cassert>

enum { RETURN_BLOCKS = 1024 };

/* --- kernels --- */

/* One block writes one candidate. The first block writes the dwell too. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) gather_maps(pnr_map m, pnr_map_search s)
{
    const uint32_t i = blockIdx.x, d = blockIdx.y, dwell = s.first_dwell + d;

    if (!pnr_map_is_real(s, d))
        return; /* the whole block returns */
    if (i == 0 && threadIdx.x == 0)
        s.results.dwells[dwell] = s.dwells[dwell].sums;
    if (i < s.dwells[dwell].sums.n_candidates)
        pnr_map_gather(m, s, d, i, s.keys[(size_t)d * s.n_tiles * s.tile_keys + i], threadIdx.x,
                       PNR_CUDA_THREADS);
}

/* Writes the whole map. A complex map has the values of the last used look, or 0 if no look is
 * used. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) return_maps(pnr_map m, pnr_map_search s)
{
    const uint32_t d = blockIdx.y, dwell = s.first_dwell + d;
    const uint32_t look = s.dwells[dwell].last_look;

    if (!pnr_map_is_real(s, d))
        return; /* the whole block returns */
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

/* --- the launchers --- */

int pnr_map_return(const pnr_map *m, const pnr_map_search *s, cudaStream_t stream, pnr_error *error)
{
    assert(s->n_dwells >= 1 && s->n_dwells <= 65535);
    gather_maps<<<dim3(m->max_candidates, s->n_dwells), PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    return pnr_cuda_check_launch("gather_maps", error);
}

int pnr_map_return_all(const pnr_map *m, const pnr_map_search *s, cudaStream_t stream,
                       pnr_error *error)
{
    if (s->results.profile == NULL)
        return PNR_OK;
    assert(s->n_dwells >= 1 && s->n_dwells <= 65535);
    return_maps<<<dim3(RETURN_BLOCKS, s->n_dwells), PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    return pnr_cuda_check_launch("return_maps", error);
}
