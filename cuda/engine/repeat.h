/* SPDX-License-Identifier: MIT */
/* A dwell once more without its echoes: its samples converted, echoes taken out, for an engine of
 * its own. */
#ifndef PNR_CUDA_REPEAT_H
#define PNR_CUDA_REPEAT_H

#include "cuda/base/slot.h"

/* The dwell's samples are converted to cf32 on the device, conjugated and tuned, into the slot of a
 * second engine whose plan says so, and which takes one dwell a submit. */
typedef struct pnr_cuda_repeat {
    pnr_engine *engine; /* of pnr_cuda_repeat_plan */
    const pnr_cuda_common *common;
    pnr_cuda_slot *slot;

    void *raw;       /* [n_samples + tail][n_channels], device */
    float2 *replica; /* [N], device */
    uint32_t *marks; /* of lost samples, device */
    uint32_t *count; /* of clipped samples, device */
    uint32_t *host_marks;
    uint32_t *host_count;
} pnr_cuda_repeat;

/* The second engine's plan. */
pnr_plan pnr_cuda_repeat_plan(const pnr_plan *plan);
/* engine: of that plan; the repeat's from now on, also when this fails. plan: the first engine's.
 * On failure call destroy. */
int pnr_cuda_repeat_create(const pnr_plan *plan, pnr_engine *engine, pnr_cuda_repeat *repeat,
                           pnr_error *error);
/* All but the engine. */
void pnr_cuda_repeat_destroy(pnr_cuda_repeat *repeat);

/* Enqueues, in the slot's stream, a dwell's samples without the echoes into the slot; *view is what
 * the engine is to be given then. */
int pnr_cuda_repeat_prepare(const pnr_cuda_common *of, pnr_cuda_repeat *repeat,
                            const pnr_windows *windows, size_t dwell, const pnr_removal *removals,
                            size_t n_removals, pnr_windows *view, pnr_error *error);

#endif
