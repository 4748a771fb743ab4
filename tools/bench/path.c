/* SPDX-License-Identifier: MIT */
/* One run of bench stream: the pipeline itself, fed from a ring that is filled once and committed
 * again and again. */
#include "tools/bench/stream.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/stats.h"
#include "cli.h"
#include "engine/plan.h"
#include "pipeline/pipeline.h"
#include "ring/ring.h"
#include "tools/common/measure.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A virtual machine was seen to stand still for 45 ms once in five minutes: a live ring outlasts
 * twice that. */
static const double hiccup_s = 0.1;
enum { RING_SAMPLES = 1 << 22 /* at least */, SUBMITS_BEHIND = 16, LIVE_SUBMITS = 32 };
static const uint64_t patience_ns = 20000000;
static const double subscriber_patience_s = 5.0;

typedef struct path {
    const pnr_setup *setup;
    double seconds;
    double rate_hz; /* 0: as fast as the ring takes it */

    /* the acquisition thread's */
    _Atomic uint64_t start_ns; /* of the first commit */

    /* the processing thread's */
    pnr_histogram latency_ns;
    uint64_t stride;      /* samples from one look at the clock to the next: a submit */
    uint64_t next_sample; /* of the next look */
    uint64_t first_ns, last_ns;
    uint64_t first_busy_ns, last_busy_ns; /* of its own time */
    pnr_pipeline_tap also;                /* may be NULL */
    void *also_context;
} path;

void stream_commit_live(pnr_ring *ring, size_t n)
{
    while (n > 0) {
        void *data;
        size_t room;

        if (pnr_ring_reserve(ring, n, &data, &room) != PNR_OK) {
            pnr_ring_skip(ring, n, PNR_LOST_RING_FULL);
            return;
        }
        pnr_ring_commit(ring, room);
        n -= room;
    }
}

static void feed_fast(path *p, pnr_ring *ring, size_t chunk, const volatile int *stop)
{
    const uint64_t stop_ns = p->start_ns + (uint64_t)(p->seconds * 1e9);

    while (!*stop && pnr_clock_ns() < stop_ns) {
        void *data;
        size_t n;

        if (pnr_ring_reserve(ring, chunk, &data, &n) == PNR_OK)
            pnr_ring_commit(ring, n);
        else
            (void)pnr_ring_wait_space(ring, patience_ns);
    }
}

static void feed_live(path *p, pnr_ring *ring, size_t chunk, const volatile int *stop)
{
    const double chunk_ns = (double)chunk / p->rate_hz * 1e9;

    for (uint64_t i = 1; !*stop && (double)i * chunk_ns <= p->seconds * 1e9; i++) {
        pnr_clock_sleep_until(p->start_ns + (uint64_t)((double)i * chunk_ns), stop);
        stream_commit_live(ring, chunk);
    }
}

/* The acquisition thread. Nothing is copied: the samples are in the ring already. */
static void feed(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory, size_t capacity,
                 const volatile int *stop)
{
    path *p = context;
    /* Half of a submit or less, so that the engine can begin with the first of it. */
    const size_t dwell = pnr_plan_dwell_samples(plan);
    const size_t chunk = plan->batch > 1 ? (plan->batch / 2) * dwell : dwell;

    pnr_measure_fill(p->setup, memory, capacity);
    p->start_ns = pnr_clock_ns();
    if (p->rate_hz > 0)
        feed_live(p, ring, chunk, stop);
    else
        feed_fast(p, ring, chunk, stop);
}

