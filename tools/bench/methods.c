/* SPDX-License-Identifier: MIT */
/* bench methods: measures the time of every method at every length. The samples are already in the
 * memory of the engine. Checks every result. */
#include "tools/bench/bench.h"
#include "tools/bench/contest.h"

#include "base/stats.h"
#include "cli.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE_POINTS = 1 << 24, HOST_POINTS = 1 << 22 };

/* The results of all other methods are compared with the results of the first method. */
static const char *const names[CONTEST_METHODS] = {"library", "fused", "walsh", "sum"};
enum { MAX_KERNELS = 1024, CHECKS_ALONE = 64 };

static const char columns[] =
    "N load: batch method: median_us min_us GBps floor_us floor_pct of_library "
    "checked deviation_eps";

static const char kernel_columns[] =
    "N load: method: launches blocks threads registers local_B shared_B "
    "blocks_a_processor occupancy_pct kernel:";

static const bench_picture picture = {
    .title = "Time of a submit, by method",
    .x_label = "samples a period, N",
    .y_label = "time of a submit, us, median",
    .curves = {{"median_us", ""}},
    .series = "method",
    .series_label = "",
    .only_column = "load",
    .only_text = "full",
};

/* The load of a submit: one dwell, or many dwells. */
typedef struct load {
    const char *name; /* "one" or "full" */
    double copy_rate; /* copy bandwidth of the device, bytes a second; NAN on the host */
    bench_table *kernels;
} load;

/* --- comparison of results --- */

/* The greatest deviation that is allowed between two methods, in the units of deviation(). The
 * tests allow half of it between a method and the reference. */
static const double deviation_limit = 4.0;

/* Returns the unit for deviations of a floor. The floor is computed from a difference: the sum
 * of all powers minus the sum of the powers of the excluded echo. These two sums may be nearly
 * equal, so the rounding error of the floor is the rounding error of the sum of all powers,
 * divided by N. */
static double floor_unit(const pnr_plan *plan, const pnr_dwell *want)
{
    return want->noise_sum * FLT_EPSILON * sqrt(log2((double)plan->n_samples) + 1) /
           (double)plan->n_samples;
}

/* True if the ratio of the two floors is 0.95 within rounding. Then only rounding decides whether a
 * method lowers the floor to the mean power without the echo, and the two methods may differ. See
 * plan.h. */
static bool is_at_the_limit(const pnr_plan *plan, const pnr_dwell *dwell, const pnr_dwell *want)
{
    const double low = fmin(dwell->floor, want->floor), high = fmax(dwell->floor, want->floor);

    return fabs(low - 0.95 * high) <= deviation_limit * floor_unit(plan, want);
}

/* Compares the values of a dwell with the values of the first method. Divides each deviation by the
 * unit of its value, and returns the greatest quotient. Let u = eps sqrt(log2 N + 1). The unit of a
 * correlation value is u sqrt(E E_a U), with the energy E of the samples, the energy E_a of the
 * code, and the number U of used windows. The unit of a power P is 2 sqrt(P) times this unit. The
 * unit of a sum of powers is u times this sum. */
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

static int compare_values(const contest *c, contest_entry *e, size_t d, pnr_error *error)
{
    const pnr_plan *plan = &c->subject->setup->plan;
    const contest_entry *first = &c->entries[0];
    const size_t at = d * plan->max_candidates;
    const double apart = deviation(plan, &e->result.dwells[d], &e->result.candidates[at],
                                   &first->result.dwells[d], &first->result.candidates[at]);

    e->deviation = fmax(e->deviation, apart);
    return apart <= deviation_limit
               ? PNR_OK
               : pnr_error_set(error, PNR_EENGINE,
                               "%s/%s, N = %zu, dwell %zu: values are %.3g eps sqrt(log2 N) from "
                               "those of %s, %g are allowed",
                               c->subject->ops->name, e->choice.method, plan->n_samples, d, apart,
                               first->choice.method, deviation_limit);
}

/* --- times --- */

/* Returns the least memory traffic, in bytes for each sample of the input. A method reads each
 * sample once. Between two kernels it writes and reads complex values. NAN: not known. */
