/* SPDX-License-Identifier: MIT */
/* The deadline of results: what is late is counted, and told in one line now and then. */
#ifndef PNR_DEADLINE_H
#define PNR_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pnr_deadline {
    uint64_t due_ns; /* after the last sample of the dwell was committed; 0: there is no deadline */
    uint64_t n_results, n_missed;
    /* Since it was told: */
    uint64_t n_untold, worst_ns;
} pnr_deadline;

/* wanted_s: engine.deadline, 0: one period for a live stream, none for a recording that plays as
 * fast as it goes. */
pnr_deadline pnr_deadline_of(double wanted_s, double period_s, bool is_live);
/* One result that took latency_ns: true when it is late. */
bool pnr_deadline_is_missed(pnr_deadline *deadline, uint64_t latency_ns);
/* Warns of what was missed since the last call, when standard error takes a line without waiting */
void pnr_deadline_tell(pnr_deadline *deadline);

#endif
