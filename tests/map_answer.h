/* SPDX-License-Identifier: MIT */
/* Answers of engines to a map's scenario, and how they are compared. */
#ifndef PNR_MAP_ANSWER_H
#define PNR_MAP_ANSWER_H

#include "map_fixture.h"

/* --- answers that outlive their engine --- */

typedef struct map_answer {
    size_t n_dwells, max_candidates, n_windows, n_values, n_patch; /* each of a dwell */
    pnr_dwell *dwells;
    pnr_candidate *candidates;
    uint32_t *nonfinite;
    float *profile, *patches; /* NULL: none */
} map_answer;

static void keep_map(const pnr_plan *plan, const pnr_result *r, map_answer *out)
{
    const bool has_rows = pnr_plan_rows(plan) > 1;

    *out = (map_answer){
        .n_dwells = r->n_dwells,
        .max_candidates = plan->max_candidates,
        .n_windows = pnr_plan_windows(plan),
        .n_values = plan->want_profile == PNR_WANT_NONE
                        ? 0
                        : pnr_plan_cells(plan) * (plan->want_profile == PNR_WANT_COMPLEX ? 2 : 1),
        .n_patch = has_rows ? PNR_NEIGHBOURS * PNR_NEIGHBOURS * 2 : 0,
        .dwells = copy(r->dwells, r->n_dwells * sizeof *r->dwells),
        .candidates =
            copy(r->candidates, r->n_dwells * plan->max_candidates * sizeof *r->candidates),
        .nonfinite =
            copy(r->nonfinite, r->n_dwells * pnr_plan_windows(plan) * sizeof *r->nonfinite),
    };
    assert_true((r->patches != NULL) == has_rows);
    if (has_rows)
        out->patches = copy(r->patches,
                            r->n_dwells * plan->max_candidates * out->n_patch * sizeof *r->patches);
    if (out->n_values > 0)
        out->profile = copy(r->profile, r->n_dwells * out->n_values * sizeof *r->profile);
}

static void map_answer_destroy(map_answer *a)
{
    free(a->dwells);
    free(a->candidates);
    free(a->nonfinite);
    free(a->profile);
    free(a->patches);
}

/* One submit of all dwells. false: the engine says in words that it lacks an axis. */
static bool ask_map(const pnr_engine_ops *ops, const map_world *w, pnr_want want, map_answer *out)
{
    pnr_plan plan = w->plan;
    pnr_engine *engine;
    pnr_error error = {0};
    pnr_result result;
    const pnr_job job = {&w->windows, 78};
    static char said[sizeof error.text]; /* each reason once */
    int code;

    plan.want_profile = want;
    code = ops->create(&plan, &engine, &error);
    if (code == PNR_EUNSUPPORTED) {
        assert_null(engine);
        assert_true(error.text[0] != '\0');
        if (strcmp(said, error.text) != 0)
            print_message("skipped: %s\n", error.text);
        snprintf(said, sizeof said, "%s", error.text);
        return false;
    }
    if (code != PNR_OK)
        fail_msg("%s, %s: %s", ops->name, w->s.name, error.text);
    assert_int_equal(ops->submit(engine, &job), PNR_OK);
    assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
    assert_int_equal(result.tag, 78);
    assert_int_equal(result.n_dwells, w->windows.n_dwells);
    keep_map(&plan, &result, out);
    ops->destroy(engine);
    return true;
}

/* --- how two of them are compared --- */

/* eps sqrt(log2(N K)) relative to sqrt(sum|x|^2 sum|a|^2), x all samples of the dwell before any
 * mean is removed, a over all its windows; times what a filter may amplify. */
static double map_tolerance(const map_world *w, size_t dwell)
{
    const pnr_plan *p = &w->plan;
    const size_t n = p->n_samples * pnr_plan_windows(p), bytes = pnr_plan_sample_bytes(p);
    const size_t offset = p->first_channel * pnr_format_get(p->format)->bytes;
    double energy = 0, taper = 1;

    for (size_t i = dwell * n; i < (dwell + 1) * n; i++) {
        double x[2];

        (void)pnr_format_read(p->format, w->samples + i * bytes + offset, x);
        energy += x[0] * x[0] + x[1] * x[1];
    }
    for (size_t i = 0; i < p->n_periods && p->taper != NULL; i++)
        taper = fmax(taper, p->taper[i]);
    return 2.0 * FLT_EPSILON * taper * w->filter_gain *
           sqrt(log2((double)(p->n_samples * p->n_periods)) + 1) *
           sqrt(energy * pnr_plan_code_energy(p) * (double)pnr_plan_windows(p));
}

