/* SPDX-License-Identifier: MIT */
/* The pipeline's inside, which its files share: pipeline.c is the way of the data, pipeline_parts.c
 * opens and closes its parts, pipeline_result.c makes reports of results, pipeline_status.c tells
 * how it stands. */
#ifndef PNR_PIPELINE_STATE_H
#define PNR_PIPELINE_STATE_H

#include "base/stats.h"
#include "correlator/correlator.h"
#include "detector/detector.h"
#include "detector/zero.h"
#include "pipeline/acquisition.h"
#include "pipeline/clean.h"
#include "pipeline/deadline.h"
#include "pipeline/pipeline.h"
#include "pipeline/realtime.h"
#include "publisher/publisher.h"
#include "setup/setup.h"
#include "source/source.h"

#include <pthread.h>

typedef struct pnr_pipeline {
    const pnr_config *config;
    const pnr_pipeline_options *options;
    pnr_source_info info;
    bool is_live; /* samples come at their own pace, and wait for nobody */
    pnr_setup *setup;
    const pnr_engine_ops *ops;
    pnr_correlator *correlator;
    pnr_detector *detector;
    pnr_clean *clean; /* NULL: detector.subtract is 0 */
    pnr_publisher *publisher;
    void *memory; /* the ring's, from the engine */
    size_t capacity, max_dwells;
    pnr_ring *ring;
    size_t ahead; /* samples of a dwell that are worth sending ahead of the rest; 0: none are */
    pnr_acquisition acquisition;
    pthread_t thread;
    pnr_realtime realtime;

    pnr_windows
        fed[PNR_MAX_DEPTH]; /* what the engine has: submits n_back .. n_fed - 1, modulo the depth */
    uint64_t n_fed, n_back; /* submits taken; and come back */
    bool is_out_of_step;    /* the engine keeps or mixes up its submits */

    pnr_report report;       /* filled anew for each dwell */
    pnr_map_info map;        /* its floor, threshold and zero too; of a profile only its row */
    const char **code_names; /* [plan.n_codes]: the map's */
    double gate_delay_s;     /* of the map's gate, and its first cell, from radar.zero_delay_s */
    size_t gate_first_cell;
    pnr_zero_tracker zero;
    bool is_zero_kept, is_zero_refused; /* in radar.zero_state_path, for the next run; it failed */
    pnr_account account;                /* without the ring's part */
    pnr_deadline deadline;
    pnr_histogram latency_ns;
    uint64_t unreported;        /* positions of dwells without a result since the last one with */
    uint64_t began_ns, told_ns; /* of the last status; at first of the beginning */
} pnr_pipeline;

/* Everything slow, and everything that allocates. Whatever comes back: close. */
int pnr_pipeline_open(pnr_pipeline *p, pnr_error *error);
void pnr_pipeline_close(pnr_pipeline *p);

/* A result's dwells go to the account, the detector and the publisher. */
void pnr_pipeline_report(pnr_pipeline *p, const pnr_windows *windows, const pnr_result *result);
/* Windows that were handed out and came to nothing: counted, by *reason (of p->account) too. */
void pnr_pipeline_drop(pnr_pipeline *p, const pnr_windows *windows, uint64_t *reason);

/* Once a second; else it only looks at the clock. */
void pnr_pipeline_tell_status(pnr_pipeline *p);
/* The end: the account is closed, checked, told to subscribers and to the log. Returns code, or
 * PNR_EINTERNAL: it does not close. */
int pnr_pipeline_close_account(pnr_pipeline *p, int code, pnr_error *error, pnr_account *account);

#endif
