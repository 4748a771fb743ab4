/* SPDX-License-Identifier: MIT */
/* The runs of bench stream: the pipeline itself, fed from a ring that is filled once and then
 * committed repeatedly, or from a file of the same samples. */
#include "tools/bench/stream.h"

#include "base/clock.h"
#include "base/stats.h"
#include "cli.h"
#include "engine/plan.h"
#include "tools/common/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { SUBMITS_BEHIND = 16, MIN_BATCHES = 8 };
static const double space_share = 0.5; /* of the free bytes, for the file */
static const uint64_t patience_ns = 20000000;

typedef struct path {
    const pnr_setup *setup;
    double seconds;
    double rate_hz; /* 0: as fast as the ring accepts samples */

    /* written by the acquisition thread */
    _Atomic uint64_t start_ns; /* of the first commit */

    /* written by the processing thread */
    pnr_histogram latency_ns;
    uint64_t stride;      /* samples between two readings of the clock: a submit */
    uint64_t next_sample; /* of the next reading */
    uint64_t first_ns, last_ns;
    uint64_t first_sample, last_sample;   /* their positions */
    uint64_t first_busy_ns, last_busy_ns; /* of processor time */
    pnr_pipeline_tap also;                /* may be NULL */
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

/* Copies nothing: the ring already holds the samples. */
static void feed_ring(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory,
                      size_t capacity, const volatile int *stop)
{
    path *p = context;
    /* Half of a submit or less, so that the engine can begin with its first part. */
    const size_t dwell = pnr_plan_dwell_samples(plan);
    const size_t chunk = plan->batch > 1 ? (plan->batch / 2) * dwell : dwell;

    pnr_measure_fill(p->setup, memory, capacity);
    p->start_ns = pnr_clock_ns();
    if (p->rate_hz > 0)
        feed_live(p, ring, chunk, stop);
    else
        feed_fast(p, ring, chunk, stop);
}

/* The time that this thread has run on a processor. */
static uint64_t thread_ns(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
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
        p->last_busy_ns = thread_ns();
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
    path p = {.setup = s->engine.setup,
              .also = also,
              .also_context = also_context,
              .seconds = seconds,
              .rate_hz = rate_hz,
              .stride = plan->batch * pnr_plan_dwell_samples(plan)};
    /* All results of a submit arrive together, so the subscriber may be some submits late. */
    const bench_run_hooks hooks = {.feed = feed_ring,
                                   .tap = time_result,
                                   .context = &p,
                                   .high_water = SUBMITS_BEHIND * plan->batch};
    int rc;

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

/* Bytes that may be written to the folder. */
static double free_bytes(const char *in)
{
    struct statvfs fs;

    return statvfs(in, &fs) == 0 ? space_share * (double)fs.f_bavail * (double)fs.f_frsize : 0;
}

/* Fills a file with this number of samples. Returns 0 or errno. */
static int fill_file(int fd, const pnr_setup *setup, size_t n_samples)
{
    const size_t bytes = n_samples * pnr_plan_sample_bytes(&setup->plan);
    const int code = posix_fallocate(fd, 0, (off_t)bytes);
    void *memory =
        code == 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (memory == MAP_FAILED)
        return code != 0 ? code : errno;
    pnr_measure_fill(setup, memory, n_samples);
    return munmap(memory, bytes) == 0 ? 0 : errno;
}

static int run_file(const pnr_config *config, const char *name, double *samples_per_s,
                    pnr_error *error)
{
    pnr_config file = *config;
    path p = {0};
    const pnr_pipeline_options options = {.stop = &pnr_stop, .tap = time_result, .tap_context = &p};
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

int stream_file_rate(const stream_subject *s, uint64_t n_samples, double *samples_per_s,
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
    code = fill_file(fd, s->engine.setup, block * n_blocks);
    close(fd);
    if (code != 0)
        rc = pnr_error_set(error, PNR_EIO, "stream: %s: %s", name, strerror(code));
    else
        rc = run_file(&s->config, name, samples_per_s, error);
    unlink(name);
    return rc;
}
