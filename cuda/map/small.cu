/* SPDX-License-Identifier: MIT */
/* The search of small maps in one kernel: a warp or a block searches one dwell. */
#include "cuda/map/small.h"

#include "cuda/base/check.h"

#include <cassert>

enum { WARP_CELLS = 2048 /* greatest number of cells of a dwell that one warp searches */ };

template <int WARPS>
__global__ void __launch_bounds__(PNR_CUDA_THREADS, 4) search_small(pnr_map m, pnr_map_search s)
{
    constexpr uint32_t THREADS = WARPS * PNR_CUDA_WARP, CREWS = PNR_CUDA_THREADS / THREADS;
    __shared__ pnr_map_crew crews[CREWS];
    __shared__ pnr_map_warp_piece pieces[PNR_CUDA_WARPS];
    __shared__ pnr_map_warp warps[PNR_CUDA_WARPS];
    const uint32_t number = threadIdx.x / THREADS, d = blockIdx.x * CREWS + number;
    const pnr_map_searcher<WARPS> own = {m,
                                         s,
                                         d,
                                         threadIdx.x % THREADS / PNR_CUDA_WARP,
                                         crews[number],
                                         pieces + number * WARPS,
                                         warps + number * WARPS};

    if (d >= s.n_dwells)
        return; /* the whole crew returns */
    own.load_state();
    own.sum_lines();
    if (!pnr_map_is_real(s, d))
        return; /* the whole crew returns */
    own.search();
    own.gather();
}

int pnr_map_search_small(const pnr_map *m, const pnr_map_search *s, cudaStream_t stream,
                         pnr_error *error)
{
    const bool is_warps = s->n_cells <= WARP_CELLS;
    const uint32_t n_crews = is_warps ? PNR_CUDA_WARPS : 1;
    const uint32_t n_blocks = (s->n_dwells + n_crews - 1) / n_crews;

    assert(s->n_dwells >= 1);
    if (is_warps)
        search_small<1><<<n_blocks, PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    else
        search_small<PNR_CUDA_WARPS><<<n_blocks, PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    return pnr_cuda_check_launch("search_small", error);
}
