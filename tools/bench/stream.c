/* SPDX-License-Identifier: MIT */
/* bench stream: measures the rate of the whole pipeline up to a subscriber, first with samples in
 * the ring, then with samples from a file. Compares the first rate with the ceiling, which is the
 * rate of the links to the GPUs. */
#include "tools/bench/stream.h"

#include "base/clock.h"
#include "base/stats.h"
#include "cli.h"
#include "engine/plan.h"
#include "tools/common/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* Above this number of results a second, writing JSON takes more time than all radar processing. A
 * packed array takes less time. */
static const double many_results_per_s = 1e5;
enum { PACK = 256, LINK_BYTES = 64 << 20, SUBMITS_BEHIND = 16, MIN_BATCHES = 8 };
static const double most_file_seconds = 1.0; /* greatest duration of the samples in the file, at the
                                              * rate measured with the ring */
static const double most_file_bytes = 2e9;
static const double space_share = 0.5; /* share of the free space that the file may fill */
static const uint64_t patience_ns = 20000000;

static const char columns[] =
    "N echoes batch engine: pack way: Msps GBps ceiling_GBps share_pct results_ps p50_us "
    "p99_us ring_drops unsent received missed busy_pct account: file_Msps file_GBps";

static const bench_picture picture = {
    .title = "Rate of the whole program",
    .x_label = "samples a period, N",
    .y_label = "million samples a second",
    .curves = {{"Msps", "ring to subscriber"}, {"file_Msps", "from a file"}},
    .only_column = "way",
    .only_text = "fast",
};

/* --- a run from the memory of the ring --- */

typedef struct path {
    const stream_subject *subject; /* NULL: the samples come from a file */
    double seconds;
    double rate_hz; /* 0: as fast as the ring accepts samples */

    /* the acquisition thread writes start_ns */
    _Atomic uint64_t start_ns; /* time of the first commit */

    clockid_t processing; /* CPU time clock of the processing thread */

    /* only the publishing thread uses the members below during the run */
    pnr_histogram latency_ns;
    uint64_t stride;      /* samples between two readings of the clock: one submit */
    uint64_t next_sample; /* sample index at which the clock is read next */
    uint64_t first_ns, last_ns;
    uint64_t first_sample, last_sample;   /* sample indices at first_ns and last_ns */
    uint64_t first_busy_ns, last_busy_ns; /* processor time at first_ns and last_ns */
    pnr_pipeline_tap also; /* another function that is called for each result; may be NULL */
    void *also_context;
} path;

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
        bench_commit_live(ring, chunk);
    }
}

/* Fills the whole ring once, then commits its samples repeatedly without a copy. */
static void feed_ring(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory,
                      size_t capacity, const volatile int *stop)
{
    path *p = context;
    /* chunk: at most half of a submit, so that the engine can begin with the first part of a
     * submit. If a submit is one dwell, the chunk is this dwell. */
    const size_t dwell = pnr_plan_dwell_samples(plan);
    const size_t chunk = plan->batch > 1 ? (plan->batch / 2) * dwell : dwell;

    planted_copy(&p->subject->echoes, plan, memory, capacity);
    p->start_ns = pnr_clock_ns();
    if (p->rate_hz > 0)
        feed_live(p, ring, chunk, stop);
    else
        feed_fast(p, ring, chunk, stop);
}

