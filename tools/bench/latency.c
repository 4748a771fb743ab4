/* SPDX-License-Identifier: MIT */
/* bench latency: measures the time from the commit of a window's last sample to the arrival of the
 * message at a subscriber. Also measures the time of each stage. */
#include "tools/bench/bench.h"
#include "tools/bench/planted.h"
#include "tools/bench/run.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pause.h"
#include "base/stats.h"
#include "engine/plan.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The default time between two windows is default_every_s, or the time of a window at
 * default_samples_per_s if that is longer. */
static const double default_every_s = 100e-6, default_samples_per_s = (double)(1 << 20) / 200e-6;
enum { DWELLS = 64, WARM_WINDOWS = 1000, BUCKETS_AN_OCTAVE = 4 };
enum { CHUNKS = 16 /* chunks in a window, if source.chunk is not set */, HIGH_WATER = 100000 };
static const uint64_t late_ns = 5000; /* a window counts as late if its commit is more than this
                                       * time after its due time */
static const uint64_t start_ns = 20 * 1000 * 1000; /* pause after the ring is filled, before window
                                                    * 0 begins */

static const char columns[] =
    "N echoes every_us engine: wait: way: windows p50_us p99_us p999_us max_us lost missed "
    "late late_p999_us";

static const char stage_columns[] = "N stage: p50_us p99_us p999_us max_us what:";

static const char histogram_columns[] = "latency_us N windows share_beyond";

static const bench_picture picture = {
    .title = "Latency from the last sample to the subscriber",
    .x_label = "latency, us",
    .y_label = "share of the windows that take longer",
    .curves = {{"share_beyond", ""}},
    .series = "N",
    .series_label = "N = ",
    .x_scale = BENCH_X_LOG10,
};

/* The points in time of one result, by CLOCK_MONOTONIC, in ns. 0: the result has not reached this
 * point. */
enum {
    READY,     /* the last sample is committed to the ring */
    SUBMITTED, /* the window is passed to the engine */
    COLLECTED, /* the engine has returned the result */
    PACKED,    /* echoes are detected and passed to the publisher */
    SENT,      /* the call of the publisher has returned */
    RECEIVED,  /* the message has arrived at the subscriber */
    N_MOMENTS
};

/* The time from one of these points to another. */
static const struct stage {
    const char *name, *what;
    int from, to;
} stages[] = {
    {"wake", "the processing thread sees the last sample", READY, SUBMITTED},
    {"engine", "last chunk up; kernels; results back; wait", SUBMITTED, COLLECTED},
    {"detect", "account and detection", COLLECTED, PACKED},
    {"publish", "message written and handed to ZeroMQ", PACKED, SENT},
    {"transport", "to the subscriber's thread", SENT, RECEIVED},
    {"all", "last sample in the ring to the message", READY, RECEIVED},
};
enum { N_STAGES = sizeof stages / sizeof stages[0], ALL = N_STAGES - 1 };

typedef struct tables {
    bench_table *latency, *stages, *histogram;
} tables;

/* A run of the pipeline. The time between two windows is constant. */
typedef struct latency_run {
    pnr_config config;
    bench_subject subject;
    planted echoes;
    uint64_t every_ns;
    size_t n_chunks;
    uint64_t (*windows)[N_MOMENTS]; /* [n_windows] times of each result; index: seq */
    size_t n_windows;
    bench_outcome outcome;
    pnr_histogram late_ns; /* time from the due time of a window's last chunk to its commit */
    uint64_t n_late;       /* number of windows that were late by more than the constant late_ns */
} latency_run;

/* --- the run --- */

/* Polls the clock until due_ns, because a sleeping thread wakes up late. Returns the present
 * time. */
static uint64_t watch_until(uint64_t due_ns, const volatile int *stop)
{
    uint64_t now_ns;

    while ((now_ns = pnr_clock_ns()) < due_ns && !*stop)
        pnr_pause();
    return now_ns;
}

/* Commits each chunk of each window at the time when a receiver would deliver the last sample of
 * the chunk. */
