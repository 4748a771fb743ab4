/* SPDX-License-Identifier: MIT */
/* The pipeline: source -> ring -> correlator -> detector -> queue -> publisher, in three threads.
 * It accounts for every sample. */
#ifndef PNR_PIPELINE_H
#define PNR_PIPELINE_H

#include "base/account.h"
#include "base/error.h"
#include "base/notify.h"
#include "config/config.h"
#include "engine/engine.h"
#include "publisher/message.h"
#include "ring/ring.h"

#include <stdbool.h>

/* The publishing thread calls this with each result after it has published the result. During the
 * call other results wait in a queue. If the queue of a live stream is full, the next results are
 * counted as unsent. */
typedef void (*pnr_pipeline_tap)(void *context, const pnr_report *report);

/* The caller's thread calls this last, after the last status is published. code: the error code of
 * the run so far. Returns `code`, or another error code that replaces it. */
typedef int (*pnr_pipeline_end)(void *context, const pnr_status *status, int code,
                                pnr_error *error);

/* The progress in a source of known length. */
typedef struct pnr_progress {
    uint64_t n_done, n_samples; /* samples; n_done <= n_samples */
    double elapsed_s;           /* since the start of the threads */
    uint64_t n_echoes;          /* echoes found so far */
} pnr_progress;

/* The publishing thread calls this once a second if the length of the source is known. Before the
 * thread writes to the log, it also calls this with progress = NULL. */
typedef void (*pnr_pipeline_watch)(void *context, const pnr_progress *progress);

/* As pnr_pipeline_tap, but with a profile or map. The next call of pnr_pipeline_tap has the result
 * of the same dwell. The cells are floats in the order of pnr_publisher_send_cells, and are valid
 * during the call. */
typedef void (*pnr_pipeline_tap_cells)(void *context, const pnr_report *report,
                                       const pnr_map_info *info, const float *cells);

/* The publishing thread calls this when no result waits, so that the caller can write the results
 * that its tap has buffered. */
typedef void (*pnr_pipeline_pause)(void *context);

/* The caller's thread calls this after the last tap, before the last status is published. code: the
 * error code of the run so far. Returns `code`, or another error code that replaces it. */
typedef int (*pnr_pipeline_finish)(void *context, int code, pnr_error *error);

/* A function that fills the ring in place of the source, for libpnradar and benchmarks. The
 * acquisition thread calls it. It returns when *stop is not 0 or when its stream ends. The stream
 * is live when source.pace is real-time. memory: the memory of the ring, [capacity] samples of
 * plan->format (source.format of the configuration). stop: that of the options; NULL if they have
 * none. */
typedef void (*pnr_pipeline_feed)(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory,
                                  size_t capacity, const volatile int *stop);

/* Reads the configuration again, in the same way as for this run. The reload thread calls this. On
 * entry *config has the defaults; the run calls pnr_config_clear when it no longer needs *config.
 * Returns PNR_OK, or the error that refuses the configuration. */
typedef int (*pnr_pipeline_configure)(void *context, pnr_config *config, pnr_error *error);

typedef struct pnr_pipeline_options {
    volatile int *stop;    /* non-zero: the run finishes all windows and ends; may be NULL. If the
                         * engine is lost, the pipeline sets it to 1, so that a feed returns */
    volatile int *trigger; /* non-zero: triggers the recorder of samples (recorder.pre_trigger_s);
                            * the pipeline then sets it to 0; may be NULL */
    pnr_pipeline_tap tap;  /* may be NULL */
    pnr_pipeline_tap_cells tap_cells; /* may be NULL; else the engine computes power even if
                                       * publisher.profile is off */
    pnr_pipeline_pause pause;         /* may be NULL */
    pnr_pipeline_finish finish;       /* may be NULL; called also after an error */
    pnr_pipeline_end end;             /* may be NULL */
    void *tap_context;                /* first argument of the five functions before it */
    pnr_pipeline_watch watch;         /* may be NULL */
    void *watch_context;
    const pnr_notify *service; /* the service manager gets READY, RELOADING, STOPPING and the
                                * watchdog's messages; may be NULL */
    /* non-zero: the pipeline sets it to 0 and reads the configuration again. If the new
     * configuration is good, the stream continues with it from the edge of a window on. Otherwise
     * the stream continues as before. May be NULL */
    volatile int *reload;
    pnr_pipeline_configure configure; /* not NULL if reload is not NULL */
    void *configure_context;
    bool can_isolate;       /* main() of this program begins with pnr_worker_main (worker.h) */
    bool can_exit;          /* true: if *stop is set while an engine is created, the pipeline ends
                             * the whole program */
    pnr_pipeline_feed feed; /* NULL: the samples come from source.input */
    void *feed_context;
} pnr_pipeline_options;

/* Runs the whole stream, and accounts for every sample also after an error. PNR_OK: the stream
 * ended or was stopped, and every window was finished. PNR_EENGINE: the engine failed on some
 * windows; PNR_ELOST: the engine is lost, and the program must be restarted. PNR_EDATA: bad data,
 * or a file shorter than a dwell. Other codes are the errors of the parts. */
int pnr_pipeline_run(const pnr_config *config, const pnr_pipeline_options *options,
                     pnr_account *account, pnr_error *error);

#endif
