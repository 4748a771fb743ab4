/* SPDX-License-Identifier: MIT */
/* The loop of the processing thread: submits samples to the engine, collects the results and
 * reports them. */
#include "pipeline/processing.h"

#include "base/pause.h"

#include <stddef.h>

static const uint64_t patience_ns = 50 * 1000 * 1000;

/* --- after the engine --- */

static bool is_in_flight(const pnr_processing *p)
{
    return p->n_back < p->n_fed;
}

static bool has_room(const pnr_processing *p)
{
    return pnr_correlator_has_room(p->correlator);
}

pnr_counted pnr_processing_counted(const pnr_processing *p, const pnr_account *account)
{
    pnr_counted counted = {.account = *account, .unreported = p->unreported, .failure = p->failure};

    if (p->correlator != NULL) /* NULL in a run with a worker */
        counted.devices = pnr_correlator_devices(p->correlator);
    return counted;
}

void pnr_processing_drop(pnr_processing *p, const pnr_windows *windows, size_t reason)
{
    const size_t n = p->setup->plan.n_samples;
    pnr_account counts = {0}, *account = &counts;

    while (pnr_processing_report_pending(p, true))
        ; /* reports the results of earlier samples first */
    for (size_t w = 0; w < windows->n_dwells * windows->n_periods; w++) {
        account->positions += n;
        account->windows++;
        account->used += n - windows->lost[w];
        *(uint64_t *)((char *)account + reason) += 1;
    }
    p->unreported += windows->lost_before + windows->n_dwells * windows->n_periods * n;

    const pnr_counted counted = pnr_processing_counted(p, account);

    p->exchange->release(p->exchange->of, &counted);
    p->exchange->finish(p->exchange->of, &counted);
}

/* Drops the oldest view in the engine, because the engine has failed on this view. */
static void drop_oldest(pnr_processing *p)
{
    pnr_processing_drop(p, &p->fed[p->n_back++ % PNR_MAX_IN_FLIGHT],
                        offsetof(pnr_account, dropped_engine_error));
}

/* Finishes the oldest view. PNR_OK; PNR_EAGAIN: it is not ready; PNR_ELOST. */
static int collect_result(pnr_processing *p, bool wait)
{
    pnr_windows windows;
    pnr_result result;
    const int code = pnr_correlator_collect(p->correlator, wait, &windows, &result);

    if (code == PNR_EAGAIN || code == PNR_ELOST)
        return code;
    if (code != PNR_OK) {
        p->failure = code;
        drop_oldest(p);
        return PNR_OK;
    }
    p->n_back++;
    pnr_processing_report(p, &windows, &result);
    return PNR_OK;
}

/* --- before the engine --- */

/* Submits a view. The engine has room for it. Returns PNR_OK or PNR_ELOST. */
static int feed_engine(pnr_processing *p, const pnr_windows *windows)
{
    p->fed[p->n_fed++ % PNR_MAX_IN_FLIGHT] = *windows;
    return pnr_correlator_submit(p->correlator, windows);
}

/* --- the loop --- */

/* Uploads the part of the next dwell that has already arrived. */
static int upload_ahead(pnr_processing *p)
{
    pnr_windows part;

    if (p->ahead == 0 || !has_room(p) ||
        p->exchange->peek(p->exchange->of, p->ahead, &part) != PNR_OK)
        return PNR_OK;
    return pnr_correlator_upload_ahead(p->correlator, &part) == PNR_ELOST ? PNR_ELOST : PNR_OK;
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
        (void)p->exchange->wait(p->exchange->of, p->ahead, NULL, patience_ns);
    return PNR_OK;
}

/* Submits all dwells that are ready. Then collects a result. If no result is finished, waits for
 * work. */
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