static void compare_values(const map_world *w, const char *engine, const char *what,
                           const float *got, const float *want, size_t n, double allowed)
{
    for (size_t i = 0; i < n; i++) {
        const double apart =
            hypot((double)(got[2 * i] - want[2 * i]), (double)(got[2 * i + 1] - want[2 * i + 1]));

        if (!(apart <= allowed))
            fail_msg("%s, %s: %s %zu is %g%+gi, not %g%+gi: apart %g, allowed %g", engine,
                     w->s.name, what, i, (double)got[2 * i], (double)got[2 * i + 1],
                     (double)want[2 * i], (double)want[2 * i + 1], apart, allowed);
    }
}

static void compare_powers(const map_world *w, const char *engine, const float *got,
                           const float *want, double allowed)
{
    for (size_t i = 0; i < pnr_plan_cells(&w->plan); i++) {
        const double p = (double)want[i], apart = fabs((double)got[i] - p);

        if (!(apart <= 2 * sqrt(p) * allowed + allowed * allowed))
            fail_msg("%s, %s: P[%zu] is %.9g, not %.9g (allowed %g)", engine, w->s.name, i,
                     (double)got[i], p, 2 * sqrt(p) * allowed + allowed * allowed);
    }
}

static bool is_same_place(const pnr_candidate *a, const pnr_candidate *b)
{
    return a->code == b->code && a->row == b->row && a->cell == b->cell && a->channel == b->channel;
}

static void compare_sums(const map_world *w, const char *engine, const pnr_dwell *got,
                         const pnr_dwell *want, double allowed)
{
    /* what a strong cell is rounded by stays in the rest when it is taken out */
    const double floor_allowed = 2e-5 * want->floor +
                                 1e-6 * want->noise_sum / (double)pnr_plan_cells(&w->plan) +
                                 allowed * allowed;

    assert_int_equal(got->n_periods, want->n_periods);
    assert_int_equal(got->n_valid, want->n_valid);
    assert_int_equal(got->n_clipped, want->n_clipped);
    assert_int_equal(got->n_nonfinite, want->n_nonfinite);
    if (!(fabs(got->energy - want->energy) <= 2e-6 * want->energy) ||
        !(fabs(got->noise_sum - want->noise_sum) <= 2e-5 * want->noise_sum) ||
        !(fabs(got->floor - want->floor) <= floor_allowed) ||
        abs((int)got->n_above - (int)want->n_above) > 1 ||
        abs((int)got->n_maxima - (int)want->n_maxima) > 1)
        fail_msg("%s, %s: energy %.9g, not %.9g; noise sum %.9g, not %.9g; floor %.9g, not %.9g; "
                 "above %u, not %u; maxima %u, not %u",
                 engine, w->s.name, got->energy, want->energy, got->noise_sum, want->noise_sum,
                 got->floor, want->floor, got->n_above, want->n_above, got->n_maxima,
                 want->n_maxima);
}

/* Dwell d of both. The candidates are the same, save one at most whose power is within tolerance
 * of the threshold, of a neighbour, or of the weakest kept. */
static void compare_map_dwell(const map_world *w, const char *engine, const map_answer *got,
                              const map_answer *want, size_t d, double allowed)
{
    const pnr_candidate *g = got->candidates + d * got->max_candidates;
    const pnr_candidate *r = want->candidates + d * want->max_candidates;
    const size_t n_got = got->dwells[d].n_candidates, n_want = want->dwells[d].n_candidates;
    size_t n_same = 0;

    compare_sums(w, engine, &got->dwells[d], &want->dwells[d], allowed);
    for (size_t i = 0; i < n_got; i++)
        for (size_t j = 0; j < n_want; j++) {
            const double power = (double)r[j].power;

            if (!is_same_place(&g[i], &r[j]))
                continue;
            n_same++;
            assert_true(fabs((double)g[i].power - power) <=
                        2 * sqrt(power) * allowed + allowed * allowed);
            compare_values(w, engine, "neighbour", g[i].value[0], r[j].value[0], PNR_NEIGHBOURS,
                           4 * allowed);
            if (want->patches != NULL)
                compare_values(w, engine, "patch",
                               got->patches + (d * got->max_candidates + i) * got->n_patch,
                               want->patches + (d * want->max_candidates + j) * want->n_patch,
                               want->n_patch / 2, 4 * allowed);
        }
    if (n_same + 1 < n_got || n_same + 1 < n_want)
        fail_msg("%s, %s: %zu candidates of %zu and %zu are the same", engine, w->s.name, n_same,
                 n_got, n_want);
}

