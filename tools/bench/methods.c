/* SPDX-License-Identifier: MIT */
/* bench methods: every method at every length, its samples where the engine computes, every answer
 * checked. */
#include "tools/bench/bench.h"
#include "tools/bench/resident.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/random.h"
#include "base/stats.h"
#include "cli.h"
#include "engine/plan.h"
#include "tools/common/measure.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t default_sizes[] = {
    (1 << 10) - 1, 1 << 10,       (1 << 13) - 1, 1 << 13,       (1 << 16) - 1,
    1 << 16,       (1 << 20) - 1, 1 << 20,       (1 << 22) - 1, 1 << 22,
};
enum { DEVICE_POINTS = 1 << 24, HOST_POINTS = 1 << 22, COPY_BYTES = 1 << 28 };

/* The first is what the others are compared with. */
static const char *const names[] = {"library", "fused", "walsh", "sum"};
enum { N_NAMES = sizeof names / sizeof names[0], MAX_KERNELS = 1024, CHECKS_ALONE = 64 };
static const uint64_t warm_ns = 100 * 1000 * 1000;

static const bench_column columns[] = {
    {"N", false},         {"load", true},        {"batch", false},   {"method", true},
    {"median_us", false}, {"min_us", false},     {"GBps", false},    {"floor_us", false},
    {"floor_pct", false}, {"of_library", false}, {"checked", false}, {"deviation_eps", false},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static const bench_column kernel_columns[] = {
    {"N", false},
    {"load", true},
    {"method", true},
    {"launches", false},
    {"blocks", false},
    {"threads", false},
    {"registers", false},
    {"local_B", false},
    {"shared_B", false},
    {"blocks_a_processor", false},
    {"occupancy_pct", false},
    {"kernel", true},
};
enum { N_KERNEL_COLUMNS = sizeof kernel_columns / sizeof kernel_columns[0] };

static const char *const pictured[] = {"median_us", NULL};
static const bench_picture picture = {
    .y_label = "us a submit, median",
    .y = pictured,
    .series = "method",
    .only_column = "load",
    .only_text = "full",
};

/* One method's part in a contest. */
typedef struct entry {
    const char *name;
    pnr_engine_choice choice;
    resident *resident;
    pnr_result result;
    double *ns;       /* [n_times] */
    double deviation; /* from library's answers, in eps sqrt(log2 N) of the values' scale */
} entry;

/* All methods of one engine at one length and one load, on the same samples. */
typedef struct contest {
    const bench *bench;
    const pnr_engine_ops *ops;
    const pnr_resident_ops *device; /* NULL: on the host */
    pnr_setup *setup;
    const char *load; /* "one", "full" */
    double copy_rate; /* bytes a second; NAN on the host */
    entry entries[N_NAMES];
    size_t n_entries, n_times;
    uint32_t *lags;     /* [batch] */
    uint64_t state;     /* of the random delays */
    uint64_t n_checked; /* samples */
} contest;

/* --- answers --- */

/* The strongest candidate must be the echo. */
static int check_lags(const contest *c, const entry *e, pnr_error *error)
{
    const pnr_plan *plan = &c->setup->plan;

    for (size_t d = 0; d < plan->batch; d++) {
        const pnr_dwell *dwell = &e->result.dwells[d];
        const pnr_candidate *found = &e->result.candidates[d * plan->max_candidates];

        if (dwell->n_candidates != 1 || found->cell != c->lags[d])
            return pnr_error_set(error, PNR_EENGINE,
                                 "%s/%s, N = %zu, dwell %zu of %zu: %u candidates, cell %u; the "
                                 "echo is at %u",
                                 c->ops->name, e->name, plan->n_samples, d, plan->batch,
                                 dwell->n_candidates, found->cell, c->lags[d]);
        if (dwell->n_periods != pnr_plan_windows(plan) || dwell->n_nonfinite != 0 ||
            dwell->n_valid != pnr_plan_dwell_samples(plan))
            return pnr_error_set(error, PNR_EENGINE,
                                 "%s/%s, N = %zu, dwell %zu: %u periods, %llu samples used",
                                 c->ops->name, e->name, plan->n_samples, d, dwell->n_periods,
                                 (unsigned long long)dwell->n_valid);
    }
    return PNR_OK;
}

/* Twice what the tests allow each method from the reference. */
static const double deviation_limit = 4.0;

/* Two sums of the same order take part in the floor: the noise's, and the echo's taken out. */
static double floor_unit(const pnr_plan *plan, const pnr_dwell *want)
{
    return want->noise_sum * FLT_EPSILON * sqrt(log2((double)plan->n_samples) + 1) /
           (double)plan->n_samples;
}

/* One took the echo out of the floor and the other did not, since what is left is 0.95 of it but
 * for rounding: see engine.h. */
static bool is_at_the_limit(const pnr_plan *plan, const pnr_dwell *dwell, const pnr_dwell *want)
{
    const double low = fmin(dwell->floor, want->floor), high = fmax(dwell->floor, want->floor);

    return fabs(low - 0.95 * high) <= deviation_limit * floor_unit(plan, want);
}

/* How far a dwell's values are from the first method's, in units of eps sqrt(log2 N) sqrt(sum |x|^2
 * sum |a|^2); sums of powers in units that are as wide. */
static double deviation(const pnr_plan *plan, const pnr_dwell *dwell, const pnr_candidate *g,
                        const pnr_dwell *want, const pnr_candidate *w)
{
    const double relative = FLT_EPSILON * sqrt(log2((double)plan->n_samples) + 1);
    const double scale =
        relative * sqrt(want->energy * pnr_plan_code_energy(plan) * want->n_periods);
    double most = 0;

    for (int k = 0; k < PNR_NEIGHBOURS; k++)
        most = fmax(most, hypot((double)(g->value[k][0] - w->value[k][0]),
                                (double)(g->value[k][1] - w->value[k][1])) /
                              scale);
    most = fmax(most, fabs((double)(g->power - w->power)) / (2 * sqrt((double)w->power) * scale));
    most = fmax(most, fabs(dwell->noise_sum - want->noise_sum) / (want->noise_sum * relative));
    most = fmax(most, fabs(dwell->energy - want->energy) / (want->energy * relative));
    if (!is_at_the_limit(plan, dwell, want))
        most = fmax(most, fabs(dwell->floor - want->floor) / floor_unit(plan, want));
    return isfinite(most) ? most : INFINITY;
}

static int compare(const contest *c, entry *e, pnr_error *error)
{
    const pnr_plan *plan = &c->setup->plan;
    const entry *first = &c->entries[0];

    for (size_t d = 0; d < plan->batch && e != first; d++) {
        const double apart = deviation(
            plan, &e->result.dwells[d], &e->result.candidates[d * plan->max_candidates],
            &first->result.dwells[d], &first->result.candidates[d * plan->max_candidates]);

        e->deviation = fmax(e->deviation, apart);
        if (!(apart <= deviation_limit))
            return pnr_error_set(error, PNR_EENGINE,
                                 "%s/%s, N = %zu, dwell %zu: values are %.3g eps sqrt(log2 N) from "
                                 "those of %s, %g are allowed",
                                 c->ops->name, e->name, plan->n_samples, d, apart, first->name,
                                 deviation_limit);
    }
    return PNR_OK;
}

/* New samples into one set, correlated by every method. */
static int check_set(contest *c, size_t set, pnr_error *error)
{
    const pnr_plan *plan = &c->setup->plan;
    const uint64_t seed = pnr_random_next(&c->state);
    int rc = PNR_OK;

    for (size_t d = 0; d < plan->batch; d++)
        c->lags[d] = (uint32_t)(pnr_random_next(&c->state) % plan->n_samples);
    for (size_t i = 0; i < c->n_entries && rc == PNR_OK; i++) {
        entry *e = &c->entries[i];

        if ((rc = resident_fill(e->resident, set, seed, c->lags, error)) == PNR_OK &&
            (rc = resident_run(e->resident, set, &e->result, error)) == PNR_OK &&
            (rc = check_lags(c, e, error)) == PNR_OK)
            rc = compare(c, e, error);
    }
    c->n_checked += plan->batch * pnr_plan_dwell_samples(plan);
    return rc;
}

static int check_all(contest *c, pnr_error *error)
{
    const pnr_plan *plan = &c->setup->plan;
    const double samples = (double)(plan->batch * pnr_plan_dwell_samples(plan));
    double n = ceil((double)c->bench->check / samples);
    int rc = PNR_OK;

    if (plan->batch == 1 && n > CHECKS_ALONE)
        n = CHECKS_ALONE;
    for (size_t i = 0; (i < RESIDENT_SETS || (double)i < n) && rc == PNR_OK && !pnr_stop; i++)
        rc = check_set(c, i % RESIDENT_SETS, error);
    return rc;
}

/* --- times --- */

/* In turns, every set once a round; what comes before the clocks have risen is discarded. */
static int time_all(contest *c, pnr_error *error)
{
    const uint64_t start_ns = pnr_clock_ns();
    size_t done = 0;

    for (bool is_warm = false; done < c->n_times && !pnr_stop;) {
        for (size_t i = 0; i < c->n_entries; i++) {
            const int rc = resident_time(c->entries[i].resident, c->entries[i].ns + done, error);

            if (rc != PNR_OK)
                return rc;
        }
        if (is_warm)
            done += RESIDENT_SETS;
        else
            is_warm = pnr_clock_ns() - start_ns >= warm_ns;
    }
    return PNR_OK;
}

/* Bytes of memory traffic that a sample of the input costs at the least: itself, and between two
 * kernels a complex value written and read. NAN: no such rule. */
static double floor_bytes(const pnr_plan *plan, const entry *e)
{
    static const struct {
        const char *name;
        size_t most_in_one; /* values, in one kernel */
        size_t most;
        double between; /* kernels */
    } rules[] = {{"fused", 1 << 14, 1 << 22, 2}, {"walsh", 1 << 13, 1 << 22, 1}};
    const double bytes = (double)(pnr_format_get(plan->format)->bytes * plan->n_channels);
    const double values = (double)e->choice.n_transform / (double)plan->n_samples;

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].name, e->name) == 0 && e->choice.n_transform <= rules[i].most)
            return e->choice.n_transform <= rules[i].most_in_one
                       ? bytes
                       : bytes + rules[i].between * 16 * values;
    return NAN;
}

