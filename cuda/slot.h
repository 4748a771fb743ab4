/* SPDX-License-Identifier: MIT */
/* A slot: everything that one submit in flight needs, with its own stream, plan and memory. */
#ifndef PNR_CUDA_SLOT_H
#define PNR_CUDA_SLOT_H

#include "check.h"
#include "convert.h"
#include "energy.h"
#include "peak.h"
#include "shape.h"

/* What all slots share, read only after create. */
typedef struct pnr_cuda_common {
    pnr_plan plan; /* its pointers are NULL */
    pnr_cuda_shape shape;
    double code_energy;
    uint64_t tune_step; /* 2^-64 turns a sample */
    float2 *spectra[2]; /* [oversample] of [L]: conj(DFT of the code) / L, device */
    double *threshold;  /* [n_periods], device */
} pnr_cuda_common;

typedef struct pnr_cuda_slot {
    cudaStream_t stream;
    cudaEvent_t done;
    cufftHandle fft;
    bool has_fft;
    cublasHandle_t blas;

    /* device */
    void *raw;                /* [n_windows * N][n_channels] */
    pnr_cuda_window *windows; /* [n_windows] */
    pnr_cuda_energy *parts;   /* [n_windows][n_segments] */
    pnr_cuda_energy *sums;    /* [n_windows] */
    pnr_cuda_dwell *dwells;   /* [batch] */
    float2
        *rows[2]; /* [oversample] of [n_rows][row_stride]; the last one holds the samples first */
    float *power; /* [round_dwells][n_cells] */
    double *noise_parts;  /* [round_dwells][n_tiles] */
    pnr_cuda_tile *tiles; /* [round_dwells][n_tiles] */
    uint64_t *keys;       /* [round_dwells][n_tiles][max_candidates] */
    float2 *packed;       /* want complex: [round_dwells][n_cells] */
    void *fft_work;
    void *blas_work;

    /* pinned host memory, written by the kernels (all but windows) */
    pnr_cuda_window *host_windows;  /* [n_windows] */
    pnr_dwell *host_dwells;         /* [batch] */
    pnr_candidate *host_candidates; /* [batch][max_candidates] */
    uint32_t *host_nonfinite;       /* [n_windows] */
    float *host_profile;            /* [batch][profile_values], or NULL */

    /* plan.measure: mark i ends stage mark_stage[i], which began at mark i - 1 */
    cudaEvent_t *marks; /* [max_marks] */
    int *mark_stage;    /* [max_marks] */
    size_t n_marks, max_marks;

    uint64_t tag;
    size_t n_dwells;
} pnr_cuda_slot;

/* Bytes of one slot; the work area of the transforms is estimated as one group. */
void pnr_cuda_slot_bytes(const pnr_plan *plan, const pnr_cuda_shape *shape, uint64_t *device_bytes,
                         uint64_t *host_bytes);

/* Allocates everything and runs every kernel once on zeros, so that nothing is loaded or allocated
 * later. slot is zeroed memory; on failure call destroy. */
int pnr_cuda_slot_create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error);
/* Waits for what is in flight. */
void pnr_cuda_slot_destroy(pnr_cuda_slot *slot);

/* Enqueues a whole job. On failure waits until nothing of it is in flight. */
int pnr_cuda_slot_start(const pnr_cuda_common *common, pnr_cuda_slot *slot, const pnr_job *job,
                        pnr_error *error);
/* The finished job's result. PNR_OK, or as pnr_cuda_check. */
int pnr_cuda_slot_result(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_result *result,
                         pnr_error *error);

#endif
