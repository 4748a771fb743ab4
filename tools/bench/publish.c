/* SPDX-License-Identifier: MIT */
/* bench publish: measures the time to detect the echoes of a result and the time to publish a
 * result, and the rate of results at a subscriber. */
#include "tools/bench/bench.h"
#include "tools/bench/planted.h"
#include "tools/bench/run.h"

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

static const size_t packs[] = {1, 16, 256, 4096};
enum { N_PACKS = sizeof packs / sizeof packs[0], DWELLS = 256, COPIES = 64 };
static const double patience_s = 5.0;

static const char columns[] =
    "N echoes pack detect_ns publish_ns results_ps received_ps missed MBps";

static const bench_picture picture = {
    .title = "Results a second after the engine",
    .x = "pack",
    .x_label = "results a message, publisher.pack",
    .y_label = "results a second",
    .curves = {{"results_ps", "published"}, {"received_ps", "received"}},
    .series = "N",
    .series_label = "N = ",
};

/* Results of an engine. The benchmark repeatedly detects the echoes of these results, and publishes
 * the results. */
typedef struct work {
    pnr_config config;
    pnr_setup *setup;
    pnr_detector *detector;
    pnr_publisher *publisher;
    pnr_dwell *dwells;         /* [DWELLS * COPIES]; too large for a cache, as in a real run */
    pnr_candidate *candidates; /* [DWELLS * COPIES][max_candidates] */
    pnr_report report;
    size_t n_echoes;
    uint64_t n; /* number of results so far; the sample index of the next result follows from it */
} work;

