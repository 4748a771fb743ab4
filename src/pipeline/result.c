/* SPDX-License-Identifier: MIT */
/* The work after the engine: counts the samples of a result, detects the echoes of its dwells, and
 * passes the dwells to the exchange. */
#include "pipeline/processing.h"

#include "engine/plan.h"

/* Counts the samples and the windows of a result. */
static pnr_account count_result(const pnr_processing *p, const pnr_windows *windows,
                                const pnr_result *result)
{
    const size_t n = p->setup->plan.n_samples;
    pnr_account sums = {0}, *account = &sums;

    for (size_t w = 0; w < result->n_dwells * windows->n_periods; w++) {
        const uint64_t lost = windows->lost[w], nonfinite = result->nonfinite[w];
        const bool is_refused = lost + nonfinite > n / 2;

        account->positions += n;
        account->windows++;
        account->lost_source += nonfinite;
        account->n_nonfinite += nonfinite;
        *(is_refused ? &account->skipped_refused : &account->used) += n - lost - nonfinite;
        *(is_refused ? &account->refused_too_much_lost : &account->processed) += 1;
    }
    for (size_t d = 0; d < result->n_dwells; d++)
        account->n_clipped += result->dwells[d].n_clipped;
    return sums;
}

/* Returns the number of samples of dwell d that are lost or not finite. */
static uint64_t lost_in_dwell(const pnr_pending_result *of, size_t d)
{
    const size_t n_periods = of->windows.n_periods;
    uint64_t sum = 0;

    for (size_t w = d * n_periods; w < (d + 1) * n_periods; w++)
        sum += of->windows.lost[w] + of->result.nonfinite[w];
    return sum;
}

static void view_dwell(const void *context, size_t d, pnr_observed *out)
{
    const pnr_pending_result *of = context;
    const pnr_plan *plan = of->plan;
    const pnr_windows *windows = &of->windows;
    const pnr_result *result = &of->result;
    const size_t candidates = d * plan->max_candidates;

    *out = (pnr_observed){
        .dwell = &result->dwells[d],
        .candidates = result->candidates + candidates,
        .patches = result->patches != NULL
                       ? result->patches + candidates * 2 * PNR_NEIGHBOURS * PNR_NEIGHBOURS
                       : NULL,
        .lost = windows->lost + d * windows->n_periods,
        .nonfinite = result->nonfinite + d * windows->n_periods,
    };
}

/* Returns the cells of dwell d; NULL: there are none. */
static const float *cells_of(const pnr_pending_result *of, size_t d)
{
    const float *profile = of->result.profile;

    return profile != NULL ? profile + d * (pnr_plan_profile_bytes(of->plan) / sizeof *profile)
                           : NULL;
}

/* Takes the detection of dwell d from the team, and passes the dwell to the exchange. */
static void report_dwell(pnr_processing *p, const pnr_pending_result *of, size_t d)
{
    const pnr_windows *windows = &of->windows;
    const pnr_result *result = &of->result;
    const size_t n_dwell = pnr_plan_dwell_samples(of->plan);
    const pnr_dwell *dwell = &result->dwells[d];
    pnr_made *made = p->exchange->reserve(p->exchange->of);

    pnr_team_take(p->team, &made->detection);
    if (d == 0)
        p->unreported += windows->lost_before;
    if (dwell->n_periods == 0) { /* every window has too many lost or non-finite samples */
        p->unreported += n_dwell;
        return;
    }
    made->is_restarted = false;
    made->engine = NULL;
    made->dwell = *dwell;
    made->sample = windows->first_sample + d * n_dwell;
    made->lost = lost_in_dwell(of, d);
    made->lost_before = p->unreported;
    p->unreported = 0;
    made->ready_ns = windows->ready_ns[d];
    made->submitted_ns = windows->submitted_ns;
    made->collected_ns = windows->collected_ns;
    if (p->clean != NULL) {
        pnr_observed observed;

        view_dwell(of, d, &observed);
        /* If the engine is lost here, collecting the next result fails too. */
        (void)pnr_clean_run(p->clean, p->correlator, windows, d, &observed, &made->detection);
    }
    made->detection.n_outside = 0; /* echoes outside the gate are not published */
    p->exchange->commit(p->exchange->of, cells_of(of, d));
}

/* Adds a result to the work of the team. Estimates the number of candidates from a few dwells only:
 * the threads wait meanwhile, and dwells that a GPU has written are in no cache. */
static void add_result(pnr_processing *p, const pnr_pending_result *of)
{
    enum { MOST_READ = 32 };
    const size_t n = of->result.n_dwells, step = (n + MOST_READ - 1) / MOST_READ;
    size_t n_candidates = 0, n_read = 0;

    for (size_t d = 0; d < n; d += step, n_read++)
        n_candidates += of->result.dwells[d].n_candidates;
    pnr_team_add(p->team, view_dwell, of, n, n_read > 0 ? n_candidates * n / n_read : 0);
}

/* Finishes the view of a result. All dwells of the result are committed. */
static void finish_view(pnr_processing *p, const pnr_account *account)
{
    const pnr_counted counted = pnr_processing_counted(p, account);

    p->exchange->finish(p->exchange->of, &counted);
    p->exchange->wake(p->exchange->of, false);
}

bool pnr_processing_report_pending(pnr_processing *p, bool wait)
{
    if (p->pending == NULL || pnr_pending_is_empty(p->pending) ||
        (!wait && !pnr_team_is_ready(p->team)))
        return false;

    const pnr_pending_result *front = pnr_pending_front(p->pending);

    report_dwell(p, front, p->pending_dwell);
    if (++p->pending_dwell < front->result.n_dwells) {
        p->exchange->wake(p->exchange->of, false);
        return true;
    }
    p->pending_dwell = 0;
    finish_view(p, &front->account);
    pnr_pending_pop(p->pending);
    return true;
}

void pnr_processing_report(pnr_processing *p, const pnr_windows *windows, const pnr_result *result)
{
    pnr_pending_result now = {.plan = &p->setup->plan, .windows = *windows, .result = *result};

    pnr_team_hurry(p->team, p->is_live && p->exchange->is_half_full(p->exchange->of));
    if (p->pending == NULL) {
        add_result(p, &now);
        for (size_t d = 0; d < result->n_dwells; d++) {
            report_dwell(p, &now, d);
            if ((d + 1) % PNR_MADE_TOGETHER == 0)
                p->exchange->wake(p->exchange->of, false);
        }
    }
    /* if p->pending is NULL, the threads have already read the dwells, so count_result finds them
     * in a cache */
    now.account = count_result(p, windows, result);

    const pnr_counted counted = pnr_processing_counted(p, &now.account);

    if (p->pending != NULL) {
        while (pnr_pending_is_full(p->pending))
            (void)pnr_processing_report_pending(p, true);
        add_result(p, pnr_pending_push(p->pending, &now));
    }
    p->exchange->release(p->exchange->of, &counted);
    if (p->pending == NULL)
        finish_view(p, &now.account);
}
