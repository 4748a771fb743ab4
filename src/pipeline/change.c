/* SPDX-License-Identifier: MIT */
/* The publishing thread exchanges its parts with those of another configuration, and begins a new
 * run. */
#include "pipeline/publishing_state.h"

#include "base/log.h"
#include "detector/zero_state.h"
#include "engine/plan.h"

#include <inttypes.h>
#include <string.h>

void pnr_publishing_begin_trackers(pnr_publishing *p)
{
    const pnr_config *config = p->parts.config;
    const pnr_radar *radar = &p->parts.setup->radar;
    const uint64_t n_slips = p->slip.n_slips, n_alarms = p->zero.n_alarms;
    pnr_zero_memory memory;

    p->is_zero_kept =
        config->radar.zero == PNR_ZERO_DIRECT_PATH && config->radar.zero_state_path[0] != '\0';
    pnr_zero_begin(&p->zero, config, radar,
                   p->is_zero_kept && pnr_zero_state_read(config, radar, p->parts.info->format,
                                                          p->parts.events, &memory)
                       ? &memory
                       : NULL);
    pnr_slip_begin(&p->slip, radar);
    p->zero.events = p->slip.events = p->parts.events;
    p->slip.n_slips = n_slips;
    p->zero.n_alarms = n_alarms;
}

void pnr_publishing_begin_reports(pnr_publishing *p)
{
    const pnr_setup *setup = p->parts.setup;

    strncpy(p->report.engine, p->parts.engine, sizeof p->report.engine - 1);
    p->report.pfa_cell = setup->pfa_cell;
    p->report.rate_hz = pnr_rational_double(setup->radar.rate_hz);
    p->deadline.due_ns =
        pnr_deadline_of(p->parts.config->engine.deadline,
                        setup->radar.period_s * (double)pnr_plan_windows(&setup->plan),
                        p->parts.is_live)
            .due_ns;
    p->is_clipping = false;
}

void pnr_publishing_take_change(pnr_publishing *p)
{
    pnr_publishing *next = atomic_exchange(&p->next, NULL);

    pnr_publishing_finish_pack(p);
    pnr_publishing_keep_zero(p, false);
    PNR_EXCHANGE(pnr_publishing_parts, parts);
    PNR_EXCHANGE(pnr_queue *, queue);
    PNR_EXCHANGE(pnr_map_info, map);
    PNR_EXCHANGE(const char **, code_names);
    PNR_EXCHANGE(double, gate_delay_s);
    PNR_EXCHANGE(size_t, gate_first_cell);
    pnr_publisher_begin_run(p->publisher);
    pnr_publishing_begin_trackers(p);
    pnr_publishing_begin_reports(p);
    pnr_event_post(p->parts.events, PNR_EVENT_RELOADED, p->next_sample, (double)p->next_skipped, 0,
                   "the configuration was read again: a new run begins at sample %" PRIu64
                   ", %" PRIu64 " samples are skipped before it",
                   p->next_sample, p->next_skipped);
    atomic_store(&next->has_taken, true);
}
