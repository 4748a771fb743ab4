/* SPDX-License-Identifier: MIT */
/* bench maps: a range-Doppler dwell and a search of codes and Doppler hypotheses, samples in place,
 * every answer checked. */
#include "tools/bench/bench.h"
#include "tools/bench/resident.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/random.h"
#include "base/stats.h"
#include "cli.h"
#include "code/code.h"
#include "engine/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HYPOTHESES = 64, COPY_BYTES = 1 << 28, HOST_BATCH = 1 };
static const uint64_t warm_ns = 100 * 1000 * 1000;
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

static const char *const names[] = {"library", "fused"};

static const bench_column columns[] = {
    {"map", true},         {"N", false},        {"periods", false},  {"codes", false},
    {"rows", false},       {"batch", false},    {"method", true},    {"median_us", false},
    {"dwell_us", false},   {"GBps", false},     {"floor_us", false}, {"floor_pct", false},
    {"samples_us", false}, {"Gcells_s", false}, {"checked", false},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

typedef struct contest {
    const bench *bench;
    const pnr_engine_ops *ops;
    const pnr_resident_ops *device; /* NULL: on the host */
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

/* GPS codes where there are several, else random phases. */
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
static int check(contest *c, const pnr_result *result, const char *method, pnr_error *error)
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
            rc = check(c, &result, method, error);
    }
    return rc;
}

/* --- times --- */

static int time_sets(resident *r, double *ns, size_t n_times, pnr_error *error)
{
    const uint64_t start_ns = pnr_clock_ns();
    size_t done = 0;

    for (bool is_warm = false; done < n_times && !pnr_stop;) {
        const int rc = resident_time(r, ns + done, error);

        if (rc != PNR_OK)
            return rc;
        if (is_warm)
            done += RESIDENT_SETS;
        else
            is_warm = pnr_clock_ns() - start_ns >= warm_ns;
    }
    return PNR_OK;
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
    bench_table_number(table, (double)plan->n_samples);
    bench_table_number(table, (double)plan->n_periods);
    bench_table_number(table, (double)plan->n_codes);
    bench_table_number(table, (double)pnr_plan_rows(plan));
    bench_table_number(table, (double)plan->batch);
    bench_table_text(table, method);
    bench_table_number(table, median_ns * 1e-3);
    bench_table_number(table, median_ns * 1e-3 / (double)plan->batch);
    bench_table_number(table, bytes / median_ns);
    bench_table_number(table, bytes / c->copy_rate * 1e6);
    bench_table_number(table, 100 * bytes / c->copy_rate * 1e9 / median_ns);
    bench_table_number(table, samples / c->copy_rate * 1e6);
    bench_table_number(table, cells / median_ns);
    bench_table_number(table, (double)c->n_checked);
}

static int measure_method(contest *c, const char *method, bench_table *table, pnr_error *error)
{
    const size_t n_times =
        ((size_t)c->bench->runs + RESIDENT_SETS - 1) / RESIDENT_SETS * RESIDENT_SETS;
    double *ns = calloc(n_times, sizeof *ns);
    resident *r = NULL;
    int rc = PNR_ENOMEMORY;

    if (ns == NULL) {
        pnr_error_set(error, rc, "no memory for %zu times", n_times);
    } else {
        c->plan.method = method;
        c->n_checked = 0;
        rc = resident_create(c->ops, c->device, &c->plan, &r, error);
    }
    if (rc == PNR_OK && (rc = check_sets(c, r, method, error)) == PNR_OK &&
        (rc = time_sets(r, ns, n_times, error)) == PNR_OK && !pnr_stop)
        add_row(c, method, pnr_median(ns, n_times), table);
    resident_destroy(r);
    free(ns);
    return rc;
}

/* --- cases --- */

static int measure_case(const bench *b, const map_case *own, bench_table *table, pnr_error *error)
{
    const char *chosen = b->config->engine.method;
    contest c = {.bench = b, .own = own, .copy_rate = NAN, .state = own->n_samples};
    const pnr_engine_bench *engine_bench;
    int rc = make_plan(&c, own->batch, error);

    if (rc == PNR_OK)
        rc = pnr_engine_choose(b->config->engine.name, &c.plan, &c.ops, error);
    if (rc == PNR_OK) {
        engine_bench = pnr_engine_get_bench(c.ops->name);
        c.device = engine_bench != NULL ? engine_bench->resident : NULL;
        if (c.device != NULL)
            c.copy_rate = c.device->copy_rate(b->config->engine.device, COPY_BYTES);
        else if (own->batch > HOST_BATCH)
            goto done; /* a host takes one dwell after the other anyway */
    }
    for (size_t i = 0; rc == PNR_OK && i < sizeof names / sizeof names[0] && !pnr_stop; i++) {
        pnr_engine_choice choice;

        c.plan.method = names[i];
        if ((strcmp(chosen, "auto") != 0 && strcmp(chosen, names[i]) != 0) ||
            c.ops->describe(&c.plan, &choice, NULL) != PNR_OK)
            continue;
        rc = measure_method(&c, names[i], table, error);
    }
done:
    free(c.references);
    free(c.thresholds);
    free(c.lags);
    return rc;
}

static bool is_asked_for(const bench *b, size_t n_samples)
{
    for (size_t i = 0; i < b->n_sizes; i++)
        if (b->sizes[i] == n_samples)
            return true;
    return b->sizes == NULL;
}

int bench_maps(const bench *b, pnr_error *error)
{
    char title[160];
    bench_table *table = NULL;
    int rc;

    snprintf(title, sizeof title,
             "maps: from samples in place to candidates in place, ci16, %d runs on %d sets",
             b->runs, RESIDENT_SETS);
    rc = bench_table_create(title, columns, N_COLUMNS, &table, error);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && rc == PNR_OK && !pnr_stop; i++)
        if (is_asked_for(b, cases[i].n_samples))
            rc = measure_case(b, &cases[i], table, error);
    /* What was measured before a method failed is shown too. */
    if (table != NULL && bench_table_rows(table) > 0) {
        pnr_error unshown = {0};
        const bench plain = {.csv = b->csv};
        const int shown = bench_table_show(&plain, table, NULL, &unshown);

        if (rc == PNR_OK && (rc = shown) != PNR_OK)
            *error = unshown;
    }
    bench_table_destroy(table);
    return rc;
}