/* Correlates one submit. Stores COPIES copies of its results. */
static int correlate(work *w, const pnr_engine_ops *ops, const planted *echoes, pnr_error *error)
{
    const pnr_plan *plan = &w->setup->plan;
    const size_t n_candidates = DWELLS * plan->max_candidates;
    pnr_trial trial = {0};
    pnr_result result;
    int rc;

    w->dwells = calloc(COPIES * DWELLS, sizeof *w->dwells);
    w->candidates = calloc(COPIES * n_candidates, sizeof *w->candidates);
    if (w->dwells == NULL || w->candidates == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for results");
    if ((rc = pnr_trial_open(ops, plan, &trial, error)) == PNR_OK)
        rc = pnr_trial_run(&trial, echoes->samples, DWELLS, &result, error);
    for (size_t i = 0; i < COPIES && rc == PNR_OK; i++) {
        memcpy(w->dwells + i * DWELLS, result.dwells, DWELLS * sizeof *w->dwells);
        memcpy(w->candidates + i * n_candidates, result.candidates,
               n_candidates * sizeof *w->candidates);
    }
    pnr_trial_close(&trial);
    return rc;
}

static void destroy_work(work *w)
{
    pnr_publisher_destroy(w->publisher);
    pnr_detector_destroy(w->detector);
    pnr_setup_destroy(w->setup);
    free(w->dwells);
    free(w->candidates);
}

static int create_work(const bench *b, size_t n_samples, size_t pack, work *w, pnr_error *error)
{
    bench_subject subject;
    planted echoes;
    int rc;

    pnr_measure_configure(b->config, n_samples, &w->config);
    echoes = planted_begin(b->echoes, &w->config);
    w->config.publisher.pack = pack;
    bench_set_endpoint(&w->config);
    rc = bench_prepare(&w->config, n_samples, DWELLS, &subject, error);
    w->setup = subject.setup;
    if (rc == PNR_OK &&
        (rc = planted_fill(&echoes, &w->config, w->setup, subject.ops, DWELLS, error)) == PNR_OK)
        rc = correlate(w, subject.ops, &echoes, error);
    w->n_echoes = echoes.n_echoes;
    planted_clear(&echoes);
    if (rc != PNR_OK ||
        (rc = pnr_detector_create(&w->config, w->setup, &w->detector, error)) != PNR_OK ||
        (rc = pnr_publisher_create(&w->config, NULL, &w->publisher, error)) != PNR_OK)
        return rc;
    snprintf(w->report.engine, sizeof w->report.engine, "%.47s", subject.engine);
    w->report.pfa_cell = w->setup->pfa_cell;
    w->report.rate_hz = pnr_rational_double(w->setup->radar.rate_hz);
    return PNR_OK;
}

static void detect_next(work *w)
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

/* Measures, without a subscriber, the time to detect the echoes of a result and the time to publish
 * a result. Each time is a median over n_blocks blocks of results, in ns for one result. */
static int time_alone(work *w, size_t n_blocks, double *detect_ns, double *publish_ns,
                      pnr_error *error)
{
    double *const out[] = {detect_ns, publish_ns};
    double *ns = calloc(n_blocks, sizeof *ns);

    if (ns == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu times", n_blocks);
    for (int what = 0; what < 2; what++) {
        for (size_t block = 0; block < n_blocks; block++) {
            const uint64_t start_ns = pnr_clock_ns();

            for (size_t d = 0; d < DWELLS; d++) {
                if (what == 0)
                    detect_next(w);
                else
                    (void)pnr_publisher_send_range(w->publisher, &w->report);
            }
            ns[block] = (double)(pnr_clock_ns() - start_ns) / DWELLS;
        }
        *out[what] = pnr_median(ns, n_blocks);
    }
    free(ns);
    return PNR_OK;
}

/* Detects echoes and publishes results for `seconds`, as the pipeline does. If the publisher
 * refuses a result, publishes it again. Returns the number of results. */
static uint64_t publish_all(work *w, double seconds)
{
    const uint64_t start_ns = pnr_clock_ns();
    uint64_t n = 0;

    while ((double)(pnr_clock_ns() - start_ns) < seconds * 1e9 && !pnr_stop) {
        for (size_t d = 0; d < DWELLS; d++) {
            detect_next(w);
            while (pnr_publisher_send_range(w->publisher, &w->report) != PNR_OK && !pnr_stop)
                sched_yield();
            n++;
        }
    }
    while (pnr_publisher_flush(w->publisher) != PNR_OK && !pnr_stop)
        sched_yield();
    return n;
}

static int measure_pack(const bench *b, size_t n_samples, size_t pack, work *w, bench_table *table,
                        pnr_error *error)
{
    pnr_status status = {.reason = "end", .config = NULL};
    bench_subscriber *subscriber = NULL;
    bench_received came = {0};
    double detect_ns = 0, publish_ns = 0, seconds = 0;
    uint64_t n = 0, start_ns = 0;
    int rc;

    if ((rc = create_work(b, n_samples, pack, w, error)) != PNR_OK ||
        (rc = time_alone(w, b->runs, &detect_ns, &publish_ns, error)) != PNR_OK)
        return rc;
    (void)pnr_publisher_flush(w->publisher);
    rc = bench_subscriber_start(pnr_publisher_endpoint(w->publisher), false, NULL, NULL,
                                &subscriber, error);
    if (rc == PNR_OK && pnr_publisher_wait(w->publisher, patience_s, &pnr_stop) != PNR_OK)
        rc = pnr_error_set(error, PNR_EUNAVAILABLE, "the subscriber did not connect");
    if (rc == PNR_OK) {
        start_ns = pnr_clock_ns();
        n = publish_all(w, b->seconds);
        seconds = (double)(pnr_clock_ns() - start_ns) * 1e-9;
        while (pnr_publisher_send_status(w->publisher, &status, true) != PNR_OK && !pnr_stop)
            sched_yield();
    }
    bench_subscriber_finish(subscriber, rc == PNR_OK ? patience_s : 0, &came);
    if (rc != PNR_OK)
        return rc;

    const double received_s = (double)(came.last_ns - start_ns) * 1e-9;

    bench_table_add(table, "%zu %zu %zu %g %g %g %g %g %g", n_samples, w->n_echoes, pack, detect_ns,
                    publish_ns, (double)n / seconds, (double)came.results / received_s,
                    (double)n - (double)came.results, (double)came.bytes / received_s * 1e-6);
    *b->lost |= came.results != n;
    return PNR_OK;
}

static int measure_size(const bench *b, void *context, size_t n_samples, bench_table *table,
                        pnr_error *error)
{
    int rc = PNR_OK;

    (void)context;
    for (size_t i = 0; i < N_PACKS && rc == PNR_OK && !pnr_stop; i++) {
        work w = {.n = 0};

        rc = measure_pack(b, n_samples, packs[i], &w, table, error);
        destroy_work(&w);
    }
    return rc;
}

int bench_publish(const bench *b, pnr_error *error)
{
    static const bench_sweep sweep = {
        .columns = columns, .picture = &picture, .measure = measure_size};

    return bench_sweep_run(b, &sweep, NULL, error, "publish: ipc, by publisher.pack");
}