static void add_row(const contest *c, const entry *e, double first_ns, bench_table *table)
{
    const pnr_plan *plan = &c->setup->plan;
    const double samples = (double)(plan->batch * pnr_plan_dwell_samples(plan));
    const double bytes = samples * (double)(pnr_format_get(plan->format)->bytes * plan->n_channels);
    const double floor_ns = samples * floor_bytes(plan, e) / c->copy_rate * 1e9;
    const double median_ns = pnr_median(e->ns, c->n_times); /* sorts */

    bench_table_number(table, (double)plan->n_samples);
    bench_table_text(table, c->load);
    bench_table_number(table, (double)plan->batch);
    bench_table_text(table, e->name);
    bench_table_number(table, median_ns * 1e-3);
    bench_table_number(table, e->ns[0] * 1e-3);
    bench_table_number(table, bytes / median_ns);
    bench_table_number(table, floor_ns * 1e-3);
    bench_table_number(table, 100.0 * floor_ns / median_ns);
    bench_table_number(table, median_ns / first_ns);
    bench_table_number(table, (double)c->n_checked);
    bench_table_number(table, e == &c->entries[0] ? NAN : e->deviation);
}

static bool is_same(const pnr_kernel_note *a, const pnr_kernel_note *b)
{
    return strcmp(a->name, b->name) == 0 && a->n_blocks == b->n_blocks &&
           a->n_threads == b->n_threads && a->shared_bytes == b->shared_bytes;
}

