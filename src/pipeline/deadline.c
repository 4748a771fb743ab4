/* SPDX-License-Identifier: MIT */
/* The deadline of results: counts the late results, and logs several of them in one line. */
#include "pipeline/deadline.h"

#include "base/log.h"

#include <inttypes.h>
#include <math.h>

pnr_deadline pnr_deadline_of(double wanted_s, double period_s, bool is_live)
{
    const double due_s = wanted_s > 0 ? wanted_s : is_live ? period_s : 0;

    return (pnr_deadline){.due_ns = (uint64_t)ceil(due_s * 1e9)};
}

bool pnr_deadline_is_missed(pnr_deadline *deadline, uint64_t latency_ns)
{
    deadline->n_results++;
    if (deadline->due_ns == 0 || latency_ns <= deadline->due_ns)
        return false;
    deadline->n_missed++;
    deadline->n_unlogged++;
    if (latency_ns > deadline->worst_ns)
        deadline->worst_ns = latency_ns;
    return true;
}

void pnr_deadline_log(pnr_deadline *deadline)
{
    if (deadline->n_unlogged == 0 || !pnr_log_is_ready())
        return;
    pnr_log(PNR_LOG_WARN,
            "%" PRIu64 " results late, the worst after %.6g us where %.6g us are due; %" PRIu64
            " of %" PRIu64 " since the start",
            deadline->n_unlogged, (double)deadline->worst_ns * 1e-3,
            (double)deadline->due_ns * 1e-3, deadline->n_missed, deadline->n_results);
    deadline->n_unlogged = 0;
    deadline->worst_ns = 0;
}