/* slack: of the tolerance. */
static void compare_maps(const map_world *w, const char *engine, const map_answer *got,
                         const map_answer *want, pnr_want kind, double slack)
{
    assert_memory_equal(got->nonfinite, want->nonfinite,
                        want->n_dwells * want->n_windows * sizeof *want->nonfinite);
    for (size_t d = 0; d < want->n_dwells; d++) {
        const double allowed = slack * map_tolerance(w, d);

        compare_map_dwell(w, engine, got, want, d, allowed);
        if (kind == PNR_WANT_POWER)
            compare_powers(w, engine, got->profile + d * got->n_values,
                           want->profile + d * want->n_values, allowed);
        else
            compare_values(w, engine, "cell", got->profile + d * got->n_values,
                           want->profile + d * want->n_values, want->n_values / 2, allowed);
    }
}

/* The same bits, of dwells from `first` on. */
static void check_same_bits(const map_answer *got, const map_answer *all, size_t first)
{
    for (size_t k = 0; k < got->n_dwells; k++) {
        const size_t d = first + k, n = all->dwells[d].n_candidates;

        assert_memory_equal(&got->dwells[k], &all->dwells[d], sizeof *all->dwells);
        assert_memory_equal(got->candidates + k * got->max_candidates,
                            all->candidates + d * all->max_candidates, n * sizeof *all->candidates);
        assert_memory_equal(got->nonfinite + k * got->n_windows,
                            all->nonfinite + d * all->n_windows,
                            all->n_windows * sizeof *all->nonfinite);
        if (all->patches != NULL)
            assert_memory_equal(got->patches + k * got->max_candidates * got->n_patch,
                                all->patches + d * all->max_candidates * all->n_patch,
                                n * all->n_patch * sizeof *all->patches);
        if (got->n_values > 0 && all->n_values == got->n_values)
            assert_memory_equal(got->profile + k * got->n_values, all->profile + d * all->n_values,
                                all->n_values * sizeof *all->profile);
    }
}

/* A view of dwells first .. first + n - 1 in one piece. runs: [n_lost_runs] of the world. */
static pnr_windows part_of(const map_world *w, size_t first, size_t n, pnr_lost_run *runs)
{
    const size_t dwell = w->s.n_samples * pnr_plan_windows(&w->plan);
    const size_t n_view = n * dwell + (w->plan.linear ? w->plan.n_lags - 1 : 0);
    pnr_windows v = w->windows;

    v.spans[0] = (pnr_span){w->samples + first * dwell * pnr_plan_sample_bytes(&w->plan), n_view};
    v.spans[1] = (pnr_span){w->samples, 0};
    v.first_sample += first * dwell;
    v.n_dwells = n;
    v.lost += first * pnr_plan_windows(&w->plan);
    v.lost_runs = runs;
    v.n_lost_runs = 0;
    for (size_t i = 0; i < w->windows.n_lost_runs; i++) {
        uint64_t from = w->runs[i].first, end = from + w->runs[i].count;

        from = from > first * dwell ? from - first * dwell : 0;
        end = end > first * dwell ? end - first * dwell : 0;
        end = end < n_view ? end : n_view;
        if (from < end)
            runs[v.n_lost_runs++] = (pnr_lost_run){from, end - from};
    }
    return v;
}

/* The dwells in submits of 1 .. batch by turns, two in flight: the bits of one submit. */
static inline void check_map_submits(const pnr_engine_ops *ops, const map_world *w,
                                     const map_answer *all, size_t batch)
{
    pnr_plan plan = w->plan;
    pnr_engine *engine;
    pnr_error error = {0};
    pnr_lost_run *runs[2];
    size_t submitted = 0, collected = 0, n_in = 0, n_out = 0;

    for (size_t i = 0; i < 2; i++)
        assert_non_null(runs[i] = calloc(w->n_view, sizeof **runs));
    plan.batch = batch;
    if (ops->create(&plan, &engine, &error) != PNR_OK)
        fail_msg("%s", error.text);
    while (collected < all->n_dwells) {
        pnr_result result;
        map_answer got;

        if (submitted < all->n_dwells && n_in - n_out < 2) {
            const size_t left = all->n_dwells - submitted;
            const size_t n = n_in % batch + 1 < left ? n_in % batch + 1 : left;
            const pnr_windows v = part_of(w, submitted, n, runs[n_in % 2]);

            assert_int_equal(ops->submit(engine, &(pnr_job){&v, submitted}), PNR_OK);
            submitted += n;
            n_in++;
            continue;
        }
        assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
        assert_int_equal(result.tag, collected);
        keep_map(&plan, &result, &got);
        check_same_bits(&got, all, collected);
        collected += result.n_dwells;
        n_out++;
        map_answer_destroy(&got);
    }
    ops->destroy(engine);
    free(runs[0]);
    free(runs[1]);
}

#endif
