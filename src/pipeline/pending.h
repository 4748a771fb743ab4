/* SPDX-License-Identifier: MIT */
/* Copies of results whose dwells the detection threads have not finished: the engine and the ring
 * go on meanwhile. */
#ifndef PNR_PENDING_H
#define PNR_PENDING_H

#include "engine/block.h"
#include "engine/engine.h"

/* A result and its windows. A copy in the queue has no lost runs, and its samples are gone. */
typedef struct pnr_pending_result {
    const pnr_plan *plan;
    pnr_windows windows;
    pnr_result result;
} pnr_pending_result;

typedef struct pnr_pending pnr_pending;

/* For results of up to max_dwells maps. Keeps the pointer to plan. *out is NULL if two results take more than 32 MiB, or if
 * the plan has one row: copying then takes longer than it saves. PNR_OK, PNR_ENOMEMORY. */
int pnr_pending_create(const pnr_plan *plan, size_t max_dwells, pnr_pending **out);
void pnr_pending_destroy(pnr_pending *pending);

bool pnr_pending_is_empty(const pnr_pending *pending);
bool pnr_pending_is_full(const pnr_pending *pending);
/* Copies a result behind the others; the queue is not full. The copy stays until it is popped. */
const pnr_pending_result *pnr_pending_push(pnr_pending *pending, const pnr_windows *windows,
                                           const pnr_result *result);
/* The oldest result; the queue is not empty. */
const pnr_pending_result *pnr_pending_front(const pnr_pending *pending);
void pnr_pending_pop(pnr_pending *pending);

#endif
