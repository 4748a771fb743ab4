/* SPDX-License-Identifier: MIT */
/* A submit of the cpu engine: its windows and the memory of its result. */
#ifndef PNR_ENGINE_CPU_SLOT_H
#define PNR_ENGINE_CPU_SLOT_H

#include "engine/cpu/cpu.h"
#include "engine/engine.h"

typedef struct pnr_cpu_slot {
    pnr_windows windows;
    uint32_t *lost; /* [batch][windows of a dwell] */
    uint64_t tag;
    size_t first_dwell; /* index of the first dwell in windows */
    const pnr_removal *removals;
    size_t n_removals;
    size_t n_taken, n_done; /* dwells */
    pnr_dwell *dwells;
    pnr_candidate *candidates;
    uint32_t *nonfinite;
    float *profile, *patches;
    uint64_t stage_ns[PNR_STAGE_COUNT];
} pnr_cpu_slot;

/* Bytes of all slots: `depth` slots of `batch` dwells, and one slot of one dwell for
 * search_without. */
double pnr_cpu_slots_bytes(const pnr_plan *plan);
/* PNR_OK, PNR_ENOMEMORY; destroy in either case. */
int pnr_cpu_slot_create(const pnr_plan *plan, size_t batch, pnr_cpu_slot *slot);
void pnr_cpu_slot_destroy(pnr_cpu_slot *slot);

/* Takes n_dwells of a view from its dwell `first` on. */
void pnr_cpu_slot_fill(const pnr_plan *plan, const pnr_windows *windows, size_t first,
                       size_t n_dwells, pnr_cpu_slot *slot);
bool pnr_cpu_slot_is_done(const pnr_cpu_slot *slot);
/* The input of dwell d and the places of its results. */
pnr_cpu_dwell pnr_cpu_slot_dwell(const pnr_plan *plan, pnr_cpu_slot *slot, size_t d);
pnr_result pnr_cpu_slot_result(const pnr_cpu_slot *slot);

#endif
