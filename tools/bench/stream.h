/* SPDX-License-Identifier: MIT */
/* The parts of bench stream: one run of the whole way, its subscriber,
 * and the copying file source. */
#ifndef PNR_TOOLS_BENCH_STREAM_H
#define PNR_TOOLS_BENCH_STREAM_H

#include "base/account.h"
#include "base/error.h"
#include "pipeline/pipeline.h"
#include "ring/ring.h"
#include "setup/setup.h"
#include "tools/bench/bench.h"

#include <stdbool.h>
#include <stdint.h>

/* One run, from the first commit to the last result handed over. */
typedef struct stream_result {
    double seconds;
    pnr_account account;
    double latency_p50_us, latency_p99_us; /* last sample committed -> message handed over */
    double busy; /* share of the time that the processing thread ran; 1 when it never sleeps */
    uint64_t received; /* results at the subscriber */
    uint64_t missed;   /* last seq - first seq + 1 - received */
    uint64_t bytes;    /* of their messages */
    uint64_t last_ns;  /* when the last message came */
    bool ended;        /* the subscriber saw the end */
} stream_result;

/* One size: its engine, and what its runs share. */
typedef struct stream_subject {
    pnr_config config;
    pnr_setup *setup;
    const pnr_engine_ops *ops;
    char engine[64];
    double sample_bytes;
    double link_bytes_per_s; /* of the engine's link; 0: none */
} stream_subject;

/* Chooses publisher.pack too, where results come fast. The caller destroys the setup, also on
 * failure. */
int stream_prepare(const bench *b, size_t n_samples, stream_subject *s, pnr_error *error);
/* The account closes and the subscriber saw the end. */
bool stream_is_complete(const stream_result *r);
/* No sample, window or result was lost on the way to the subscriber. */
bool stream_is_lossless(const stream_result *r);

/*
 * The pipeline, fed from its ring's own memory: filled once, then committed again and again for
 * `seconds`, as fast as it is taken (rate_hz 0) or live at rate_hz samples a second, where a full
 * ring drops. A thread of this process subscribes. tap: sees every result too; may be NULL.
 */
int stream_run(const pnr_config *config, const pnr_setup *setup, double seconds, double rate_hz,
               pnr_pipeline_tap tap, void *tap_context, stream_result *out, pnr_error *error);

/* For feeds that commit what the ring's memory holds already. */
/* Whole dwells, so that what is committed again goes on without a seam: as ring.bytes says, else
 * with room for all in flight and more to come; live, for many submits more, since it drops. */
size_t stream_ring_bytes(const pnr_config *config, const pnr_plan *plan, double rate_hz);
/* A live receiver: n samples are due now, and a full ring drops them. */
void stream_commit_live(pnr_ring *ring, size_t n);

/* --- the subscriber thread --- */
typedef struct stream_subscriber stream_subscriber;
/* In the subscriber's thread: results first_seq .. first_seq + n - 1 came at now_ns. */
typedef void (*stream_seen)(void *context, uint64_t first_seq, uint64_t n, uint64_t now_ns);
/* spin: it looks for messages all the time, and never sleeps. seen: may be NULL. */
int stream_subscriber_start(const char *endpoint, bool spin, stream_seen seen, void *context,
                            stream_subscriber **out, pnr_error *error);
/* Waits for the end message (at most patience_s after the last message), joins, and tells what
 * came. */
void stream_subscriber_finish(stream_subscriber *subscriber, double patience_s, stream_result *out);

/* A file of these samples (in $TMPDIR, else /dev/shm) through the pipeline at pace fast: samples a
 * second between the first and the last result. n_samples: its length, about. */
int stream_file_rate(const pnr_config *config, const pnr_setup *setup, uint64_t n_samples,
                     double *samples_per_s, pnr_error *error);

#endif
