/* SPDX-License-Identifier: MIT */
/* Whole profiles in device memory. The samples are measured first, c is written row by row, and
 * then searched. */
#ifndef PNR_CUDA_PROFILES_H
#define PNR_CUDA_PROFILES_H

#include "cuda/base/method.h"
#include "cuda/steps/convert.h"
#include "cuda/steps/energy.h"
#include "cuda/steps/peak.h"

/* Device memory of a slot. */
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

/* Lists all of its memory; returns the number of buffers. */
size_t pnr_cuda_profiles_list(const pnr_cuda_common *common, pnr_cuda_profiles *profiles,
                              pnr_cuda_buffer *list);

/* Enqueues the measure step of a submit. */
int pnr_cuda_profiles_measure(const pnr_cuda_common *common, const pnr_cuda_slot *slot,
                              const pnr_cuda_profiles *profiles, size_t n_dwells, pnr_error *error);

/* How samples are converted after the measure step. */
pnr_cuda_conversion pnr_cuda_profiles_conversion(const pnr_cuda_common *common,
                                                 const pnr_cuda_slot *slot,
                                                 const pnr_cuda_profiles *profiles);

/* Enqueues the peak step of dwells [first, first + n_dwells), whose c is in the rows, and copies
 * their profiles to the results where they are wanted; with its marks. */
int pnr_cuda_profiles_search(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                             const pnr_cuda_profiles *profiles, size_t first, size_t n_dwells,
                             pnr_error *error);

#endif