static void feed_windows(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory,
                         size_t capacity, const volatile int *stop)
{
    latency_run *run = context;
    const size_t n = pnr_plan_dwell_samples(plan), n_chunks = run->n_chunks;

    planted_copy(&run->echoes, plan, memory, capacity);

    const uint64_t begin_ns = pnr_clock_ns() + start_ns;

    for (uint64_t w = 0; w < run->n_windows && !*stop; w++) {
        for (size_t c = 1; c <= n_chunks && !*stop; c++) {
            const uint64_t due_ns = begin_ns + w * run->every_ns + run->every_ns * c / n_chunks;
            const uint64_t now_ns = watch_until(due_ns, stop);

            bench_commit_live(ring, n * c / n_chunks - n * (c - 1) / n_chunks);
            if (c < n_chunks)
                continue;

            const uint64_t after_ns = now_ns > due_ns ? now_ns - due_ns : 0;

            pnr_histogram_add(&run->late_ns, after_ns);
            run->n_late += after_ns > late_ns;
        }
    }
}

/* Stores the times of one result. Runs in the publishing thread, after the publication. */
static void note_result(void *context, const pnr_report *report)
{
    const latency_run *run = context;
    uint64_t *m;

    if (report->seq >= run->n_windows)
        return;
    m = run->windows[report->seq];
    m[READY] = report->ready_ns;
    m[SUBMITTED] = report->submitted_ns;
    m[COLLECTED] = report->collected_ns;
    m[PACKED] = report->ready_ns + (uint64_t)(report->latency_us * 1e3);
    m[SENT] = pnr_clock_ns();
}

/* Stores the times of arrival. Runs in the subscriber's thread, which stores no other times. */
static void note_received(void *context, uint64_t first_seq, uint64_t n, uint64_t now_ns)
{
    const latency_run *run = context;

    for (uint64_t seq = first_seq; seq < first_seq + n && seq < run->n_windows; seq++)
        run->windows[seq][RECEIVED] = now_ns;
}

