/* SPDX-License-Identifier: MIT */
/* The state of a run. pipeline.c has its loop, parts.c opens and closes its parts. */
#ifndef PNR_PIPELINE_STATE_H
#define PNR_PIPELINE_STATE_H

#include "pipeline/acquisition.h"
#include "pipeline/isolation.h"
#include "pipeline/pipeline.h"
#include "pipeline/processing.h"
#include "pipeline/publishing.h"
#include "pipeline/realtime.h"
#include "pipeline/reload.h"
#include "setup/setup.h"
#include "source/source.h"

#include <pthread.h>

/* Either a run, or the parts of another configuration. A run exchanges its own parts with such
 * parts. */
struct pnr_pipeline {
    pnr_pipeline *before;   /* the run to which these parts belong; NULL: this is a run */
    pnr_config *own_config; /* a configuration that was read during the run; NULL: `config` is the
                             * caller's */
    const pnr_config *config;
    const pnr_pipeline_options *options;
    pnr_source_info info;
    struct {
        uint64_t first, end;
    } part;       /* the run processes the dwells of a recording that begin at samples first .. end
                   * - 1; end 0: it processes all samples */
    bool is_live; /* samples arrive at a fixed rate and cannot wait */
    pnr_setup *setup;
    void *memory;                /* memory of the ring; the engine or `isolation` owns it */
    size_t capacity, max_dwells; /* samples of the ring; greatest number of dwells of a submit */
    pnr_ring *ring;
    pnr_acquisition acquisition;
    pthread_t thread;
    pnr_realtime realtime;
    pnr_events events;
    pnr_publishing *publishing;  /* created by pnr_publishing_prepare if `before` is not NULL */
    pnr_ring_division *division; /* if `before` is not NULL: how the ring divides its samples into
                                  * windows */
    pnr_reload *reload;          /* NULL: the configuration never changes */

    /* --- the processing thread --- */
    pnr_turns turns;           /* turns of the processing thread, for the watchdog */
    pnr_exchange exchange;     /* connects the loop with the ring and the publishing thread */
    pnr_processing processing; /* has the engine, unless a worker has it */
    pnr_isolation *isolation;  /* the worker; NULL: none */
    pnr_account account;       /* account of samples and windows, without the counts that the ring
                                * keeps */
    int failure;               /* error code of the last submit that failed */
    pnr_device_state devices;
    uint64_t carried; /* samples after the last result of the previous configuration; added to
                       * lost_before of the next view */
    bool is_ended;    /* the ring has ended */
};

/* Does all slow work and all allocation. Call close also after an error. PNR_EEND: options->stop
 * was set during this work. */
int pnr_pipeline_open(pnr_pipeline *p, pnr_error *error);
void pnr_pipeline_close(pnr_pipeline *p);
/* Opens the parts of p->config for the run p->before. The source, the ring and the threads of this
 * run stay open. Call close also after an error. */
int pnr_pipeline_open_next(pnr_pipeline *p, pnr_error *error);
/* Returns the engine and its method, such as "cuda/library". */
const char *pnr_pipeline_engine(const pnr_pipeline *p);

#endif
