/* SPDX-License-Identifier: MIT */
/* The pipeline: moves the data from the ring through the engine to the publisher. */
#include "pipeline/state.h"

#include "base/log.h"
#include "base/pause.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FAILED = 16 }; /* failures in a row after which an engine is given up */

static const uint64_t patience_ns = 50 * 1000 * 1000;

/* --- a failing engine --- */

/* Returns PNR_ELOST for a code that no engine may return, and names this code in p->given_up. */
static int check_code(pnr_pipeline *p, int code)
{
    if (code <= PNR_OK && strcmp(pnr_error_name(code), "EUNKNOWN") != 0)
        return code;
    snprintf(p->given_up, sizeof p->given_up,
             "it returned the unknown status %d: restart the program", code);
    return PNR_ELOST;
}

/* Counts a failed submit or collect. Returns PNR_ELOST when the engine is to be given up. */
static int count_failure(pnr_pipeline *p, int code)
{
    p->failure = code = check_code(p, code);
    if (++p->n_failed < MOST_FAILED || code == PNR_ELOST)
        return code;
    snprintf(p->given_up, sizeof p->given_up,
             "%u failures in a row, the last: %s: restart the program", p->n_failed,
             pnr_error_text(code));
    return PNR_ELOST;
}

/* --- after the engine --- */

static bool is_in_flight(const pnr_pipeline *p)
{
    return p->n_back < p->n_fed;
}

static bool has_room(const pnr_pipeline *p)
{
    return p->n_fed - p->n_back < p->setup->plan.depth;
}

/* Drops the oldest submit. Its windows give no result. */
static void drop_oldest(pnr_pipeline *p)
{
    pnr_pipeline_drop(p, &p->fed[p->n_back++ % PNR_MAX_DEPTH], &p->account.dropped_engine_error);
    pnr_ring_release(p->ring);
}

/* Finishes the oldest submit. PNR_OK; PNR_EAGAIN: it is not ready; PNR_ELOST. An engine that
 * returns no result when we wait, or the result of another submit, is broken: all submits are
 * dropped. */
static int collect_result(pnr_pipeline *p, bool wait)
{
    pnr_windows windows;
    pnr_result result;
    const int code = pnr_correlator_collect(p->correlator, wait, &windows, &result);

    if (code == PNR_EAGAIN && !wait)
        return code;
    if (code == PNR_EAGAIN || (code == PNR_OK && result.tag != p->n_back)) {
        strcpy(p->given_up, "it lost a submit: restart the program");
        while (is_in_flight(p))
            drop_oldest(p);
        return PNR_ELOST;
    }
    if (code != PNR_OK) {
        drop_oldest(p);
        return count_failure(p, code) == PNR_ELOST ? PNR_ELOST : PNR_OK;
    }
    p->n_failed = 0;
    p->n_back++;
    pnr_pipeline_report(p, &windows, &result);
    pnr_ring_release(p->ring);
    return PNR_OK;
}

/* --- before the engine --- */

/* Submits a view. If the submit fails, the older submits are finished first, because the ring takes
 * views back in order. */
static int feed_engine(pnr_pipeline *p, const pnr_windows *windows)
{
    int code = pnr_correlator_submit(p->correlator, windows);

    if (code == PNR_OK) {
        p->fed[p->n_fed++ % PNR_MAX_DEPTH] = *windows;
        return code;
    }
    while (is_in_flight(p))
        if (collect_result(p, true) == PNR_ELOST)
            code = PNR_ELOST;
    pnr_pipeline_drop(p, windows, &p->account.dropped_engine_error);
    pnr_ring_release(p->ring);
    return count_failure(p, code);
}

/* --- the loop --- */

/* Uploads the part of the next dwell that has already arrived. */
static int upload_ahead(pnr_pipeline *p)
{
    pnr_windows part;

    if (p->ahead == 0 || !has_room(p) || pnr_ring_peek(p->ring, p->ahead, &part) != PNR_OK)
        return PNR_OK;
    return check_code(p, pnr_correlator_upload_ahead(p->correlator, &part)) == PNR_ELOST ? PNR_ELOST
                                                                                         : PNR_OK;
}

/* Gives the publishing thread the present account. The sums of the account hold between two submits
 * that are finished. */
static void post_account(pnr_pipeline *p, bool must)
{
    pnr_account account = p->account;

    if (!must && !pnr_publishing_wants_account(p->publishing))
        return;
    pnr_ring_account(p->ring, &account);
    pnr_publishing_account(p->publishing, &account, p->failure, must);
}

/* Waits for a result or for samples. With engine.wait = spin, the function waits for the engine
 * only if the engine cannot take more samples now, or if no more samples will arrive (is_over). */
static int wait_for_work(pnr_pipeline *p, bool is_over)
{
    const bool spins = p->setup->plan.spin;

    if (is_in_flight(p) && (!spins || is_over || !has_room(p)))
        return collect_result(p, true);
    if (!is_in_flight(p) && pnr_pipeline_report_pending(p, true))
        return PNR_OK;
    if (!is_in_flight(p))
        pnr_publishing_wake(p->publishing, true);
    if (spins)
        pnr_pause();
    else
        (void)pnr_ring_wait(p->ring, p->ahead, patience_ns);
    return PNR_OK;
}

/* Feeds all dwells that are ready, and publishes a finished result before it waits for new
 * samples. */
