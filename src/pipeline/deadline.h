/* SPDX-License-Identifier: MIT */
/* The deadline of results: counts the late results, and reports several of them as one event. */
#ifndef PNR_DEADLINE_H
#define PNR_DEADLINE_H

#include "base/event.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pnr_deadline {
    uint64_t due_ns; /* greatest permitted time from the commit of the last sample of a dwell to the
                      * publication of its result; 0: no deadline */
    uint64_t n_results, n_missed;
    uint64_t n_untold, worst_ns; /* late results and greatest latency since the last event */
} pnr_deadline;

/* wanted_s: engine.deadline. If wanted_s is 0, the deadline of a live stream is dwell_s, the
 * duration of a dwell. A recording that plays as fast as possible then has no deadline. */
pnr_deadline pnr_deadline_of(double wanted_s, double dwell_s, bool is_live);
/* Counts a result that took latency_ns; returns true if the result is late. */
bool pnr_deadline_is_missed(pnr_deadline *deadline, uint64_t latency_ns);
/* Reports the late results since the last call as one event. */
void pnr_deadline_tell(pnr_deadline *deadline, pnr_events *events);

#endif