/* Returns the time that a thread has run on a processor. */
static uint64_t thread_ns(clockid_t thread)
{
    struct timespec t;

    if (clock_gettime(thread, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void time_result(void *context, const pnr_report *report)
{
    path *p = context;

    pnr_histogram_add(&p->latency_ns, (uint64_t)(report->latency_us * 1e3));
    if (report->sample >= p->next_sample) {
        p->last_ns = pnr_clock_ns();
        p->last_sample = report->sample;
        p->last_busy_ns = thread_ns(p->processing);
        if (p->first_ns == 0) {
            p->first_ns = p->last_ns;
            p->first_sample = p->last_sample;
            p->first_busy_ns = p->last_busy_ns;
        }
        p->next_sample = report->sample + p->stride;
    }
    if (p->also != NULL)
        p->also(p->also_context, report);
}

int stream_run(const stream_subject *s, double seconds, double rate_hz, pnr_pipeline_tap also,
               void *also_context, stream_result *out, pnr_error *error)
{
    const pnr_plan *plan = &s->engine.setup->plan;
    path p = {.subject = s,
              .also = also,
              .also_context = also_context,
              .seconds = seconds,
              .rate_hz = rate_hz,
              .stride = plan->batch * pnr_plan_dwell_samples(plan),
              .processing = CLOCK_THREAD_CPUTIME_ID};
    /* All results of a submit are published at once. The publisher keeps the results of up to
     * SUBMITS_BEHIND submits for a subscriber that is slower for a moment. */
    const bench_run_hooks hooks = {.feed = feed_ring,
                                   .tap = time_result,
                                   .context = &p,
                                   .high_water = SUBMITS_BEHIND * plan->batch};
    int rc;

    (void)pthread_getcpuclockid(pthread_self(), &p.processing);
    rc = bench_run(&s->config, s->engine.setup, rate_hz, &hooks, &out->outcome, error);
    if (rc == PNR_OK && p.last_ns <= p.start_ns)
        rc = pnr_error_set(error, PNR_EUSAGE, "stream: %g s are too short for one result", seconds);
    out->seconds = (double)(p.last_ns - p.start_ns) * 1e-9;
    out->busy = (double)(p.last_busy_ns - p.first_busy_ns) / (double)(p.last_ns - p.first_ns);
    out->latency_p50_us = (double)pnr_histogram_quantile(&p.latency_ns, 0.5) * 1e-3;
    out->latency_p99_us = (double)pnr_histogram_quantile(&p.latency_ns, 0.99) * 1e-3;
    return rc;
}

/* --- the file --- */

static const char *folder(void)
{
    const char *chosen = getenv("TMPDIR");

    if (chosen != NULL && *chosen != '\0')
        return chosen;
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

/* Returns the number of bytes that the file in this folder may have. */
static double free_bytes(const char *in)
{
    struct statvfs fs;

    return statvfs(in, &fs) == 0 ? space_share * (double)fs.f_bavail * (double)fs.f_frsize : 0;
}

/* Fills a file with n_samples samples. Returns 0, or an errno. */
static int fill_file(int fd, const stream_subject *s, size_t n_samples)
{
    const pnr_plan *plan = &s->engine.setup->plan;
    const size_t bytes = n_samples * pnr_plan_sample_bytes(plan);
    const int code = posix_fallocate(fd, 0, (off_t)bytes);
    void *memory =
        code == 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (memory == MAP_FAILED)
        return code != 0 ? code : errno;
    planted_copy(&s->echoes, plan, memory, n_samples);
    return munmap(memory, bytes) == 0 ? 0 : errno;
}

static int run_file(const pnr_config *config, const char *name, double *samples_per_s,
                    pnr_error *error)
{
    pnr_config file = *config;
    path p = {.processing = CLOCK_THREAD_CPUTIME_ID};
    const pnr_pipeline_options options = {
        .stop = &pnr_stop, .can_isolate = true, .tap = time_result, .tap_context = &p};
    pnr_account account = {0};
    int rc;

    snprintf(file.source.input, sizeof file.source.input, "%s", name);
    file.source.pace = PNR_PACE_FAST;
    file.source.lost = NULL;
    file.source.n_lost = 0;
    file.publisher.wait_s = 0;
    rc = pnr_pipeline_run(&file, &options, &account, error);
    if (rc != PNR_OK)
        return rc;
    if (!pnr_account_closes(&account) || (!pnr_stop && !pnr_account_lossless(&account))) {
        char text[512];

        return pnr_error_set(error, PNR_EINTERNAL, "stream: the file source lost samples: %s",
                             pnr_account_format(&account, text, sizeof text));
    }
    if (p.last_ns > p.first_ns)
        *samples_per_s =
            (double)(p.last_sample - p.first_sample) * 1e9 / (double)(p.last_ns - p.first_ns);
    return PNR_OK;
}

/* Writes a file of about n_samples samples to $TMPDIR, or, if TMPDIR is not set, to /dev/shm or
 * /tmp. Then reads the file through the pipeline at pace `fast`. *samples_per_s: the rate between
 * the first and the last result. */
static int stream_file_rate(const stream_subject *s, uint64_t n_samples, double *samples_per_s,
                            pnr_error *error)
{
    const pnr_plan *plan = &s->engine.setup->plan;
    const size_t block = plan->batch * pnr_plan_dwell_samples(plan);
    const double block_bytes = (double)(block * pnr_plan_sample_bytes(plan));
    const double room = free_bytes(folder()) / block_bytes;
    uint64_t n_blocks = n_samples / block > MIN_BATCHES ? n_samples / block : MIN_BATCHES;
    char name[PNR_PATH_LEN];
    int fd, code, rc;

    if (room < MIN_BATCHES)
        return pnr_error_set(error, PNR_EIO, "stream: %s has no room for a file of %.0f bytes",
                             folder(), MIN_BATCHES * block_bytes);
    if ((double)n_blocks > room)
        n_blocks = (uint64_t)room;
    snprintf(name, sizeof name, "%s/pnradar-bench-XXXXXX", folder());
    fd = mkstemp(name);
    if (fd < 0)
        return pnr_error_set(error, PNR_EIO, "stream: %s: %s", name, strerror(errno));
    code = fill_file(fd, s, block * n_blocks);
    close(fd);
    if (code != 0)
        rc = pnr_error_set(error, PNR_EIO, "stream: %s: %s", name, strerror(code));
    else
        rc = run_file(&s->config, name, samples_per_s, error);
    unlink(name);
    return rc;
}

/* --- the table of results --- */

static void add_row(bench_table *table, const stream_subject *s, const char *way,
                    const stream_result *r, double ceiling_bytes_per_s, double file_samples_per_s)
{
    const pnr_plan *plan = &s->engine.setup->plan;
    const double samples_per_s = (double)r->outcome.account.used / r->seconds;
    const double bytes_per_s = samples_per_s * s->sample_bytes;

    bench_table_add(table, "%zu %zu %zu %s %zu %s", plan->n_samples, s->echoes.n_echoes,
                    plan->batch, s->engine.engine, s->config.publisher.pack, way);
    bench_table_add(
        table, "%g %g %g %g %g %g %g %g %g %g %g %g", samples_per_s * 1e-6, bytes_per_s * 1e-9,
        ceiling_bytes_per_s * 1e-9, 100.0 * bytes_per_s / ceiling_bytes_per_s,
        (double)r->outcome.account.results / r->seconds, r->latency_p50_us, r->latency_p99_us,
        (double)r->outcome.account.lost_ring_full,
        (double)(r->outcome.account.unsent_publish_refused + r->outcome.account.unsent_queue_full),
        (double)r->outcome.received.results,
        (double)(r->outcome.account.sent - r->outcome.received.results), 100.0 * r->busy);
    bench_table_add(table, "%s %g %g", bench_is_complete(&r->outcome) ? "closes" : "OPEN",
                    file_samples_per_s * 1e-6, file_samples_per_s * s->sample_bytes * 1e-9);
}

/* Measures the rate of a few submits. If there are too many results a second for JSON, sets
 * publisher.pack. */
static int choose_pack(stream_subject *s, pnr_error *error)
{
    const pnr_plan *plan = &s->engine.setup->plan;
    pnr_timing timing;
    int rc;

    if (s->config.publisher.pack > 1)
        return PNR_OK; /* the user has chosen publisher.pack */
    rc = pnr_measure_time(s->engine.ops, s->engine.setup, PNR_MEASURE_PINNED, PNR_MEASURE_MIN_RUNS,
                          &timing, error);
    if (rc != PNR_OK)
        return rc;
    /* These submits do not overlap. Overlapped submits are up to three times as fast. */
    if (3.0 * (double)plan->batch * 1e9 / timing.median_ns > many_results_per_s)
        s->config.publisher.pack = PACK;
    return PNR_OK;
}

void stream_measure_link(stream_subject *s)
{
    const pnr_engine_bench *link = pnr_engine_get_bench(s->engine.ops->name);

    s->sample_bytes = (double)pnr_plan_sample_bytes(&s->engine.setup->plan);
    s->link_bytes_per_s =
        link != NULL ? link->link_rate(&s->engine.setup->devices, LINK_BYTES) : 0.0;
}

int stream_prepare(const bench *b, size_t n_samples, stream_subject *s, pnr_error *error)
{
    int rc;

    pnr_measure_configure(b->config, n_samples, &s->config);
    s->echoes = planted_begin(b->echoes, &s->config);
    bench_set_endpoint(&s->config);
    rc = bench_prepare(&s->config, n_samples, 0, &s->engine, error);
    if (rc != PNR_OK)
        return rc;
    stream_measure_link(s);
    rc = planted_fill(&s->echoes, &s->config, s->engine.setup, s->engine.ops,
                      planted_dwells(&s->engine.setup->plan, s->engine.setup->plan.batch), error);
    return rc == PNR_OK ? choose_pack(s, error) : rc;
}

void stream_release(stream_subject *s)
{
    planted_clear(&s->echoes);
    pnr_setup_destroy(s->engine.setup);
}

static void take_result(const bench *b, bool *open, const stream_subject *s, const stream_result *r)
{
    bench_warn_open(&r->outcome, s->engine.setup->plan.n_samples);
    *open |= !bench_is_complete(&r->outcome);
    *b->lost |= !bench_is_lossless(&r->outcome);
}

/* Runs the pipeline as fast as the ring accepts samples, then from a file. If --pace is given, also
 * runs the pipeline live at this share of the ceiling. The ceiling is the rate of the link, or,
 * without a link, the rate of the first run. */
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
        s,
        (uint64_t)(fmin(bytes_per_s * fmin(b->seconds, most_file_seconds), most_file_bytes) /
                   s->sample_bytes),
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
    stream_release(&s);
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
