/* SPDX-License-Identifier: MIT */
/* bench methods: every method at every length, its samples where the engine computes, every answer
 * checked. */
#include "tools/bench/bench.h"
#include "tools/bench/resident.h"

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

enum { DEVICE_POINTS = 1 << 24, HOST_POINTS = 1 << 22 };

/* The others are compared with the first. */
static const char *const names[] = {"library", "fused", "walsh", "sum"};
enum { N_NAMES = sizeof names / sizeof names[0], MAX_KERNELS = 1024, CHECKS_ALONE = 64 };

static const char columns[] =
    "N load: batch method: median_us min_us GBps floor_us floor_pct of_library "
    "checked deviation_eps";

static const char kernel_columns[] =
    "N load: method: launches blocks threads registers local_B shared_B "
    "blocks_a_processor occupancy_pct kernel:";

static const bench_picture picture = {
    .y_label = "us a submit, median",
    .y = "median_us",
    .series = "method",
    .only_column = "load",
    .only_text = "full",
};

/* One method in a contest. */
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
    bench_subject subject;
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
    const pnr_plan *plan = &c->subject.setup->plan;

    for (size_t d = 0; d < plan->batch; d++) {
        const pnr_dwell *dwell = &e->result.dwells[d];
        const pnr_candidate *found = &e->result.candidates[d * plan->max_candidates];

        if (dwell->n_candidates != 1 || found->cell != c->lags[d])
            return pnr_error_set(error, PNR_EENGINE,
                                 "%s/%s, N = %zu, dwell %zu of %zu: %u candidates, cell %u; the "
                                 "echo is at %u",
                                 c->subject.ops->name, e->name, plan->n_samples, d, plan->batch,
                                 dwell->n_candidates, found->cell, c->lags[d]);
        if (dwell->n_periods != pnr_plan_windows(plan) || dwell->n_nonfinite != 0 ||
            dwell->n_valid != pnr_plan_dwell_samples(plan))
            return pnr_error_set(error, PNR_EENGINE,
                                 "%s/%s, N = %zu, dwell %zu: %u periods, %llu samples used",
                                 c->subject.ops->name, e->name, plan->n_samples, d,
                                 dwell->n_periods, (unsigned long long)dwell->n_valid);
    }
    return PNR_OK;
}

/* Twice the deviation from the reference that the tests allow each method. */
static const double deviation_limit = 4.0;

/* The floor has two sums of the same order: that of the noise, and that of the removed echo. */
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

static int compare_values(const contest *c, entry *e, pnr_error *error)
{
    const pnr_plan *plan = &c->subject.setup->plan;
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
                                 c->subject.ops->name, e->name, plan->n_samples, d, apart,
                                 first->name, deviation_limit);
    }
    return PNR_OK;
}

/* Fills one set with new samples and correlates it by every method. */
static int check_set(contest *c, size_t set, pnr_error *error)
{
    const pnr_plan *plan = &c->subject.setup->plan;
    const uint64_t seed = pnr_random_next(&c->state);
    int rc = PNR_OK;

    for (size_t d = 0; d < plan->batch; d++)
        c->lags[d] = (uint32_t)(pnr_random_next(&c->state) % plan->n_samples);
    for (size_t i = 0; i < c->n_entries && rc == PNR_OK; i++) {
        entry *e = &c->entries[i];

        if ((rc = resident_fill(e->resident, set, seed, c->lags, error)) == PNR_OK &&
            (rc = resident_run(e->resident, set, &e->result, error)) == PNR_OK &&
            (rc = check_lags(c, e, error)) == PNR_OK)
            rc = compare_values(c, e, error);
    }
    c->n_checked += plan->batch * pnr_plan_dwell_samples(plan);
    return rc;
}

static int check_all(contest *c, pnr_error *error)
{
    const pnr_plan *plan = &c->subject.setup->plan;
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
    const pnr_plan *plan = &c->subject.setup->plan;
    const double samples = (double)(plan->batch * pnr_plan_dwell_samples(plan));
    const double bytes = samples * (double)(pnr_format_get(plan->format)->bytes * plan->n_channels);
    const double floor_ns = samples * floor_bytes(plan, e) / c->copy_rate * 1e9;
    const double median_ns = pnr_median(e->ns, c->n_times); /* sorts */

    bench_table_numbers(table, (double)plan->n_samples);
    bench_table_text(table, c->load);
    bench_table_numbers(table, (double)plan->batch);
    bench_table_text(table, e->name);
    bench_table_numbers(table, median_ns * 1e-3, e->ns[0] * 1e-3, bytes / median_ns,
                        floor_ns * 1e-3, 100.0 * floor_ns / median_ns, median_ns / first_ns,
                        (double)c->n_checked, e == &c->entries[0] ? NAN : e->deviation);
}

static bool is_same(const pnr_kernel_note *a, const pnr_kernel_note *b)
{
    return strcmp(a->name, b->name) == 0 && a->n_blocks == b->n_blocks &&
           a->n_threads == b->n_threads && a->shared_bytes == b->shared_bytes;
}

/* Equal launches share one row. */
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
        bench_table_numbers(table, (double)c->subject.setup->plan.n_samples);
        bench_table_text(table, c->load);
        bench_table_text(table, e->name);
        bench_table_numbers(
            table, (double)n_launches, is_known ? (double)k->n_blocks : NAN,
            is_known ? (double)k->n_threads : NAN, is_known ? (double)k->n_registers : NAN,
            is_known ? (double)k->local_bytes : NAN, is_known ? (double)k->shared_bytes : NAN,
            is_known ? (double)k->blocks_a_processor : NAN, is_known ? 100.0 * k->occupancy : NAN);
        bench_table_text(table, k->name);
    }
    free(notes);
}

