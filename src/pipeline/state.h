/* SPDX-License-Identifier: MIT */
/* The state of the pipeline. pipeline.c moves the data, parts.c opens and closes the parts,
 * result.c makes reports from results, status.c reports the state and closes the account. */
#ifndef PNR_PIPELINE_STATE_H
#define PNR_PIPELINE_STATE_H

#include "base/stats.h"
#include "correlator/correlator.h"
#include "detector/detector.h"
#include "detector/slip.h"
#include "detector/zero.h"
#include "pipeline/acquisition.h"
#include "pipeline/clean.h"
#include "pipeline/deadline.h"
#include "pipeline/pending.h"
#include "pipeline/pipeline.h"
#include "pipeline/realtime.h"
#include "pipeline/team.h"
#include "publisher/publisher.h"
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
    pnr_publisher *publisher;
    void *memory;                /* memory of the ring; the engine owns it */
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
    uint64_t n_told;        /* number of dropped windows that are reported as events */
    char given_up[128];     /* why the engine was given up; "": it returned PNR_ELOST itself */

    pnr_report report;       /* report of the present dwell */
    pnr_map_info map;        /* map of the present dwell; its row alone describes a profile */
    const char **code_names; /* [plan.n_codes] names of the codes in the map */
    double gate_delay_s;     /* delay of gate_first_cell if the zero delay is radar.zero_delay_s */
    size_t gate_first_cell;
    pnr_zero_tracker zero;
    pnr_slip_tracker slip;
    bool is_zero_kept;    /* the zero delay is kept in radar.zero_state_path */
    bool is_zero_refused; /* a write of the state failed */
    pnr_events events;
    bool is_clipping;    /* the last dwell had clipped samples */
    pnr_account account; /* without the counts that the ring keeps */
    pnr_deadline deadline;
    pnr_histogram latency_ns;
    uint64_t n_echoes;   /* echoes of all results */
    bool is_heard;       /* a subscriber was connected at the start or at a status */
    uint64_t unreported; /* positions without a result, since the last result */
    uint64_t began_ns;   /* time of the first sample */
    uint64_t status_ns;  /* time of the last status; at first began_ns */
} pnr_pipeline;

/* Does all slow work and all allocation. Call close also after an error. */
int pnr_pipeline_open(pnr_pipeline *p, pnr_error *error);
void pnr_pipeline_close(pnr_pipeline *p);

/* Passes each dwell of a result to the account, the detector and the publisher. With p->pending the
 * dwells wait for the detection threads. */
void pnr_pipeline_report(pnr_pipeline *p, const pnr_windows *windows, const pnr_result *result);
/* Reports the oldest dwell that waits. False: none waits, or it is not ready and `wait` is
 * false. */
bool pnr_pipeline_report_pending(pnr_pipeline *p, bool wait);
/* Accounts for windows that the ring lent and that give no result. reason: a member of
 * p->account. */
void pnr_pipeline_drop(pnr_pipeline *p, const pnr_windows *windows, uint64_t *reason);

/* Reports how many windows the engine has failed on since the last call, as one event. */
void pnr_pipeline_tell_failures(pnr_pipeline *p);
/* Logs and publishes the events that wait. */
void pnr_pipeline_tell_events(pnr_pipeline *p);
/* Sends a status when a second has passed since the last one. */
void pnr_pipeline_send_status(pnr_pipeline *p);
/* Warns of n_bytes > 0 bytes after the last whole sample. Their number is known at the start of a
 * file, and at the end of a pipe. */
void pnr_pipeline_log_trailing(uint64_t n_bytes);
/* Checks the account at the end, and reports it to subscribers and to the log. Returns code, or
 * PNR_EINTERNAL: the sums of the account do not hold. */
int pnr_pipeline_close_account(pnr_pipeline *p, int code, pnr_error *error, pnr_account *account);

#endif
