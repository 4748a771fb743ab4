/* SPDX-License-Identifier: MIT */
/* The submits in flight of an engine that runs on the host: their windows and the memory of their
 * results. */
#ifndef PNR_ENGINE_SLOT_H
#define PNR_ENGINE_SLOT_H

#include "engine/engine.h"

typedef struct pnr_slot {
    pnr_windows windows;
    uint64_t tag;
    size_t first_dwell; /* index in `windows` of the first dwell of this slot */
    const pnr_removal *removals;
    size_t n_removals;
    size_t n_taken, n_done; /* dwells that threads have begun; dwells that are complete */
    pnr_dwell *dwells;
    pnr_candidate *candidates;
    uint32_t *nonfinite;
    float *profile, *patches; /* profile: NULL unless the plan wants it; patches: NULL if the plan
                               * has one row */
    uint64_t stage_ns[PNR_STAGE_COUNT];
} pnr_slot;

typedef struct pnr_slots {
    pnr_slot queue[PNR_MAX_DEPTH];
    size_t depth, first, in_flight;
    pnr_slot without; /* the dwell of search_without */
} pnr_slots;

/* The input of one dwell and the memory for its results. */
typedef struct pnr_slot_dwell {
    const pnr_windows *windows;
    size_t number;        /* index of the dwell in the view */
    const uint32_t *lost; /* [n_looks][n_periods] lost samples of each window */
    pnr_dwell *sums;
    pnr_candidate *candidates; /* [max_candidates] */
    uint32_t *nonfinite;       /* [n_looks][n_periods] non-finite samples of each window */
    float *profile;            /* NULL: the plan does not want it */
    float *patches;            /* NULL: the plan has one row */
    const pnr_removal *removals;
    size_t n_removals;
    uint64_t *stage_ns; /* [PNR_STAGE_COUNT]; NULL: nothing is measured */
} pnr_slot_dwell;

/* Returns the bytes of all slots. */
double pnr_slots_bytes(const pnr_plan *plan);
/* PNR_OK, PNR_ENOMEMORY; call destroy in either case. A zeroed struct may be destroyed too. */
int pnr_slots_create(const pnr_plan *plan, pnr_slots *slots);
void pnr_slots_destroy(pnr_slots *slots);

/* Returns submit i of the submits in flight; i = 0 is the oldest. */
pnr_slot *pnr_slots_get(pnr_slots *slots, size_t i);
/* PNR_OK; PNR_EAGAIN: depth submits are in flight. */
int pnr_slots_submit(pnr_slots *slots, const pnr_job *job);
/* Removes the oldest submit from the queue and returns its result. */
void pnr_slots_collect(pnr_slots *slots, pnr_result *result);
/* Sets *slot and *dwell to the next dwell to compute. The dwell of search_without comes before all
 * others. Returns false if no dwell is left. */
bool pnr_slots_take(pnr_slots *slots, pnr_slot **slot, size_t *dwell);
/* Sets slots->without to one dwell of a view. pnr_slots_take then returns this dwell. */
void pnr_slots_begin_without(pnr_slots *slots, const pnr_windows *windows, size_t dwell,
                             const pnr_removal *removals, size_t n_removals);

bool pnr_slot_is_done(const pnr_slot *slot);
pnr_slot_dwell pnr_slot_get_dwell(const pnr_plan *plan, pnr_slot *slot, size_t d);
pnr_result pnr_slot_result(const pnr_slot *slot);

#endif
