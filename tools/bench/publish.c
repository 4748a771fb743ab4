/* SPDX-License-Identifier: MIT */
/* bench publish: what a result costs behind the engine, and how many a second reach a subscriber */
#include "tools/bench/bench.h"
#include "tools/bench/stream.h"

#include "base/clock.h"
#include "base/stats.h"
#include "cli.h"
#include "detector/detector.h"
#include "publisher/publisher.h"
#include "tools/common/measure.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t default_sizes[] = {(1 << 10) - 1};
static const size_t packs[] = {1, 16, 256, 4096};
enum {
    N_PACKS = sizeof packs / sizeof packs[0],
    DWELLS = 256,
    COPIES = 64,
    AHEAD = 4,
    BLOCKS = 1000
};
static const double default_seconds = 1.0, patience_s = 5.0;

static const bench_column columns[] = {
    {"N", false},          {"pack", false},        {"detect_ns", false}, {"publish_ns", false},
    {"results_ps", false}, {"received_ps", false}, {"missed", false},    {"MBps", false},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static const char *const pictured[] = {"results_ps", "received_ps", NULL};
static const bench_picture picture = {.y_label = "results a second", .y = pictured};

/* Results of an engine, to be detected and published again and again. */
typedef struct work {
    pnr_config config;
    pnr_setup *setup;
    pnr_detector *detector;
    pnr_publisher *publisher;
    pnr_dwell *dwells;         /* [DWELLS * COPIES]: too many for a cache, as a device's are */
    pnr_candidate *candidates; /* [DWELLS * COPIES][max_candidates] */
    pnr_report report;
    uint64_t n; /* results so far: their positions */
} work;

/* One submit: an echo in each dwell, at delays over the whole period. */
static int correlate(work *w, const pnr_engine_ops *ops, pnr_error *error)
{
    const pnr_plan *plan = &w->setup->plan;
    const size_t n_samples = DWELLS * pnr_plan_windows(plan) * plan->n_samples;
    const size_t bytes = n_samples * pnr_format_get(plan->format)->bytes * plan->n_channels;
    uint32_t *lags = calloc(DWELLS, sizeof *lags);
    uint32_t *lost = calloc(DWELLS * pnr_plan_windows(plan), sizeof *lost);
    uint64_t *ready_ns = calloc(DWELLS, sizeof *ready_ns);
    void *memory = ops->alloc(bytes);
    pnr_windows windows = {.n_dwells = DWELLS, .n_periods = pnr_plan_windows(plan)};
    const pnr_job job = {.windows = &windows};
    pnr_engine *engine = NULL;
    pnr_result result;
    int rc = PNR_ENOMEMORY;

    w->dwells = calloc(COPIES * DWELLS, sizeof *w->dwells);
    w->candidates = calloc(COPIES * DWELLS * plan->max_candidates, sizeof *w->candidates);
    if (lags == NULL || lost == NULL || ready_ns == NULL || memory == NULL || w->dwells == NULL ||
        w->candidates == NULL) {
        pnr_error_set(error, rc, "no memory for %zu bytes of samples", bytes);
        goto done;
    }
    for (size_t d = 0; d < DWELLS; d++)
        lags[d] = (uint32_t)(d * plan->n_samples / DWELLS);
    pnr_measure_scatter(plan, 1, lags, memory);
    windows.spans[0] = (pnr_span){memory, n_samples};
    windows.lost = lost;
    windows.ready_ns = ready_ns;
    if ((rc = ops->create(plan, &engine, error)) != PNR_OK)
        goto done;
    if ((rc = ops->submit(engine, &job)) == PNR_OK)
        rc = ops->collect(engine, true, &result);
    if (rc != PNR_OK)
        pnr_error_set(error, rc, "engine %s: %s", ops->name, pnr_error_text(rc));
    for (size_t i = 0; i < COPIES && rc == PNR_OK; i++) {
        const size_t n_candidates = DWELLS * plan->max_candidates;

        memcpy(w->dwells + i * DWELLS, result.dwells, DWELLS * sizeof *w->dwells);
        memcpy(w->candidates + i * n_candidates, result.candidates,
               n_candidates * sizeof *w->candidates);
    }
done:
    if (engine != NULL)
        ops->destroy(engine);
    if (memory != NULL)
        ops->free(memory);
    free(lags);
    free(lost);
    free(ready_ns);
    return rc;
}

static void destroy(work *w)
{
    if (w == NULL)
        return;
    pnr_publisher_destroy(w->publisher);
    pnr_detector_destroy(w->detector);
    pnr_setup_destroy(w->setup);
    free(w->dwells);
    free(w->candidates);
    free(w);
}

static int create(const bench *b, size_t n_samples, size_t pack, work **out, pnr_error *error)
{
    const pnr_engine_ops *ops = NULL;
    pnr_engine_choice choice;
    work *w = calloc(1, sizeof *w);
    int rc;

    *out = NULL;
    if (w == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for results");
    pnr_measure_configure(b->config, n_samples, &w->config);
    w->config.publisher.pack = pack;
    snprintf(w->config.publisher.endpoint, sizeof w->config.publisher.endpoint,
             "ipc://@pnradar-bench-%ld", (long)getpid());
    rc = bench_prepare(&(bench){.config = &w->config}, n_samples, DWELLS, &w->setup, &ops, &choice,
                       error);
    if (rc == PNR_OK)
        rc = correlate(w, ops, error);
    if (rc == PNR_OK)
        rc = pnr_detector_create(&w->config, w->setup, &w->detector, error);
    if (rc == PNR_OK)
        rc = pnr_publisher_create(&w->config, &w->publisher, error);
    if (rc != PNR_OK) {
        destroy(w);
        return rc;
    }
    snprintf(w->report.engine, sizeof w->report.engine, "%.15s/%.31s", ops->name, choice.method);
    w->report.pfa_cell = w->setup->pfa_cell;
    *out = w;
    return PNR_OK;
}

static void detect(work *w)
{
    const size_t n_candidates = w->setup->plan.max_candidates, n = DWELLS * COPIES;
    const size_t d = w->n++ % n;

    w->report.sample = w->n * pnr_plan_dwell_samples(&w->setup->plan);
    w->report.periods = w->dwells[d].n_periods;
    w->report.cells_above = w->dwells[d].n_above;
    const pnr_observed observed = {.dwell = &w->dwells[d],
                                   .candidates = w->candidates + d * n_candidates};

    pnr_detector_detect(w->detector, &observed, &w->report.detection);
}

/* ns a result of detecting, and of publishing to nobody: medians of blocks. */
static int time_alone(work *w, double *detect_ns, double *publish_ns, pnr_error *error)
{
    double *const out[] = {detect_ns, publish_ns};
    double *ns = calloc(BLOCKS, sizeof *ns);

    if (ns == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %d times", BLOCKS);
    for (int what = 0; what < 2; what++) {
        for (size_t block = 0; block < BLOCKS; block++) {
            const uint64_t start_ns = pnr_clock_ns();

            for (size_t d = 0; d < DWELLS; d++) {
                if (what == 0)
                    detect(w);
                else
                    (void)pnr_publisher_send_range(w->publisher, &w->report);
            }
            ns[block] = (double)(pnr_clock_ns() - start_ns) / DWELLS;
        }
        *out[what] = pnr_median(ns, BLOCKS);
    }
    free(ns);
    return PNR_OK;
}

/* As the processing thread does it, but that a result that is refused is offered again. */
static uint64_t publish_all(work *w, double seconds)
{
    const uint64_t start_ns = pnr_clock_ns();
    uint64_t n = 0;

    while ((double)(pnr_clock_ns() - start_ns) < seconds * 1e9 && !pnr_stop) {
        for (size_t d = 0; d < DWELLS; d++) {
            detect(w);
            while (pnr_publisher_send_range(w->publisher, &w->report) != PNR_OK && !pnr_stop)
                sched_yield();
            n++;
        }
    }
    while (pnr_publisher_flush(w->publisher) != PNR_OK && !pnr_stop)
        sched_yield();
    return n;
}

static void end(work *w)
{
    pnr_status status = {.reason = "end", .config = NULL};

    while (pnr_publisher_send_status(w->publisher, &status, true) != PNR_OK && !pnr_stop)
        sched_yield();
}

static int measure_pack(const bench *b, size_t n_samples, size_t pack, bench_table *table,
                        pnr_error *error)
{
    stream_subscriber *subscriber = NULL;
    stream_result came = {0};
    double detect_ns = 0, publish_ns = 0, seconds;
    uint64_t n, start_ns;
    work *w = NULL;
    int rc = create(b, n_samples, pack, &w, error);

    if (rc != PNR_OK)
        return rc;
    rc = time_alone(w, &detect_ns, &publish_ns, error);
    (void)pnr_publisher_flush(w->publisher);
    if (rc == PNR_OK)
        rc = stream_subscriber_start(pnr_publisher_endpoint(w->publisher), false, NULL, NULL,
                                     &subscriber, error);
    if (rc == PNR_OK && pnr_publisher_wait(w->publisher, patience_s, &pnr_stop) != PNR_OK)
        rc = pnr_error_set(error, PNR_EUNAVAILABLE, "the subscriber did not come");
    if (rc == PNR_OK) {
        start_ns = pnr_clock_ns();
        n = publish_all(w, b->seconds > 0 ? b->seconds : default_seconds);
        seconds = (double)(pnr_clock_ns() - start_ns) * 1e-9;
        end(w);
    }
    stream_subscriber_finish(subscriber, rc == PNR_OK ? patience_s : 0, &came);
    if (rc == PNR_OK) {
        const double received_s = (double)(came.last_ns - start_ns) * 1e-9;

        bench_table_number(table, (double)n_samples);
        bench_table_number(table, (double)pack);
        bench_table_number(table, detect_ns);
        bench_table_number(table, publish_ns);
        bench_table_number(table, (double)n / seconds);
        bench_table_number(table, (double)came.received / received_s);
        bench_table_number(table, (double)n - (double)came.received);
        bench_table_number(table, (double)came.bytes / received_s * 1e-6);
        *b->lost |= came.received != n;
    }
    destroy(w);
    return rc;
}

int bench_publish(const bench *b, pnr_error *error)
{
    const size_t *sizes = b->sizes != NULL ? b->sizes : default_sizes;
    const size_t n_sizes = b->sizes != NULL ? b->n_sizes : 1;
    bench_table *table = NULL;
    int rc = bench_table_create("publish: one echo a result, ipc, by publisher.pack; the two "
                                "times are of one thread, the first without a subscriber",
                                columns, N_COLUMNS, &table, error);

    for (size_t i = 0; i < n_sizes && rc == PNR_OK; i++)
        for (size_t j = 0; j < N_PACKS && rc == PNR_OK && !pnr_stop; j++)
            rc = measure_pack(b, sizes[i], packs[j], table, error);
    if (rc == PNR_OK)
        rc = bench_table_show(b, table, &picture, error);
    bench_table_destroy(table);
    return rc;
}