/* Runs the pipeline on windows that are committed in chunks at the pace of a receiver. */
static int pace_windows(latency_run *run, double seconds, pnr_error *error)
{
    const size_t n_dwell = pnr_plan_dwell_samples(&run->subject.setup->plan);
    const size_t chunk = run->config.source.chunk;
    const bench_run_hooks hooks = {.feed = feed_windows,
                                   .tap = note_result,
                                   .seen = note_received,
                                   .context = run,
                                   .high_water = HIGH_WATER,
                                   .spin = run->config.engine.wait == PNR_WAIT_SPIN};

    run->n_chunks = chunk > 0 ? (n_dwell + chunk - 1) / chunk : CHUNKS;
    if (run->n_chunks > n_dwell)
        run->n_chunks = n_dwell;
    run->n_windows = (size_t)(seconds * 1e9 / (double)run->every_ns);
    if (run->n_windows < 1)
        return pnr_error_set(error, PNR_EUSAGE, "latency: %g s are too short for one window",
                             seconds);
    run->windows = malloc(run->n_windows * sizeof *run->windows);
    if (run->windows == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu results", run->n_windows);
    memset(run->windows, 0, run->n_windows * sizeof *run->windows); /* writes all pages now, so that
                                                                     * no page fault occurs during
                                                                     * the run */
    if (run->config.engine.deadline == 0)
        run->config.engine.deadline = (double)run->every_ns * 1e-9;
    return bench_run(&run->config, run->subject.setup,
                     (double)n_dwell * 1e9 / (double)run->every_ns, &hooks, &run->outcome, error);
}

/* --- the tables --- */

/* Stores the durations of one stage in `out`, in ns, for all windows whose message has arrived.
 * Omits the first tenth of the windows, but at most WARM_WINDOWS windows. Returns the number of
 * durations. A message may reach the subscriber before the publisher returns, so a duration may be
 * negative. */
static size_t gather_stage(const latency_run *run, const struct stage *stage, double *out)
{
    const size_t tenth = run->n_windows / 10;
    size_t n = 0;

    for (size_t i = tenth < WARM_WINDOWS ? tenth : WARM_WINDOWS; i < run->n_windows; i++) {
        const uint64_t *m = run->windows[i];

        if (m[READY] != 0 && m[RECEIVED] != 0)
            out[n++] = (double)(int64_t)(m[stage->to] - m[stage->from]);
    }
    return n;
}

static void add_quantiles(bench_table *table, double *ns, size_t n)
{
    static const double shares[] = {0.5, 0.99, 0.999, 1.0};

    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        bench_table_add(table, "%g", n > 0 ? pnr_quantile(ns, n, shares[i]) * 1e-3 : NAN);
}

/* Adds the histogram of n durations to the table. ns: the durations, sorted. Each octave has
 * BUCKETS_AN_OCTAVE buckets. Empty buckets are omitted. */
static void add_histogram(bench_table *table, size_t n_samples, const double *ns, size_t n)
{
    size_t i = 0;

    while (i < n) {
        const double bucket = floor(log2(ns[i] > 1 ? ns[i] : 1) * BUCKETS_AN_OCTAVE);
        const double end_ns = exp2((bucket + 1) / BUCKETS_AN_OCTAVE);
        const size_t first = i;

        while (i < n && (ns[i] < end_ns || i == first))
            i++;
        bench_table_add(table, "%g %zu %zu %g", end_ns * 1e-3, n_samples, i - first,
                        (double)(n - i) / (double)n);
    }
}

/* Adds three lines to the table, for one window: the time of the upload, of the kernels, and of the
 * return of the results. The engine measures these times without the pipeline. */
static int add_alone(const bench_subject *subject, size_t runs, bench_table *table,
                     pnr_error *error)
{
    static const struct {
        const char *name, *what;
        int first, last;
    } parts[] = {
        {"upload*", "alone by the engine's clocks: the whole window up", PNR_STAGE_UPLOAD,
         PNR_STAGE_UPLOAD},
        {"kernels*", "alone: all kernels", PNR_STAGE_CONVERT, PNR_STAGE_PEAK},
        {"return*", "alone: the results back", PNR_STAGE_RETURN, PNR_STAGE_RETURN},
    };
    pnr_setup *setup = subject->setup;
    pnr_timing timing;
    int rc;

    setup->plan.measure = true;
    rc = pnr_measure_time(subject->ops, setup, PNR_MEASURE_PINNED, runs, &timing, error);
    setup->plan.measure = false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && rc == PNR_OK; i++) {
        double median_ns = 0, p99_ns = 0;

        for (int s = parts[i].first; s <= parts[i].last; s++) {
            median_ns += timing.stage_median_ns[s];
            p99_ns += timing.stage_p99_ns[s];
        }
        bench_table_add(table, "%zu %s %g %g %g %g %s", setup->plan.n_samples, parts[i].name,
                        median_ns * 1e-3, p99_ns * 1e-3, NAN, NAN, parts[i].what);
    }
    return rc;
}

static int add_rows(const latency_run *run, const tables *t, pnr_error *error)
{
    const pnr_config *config = &run->config;
    const char *way = config->publisher.endpoint;
    const size_t n_samples = run->subject.setup->plan.n_samples;
    double *ns = calloc(run->n_windows, sizeof *ns);
    char kind[8];
    size_t n;

    if (ns == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu results", run->n_windows);
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(way, ":"), way);
    n = gather_stage(run, &stages[ALL], ns);
    bench_table_add(t->latency, "%zu %zu %g %s %s %s %zu", n_samples, run->echoes.n_echoes,
                    (double)run->every_ns * 1e-3, run->subject.engine,
                    config->engine.wait == PNR_WAIT_SPIN ? "spin" : "sleep", kind, n);
    add_quantiles(t->latency, ns, n);
    bench_table_add(t->latency, "%g %g %g %g", (double)run->outcome.account.lost_ring_full,
                    (double)(run->outcome.account.results - run->outcome.received.results),
                    (double)run->n_late,
                    (double)pnr_histogram_quantile(&run->late_ns, 0.999) * 1e-3);
    add_histogram(t->histogram, n_samples, ns, n);
    for (size_t i = 0; i < N_STAGES; i++) {
        n = gather_stage(run, &stages[i], ns);
        bench_table_add(t->stages, "%zu %s", n_samples, stages[i].name);
        add_quantiles(t->stages, ns, n);
        bench_table_add(t->stages, "%s", stages[i].what);
    }
    free(ns);
    return PNR_OK;
}

