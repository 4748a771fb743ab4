/* SPDX-License-Identifier: MIT */
/* The memory of a slot for maps, and the arguments of the steps that all methods share. */
#ifndef PNR_CUDA_MAP_MEMORY_H
#define PNR_CUDA_MAP_MEMORY_H

#include "cuda/base/method.h"
#include "cuda/map/search.h"

/* Device memory. D: dwells of a round. */
typedef struct pnr_map_memory {
    float2 *stream; /* converted samples of a whole submit, see pnr_map_samples */
    pnr_cuda_energy *parts;
    pnr_map_window *windows;
    uint32_t *n_used;
    float2 *mean;
    pnr_map_dwell *dwells;
    pnr_map_stretching stretching; /* used if the map has a stretch */
    float2 *bases;     /* [D][n_looks][n_bases][row_stride], see pnr_map_extent; or NULL */
    float2 *values;    /* [D][n_looks][n_codes * n_rows][n_cells], unless is_in_bases */
    float *power;      /* [D][n_codes * n_rows][n_cells] */
    double *noise;     /* [D][tiles] */
    float *greatest;   /* [D][tiles] */
    uint64_t *keys;    /* [D][tiles][pnr_map_tile_keys] */
    uint32_t *hot;     /* [D][tiles] indices of the tiles with a cell above the threshold */
    double *taken;     /* [D][max_candidates][PNR_MAP_PARTS], see pnr_map_search */
    uint32_t *n_taken; /* [D][max_candidates] */
} pnr_map_memory;

/* The sizes that a method chooses. */
typedef struct pnr_map_extent {
    size_t n_maps;  /* D; 0: no map is kept */
    size_t n_bases; /* bases of a round, in method library rounded up to whole calls of cuFFT; 0: no
                     * bases */
    bool has_stream;
    bool is_in_bases; /* true: `values` has no memory of its own, and uses that of `bases` */
} pnr_map_extent;

/* Lists all buffers of *memory. Returns the number of buffers. */
size_t pnr_map_memory_list(const pnr_cuda_shape *shape, const pnr_map *map,
                           const pnr_map_extent *extent, pnr_map_memory *memory,
                           pnr_cuda_buffer *list);

/* Creates the transforms of a map with a stretch, on the stream of the slot. PNR_OK, or as
 * pnr_cuda_check; call destroy in either case. */
int pnr_map_memory_create(const pnr_map *map, pnr_map_memory *memory, cudaStream_t stream,
                          pnr_error *error);
void pnr_map_memory_destroy(pnr_map_memory *memory);
/* Returns an estimate of the device memory of these transforms, in bytes. */
size_t pnr_map_memory_transforms(const pnr_map *map);

pnr_map_samples pnr_map_samples_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot,
                                   const pnr_map_memory *memory);
/* Returns the argument of the search. `first` is the first dwell of the round. */
pnr_map_search pnr_map_search_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot,
                                 const pnr_map *map, const pnr_map_memory *memory, size_t first,
                                 size_t n_dwells);

#endif
