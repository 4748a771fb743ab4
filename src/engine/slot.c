/* SPDX-License-Identifier: MIT */
/* The submits in flight of an engine that runs on the host: their windows and the memory of their
 * results. */
#include "engine/slot.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static size_t profile_values(const pnr_plan *plan)
{
    return pnr_plan_profile_bytes(plan) / sizeof(float);
}

static size_t patch_values(const pnr_plan *plan)
{
    const size_t each = (size_t)PNR_NEIGHBOURS * PNR_NEIGHBOURS * 2;

    return pnr_plan_rows(plan) > 1 ? plan->max_candidates * each : 0;
}

double pnr_slots_bytes(const pnr_plan *plan)
{
    const size_t each = sizeof(pnr_dwell) + plan->max_candidates * sizeof(pnr_candidate) +
                        pnr_plan_windows(plan) * sizeof(uint32_t) +
                        (profile_values(plan) + patch_values(plan)) * sizeof(float);

    return (double)(plan->depth * plan->batch + 1) * (double)each;
}

static bool create_slot(const pnr_plan *plan, size_t batch, pnr_slot *s)
{
    const size_t profile = batch * profile_values(plan), patches = batch * patch_values(plan);

    s->dwells = calloc(batch, sizeof *s->dwells);
    s->candidates = calloc(batch * plan->max_candidates, sizeof *s->candidates);
    s->nonfinite = calloc(batch * pnr_plan_windows(plan), sizeof *s->nonfinite);
    if (profile > 0)
        s->profile = pnr_memory_zeroed(profile * sizeof *s->profile);
    if (patches > 0)
        s->patches = pnr_memory_zeroed(patches * sizeof *s->patches);
    return s->dwells != NULL && s->candidates != NULL && s->nonfinite != NULL &&
           (s->profile != NULL || profile == 0) && (s->patches != NULL || patches == 0);
}

static void destroy_slot(pnr_slot *s)
{
    free(s->dwells);
    free(s->candidates);
    free(s->nonfinite);
    free(s->profile);
    free(s->patches);
}

int pnr_slots_create(const pnr_plan *plan, pnr_slots *slots)
{
    bool is_complete = create_slot(plan, 1, &slots->without);

    slots->depth = plan->depth;
    for (size_t i = 0; is_complete && i < plan->depth; i++)
        is_complete = create_slot(plan, plan->batch, &slots->queue[i]);
    return is_complete ? PNR_OK : PNR_ENOMEMORY;
}

void pnr_slots_destroy(pnr_slots *slots)
{
    for (size_t i = 0; i < PNR_MAX_DEPTH; i++)
        destroy_slot(&slots->queue[i]);
    destroy_slot(&slots->without);
}

pnr_slot *pnr_slots_get(pnr_slots *slots, size_t i)
{
    return &slots->queue[(slots->first + i) % slots->depth];
}

static void begin_slot(pnr_slot *s, const pnr_windows *windows, size_t first, size_t n_dwells)
{
    s->windows = *windows;
    s->first_dwell = first;
    s->windows.n_dwells = n_dwells;
    s->n_taken = s->n_done = 0;
    memset(s->stage_ns, 0, sizeof s->stage_ns);
}

int pnr_slots_submit(pnr_slots *slots, const pnr_job *job)
{
    pnr_slot *s = pnr_slots_get(slots, slots->in_flight);

    if (slots->in_flight == slots->depth)
        return PNR_EAGAIN;
    begin_slot(s, job->windows, 0, job->windows->n_dwells);
    s->tag = job->tag;
    slots->in_flight++;
    return PNR_OK;
}

void pnr_slots_collect(pnr_slots *slots, pnr_result *result)
{
    *result = pnr_slot_result(pnr_slots_get(slots, 0));
    slots->first = (slots->first + 1) % slots->depth;
    slots->in_flight--;
}

bool pnr_slots_take(pnr_slots *slots, pnr_slot **slot, size_t *dwell)
{
    for (size_t i = 0; i <= slots->in_flight; i++) {
        pnr_slot *s = i == 0 ? &slots->without : pnr_slots_get(slots, i - 1);

        if (s->n_taken < s->windows.n_dwells) {
            *slot = s;
            *dwell = s->n_taken++;
            return true;
        }
    }
    return false;
}

void pnr_slots_begin_without(pnr_slots *slots, const pnr_windows *windows, size_t dwell,
                             const pnr_removal *removals, size_t n_removals)
{
    begin_slot(&slots->without, windows, dwell, 1);
    slots->without.removals = removals;
    slots->without.n_removals = n_removals;
}

bool pnr_slot_is_done(const pnr_slot *s)
{
    return s->n_done == s->windows.n_dwells;
}

pnr_slot_dwell pnr_slot_get_dwell(const pnr_plan *plan, pnr_slot *s, size_t d)
{
    const size_t n_windows = pnr_plan_windows(plan);

    return (pnr_slot_dwell){
        .windows = &s->windows,
        .number = s->first_dwell + d,
        .lost = s->windows.lost + (s->first_dwell + d) * n_windows,
        .sums = &s->dwells[d],
        .candidates = &s->candidates[d * plan->max_candidates],
        .nonfinite = &s->nonfinite[d * n_windows],
        .profile = s->profile != NULL ? s->profile + d * profile_values(plan) : NULL,
        .patches = s->patches != NULL ? s->patches + d * patch_values(plan) : NULL,
        .removals = s->removals,
        .n_removals = s->n_removals,
        .stage_ns = plan->measure ? s->stage_ns : NULL,
    };
}

pnr_result pnr_slot_result(const pnr_slot *s)
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