/* Configures the run. Chooses the time between two windows and the endpoint if the command line
 * does not set them. */
static int configure_run(const bench *b, size_t n_samples, latency_run *run, pnr_error *error)
{
    const size_t n_dwell = n_samples * b->config->dwell.periods;
    const double every_s = b->every_s > 0
                               ? b->every_s
                               : fmax(default_every_s, (double)n_dwell / default_samples_per_s);
    pnr_config *config = &run->config;

    run->every_ns = (uint64_t)(every_s * 1e9 + 0.5);
    pnr_measure_configure(b->config, n_samples, config);
    if (pnr_rational_mul((pnr_rational){(int64_t)n_dwell, (int64_t)run->every_ns},
                         (pnr_rational){PNR_NS_PER_S, 1}, &config->source.rate_hz) != PNR_OK)
        return pnr_error_set(error, PNR_EUSAGE, "--every: %zu samples every %g s are no rate",
                             n_samples, every_s);
    run->echoes = planted_begin(b->echoes, config);
    config->engine.batch = 1;
    if (b->endpoint != NULL)
        snprintf(config->publisher.endpoint, sizeof config->publisher.endpoint, "%s", b->endpoint);
    else
        bench_set_endpoint(config);
    return PNR_OK;
}

static int measure_size(const bench *b, void *context, size_t n_samples, bench_table *table,
                        pnr_error *error)
{
    tables *t = context;
    latency_run run = {.n_late = 0};
    int rc;

    t->latency = table;
    if ((rc = configure_run(b, n_samples, &run, error)) == PNR_OK &&
        (rc = bench_prepare(&run.config, n_samples, 1, &run.subject, error)) == PNR_OK &&
        (rc = planted_fill(&run.echoes, &run.config, run.subject.setup, run.subject.ops,
                           planted_dwells(&run.subject.setup->plan, DWELLS), error)) == PNR_OK &&
        (rc = pace_windows(&run, b->seconds, error)) == PNR_OK &&
        (rc = add_rows(&run, t, error)) == PNR_OK) {
        bench_warn_open(&run.outcome, n_samples);
        if (run.n_late > 0)
            pnr_log(PNR_LOG_WARN,
                    "N = %zu: %llu windows were committed more than %g us late by the "
                    "benchmark itself",
                    n_samples, (unsigned long long)run.n_late, (double)late_ns * 1e-3);
        *b->lost |= !pnr_account_lossless(&run.outcome.account) ||
                    run.outcome.received.results != run.outcome.account.results;
        rc = add_alone(&run.subject, b->runs, t->stages, error);
    }
    planted_clear(&run.echoes);
    pnr_setup_destroy(run.subject.setup);
    free(run.windows);
    return rc;
}

int bench_latency(const bench *b, pnr_error *error)
{
    static const bench_sweep sweep = {.columns = columns, .measure = measure_size};
    tables t = {0};
    int rc;

    if ((rc = bench_table_create("stages: the time of each part", stage_columns, &t.stages,
                                 error)) == PNR_OK &&
        (rc = bench_table_create("histogram: windows by latency", histogram_columns, &t.histogram,
                                 error)) == PNR_OK &&
        (rc = bench_sweep_run(
             b, &sweep, &t, error,
             "latency: last sample in the ring to the message at a subscriber, %g s a size",
             b->seconds)) == PNR_OK &&
        (rc = bench_table_show(b, t.stages, NULL, error)) == PNR_OK)
        rc = bench_table_show(b, t.histogram, &picture, error);
    bench_table_destroy(t.stages);
    bench_table_destroy(t.histogram);
    return rc;
}
