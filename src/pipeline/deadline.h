/* SPDX-License-Identifier: MIT */
/* The deadline of results: counts the late results, and logs several of them in one line. */
#ifndef PNR_DEADLINE_H
#define PNR_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pnr_deadline {
    uint64_t due_ns; /* time from the commit of the last sample of the dwell; 0: no deadline */
    uint64_t n_results, n_missed;
    uint64_t n_unlogged, worst_ns; /* late results and greatest latency since the last log line */
} pnr_deadline;

/* wanted_s: engine.deadline; 0 means period_s for a live stream, and no deadline for a recording
 * that plays as fast as possible. */
pnr_deadline pnr_deadline_of(double wanted_s, double period_s, bool is_live);
/* Counts a result that took latency_ns; returns true if the result is late. */
bool pnr_deadline_is_missed(pnr_deadline *deadline, uint64_t latency_ns);
/* Logs the late results since the last log line, if standard error accepts a line without
 * waiting. */
void pnr_deadline_log(pnr_deadline *deadline);

#endif
