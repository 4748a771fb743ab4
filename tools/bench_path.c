/* SPDX-License-Identifier: MIT */
/* One run of bench stream: a ring that is filled once and committed again and again, and all that
 * follows it. */
#include "bench_stream.h"

#include "cli.h"
#include "clock.h"
#include "correlator.h"
#include "detector.h"
#include "format.h"
#include "measure.h"
#include "message.h"
#include "publisher.h"
#include "ring.h"
#include "stats.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RING_SAMPLES = 1 << 22 }; /* at least */
static const uint64_t patience_ns = 20000000;
static const double subscriber_patience_s = 5.0;

typedef struct path {
    const pnr_config *config;
    const pnr_setup *setup;
    const pnr_engine_ops *ops;
    void *memory;
    pnr_ring *ring;
    pnr_correlator *correlator;
    pnr_detector *detector;
    pnr_publisher *publisher;

    /* the acquisition thread's */
    double seconds;
    double rate_hz; /* 0: as fast as the ring takes it */
    size_t chunk;   /* samples a commit */
    uint64_t start_ns;
    _Atomic bool stop; /* the other thread gave up */

    /* the processing thread's */
    pnr_report report;
    pnr_histogram latency_ns;
    pnr_account account;
} path;

/* --- the acquisition thread: nothing is copied, the samples are there already --- */

/* A live receiver: n samples are due now, and a full ring drops them. */
static void commit_live(path *p, size_t n)
{
    while (n > 0) {
        void *data;
        size_t room;

        if (pnr_ring_reserve(p->ring, n, &data, &room) != PNR_OK) {
            pnr_ring_skip(p->ring, n, PNR_LOST_RING_FULL);
            return;
        }
        pnr_ring_commit(p->ring, room);
        n -= room;
    }
}

static void *acquire(void *argument)
{
    path *p = argument;
    const uint64_t stop_ns = p->start_ns + (uint64_t)(p->seconds * 1e9);

    for (uint64_t chunk = 1; !pnr_stop && !atomic_load(&p->stop); chunk++) {
        void *data;
        size_t n;

        if (p->rate_hz > 0) {
            const double due_ns = (double)chunk * (double)p->chunk / p->rate_hz * 1e9;

            if (p->start_ns + (uint64_t)due_ns > stop_ns)
                break;
            pnr_clock_sleep_until(p->start_ns + (uint64_t)due_ns, &pnr_stop);
            commit_live(p, p->chunk);
            continue;
        }
        if (pnr_clock_ns() >= stop_ns)
            break;
        if (pnr_ring_reserve(p->ring, p->chunk, &data, &n) == PNR_OK)
            pnr_ring_commit(p->ring, n);
        else
            (void)pnr_ring_wait_space(p->ring, patience_ns);
    }
    pnr_ring_end(p->ring);
    return NULL;
}

/* --- the processing thread --- */

static unsigned flags_of(const path *p, const pnr_dwell *dwell, uint64_t lost)
{
    return (lost > 0 ? PNR_FLAG_LOST : 0u) | (dwell->n_nonfinite > 0 ? PNR_FLAG_NONFINITE : 0u) |
           (dwell->n_clipped > 0 ? PNR_FLAG_CLIPPED : 0u) |
           (dwell->n_periods < p->setup->plan.n_periods ? PNR_FLAG_PARTIAL : 0u) |
           (dwell->n_maxima > dwell->n_candidates ? PNR_FLAG_MORE_ECHOES : 0u);
}

