/* SPDX-License-Identifier: MIT */
/* Methods of the cuda engine: one table of operations each, from raw samples on the device to
 * results there. */
#ifndef PNR_CUDA_METHOD_H
#define PNR_CUDA_METHOD_H

#include "cuda/base/memory.h"
#include "cuda/base/sample.h"
#include "cuda/base/slot.h"

typedef struct pnr_cuda_method {
    const char *name;    /* as in engine.method; several methods may have one name */
    size_t shared_bytes; /* of common->shared, which is zeroed before suits */
    size_t work_bytes;   /* of slot->work, which is zeroed before create; 0: NULL */
    /*
     * Decides from the plan and the kind of the device alone, without any measurement. The plan has
     * passed pnr_plan_check. PNR_OK: *choice gets why and n_transform; common->shared gets the
     * sizes; choice->device_bytes gets the bytes that a slot needs besides its lists.
     * PNR_EUNSUPPORTED: error gets the reason, or stays unchanged if another method of the same
     * name may support the plan. On failure nothing needs to be freed.
     */
    int (*suits)(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                 pnr_error *error);
    /* List the device memory that all slots share, and the memory of one slot. They return the
     * number of buffers, at most PNR_CUDA_MAX_BUFFERS. NULL: no buffers. The pointers of
     * common->plan are NULL. */
    size_t (*list_shared)(const pnr_cuda_common *common, pnr_cuda_buffer *list);
    size_t (*list_work)(const pnr_cuda_common *common, void *work, pnr_cuda_buffer *list);
    /* Fills the shared memory, which is read only afterwards. The pointers of plan are valid during
     * this call only. On failure the engine calls close. */
    int (*open)(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error);
    void (*close)(void *shared); /* frees all memory outside the lists; may be NULL */
    /* Creates the rest of a slot, on its stream; may be NULL. On failure destroy is called. */
    int (*create)(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error);
    void (*destroy)(void *work); /* the stream is idle; may be NULL */
    /* Enqueues all work between the upload (raw, job, windows) and slot->results, with its marks,
     * for at most n_dwells dwells. The job holds the actual number. The kernels may skip the other
     * dwells, or compute them from old samples. compute is recorded into a graph once and replayed:
     * it never waits or allocates, and joins the streams that it forks. */
    int (*compute)(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error);
} pnr_cuda_method;

/* Asks whether a method supports the plan. PNR_OK: *common has the sizes, and choice is filled for
 * the whole engine; close common. Otherwise as suits, or PNR_ENOMEMORY; nothing needs to be
 * closed. */
int pnr_cuda_method_describe(const pnr_cuda_method *method, const pnr_plan *plan,
                             pnr_cuda_common *common, pnr_engine_choice *choice, pnr_error *error);
/* Creates the data that all slots share, after describe, for the same plan. On failure call
 * close. */
int pnr_cuda_method_open(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error);
void pnr_cuda_method_close(pnr_cuda_common *common);

/*
 * Takes plan->method by name, or for "auto" the first method of the table that suits. "auto" skips
 * fused for sums of powers where no period is extended. The rule depends on the plan alone and
 * never on a measurement, so that a configuration gives the same bits on every run. A named method
 * is never replaced. PNR_OK: as describe; PNR_ECONFIG: there is no such method; PNR_EUNSUPPORTED:
 * the method does not suit.
 */
int pnr_cuda_method_choose(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                           pnr_error *error);

/* The address of the raw samples of the slot, and how they are read. */
pnr_cuda_samples pnr_cuda_samples_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot);

extern const pnr_cuda_method pnr_cuda_method_walsh;      /* m-sequences: additions only */
extern const pnr_cuda_method pnr_cuda_method_fused;      /* own kernel: one, up to 16384 points */
extern const pnr_cuda_method pnr_cuda_method_fused_long; /* own kernels: three, above 16384 */
extern const pnr_cuda_method pnr_cuda_method_map_fused;  /* maps: fused */
extern const pnr_cuda_method pnr_cuda_method_map_long;   /* maps of one line: fused, long */
extern const pnr_cuda_method pnr_cuda_method_library;    /* every plan: cuFFT, cuBLAS */

#endif
