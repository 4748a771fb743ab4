/* SPDX-License-Identifier: MIT */
/* The parts of bench stream, which bench soak uses too: one run of the whole way, and the copying
 * file source. */
#ifndef PNR_TOOLS_BENCH_STREAM_H
#define PNR_TOOLS_BENCH_STREAM_H

#include "tools/bench/bench.h"
#include "tools/bench/run.h"

#include <stdint.h>

/* One run, from the first commit to the last result handed over. */
typedef struct stream_result {
    bench_outcome outcome;
    double seconds;
    double latency_p50_us, latency_p99_us; /* last sample committed -> message handed over */
    double busy; /* share of the time that the processing thread ran; 1 when it never sleeps */
} stream_result;

/* One size: its engine, and what its runs share. */
typedef struct stream_subject {
    pnr_config config;
    bench_subject engine;
    double sample_bytes;
    double link_bytes_per_s; /* of the engine's link to its device; 0: none */
} stream_subject;

/* Chooses publisher.pack too, where results come fast. The caller destroys engine.setup, also after
 * an error. */
int stream_prepare(const bench *b, size_t n_samples, stream_subject *s, pnr_error *error);

/*
 * Runs the pipeline, fed from its ring's own memory: filled once, then committed again and again
 * for `seconds`, as fast as it is taken (rate_hz 0) or live at rate_hz samples a second, where a
 * full ring drops. tap: sees every result too; may be NULL.
 */
int stream_run(const stream_subject *s, double seconds, double rate_hz, pnr_pipeline_tap tap,
               void *tap_context, stream_result *out, pnr_error *error);

/* Sends a file of these samples (in $TMPDIR, else /dev/shm) through the pipeline at pace fast:
 * samples a second between the first and the last result. n_samples: its length, about. */
int stream_file_rate(const stream_subject *s, uint64_t n_samples, double *samples_per_s,
                     pnr_error *error);

#endif
