/* SPDX-License-Identifier: MIT */
/* Maps: sizes, and the tables that the kernels read. */
#ifndef PNR_CUDA_MAP_H
#define PNR_CUDA_MAP_H

#include "cuda/base/memory.h"
#include "cuda/base/slot.h"

/*
 * Row (hypothesis h, slow-time bin s) of a look is the correlation of a code with one window z,
 *
 *   z[i] = exp(-2 pi i f i / N) sum_p w_p exp(-2 pi i F p) x_p[i], F = f + s / K.
 *
 * x_p is window p of the K windows of the look, and w_p is its taper. f is the frequency of
 * hypothesis h in bins, which are cycles in N samples.
 *
 * All steps are linear, so the slow time is summed first and the result is again one window. Rows
 * whose f differ by m whole bins have the same z except for a rotation by m i / N turns. In a
 * transform of N points this is a shift of the spectrum: Z_m[v] = Z[v + m]. The windows that are
 * transformed are called bases. A row is given by a base and a shift. In method library,
 * rows of different f have different bases if the transform has more than N points.
 */
typedef struct pnr_map_row {
    uint32_t base, shift;
} pnr_map_row;

/* The bases at one time scale of the samples. */
typedef struct pnr_map_stretch {
    double stretch;
    uint32_t first_base, n_bases;
} pnr_map_stretch;

/* Host tables, freed by pnr_map_plan_free. */
typedef struct pnr_map_plan {
    uint32_t n_bases, n_rows;
    pnr_map_row *rows;          /* [n_rows] */
    int32_t *quarters;          /* [n_bases] f = quarters / 4 */
    uint32_t *bins;             /* [n_bases] s mod K */
    pnr_map_stretch *stretches; /* [n_stretches], in the order of the bases */
    size_t n_stretches;
} pnr_map_plan;

/* Creates the tables. is_direct: rows whose f differ by whole bins share their bases. Returns
 * PNR_OK or PNR_ENOMEMORY; after PNR_ENOMEMORY nothing needs to be freed. */
int pnr_map_plan_create(const pnr_plan *plan, bool is_direct, pnr_map_plan *out, pnr_error *error);
void pnr_map_plan_free(pnr_map_plan *plan);

/* The greatest number of cells of a tile, except in method_fused.cu, where a whole row is one
 * tile. */
enum { PNR_MAP_TILE = 2048 };

/* Sizes and tables that the kernels of all slots read. The tables are in device memory. */
typedef struct pnr_map {
    uint32_t n_samples; /* N, samples of a period */
    uint32_t n_window;  /* samples of a window: N, or N + n_lags - 1 for linear lags */
    uint32_t n_lags, oversample;
    uint32_t n_cells; /* cells of a row: n_lags * oversample */
    uint32_t n_periods, n_looks, n_codes, n_rows, n_bases;
    uint32_t
        n_transform; /* points of a base: n_window in method_fused.cu, else L of pnr_cuda_shape */
    uint32_t row_stride;
    uint32_t margin, n_doubling; /* M and L of stretch.h; 0: no stretch */
    double band[2];              /* the frequencies that a stretched look keeps, see plan.h */
    uint32_t is_linear, is_filtered, has_mean;
    uint32_t gate_first, gate_count;
    uint32_t exclusion_cells, exclusion_rows, max_candidates;
    uint32_t has_outside; /* 1: one candidate may be outside of the gate, see plan.h */
    uint32_t cfar_kind, cfar_axis, guard, training, stride;
    uint32_t tile; /* cells of a row that are searched together */
    uint32_t row_tiles;
    double code_energy;

    pnr_map_row *rows;    /* [n_rows] */
    uint64_t *turns;      /* [n_bases] f / N turns per sample, in units of 2^-64 */
    float2 *weights;      /* [n_bases][n_periods] w_p exp(-2 pi i F p) */
    double *taper_energy; /* [n_periods] w_p^2 */
    double *threshold;    /* [n_looks * n_periods] */
    double *factor;       /* CFAR: [n_looks][training + 1][training + 1], else NULL */
    float *interpolation; /* [PNR_STRETCH_STEPS + 1][PNR_STRETCH_TAPS], see stretch.h */
} pnr_map;

/* Returns the sizes, without tables. tile: the greatest number of cells of a tile; the last tile of
 * a row may have fewer. */
pnr_map pnr_map_of(const pnr_plan *plan, const pnr_cuda_shape *shape, const pnr_map_plan *tables,
                   uint32_t tile);
/* Lists the memory of the tables; returns the number of buffers. */
size_t pnr_map_list(pnr_map *map, pnr_cuda_buffer *list);
/* Fills the tables. Their memory must be allocated. */
int pnr_map_upload(const pnr_plan *plan, const pnr_map_plan *tables, const pnr_map *map,
                   pnr_error *error);
/* Returns PNR_OK, or PNR_EUNSUPPORTED and a text with the number that is too large. */
int pnr_map_suits(const pnr_plan *plan, const pnr_cuda_shape *shape, pnr_error *error);

#endif
