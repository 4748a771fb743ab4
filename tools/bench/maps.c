/* SPDX-License-Identifier: MIT */
/* bench maps: a range-Doppler dwell and a search of codes and Doppler hypotheses, samples in place,
 * every answer checked. */
#include "tools/bench/bench.h"
#include "tools/bench/resident.h"

#include "base/random.h"
#include "base/stats.h"
#include "cli.h"
#include "code/code.h"
#include "engine/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HYPOTHESES = 64, HOST_BATCH = 1 };
static const double threshold = 30; /* above any cell of noise, below every echo */

/* Neighbouring hypotheses are `step` quarter bins apart, n_rows slow-time bins each. */
typedef struct map_case {
    const char *name;
    size_t n_samples, n_codes, n_periods, batch;
    int32_t first_quarters, step;
    size_t n_hypotheses;
    int32_t first_bin;
    uint32_t n_rows;
} map_case;

static const map_case cases[] = {
    {"range-Doppler by quarter bins", 8192, 1, 512, 1, 0, 1, 4, -64, 128},
    {"range-Doppler by quarter bins", 8192, 1, 512, 8, 0, 1, 4, -64, 128},
    {"range-Doppler by a whole bin", 8192, 1, 512, 1, 0, 1, 1, -256, 512},
    {"search by half bins", 4000, 32, 1, 1, -40, 2, 41, 0, 1},
    {"search by half bins", 4000, 32, 1, 16, -40, 2, 41, 0, 1},
};

enum { N_CASES = sizeof cases / sizeof cases[0] };
static const char *const names[] = {"library", "fused"};

static const char columns[] =
    "map: N periods codes rows batch method: median_us dwell_us GBps floor_us "
    "floor_pct samples_us Gcells_s checked";

typedef struct contest {
    const bench *bench;
    const pnr_engine_ops *ops;
    const map_case *own;
    pnr_plan plan;
    pnr_hypothesis hypotheses[MAX_HYPOTHESES];
    double (*references)[2];
    double *thresholds;
    uint32_t *lags; /* [batch] */
    double copy_rate;
    uint64_t state;
    size_t n_checked; /* dwells */
} contest;

/* --- the plan --- */

/* Several codes are GPS codes, one is of random phases. */
static int make_codes(contest *c, pnr_error *error)
{
    const map_case *own = c->own;
    int rc = PNR_OK;

    for (size_t i = 0; i < own->n_codes && rc == PNR_OK; i++) {
        pnr_config config;
        pnr_code *code = NULL;

        pnr_config_init(&config);
        config.code.type = own->n_codes > 1 ? PNR_CODE_GPS_L1CA : PNR_CODE_RANDOM;
        config.code.prn = i + 1;
        config.code.length = own->n_samples;
        rc = pnr_code_create(&config, &code, error);
        if (rc == PNR_OK)
            rc = pnr_code_sample(code, &config, own->n_samples, c->references + i * own->n_samples,
                                 error);
        pnr_code_destroy(code);
        pnr_config_clear(&config);
    }
    return rc;
}

