/* SPDX-License-Identifier: MIT */
/* bench soak: runs the whole pipeline for a long time at a share of its greatest rate. Reports
 * losses, memory, and the drift of the latency. */
#include "tools/bench/resident.h"
#include "tools/bench/stream.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"
#include "cli.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double ceiling_seconds = 3.0;
static const double most_intervals = 60, least_intervals = 4, least_interval_s = 1.0;
static const double MiB = 1024.0 * 1024.0;
static const uint64_t poll_ns = 10 * 1000 * 1000;
enum { MAX_INTERVALS = 64 };

static const char columns[] =
    "elapsed_s N echoes results results_ps lost p50_us p99_us p999_us max_us rss_MiB "
    "device_MiB";

static const bench_picture picture = {.title = "Latency over the run",
                                      .x_label = "time, s",
                                      .y_label =
                                          "from the last sample in the ring to the message, us",
                                      .curves = {{"p50_us", "median"},
                                                 {"p99_us", "99 %"},
                                                 {"p999_us", "99.9 %"},
                                                 {"max_us", "longest"}},
                                      .series = "N",
                                      .series_label = "N = ",
                                      .x_scale = BENCH_X_LINEAR};

/* Sums over the results of one interval. */
typedef struct interval {
    pnr_histogram latency_ns;
    uint64_t lost; /* number of lost samples, in the dwells of the interval and in the gaps before
                    * these dwells */
    uint64_t start_ns, end_ns;
    double p99_us, rss, device; /* the monitor sets these members when the interval has ended; rss
                                 * and device in bytes */
} interval;

typedef struct watch {
    stream_subject subject;
    double seconds, interval_s;
    bench_table *table;
    uint64_t start_ns;                 /* time of the first result */
    interval intervals[MAX_INTERVALS]; /* the publishing thread writes intervals[n_ended] */
    _Atomic size_t n_ended;            /* the monitor reads intervals[i], i < n_ended */
    _Atomic bool stop;
} watch;

/* Adds one result to the present interval. Runs in the publishing thread. The first interval begins
 * at the first result, so it does not include the creation of the engine. */
static void add_result(void *context, const pnr_report *report)
{
    watch *w = context;
    const uint64_t latency_ns = (uint64_t)(report->latency_us * 1e3);
    const uint64_t now_ns = report->ready_ns + latency_ns;
    interval *i = &w->intervals[w->n_ended];

    if (w->start_ns == 0)
        w->start_ns = i->start_ns = now_ns;
    pnr_histogram_add(&i->latency_ns, latency_ns);
    i->lost += report->lost + report->lost_before;
    if ((double)(now_ns - i->start_ns) < w->interval_s * 1e9 || w->n_ended + 1 == MAX_INTERVALS)
        return;
    i->end_ns = i[1].start_ns = now_ns;
    w->n_ended++;
}

/* --- the monitor --- */

/* Returns the resident memory of this process in bytes. NAN: unknown. */
static double resident_bytes(void)
{
    FILE *statm = fopen("/proc/self/statm", "re");
    unsigned long long pages;
    const bool is_known = statm != NULL && fscanf(statm, "%*u %llu", &pages) == 1;

    if (statm != NULL)
        fclose(statm);
    return is_known ? (double)pages * (double)sysconf(_SC_PAGESIZE) : (double)NAN;
}

static double device_bytes(const stream_subject *s)
{
    const pnr_resident_ops *device = resident_device(s->engine.ops);

    return device != NULL ? (double)device->memory_used(s->config.engine.device.index[0])
                          : (double)NAN;
}

static void add_row(const watch *w, interval *s)
{
    static const double shares[] = {0.5, 0.99, 0.999};
    const size_t n_samples = w->subject.engine.setup->plan.n_samples;
    const double elapsed_s = (double)(s->end_ns - w->start_ns) * 1e-9;

    s->rss = resident_bytes();
    s->device = device_bytes(&w->subject);
    s->p99_us = (double)pnr_histogram_quantile(&s->latency_ns, 0.99) * 1e-3;
    bench_table_add(w->table, "%g %zu %zu %g %g %g", elapsed_s, n_samples,
                    w->subject.echoes.n_echoes, (double)s->latency_ns.n,
                    (double)s->latency_ns.n * 1e9 / (double)(s->end_ns - s->start_ns),
                    (double)s->lost);
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        bench_table_add(w->table, "%g",
                        (double)pnr_histogram_quantile(&s->latency_ns, shares[i]) * 1e-3);
    bench_table_add(w->table, "%g %g %g", (double)s->latency_ns.max * 1e-3, s->rss / MiB,
                    s->device / MiB);
    pnr_log(PNR_LOG_INFO,
            "soak: N = %zu, %.1f of %.1f s: %llu results, %llu samples lost, p99 %.1f us, %.1f MiB",
            n_samples, elapsed_s, w->seconds, (unsigned long long)s->latency_ns.n,
            (unsigned long long)s->lost, s->p99_us, s->rss / MiB);
}

