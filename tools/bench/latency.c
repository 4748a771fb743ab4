/* SPDX-License-Identifier: MIT */
/* bench latency: from the last sample in the ring to the message at a subscriber, stage by
 * stage. */
#include "tools/bench/latency.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Long windows cannot come as often: the default pace stays below so many samples a second. */
static const double default_every_s = 100e-6, default_samples_per_s = (double)(1 << 20) / 200e-6;
enum { WARM_WINDOWS = 1000, BUCKETS_AN_OCTAVE = 4 };
static const double default_seconds = 5.0;
static const uint64_t late_ns = 5000; /* a window committed later than this is counted */

static const char columns[] =
    "N every_us engine: wait: way: windows p50_us p99_us p999_us max_us lost missed "
    "late late_p999_us";

static const char stage_columns[] = "N stage: p50_us p99_us p999_us max_us what:";

static const char histogram_columns[] = "latency_us N windows share_beyond";

static const bench_picture picture = {
    .y_label = "share of the windows that take longer",
    .y = "share_beyond",
    .series = "N",
    .x_scale = BENCH_X_LOG10,
};

/* The time from one member of a moment to another. */
static const struct stage {
    const char *name, *what;
    size_t from, to; /* offsets */
} stages[] = {
#define STAGE(name, from, to, what)                                                                \
    {                                                                                              \
        name, what, offsetof(latency_moment, from##_ns), offsetof(latency_moment, to##_ns)         \
    }
    STAGE("wake", ready, submitted, "the processing thread sees the last sample"),
    STAGE("engine", submitted, collected, "last chunk up; kernels; results back; wait"),
    STAGE("detect", collected, packed, "account and detection"),
    STAGE("publish", packed, sent, "message written and handed to ZeroMQ"),
    STAGE("transport", sent, received, "to the subscriber's thread"),
    STAGE("all", ready, received, "last sample in the ring to the message"),
};
enum { N_STAGES = sizeof stages / sizeof stages[0], ALL = N_STAGES - 1 };

static uint64_t moment_at(const latency_moment *m, size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)m + offset);
}

/* ns of one stage in every window that came, without the first ones. Returns how many. A message
 * may reach the subscriber before the publisher returns: such a stage is negative. */
static size_t gather_stage(const latency_run *run, const struct stage *stage, double *out)
{
    const size_t warm =
        run->n_moments > 10 * (size_t)WARM_WINDOWS ? WARM_WINDOWS : run->n_moments / 10;
    size_t n = 0;

    for (size_t i = warm; i < run->n_moments; i++) {
        const latency_moment *m = &run->moments[i];

        if (m->ready_ns != 0 && m->received_ns != 0)
            out[n++] = (double)(int64_t)(moment_at(m, stage->to) - moment_at(m, stage->from));
    }
    return n;
}

static double seconds_of(const bench *b)
{
    return b->seconds > 0 ? b->seconds : default_seconds;
}

typedef struct tables {
    bench_table *latency, *stages, *histogram;
} tables;

static void add_quantiles(bench_table *table, double *ns, size_t n)
{
    static const double shares[] = {0.5, 0.99, 0.999, 1.0};

    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        bench_table_numbers(table, n > 0 ? pnr_quantile(ns, n, shares[i]) * 1e-3 : NAN);
}

/* ns: sorted. Buckets of a constant ratio, empty ones left out. */
static void add_histogram(bench_table *table, size_t n_samples, const double *ns, size_t n)
{
    size_t i = 0;

    while (i < n) {
        const double bucket = floor(log2(ns[i] > 1 ? ns[i] : 1) * BUCKETS_AN_OCTAVE);
        const double end_ns = exp2((bucket + 1) / BUCKETS_AN_OCTAVE);
        const size_t first = i;

        while (i < n && (ns[i] < end_ns || i == first))
            i++;
        bench_table_numbers(table, end_ns * 1e-3, (double)n_samples, (double)(i - first),
                            (double)(n - i) / (double)n);
    }
}

/* Adds the times of one whole window by the engine's own clocks. */
static int add_alone(const bench_subject *subject, int runs, bench_table *table, pnr_error *error)
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
        bench_table_numbers(table, (double)setup->plan.n_samples);
        bench_table_text(table, parts[i].name);
        bench_table_numbers(table, median_ns * 1e-3, p99_ns * 1e-3, NAN, NAN);
        bench_table_text(table, parts[i].what);
    }
    return rc;
}

