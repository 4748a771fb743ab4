/* SPDX-License-Identifier: MIT */
/* bench stream: the whole pipeline from the ring to a subscriber, against the ceiling of the link
 * and the file source. */
#include "tools/bench/stream.h"

#include "cli.h"
#include "engine/plan.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>

/* Above this number of results a second, JSON for each takes more time than the radar; a packed
 * array takes less. */
static const double many_results_per_s = 1e5;
enum { PACK = 256, LINK_BYTES = 64 << 20 };
static const double file_seconds = 1.0; /* of a file at the rate of the ring; the file source is
                                         * slower */
static const double most_file_bytes = 2e9;

static const char columns[] =
    "N batch engine: pack way: Msps GBps ceiling_GBps share_pct results_ps p50_us "
    "p99_us ring_drops unsent received missed busy_pct account: file_Msps file_GBps";

static const bench_picture picture = {
    .y_label = "million samples a second",
    .y = "Msps file_Msps",
    .only_column = "way",
    .only_text = "fast",
};

static void add_row(bench_table *table, const stream_subject *s, const char *way,
                    const stream_result *r, double ceiling_bytes_per_s, double file_samples_per_s)
{
    const pnr_plan *plan = &s->engine.setup->plan;
    const double samples_per_s = (double)r->outcome.account.used / r->seconds;
    const double bytes_per_s = samples_per_s * s->sample_bytes;

    bench_table_add(table, "%zu %zu %s %zu %s", plan->n_samples, plan->batch, s->engine.engine,
                    s->config.publisher.pack, way);
    bench_table_add(
        table, "%g %g %g %g %g %g %g %g %g %g %g %g", samples_per_s * 1e-6, bytes_per_s * 1e-9,
        ceiling_bytes_per_s * 1e-9, 100.0 * bytes_per_s / ceiling_bytes_per_s,
        (double)r->outcome.account.results / r->seconds, r->latency_p50_us, r->latency_p99_us,
        (double)r->outcome.account.lost_ring_full,
        (double)r->outcome.account.unsent_publish_refused, (double)r->outcome.received.results,
        (double)(r->outcome.account.sent - r->outcome.received.results), 100.0 * r->busy);
    bench_table_add(table, "%s %g %g", bench_is_complete(&r->outcome) ? "closes" : "OPEN",
                    file_samples_per_s * 1e-6, file_samples_per_s * s->sample_bytes * 1e-9);
}

/* Packs the results if there are more of them than JSON can carry; a few submits show the rate. */
static int choose_pack(stream_subject *s, pnr_error *error)
{
    const pnr_plan *plan = &s->engine.setup->plan;
    pnr_timing timing;
    int rc;

    if (s->config.publisher.pack > 1)
        return PNR_OK; /* the user has chosen */
    rc = pnr_measure_time(s->engine.ops, s->engine.setup, PNR_MEASURE_PINNED, PNR_MEASURE_MIN_RUNS,
                          &timing, error);
    if (rc != PNR_OK)
        return rc;
    /* These submits wait for each other; overlapped submits are up to three times as fast. */
    if (3.0 * (double)plan->batch * 1e9 / timing.median_ns > many_results_per_s)
        s->config.publisher.pack = PACK;
    return PNR_OK;
}

int stream_prepare(const bench *b, size_t n_samples, stream_subject *s, pnr_error *error)
{
    const pnr_engine_bench *link;
    int rc;

    pnr_measure_configure(b->config, n_samples, &s->config);
    s->config.source.format = PNR_FORMAT_CI16;
    bench_set_endpoint(&s->config);
    rc = bench_prepare(&s->config, n_samples, 0, &s->engine, error);
    if (rc != PNR_OK)
        return rc;
    s->sample_bytes = (double)pnr_plan_sample_bytes(&s->engine.setup->plan);
    link = pnr_engine_get_bench(s->engine.ops->name);
    s->link_bytes_per_s = link != NULL ? link->link_rate(s->config.engine.device, LINK_BYTES) : 0.0;
    return choose_pack(s, error);
}

static void take_result(const bench *b, bool *open, const stream_subject *s, const stream_result *r)
{
    bench_warn_open(&r->outcome, s->engine.setup->plan.n_samples);
    *open |= !bench_is_complete(&r->outcome);
    *b->lost |= !bench_is_lossless(&r->outcome);
}

/* Runs as fast as the ring accepts samples, then from a file, then, if the user wants it, live at a
 * share of the ceiling. */
static int measure_ways(const bench *b, const stream_subject *s, bool *open, bench_table *table,
                        pnr_error *error)
{
    const double link = s->link_bytes_per_s;
    stream_result fast, live;
    double file_rate = NAN, bytes_per_s, ceiling;
    int rc = stream_run(s, b->seconds, 0, NULL, NULL, &fast, error);

    if (rc != PNR_OK)
        return rc;
    bytes_per_s = (double)fast.outcome.account.used * s->sample_bytes / fast.seconds;
    rc = stream_file_rate(
        s, (uint64_t)(fmin(bytes_per_s * file_seconds, most_file_bytes) / s->sample_bytes),
        &file_rate, error);
    if (rc != PNR_OK)
        return rc;
    add_row(table, s, "fast", &fast, link > 0 ? link : (double)NAN, file_rate);
    take_result(b, open, s, &fast);
    if (!(b->pace > 0) || pnr_stop)
        return PNR_OK;
    ceiling = link > 0 ? link : bytes_per_s;
    rc = stream_run(s, b->seconds, b->pace * ceiling / s->sample_bytes, NULL, NULL, &live, error);
    if (rc != PNR_OK)
        return rc;
    add_row(table, s, "live", &live, ceiling, NAN);
    take_result(b, open, s, &live);
    return PNR_OK;
}

static int measure_size(const bench *b, void *context, size_t n_samples, bench_table *table,
                        pnr_error *error)
{
    stream_subject s;
    int rc = stream_prepare(b, n_samples, &s, error);

    if (rc == PNR_OK)
        rc = measure_ways(b, &s, context, table, error);
    pnr_setup_destroy(s.engine.setup);
    return rc;
}

int bench_stream(const bench *b, pnr_error *error)
{
    static const bench_sweep sweep = {
        .columns = columns, .picture = &picture, .measure = measure_size};
    bool open = false;
    char live[64] = "";
    int rc;

    if (b->pace > 0)
        snprintf(live, sizeof live, "; live at %.4g %% of the ceiling", 100.0 * b->pace);
    rc = bench_sweep_run(b, &sweep, &open, error,
                         "stream: ring to subscriber, ci16, %g s a size, as fast as the ring takes "
                         "it%s",
                         b->seconds, live);
    if (rc == PNR_OK && open)
        rc = pnr_error_set(error, PNR_EINTERNAL, "stream: an account does not close");
    return rc;
}
