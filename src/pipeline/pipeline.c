/* SPDX-License-Identifier: MIT */
/* A run of the pipeline: its three threads, from the first sample to the end of the account. */
#include "pipeline/state.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t patience_ns = 50 * 1000 * 1000;

/* --- the functions through which the processing thread gets samples and hands over results --- */

/* Returns the next view. If another configuration is ready, returns PNR_EEND, as at the end of the
 * stream. */
static int acquire_view(void *of, size_t max_dwells, pnr_windows *out)
{
    pnr_pipeline *p = of;
    int code;

    if (pnr_reload_is_ready(p->reload))
        return PNR_EEND;
    code = pnr_ring_acquire(p->ring, max_dwells, out);
    p->is_ended |= code == PNR_EEND;
    if (code == PNR_OK) {
        out->lost_before += p->carried;
        p->carried = 0;
    }
    return code;
}

static int peek_view(void *of, size_t at_least, pnr_windows *out)
{
    return pnr_ring_peek(((pnr_pipeline *)of)->ring, at_least, out);
}

static int wait_view(void *of, size_t at_least, pnr_queue *queue, uint64_t wait_ns)
{
    return pnr_ring_wait(((pnr_pipeline *)of)->ring, at_least, queue, wait_ns);
}

static bool is_half_full(const void *of)
{
    return pnr_ring_is_half_full(((const pnr_pipeline *)of)->ring);
}

/* Adds the counts of a view to the account, and releases the view. pnr_ring_release adds the losses
 * of the view to the counts of the ring. */
static void release_view(void *of, const pnr_counted *counted)
{
    pnr_pipeline *p = of;

    pnr_account_add(&p->account, &counted->account);
    p->failure = counted->failure;
    p->devices = counted->devices;
    pnr_ring_release(p->ring);
}

static void finish_view(void *of, const pnr_counted *counted)
{
    (void)of, (void)counted;
}

static pnr_made *reserve_result(void *of)
{
    return pnr_publishing_reserve(((pnr_pipeline *)of)->publishing);
}

static void commit_result(void *of, const float *cells)
{
    pnr_publishing_commit(((pnr_pipeline *)of)->publishing, cells);
}

static void wake_publishing(void *of, bool is_idle)
{
    pnr_publishing_wake(((pnr_pipeline *)of)->publishing, is_idle);
}

/* Sends the present account to the publishing thread. No view is being released here, so the sums
 * of the account agree. */
static void post_account(pnr_pipeline *p, bool must)
{
    pnr_account account = p->account;

    if (!must && !pnr_publishing_wants_account(p->publishing))
        return;
    pnr_ring_account(p->ring, &account);
    pnr_publishing_account(p->publishing, &account, p->failure, &p->devices, must);
}

static void begin_turn(void *of)
{
    pnr_turns_count(&((pnr_pipeline *)of)->turns);
    post_account(of, false);
}

static pnr_exchange exchange_of(pnr_pipeline *p)
{
    return (pnr_exchange){.of = p,
                          .acquire = acquire_view,
                          .peek = peek_view,
                          .wait = wait_view,
                          .is_half_full = is_half_full,
                          .release = release_view,
                          .reserve = reserve_result,
                          .commit = commit_result,
                          .finish = finish_view,
                          .wake = wake_publishing,
                          .turn = begin_turn};
}

/* --- the run --- */

/* Stops the acquisition after the engine is lost. Drops the views in the engine and all dwells in
 * the ring. */
static void drop_stream(pnr_pipeline *p)
{
    pnr_processing *processing = &p->processing;
    pnr_windows windows;
    int code;

    atomic_store(&p->acquisition.cancel, 1);
    if (p->options->feed != NULL && p->options->stop != NULL)
        __atomic_store_n(p->options->stop, 1, __ATOMIC_RELAXED);
    while (p->isolation != NULL && pnr_isolation_drop(p->isolation, &windows))
        pnr_processing_drop(processing, &windows, offsetof(pnr_account, dropped_engine_error));
    while (processing->n_back < processing->n_fed)
        pnr_processing_drop(processing, &processing->fed[processing->n_back++ % PNR_MAX_IN_FLIGHT],
                            offsetof(pnr_account, dropped_engine_error));
    while ((code = pnr_ring_acquire(p->ring, p->max_dwells, &windows)) != PNR_EEND) {
        if (code == PNR_OK)
            pnr_processing_drop(processing, &windows, offsetof(pnr_account, dropped_shutdown));
        else
            (void)pnr_ring_wait(p->ring, 0, NULL, patience_ns);
    }
}

static void *acquire_thread(void *argument)
{
    pnr_pipeline *p = argument;

    pnr_realtime_touch_stack();
    if (p->options->feed == NULL) {
        pnr_acquisition_run(&p->acquisition);
    } else {
        p->options->feed(p->options->feed_context, p->ring, &p->setup->plan, p->memory, p->capacity,
                         p->options->stop);
        atomic_store(&p->acquisition.turns.is_over, true);
        pnr_ring_end(p->ring);
    }
    return NULL;
}

/* Returns the error of a stream whose loop has returned `code`. */
static int stream_error(const pnr_pipeline *p, int code, pnr_error *error)
{
    const char *engine = pnr_pipeline_engine(p);

    if (code == PNR_ELOST)
        return pnr_error_set(error, code, "engine %s: %s: restart the program", engine,
                             p->isolation != NULL
                                 ? "no worker could finish the last views"
                                 : pnr_correlator_reason(p->processing.correlator));
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

/* Runs the loop with one configuration after the other. Returns PNR_EEND or PNR_ELOST. */
static int run_configurations(pnr_pipeline *p)
{
    for (;;) {
        const int code = p->isolation != NULL ? pnr_isolation_run(p->isolation, &p->exchange)
                                              : pnr_processing_run(&p->processing);

        if (p->is_ended || !pnr_reload_is_ready(p->reload) ||
            (code == PNR_ELOST && p->isolation == NULL))
            return code;
        if (code == PNR_EEND)
            pnr_reload_take(p->reload);
        else
            pnr_reload_refuse(p->reload, "no worker could finish the views before it");
    }
}

/* Runs the acquisition thread and the loop from the first sample to the last result. */
static int process_stream(pnr_pipeline *p, pnr_error *error)
{
    int code;

    if (pthread_create(&p->thread, NULL, acquire_thread, p) != 0)
        return pnr_error_set(error, PNR_ENOMEMORY, "no acquisition thread could be started");
    pnr_realtime_enter(&p->realtime, p->config, p->thread, pnr_publishing_thread(p->publishing),
                       p->isolation != NULL);
    if (p->isolation != NULL)
        strcpy(p->realtime.outcome.processing_cpu,
               pnr_isolation_realtime(p->isolation)->processing_cpu);
    post_account(p, true);
    p->exchange = exchange_of(p);
    p->processing.exchange = &p->exchange;
    code = run_configurations(p);
    if (code == PNR_ELOST)
        drop_stream(p);
    atomic_store(&p->turns.is_over, true);
    pthread_join(p->thread, NULL);
    post_account(p, true);
    return stream_error(p, code, error);
}

/* Runs the stream in all threads, then closes the account. */
static int run_stream(pnr_pipeline *p, pnr_account *account, pnr_error *error)
{
    int code;

    pnr_realtime_begin(&p->realtime, p->config);
    pnr_realtime_touch_stack();
    pnr_notify_send(p->options->service, "READY=1");
    if ((code = pnr_publishing_start(p->publishing, error)) == PNR_OK) {
        code = process_stream(p, error);
        pnr_notify_send(p->options->service, "STOPPING=1");
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