static int add_rows(const pnr_config *config, const bench_subject *subject, uint64_t every_ns,
                    const latency_run *run, const tables *t, pnr_error *error)
{
    const char *way = config->publisher.endpoint;
    const double n_samples = (double)subject->setup->plan.n_samples;
    double *ns = calloc(run->n_moments, sizeof *ns);
    char kind[8];
    size_t n;

    if (ns == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu results", run->n_moments);
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(way, ":"), way);
    n = gather_stage(run, &stages[ALL], ns);
    bench_table_numbers(t->latency, n_samples, (double)every_ns * 1e-3);
    bench_table_text(t->latency, subject->engine);
    bench_table_text(t->latency, config->engine.wait == PNR_WAIT_SPIN ? "spin" : "sleep");
    bench_table_text(t->latency, kind);
    bench_table_numbers(t->latency, (double)n);
    add_quantiles(t->latency, ns, n);
    bench_table_numbers(t->latency, (double)run->outcome.account.lost_ring_full,
                        (double)(run->outcome.account.results - run->outcome.received.results),
                        (double)run->n_late,
                        (double)pnr_histogram_quantile(&run->late_ns, 0.999) * 1e-3);
    add_histogram(t->histogram, subject->setup->plan.n_samples, ns, n);
    for (size_t i = 0; i < N_STAGES; i++) {
        n = gather_stage(run, &stages[i], ns);
        bench_table_numbers(t->stages, n_samples);
        bench_table_text(t->stages, stages[i].name);
        add_quantiles(t->stages, ns, n);
        bench_table_text(t->stages, stages[i].what);
    }
    free(ns);
    return PNR_OK;
}

/* Fills in what the command line leaves open: the pace and the endpoint. */
static int configure(const bench *b, size_t n_samples, pnr_config *config, uint64_t *every_ns,
                     pnr_error *error)
{
    const double dwell = (double)(n_samples * b->config->dwell.periods);
    const double every_s =
        b->every_s > 0 ? b->every_s : fmax(default_every_s, dwell / default_samples_per_s);
    const pnr_rational a_second = {PNR_NS_PER_S, 1};
    pnr_rational samples = {0, 1};

    *every_ns = (uint64_t)(every_s * 1e9 + 0.5);
    samples.num = (int64_t)(n_samples * b->config->dwell.periods);
    samples.den = (int64_t)*every_ns;
    pnr_measure_configure(b->config, n_samples, config);
    if (pnr_rational_mul(samples, a_second, &config->source.rate_hz) != PNR_OK)
        return pnr_error_set(error, PNR_EUSAGE, "--every: %zu samples every %g s are no rate",
                             n_samples, every_s);
    config->source.format = PNR_FORMAT_CI16;
    config->engine.batch = 1;
    if (b->endpoint != NULL)
        snprintf(config->publisher.endpoint, sizeof config->publisher.endpoint, "%s", b->endpoint);
    else
        bench_set_endpoint(config);
    return PNR_OK;
}

static void warn_late(const latency_run *run, size_t n_samples)
{
    if (run->n_late > 0)
        pnr_log(PNR_LOG_WARN,
                "N = %zu: %llu windows were committed more than %g us late by the "
                "benchmark itself",
                n_samples, (unsigned long long)run->n_late, (double)late_ns * 1e-3);
}

static int measure_size(const bench *b, void *context, size_t n_samples, bench_table *table,
                        pnr_error *error)
{
    tables *t = context;
    bench_subject subject = {0};
    latency_run *run = calloc(1, sizeof *run);
    pnr_config config;
    uint64_t every_ns = 0;
    int rc = run != NULL ? configure(b, n_samples, &config, &every_ns, error)
                         : pnr_error_set(error, PNR_ENOMEMORY, "no memory for a run");

    t->latency = table;
    if (rc == PNR_OK)
        rc = bench_prepare(&config, n_samples, 1, &subject, error);
    if (rc == PNR_OK)
        rc = latency_measure(&config, subject.setup, every_ns, seconds_of(b), late_ns, run, error);
    if (rc == PNR_OK)
        rc = add_rows(&config, &subject, every_ns, run, t, error);
    if (rc == PNR_OK) {
        bench_warn_open(&run->outcome, n_samples);
        warn_late(run, n_samples);
        *b->lost |= !pnr_account_lossless(&run->outcome.account) ||
                    run->outcome.received.results != run->outcome.account.results;
        rc = add_alone(&subject, b->runs, t->stages, error);
    }
    if (run != NULL)
        free(run->moments);
    free(run);
    pnr_setup_destroy(subject.setup);
    return rc;
}

int bench_latency(const bench *b, pnr_error *error)
{
    static const bench_sweep sweep = {
        .sizes = "2^13-1,2^20-1", .columns = columns, .measure = measure_size};
    tables t = {0};
    char title[128];
    int rc;

    snprintf(title, sizeof title,
             "latency: last sample in the ring to the message at a subscriber, %g s a size",
             seconds_of(b));
    if ((rc = bench_table_create("stages: where the time goes", stage_columns, &t.stages, error)) ==
            PNR_OK &&
        (rc = bench_table_create("histogram: windows by latency", histogram_columns, &t.histogram,
                                 error)) == PNR_OK &&
        (rc = bench_sweep_run(b, title, &sweep, &t, error)) == PNR_OK &&
        (rc = bench_table_show(b, t.stages, NULL, error)) == PNR_OK)
        rc = bench_table_show(b, t.histogram, &picture, error);
    bench_table_destroy(t.stages);
    bench_table_destroy(t.histogram);
    return rc;
}
