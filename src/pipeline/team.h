/* SPDX-License-Identifier: MIT */
/* The detection threads: detect the dwells of a result at the same time, and return the detections
 * in order. */
#ifndef PNR_TEAM_H
#define PNR_TEAM_H

#include "detector/detector.h"

typedef struct pnr_team pnr_team;

/* Fills *out with dwell d of a result. Threads call it at the same time. */
typedef void pnr_team_view(const void *context, size_t d, pnr_observed *out);

/* Starts n_threads - 1 threads; the caller of take is the first one. detector: used by the caller,
 * shared with the others, and destroyed after the team. PNR_OK, PNR_ENOMEMORY. */
int pnr_team_create(const pnr_detector *detector, size_t n_threads, pnr_team **out);
void pnr_team_destroy(pnr_team *team);

/* Begins the dwells 0 .. n_dwells - 1 of a result, after all dwells of the previous one were taken.
 * context stays valid until the last dwell is taken. n_candidates: of all dwells. If they are few,
 * the caller detects alone, because the way to another core takes longer. */
void pnr_team_begin(pnr_team *team, pnr_team_view *view, const void *context, size_t n_dwells,
                    size_t n_candidates);
/* Fills *out with the detection of the next dwell. The bits do not depend on the number of
 * threads. While the dwell is not ready, the caller detects others. Allocates nothing. */
void pnr_team_take(pnr_team *team, pnr_detection *out);

#endif