static double floor_bytes(const pnr_plan *plan, const pnr_engine_choice *choice)
{
    static const struct {
        const char *name;
        size_t most_in_one; /* greatest n_transform that one kernel can process */
        size_t most;
        double between; /* number of times that complex values are written by one kernel and read by
                         * the next */
    } rules[] = {{"fused", 1 << 14, 1 << 22, 2}, {"walsh", 1 << 13, 1 << 22, 1}};
    const double bytes = (double)pnr_plan_sample_bytes(plan);
    const double values = (double)choice->n_transform / (double)plan->n_samples;

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].name, choice->method) == 0 && choice->n_transform <= rules[i].most)
            return choice->n_transform <= rules[i].most_in_one
                       ? bytes
                       : bytes + rules[i].between * 16 * values;
    return NAN;
}

static void add_row(const contest *c, const contest_entry *e, const load *l, double first_ns,
                    bench_table *table)
{
    const pnr_plan *plan = &c->subject->setup->plan;
    const double samples = (double)(plan->batch * pnr_plan_dwell_samples(plan));
    const double bytes = samples * (double)pnr_plan_sample_bytes(plan);
    const double floor_ns = samples * floor_bytes(plan, &e->choice) / l->copy_rate * 1e9;
    const double median_ns = pnr_median(e->ns, c->n_times); /* this call sorts e->ns */

    bench_table_add(table, "%zu %s %zu %s", plan->n_samples, l->name, plan->batch,
                    e->choice.method);
    bench_table_add(table, "%g %g %g %g %g %g %zu %g", median_ns * 1e-3, e->ns[0] * 1e-3,
                    bytes / median_ns, floor_ns * 1e-3, 100.0 * floor_ns / median_ns,
                    median_ns / first_ns, c->n_checked * pnr_plan_dwell_samples(plan),
                    e == &c->entries[0] ? NAN : e->deviation);
}

static bool is_same(const pnr_kernel_note *a, const pnr_kernel_note *b)
{
    return strcmp(a->name, b->name) == 0 && a->n_blocks == b->n_blocks &&
           a->n_threads == b->n_threads && a->shared_bytes == b->shared_bytes;
}

/* Lists the kernels; equal launches share one row. */
static void add_kernels(const contest *c, const contest_entry *e, const load *l)
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
        bench_table_add(l->kernels, "%zu %s %s %zu", c->subject->setup->plan.n_samples, l->name,
                        e->choice.method, n_launches);
        bench_table_add(
            l->kernels, "%g %g %g %g %g %g %g %s", is_known ? (double)k->n_blocks : NAN,
            is_known ? (double)k->n_threads : NAN, is_known ? (double)k->n_registers : NAN,
            is_known ? (double)k->local_bytes : NAN, is_known ? (double)k->shared_bytes : NAN,
            is_known ? (double)k->blocks_a_processor : NAN, is_known ? 100.0 * k->occupancy : NAN,
            k->name);
    }
    free(notes);
}

/* --- contests --- */

/* Returns the number of submits needed to check b->check samples. If a submit has one dwell, the
 * number is at most CHECKS_ALONE. Each set is checked at least once. */
static size_t count_checks(const bench *b, const pnr_plan *plan)
{
    const size_t samples = plan->batch * pnr_plan_dwell_samples(plan);
    const uint64_t wanted = b->check / samples + (b->check % samples > 0);
    const size_t n = (size_t)(plan->batch == 1 && wanted > CHECKS_ALONE ? CHECKS_ALONE : wanted);

    return n > RESIDENT_SETS ? n : RESIDENT_SETS;
}

/* Compares every method that supports this plan, or only the first method and the configured one.
 * Adds the rows of these methods to the tables. */
