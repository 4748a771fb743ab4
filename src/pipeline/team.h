/* SPDX-License-Identifier: MIT */
/* The detection threads: detect the echoes in the dwells of a result at the same time, and return
 * the detections in order. */
#ifndef PNR_TEAM_H
#define PNR_TEAM_H

#include "detector/detector.h"

typedef struct pnr_team pnr_team;

/* Fills *out with dwell d of a result. */
typedef void pnr_team_view(const void *context, size_t d, pnr_observed *out);

/* Starts n_threads - 1 threads; the caller of pnr_team_take is one more. detector: the caller
 * detects with it, and the threads share its tables; destroy it after the team. max_echoes:
 * greatest number of echoes of a detection. dwell_ns: the duration of a dwell. PNR_OK,
 * PNR_ENOMEMORY. */
int pnr_team_create(const pnr_detector *detector, size_t max_echoes, size_t n_threads,
                    uint64_t dwell_ns, pnr_team **out);
void pnr_team_destroy(pnr_team *team);

/* Adds the dwells 0 .. n_dwells - 1 of a result after the waiting dwells. context must stay valid
 * until the last of these dwells is taken. n_candidates: candidates of all these dwells. If no
 * dwell waits and there is little work, the caller detects these dwells alone. Do not call this if
 * dwells already wait and more than PNR_TEAM_DWELLS dwells would wait after the call. */
enum { PNR_TEAM_DWELLS = 256 };
void pnr_team_add(pnr_team *team, pnr_team_view *view, const void *context, size_t n_dwells,
                  size_t n_candidates);
/* Limits the time of a detection if is_hurried. The limit is dwell_ns times the number of threads
 * that detect at the same time. */
void pnr_team_hurry(pnr_team *team, bool is_hurried);
/* True if the next dwell is detected, so that take does not wait. */
bool pnr_team_is_ready(const pnr_team *team);
/* Fills *out with the detection of the next dwell. The detection has the same bits for any number
 * of threads. While this dwell is not ready, the caller detects other dwells. Allocates nothing. */
void pnr_team_take(pnr_team *team, pnr_detection *out);

#endif