static int process_ready(pnr_pipeline *p)
{
    pnr_windows windows;
    int acquired = PNR_EAGAIN;
    int code;

    post_account(p, false);
    while (pnr_pipeline_report_pending(p, false))
        ;
    while (has_room(p) &&
           (acquired = pnr_ring_acquire(p->ring, p->max_dwells, &windows)) == PNR_OK) {
        if (feed_engine(p, &windows) == PNR_ELOST || collect_result(p, false) == PNR_ELOST)
            return PNR_ELOST;
        post_account(p, false); /* here too, because a stream may have no pauses */
    }
    if (acquired == PNR_EEND && !is_in_flight(p))
        return PNR_EEND;
    if ((code = collect_result(p, false)) != PNR_EAGAIN)
        return code;
    if (upload_ahead(p) == PNR_ELOST)
        return PNR_ELOST;
    return wait_for_work(p, acquired == PNR_EEND);
}

/* Stops the acquisition after the engine is lost; drops the submits and the ring's contents. */
static void drop_stream(pnr_pipeline *p)
{
    pnr_windows windows;
    int code;

    atomic_store(&p->acquisition.cancel, 1);
    if (p->options->feed != NULL && p->options->stop != NULL)
        __atomic_store_n(p->options->stop, 1, __ATOMIC_RELAXED);
    while (is_in_flight(p))
        (void)collect_result(p, true);
    while ((code = pnr_ring_acquire(p->ring, p->max_dwells, &windows)) != PNR_EEND) {
        if (code == PNR_OK) {
            pnr_pipeline_drop(p, &windows, &p->account.dropped_shutdown);
            pnr_ring_release(p->ring);
        } else {
            (void)pnr_ring_wait(p->ring, 0, patience_ns);
        }
    }
}

/* --- the run --- */

static void *acquire_thread(void *argument)
{
    pnr_pipeline *p = argument;

    pnr_realtime_touch_stack();
    if (p->options->feed == NULL) {
        pnr_acquisition_run(&p->acquisition);
    } else {
        p->options->feed(p->options->feed_context, p->ring, &p->setup->plan, p->memory, p->capacity,
                         p->options->stop);
        pnr_ring_end(p->ring);
    }
    return NULL;
}

/* Returns the error of a stream that has ended with `code` in the loop. */
static int stream_error(const pnr_pipeline *p, int code, pnr_error *error)
{
    const char *engine = pnr_correlator_name(p->correlator);

    if (code == PNR_ELOST)
        return pnr_error_set(error, code, "engine %s: %s", engine,
                             p->given_up[0] != '\0' ? p->given_up : pnr_error_text(code));
    if (p->acquisition.code != PNR_OK) {
        if (error != NULL)
            *error = p->acquisition.error;
        return p->acquisition.code;
    }
    if (p->account.dropped_engine_error > 0)
        return pnr_error_set(error, PNR_EENGINE, "engine %s failed on %llu of %llu windows", engine,
                             (unsigned long long)p->account.dropped_engine_error,
                             (unsigned long long)p->account.windows);
    return PNR_OK;
}

/* Runs the acquisition thread and the loop from the first sample to the last result. */
static int process_stream(pnr_pipeline *p, pnr_error *error)
{
    int code;

    if (pthread_create(&p->thread, NULL, acquire_thread, p) != 0)
        return pnr_error_set(error, PNR_ENOMEMORY, "no acquisition thread could be started");
    pnr_realtime_enter(&p->realtime, p->config, p->thread, pnr_publishing_thread(p->publishing));
    post_account(p, true);
    while ((code = process_ready(p)) == PNR_OK)
        ;
    if (code == PNR_ELOST)
        drop_stream(p);
    while (pnr_pipeline_report_pending(p, true))
        ;
    pthread_join(p->thread, NULL);
    post_account(p, true);
    return stream_error(p, code, error);
}

/* Runs all threads. */
static int run_stream(pnr_pipeline *p, pnr_account *account, pnr_error *error)
{
    int code;

    pnr_realtime_begin(&p->realtime, p->config);
    pnr_realtime_touch_stack();
    if ((code = pnr_publishing_start(p->publishing, error)) == PNR_OK) {
        code = process_stream(p, error);
        pnr_publishing_stop(p->publishing);
    }
    pnr_realtime_end(&p->realtime);
    return pnr_publishing_close_account(p->publishing, pnr_ring_positions(p->ring), code, error,
                                        account);
}

int pnr_pipeline_run(const pnr_config *config, const pnr_pipeline_options *options,
                     pnr_account *account, pnr_error *error)
{
    static const pnr_pipeline_options none;
    pnr_pipeline *p = calloc(1, sizeof *p);
    int code;

    memset(account, 0, sizeof *account);
    if (p == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "pipeline: out of memory");
    p->config = config;
    p->options = options != NULL ? options : &none;
    code = pnr_pipeline_open(p, error);
    if (code == PNR_OK) {
        code = run_stream(p, account, error);
    } else {
        if (code == PNR_EEND) {
            pnr_log(PNR_LOG_INFO, "stopped before the first sample");
            code = PNR_OK;
        }
        if (p->options->finish != NULL)
            code = p->options->finish(p->options->tap_context, code, error);
    }
    pnr_pipeline_close(p);
    return code;
}