/* What this thread has run so far. */
static uint64_t thread_ns(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* In the processing thread, for each result. */
static void tap(void *context, const pnr_report *report)
{
    path *p = context;

    pnr_histogram_add(&p->latency_ns, (uint64_t)(report->latency_us * 1e3));
    if (report->sample >= p->next_sample) {
        p->last_ns = pnr_clock_ns();
        p->last_busy_ns = thread_ns();
        if (p->first_ns == 0) {
            p->first_ns = p->last_ns;
            p->first_busy_ns = p->last_busy_ns;
        }
        p->next_sample = report->sample + p->stride;
    }
    if (p->also != NULL)
        p->also(p->also_context, report);
}

size_t stream_ring_bytes(const pnr_config *config, const pnr_plan *plan, double rate_hz)
{
    const size_t dwell = pnr_plan_dwell_samples(plan);
    const size_t dwell_bytes = dwell * pnr_format_get(plan->format)->bytes * plan->n_channels;
    const size_t in_hiccup = (size_t)(hiccup_s * rate_hz / (double)dwell);
    size_t n_dwells = (rate_hz > 0 ? LIVE_SUBMITS : plan->depth + 2) * plan->batch;

    if (n_dwells < in_hiccup)
        n_dwells = in_hiccup;

    if (config->ring.bytes >= dwell_bytes)
        return config->ring.bytes / dwell_bytes * dwell_bytes;
    if (n_dwells * dwell < RING_SAMPLES)
        n_dwells = (RING_SAMPLES + dwell - 1) / dwell;
    return n_dwells * dwell_bytes;
}

int stream_run(const pnr_config *config, const pnr_setup *setup, double seconds, double rate_hz,
               pnr_pipeline_tap also, void *also_context, stream_result *out, pnr_error *error)
{
    const double sample_bytes =
        (double)(pnr_format_get(setup->plan.format)->bytes * setup->plan.n_channels);
    pnr_config fed = *config;
    stream_subscriber *subscriber = NULL;
    path *p = calloc(1, sizeof *p);
    const pnr_pipeline_options options = {
        .stop = &pnr_stop, .tap = tap, .tap_context = p, .feed = feed, .feed_context = p};
    int rc;

    memset(out, 0, sizeof *out);
    if (p == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a stream");
    p->setup = setup;
    p->also = also;
    p->also_context = also_context;
    p->seconds = seconds;
    p->rate_hz = rate_hz;
    p->stride = setup->plan.batch * pnr_plan_dwell_samples(&setup->plan);
    fed.ring.seconds = 0;
    fed.ring.bytes = stream_ring_bytes(config, &setup->plan, rate_hz);
    if (rate_hz > 0) {
        const double ring_s = (double)fed.ring.bytes / (rate_hz * sample_bytes);

        fed.source.pace = PNR_PACE_REAL_TIME;
        if (fed.engine.deadline == 0)
            fed.engine.deadline = ring_s; /* later than that, samples are lost */
    }
    fed.publisher.wait_s = subscriber_patience_s;
    /* The results of a submit come at once: the subscriber may be some submits behind. */
    if (fed.publisher.high_water < SUBMITS_BEHIND * setup->plan.batch)
        fed.publisher.high_water = SUBMITS_BEHIND * setup->plan.batch;
    snprintf(fed.publisher.endpoint, sizeof fed.publisher.endpoint, "ipc://@pnradar-bench-%ld",
             (long)getpid());
    rc = stream_subscriber_start(fed.publisher.endpoint, false, NULL, NULL, &subscriber, error);
    if (rc == PNR_OK)
        rc = pnr_pipeline_run(&fed, &options, &out->account, error);
    stream_subscriber_finish(subscriber, rc == PNR_OK ? subscriber_patience_s : 0.0, out);
    if (rc == PNR_OK && p->last_ns <= p->start_ns)
        rc = pnr_error_set(error, PNR_EUSAGE, "stream: %g s are too short for one result", seconds);
    out->seconds = (double)(p->last_ns - p->start_ns) * 1e-9;
    out->busy = (double)(p->last_busy_ns - p->first_busy_ns) / (double)(p->last_ns - p->first_ns);
    out->latency_p50_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.5) * 1e-3;
    out->latency_p99_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.99) * 1e-3;
    free(p);
    return rc;
}
