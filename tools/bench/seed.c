/* SPDX-License-Identifier: MIT */
/* bench seed: the memoir's Tables 16 and 17 beside this machine in four manners. */
#include "tools/bench/bench.h"

#include "base/log.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>

/* The memoir's estimate of one correlation on its GTX 470, Tables 16 and 17. */
static const struct {
    size_t n_samples;
    double ms;
} memoir[] = {{1 << 19, 63.1}, {1 << 20, 125.1}, {1 << 21, 248.5}, {1 << 22, 496.5}};
enum { N_MEMOIR = sizeof memoir / sizeof memoir[0] };

static const bench_column columns[] = {
    {"N", false},
    {"memoir_ms", false},
    {"engine", true},
    {"stat", true},
    {"anew_ms", false},
    {"reused_ms", false},
    {"pinned_ms", false},
    {"resident_ms", false},
    {"anew_factor", false},
    {"reused_factor", false},
    {"pinned_factor", false},
    {"resident_factor", false},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static const char *const pictured[] = {"memoir_ms", "anew_ms",     "reused_ms",
                                       "pinned_ms", "resident_ms", NULL};
static const bench_picture picture = {
    .y_label = "ms a correlation, median",
    .y = pictured,
    .series = "engine",
    .only_column = "stat",
    .only_text = "median",
};

static double memoir_ms(size_t n_samples)
{
    for (size_t i = 0; i < N_MEMOIR; i++)
        if (memoir[i].n_samples == n_samples)
            return memoir[i].ms;
    return NAN;
}

static void add_row(bench_table *table, size_t n_samples, const char *engine, const char *stat,
                    const double *ns)
{
    const double theirs_ms = memoir_ms(n_samples);

    bench_table_number(table, (double)n_samples);
    bench_table_number(table, theirs_ms);
    bench_table_text(table, engine);
    bench_table_text(table, stat);
    for (int manner = 0; manner < PNR_MANNER_COUNT; manner++)
        bench_table_number(table, ns[manner] * 1e-6);
    for (int manner = 0; manner < PNR_MANNER_COUNT; manner++)
        bench_table_number(table, theirs_ms / (ns[manner] * 1e-6));
}

static int measure_size(const bench *b, const char *name, const pnr_engine_bench *engine,
                        size_t n_samples, bench_table *table, pnr_error *error)
{
    double median_ns[PNR_MANNER_COUNT], p99_ns[PNR_MANNER_COUNT];

    for (int manner = 0; manner < PNR_MANNER_COUNT; manner++) {
        const int rc = engine->seed(b->config->engine.device, n_samples, (pnr_manner)manner,
                                    b->runs, &median_ns[manner], &p99_ns[manner], error);

        if (rc == PNR_EUNSUPPORTED || rc == PNR_ENOMEMORY) {
            pnr_log(PNR_LOG_WARN, "engine %s, N = %zu: %s", name, n_samples, error->text);
            median_ns[manner] = p99_ns[manner] = NAN;
        } else if (rc != PNR_OK) {
            return rc;
        }
    }
    add_row(table, n_samples, name, "median", median_ns);
    add_row(table, n_samples, name, "p99", p99_ns);
    return PNR_OK;
}

/* The engine's bench table, when the engine works here; else the reason is logged. */
static const pnr_engine_bench *find(const bench *b, const char *name)
{
    const pnr_engine_ops *ops = NULL;
    const pnr_engine_bench *engine;
    pnr_error reason = {0};

    if (pnr_engine_find(name, b->config->engine.device, &ops, &reason) != PNR_OK) {
        pnr_log(PNR_LOG_INFO, "engine %s is left out: %s", name, reason.text);
        return NULL;
    }
    engine = pnr_engine_get_bench(name);
    if (engine == NULL)
        pnr_log(PNR_LOG_INFO, "engine %s is left out: it has no table of manners", name);
    return engine;
}

int bench_seed(const bench *b, pnr_error *error)
{
    const size_t n_sizes = b->sizes != NULL ? b->n_sizes : N_MEMOIR;
    bench_table *table = NULL;
    int rc = bench_table_create(
        "seed: one correlation, against the memoir's Tables 16 and 17 (its estimate for a GTX 470)",
        columns, N_COLUMNS, &table, error);

    for (const char *const *name = pnr_engine_names(); *name != NULL && rc == PNR_OK; name++) {
        const pnr_engine_bench *engine = find(b, *name);

        for (size_t i = 0; i < n_sizes && rc == PNR_OK && engine != NULL; i++) {
            const size_t n_samples = b->sizes != NULL ? b->sizes[i] : memoir[i].n_samples;

            rc = measure_size(b, *name, engine, n_samples, table, error);
        }
    }
    if (rc == PNR_OK && bench_table_rows(table) == 0)
        rc =
            pnr_error_set(error, PNR_EUNAVAILABLE, "seed: no engine with a table of manners works");
    if (rc == PNR_OK)
        rc = bench_table_show(b, table, &picture, error);
    bench_table_destroy(table);
    return rc;
}
