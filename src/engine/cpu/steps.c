/* SPDX-License-Identifier: MIT */
/* Functions that all steps of a dwell on the cpu engine use. */
#include "engine/cpu/steps.h"

void pnr_cpu_do(const pnr_cpu_step *s, pnr_cpu_task *task, size_t n_tasks)
{
    pnr_cpu_step context = *s;

    if (s->team != NULL)
        pnr_cpu_team_do(s->team, s->worker, task, &context, n_tasks);
    else
        for (size_t i = 0; i < n_tasks; i++)
            task(&context, i, s->worker);
}

bool pnr_cpu_is_used(const pnr_cpu_step *s, size_t look)
{
    for (size_t i = s->n_used; i-- > 0 && s->my->looks[i] >= look;)
        if (s->my->looks[i] == look)
            return true;
    return false;
}
