/* SPDX-License-Identifier: MIT */
/* The parts of bench stream: one run of the whole way, its subscriber, and the copying file source.
 */
#ifndef PNR_TOOLS_BENCH_STREAM_H
#define PNR_TOOLS_BENCH_STREAM_H

#include "account.h"
#include "bench.h"
#include "engine.h"
#include "error.h"
#include "setup.h"

#include <stdbool.h>
#include <stdint.h>

/* One run, from the first commit to the last result handed over. */
typedef struct stream_result {
    double seconds;
    pnr_account account;
    double latency_p50_us, latency_p99_us; /* last sample committed -> message handed over */
    uint64_t received;                     /* results at the subscriber */
    uint64_t missed;                       /* last seq - first seq + 1 - received */
    uint64_t bytes;                        /* of their messages */
    uint64_t last_ns;                      /* when the last message came */
    bool ended;                            /* the subscriber saw the end */
} stream_result;

/*
 * The pipeline, fed from its ring's own memory: filled once, then committed again and again for
 * `seconds`, as fast as it is taken (rate_hz 0) or live at rate_hz samples a second, where a full
 * ring drops. A thread of this process subscribes.
 */
int stream_run(const pnr_config *config, const pnr_setup *setup, double seconds, double rate_hz,
               stream_result *out, pnr_error *error);

/* --- the subscriber thread --- */
typedef struct stream_subscriber stream_subscriber;
int stream_subscriber_start(const char *endpoint, stream_subscriber **out, pnr_error *error);
/* Waits for the end message (at most patience_s after the last message), joins, and tells what
 * came. */
void stream_subscriber_finish(stream_subscriber *subscriber, double patience_s, stream_result *out);

/* A file of these samples (in $TMPDIR, else /dev/shm) through the pipeline at pace fast: samples a
 * second between the first and the last result. n_samples: its length, about. */
int stream_file_rate(const pnr_config *config, const pnr_setup *setup, uint64_t n_samples,
                     double *samples_per_s, pnr_error *error);

#endif