/* Launches that are alike take one row. */
static void add_kernels(const contest *c, const entry *e, bench_table *table)
{
    pnr_kernel_note *notes = calloc(MAX_KERNELS, sizeof *notes);
    const size_t n_all = notes != NULL ? resident_kernels(e->resident, notes, MAX_KERNELS) : 0;
    const size_t n = n_all < MAX_KERNELS ? n_all : MAX_KERNELS;

    for (size_t i = 0; i < n; i++) {
        const pnr_kernel_note *k = &notes[i];
        const bool is_known = k->n_registers > 0;
        size_t n_launches = 0, first = n;

        for (size_t j = n; j-- > 0;) {
            if (!is_same(&notes[j], k))
                continue;
            n_launches++;
            first = j;
        }
        if (first < i)
            continue;
        bench_table_number(table, (double)c->setup->plan.n_samples);
        bench_table_text(table, c->load);
        bench_table_text(table, e->name);
        bench_table_number(table, (double)n_launches);
        bench_table_number(table, is_known ? (double)k->n_blocks : NAN);
        bench_table_number(table, is_known ? (double)k->n_threads : NAN);
        bench_table_number(table, is_known ? (double)k->n_registers : NAN);
        bench_table_number(table, is_known ? (double)k->local_bytes : NAN);
        bench_table_number(table, is_known ? (double)k->shared_bytes : NAN);
        bench_table_number(table, is_known ? (double)k->blocks_a_processor : NAN);
        bench_table_number(table, is_known ? 100.0 * k->occupancy : NAN);
        bench_table_text(table, k->name);
    }
    free(notes);
}

