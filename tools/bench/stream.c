/* SPDX-License-Identifier: MIT */
/* bench stream: the whole way from the ring to a subscriber, beside the link's ceiling and the file
 * source. */
#include "tools/bench/stream.h"

#include "base/format.h"
#include "base/log.h"
#include "cli.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t default_sizes[] = {(1 << 13) - 1, 1 << 13,       1 << 16, (1 << 20) - 1,
                                       1 << 20,       (1 << 22) - 1, 1 << 22};

/* Above this many results a second, JSON for each is more work than the radar; a packed array is
 * not. */
static const double many_results_per_s = 1e5;
enum { PACK = 256, LINK_BYTES = 64 << 20 };
static const double default_seconds = 5.0;
static const double file_seconds = 1.0; /* at the ring's rate; the file source takes longer */
static const double most_file_bytes = 2e9;

static const bench_column columns[] = {
    {"N", false},          {"batch", false},      {"engine", true},     {"pack", false},
    {"way", true},         {"Msps", false},       {"GBps", false},      {"ceiling_GBps", false},
    {"share_pct", false},  {"results_ps", false}, {"p50_us", false},    {"p99_us", false},
    {"ring_drops", false}, {"unsent", false},     {"received", false},  {"missed", false},
    {"busy_pct", false},   {"account", true},     {"file_Msps", false}, {"file_GBps", false},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static const char *const pictured[] = {"Msps", "file_Msps", NULL};
static const bench_picture picture = {
    .y_label = "million samples a second",
    .y = pictured,
    .only_column = "way",
    .only_text = "fast",
};

static double seconds_of(const bench *b)
{
    return b->seconds > 0 ? b->seconds : default_seconds;
}

bool stream_is_complete(const stream_result *r)
{
    return pnr_account_closes(&r->account) && r->ended;
}

static void add_row(bench_table *table, const stream_subject *s, const char *way,
                    const stream_result *r, double ceiling_bytes_per_s, double file_samples_per_s)
{
    const pnr_plan *plan = &s->setup->plan;
    const double samples_per_s = (double)r->account.used / r->seconds;
    const double bytes_per_s = samples_per_s * s->sample_bytes;

    bench_table_number(table, (double)plan->n_samples);
    bench_table_number(table, (double)plan->batch);
    bench_table_text(table, s->engine);
    bench_table_number(table, (double)s->config.publisher.pack);
    bench_table_text(table, way);
    bench_table_number(table, samples_per_s * 1e-6);
    bench_table_number(table, bytes_per_s * 1e-9);
    bench_table_number(table, ceiling_bytes_per_s * 1e-9);
    bench_table_number(table, 100.0 * bytes_per_s / ceiling_bytes_per_s);
    bench_table_number(table, (double)r->account.results / r->seconds);
    bench_table_number(table, r->latency_p50_us);
    bench_table_number(table, r->latency_p99_us);
    bench_table_number(table, (double)r->account.lost_ring_full);
    bench_table_number(table, (double)r->account.unsent_publish_refused);
    bench_table_number(table, (double)r->received);
    bench_table_number(table, (double)(r->account.sent - r->received));
    bench_table_number(table, 100.0 * r->busy);
    bench_table_text(table, stream_is_complete(r) ? "closes" : "OPEN");
    bench_table_number(table, file_samples_per_s * 1e-6);
    bench_table_number(table, file_samples_per_s * s->sample_bytes * 1e-9);
}

/* Are more results a second to come than JSON carries? Short submits tell. */
static int choose_pack(stream_subject *s, pnr_error *error)
{
    const pnr_plan *plan = &s->setup->plan;
    pnr_timing timing;
    int rc;

    if (s->config.publisher.pack > 1)
        return PNR_OK; /* the user's */
    rc = pnr_measure_time(s->ops, s->setup, PNR_MEASURE_MIN_RUNS, &timing, error);
    if (rc != PNR_OK)
        return rc;
    /* One after the other; overlapped they come up to three times as fast. */
    if (3.0 * (double)plan->batch * 1e9 / timing.median_ns > many_results_per_s)
        s->config.publisher.pack = PACK;
    return PNR_OK;
}

int stream_prepare(const bench *b, size_t n_samples, stream_subject *s, pnr_error *error)
{
    const pnr_engine_bench *engine_bench;
    pnr_engine_choice choice;
    int rc;

    pnr_measure_configure(b->config, n_samples, &s->config);
    s->config.source.format = PNR_FORMAT_CI16;
    rc = bench_prepare(&(bench){.config = &s->config}, n_samples, 0, &s->setup, &s->ops, &choice,
                       error);
    if (rc != PNR_OK)
        return rc;
    snprintf(s->engine, sizeof s->engine, "%s/%s", s->ops->name, choice.method);
    s->sample_bytes = pnr_format_get(s->setup->plan.format)->bytes;
    engine_bench = pnr_engine_get_bench(s->ops->name);
    s->link_bytes_per_s =
        engine_bench != NULL ? engine_bench->link_rate(s->config.engine.device, LINK_BYTES) : 0.0;
    return choose_pack(s, error);
}

bool stream_is_lossless(const stream_result *r)
{
    return pnr_account_lossless(&r->account) && r->received == r->account.sent;
}

static void warn_open(const stream_subject *s, const stream_result *r)
{
    char text[512];

    if (!pnr_account_closes(&r->account))
        pnr_log(PNR_LOG_ERROR, "N = %zu: the account does not close: %s", s->setup->plan.n_samples,
                pnr_account_format(&r->account, text, sizeof text));
    if (!r->ended)
        pnr_log(PNR_LOG_ERROR, "N = %zu: the subscriber never saw the end",
                s->setup->plan.n_samples);
}

/* As fast as the ring takes it; then, when asked, live at a share of the ceiling. */
static int measure_size(const bench *b, size_t n_samples, bench_table *table, bool *open,
                        pnr_error *error)
{
    stream_subject *s = calloc(1, sizeof *s);
    stream_result fast, live;
    double file_rate = NAN, ceiling;
    int rc = s != NULL ? stream_prepare(b, n_samples, s, error)
                       : pnr_error_set(error, PNR_ENOMEMORY, "no memory for a stream");

    if (rc == PNR_OK)
        rc = stream_run(&s->config, s->setup, seconds_of(b), 0, NULL, NULL, &fast, error);
    if (rc == PNR_OK) {
        const double bytes_per_s = (double)fast.account.used * s->sample_bytes / fast.seconds;
        const double file_bytes = fmin(bytes_per_s * file_seconds, most_file_bytes);

        rc = stream_file_rate(&s->config, s->setup, (uint64_t)(file_bytes / s->sample_bytes),
                              &file_rate, error);
        ceiling = s->link_bytes_per_s > 0 ? s->link_bytes_per_s : NAN;
        if (rc == PNR_OK) {
            add_row(table, s, "fast", &fast, ceiling, file_rate);
            warn_open(s, &fast);
            *open |= !stream_is_complete(&fast);
            *b->lost |= !stream_is_lossless(&fast);
        }
        if (rc == PNR_OK && b->pace > 0 && !pnr_stop) {
            ceiling = s->link_bytes_per_s > 0 ? s->link_bytes_per_s : bytes_per_s;
            rc = stream_run(&s->config, s->setup, seconds_of(b),
                            b->pace * ceiling / s->sample_bytes, NULL, NULL, &live, error);
            if (rc == PNR_OK) {
                add_row(table, s, "live", &live, ceiling, NAN);
                warn_open(s, &live);
                *open |= !stream_is_complete(&live);
                *b->lost |= !stream_is_lossless(&live);
            }
        }
    }
    if (s != NULL)
        pnr_setup_destroy(s->setup);
    free(s);
    return rc;
}

int bench_stream(const bench *b, pnr_error *error)
{
    const size_t *sizes = b->sizes != NULL ? b->sizes : default_sizes;
    const size_t n_sizes =
        b->sizes != NULL ? b->n_sizes : sizeof default_sizes / sizeof default_sizes[0];
    bench_table *table = NULL;
    bool open = false;
    char title[160];
    int rc;

    snprintf(title, sizeof title,
             "stream: ring to subscriber, ci16, %g s a size, as fast as the ring takes it",
             seconds_of(b));
    if (b->pace > 0) {
        const size_t length = strlen(title);

        snprintf(title + length, sizeof title - length, "; live at %.4g %% of the ceiling",
                 100.0 * b->pace);
    }
    rc = bench_table_create(title, columns, N_COLUMNS, &table, error);
    for (size_t i = 0; i < n_sizes && rc == PNR_OK && !pnr_stop; i++)
        rc = measure_size(b, sizes[i], table, &open, error);
    if (rc == PNR_OK)
        rc = bench_table_show(b, table, &picture, error);
    bench_table_destroy(table);
    if (rc == PNR_OK && open)
        rc = pnr_error_set(error, PNR_EINTERNAL, "stream: an account does not close");
    return rc;
}
