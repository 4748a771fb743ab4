/* SPDX-License-Identifier: MIT */
/* The functions of bench stream that bench soak and bench scene also use. They prepare the engine
 * and the samples for one code length, and run the whole pipeline. */
#ifndef PNR_TOOLS_BENCH_STREAM_H
#define PNR_TOOLS_BENCH_STREAM_H

#include "tools/bench/bench.h"
#include "tools/bench/planted.h"
#include "tools/bench/run.h"

#include <stdint.h>

/* One run, from the first commit to the last published result. */
typedef struct stream_result {
    bench_outcome outcome;
    double seconds;
    double latency_p50_us, latency_p99_us; /* time from the commit of the last sample to the
                                            * published message */
    double busy; /* processor time of the processing thread / elapsed time; 1: the thread never
                  * sleeps */
} stream_result;

/* The data that several runs of the pipeline share. */
typedef struct stream_subject {
    pnr_config config;
    bench_subject engine;
    double sample_bytes;
    double link_bytes_per_s; /* rate of the engine's link to its device; 0: no link */
    planted echoes;          /* the dwells that fill the ring */
} stream_subject;

/* Fills sample_bytes and link_bytes_per_s from the prepared engine. */
void stream_measure_link(stream_subject *s);

/* Prepares the engine and the samples for periods of n_samples samples. Chooses publisher.pack if
 * there are many results a second. The caller releases *s, also after an error. */
int stream_prepare(const bench *b, size_t n_samples, stream_subject *s, pnr_error *error);

void stream_release(stream_subject *s);

/* Runs the pipeline for `seconds`. The feed fills the ring once, and then commits the same samples
 * repeatedly. rate_hz 0: as fast as the ring accepts samples; else live at rate_hz samples a
 * second, and a full ring drops samples. tap: called for every result; may be NULL. */
int stream_run(const stream_subject *s, double seconds, double rate_hz, pnr_pipeline_tap tap,
               void *tap_context, stream_result *out, pnr_error *error);

#endif
