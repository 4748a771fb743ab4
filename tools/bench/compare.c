/* SPDX-License-Identifier: MIT */
/* bench seed: compares this machine in four ways with Tables 16 and 17 of the memoir (cited in
 * README.md). bench crossover: compares the CPU with the GPU for several code lengths and
 * batches. */
#include "tools/bench/bench.h"
#include "tools/bench/contest.h"

#include "base/log.h"
#include "base/stats.h"
#include "cli.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- one engine at one size --- */

enum { CPU, CUDA, N_ENGINES };
static const char *const engine_names[N_ENGINES] = {"cpu", "cuda"};

/* The ways in which bench seed times a correlation: the modes of pnr_measure_mode, and RESIDENT. In
 * RESIDENT the samples are in the memory where the engine computes. */
enum { RESIDENT = PNR_MEASURE_PINNED + 1, N_WAYS };

static const pnr_timing unknown = {.median_ns = NAN, .p99_ns = NAN};

/* Sets found[e] to true if engine e works on this machine. PNR_OK; PNR_EUNAVAILABLE: no engine
 * works. */
static int find_engines(const bench *b, const char *part, bool found[N_ENGINES], pnr_error *error)
{
    bool any = false;

    for (int e = 0; e < N_ENGINES; e++) {
        const pnr_engine_ops *ops = NULL;
        pnr_error reason = {0};

        found[e] = pnr_engine_find(engine_names[e], b->config->engine.device.index[0], &ops,
                                   &reason) == PNR_OK;
        any |= found[e];
        if (!found[e])
            pnr_log(PNR_LOG_INFO, "engine %s is left out: %s", engine_names[e], reason.text);
    }
    return any ? PNR_OK
               : pnr_error_set(error, PNR_EUNAVAILABLE, "%s: neither cpu nor cuda works here",
                               part);
}

/* Times a method as `pnradar-bench methods` does: samples and results remain in the memory where
 * the engine computes. */
static int time_resident(const bench_subject *s, size_t n_runs, pnr_timing *out, pnr_error *error)
{
    const char *const method = s->choice.method;
    contest c = {.subject = s, .runs = n_runs};
    int rc;

    s->setup->plan.max_candidates = 1;
    rc = contest_run(&c, &method, 1, RESIDENT_SETS, error);
    if (rc == PNR_OK && c.n_entries > 0)
        *out = (pnr_timing){.median_ns = pnr_median(c.entries[0].ns, c.n_times),
                            .p99_ns = pnr_quantile(c.entries[0].ns, c.n_times, 0.99)};
    contest_end(&c);
    return rc;
}

/* Times one engine in one way. If the engine does not support the plan, logs the reason and sets
 * the times to NAN. */
static int time_way(const bench *b, const char *engine, size_t n_samples, size_t batch, int way,
                    pnr_timing *out, pnr_error *error)
{
    pnr_config config = *b->config;
    bench_subject s;
    int rc;

    *out = unknown;
    snprintf(config.engine.name, sizeof config.engine.name, "%s", engine);
    rc = bench_prepare(&config, n_samples, batch, &s, error);
    if (rc == PNR_OK)
        rc = way == RESIDENT
                 ? time_resident(&s, b->runs, out, error)
                 : pnr_measure_time(s.ops, s.setup, (pnr_measure_mode)way, b->runs, out, error);
    pnr_setup_destroy(s.setup);
    if (rc != PNR_EUNSUPPORTED && rc != PNR_ENOMEMORY)
        return rc;
    pnr_log(PNR_LOG_WARN, "engine %s, N = %zu, %zu dwells: %s", engine, n_samples, batch,
            error->text);
    return PNR_OK;
}

/* --- seed --- */

/* The time of one correlation on a GTX 470, as the memoir estimates it in Tables 16 and 17. */
static const struct {
    size_t n_samples;
    double ms;
} memoir[] = {{1 << 19, 63.1}, {1 << 20, 125.1}, {1 << 21, 248.5}, {1 << 22, 496.5}};

static const char seed_columns[] =
    "N memoir_ms engine: stat: anew_ms reused_ms pinned_ms resident_ms anew_factor "
    "reused_factor pinned_factor resident_factor";

static void add_seed_rows(bench_table *table, size_t n_samples, const char *engine,
                          const pnr_timing ways[N_WAYS])
{
    double theirs_ms = NAN;

    for (size_t i = 0; i < sizeof memoir / sizeof memoir[0]; i++)
        if (memoir[i].n_samples == n_samples)
            theirs_ms = memoir[i].ms;
    for (int is_p99 = 0; is_p99 < 2; is_p99++) {
        double ms[N_WAYS];

        bench_table_add(table, "%zu %g %s %s", n_samples, theirs_ms, engine,
                        is_p99 ? "p99" : "median");
        for (int way = 0; way < N_WAYS; way++) {
            ms[way] = (is_p99 ? ways[way].p99_ns : ways[way].median_ns) * 1e-6;
            bench_table_add(table, "%g", ms[way]);
        }
        for (int way = 0; way < N_WAYS; way++)
            bench_table_add(table, "%g", theirs_ms / ms[way]);
    }
}

