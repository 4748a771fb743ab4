/* SPDX-License-Identifier: MIT */
/* The loop of the processing thread: moves the data from the samples through the engine to the
 * results. */
#include "pipeline/processing.h"

#include "base/pause.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FAILED = 16 }; /* failures in a row after which an engine is given up */

static const uint64_t patience_ns = 50 * 1000 * 1000;

/* --- a failing engine --- */

/* Returns PNR_ELOST for a code that no engine may return, and names this code in p->given_up. */
static int check_code(pnr_processing *p, int code)
{
    if (code <= PNR_OK && strcmp(pnr_error_name(code), "EUNKNOWN") != 0)
        return code;
    snprintf(p->given_up, sizeof p->given_up, "it returned the unknown status %d", code);
    return PNR_ELOST;
}

/* Counts a failed submit or collect. Returns PNR_ELOST when the engine is to be given up. */
static int count_failure(pnr_processing *p, int code)
{
    p->failure = code = check_code(p, code);
    if (++p->n_failed < MOST_FAILED || code == PNR_ELOST)
        return code;
    snprintf(p->given_up, sizeof p->given_up, "%u failures in a row, the last: %s", p->n_failed,
             pnr_error_text(code));
    return PNR_ELOST;
}

/* --- after the engine --- */

static bool is_in_flight(const pnr_processing *p)
{
    return p->n_back < p->n_fed;
}

static bool has_room(const pnr_processing *p)
{
    return p->n_fed - p->n_back < p->setup->plan.depth;
}

void pnr_processing_drop(pnr_processing *p, const pnr_windows *windows, size_t reason)
{
    const size_t n = p->setup->plan.n_samples;
    pnr_counted counted = {.failure = p->failure};
    pnr_account *account = &counted.account;

    while (pnr_processing_report_pending(p, true))
        ; /* results of earlier samples first */
    for (size_t w = 0; w < windows->n_dwells * windows->n_periods; w++) {
        account->positions += n;
        account->windows++;
        account->used += n - windows->lost[w];
        *(uint64_t *)((char *)account + reason) += 1;
    }
    p->unreported += windows->lost_before + windows->n_dwells * windows->n_periods * n;
    counted.unreported = p->unreported;
    p->exchange->release(p->exchange->of, &counted);
    p->exchange->finish(p->exchange->of, &counted);
}

/* Drops the oldest view in the engine, which failed on it. */
static void drop_oldest(pnr_processing *p)
{
    pnr_processing_drop(p, &p->fed[p->n_back++ % PNR_MAX_DEPTH],
                        offsetof(pnr_account, dropped_engine_error));
}

/* Finishes the oldest view. PNR_OK; PNR_EAGAIN: it is not ready; PNR_ELOST. An engine that returns
 * no result when we wait, or the result of another submit, is broken. */
static int collect_result(pnr_processing *p, bool wait)
{
    pnr_windows windows;
    pnr_result result;
    const int code = pnr_correlator_collect(p->correlator, wait, &windows, &result);

    if (code == PNR_EAGAIN && !wait)
        return code;
    if (code == PNR_EAGAIN || (code == PNR_OK && result.tag != p->n_back)) {
        strcpy(p->given_up, "it lost a submit");
        return PNR_ELOST;
    }
    if (code != PNR_OK) {
        if (check_code(p, code) == PNR_ELOST)
            return PNR_ELOST;
        p->failure = code;
        drop_oldest(p);
        return count_failure(p, code) == PNR_ELOST ? PNR_ELOST : PNR_OK;
    }
    p->n_failed = 0;
    p->n_back++;
    pnr_processing_report(p, &windows, &result);
    return PNR_OK;
}

/* --- before the engine --- */

/* Submits a view. If the submit fails, the older ones are finished first, because views are given
 * back in order. */
static int feed_engine(pnr_processing *p, const pnr_windows *windows)
{
    const uint64_t n_before = p->n_fed;
    const int code = check_code(p, pnr_correlator_submit(p->correlator, windows));

    p->fed[p->n_fed++ % PNR_MAX_DEPTH] = *windows;
    if (code == PNR_OK || code == PNR_ELOST)
        return code;
    while (p->n_back < n_before)
        if (collect_result(p, true) == PNR_ELOST)
            return PNR_ELOST;
    p->failure = code;
    pnr_processing_drop(p, windows, offsetof(pnr_account, dropped_engine_error));
    p->n_fed = n_before; /* it never was in the engine */
    return count_failure(p, code);
}

/* --- the loop --- */

/* Uploads the part of the next dwell that has already arrived. */
static int upload_ahead(pnr_processing *p)
{
    pnr_windows part;

    if (p->ahead == 0 || !has_room(p) ||
        p->exchange->peek(p->exchange->of, p->ahead, &part) != PNR_OK)
        return PNR_OK;
    return check_code(p, pnr_correlator_upload_ahead(p->correlator, &part)) == PNR_ELOST ? PNR_ELOST
                                                                                         : PNR_OK;
}

/* Waits for a result or for samples. With engine.wait = spin, the function waits for the engine
 * only if the engine cannot take more samples now, or if no more samples will arrive (is_over). */
static int wait_for_work(pnr_processing *p, bool is_over)
{
    const bool spins = p->setup->plan.spin;

    if (is_in_flight(p) && (!spins || is_over || !has_room(p)))
        return collect_result(p, true);
    if (!is_in_flight(p) && pnr_processing_report_pending(p, true))
        return PNR_OK;
    if (!is_in_flight(p))
        p->exchange->wake(p->exchange->of, true);
    if (spins)
        pnr_pause();
    else
        p->exchange->wait(p->exchange->of, p->ahead, patience_ns);
    return PNR_OK;
}

/* Feeds all dwells that are ready, and publishes a finished result before it waits for new
 * samples. */
static int process_ready(pnr_processing *p)
{
    pnr_windows windows;
    int acquired = PNR_EAGAIN;
    int code;

    p->exchange->turn(p->exchange->of);
    while (pnr_processing_report_pending(p, false))
        ;
    while (has_room(p) &&
           (acquired = p->exchange->acquire(p->exchange->of, p->max_dwells, &windows)) == PNR_OK) {
        if (feed_engine(p, &windows) == PNR_ELOST || collect_result(p, false) == PNR_ELOST)
            return PNR_ELOST;
        p->exchange->turn(p->exchange->of); /* here too, because a stream may have no pauses */
    }
    if (acquired == PNR_EEND && !is_in_flight(p))
        return PNR_EEND;
    if ((code = collect_result(p, false)) != PNR_EAGAIN)
        return code;
    if (upload_ahead(p) == PNR_ELOST)
        return PNR_ELOST;
    return wait_for_work(p, acquired == PNR_EEND);
}

int pnr_processing_run(pnr_processing *p)
{
    int code;

    while ((code = process_ready(p)) == PNR_OK)
        ;
    while (pnr_processing_report_pending(p, true))
        ;
    return code;
}

const char *pnr_processing_reason(const pnr_processing *p)
{
    return p->given_up[0] != '\0' ? p->given_up : "the GPU is lost";
}