/* --- contests --- */

/* Enters every method that takes this plan, or only the first and the configured one. */
static int enter_methods(contest *c, pnr_error *error)
{
    pnr_plan *plan = &c->subject.setup->plan;
    const char *chosen = c->bench->config->engine.method;
    const bool all = strcmp(chosen, "auto") == 0;

    for (size_t i = 0; i < N_NAMES; i++) {
        entry *e = &c->entries[c->n_entries];
        pnr_error reason = {0};
        int rc;

        if (!all && i > 0 && strcmp(chosen, names[i]) != 0)
            continue;
        plan->method = e->name = names[i];
        rc = c->subject.ops->describe(plan, &e->choice, &reason);
        if (rc == PNR_ECONFIG) /* a method of another engine */
            continue;
        if (rc == PNR_OK)
            rc = resident_create(c->subject.ops, plan, RESIDENT_SETS, &e->resident, &reason);
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
                               c->subject.ops->name, plan->n_samples);
}

static int time_all(contest *c, pnr_error *error)
{
    resident *list[N_NAMES];
    double *ns[N_NAMES];

    for (size_t i = 0; i < c->n_entries; i++) {
        list[i] = c->entries[i].resident;
        ns[i] = c->entries[i].ns;
    }
    return resident_time(list, ns, c->n_entries, c->n_times, error);
}

static int hold_contest(contest *c, bench_table *table, bench_table *kernels, pnr_error *error)
{
    const size_t batch = c->subject.setup->plan.batch;
    int rc;

    if ((c->lags = calloc(batch, sizeof *c->lags)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu delays", batch);
    if ((rc = enter_methods(c, error)) != PNR_OK || (rc = check_all(c, error)) != PNR_OK ||
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

/* For all sizes. */
typedef struct shared {
    bench_table *kernels;
    double copy_rate;
} shared;

/* batch 0: as many dwells as make the points, where a window counts as its power of two. */
static int measure_load(const bench *b, const shared *s, size_t n_samples, size_t batch,
                        bench_table *table, pnr_error *error)
{
    contest c = {.bench = b, .load = batch == 0 ? "full" : "one", .copy_rate = s->copy_rate};
    pnr_config config = *b->config;
    int rc;

    snprintf(config.engine.method, sizeof config.engine.method, "auto");
    rc = bench_prepare(&config, n_samples, 1, &c.subject, error);
    if (rc == PNR_OK) {
        pnr_plan *plan = &c.subject.setup->plan;
        const bool is_host = resident_device(c.subject.ops) == NULL;
        size_t points = b->points > 0 ? b->points : is_host ? HOST_POINTS : DEVICE_POINTS;

        points /= power_of_two_above(n_samples) * pnr_plan_windows(plan);
        plan->batch = batch > 0 ? batch : points > 0 ? points : 1;
        plan->depth = 1;
        plan->max_candidates = 1;
        plan->want_profile = PNR_WANT_NONE;
        c.n_times = resident_times(b->runs);
        c.state = n_samples;
        rc = hold_contest(&c, table, s->kernels, error);
    }
    for (size_t i = 0; i < c.n_entries; i++) {
        resident_destroy(c.entries[i].resident);
        free(c.entries[i].ns);
    }
    free(c.lags);
    pnr_setup_destroy(c.subject.setup);
    return rc;
}

static int measure_size(const bench *b, void *context, size_t n_samples, bench_table *table,
                        pnr_error *error)
{
    const int rc = measure_load(b, context, n_samples, 1, table, error);

    return rc == PNR_OK && !pnr_stop ? measure_load(b, context, n_samples, 0, table, error) : rc;
}

/* NAN also where no engine takes the plan: the sizes then say why. */
static double measure_copy(const bench *b)
{
    bench_subject subject;
    double rate;

    if (bench_prepare(b->config, 1 << 10, 1, &subject, NULL) != PNR_OK)
        return NAN;
    rate = resident_copy_rate(resident_device(subject.ops), b->config->engine.device);
    pnr_setup_destroy(subject.setup);
    return rate;
}

int bench_methods(const bench *b, pnr_error *error)
{
    static const bench_sweep sweep = {
        .sizes = "2^10-1,2^10,2^13-1,2^13,2^16-1,2^16,2^20-1,2^20,2^22-1,2^22",
        .columns = columns,
        .picture = &picture,
        .measure = measure_size};
    static const char kernels_title[] =
        "kernels: what each method launches for one submit; local_B are spills and arrays";
    shared s = {.copy_rate = measure_copy(b)};
    pnr_error unshown = {0};
    char title[160];
    int rc, shown = PNR_OK;

    snprintf(title, sizeof title,
             "methods: from samples in place to candidates in place, %d runs in turns on %d sets",
             b->runs, RESIDENT_SETS);
    if (isfinite(s.copy_rate))
        printf("%scopy within the device: %.0f GB/s read and written\n", b->csv ? "# " : "",
               s.copy_rate * 1e-9);
    rc = bench_table_create(kernels_title, kernel_columns, &s.kernels, error);
    if (rc != PNR_OK)
        return rc;
    rc = bench_sweep_run(b, title, &sweep, &s, error);
    if (bench_table_rows(s.kernels) > 0)
        shown = bench_table_show(b, s.kernels, NULL, &unshown);
    bench_table_destroy(s.kernels);
    if (rc == PNR_OK && shown != PNR_OK)
        *error = unshown;
    return rc == PNR_OK ? shown : rc;
}
