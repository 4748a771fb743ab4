/* SPDX-License-Identifier: MIT */
/* A submit of the cpu engine: its windows and the memory of its result. */
#include "engine/cpu/slot.h"

#include "engine/cpu/memory.h"
#include "engine/plan.h"

#include <stdlib.h>
#include <string.h>

static size_t profile_values(const pnr_plan *plan)
{
    const size_t each = plan->want_profile == PNR_WANT_COMPLEX ? 2 : 1;

    return plan->want_profile == PNR_WANT_NONE ? 0 : each * pnr_plan_cells(plan);
}

static size_t patch_values(const pnr_plan *plan)
{
    const size_t each = (size_t)PNR_NEIGHBOURS * PNR_NEIGHBOURS * 2;

    return pnr_plan_rows(plan) > 1 ? plan->max_candidates * each : 0;
}

double pnr_cpu_slots_bytes(const pnr_plan *plan)
{
    const size_t each = sizeof(pnr_dwell) + plan->max_candidates * sizeof(pnr_candidate) +
                        pnr_plan_windows(plan) * 2 * sizeof(uint32_t) +
                        (profile_values(plan) + patch_values(plan)) * sizeof(float);

    return (double)(plan->depth * plan->batch + 1) * (double)each;
}

int pnr_cpu_slot_create(const pnr_plan *plan, size_t batch, pnr_cpu_slot *s)
{
    bool is_complete = true;

    s->lost = calloc(batch * pnr_plan_windows(plan), sizeof *s->lost);
    s->dwells = calloc(batch, sizeof *s->dwells);
    s->candidates = calloc(batch * plan->max_candidates, sizeof *s->candidates);
    s->nonfinite = calloc(batch * pnr_plan_windows(plan), sizeof *s->nonfinite);
    if (profile_values(plan) > 0)
        is_complete &=
            (s->profile = pnr_cpu_zeroed(batch * profile_values(plan) * sizeof *s->profile)) !=
            NULL;
    if (patch_values(plan) > 0)
        is_complete &=
            (s->patches = pnr_cpu_zeroed(batch * patch_values(plan) * sizeof *s->patches)) != NULL;
    return is_complete && s->lost != NULL && s->dwells != NULL && s->candidates != NULL &&
                   s->nonfinite != NULL
               ? PNR_OK
               : PNR_ENOMEMORY;
}

void pnr_cpu_slot_destroy(pnr_cpu_slot *s)
{
    free(s->lost);
    free(s->dwells);
    free(s->candidates);
    free(s->nonfinite);
    free(s->profile);
    free(s->patches);
}

void pnr_cpu_slot_fill(const pnr_plan *plan, const pnr_windows *windows, size_t first,
                       size_t n_dwells, pnr_cpu_slot *s)
{
    s->windows = *windows;
    s->windows.n_dwells = n_dwells;
    s->windows.lost = memcpy(s->lost, windows->lost + first * pnr_plan_windows(plan),
                             n_dwells * pnr_plan_windows(plan) * sizeof *s->lost);
    s->first_dwell = first;
    s->n_taken = s->n_done = 0;
    memset(s->stage_ns, 0, sizeof s->stage_ns);
}

bool pnr_cpu_slot_is_done(const pnr_cpu_slot *s)
{
    return s->n_done == s->windows.n_dwells;
}

pnr_cpu_dwell pnr_cpu_slot_dwell(const pnr_plan *plan, pnr_cpu_slot *s, size_t d)
{
    return (pnr_cpu_dwell){
        .windows = &s->windows,
        .number = s->first_dwell + d,
        .lost = s->lost + d * pnr_plan_windows(plan),
        .sums = &s->dwells[d],
        .candidates = &s->candidates[d * plan->max_candidates],
        .nonfinite = &s->nonfinite[d * pnr_plan_windows(plan)],
        .profile = s->profile != NULL ? s->profile + d * profile_values(plan) : NULL,
        .patches = s->patches != NULL ? s->patches + d * patch_values(plan) : NULL,
        .removals = s->removals,
        .n_removals = s->n_removals,
        .stage_ns = plan->measure ? s->stage_ns : NULL,
    };
}

pnr_result pnr_cpu_slot_result(const pnr_cpu_slot *s)
{
    pnr_result result = {
        .tag = s->tag,
        .n_dwells = s->windows.n_dwells,
        .dwells = s->dwells,
        .candidates = s->candidates,
        .nonfinite = s->nonfinite,
        .profile = s->profile,
        .patches = s->patches,
    };

    memcpy(result.stage_ns, s->stage_ns, sizeof s->stage_ns);
    return result;
}
