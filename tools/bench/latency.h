/* SPDX-License-Identifier: MIT */
/* The parts of bench latency: one paced run, and what its moments say. */
#ifndef PNR_TOOLS_BENCH_LATENCY_H
#define PNR_TOOLS_BENCH_LATENCY_H

#include "base/error.h"
#include "base/stats.h"
#include "setup/setup.h"
#include "tools/bench/bench.h"
#include "tools/bench/run.h"

#include <stdint.h>

/* The way of one result, CLOCK_MONOTONIC; 0: the result did not come so far. */
typedef struct latency_moment {
    uint64_t ready_ns;     /* its last sample in the ring */
    uint64_t submitted_ns; /* to the engine */
    uint64_t collected_ns; /* from the engine */
    uint64_t packed_ns;    /* detected, and handed to the publisher */
    uint64_t sent_ns;      /* the publisher has returned */
    uint64_t received_ns;  /* at the subscriber */
} latency_moment;

typedef struct latency_run {
    latency_moment *moments; /* [n_moments], by seq; the caller frees them */
    size_t n_moments;
    bench_outcome outcome;
    pnr_histogram late_ns; /* from a window's due time to the commit of its last chunk */
    uint64_t n_late;       /* windows, beyond the limit */
} latency_run;

/* Paces windows through the whole program: one each every_ns for `seconds`, committed in chunks as
 * the samples of a receiver come; beyond late_ns a window counts as late. config: engine.batch,
 * publisher.endpoint and source.rate_hz are set. */
int latency_measure(const pnr_config *config, const pnr_setup *setup, uint64_t every_ns,
                    double seconds, uint64_t late_ns, latency_run *out, pnr_error *error);

#endif