static int make_plan(contest *c, size_t batch, pnr_error *error)
{
    const map_case *own = c->own;

    c->references = calloc(own->n_codes * own->n_samples, sizeof *c->references);
    c->thresholds = calloc(own->n_periods, sizeof *c->thresholds);
    c->lags = calloc(batch, sizeof *c->lags);
    if (c->references == NULL || c->thresholds == NULL || c->lags == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a map's plan");
    for (size_t p = 0; p < own->n_periods; p++)
        c->thresholds[p] = threshold;
    for (size_t h = 0; h < own->n_hypotheses; h++)
        c->hypotheses[h] =
            (pnr_hypothesis){.quarters = own->first_quarters + own->step * (int32_t)h,
                             .first_bin = own->first_bin,
                             .n_rows = own->n_rows};
    c->plan = (pnr_plan){
        .n_samples = own->n_samples,
        .format = PNR_FORMAT_CI16,
        .n_channels = 1,
        .n_used_channels = 1,
        .n_codes = own->n_codes,
        .n_hypotheses = own->n_hypotheses,
        .hypotheses = c->hypotheses,
        .n_periods = own->n_periods,
        .n_looks = 1,
        .n_lags = own->n_samples,
        .exclusion_cells = 2,
        .exclusion_rows = 4,
        .oversample = 1,
        .references = (const double(*)[2])c->references,
        .tune = {0, 1},
        .gate_count = own->n_samples,
        .threshold = c->thresholds,
        .max_candidates = 16,
        .batch = batch,
        .depth = 1,
        .device = c->bench->config->engine.device,
        .threads = c->bench->config->engine.threads,
        .method = "auto",
    };
    return make_codes(c, error);
}

/* --- answers --- */

/* The strongest candidate must be the echo: its code, its row, its cell. */
static int check_echoes(contest *c, const pnr_result *result, const char *method, pnr_error *error)
{
    const pnr_plan *plan = &c->plan;

    for (size_t d = 0; d < plan->batch; d++) {
        const pnr_candidate *list = &result->candidates[d * plan->max_candidates];
        const size_t n = result->dwells[d].n_candidates, row = c->lags[d] % pnr_plan_rows(plan);
        const pnr_candidate *best = list;

        for (size_t i = 1; i < n; i++)
            if (list[i].power > best->power)
                best = &list[i];
        if (n < 1 || best->cell != c->lags[d] || best->row != row ||
            best->code != c->lags[d] % plan->n_codes)
            return pnr_error_set(
                error, PNR_EENGINE,
                "%s/%s, %s, dwell %zu of %zu: %zu candidates, cell %u, row %u, code %u; the echo "
                "is at %u, %zu, %zu",
                c->ops->name, method, c->own->name, d, plan->batch, n, best->cell, best->row,
                best->code, c->lags[d], row, c->lags[d] % plan->n_codes);
        c->n_checked++;
    }
    return PNR_OK;
}

static int check_sets(contest *c, resident *r, const char *method, pnr_error *error)
{
    int rc = PNR_OK;

    for (size_t set = 0; set < RESIDENT_SETS && rc == PNR_OK; set++) {
        pnr_result result;

        for (size_t d = 0; d < c->plan.batch; d++)
            c->lags[d] = (uint32_t)(pnr_random_next(&c->state) % c->plan.n_samples);
        if ((rc = resident_fill(r, set, pnr_random_next(&c->state), c->lags, error)) == PNR_OK &&
            (rc = resident_run(r, set, &result, error)) == PNR_OK)
            rc = check_echoes(c, &result, method, error);
    }
    return rc;
}

/* The floor: each sample read once, each cell's power written once and read once, at the device's
 * copy bandwidth. */
static void add_row(const contest *c, const char *method, double median_ns, bench_table *table)
{
    const pnr_plan *plan = &c->plan;
    const double samples =
        (double)pnr_plan_view_samples(plan, plan->batch) * (double)pnr_plan_sample_bytes(plan);
    const double cells = (double)plan->batch * (double)pnr_plan_cells(plan);
    const double bytes = samples + 2 * sizeof(float) * cells;

    bench_table_text(table, c->own->name);
    bench_table_numbers(table, (double)plan->n_samples, (double)plan->n_periods,
                        (double)plan->n_codes, (double)pnr_plan_rows(plan), (double)plan->batch);
    bench_table_text(table, method);
    bench_table_numbers(table, median_ns * 1e-3, median_ns * 1e-3 / (double)plan->batch,
                        bytes / median_ns, bytes / c->copy_rate * 1e6,
                        100 * bytes / c->copy_rate * 1e9 / median_ns, samples / c->copy_rate * 1e6,
                        cells / median_ns, (double)c->n_checked);
}

static int measure_method(contest *c, const char *method, bench_table *table, pnr_error *error)
{
    const size_t n_times = resident_times(c->bench->runs);
    double *ns = calloc(n_times, sizeof *ns);
    resident *r = NULL;
    int rc = PNR_ENOMEMORY;

    if (ns == NULL) {
        pnr_error_set(error, rc, "no memory for %zu times", n_times);
    } else {
        c->plan.method = method;
        c->n_checked = 0;
        rc = resident_create(c->ops, &c->plan, RESIDENT_SETS, &r, error);
    }
    if (rc == PNR_OK && (rc = check_sets(c, r, method, error)) == PNR_OK &&
        (rc = resident_time(&r, &ns, 1, n_times, error)) == PNR_OK && !pnr_stop)
        add_row(c, method, pnr_median(ns, n_times), table);
    resident_destroy(r);
    free(ns);
    return rc;
}

/* --- cases --- */

/* Measures the methods that the user chose and that take this map. */
static int measure_methods(contest *c, bench_table *table, pnr_error *error)
{
    const char *chosen = c->bench->config->engine.method;
    int rc = PNR_OK;

    for (size_t i = 0; i < sizeof names / sizeof names[0] && rc == PNR_OK && !pnr_stop; i++) {
        pnr_engine_choice choice;

        c->plan.method = names[i];
        if ((strcmp(chosen, "auto") == 0 || strcmp(chosen, names[i]) == 0) &&
            c->ops->describe(&c->plan, &choice, NULL) == PNR_OK)
            rc = measure_method(c, names[i], table, error);
    }
    return rc;
}

static int measure_case(const bench *b, const map_case *own, bench_table *table, pnr_error *error)
{
    contest c = {.bench = b, .own = own, .copy_rate = NAN, .state = own->n_samples};
    const pnr_resident_ops *device;
    pnr_engine_choice choice;
    int rc = make_plan(&c, own->batch, error);

    if (rc == PNR_OK)
        rc = pnr_engine_choose(b->config->engine.name, &c.plan, &c.ops, &choice, error);
    if (rc == PNR_OK) {
        device = resident_device(c.ops);
        c.copy_rate = resident_copy_rate(device, b->config->engine.device);
        if (device != NULL || own->batch <= HOST_BATCH) /* a host works dwell by dwell */
            rc = measure_methods(&c, table, error);
    }
    free(c.references);
    free(c.thresholds);
    free(c.lags);
    return rc;
}

static int measure_size(const bench *b, void *context, size_t n_samples, bench_table *table,
                        pnr_error *error)
{
    int rc = PNR_OK;

    (void)context;
    for (size_t i = 0; i < N_CASES && rc == PNR_OK && !pnr_stop; i++)
        if (cases[i].n_samples == n_samples)
            rc = measure_case(b, &cases[i], table, error);
    return rc;
}

int bench_maps(const bench *b, pnr_error *error)
{
    static const bench_sweep sweep = {
        .sizes = "8192,4000", .columns = columns, .measure = measure_size};
    char title[160];

    snprintf(title, sizeof title,
             "maps: from samples in place to candidates in place, ci16, %d runs on %d sets",
             b->runs, RESIDENT_SETS);
    return bench_sweep_run(b, title, &sweep, NULL, error);
}
