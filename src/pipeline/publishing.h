/* SPDX-License-Identifier: MIT */
/* The publishing thread: reads results from a queue, and sends, prints and counts them. It may
 * wait for a subscriber, a pipe or a disk. The processing thread of a live stream never waits
 * for these. */
#ifndef PNR_PUBLISHING_H
#define PNR_PUBLISHING_H

#include "base/account.h"
#include "base/error.h"
#include "base/event.h"
#include "config/config.h"
#include "pipeline/acquisition.h"
#include "pipeline/exchange.h"
#include "pipeline/isolation.h"
#include "pipeline/pipeline.h"
#include "pipeline/realtime.h"
#include "pipeline/reload.h"
#include "pipeline/watchdog.h"
#include "ring/queue.h"
#include "setup/setup.h"
#include "source/source.h"

#include <pthread.h>

/* The parts of a run that the publishing thread uses. All pointers outlive the thread. */
typedef struct pnr_publishing_parts {
    const pnr_config *config;
    const pnr_pipeline_options *options;
    const pnr_setup *setup;
    const pnr_source_info *info; /* as at the start of the stream */
    const pnr_acquisition *acquisition;
    const pnr_turns *turns; /* turns of the processing thread */
    const pnr_realtime *realtime;
    pnr_events *events;
    const char *engine;             /* such as "cpu/library" */
    const pnr_isolation *isolation; /* NULL: the engine is in this process */
    pnr_reload
        *reload; /* reads a new configuration when the user wants one; NULL: the configuration never
                  * changes */
    bool is_live;
} pnr_publishing_parts;

typedef struct pnr_publishing pnr_publishing;

/* Opens the publisher, the trackers, the recorder of results and the queue. Allocates everything.
 * Errors: those of pnr_publisher_create, pnr_publisher_reserve_cells, pnr_zero_state_check and
 * pnr_result_recorder_create; PNR_ECONFIG: the steps of Doppler between the rows change too often;
 * PNR_ENOMEMORY. */
int pnr_publishing_create(const pnr_publishing_parts *parts, pnr_publishing **out,
                          pnr_error *error);
void pnr_publishing_destroy(pnr_publishing *publishing);
/* Prepares a change of the configuration during a run: creates the description of maps and the
 * queue of results for the new configuration. Opens no publisher, tracker, recorder or thread.
 * Errors as for create. */
int pnr_publishing_prepare(const pnr_publishing_parts *parts, pnr_publishing **out,
                           pnr_error *error);
/* Returns the number of bytes that pnr_publishing_create allocates for the queue. */
size_t pnr_publishing_bytes(const pnr_setup *setup, bool is_live);

/* Waits for a subscriber as publisher.wait_s says, then starts the thread. PNR_OK,
 * PNR_ENOMEMORY. */
int pnr_publishing_start(pnr_publishing *publishing, pnr_error *error);
/* Ends the thread after the last result, and sends the results that are still in a pack. */
void pnr_publishing_stop(pnr_publishing *publishing);
pthread_t pnr_publishing_thread(const pnr_publishing *publishing);

/* Logs a warning if n_bytes is not 0. n_bytes: number of bytes after the last whole sample. It is
 * known at the start of a file, and at the end of a pipe. */
void pnr_publishing_log_trailing(uint64_t n_bytes);

/* --- the processing thread --- */

/* Lends memory for the next result; never NULL. Waits while the queue of a recording is full. If
 * the queue of a live stream is full, the lent memory is not in the queue. */
pnr_made *pnr_publishing_reserve(pnr_publishing *publishing);
/* Appends the lent result with its cells (NULL: none), or counts it as unsent. If the queue of a
 * live stream has no space for the cells, only the result is appended. */
void pnr_publishing_commit(pnr_publishing *publishing, const float *cells);
/* Appends the present account of samples and windows. failure: the error code of the last submit
 * that failed. must: waits for space; otherwise nothing is appended to a full queue. */
void pnr_publishing_account(pnr_publishing *publishing, const pnr_account *account, int failure,
                            const pnr_device_state *devices, bool must);
/* Returns true when a tenth of a second has passed since it last returned true. The processing
 * thread calls it in each turn. A pause of more than engine.deadline_hang between two calls is
 * reported as an event. */
bool pnr_publishing_wants_account(pnr_publishing *publishing);
/* Wakes the publishing thread after commits. is_idle: the processing thread waits for samples. Then
 * the publishing thread also sends packs that are not full. */
void pnr_publishing_wake(pnr_publishing *publishing, bool is_idle);

/* From `sample` on, results belong to *next, which pnr_publishing_prepare has created. The
 * `skipped` samples before `sample` are in no window. When all earlier results are published, the
 * thread begins a new run and exchanges its parts with *next. Then has_taken returns true. Any
 * thread may call has_taken. */
void pnr_publishing_change(pnr_publishing *publishing, pnr_publishing *next, uint64_t sample,
                           uint64_t skipped);
bool pnr_publishing_has_taken(const pnr_publishing *next);

/* --- after stop --- */

/* Calls options->finish, checks the account of the run, reports the account to subscribers and to
 * the log, and calls options->end. positions: number of samples that the ring has counted. Returns
 * `code`, or another error code that options->finish or options->end returns. PNR_EINTERNAL: the
 * sums of the account do not agree. */
int pnr_publishing_close_account(pnr_publishing *publishing, uint64_t positions, int code,
                                 pnr_error *error, pnr_account *account);

#endif