/* --- contests --- */

/* Every method that this plan suits, or the configured one beside the first. */
static int enter(contest *c, pnr_error *error)
{
    pnr_plan *plan = &c->setup->plan;
    const char *chosen = c->bench->config->engine.method;
    const bool all = strcmp(chosen, "auto") == 0;

    for (size_t i = 0; i < N_NAMES; i++) {
        entry *e = &c->entries[c->n_entries];
        pnr_error reason = {0};
        int rc;

        if (!all && i > 0 && strcmp(chosen, names[i]) != 0)
            continue;
        plan->method = e->name = names[i];
        rc = c->ops->describe(plan, &e->choice, &reason);
        if (rc == PNR_ECONFIG) /* another engine's */
            continue;
        if (rc == PNR_OK)
            rc = resident_create(c->ops, c->device, plan, &e->resident, &reason);
        if (rc == PNR_EUNSUPPORTED || rc == PNR_ENOMEMORY) {
            pnr_log(rc == PNR_ENOMEMORY ? PNR_LOG_WARN : PNR_LOG_DEBUG, "N = %zu, %zu dwells: %s",
                    plan->n_samples, plan->batch, reason.text);
            continue;
        }
        if (rc == PNR_OK && (e->ns = calloc(c->n_times, sizeof *e->ns)) == NULL)
            rc = pnr_error_set(&reason, PNR_ENOMEMORY, "no memory for %zu times", c->n_times);
        c->n_entries++;
        if (rc != PNR_OK) {
            *error = reason;
            return rc;
        }
    }
    return c->n_entries > 0
               ? PNR_OK
               : pnr_error_set(error, PNR_EUNAVAILABLE, "engine %s: no method for N = %zu",
                               c->ops->name, plan->n_samples);
}

