/* SPDX-License-Identifier: MIT */
/* Copies of results that the detection threads have not finished. The engine and the ring do not
 * wait for these results. */
#ifndef PNR_PENDING_H
#define PNR_PENDING_H

#include "base/account.h"
#include "engine/block.h"
#include "engine/engine.h"

/* A result and its windows. A copy in the queue has neither lost runs nor samples. */
typedef struct pnr_pending_result {
    const pnr_plan *plan;
    pnr_windows windows;
    pnr_result result;
    pnr_account account; /* account of the samples and windows of the result */
} pnr_pending_result;

typedef struct pnr_pending pnr_pending;

enum { PNR_MOST_PENDING = 16 }; /* greatest number of results in the queue */

/* Creates the queue for results of up to max_dwells dwells. Keeps the pointer to plan. *out is NULL
 * without an error if two results need more than 32 MiB, if max_dwells is above 16, or if the plan
 * has one row. In these cases a copy takes longer than it saves. PNR_OK, PNR_ENOMEMORY. */
int pnr_pending_create(const pnr_plan *plan, size_t max_dwells, pnr_pending **out);
void pnr_pending_destroy(pnr_pending *pending);

bool pnr_pending_is_empty(const pnr_pending *pending);
bool pnr_pending_is_full(const pnr_pending *pending);
/* Copies a result to the end of the queue, which must not be full. The copy stays until it is
 * popped. */
const pnr_pending_result *pnr_pending_push(pnr_pending *pending, const pnr_pending_result *from);
/* Returns the oldest result. The queue must not be empty. */
const pnr_pending_result *pnr_pending_front(const pnr_pending *pending);
void pnr_pending_pop(pnr_pending *pending);

#endif
