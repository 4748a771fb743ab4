/* SPDX-License-Identifier: MIT */
/* A slot holds the memory and the stream of one submit in flight. All methods use this type. */
#ifndef PNR_CUDA_SLOT_H
#define PNR_CUDA_SLOT_H

#include "cuda/base/check.h"
#include "cuda/base/results.h"
#include "cuda/base/shape.h"
#include "cuda/base/state.h"

struct pnr_cuda_method;

/* Data that all slots share; it does not change after create. */
typedef struct pnr_cuda_common {
    pnr_plan plan;        /* its pointers are NULL */
    pnr_cuda_shape shape; /* n_transform, row_stride and group describe method library only */
    const struct pnr_cuda_method *method;
    double code_energy;
    uint64_t tune_step; /* turns per sample, in units of 2^-64 */
    double *threshold;  /* threshold / floor: [shape.n_periods], device */
    void *shared;       /* data of the method: [method->shared_bytes]; NULL after close */
} pnr_cuda_common;

/* Graphs of a slot: graph i is for 2^i dwells, the last graph for a full submit. */
enum { PNR_CUDA_MAX_GRAPHS = 32 };

typedef struct pnr_cuda_slot {
    cudaStream_t stream;
    cudaEvent_t done;
    /* graphs[i] has all kernels for up to graph_dwells[i] dwells. No graphs exist with
     * plan.measure. */
    cudaGraphExec_t graphs[PNR_CUDA_MAX_GRAPHS];
    size_t graph_dwells[PNR_CUDA_MAX_GRAPHS];
    size_t n_graphs;
    void *work; /* data of the method: [method->work_bytes], or NULL */

    /* members in device memory */
    void *raw;                /* [n_windows * N][n_channels] */
    pnr_cuda_job *job;        /* header of the submit, then the headers of its windows */
    pnr_cuda_window *windows; /* [n_windows + n_tail_windows], after job */
    uint32_t *lost;           /* [lost_words], one bit per sample, or NULL */
    pnr_cuda_results results; /* written by the method */
    uint32_t *count;          /* finished blocks of the kernel that returns the results */

    /* members in pinned host memory */
    pnr_cuda_job *host_job;
    pnr_cuda_window *host_windows; /* [n_windows + n_tail_windows], after host_job */
    uint32_t *host_lost;           /* [lost_words] */
    pnr_cuda_results host;         /* the results, written by the last kernel */
    volatile uint64_t *sequence;   /* number of the last submit whose results are complete */

    /* time marks of plan.measure: mark i - 1 begins stage mark_stage[i], mark i ends this stage */
    cudaEvent_t *marks; /* [max_marks] */
    int *mark_stage;    /* [max_marks] */
    size_t n_marks, max_marks;

    /* The part of the next submit that is on the device already. */
    uint64_t advanced_first; /* absolute index of the first sample of this part */
    size_t n_advanced;       /* number of samples of this part */
    size_t skipped;          /* samples of the view before the dwell that search_without searches */

    uint64_t tag;
    size_t n_dwells;
    unsigned n_polls;
} pnr_cuda_slot;

/* Adds the memory of one slot to *device_bytes and *host_bytes. PNR_OK or PNR_ENOMEMORY. */
int pnr_cuda_slot_count(const pnr_cuda_common *common, uint64_t *device_bytes, uint64_t *host_bytes,
                        pnr_error *error);

/* Allocates all memory, records the kernels and runs them on zeros, so that later no kernel is
 * loaded and no memory is allocated. slot is zeroed memory; on failure call destroy. */
int pnr_cuda_slot_create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error);
/* Waits for the submit in flight, then frees all memory. */
void pnr_cuda_slot_destroy(const pnr_cuda_common *common, pnr_cuda_slot *slot);

/* Marks the end of `stage` in the stream. If `stage` is PNR_STAGE_COUNT, marks the beginning of a
 * submit. Does nothing unless plan.measure is set. A submit has at most 4 + 6 * shape.n_rounds
 * marks. */
int pnr_cuda_mark(const pnr_cuda_common *common, pnr_cuda_slot *slot, int stage, pnr_error *error);

/* Enqueues the upload of the samples that have arrived since the last call. These samples belong to
 * the next submit. */
int pnr_cuda_slot_advance(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                          const pnr_windows *windows, pnr_error *error);
/* Writes one bit for each sample of [first, first + n_samples) of a view: 1 if the sample is lost,
 * else 0. */
void pnr_cuda_slot_mark_lost(const pnr_windows *windows, uint64_t first, size_t n_samples,
                             uint32_t *marks);
/* Enqueues a whole job. On failure waits until no part of the job is in flight. */
int pnr_cuda_slot_start(const pnr_cuda_common *common, pnr_cuda_slot *slot, const pnr_job *job,
                        pnr_error *error);
/* Checks whether the results are complete. If `wait` is true, waits for the results: spins if
 * plan.spin is set, otherwise sleeps. PNR_OK; PNR_EAGAIN: not yet complete; or as
 * pnr_cuda_check. */
int pnr_cuda_slot_await(const pnr_cuda_common *common, pnr_cuda_slot *slot, bool wait,
                        pnr_error *error);
/* Fills *result with the results of the finished job. PNR_OK, or as pnr_cuda_check. */
int pnr_cuda_slot_result(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_result *result,
                         pnr_error *error);

#endif
