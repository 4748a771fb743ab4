/* SPDX-License-Identifier: MIT */
#include "tools/bench/contest.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "cli.h"

#include <stdlib.h>

static const uint64_t warm_ns = 100 * 1000 * 1000;

static int enter_methods(contest *c, const char *const *methods, size_t n, pnr_error *error)
{
    const bench_subject *s = c->subject;
    pnr_plan *plan = &s->setup->plan;

    plan->depth = 1;
    plan->want_profile = PNR_WANT_NONE;
    c->n_times = (c->runs + RESIDENT_SETS - 1) / RESIDENT_SETS * RESIDENT_SETS;
    c->state = plan->n_samples;
    if ((c->lags = calloc(plan->batch, sizeof *c->lags)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu delays", plan->batch);
    for (size_t i = 0; i < n; i++) {
        contest_entry *e = &c->entries[c->n_entries];
        pnr_error reason = {0};
        int rc;

        plan->method = methods[i];
        rc = s->ops->describe(plan, &e->choice, &reason);
        if (rc == PNR_ECONFIG) /* the method belongs to another engine */
            continue;
        if (rc == PNR_OK)
            rc = resident_create(s->ops, plan, RESIDENT_SETS, &e->resident, &reason);
        if (rc == PNR_EUNSUPPORTED || rc == PNR_ENOMEMORY) {
            pnr_log(rc == PNR_ENOMEMORY ? PNR_LOG_WARN : PNR_LOG_DEBUG, "N = %zu, %zu dwells: %s",
                    plan->n_samples, plan->batch, reason.text);
            continue;
        }
        c->n_entries++;
        if (rc == PNR_OK && (e->ns = calloc(c->n_times, sizeof *e->ns)) == NULL)
            rc = pnr_error_set(&reason, PNR_ENOMEMORY, "no memory for %zu times", c->n_times);
        if (rc != PNR_OK) {
            *error = reason;
            return rc;
        }
    }
    return PNR_OK;
}

/* Checks the code, row and lag of the strongest candidate, and the number of used samples. */
static int check_dwell(const contest *c, const contest_entry *e, size_t d, pnr_error *error)
{
    const pnr_plan *plan = &c->subject->setup->plan;
    const pnr_dwell *dwell = &e->result.dwells[d];
    const pnr_candidate *list = &e->result.candidates[d * plan->max_candidates], *best = list;
    const size_t lag = c->lags[d], row = lag % pnr_plan_rows(plan), code = lag % plan->n_codes;

    for (size_t i = 1; i < dwell->n_candidates; i++)
        if (list[i].power > best->power)
            best = &list[i];
    if (dwell->n_candidates < 1 || best->cell / plan->oversample != lag || best->row != row ||
        best->code != code)
        return pnr_error_set(error, PNR_EENGINE,
                             "%s/%s, N = %zu, dwell %zu of %zu: %u candidates, cell %u, row %u, "
                             "code %u; the echo is at %zu, %zu, %zu",
                             c->subject->ops->name, e->choice.method, plan->n_samples, d,
                             plan->batch, dwell->n_candidates, best->cell, best->row,
                             best->code + 1, lag, row, code + 1);
    if (dwell->n_periods != pnr_plan_windows(plan) || dwell->n_nonfinite != 0 ||
        dwell->n_valid != pnr_plan_dwell_samples(plan))
        return pnr_error_set(error, PNR_EENGINE,
                             "%s/%s, N = %zu, dwell %zu: %u periods, %llu samples used",
                             c->subject->ops->name, e->choice.method, plan->n_samples, d,
                             dwell->n_periods, (unsigned long long)dwell->n_valid);
    return PNR_OK;
}

/* Fills one set with new samples, correlates these samples by every method, and checks the
 * results. */
static int check_set(contest *c, size_t set, pnr_error *error)
{
    const pnr_plan *plan = &c->subject->setup->plan;
    const uint64_t seed = pnr_random_next(&c->state);
    int rc = PNR_OK;

    for (size_t d = 0; d < plan->batch; d++)
        c->lags[d] = (uint32_t)(pnr_random_next(&c->state) % plan->n_samples);
    for (size_t i = 0; i < c->n_entries && rc == PNR_OK; i++) {
        contest_entry *e = &c->entries[i];

        if ((rc = resident_fill(e->resident, set, seed, c->lags, error)) == PNR_OK)
            rc = resident_run(e->resident, set, &e->result, error);
        for (size_t d = 0; d < plan->batch && rc == PNR_OK; d++)
            if ((rc = check_dwell(c, e, d, error)) == PNR_OK && i > 0 && c->judge != NULL)
                rc = c->judge(c, e, d, error);
    }
    c->n_checked += plan->batch;
    return rc;
}

/* Times the entries in rounds. In a round each entry runs each set once. The rounds end when each
 * entry has at least `runs` measured times. Discards the rounds of the first 100 ms, while clock
 * rates still rise. */
static int time_entries(contest *c, pnr_error *error)
{
    const uint64_t start_ns = pnr_clock_ns();
    bool is_warm = false;

    for (size_t done = 0; done < c->n_times && !pnr_stop;) {
        for (size_t i = 0; i < c->n_entries; i++) {
            const int rc = resident_time(c->entries[i].resident, c->entries[i].ns + done, error);

            if (rc != PNR_OK)
                return rc;
        }
        done += is_warm ? RESIDENT_SETS : 0;
        is_warm = is_warm || pnr_clock_ns() - start_ns >= warm_ns;
    }
    return PNR_OK;
}

int contest_run(contest *c, const char *const *methods, size_t n, size_t n_submits,
                pnr_error *error)
{
    int rc = enter_methods(c, methods, n, error);

    if (c->n_entries == 0)
        return rc;
    for (size_t i = 0; i < n_submits && rc == PNR_OK && !pnr_stop; i++)
        rc = check_set(c, i % RESIDENT_SETS, error);
    return rc == PNR_OK ? time_entries(c, error) : rc;
}

void contest_end(contest *c)
{
    for (size_t i = 0; i < c->n_entries; i++) {
        resident_destroy(c->entries[i].resident);
        free(c->entries[i].ns);
    }
    free(c->lags);
}
