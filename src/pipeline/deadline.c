/* SPDX-License-Identifier: MIT */
/* The deadline of results: counts the late results, and reports several of them as one event. */
#include "pipeline/deadline.h"

#include <inttypes.h>
#include <math.h>

pnr_deadline pnr_deadline_of(double wanted_s, double dwell_s, bool is_live)
{
    const double due_s = wanted_s > 0 ? wanted_s : is_live ? dwell_s : 0;

    return (pnr_deadline){.due_ns = (uint64_t)ceil(due_s * 1e9)};
}

bool pnr_deadline_is_missed(pnr_deadline *deadline, uint64_t latency_ns)
{
    deadline->n_results++;
    if (deadline->due_ns == 0 || latency_ns <= deadline->due_ns)
        return false;
    deadline->n_missed++;
    deadline->n_untold++;
    if (latency_ns > deadline->worst_ns)
        deadline->worst_ns = latency_ns;
    return true;
}

void pnr_deadline_tell(pnr_deadline *deadline, pnr_events *events)
{
    if (deadline->n_untold == 0)
        return;
    pnr_event_post(events, PNR_EVENT_OVERLOAD, PNR_EVENT_NO_SAMPLE, (double)deadline->n_untold,
                   (double)deadline->worst_ns * 1e-3,
                   "%" PRIu64 " results late, the worst after %.6g us where %.6g us are due; "
                   "%" PRIu64 " of %" PRIu64 " since the start",
                   deadline->n_untold, (double)deadline->worst_ns * 1e-3,
                   (double)deadline->due_ns * 1e-3, deadline->n_missed, deadline->n_results);
    deadline->n_untold = 0;
    deadline->worst_ns = 0;
}
