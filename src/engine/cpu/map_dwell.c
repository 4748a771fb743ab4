/* SPDX-License-Identifier: MIT */
/* One dwell of a map on the cpu engine, step by step. */
#include "engine/cpu/map_steps.h"

#include "engine/plan.h"

#include <string.h>

void pnr_cpu_map_process(const pnr_cpu_map *map, const pnr_cpu_map_memory *memory,
                         const pnr_cpu_dwell *dwell, pnr_cpu_team *team, size_t worker)
{
    const pnr_plan *plan = map->plan;
    const bool is_power = plan->want_profile == PNR_WANT_POWER;
    pnr_cpu_map_step s = {
        .map = map,
        .my = memory,
        .dwell = dwell,
        .team = team,
        .worker = worker,
        .power = is_power ? dwell->profile : memory->power,
    };

    pnr_cpu_map_lap(dwell, PNR_STAGE_COUNT, &s.since);
    memset(dwell->sums, 0, sizeof *dwell->sums);
    for (; s.first_look < plan->n_looks; s.first_look += s.n_looks) {
        const size_t left = plan->n_looks - s.first_look;

        s.n_looks = left < map->looks_at_once ? left : map->looks_at_once;
        pnr_cpu_map_read(&s);
        pnr_cpu_map_slow(&s);
    }
    if (s.n_used == 0) {
        memset(s.power, 0, pnr_plan_cells(plan) * sizeof *s.power);
        if (plan->want_profile == PNR_WANT_COMPLEX)
            memset(dwell->profile, 0, 2 * pnr_plan_cells(plan) * sizeof *dwell->profile);
    }
    pnr_cpu_map_rows(&s);
    pnr_search_dwell(plan, map->energy_of_code, s.power, s.n_used, memory->lines, NULL, dwell->sums,
                     dwell->candidates);
    pnr_cpu_map_lap(dwell, PNR_STAGE_PEAK, &s.since);
    pnr_cpu_map_gather(&s);
}
