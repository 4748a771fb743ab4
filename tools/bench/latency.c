/* SPDX-License-Identifier: MIT */
/* bench latency: from the last sample in the ring to the message at a subscriber, and where the
 * time goes. */
#include "tools/bench/latency.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t default_sizes[] = {(1 << 13) - 1, (1 << 20) - 1};
/* Long windows cannot come as often: this many samples a second are asked for at most. */
static const double default_every_s = 100e-6, default_samples_per_s = (double)(1 << 20) / 200e-6;
enum { WARM_WINDOWS = 1000, BUCKETS_AN_OCTAVE = 4 };
static const double default_seconds = 5.0;
static const uint64_t late_ns = 5000; /* a window committed later than so is counted */

static const bench_column columns[] = {
    {"N", false},       {"every_us", false},     {"engine", true},  {"wait", true},
    {"way", true},      {"windows", false},      {"p50_us", false}, {"p99_us", false},
    {"p999_us", false}, {"max_us", false},       {"lost", false},   {"missed", false},
    {"late", false},    {"late_p999_us", false},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static const bench_column stage_columns[] = {
    {"N", false},       {"stage", true},   {"p50_us", false}, {"p99_us", false},
    {"p999_us", false}, {"max_us", false}, {"what", true},
};
enum { N_STAGE_COLUMNS = sizeof stage_columns / sizeof stage_columns[0] };

static const bench_column histogram_columns[] = {
    {"latency_us", false}, {"N", false}, {"windows", false}, {"share_beyond", false}};
enum { N_HISTOGRAM_COLUMNS = sizeof histogram_columns / sizeof histogram_columns[0] };

static const char *const pictured[] = {"share_beyond", NULL};
static const bench_picture picture = {
    .y_label = "share of the windows that take longer",
    .y = pictured,
    .series = "N",
    .x_scale = BENCH_X_LOG10,
};

/* From one member of a moment to the next. */
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

static uint64_t at(const latency_moment *m, size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)m + offset);
}

/* ns of one stage in every window that came, but the first ones. Returns how many. A message may be
 * at the subscriber before the publisher has come back: such a stage is negative. */
static size_t gather(const latency_run *run, const struct stage *stage, double *out)
{
    const size_t warm =
        run->n_moments > 10 * (size_t)WARM_WINDOWS ? WARM_WINDOWS : run->n_moments / 10;
    size_t n = 0;

    for (size_t i = warm; i < run->n_moments; i++) {
        const latency_moment *m = &run->moments[i];

        if (m->ready_ns != 0 && m->received_ns != 0)
            out[n++] = (double)(int64_t)(at(m, stage->to) - at(m, stage->from));
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
        bench_table_number(table, n > 0 ? pnr_quantile(ns, n, shares[i]) * 1e-3 : NAN);
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
        bench_table_number(table, end_ns * 1e-3);
        bench_table_number(table, (double)n_samples);
        bench_table_number(table, (double)(i - first));
        bench_table_number(table, (double)(n - i) / (double)n);
    }
}

/* What the engine's own clocks say of one window that is there as a whole. */
static int add_alone(const pnr_engine_ops *ops, pnr_setup *setup, int runs, bench_table *table,
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
    pnr_timing timing;
    int rc;

    setup->plan.measure = true;
    rc = pnr_measure_time(ops, setup, runs, &timing, error);
    setup->plan.measure = false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && rc == PNR_OK; i++) {
        double median_ns = 0, p99_ns = 0;

        for (int s = parts[i].first; s <= parts[i].last; s++) {
            median_ns += timing.stage_median_ns[s];
            p99_ns += timing.stage_p99_ns[s];
        }
        bench_table_number(table, (double)setup->plan.n_samples);
        bench_table_text(table, parts[i].name);
        bench_table_number(table, median_ns * 1e-3);
        bench_table_number(table, p99_ns * 1e-3);
        bench_table_number(table, NAN);
        bench_table_number(table, NAN);
        bench_table_text(table, parts[i].what);
    }
    return rc;
}

