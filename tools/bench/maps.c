/* SPDX-License-Identifier: MIT */
/* bench maps: measures the time of range-Doppler dwells, and of searches over codes and Doppler.
 * The samples are already in the memory of the engine. Checks every result. */
#include "tools/bench/bench.h"
#include "tools/bench/contest.h"

#include "base/stats.h"
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { HOST_BATCH = 1 };

/* The threshold is about 30 times the floor: above all noise, below every echo. */
#define MAP                                                                                        \
    "[detector]\npfa = 4e-7\nmax_echoes = 4\nexclusion_cells = 2\nexclusion_rows = 4\n"            \
    "[source]\nformat = ci16\n"
/* 512 Doppler rows; the period is one second. */
#define RANGE_DOPPLER                                                                              \
    MAP "rate_hz = 8192\n[code]\ntype = random\nlength = 8192\n"                                   \
        "[dwell]\ncombine = doppler\nperiods = 512\n[doppler]\n"
#define BY_QUARTERS RANGE_DOPPLER "step = quarter\nmin_hz = -0.125\nmax_hz = 0.873046875\n"
#define BY_WHOLE_BINS RANGE_DOPPLER "step = whole\n"
/* 41 Doppler hypotheses; the period is one millisecond. */
#define SEARCH                                                                                     \
    MAP "rate_hz = 4000000\n[code]\nchip_rate_hz = 1023000\n"                                      \
        "[doppler]\nstep = half\nmin_hz = -10000\nmax_hz = 10000\n"

static const struct map_case {
    const char *name;
    size_t n_samples, n_codes, batch;
    const char *text; /* text of the configuration */
} cases[] = {
    {"range-Doppler by quarter bins", 8192, 1, 1, BY_QUARTERS},
    {"range-Doppler by quarter bins", 8192, 1, 8, BY_QUARTERS},
    {"range-Doppler by a whole bin", 8192, 1, 1, BY_WHOLE_BINS},
    {"search by half bins", 4000, 32, 1, SEARCH},
    {"search by half bins", 4000, 32, 16, SEARCH},
};

static const char columns[] =
    "map: N periods codes rows batch method: median_us dwell_us GBps floor_us "
    "floor_pct samples_us Gcells_s checked";

/* Creates the configuration of a case. A case with several codes uses GPS codes. */
static int configure_map(const bench *b, const struct map_case *own, pnr_config *config,
                         pnr_error *error)
{
    int rc = pnr_config_parse(config, own->text, strlen(own->text), own->name, error);

    for (size_t i = 1; own->n_codes > 1 && i <= own->n_codes && rc == PNR_OK; i++) {
        char text[64];

        snprintf(text, sizeof text, "[code.%zu]\ntype = gps-l1ca\nprn = %zu\n", i, i);
        rc = pnr_config_parse(config, text, strlen(text), own->name, error);
    }
    config->engine = b->config->engine;
    config->engine.batch = own->batch;
    snprintf(config->engine.method, sizeof config->engine.method, "auto");
    return rc;
}

/* Adds a row. floor_us: the least time for the memory traffic, at the copy bandwidth of the device.
 * Each sample is read once. The power of each cell is written once and read once. */
static void add_row(const contest *c, const contest_entry *e, const char *name, double copy_rate,
                    bench_table *table)
{
    const pnr_plan *plan = &c->subject->setup->plan;
    const double samples =
        (double)pnr_plan_view_samples(plan, plan->batch) * (double)pnr_plan_sample_bytes(plan);
    const double cells = (double)plan->batch * (double)pnr_plan_cells(plan);
    const double bytes = samples + 2 * sizeof(float) * cells;
    const double median_ns = pnr_median(e->ns, c->n_times);

    bench_table_add(table, "%s %zu %zu %zu %zu %zu %s", name, plan->n_samples, plan->n_periods,
                    plan->n_codes, pnr_plan_rows(plan), plan->batch, e->choice.method);
    bench_table_add(table, "%g %g %g %g %g %g %g %zu", median_ns * 1e-3,
                    median_ns * 1e-3 / (double)plan->batch, bytes / median_ns,
                    bytes / copy_rate * 1e6, 100 * bytes / copy_rate * 1e9 / median_ns,
                    samples / copy_rate * 1e6, cells / median_ns, c->n_checked);
}

/* Measures the methods that the user chose and that support this map. */
static int measure_case(const bench *b, const struct map_case *own, bench_table *table,
                        pnr_error *error)
{
    static const char *const all[] = {"library", "fused"};
    const char *chosen = b->config->engine.method;
    const bool is_auto = strcmp(chosen, "auto") == 0;
    bench_subject subject = {0};
    contest c = {.subject = &subject, .runs = b->runs};
    pnr_config config;
    int rc;

    pnr_config_init(&config);
    if ((rc = configure_map(b, own, &config, error)) != PNR_OK ||
        (rc = bench_prepare(&config, 0, 0, &subject, error)) != PNR_OK)
        goto done;

    const pnr_resident_ops *device = resident_device(subject.ops);

    if (device == NULL && own->batch > HOST_BATCH) /* a host computes one dwell after another, so
                                                    * the batch does not change the time of a
                                                    * dwell */
        goto done;
    rc = contest_run(&c, is_auto ? all : &chosen, is_auto ? 2 : 1, RESIDENT_SETS, error);
    for (size_t i = 0; i < c.n_entries && rc == PNR_OK && !pnr_stop; i++)
        add_row(&c, &c.entries[i], own->name,
                resident_copy_rate(device, config.engine.device.index[0]), table);
done:
    contest_end(&c);
    pnr_setup_destroy(subject.setup);
    pnr_config_clear(&config);
    return rc;
}

static int measure_size(const bench *b, void *context, size_t n_samples, bench_table *table,
                        pnr_error *error)
{
    int rc = PNR_OK;

    (void)context;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && rc == PNR_OK && !pnr_stop; i++)
        if (cases[i].n_samples == n_samples)
            rc = measure_case(b, &cases[i], table, error);
    return rc;
}

int bench_maps(const bench *b, pnr_error *error)
{
    static const bench_sweep sweep = {.columns = columns, .measure = measure_size};

    return bench_sweep_run(
        b, &sweep, NULL, error,
        "maps: from samples in place to candidates in place, ci16, %zu runs on %d sets", b->runs,
        RESIDENT_SETS);
}
