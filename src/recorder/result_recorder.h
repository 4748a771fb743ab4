/* SPDX-License-Identifier: MIT */
/* Records the results in a file, in a thread of its own that never delays a live stream. */
#ifndef PNR_RESULT_RECORDER_H
#define PNR_RESULT_RECORDER_H

#include "base/event.h"
#include "config/config.h"
#include "publisher/message.h"

typedef struct pnr_result_recorder pnr_result_recorder;

/* Opens recorder.results (not empty) and starts the thread. The extension defines the kind of file:
 * .jsonl, .csv, .sqlite or .h5. The last two kinds are in modules. can_wait:
 * pnr_result_recorder_add waits for a slow disk. Posts an event when the recording fails and when
 * it works again; events may be NULL. Returns PNR_OK; PNR_ECONFIG: another extension, or a file of
 * another program; PNR_EUNAVAILABLE: the module is missing, and the message has the name of its
 * package; PNR_EPERMISSION; PNR_EIO; PNR_ENOMEMORY. */
int pnr_result_recorder_create(const pnr_config *config, bool can_wait, pnr_events *events,
                               pnr_result_recorder **out, pnr_error *error);
/* Records all results that were added, and ends the thread. Logs the totals. */
void pnr_result_recorder_finish(pnr_result_recorder *recorder);
void pnr_result_recorder_destroy(pnr_result_recorder *recorder);

/* Adds a result. The publishing thread calls this function. */
void pnr_result_recorder_add(pnr_result_recorder *recorder, const pnr_report *report);
/* Returns the number of results so far that could not be recorded. Any thread may call it. */
uint64_t pnr_result_recorder_lost(const pnr_result_recorder *recorder);

#endif
