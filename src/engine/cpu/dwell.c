/* SPDX-License-Identifier: MIT */
/* One dwell of the cpu engine, step by step. */
#include "engine/cpu/fused.h"
#include "engine/plan.h"

#include <string.h>

/* Sets the lines to 0, because no look of the dwell is used. */
static void clear_lines(const pnr_cpu_step *s)
{
    const pnr_plan *plan = s->cpu->plan;
    const size_t cells = pnr_plan_cells(plan);

    if (s->power != NULL)
        memset(s->power, 0, cells * sizeof *s->power);
    if (plan->want_profile == PNR_WANT_COMPLEX)
        memset(s->dwell->profile, 0, 2 * cells * sizeof *s->dwell->profile);
}

static void compute_fused(pnr_cpu_step *s)
{
    pnr_dwell *sums = s->dwell->sums;

    s->n_looks = 1;
    for (; s->first_look < s->cpu->plan->n_looks; s->first_look++)
        if (pnr_cpu_read_fused(s)) {
            s->cpu->fused->correlate(s);
            s->n_used++;
        }
    if (s->cpu->is_plain)
        sums->floor = sums->energy * s->cpu->energy_of_code / (double)s->cpu->plan->n_samples;
    pnr_cpu_fused_finish(s);
}

static void compute_kept(pnr_cpu_step *s)
{
    const size_t n_looks = s->cpu->plan->n_looks;

    for (; s->first_look < n_looks; s->first_look += s->n_looks) {
        const size_t left = n_looks - s->first_look;

        s->n_looks = left < s->cpu->looks_at_once ? left : s->cpu->looks_at_once;
        pnr_cpu_read_kept(s);
        pnr_cpu_slow_time(s);
    }
    if (s->n_used > 0)
        pnr_cpu_rows(s);
}

static void search(const pnr_cpu_step *s)
{
    const pnr_cpu *cpu = s->cpu;
    const pnr_search_places places = {cpu->walsh.place, cpu->walsh.lag_at, cpu->n_places};
    const bool is_placed = cpu->n_places > 0 && !cpu->is_ordered;

    pnr_search_dwell(cpu->plan, cpu->energy_of_code, is_placed ? s->my->grid : s->power, s->n_used,
                     s->my->lines, is_placed ? &places : NULL, s->dwell->sums,
                     s->dwell->candidates);
}

void pnr_cpu_process(const pnr_cpu *cpu, const pnr_cpu_memory *memory, const pnr_slot_dwell *dwell,
                     pnr_cpu_team *team, size_t worker)
{
    const bool is_power = cpu->plan->want_profile == PNR_WANT_POWER;
    pnr_cpu_step s = {
        .cpu = cpu,
        .my = memory,
        .dwell = dwell,
        .team = cpu->is_shared ? team : NULL,
        .worker = worker,
        .power = is_power ? dwell->profile : memory->power,
    };

    pnr_cpu_lap(dwell->stage_ns, PNR_STAGE_COUNT, &s.since);
    memset(dwell->sums, 0, sizeof *dwell->sums);
    if (cpu->fused != NULL)
        compute_fused(&s);
    else
        compute_kept(&s);
    if (s.n_used == 0)
        clear_lines(&s);
    search(&s);
    if (cpu->fused != NULL)
        pnr_cpu_fused_gather(&s);
    pnr_cpu_lap(dwell->stage_ns, PNR_STAGE_PEAK, &s.since);
    if (cpu->fused == NULL)
        pnr_cpu_gather(&s);
}
