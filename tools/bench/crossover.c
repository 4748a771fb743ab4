/* SPDX-License-Identifier: MIT */
/* bench crossover: the CPU against the GPU, by the length of the code and the dwells a submit. */
#include "tools/bench/bench.h"

#include "base/log.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const size_t default_sizes[] = {1 << 8,  1 << 10, 1 << 12, 1 << 13, 1 << 14,
                                       1 << 16, 1 << 18, 1 << 20, 1 << 22};
static const size_t batches[] = {1, 4, 16, 64, 256};
/* More samples a submit tell nothing new and take long. */
enum { MAX_SAMPLES = 1 << 24, N_BATCHES = sizeof batches / sizeof batches[0] };

enum { CPU, CUDA, N_ENGINES };
static const char *const engine_names[N_ENGINES] = {"cpu", "cuda"};

static const bench_column columns[] = {
    {"N", false},       {"batch", false},       {"cpu_ms", false},        {"cpu_p99_ms", false},
    {"cuda_ms", false}, {"cuda_p99_ms", false}, {"cpu_over_cuda", false}, {"faster", true},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static const char *const ratio_column[] = {"cpu_over_cuda", NULL};
static const char *const time_columns[] = {"cpu_ms", "cuda_ms", NULL};

/* NaN where the engine cannot. */
static int measure_engine(const bench *b, const pnr_engine_ops *ops, size_t n_samples, size_t batch,
                          double *median_ns, double *p99_ns, pnr_error *error)
{
    pnr_config config = *b->config;
    const bench named = {.config = &config};
    const pnr_engine_ops *same = NULL;
    pnr_engine_choice choice;
    pnr_setup *setup = NULL;
    pnr_timing timing;
    int rc;

    *median_ns = *p99_ns = NAN;
    if (ops == NULL)
        return PNR_OK;
    snprintf(config.engine.name, sizeof config.engine.name, "%s", ops->name);
    rc = bench_prepare(&named, n_samples, batch, &setup, &same, &choice, error);
    if (rc == PNR_OK)
        rc = pnr_measure_time(ops, setup, b->runs, &timing, error);
    pnr_setup_destroy(setup);
    if (rc == PNR_EUNSUPPORTED || rc == PNR_ENOMEMORY) {
        pnr_log(PNR_LOG_WARN, "N = %zu, %zu dwells: %s", n_samples, batch, error->text);
        return PNR_OK;
    }
    if (rc == PNR_OK) {
        *median_ns = timing.median_ns;
        *p99_ns = timing.p99_ns;
    }
    return rc;
}

static int add_row(const bench *b, const pnr_engine_ops *const *ops, size_t n_samples, size_t batch,
                   bench_table *table, pnr_error *error)
{
    double median_ns[N_ENGINES], p99_ns[N_ENGINES], ratio;

    for (int e = 0; e < N_ENGINES; e++) {
        const int rc =
            measure_engine(b, ops[e], n_samples, batch, &median_ns[e], &p99_ns[e], error);

        if (rc != PNR_OK)
            return rc;
    }
    ratio = median_ns[CPU] / median_ns[CUDA];
    bench_table_number(table, (double)n_samples);
    bench_table_number(table, (double)batch);
    for (int e = 0; e < N_ENGINES; e++) {
        bench_table_number(table, median_ns[e] * 1e-6);
        bench_table_number(table, p99_ns[e] * 1e-6);
    }
    bench_table_number(table, ratio);
    bench_table_text(table, isnan(ratio) ? "" : engine_names[ratio < 1.0 ? CPU : CUDA]);
    return PNR_OK;
}

int bench_crossover(const bench *b, pnr_error *error)
{
    const size_t *sizes = b->sizes != NULL ? b->sizes : default_sizes;
    const size_t n_sizes =
        b->sizes != NULL ? b->n_sizes : sizeof default_sizes / sizeof default_sizes[0];
    const pnr_engine_ops *ops[N_ENGINES] = {NULL};
    bench_picture picture = {.series = "batch"};
    bench_table *table = NULL;
    int rc;

    for (int e = 0; e < N_ENGINES; e++) {
        pnr_error reason = {0};

        if (pnr_engine_find(engine_names[e], b->config->engine.device, &ops[e], &reason) !=
            PNR_OK) {
            pnr_log(PNR_LOG_INFO, "engine %s is left out: %s", engine_names[e], reason.text);
            ops[e] = NULL;
        }
    }
    if (ops[CPU] == NULL && ops[CUDA] == NULL)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "crossover: neither cpu nor cuda works here");
    picture.y = ops[CPU] != NULL && ops[CUDA] != NULL ? ratio_column : time_columns;
    picture.y_label = picture.y == ratio_column ? "time of cpu / time of cuda" : "ms a submit";
    rc = bench_table_create("crossover: one submit of `batch` dwells, samples in host memory",
                            columns, N_COLUMNS, &table, error);
    for (size_t i = 0; i < n_sizes; i++)
        for (size_t j = 0; j < N_BATCHES && rc == PNR_OK; j++)
            if (j == 0 || sizes[i] * batches[j] <= MAX_SAMPLES)
                rc = add_row(b, ops, sizes[i], batches[j], table, error);
    if (rc == PNR_OK)
        rc = bench_table_show(b, table, &picture, error);
    bench_table_destroy(table);
    return rc;
}