static int hold(contest *c, bench_table *table, bench_table *kernels, pnr_error *error)
{
    const size_t batch = c->setup->plan.batch;
    int rc;

    if ((c->lags = calloc(batch, sizeof *c->lags)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu delays", batch);
    if ((rc = enter(c, error)) != PNR_OK || (rc = check_all(c, error)) != PNR_OK ||
        (rc = time_all(c, error)) != PNR_OK || pnr_stop)
        return rc;

    const bool has_library = strcmp(c->entries[0].name, names[0]) == 0;
    const double first_ns = has_library ? pnr_median(c->entries[0].ns, c->n_times) : NAN;

    for (size_t i = 0; i < c->n_entries; i++) {
        add_row(c, &c->entries[i], first_ns, table);
        if (c->bench->verbose)
            add_kernels(c, &c->entries[i], kernels);
    }
    return PNR_OK;
}

static size_t power_of_two_above(size_t n)
{
    size_t power = 1;

    while (power < n)
        power *= 2;
    return power;
}

/* batch 0: as many dwells as make the points, a window counted as its power of two. */
static int measure_size(const bench *b, size_t n_samples, size_t batch, double copy_rate,
                        bench_table *table, bench_table *kernels, pnr_error *error)
{
    contest c = {.bench = b, .load = batch == 0 ? "full" : "one", .copy_rate = copy_rate};
    pnr_config config = *b->config;
    const pnr_engine_bench *engine_bench;
    pnr_engine_choice choice;
    int rc;

    snprintf(config.engine.method, sizeof config.engine.method, "auto");
    rc = bench_prepare(&(bench){.config = &config}, n_samples, 1, &c.setup, &c.ops, &choice, error);
    if (rc == PNR_OK) {
        pnr_plan *plan = &c.setup->plan;
        size_t points;

        engine_bench = pnr_engine_get_bench(c.ops->name);
        c.device = engine_bench != NULL ? engine_bench->resident : NULL;
        points = b->points > 0 ? b->points : c.device != NULL ? DEVICE_POINTS : HOST_POINTS;
        points /= power_of_two_above(n_samples) * pnr_plan_windows(plan);
        plan->batch = batch > 0 ? batch : points > 0 ? points : 1;
        plan->depth = 1;
        plan->max_candidates = 1;
        plan->want_profile = PNR_WANT_NONE;
        c.n_times = ((size_t)b->runs + RESIDENT_SETS - 1) / RESIDENT_SETS * RESIDENT_SETS;
        c.state = n_samples;
        rc = hold(&c, table, kernels, error);
    }
    for (size_t i = 0; i < c.n_entries; i++) {
        resident_destroy(c.entries[i].resident);
        free(c.entries[i].ns);
    }
    free(c.lags);
    pnr_setup_destroy(c.setup);
    return rc;
}

/* What the engine's device copies within its memory; NAN on the host. */
static double measure_copy(const bench *b)
{
    const pnr_engine_ops *ops = NULL;
    const pnr_engine_bench *engine_bench;
    pnr_engine_choice choice;
    pnr_setup *setup = NULL;
    double rate = NAN;

    if (bench_prepare(b, 1 << 10, 1, &setup, &ops, &choice, NULL) == PNR_OK &&
        (engine_bench = pnr_engine_get_bench(ops->name)) != NULL && engine_bench->resident != NULL)
        rate = engine_bench->resident->copy_rate(b->config->engine.device, COPY_BYTES);
    pnr_setup_destroy(setup);
    return rate > 0 ? rate : NAN;
}

int bench_methods(const bench *b, pnr_error *error)
{
    static const char kernels_title[] =
        "kernels: what each method launches for one submit; local_B are spills and arrays";
    const size_t *sizes = b->sizes != NULL ? b->sizes : default_sizes;
    const size_t n_sizes =
        b->sizes != NULL ? b->n_sizes : sizeof default_sizes / sizeof default_sizes[0];
    const double copy_rate = measure_copy(b);
    bench_table *table = NULL, *kernels = NULL;
    const bench plain = {.csv = b->csv};
    char title[160];
    int rc;

    snprintf(title, sizeof title,
             "methods: from samples in place to candidates in place, %d runs in turns on %d sets",
             b->runs, RESIDENT_SETS);
    if (isfinite(copy_rate))
        printf("%scopy within the device: %.0f GB/s read and written\n", b->csv ? "# " : "",
               copy_rate * 1e-9);
    rc = bench_table_create(title, columns, N_COLUMNS, &table, error);
    if (rc == PNR_OK)
        rc = bench_table_create(kernels_title, kernel_columns, N_KERNEL_COLUMNS, &kernels, error);
    for (size_t i = 0; i < n_sizes && rc == PNR_OK && !pnr_stop; i++) {
        rc = measure_size(b, sizes[i], 1, copy_rate, table, kernels, error);
        if (rc == PNR_OK && !pnr_stop)
            rc = measure_size(b, sizes[i], 0, copy_rate, table, kernels, error);
    }
    /* What was measured before a method failed is shown too. */
    if (table != NULL && bench_table_rows(table) > 0) {
        pnr_error unshown = {0};
        int shown = bench_table_show(b, table, &picture, &unshown);

        if (shown == PNR_OK && bench_table_rows(kernels) > 0)
            shown = bench_table_show(&plain, kernels, NULL, &unshown);
        if (rc == PNR_OK && (rc = shown) != PNR_OK)
            *error = unshown;
    }
    bench_table_destroy(table);
    bench_table_destroy(kernels);
    return rc;
}
