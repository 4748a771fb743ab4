/* SPDX-License-Identifier: MIT */
/* Functions that all steps of a dwell on the cpu engine use. */
#include "engine/cpu/steps.h"

#include "base/clock.h"

void pnr_cpu_do(const pnr_cpu_step *s, pnr_cpu_task *task, size_t n_tasks)
{
    pnr_cpu_step context = *s;

    if (s->team != NULL)
        pnr_cpu_team_do(s->team, s->worker, task, &context, n_tasks);
    else
        for (size_t i = 0; i < n_tasks; i++)
            task(&context, i, s->worker);
}

void pnr_cpu_lap(const pnr_cpu_dwell *dwell, int stage, uint64_t *since)
{
    if (dwell->stage_ns != NULL) {
        const uint64_t now = pnr_clock_ns();

        if (stage < PNR_STAGE_COUNT)
            dwell->stage_ns[stage] += now - *since;
        *since = now;
    }
}

bool pnr_cpu_is_used(const pnr_cpu_step *s, size_t look)
{
    for (size_t i = s->n_used; i-- > 0 && s->my->looks[i] >= look;)
        if (s->my->looks[i] == look)
            return true;
    return false;
}
