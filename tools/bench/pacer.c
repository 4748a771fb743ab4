/* SPDX-License-Identifier: MIT */
/* One paced run of bench latency: the pipeline, fed on time by a thread that never sleeps. */
#include "tools/bench/latency.h"

#include "base/clock.h"
#include "base/pause.h"
#include "engine/plan.h"
#include "tools/common/measure.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 16 /* a window, when source.chunk does not say */, HIGH_WATER = 100000 };
static const uint64_t start_ns = 20 * 1000 * 1000; /* from the filled ring to the first sample */

typedef struct pacer {
    const pnr_setup *setup;
    latency_run *run;
    uint64_t every_ns;
    uint64_t late_ns;
    size_t n_chunks; /* a window */
} pacer;

/* A sleeping thread wakes up late: this one watches the clock. */
static uint64_t watch_until(uint64_t due_ns, const volatile int *stop)
{
    uint64_t now_ns;

    while ((now_ns = pnr_clock_ns()) < due_ns && !*stop)
        pnr_pause();
    return now_ns;
}

/* Commits chunk c of window w when a receiver would deliver its last sample. */
static void feed_windows(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory,
                         size_t capacity, const volatile int *stop)
{
    pacer *p = context;
    const size_t n = pnr_plan_dwell_samples(plan), n_chunks = p->n_chunks;

    pnr_measure_fill(p->setup, memory, capacity);

    const uint64_t begin_ns = pnr_clock_ns() + start_ns;

    for (uint64_t w = 0; w < p->run->n_moments && !*stop; w++) {
        for (size_t c = 1; c <= n_chunks && !*stop; c++) {
            const uint64_t due_ns = begin_ns + w * p->every_ns + p->every_ns * c / n_chunks;
            const uint64_t now_ns = watch_until(due_ns, stop);

            bench_commit_live(ring, n * c / n_chunks - n * (c - 1) / n_chunks);
            if (c < n_chunks)
                continue;

            const uint64_t after_ns = now_ns > due_ns ? now_ns - due_ns : 0;

            pnr_histogram_add(&p->run->late_ns, after_ns);
            p->run->n_late += after_ns > p->late_ns;
        }
    }
}

/* Runs in the processing thread after the publisher. */
static void note_result(void *context, const pnr_report *report)
{
    pacer *p = context;
    latency_moment *m;

    if (report->seq >= p->run->n_moments)
        return;
    m = p->run->moments + report->seq;
    m->ready_ns = report->ready_ns;
    m->submitted_ns = report->submitted_ns;
    m->collected_ns = report->collected_ns;
    m->packed_ns = report->ready_ns + (uint64_t)(report->latency_us * 1e3);
    m->sent_ns = pnr_clock_ns();
}

/* Runs in the thread of the subscriber, which writes no other member. */
static void note_received(void *context, uint64_t first_seq, uint64_t n, uint64_t now_ns)
{
    pacer *p = context;

    for (uint64_t seq = first_seq; seq < first_seq + n && seq < p->run->n_moments; seq++)
        p->run->moments[seq].received_ns = now_ns;
}

int latency_measure(const pnr_config *config, const pnr_setup *setup, uint64_t every_ns,
                    double seconds, uint64_t late_ns, latency_run *out, pnr_error *error)
{
    const size_t n_dwell = pnr_plan_dwell_samples(&setup->plan);
    const size_t chunk = config->source.chunk;
    pacer p = {.setup = setup, .run = out, .every_ns = every_ns, .late_ns = late_ns};
    const bench_run_hooks hooks = {.feed = feed_windows,
                                   .tap = note_result,
                                   .seen = note_received,
                                   .context = &p,
                                   .high_water = HIGH_WATER,
                                   .spin = config->engine.wait == PNR_WAIT_SPIN};
    pnr_config paced = *config;

    memset(out, 0, sizeof *out);
    p.n_chunks = chunk > 0 ? (n_dwell + chunk - 1) / chunk : CHUNKS;
    if (p.n_chunks > n_dwell)
        p.n_chunks = n_dwell;
    out->n_moments = (size_t)(seconds * 1e9 / (double)every_ns);
    if (out->n_moments < 1)
        return pnr_error_set(error, PNR_EUSAGE, "latency: %g s are too short for one window",
                             seconds);
    out->moments = malloc(out->n_moments * sizeof *out->moments);
    if (out->moments == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu results", out->n_moments);
    memset(out->moments, 0, out->n_moments * sizeof *out->moments); /* in memory, not on demand */
    if (paced.engine.deadline == 0)
        paced.engine.deadline = (double)every_ns * 1e-9;
    return bench_run(&paced, setup, (double)n_dwell * 1e9 / (double)every_ns, &hooks, &out->outcome,
                     error);
}