static int measure_seed(const bench *b, void *context, size_t n_samples, bench_table *table,
                        pnr_error *error)
{
    const bool *found = context;
    int rc = PNR_OK;

    for (int e = 0; e < N_ENGINES && rc == PNR_OK && !pnr_stop; e++) {
        pnr_timing ways[N_WAYS];

        for (int way = 0; way < N_WAYS && found[e] && rc == PNR_OK; way++)
            rc = time_way(b, engine_names[e], n_samples, 1, way, &ways[way], error);
        if (found[e] && rc == PNR_OK)
            add_seed_rows(table, n_samples, engine_names[e], ways);
    }
    return rc;
}

int bench_seed(const bench *b, pnr_error *error)
{
    static const bench_picture picture = {
        .title = "One correlation: the memoir of 2013 and this machine",
        .x_label = "samples a period, N",
        .y_label = "time of a correlation, ms, median",
        .curves = {{"memoir_ms", "memoir, estimated", true},
                   {"anew_ms", "all anew"},
                   {"reused_ms", "plan reused"},
                   {"pinned_ms", "pinned memory"},
                   {"resident_ms", "samples resident"}},
        .series = "engine",
        .series_label = "",
        .only_column = "stat",
        .only_text = "median",
    };
    static const bench_sweep sweep = {
        .columns = seed_columns, .picture = &picture, .measure = measure_seed};
    bool found[N_ENGINES];
    const int rc = find_engines(b, "seed", found, error);

    return rc != PNR_OK ? rc
                        : bench_sweep_run(b, &sweep, found, error,
                                          "seed: one correlation, against the memoir's Tables 16 "
                                          "and 17 (its estimate for a GTX 470)");
}

/* --- crossover --- */

static const size_t batches[] = {1, 4, 16, 64, 256};
/* Larger submits take longer and give no new information. */
enum { MAX_SAMPLES = 1 << 24, N_BATCHES = sizeof batches / sizeof batches[0] };

static const char crossover_columns[] =
    "N batch cpu_ms cpu_p99_ms cuda_ms cuda_p99_ms cpu_over_cuda faster:";

static int measure_crossover(const bench *b, void *context, size_t n_samples, bench_table *table,
                             pnr_error *error)
{
    const bool *found = context;

    for (size_t i = 0; i < N_BATCHES && !pnr_stop; i++) {
        pnr_timing times[N_ENGINES] = {unknown, unknown};
        double ratio;

        if (i > 0 && n_samples * batches[i] > MAX_SAMPLES)
            break;
        for (int e = 0; e < N_ENGINES; e++) {
            const int rc = found[e] ? time_way(b, engine_names[e], n_samples, batches[i],
                                               PNR_MEASURE_PINNED, &times[e], error)
                                    : PNR_OK;

            if (rc != PNR_OK)
                return rc;
        }
        ratio = times[CPU].median_ns / times[CUDA].median_ns;
        bench_table_add(table, "%zu %zu %g %g %g %g %g %s", n_samples, batches[i],
                        times[CPU].median_ns * 1e-6, times[CPU].p99_ns * 1e-6,
                        times[CUDA].median_ns * 1e-6, times[CUDA].p99_ns * 1e-6, ratio,
                        isnan(ratio) ? "" : engine_names[ratio < 1.0 ? CPU : CUDA]);
    }
    return PNR_OK;
}

int bench_crossover(const bench *b, pnr_error *error)
{
    bool found[N_ENGINES];
    int rc = find_engines(b, "crossover", found, error);
    const bool both = rc == PNR_OK && found[CPU] && found[CUDA];
    const bench_picture picture = {
        .title = both         ? "The engines cpu and cuda, by batch"
                 : found[CPU] ? "The engine cpu, by batch"
                              : "The engine cuda, by batch",
        .x_label = "samples a period, N",
        .y_label = both ? "time of cpu / time of cuda" : "time of a submit, ms, median",
        .curves = {{both ? "cpu_over_cuda" : "cpu_ms", both ? "" : "cpu"},
                   {both ? NULL : "cuda_ms", "cuda"}},
        .series = "batch",
        .series_label = "batch "};
    const bench_sweep sweep = {
        .columns = crossover_columns, .picture = &picture, .measure = measure_crossover};

    if (rc == PNR_OK)
        rc = bench_sweep_run(b, &sweep, found, error,
                             "crossover: one submit of a batch of dwells, samples in host memory");
    return rc;
}