static int hold_contest(const bench *b, contest *c, const load *l, bench_table *table,
                        pnr_error *error)
{
    const char *const chosen[] = {names[0], b->config->engine.method};
    const bool is_all = strcmp(chosen[1], "auto") == 0, is_one = strcmp(chosen[1], names[0]) == 0;
    const pnr_plan *plan = &c->subject->setup->plan;
    const size_t n = is_all ? CONTEST_METHODS : is_one ? 1 : 2;
    const int rc = contest_run(c, is_all ? names : chosen, n, count_checks(b, plan), error);

    if (rc == PNR_OK && c->n_entries == 0)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "engine %s: no method for N = %zu",
                             c->subject->ops->name, plan->n_samples);
    if (rc != PNR_OK || pnr_stop)
        return rc;

    const bool has_library = strcmp(c->entries[0].choice.method, names[0]) == 0;
    const double first_ns = has_library ? pnr_median(c->entries[0].ns, c->n_times) : NAN;

    for (size_t i = 0; i < c->n_entries; i++) {
        add_row(c, &c->entries[i], l, first_ns, table);
        if (b->verbose)
            add_kernels(c, &c->entries[i], l);
    }
    return PNR_OK;
}

/* Measures one load. batch 0: computes the batch from a number of samples: b->points, or, if this
 * is 0, HOST_POINTS or DEVICE_POINTS. This computation rounds the length of a window up to a power
 * of two. */
static int measure_load(const bench *b, const load *l, size_t n_samples, size_t batch,
                        bench_table *table, pnr_error *error)
{
    bench_subject subject;
    contest c = {.subject = &subject, .runs = b->runs, .judge = compare_values};
    pnr_config config = *b->config;
    int rc;

    snprintf(config.engine.method, sizeof config.engine.method, "auto");
    rc = bench_prepare(&config, n_samples, 1, &subject, error);
    if (rc == PNR_OK) {
        pnr_plan *plan = &subject.setup->plan;
        const bool is_host = resident_device(subject.ops) == NULL;
        size_t points = b->points > 0 ? b->points : is_host ? HOST_POINTS : DEVICE_POINTS, power;

        for (power = 1; power < n_samples;)
            power *= 2;
        points /= power * pnr_plan_windows(plan);
        plan->batch = batch > 0 ? batch : points > 0 ? points : 1;
        plan->max_candidates = 1;
        rc = hold_contest(b, &c, l, table, error);
    }
    contest_end(&c);
    pnr_setup_destroy(subject.setup);
    return rc;
}

static int measure_size(const bench *b, void *context, size_t n_samples, bench_table *table,
                        pnr_error *error)
{
    load *l = context;
    int rc;

    l->name = "one";
    rc = measure_load(b, l, n_samples, 1, table, error);
    l->name = "full";
    return rc == PNR_OK && !pnr_stop ? measure_load(b, l, n_samples, 0, table, error) : rc;
}

/* Returns the copy bandwidth of the device. NAN: no device, or no engine supports the plan. */
static double measure_copy(const bench *b)
{
    bench_subject subject;
    double rate;

    if (bench_prepare(b->config, 1 << 10, 1, &subject, NULL) != PNR_OK)
        return NAN;
    rate = resident_copy_rate(resident_device(subject.ops), b->config->engine.device.index[0]);
    pnr_setup_destroy(subject.setup);
    return rate;
}

int bench_methods(const bench *b, pnr_error *error)
{
    static const bench_sweep sweep = {
        .columns = columns, .picture = &picture, .measure = measure_size};
    static const char kernels_title[] =
        "kernels: what each method launches for one submit; local_B are spills and arrays";
    load l = {.copy_rate = measure_copy(b)};
    pnr_error unshown = {0};
    int rc, shown = PNR_OK;

    if (isfinite(l.copy_rate))
        printf("%scopy within the device: %.0f GB/s read and written\n", b->csv ? "# " : "",
               l.copy_rate * 1e-9);
    rc = bench_table_create(kernels_title, kernel_columns, &l.kernels, error);
    if (rc != PNR_OK)
        return rc;
    rc = bench_sweep_run(
        b, &sweep, &l, error,
        "methods: from samples in place to candidates in place, %zu runs in turns on %d sets",
        b->runs, RESIDENT_SETS);
    if (bench_table_rows(l.kernels) > 0)
        shown = bench_table_show(b, l.kernels, NULL, &unshown);
    bench_table_destroy(l.kernels);
    if (rc == PNR_OK && shown != PNR_OK)
        *error = unshown;
    return rc == PNR_OK ? shown : rc;
}
