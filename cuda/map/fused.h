/* SPDX-License-Identifier: MIT */
/* The steps of method fused for maps: a transform over the slow time computes bases from windows,
 * and one kernel transforms the lines of a map forward and back. A line is one row of one code. */
#ifndef PNR_CUDA_MAP_FUSED_H
#define PNR_CUDA_MAP_FUSED_H

#include "cuda/map/search.h"

/* --- the slow time --- */

enum { PNR_MAP_SLOW_MIN = 32, PNR_MAP_SLOW_MAX = 1024 }; /* windows of a look, a power of two */

/* The bases of each slow-time bin: at most one for each rotation by q = 0 .. 3 quarter bins. Device
 * memory. */
typedef struct pnr_map_bins {
    uint4 *bases;           /* [K]: a base for each q; UINT32_MAX: no base */
    float *taper;           /* [K] */
    uint64_t quarter_turns; /* 1 / (4 N) turns per sample, in units of 2^-64 */
} pnr_map_bins;

/* Returns true if the transform over the slow time computes the bases of a plan. block_bytes:
 * shared memory that a block may use. */
bool pnr_map_has_slow(const pnr_plan *plan, const pnr_map_plan *tables, size_t block_bytes);
/* Fills the tables of bins. Their memory must be allocated. */
int pnr_map_upload_bins(const pnr_plan *plan, const pnr_map_plan *tables, pnr_map_bins *bins,
                        pnr_error *error);
/* Does the work of pnr_map_fold for all bases. Reads raw samples if samples->stream is NULL. */
int pnr_map_fold_slow(const pnr_map *map, const pnr_map_samples *samples, const pnr_map_bins *bins,
                      size_t first_look, size_t n_looks, float2 *bases, cudaStream_t stream,
                      pnr_error *error);

/* --- lines --- */

typedef struct pnr_map_lines {
    pnr_map_search search; /* maps of the round */
    const float2 *bases;   /* [n_dwells][n_looks][n_bases][row_stride], n_window samples each;
                            * NULL: a look is one window, and the kernel reads the samples of
                            * this window */
    pnr_map_samples samples;
    const float4 *spectra; /* [n_codes][oversample][L], see pnr_cuda_fused_place */
    uint64_t bin_turns;    /* 1 / N turns per sample, in units of 2^-64 */
    uint32_t look;
    uint32_t part_codes; /* number of codes with which a block correlates its row */
    uint32_t is_whole;   /* see pnr_map_lines_is_whole */
} pnr_map_lines;

/* Returns the number of points of the transform for a period, or for a window if lags are linear.
 * 0: the kernels have no such transform. */
size_t pnr_map_lines_points(const pnr_plan *plan);
/* Returns the number of groups of threads in a block that correlates one row with many codes. */
size_t pnr_map_lines_groups(size_t n_points);
/* Returns true if the kernel of the lines can read windows, without bases. */
bool pnr_map_lines_takes_windows(const pnr_map *map, size_t n_points);
/* Returns true if a dwell is one line, and the kernel can also search this line with block_bytes of
 * shared memory. */
bool pnr_map_lines_is_whole(const pnr_map *map, size_t n_points, size_t block_bytes);
/* pnr_map_lines_bytes returns the bytes of shared memory of a block. pnr_map_lines_prepare prepares
 * the kernel and is called once, before the launches. */
size_t pnr_map_lines_bytes(const pnr_map *map, size_t n_points, bool is_whole);
int pnr_map_lines_prepare(const pnr_map *map, size_t n_points, bool is_whole, pnr_error *error);
/* Computes all lines of look lines->look, for every dwell of a round. With lines->is_whole also
 * writes the results. */
int pnr_map_correlate(const pnr_map *map, const pnr_map_lines *lines, size_t n_points,
                      cudaStream_t stream, pnr_error *error);

#endif
