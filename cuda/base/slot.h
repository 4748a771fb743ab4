/* SPDX-License-Identifier: MIT */
/* A slot: what one submit in flight needs whatever the method, with its own stream. */
#ifndef PNR_CUDA_SLOT_H
#define PNR_CUDA_SLOT_H

#include "cuda/base/check.h"
#include "cuda/base/results.h"
#include "cuda/base/shape.h"
#include "cuda/base/state.h"

struct pnr_cuda_method;

/* What all slots share, read only after create. */
typedef struct pnr_cuda_common {
    pnr_plan plan;        /* its pointers are NULL */
    pnr_cuda_shape shape; /* sizes; those of transforms, rows and rounds are the library method's */
    const struct pnr_cuda_method *method;
    double code_energy;
    uint64_t tune_step; /* 2^-64 turns a sample */
    double *threshold;  /* [n_periods of the shape], device */
    void *shared;       /* the method's own */
} pnr_cuda_common;

/* Graphs of a slot: for 2^i dwells, and the last for all of a full submit. */
enum { PNR_CUDA_MAX_GRAPHS = 32 };

typedef struct pnr_cuda_slot {
    cudaStream_t stream;
    cudaEvent_t done;
    /* All kernels of a submit of at most graph_dwells[i] dwells, recorded once; none when
     * plan.measure. */
    cudaGraphExec_t graphs[PNR_CUDA_MAX_GRAPHS];
    size_t graph_dwells[PNR_CUDA_MAX_GRAPHS];
    size_t n_graphs;
    void *work; /* the method's own */

    /* device */
    void *raw;                /* [n_windows * N][n_channels] */
    pnr_cuda_job *job;        /* header, then the windows */
    pnr_cuda_window *windows; /* [n_windows + n_tail_windows], behind job */
    uint32_t *lost;           /* [lost_words]: a bit a sample, or NULL */
    pnr_cuda_results results; /* the method's answer */
    uint32_t *count;          /* the last kernel's */

    /* pinned host memory */
    pnr_cuda_job *host_job;
    pnr_cuda_window *host_windows; /* [n_windows + n_tail_windows], behind host_job */
    uint32_t *host_lost;           /* [lost_words] */
    pnr_cuda_results host;         /* the answer, written by the last kernel */
    volatile uint64_t *sequence;   /* of the submit whose answer is complete */

    /* plan.measure: mark i ends stage mark_stage[i], which began at mark i - 1 */
    cudaEvent_t *marks; /* [max_marks] */
    int *mark_stage;    /* [max_marks] */
    size_t n_marks, max_marks;

    /* The beginning of the next submit that is on the device already. */
    uint64_t advanced_first; /* absolute sample index */
    size_t n_advanced;       /* samples */
    size_t skipped; /* samples of the submit's view before the slot's first: see repeat.h */

    uint64_t tag;
    size_t n_dwells;
    unsigned n_polls;
} pnr_cuda_slot;

/* Adds the bytes of one slot, without the method's. */
void pnr_cuda_slot_count(const pnr_plan *plan, const pnr_cuda_shape *shape, uint64_t *device_bytes,
                         uint64_t *host_bytes);

/* Allocates everything, records the kernels and runs them on zeros, so that nothing is loaded,
 * made or allocated later. slot is zeroed memory; on failure call destroy. */
int pnr_cuda_slot_create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error);
/* Waits for what is in flight. */
void pnr_cuda_slot_destroy(const pnr_cuda_common *common, pnr_cuda_slot *slot);

/* plan.measure: `stage` ends here in the stream; else nothing. PNR_STAGE_COUNT: the beginning. At
 * most 6 a round of the shape, and 4. */
int pnr_cuda_mark(const pnr_cuda_common *common, pnr_cuda_slot *slot, int stage, pnr_error *error);

/* Enqueues the upload of what has come of the next submit and is not there yet. */
int pnr_cuda_slot_advance(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                          const pnr_windows *windows, pnr_error *error);
/* Marks, a bit a sample, of the lost ones of [first, first + n_samples) of a view. */
void pnr_cuda_slot_mark_lost(const pnr_windows *windows, uint64_t first, size_t n_samples,
                             uint32_t *marks);
/* Enqueues a whole job. On failure waits until nothing of it is in flight. */
int pnr_cuda_slot_start(const pnr_cuda_common *common, pnr_cuda_slot *slot, const pnr_job *job,
                        pnr_error *error);
/* Until the answer is complete, when `wait`: asleep, or awake when plan.spin. PNR_OK; PNR_EAGAIN:
 * not yet; or as pnr_cuda_check. */
int pnr_cuda_slot_await(const pnr_cuda_common *common, pnr_cuda_slot *slot, bool wait,
                        pnr_error *error);
/* The finished job's result. PNR_OK, or as pnr_cuda_check. */
int pnr_cuda_slot_result(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_result *result,
                         pnr_error *error);

#endif
