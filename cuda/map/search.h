/* SPDX-License-Identifier: MIT */
/* The search of maps. It compares cells with the threshold or their CFAR level, keeps cells that
 * are the greatest of their box, sets the floor, and writes candidates with neighbours and patches.
 * It gives the same results as pnr_search_dwell on the CPU. */
#ifndef PNR_CUDA_MAP_SEARCH_H
#define PNR_CUDA_MAP_SEARCH_H

#include "cuda/map/samples.h"

/* The rows are divided into this number of parts, which are summed in parallel. */
enum { PNR_MAP_PARTS = 8 };

/* The maps of a round: dwells [first_dwell, first_dwell + n_dwells). n_cells and n_tiles: numbers
 * of cells and of tiles of one map. */
typedef struct pnr_map_search {
    const pnr_cuda_job *job;
    float2 *values;        /* [n_dwells][n_looks][n_cells]: the correlation c */
    float *power;          /* [n_dwells][n_cells] */
    double *noise;         /* [n_dwells][n_tiles]: sum of the powers at integer lags */
    float *greatest;       /* [n_dwells][n_tiles]: greatest power of a cell of the tile */
    uint64_t *keys;        /* [n_dwells][n_tiles][tile_keys]: the strongest maxima of each piece.
                            * After the selection the keys of a dwell begin with its kept maxima, in
                            * the order of code, row, cell */
    uint32_t *hot;         /* [n_dwells][n_tiles]: tiles with a cell above the threshold */
    double *taken;         /* [n_dwells][max_candidates][PNR_MAP_PARTS]: sum of the powers of the
                            * columns around a maximum, for each part of the rows */
    uint32_t *n_taken;     /* [n_dwells][max_candidates]: number of columns around a maximum */
    pnr_map_dwell *dwells; /* [batch] */
    pnr_cuda_results results;
    uint32_t n_cells, n_tiles, first_dwell, n_dwells;
    uint32_t tile_keys;   /* room for the maxima of all pieces of a tile, see pnr_map_tile_keys */
    uint32_t wants_power; /* 1: a returned whole map has powers; 0: it has complex values */
} pnr_map_search;

/* Returns the greatest number of searches of a dwell. */
static __host__ __device__ __forceinline__ int pnr_map_searches(const pnr_map &m)
{
    return m.cfar_kind != PNR_CFAR_OFF ? 1 : PNR_MAX_SEARCHES;
}

/* Returns the greatest number of keys that the scan of one tile lists. */
size_t pnr_map_tile_keys(const pnr_map *map);
/* Fills noise and greatest from power, for methods whose kernels have not done this. */
int pnr_map_measure_tiles(const pnr_map *map, const pnr_map_search *search, cudaStream_t stream,
                          pnr_error *error);
/* Runs all searches and writes the results. A small map needs one kernel, a large map needs
 * several. */
int pnr_map_find(const pnr_map *map, const pnr_map_search *search, cudaStream_t stream,
                 pnr_error *error);

/* The parts of pnr_map_find. pnr_map_search_small searches small maps and writes their results.
 * pnr_map_return writes the sums and candidates of large maps. pnr_map_return_all writes whole maps
 * on request. */
int pnr_map_search_small(const pnr_map *map, const pnr_map_search *search, cudaStream_t stream,
                         pnr_error *error);
int pnr_map_return(const pnr_map *map, const pnr_map_search *search, cudaStream_t stream,
                   pnr_error *error);
int pnr_map_return_all(const pnr_map *map, const pnr_map_search *search, cudaStream_t stream,
                       pnr_error *error);

#endif