/* Adds a row for each interval that has ended. Runs in a separate thread, so that output, file
 * reads and driver calls do not delay the publishing thread. */
static void *monitor(void *argument)
{
    watch *w = argument;
    size_t n = 0;

    while (n < w->n_ended || !w->stop) {
        if (n < w->n_ended)
            add_row(w, &w->intervals[n++]);
        else
            pnr_clock_sleep_until(pnr_clock_ns() + poll_ns, NULL);
    }
    return NULL;
}

/* --- losses and drift --- */

static double mean_p99_us(const watch *w, size_t first, size_t n)
{
    double sum = 0;

    for (size_t i = first; i < first + n; i++)
        sum += w->intervals[i].p99_us;
    return n > 0 ? sum / (double)n : NAN;
}

static void print_verdict(const bench *b, const watch *w, const stream_result *r, double rate_hz)
{
    const size_t n = w->n_ended;
    const interval *first = &w->intervals[0], *last = &w->intervals[n > 0 ? n - 1 : 0];
    const size_t quarter = n > 4 ? n / 4 : n > 0;
    const double early_us = mean_p99_us(w, 0, quarter);
    const double late_us = mean_p99_us(w, n - quarter, quarter);
    const bool is_complete = bench_is_complete(&r->outcome);
    const char *comment = b->csv ? "# " : "";
    double most_rss = first->rss, most_device = first->device;
    char text[512];

    for (const interval *i = first; i < last; i++) {
        most_rss = fmax(most_rss, i[1].rss);
        most_device = fmax(most_device, i[1].device);
    }
    printf("%ssoak N = %zu: %s: %.1f s at %.1f Msample/s, %.2f GB/s\n", comment,
           w->subject.engine.setup->plan.n_samples,
           bench_is_lossless(&r->outcome) && is_complete ? "HELD" : "NOT HELD", r->seconds,
           rate_hz * 1e-6, rate_hz * w->subject.sample_bytes * 1e-9);
    printf("%s  account: %s (%s)\n", comment,
           pnr_account_format(&r->outcome.account, text, sizeof text),
           is_complete ? "closes" : "OPEN");
    printf("%s  subscriber: %llu received of %llu sent\n", comment,
           (unsigned long long)r->outcome.received.results,
           (unsigned long long)r->outcome.account.sent);
    printf("%s  p99: %.1f us in the first quarter, %.1f us in the last, drift %+.1f %%\n", comment,
           early_us, late_us, 100.0 * (late_us / early_us - 1.0));
    printf("%s  memory: %.1f MiB at first, %.1f MiB at the end, %.1f MiB at most; device: ",
           comment, first->rss / MiB, last->rss / MiB, most_rss / MiB);
    if (isnan(most_device))
        printf("none\n");
    else
        printf("%.1f, %.1f, %.1f MiB\n", first->device / MiB, last->device / MiB,
               most_device / MiB);
}

static int run_watched(const bench *b, watch *w, double rate_hz, pnr_error *error)
{
    pthread_t thread;
    stream_result result;
    int rc = pthread_create(&thread, NULL, monitor, w);

    if (rc != 0)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "monitor thread: %s", strerror(rc));
    rc = stream_run(&w->subject, w->seconds, rate_hz, add_result, w, &result, error);
    w->stop = true;
    pthread_join(thread, NULL);
    if (rc != PNR_OK)
        return rc;
    *b->lost |= !bench_is_lossless(&result.outcome);
    print_verdict(b, w, &result, rate_hz);
    return bench_is_complete(&result.outcome)
               ? PNR_OK
               : pnr_error_set(error, PNR_EINTERNAL, "soak: an account does not close");
}

static int measure_size(const bench *b, void *context, size_t n_samples, bench_table *table,
                        pnr_error *error)
{
    watch w = {.seconds = b->seconds, .table = table};
    const stream_subject *s = &w.subject;
    stream_result fast;
    int rc = stream_prepare(b, n_samples, &w.subject, error);

    (void)context;
    if (rc == PNR_OK && !(s->link_bytes_per_s > 0))
        rc = stream_run(s, fmin(ceiling_seconds, b->seconds), 0, NULL, NULL, &fast, error);
    if (rc == PNR_OK && !pnr_stop) {
        const double ceiling_hz = s->link_bytes_per_s > 0
                                      ? s->link_bytes_per_s / s->sample_bytes
                                      : (double)fast.outcome.account.used / fast.seconds;

        w.interval_s =
            fmin(fmax(b->seconds / most_intervals, least_interval_s), b->seconds / least_intervals);
        rc = run_watched(b, &w, b->pace * ceiling_hz, error);
    }
    stream_release(&w.subject);
    return rc;
}

int bench_soak(const bench *b, pnr_error *error)
{
    static const bench_sweep sweep = {
        .columns = columns, .picture = &picture, .measure = measure_size};

    return bench_sweep_run(b, &sweep, NULL, error,
                           "soak: live at %.4g %% of the ceiling, by interval", 100.0 * b->pace);
}