static int add_rows(const pnr_config *config, const pnr_setup *setup, const char *engine,
                    uint64_t every_ns, const latency_run *run, const tables *t, pnr_error *error)
{
    const char *way = config->publisher.endpoint;
    const double n_samples = (double)setup->plan.n_samples;
    double *ns = calloc(run->n_moments, sizeof *ns);
    char kind[8];
    size_t n;

    if (ns == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu results", run->n_moments);
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(way, ":"), way);
    n = gather(run, &stages[ALL], ns);
    bench_table_number(t->latency, n_samples);
    bench_table_number(t->latency, (double)every_ns * 1e-3);
    bench_table_text(t->latency, engine);
    bench_table_text(t->latency, config->engine.wait == PNR_WAIT_SPIN ? "spin" : "sleep");
    bench_table_text(t->latency, kind);
    bench_table_number(t->latency, (double)n);
    add_quantiles(t->latency, ns, n);
    bench_table_number(t->latency, (double)run->account.lost_ring_full);
    bench_table_number(t->latency, (double)(run->account.results - run->received));
    bench_table_number(t->latency, (double)run->n_late);
    bench_table_number(t->latency, (double)pnr_histogram_quantile(&run->late_ns, 0.999) * 1e-3);
    add_histogram(t->histogram, setup->plan.n_samples, ns, n);
    for (size_t i = 0; i < N_STAGES; i++) {
        n = gather(run, &stages[i], ns);
        bench_table_number(t->stages, n_samples);
        bench_table_text(t->stages, stages[i].name);
        add_quantiles(t->stages, ns, n);
        bench_table_text(t->stages, stages[i].what);
    }
    free(ns);
    return PNR_OK;
}

/* What the command line leaves open: how often, and over what. */
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
        snprintf(config->publisher.endpoint, sizeof config->publisher.endpoint,
                 "ipc://@pnradar-bench-%ld", (long)getpid());
    return PNR_OK;
}

static void warn(const latency_run *run, size_t n_samples)
{
    char text[512];

    if (!pnr_account_closes(&run->account))
        pnr_log(PNR_LOG_ERROR, "N = %zu: the account does not close: %s", n_samples,
                pnr_account_format(&run->account, text, sizeof text));
    if (!run->ended)
        pnr_log(PNR_LOG_ERROR, "N = %zu: the subscriber never saw the end", n_samples);
    if (run->n_late > 0)
        pnr_log(PNR_LOG_WARN,
                "N = %zu: %llu windows were committed more than %g us late by the "
                "benchmark itself",
                n_samples, (unsigned long long)run->n_late, (double)late_ns * 1e-3);
}

static int measure_size(const bench *b, size_t n_samples, const tables *t, pnr_error *error)
{
    const pnr_engine_ops *ops = NULL;
    pnr_engine_choice choice;
    pnr_setup *setup = NULL;
    latency_run *run = calloc(1, sizeof *run);
    pnr_config config;
    uint64_t every_ns = 0;
    char engine[64];
    int rc = run != NULL ? configure(b, n_samples, &config, &every_ns, error)
                         : pnr_error_set(error, PNR_ENOMEMORY, "no memory for a run");

    if (rc == PNR_OK)
        rc = bench_prepare(&(bench){.config = &config}, n_samples, 1, &setup, &ops, &choice, error);
    if (rc == PNR_OK) {
        snprintf(engine, sizeof engine, "%s/%s", ops->name, choice.method);
        rc = latency_measure(&config, setup, every_ns, seconds_of(b), late_ns, run, error);
    }
    if (rc == PNR_OK)
        rc = add_rows(&config, setup, engine, every_ns, run, t, error);
    if (rc == PNR_OK) {
        warn(run, n_samples);
        *b->lost |= !pnr_account_lossless(&run->account) || run->received != run->account.results;
        rc = add_alone(ops, setup, b->runs, t->stages, error);
    }
    if (run != NULL)
        free(run->moments);
    free(run);
    pnr_setup_destroy(setup);
    return rc;
}

int bench_latency(const bench *b, pnr_error *error)
{
    const size_t *sizes = b->sizes != NULL ? b->sizes : default_sizes;
    const size_t n_sizes =
        b->sizes != NULL ? b->n_sizes : sizeof default_sizes / sizeof default_sizes[0];
    const bench plain = {.csv = b->csv};
    tables t = {0};
    char title[128];
    int rc;

    snprintf(title, sizeof title,
             "latency: last sample in the ring to the message at a subscriber, %g s a size",
             seconds_of(b));
    if ((rc = bench_table_create(title, columns, N_COLUMNS, &t.latency, error)) == PNR_OK &&
        (rc = bench_table_create("stages: where the time goes", stage_columns, N_STAGE_COLUMNS,
                                 &t.stages, error)) == PNR_OK)
        rc = bench_table_create("histogram: windows by latency", histogram_columns,
                                N_HISTOGRAM_COLUMNS, &t.histogram, error);
    for (size_t i = 0; i < n_sizes && rc == PNR_OK && !pnr_stop; i++)
        rc = measure_size(b, sizes[i], &t, error);
    if (rc == PNR_OK)
        rc = bench_table_show(&plain, t.latency, NULL, error);
    if (rc == PNR_OK)
        rc = bench_table_show(&plain, t.stages, NULL, error);
    if (rc == PNR_OK)
        rc = bench_table_show(b, t.histogram, &picture, error);
    bench_table_destroy(t.latency);
    bench_table_destroy(t.stages);
    bench_table_destroy(t.histogram);
    return rc;
}
