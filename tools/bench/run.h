/* SPDX-License-Identifier: MIT */
/* One run of the pipeline in this process. A function feeds its ring, and a subscriber in a
 * separate thread receives its results. */
#ifndef PNR_TOOLS_BENCH_RUN_H
#define PNR_TOOLS_BENCH_RUN_H

#include "base/account.h"
#include "base/error.h"
#include "config/config.h"
#include "pipeline/pipeline.h"
#include "ring/ring.h"
#include "setup/setup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_received {
    uint64_t results;
    uint64_t bytes;   /* bytes of the received messages */
    uint64_t last_ns; /* time of the last message */
    bool ended;       /* the end message has arrived */
} bench_received;

/* Called in the subscriber's thread: results first_seq .. first_seq + n - 1 arrived at now_ns. */
typedef void (*bench_seen)(void *context, uint64_t first_seq, uint64_t n, uint64_t now_ns);

typedef struct bench_subscriber bench_subscriber;

/* Starts the thread of a subscriber. spin: the thread polls for messages and never sleeps. seen:
 * may be NULL. */
int bench_subscriber_start(const char *endpoint, bool spin, bench_seen seen, void *context,
                           bench_subscriber **out, pnr_error *error);
/* Waits for the end message, but at most patience_s after the last message. Then joins the thread.
 * If subscriber is NULL, *out is all zero. */
void bench_subscriber_finish(bench_subscriber *subscriber, double patience_s, bench_received *out);

/* The functions of one run. All of them get the same context. */
typedef struct bench_run_hooks {
    pnr_pipeline_feed feed; /* runs in the acquisition thread */
    pnr_pipeline_tap tap;   /* runs in the publishing thread, for each result */
    bench_seen seen;        /* may be NULL */
    void *context;
    size_t high_water; /* lower limit of publisher.high_water */
    bool spin;         /* the subscriber polls and never sleeps */
} bench_run_hooks;

typedef struct bench_outcome {
    pnr_account account;
    bench_received received;
} bench_outcome;

/* Runs the pipeline until its feed ends. rate_hz: sampling rate of a live feed, which drops samples
 * when the ring is full; 0: the feed waits for space in the ring. publisher.endpoint must be set.
 * Errors are those of the pipeline. */
int bench_run(const pnr_config *config, const pnr_setup *setup, double rate_hz,
              const bench_run_hooks *hooks, bench_outcome *out, pnr_error *error);

/* True if the account closes and the end message arrived. */
bool bench_is_complete(const bench_outcome *outcome);
/* True if no sample, window or result was lost on the way to the subscriber. */
bool bench_is_lossless(const bench_outcome *outcome);
/* Logs the reason if an outcome is not complete. */
void bench_warn_open(const bench_outcome *outcome, size_t n_samples);

/* Commits n samples that are already in the memory of the ring. When the ring is full, drops the
 * remaining samples, as a live receiver does. */
void bench_commit_live(pnr_ring *ring, size_t n);

#endif
