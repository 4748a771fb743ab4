/* SPDX-License-Identifier: MIT */
/* Methods of the cuda engine: one table of operations each, from raw samples on the device to
 * results there. */
#ifndef PNR_CUDA_METHOD_H
#define PNR_CUDA_METHOD_H

#include "cuda/base/sample.h"
#include "cuda/base/slot.h"

typedef struct pnr_cuda_method {
    const char *name; /* as in engine.method */
    /*
     * Nothing is measured: the answer depends on the plan and the kind of the device alone. PNR_OK:
     * *choice (zeroed by the caller) gets why, n_transform, and the bytes beside the slot's own:
     * host_bytes and device_bytes of one slot, *shared_bytes of what all slots share.
     * PNR_EUNSUPPORTED: what is missing, in words. The plan has passed pnr_plan_check.
     */
    int (*suits)(const pnr_plan *plan, pnr_engine_choice *choice, uint64_t *shared_bytes,
                 pnr_error *error);
    /* What all slots share, read only afterwards: common->shared. plan's pointers are valid here
     * only. On failure the engine calls close. */
    int (*open)(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error);
    void (*close)(pnr_cuda_common *common); /* shared may be NULL */
    /* A slot's own memory: slot->work; NULL: none. Its stream is made; on failure the engine calls
     * destroy. */
    int (*create)(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error);
    void (*destroy)(pnr_cuda_slot *slot); /* work may be NULL; the stream is idle */
    /* Enqueues everything between the upload (raw, job, windows) and slot->results, with its marks,
     * for at most n_dwells dwells, of which job says how many there are; whatever is beyond them
     * may be left out or done on stale samples. It is recorded into a graph once and replayed: it
     * never waits or allocates, and joins the streams that it forks. */
    int (*compute)(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error);
} pnr_cuda_method;

/*
 * plan->method by name, or of "auto" the first of the table that suits (but sums of powers without
 * an extension go to library): a rule that goes by the
 * plan alone and never by a measurement, so that a configuration means the same bits on every run.
 * A named method is never replaced. PNR_OK, choice filled for the whole engine; PNR_ECONFIG: no
 * such method; PNR_EUNSUPPORTED: it does not suit.
 */
int pnr_cuda_method_choose(const pnr_plan *plan, const pnr_cuda_method **method,
                           pnr_engine_choice *choice, pnr_error *error);

/* Where the slot's raw samples lie and how they are read. */
pnr_cuda_samples pnr_cuda_samples_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot);

/* Shared memory that a block can have; without a device the answer is about a large one. */
size_t pnr_cuda_block_bytes(size_t device);

/* true: method fused takes a period of N samples in three kernels, false: in one. */
bool pnr_cuda_fused_is_long(size_t n_samples);

extern const pnr_cuda_method pnr_cuda_method_fused;       /* own kernels: one, to 16384 points */
extern const pnr_cuda_method pnr_cuda_method_fused_long;  /* three, beyond; the same name */
extern const pnr_cuda_method pnr_cuda_method_walsh;       /* m-sequences: additions only */
extern const pnr_cuda_method pnr_cuda_method_walsh_parts; /* at several samples a chip */
extern const pnr_cuda_method pnr_cuda_method_library;     /* any length: cuFFT, cuBLAS */
extern const pnr_cuda_method pnr_cuda_method_map_fused;   /* of maps: fused */
extern const pnr_cuda_method pnr_cuda_method_map;         /* of maps: library */

#endif
