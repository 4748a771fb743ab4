/* SPDX-License-Identifier: MIT */
/* The state of the processing thread. pipeline.c moves the data, parts.c opens and closes the
 * parts, result.c detects the echoes of a result. */
#ifndef PNR_PIPELINE_STATE_H
#define PNR_PIPELINE_STATE_H

#include "correlator/correlator.h"
#include "detector/detector.h"
#include "pipeline/acquisition.h"
#include "pipeline/clean.h"
#include "pipeline/pending.h"
#include "pipeline/pipeline.h"
#include "pipeline/publishing.h"
#include "pipeline/realtime.h"
#include "pipeline/team.h"
#include "setup/setup.h"
#include "source/source.h"

#include <pthread.h>

typedef struct pnr_pipeline {
    const pnr_config *config;
    const pnr_pipeline_options *options;
    pnr_source_info info;
    bool is_live; /* samples arrive at a fixed rate and cannot wait */
    pnr_setup *setup;
    const pnr_engine_ops *ops;
    pnr_correlator *correlator;
    pnr_detector *detector;
    pnr_team *team;       /* detects on several threads */
    pnr_pending *pending; /* NULL: each result is reported before the next one is collected */
    size_t pending_dwell; /* next dwell to report, in the oldest pending result */
    pnr_clean *clean;     /* NULL: detector.subtract is 0 */
    void *memory;         /* memory of the ring; the engine owns it */
    size_t capacity, max_dwells; /* samples of the ring; most dwells of a submit in that ring */
    pnr_ring *ring;
    size_t ahead; /* smallest part of a dwell to upload ahead, in samples; 0: none */
    pnr_acquisition acquisition;
    pthread_t thread;
    pnr_realtime realtime;

    /* The submits in the engine are n_back .. n_fed - 1. Submit i is at fed[i mod
     * PNR_MAX_DEPTH]. */
    pnr_windows fed[PNR_MAX_DEPTH];
    uint64_t n_fed, n_back; /* number of submits given to the engine; number of finished ones */
    unsigned n_failed;      /* submits and collects that failed since the last result */
    int failure;            /* code of the last failed submit or collect */
    char given_up[128];     /* why the engine was given up; "": it returned PNR_ELOST itself */

    pnr_events events;
    pnr_publishing *publishing;
    pnr_account account; /* of samples and windows, without the counts that the ring keeps */
    uint64_t unreported; /* positions without a result, since the last result */
} pnr_pipeline;

/* Does all slow work and all allocation. Call close also after an error. PNR_EEND: options->stop was
 * set meanwhile. */
int pnr_pipeline_open(pnr_pipeline *p, pnr_error *error);
void pnr_pipeline_close(pnr_pipeline *p);

/* Passes each dwell of a result to the account, the detector and the publishing thread. With
 * p->pending the dwells wait for the detection threads. */
void pnr_pipeline_report(pnr_pipeline *p, const pnr_windows *windows, const pnr_result *result);
/* Reports the oldest dwell that waits. False: none waits, or it is not ready and `wait` is
 * false. */
bool pnr_pipeline_report_pending(pnr_pipeline *p, bool wait);
/* Accounts for windows that the ring lent and that give no result. reason: a member of
 * p->account. */
void pnr_pipeline_drop(pnr_pipeline *p, const pnr_windows *windows, uint64_t *reason);

#endif