static void publish(path *p, const pnr_windows *windows, const pnr_result *result, size_t d)
{
    const pnr_plan *plan = &p->setup->plan;
    const pnr_dwell *dwell = &result->dwells[d];
    const size_t n_periods = windows->n_periods;
    pnr_report *report = &p->report;
    uint64_t latency_ns;

    report->sample = windows->first_sample + d * n_periods * plan->n_samples;
    report->periods = dwell->n_periods;
    report->lost = 0;
    for (size_t w = d * n_periods; w < (d + 1) * n_periods; w++)
        report->lost += windows->lost[w];
    report->lost_before = d == 0 ? windows->lost_before : 0;
    report->flags = flags_of(p, dwell, report->lost);
    report->cells_above = dwell->n_above;
    pnr_detector_detect(p->detector, dwell, result->candidates + d * plan->max_candidates,
                        &report->detection);
    latency_ns = pnr_clock_ns() - windows->ready_ns[d];
    report->latency_us = (double)latency_ns * 1e-3;
    pnr_histogram_add(&p->latency_ns, latency_ns);
    p->account.results++;
    if (pnr_publisher_send_range(p->publisher, report) == PNR_OK)
        p->account.sent++;
    else
        p->account.unsent_publish_refused++;
    p->account.n_clipped += dwell->n_clipped;
}

/* What was lent is used, whatever came of it. */
static void account_for(path *p, const pnr_windows *windows)
{
    const size_t n_windows = windows->n_dwells * windows->n_periods;

    p->account.windows += n_windows;
    for (size_t w = 0; w < n_windows; w++)
        p->account.used += p->setup->plan.n_samples - windows->lost[w];
    p->account.positions += n_windows * p->setup->plan.n_samples;
}

static int feed(path *p)
{
    pnr_windows windows;
    const int rc = pnr_ring_acquire(p->ring, p->setup->plan.batch, &windows);
    int submitted;

    if (rc != PNR_OK)
        return rc;
    account_for(p, &windows);
    submitted = pnr_correlator_submit(p->correlator, &windows);
    if (submitted != PNR_OK) {
        p->account.dropped_engine_error += windows.n_dwells * windows.n_periods;
        pnr_ring_release(p->ring);
    }
    return submitted;
}

static int report(path *p)
{
    pnr_windows windows;
    pnr_result result;
    const int rc = pnr_correlator_collect(p->correlator, true, &windows, &result);

    if (rc == PNR_OK) {
        p->account.processed += windows.n_dwells * windows.n_periods;
        for (size_t d = 0; d < windows.n_dwells; d++)
            publish(p, &windows, &result, d);
    } else {
        p->account.dropped_engine_error += windows.n_dwells * windows.n_periods;
    }
    pnr_ring_release(p->ring);
    return rc;
}

/* Feeds while there is room, reports the oldest, until nothing follows and nothing is in flight. */
static int process(path *p)
{
    int rc = PNR_OK;

    while (rc == PNR_OK) {
        int fed = PNR_OK;

        while (fed == PNR_OK && pnr_correlator_in_flight(p->correlator) < p->setup->plan.depth)
            fed = feed(p);
        if (fed != PNR_OK && fed != PNR_EAGAIN && fed != PNR_EEND)
            return fed;
        if (pnr_correlator_in_flight(p->correlator) > 0)
            rc = report(p);
        else if (fed == PNR_EEND)
            break;
        else
            (void)pnr_ring_wait(p->ring, patience_ns);
    }
    return rc;
}

/* --- life --- */

static void close_path(path *p)
{
    pnr_publisher_destroy(p->publisher);
    pnr_detector_destroy(p->detector);
    pnr_correlator_destroy(p->correlator);
    pnr_ring_destroy(p->ring);
    if (p->memory != NULL)
        p->ops->free(p->memory);
}

