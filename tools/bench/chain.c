/* SPDX-License-Identifier: MIT */
/* bench chain: measures the time of each stage of a correlation, from samples in memory to
 * candidates. */
#include "tools/bench/bench.h"

#include "tools/common/measure.h"

#include <math.h>

static const char columns[] =
    "N batch engine: stat: upload_ms convert_ms forward_ms product_ms inverse_ms "
    "peak_ms return_ms total_ms explained_pct plain_ms plain_Msps";

static const bench_picture picture = {
    .title = "Time of each stage of a submit",
    .x_label = "samples a period, N",
    .y_label = "time of a submit, ms, median",
    .curves = {{"total_ms", "all stages"},
               {"upload_ms", "upload"},
               {"convert_ms", "conversion"},
               {"forward_ms", "transform"},
               {"product_ms", "product"},
               {"inverse_ms", "inverse transform"},
               {"peak_ms", "search"},
               {"return_ms", "return"}},
    .only_column = "stat",
    .only_text = "median",
};

static void add_row(bench_table *table, const pnr_setup *setup, const char *engine,
                    const char *stat, const double *stage_ns, double total_ns, double explained,
                    double plain_ns)
{
    const pnr_plan *plan = &setup->plan;
    const double n_samples = (double)(pnr_plan_dwell_samples(plan) * plan->batch);

    bench_table_add(table, "%zu %zu %s %s", plan->n_samples, plan->batch, engine, stat);
    for (int s = 0; s < PNR_STAGE_COUNT; s++)
        bench_table_add(table, "%g", stage_ns[s] * 1e-6);
    bench_table_add(table, "%g %g %g %g", total_ns * 1e-6, 100.0 * explained, plain_ns * 1e-6,
                    n_samples * 1e3 / plain_ns);
}

static int measure_size(const bench *b, void *context, size_t n_samples, bench_table *table,
                        pnr_error *error)
{
    bench_subject s;
    pnr_timing staged, plain;
    int rc = bench_prepare(b->config, n_samples, 0, &s, error);

    (void)context;
    if (rc != PNR_OK)
        return rc;
    s.setup->plan.measure = true;
    rc = pnr_measure_time(s.ops, s.setup, PNR_MEASURE_PINNED, b->runs, &staged, error);
    s.setup->plan.measure = false;
    if (rc == PNR_OK)
        rc = pnr_measure_time(s.ops, s.setup, PNR_MEASURE_PINNED, b->runs, &plain, error);
    if (rc == PNR_OK) {
        add_row(table, s.setup, s.engine, "median", staged.stage_median_ns, staged.median_ns,
                staged.explained, plain.median_ns);
        add_row(table, s.setup, s.engine, "p99", staged.stage_p99_ns, staged.p99_ns, NAN,
                plain.p99_ns);
    }
    pnr_setup_destroy(s.setup);
    return rc;
}

int bench_chain(const bench *b, pnr_error *error)
{
    static const bench_sweep sweep = {
        .columns = columns, .picture = &picture, .measure = measure_size};

    return bench_sweep_run(b, &sweep, NULL, error,
                           "chain: one submit, %zu runs with clocks between the stages", b->runs);
}
