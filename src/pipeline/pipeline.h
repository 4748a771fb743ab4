/* SPDX-License-Identifier: MIT */
/* The pipeline: source -> ring -> correlator -> detector -> publisher, two threads, every sample
 * accounted for. */
#ifndef PNR_PIPELINE_H
#define PNR_PIPELINE_H

#include "base/account.h"
#include "base/error.h"
#include "config/config.h"
#include "engine/engine.h"
#include "publisher/message.h"
#include "ring/ring.h"

/* Who else sees each result, in the processing thread, as it was published (may be NULL); cheap. */
typedef void (*pnr_pipeline_tap)(void *context, const pnr_report *report);

/* What fills the ring instead of the source, in the acquisition thread, until *stop is not 0 or its
 * stream ends: the benchmark's. It is a live stream when source.pace is real-time. memory: the
 * ring's, [capacity] samples of plan->format (source.format of the configuration). */
typedef void (*pnr_pipeline_feed)(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory,
                                  size_t capacity, const volatile int *stop);

typedef struct pnr_pipeline_options {
    const volatile int *stop; /* becomes non-zero: drain and close; may be NULL */
    pnr_pipeline_tap tap;
    void *tap_context;
    pnr_pipeline_feed feed; /* NULL: source.input */
    void *feed_context;
} pnr_pipeline_options;

/* Runs from open to end. PNR_OK: the stream ended or was stopped, and everything was drained; else
 * what broke, explained; in every case the account closes. PNR_EENGINE: windows were dropped by a
 * failing engine. PNR_ELOST: restart the program. */
int pnr_pipeline_run(const pnr_config *config, const pnr_pipeline_options *options,
                     pnr_account *account, pnr_error *error);

#endif
