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

/* The publishing thread calls this with each result after its publication. While it waits, results
 * wait in a queue; those of a live stream that find the queue full are counted as unsent. */
typedef void (*pnr_pipeline_tap)(void *context, const pnr_report *report);

/* The caller's thread calls this last, after the end was published. Returns code, or the error with
 * which the run ends instead. */
typedef int (*pnr_pipeline_end)(void *context, const pnr_status *status, int code,
                                pnr_error *error);

/* The progress in a source of known length. */
typedef struct pnr_progress {
    uint64_t n_done, n_samples; /* positions; n_done <= n_samples */
    double elapsed_s;           /* since the first sample */
    uint64_t n_echoes;          /* so far */
} pnr_progress;

/* The publishing thread calls this once a second, if the length of the source is known. progress is
 * NULL when the thread is about to log. */
typedef void (*pnr_pipeline_watch)(void *context, const pnr_progress *progress);

/* As pnr_pipeline_tap, but for a profile or map. The result of the same dwell comes next. The
 * cells, in floats as pnr_publisher_send_cells takes them, are valid during the call. */
typedef void (*pnr_pipeline_tap_cells)(void *context, const pnr_report *report,
                                       const pnr_map_info *info, const float *cells);

/* The publishing thread calls this when no result waits. A tap then writes what it has buffered. */
typedef void (*pnr_pipeline_pause)(void *context);

/* The caller's thread calls this after the last tap, before the end is published. code: that of the
 * run so far. Returns code, or the error with which the run ends instead. */
typedef int (*pnr_pipeline_finish)(void *context, int code, pnr_error *error);

/* A function that fills the ring in place of the source, for benchmarks. It returns when *stop is
 * not 0 or its stream ends. The acquisition thread calls it. The stream is live when source.pace is
 * real-time. memory: the memory of the ring, [capacity] samples of plan->format (source.format of
 * the configuration). */
typedef void (*pnr_pipeline_feed)(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory,
                                  size_t capacity, const volatile int *stop);

/* Reads the configuration again, as it was read for this run. *config is filled with defaults; the
 * run clears it. The reload thread calls this. PNR_OK, or the reason of a refusal. */
typedef int (*pnr_pipeline_configure)(void *context, pnr_config *config, pnr_error *error);

typedef struct pnr_pipeline_options {
    volatile int *stop; /* non-zero: finish all windows and end; may be NULL. If the engine is lost,
                         * the pipeline sets it, because a feed notices nothing else */
    volatile int *trigger; /* non-zero: an event for recorder.pre_trigger_s, which sets it to zero;
                            * may be NULL */
    pnr_pipeline_tap tap;  /* may be NULL */
    pnr_pipeline_tap_cells tap_cells; /* may be NULL; else the engine computes power even if
                                       * publisher.profile is off */
    pnr_pipeline_pause pause;         /* may be NULL */
    pnr_pipeline_finish finish;       /* may be NULL; called also after an error */
    pnr_pipeline_end end;             /* may be NULL */
    void *tap_context;                /* of the five functions before it */
    pnr_pipeline_watch watch;         /* may be NULL */
    void *watch_context;
    const pnr_notify *service; /* the service manager gets READY, the watchdog's messages and
                                * STOPPING; may be NULL */
    /* non-zero: the configuration is read again, which sets it to zero. The stream goes on with
     * it at the edge of a window, or as before if it is wrong. May be NULL */
    volatile int *reload;
    pnr_pipeline_configure configure; /* not NULL if reload is not */
    void *configure_context;
    bool can_isolate;       /* main() of this program begins with pnr_worker_main (worker.h) */
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