static int open_path(path *p, pnr_error *error)
{
    const pnr_plan *plan = &p->setup->plan;
    const size_t dwell = plan->n_samples * plan->n_periods;
    size_t n_dwells = (plan->depth + 2) * plan->batch;
    pnr_ring_shape shape = {
        .sample_bytes = pnr_format_get(plan->format)->bytes * plan->n_channels,
        .n_samples = plan->n_samples,
        .n_periods = plan->n_periods,
        .max_dwells = plan->batch,
        .depth = plan->depth,
    };
    int rc;

    if (n_dwells * dwell < RING_SAMPLES)
        n_dwells = (RING_SAMPLES + dwell - 1) / dwell;
    shape.capacity =
        n_dwells * dwell; /* whole periods: what is committed again goes on without a seam */
    p->chunk = plan->batch * dwell;
    p->memory = shape.memory = p->ops->alloc(shape.capacity * shape.sample_bytes);
    if (p->memory == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine %s: no memory for a ring of %zu samples",
                             p->ops->name, shape.capacity);
    pnr_measure_fill(p->setup, p->memory, shape.capacity);
    rc = pnr_ring_create(&shape, &p->ring, error);
    if (rc == PNR_OK)
        rc = pnr_correlator_create(p->ops, plan, &p->correlator, error);
    if (rc == PNR_OK)
        rc = pnr_detector_create(p->config, &p->setup->radar, p->setup->waveform,
                                 p->setup->threshold, &p->detector, error);
    if (rc == PNR_OK)
        rc = pnr_publisher_create(p->config, &p->publisher, error);
    if (rc != PNR_OK)
        return rc;
    snprintf(p->report.engine, sizeof p->report.engine, "%s", pnr_correlator_name(p->correlator));
    p->report.pfa_cell = p->setup->pfa_cell;
    return PNR_OK;
}

/* The last message: the account. Its status is that of the run. */
static void say_end(path *p, int rc, stream_result *out)
{
    pnr_status status = {
        .elapsed_s = out->seconds,
        .account = out->account,
        .latency_p50_us = out->latency_p50_us,
        .latency_p99_us = out->latency_p99_us,
        .reason = rc == PNR_OK ? "end of the measurement" : pnr_error_text(rc),
        .exit_status = pnr_error_exit(rc),
        .radar = &p->setup->radar,
        .config = p->config,
    };

    snprintf(status.engine, sizeof status.engine, "%s", p->report.engine);
    (void)pnr_publisher_send_status(p->publisher, &status, true);
}

/* Both threads, from the first commit to the last result. */
static int stream(path *p, stream_result *out, pnr_error *error)
{
    pthread_t acquisition;
    int rc;

    p->start_ns = pnr_clock_ns();
    rc = pthread_create(&acquisition, NULL, acquire, p);
    if (rc != 0)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "acquisition thread: %s", strerror(rc));
    rc = process(p);
    if (rc != PNR_OK)
        pnr_error_set(error, rc, "engine %s: %s", p->ops->name, pnr_error_text(rc));
    if (pnr_publisher_flush(p->publisher) != PNR_OK) {
        const size_t waiting = pnr_publisher_waiting(p->publisher);

        p->account.sent -= waiting;
        p->account.unsent_publish_refused += waiting;
    }
    out->seconds = (double)(pnr_clock_ns() - p->start_ns) * 1e-9;
    atomic_store(&p->stop, true);
    pthread_join(acquisition, NULL);
    pnr_ring_account(p->ring, &p->account);
    out->account = p->account;
    out->latency_p50_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.5) * 1e-3;
    out->latency_p99_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.99) * 1e-3;
    return rc;
}

int stream_run(const pnr_config *config, const pnr_setup *setup, const pnr_engine_ops *ops,
               double seconds, double rate_hz, stream_result *out, pnr_error *error)
{
    path *p = calloc(1, sizeof *p);
    stream_subscriber *subscriber = NULL;
    int rc;

    memset(out, 0, sizeof *out);
    if (p == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a stream");
    p->config = config;
    p->setup = setup;
    p->ops = ops;
    p->seconds = seconds;
    p->rate_hz = rate_hz;
    rc = open_path(p, error);
    if (rc == PNR_OK)
        rc = stream_subscriber_start(pnr_publisher_endpoint(p->publisher), &subscriber, error);
    if (rc == PNR_OK &&
        pnr_publisher_wait(p->publisher, subscriber_patience_s, &pnr_stop) != PNR_OK)
        rc = pnr_error_set(error, PNR_EUNAVAILABLE, "the subscriber of %s did not come within %g s",
                           pnr_publisher_endpoint(p->publisher), subscriber_patience_s);
    if (rc == PNR_OK) {
        rc = stream(p, out, error);
        say_end(p, rc, out);
    }
    stream_subscriber_finish(subscriber, rc == PNR_OK ? subscriber_patience_s : 0.0, out);
    close_path(p);
    free(p);
    return rc;
}
