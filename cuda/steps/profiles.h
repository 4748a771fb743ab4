/* SPDX-License-Identifier: MIT */
/* Whole profiles in device memory: what the methods share that measure the samples first, leave c
 * row by row, and search it afterwards. */
#ifndef PNR_CUDA_PROFILES_H
#define PNR_CUDA_PROFILES_H

#include "cuda/base/memory.h"
#include "cuda/base/method.h"
#include "cuda/steps/convert.h"
#include "cuda/steps/energy.h"
#include "cuda/steps/peak.h"

enum { PNR_CUDA_PROFILES_BLOCKS = 10 };

/* A slot's, device. */
typedef struct pnr_cuda_profiles {
    pnr_cuda_energy *parts; /* [n_windows][n_segments] */
    pnr_cuda_energy *sums;  /* [n_windows] */
    pnr_cuda_dwell *dwells; /* [batch] */
    float2 *rows[2];        /* [oversample] of [n_rows][row_stride]: c, when it is searched */
    float *power;           /* [round_dwells][n_cells] */
    double *noise_parts;    /* [round_dwells][n_tiles] */
    pnr_cuda_tile *tiles;   /* [round_dwells][n_tiles] */
    uint64_t *keys;         /* [round_dwells][n_tiles][max_candidates] */
    float2 *packed;         /* want complex: [round_dwells][n_cells] */
} pnr_cuda_profiles;

/* PNR_OK, or PNR_EUNSUPPORTED: more windows in a submit than the measure step has blocks for. */
int pnr_cuda_profiles_suit(const pnr_plan *plan, const pnr_cuda_shape *shape, pnr_error *error);

/* All of its memory, to `list`; returns PNR_CUDA_PROFILES_BLOCKS. */
size_t pnr_cuda_profiles_list(const pnr_plan *plan, const pnr_cuda_shape *shape,
                              pnr_cuda_profiles *profiles, pnr_cuda_block *list);

/* The measure step of a submit. */
int pnr_cuda_profiles_measure(const pnr_cuda_common *common, const pnr_cuda_shape *shape,
                              const pnr_cuda_slot *slot, const pnr_cuda_profiles *profiles,
                              size_t n_dwells, pnr_error *error);

/* How samples are converted after it. */
pnr_cuda_conversion pnr_cuda_profiles_conversion(const pnr_cuda_common *common,
                                                 const pnr_cuda_slot *slot,
                                                 const pnr_cuda_profiles *profiles);

/* The peak step of dwells [first, first + n_dwells), whose c is in the rows; then their profiles to
 * the results, when they are wanted. With its marks. */
int pnr_cuda_profiles_search(const pnr_cuda_common *common, const pnr_cuda_shape *shape,
                             pnr_cuda_slot *slot, const pnr_cuda_profiles *profiles, size_t first,
                             size_t n_dwells, pnr_error *error);

#endif
