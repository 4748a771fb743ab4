/* SPDX-License-Identifier: MIT */
/* bench chain: what each stage of a correlation takes, from samples in memory to candidates back */
#include "tools/bench/bench.h"

#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>

static const size_t default_sizes[] = {1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22};

static const bench_column columns[] = {
    {"N", false},
    {"batch", false},
    {"engine", true},
    {"stat", true},
    {"upload_ms", false},
    {"convert_ms", false},
    {"forward_ms", false},
    {"product_ms", false},
    {"inverse_ms", false},
    {"peak_ms", false},
    {"return_ms", false},
    {"total_ms", false},
    {"explained_pct", false},
    {"plain_ms", false},
    {"plain_Msps", false},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static const char *const pictured[] = {"upload_ms",  "convert_ms", "forward_ms",
                                       "product_ms", "inverse_ms", "peak_ms",
                                       "return_ms",  "total_ms",   NULL};
static const bench_picture picture = {
    .y_label = "ms a submit, median",
    .y = pictured,
    .only_column = "stat",
    .only_text = "median",
};

static void add_row(bench_table *table, const pnr_setup *setup, const char *engine,
                    const char *stat, const double *stage_ns, double total_ns, double explained,
                    double plain_ns)
{
    const pnr_plan *plan = &setup->plan;
    const double n_samples = (double)(pnr_plan_dwell_samples(plan) * plan->batch);

    bench_table_number(table, (double)plan->n_samples);
    bench_table_number(table, (double)plan->batch);
    bench_table_text(table, engine);
    bench_table_text(table, stat);
    for (int s = 0; s < PNR_STAGE_COUNT; s++)
        bench_table_number(table, stage_ns[s] * 1e-6);
    bench_table_number(table, total_ns * 1e-6);
    bench_table_number(table, 100.0 * explained);
    bench_table_number(table, plain_ns * 1e-6);
    bench_table_number(table, n_samples * 1e3 / plain_ns);
}

static int measure_size(const bench *b, size_t n_samples, bench_table *table, pnr_error *error)
{
    const pnr_engine_ops *ops = NULL;
    pnr_engine_choice choice;
    pnr_setup *setup = NULL;
    pnr_timing staged, plain;
    char engine[64];
    int rc = bench_prepare(b, n_samples, 0, &setup, &ops, &choice, error);

    if (rc != PNR_OK)
        return rc;
    setup->plan.measure = true;
    rc = pnr_measure_time(ops, setup, b->runs, &staged, error);
    setup->plan.measure = false;
    if (rc == PNR_OK)
        rc = pnr_measure_time(ops, setup, b->runs, &plain, error);
    if (rc == PNR_OK) {
        snprintf(engine, sizeof engine, "%s/%s", ops->name, choice.method);
        add_row(table, setup, engine, "median", staged.stage_median_ns, staged.median_ns,
                staged.explained, plain.median_ns);
        add_row(table, setup, engine, "p99", staged.stage_p99_ns, staged.p99_ns, NAN, plain.p99_ns);
    }
    pnr_setup_destroy(setup);
    return rc;
}

int bench_chain(const bench *b, pnr_error *error)
{
    const size_t *sizes = b->sizes != NULL ? b->sizes : default_sizes;
    const size_t n_sizes =
        b->sizes != NULL ? b->n_sizes : sizeof default_sizes / sizeof default_sizes[0];
    bench_table *table = NULL;
    char title[128];
    int rc;

    snprintf(title, sizeof title,
             "chain: one submit, %d runs; plain is the same without the clocks between stages",
             b->runs);
    rc = bench_table_create(title, columns, N_COLUMNS, &table, error);
    for (size_t i = 0; i < n_sizes && rc == PNR_OK; i++)
        rc = measure_size(b, sizes[i], table, error);
    if (rc == PNR_OK)
        rc = bench_table_show(b, table, &picture, error);
    bench_table_destroy(table);
    return rc;
}
