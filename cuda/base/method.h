/* SPDX-License-Identifier: MIT */
/* A method of the cuda engine is a table of operations. The operations compute results from raw
 * samples. Samples and results are in device memory. */
#ifndef PNR_CUDA_METHOD_H
#define PNR_CUDA_METHOD_H

#include "cuda/base/memory.h"
#include "cuda/base/sample.h"
#include "cuda/base/slot.h"

typedef struct pnr_cuda_method {
    const char *name;    /* value of engine.method; some methods share a name */
    size_t shared_bytes; /* size of common->shared, which is zeroed before `suits` */
    size_t work_bytes;   /* size of slot->work, which is zeroed before `create`; 0: work is NULL */
    /* Decides whether the method supports a plan that has passed pnr_plan_check. The decision
     * depends only on the plan and the kind of the device, never on a measurement. PNR_OK: sets
     * choice->why, choice->n_transform and the sizes in common->shared. Sets choice->device_bytes
     * to the bytes that a slot needs in addition to the buffers of list_work. PNR_EUNSUPPORTED:
     * `error` gets the reason, or stays unchanged if another method of the same name may support
     * the plan. On failure nothing needs to be freed. */
    int (*suits)(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                 pnr_error *error);
    /* List the buffers that all slots share, and the buffers of one slot. Both functions return the
     * number of buffers, at most PNR_CUDA_MAX_BUFFERS. A NULL function means that there are no
     * buffers. The pointers in common->plan are NULL. */
    size_t (*list_shared)(const pnr_cuda_common *common, pnr_cuda_buffer *list);
    size_t (*list_work)(const pnr_cuda_common *common, void *work, pnr_cuda_buffer *list);
    /* Fills the data that all slots share. These data do not change later. The pointers of `plan`
     * are valid during this call only. On failure the engine calls `close`. */
    int (*open)(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error);
    void (*close)(void *shared); /* frees memory that list_shared does not list; NULL: there is
                                  * none */
    /* Creates the method's part of a slot, on the stream of the slot. NULL: the method has no such
     * part. On failure the engine calls `destroy`. */
    int (*create)(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error);
    void (*destroy)(void *work); /* called when the stream is idle; NULL: there is nothing to
                                  * destroy */
    /* Enqueues the kernels that compute slot->results from the upload (raw, job, windows). Also
     * enqueues the time marks of the stages. The kernels are launched for n_dwells dwells. The job
     * has the actual number of dwells, which may be smaller. The kernels may skip the other dwells,
     * or compute them from old samples. A graph records this call once. So `compute` never waits or
     * allocates, and joins the streams that it forks. */
    int (*compute)(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error);
} pnr_cuda_method;

/* Checks whether a method supports the plan. PNR_OK: *common has the sizes, *choice describes the
 * whole engine, and the caller must close *common. Otherwise returns the code of `suits`, or
 * PNR_ENOMEMORY, and nothing needs to be closed. */
int pnr_cuda_method_describe(const pnr_cuda_method *method, const pnr_plan *plan,
                             pnr_cuda_common *common, pnr_engine_choice *choice, pnr_error *error);
/* Creates the data that all slots share. Call it after pnr_cuda_method_describe, with the same
 * plan. On failure call pnr_cuda_method_close. */
int pnr_cuda_method_open(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error);
void pnr_cuda_method_close(pnr_cuda_common *common);

/* Chooses the method that plan->method names. For "auto" it chooses the first method of the table
 * that supports the plan. But it skips pnr_cuda_method_fused if a dwell has several looks and N has
 * no prime factor above 7. The rule depends only on the plan, never on a measurement, so that a
 * configuration gives the same bits on every run. A named method is never replaced. PNR_OK: as
 * pnr_cuda_method_describe; PNR_ECONFIG: there is no such method; PNR_EUNSUPPORTED: the method does
 * not support the plan. */
int pnr_cuda_method_choose(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                           pnr_error *error);

/* Returns the description of the slot's raw samples: their address, format and scale. */
pnr_cuda_samples pnr_cuda_samples_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot);

extern const pnr_cuda_method pnr_cuda_method_walsh;      /* m-sequences, by additions alone */
extern const pnr_cuda_method pnr_cuda_method_fused;      /* one kernel, up to 16384 points */
extern const pnr_cuda_method pnr_cuda_method_fused_long; /* three kernels, above 16384 points */
extern const pnr_cuda_method pnr_cuda_method_map_fused;  /* maps, up to 8192 points */
extern const pnr_cuda_method pnr_cuda_method_map_long;   /* maps of one row, above 16384 points */
extern const pnr_cuda_method pnr_cuda_method_library;    /* every plan, by cuFFT and cuBLAS */

#endif
