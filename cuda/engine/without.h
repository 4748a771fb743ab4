/* SPDX-License-Identifier: MIT */
/* Searches a dwell again without its echoes. The samples are converted, the echoes are subtracted,
 * and a second engine searches the result. */
#ifndef PNR_CUDA_WITHOUT_H
#define PNR_CUDA_WITHOUT_H

#include "cuda/base/slot.h"

/* The plan of the second engine has cf32 samples and one dwell a submit. The samples of the dwell
 * are converted to cf32 on the device, from `raw` to the slot of the second engine. If the plan of
 * the first engine says so, they are also conjugated and mixed by its `tune`. */
typedef struct pnr_cuda_without {
    pnr_engine *engine; /* the second engine, with the plan of pnr_cuda_without_plan */
    const pnr_cuda_common *common;
    pnr_cuda_slot *slot;

    void *raw;       /* [n_windows * N + n_tail][n_channels], device */
    float2 *replica; /* [N], device */
    uint32_t *marks; /* marks of lost samples, device */
    uint32_t *count; /* number of clipped samples, device */
    uint32_t *host_marks;
    uint32_t *host_count;
} pnr_cuda_without;

/* Returns the plan of the second engine. */
pnr_plan pnr_cuda_without_plan(const pnr_plan *plan);
/* Stores the second engine, `engine`, in *without, even on failure. plan: the plan of the first
 * engine; the second engine has pnr_cuda_without_plan(plan). On failure call destroy. */
int pnr_cuda_without_create(const pnr_plan *plan, pnr_engine *engine, pnr_cuda_without *without,
                            pnr_error *error);
/* Frees everything except the second engine, which the caller destroys first. */
void pnr_cuda_without_destroy(pnr_cuda_without *without);

/* Enqueues work that writes the samples of a dwell, without its echoes, into the slot of the second
 * engine. The work runs in the stream of that slot. *view: the windows to submit to the second
 * engine afterwards. */
int pnr_cuda_without_prepare(const pnr_cuda_common *of, pnr_cuda_without *without,
                             const pnr_windows *windows, size_t dwell, const pnr_removal *removals,
                             size_t n_removals, pnr_windows *view, pnr_error *error);

#endif
