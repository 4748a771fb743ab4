/* SPDX-License-Identifier: MIT */
/* Sends the status of the pipeline once a second. Checks the sums of the account at the end. */
#include "pipeline/publishing_state.h"

#include "base/clock.h"
#include "base/log.h"
#include "detector/zero_state.h"
#include "engine/plan.h"

#include <string.h>

static const uint64_t status_period_ns = 1000 * 1000 * 1000;

/* Sets the numbers of samples and results that the recorders have lost so far. */
static void add_recorders(const pnr_publishing *p, pnr_account *account)
{
    const pnr_sample_recorder *samples = p->parts.acquisition->recorder;

    if (samples != NULL)
        account->unrecorded_samples = pnr_sample_recorder_lost(samples);
    if (p->recorder != NULL)
        account->unrecorded_results = pnr_result_recorder_lost(p->recorder);
}

static void fill_status(pnr_publishing *p, pnr_status *status)
{
    *status = (pnr_status){.account = p->account};
    pnr_account_add(&status->account, &p->samples);
    add_recorders(p, &status->account);
    memcpy(status->engine, p->report.engine, sizeof status->engine);
    status->elapsed_s = (double)(pnr_clock_ns() - p->began_ns) * 1e-9;
    status->latency_p50_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.5) * 1e-3;
    status->latency_p99_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.99) * 1e-3;
    status->latency_p999_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.999) * 1e-3;
    status->latency_max_us = (double)p->latency_ns.max * 1e-3;
    status->deadline_s = (double)p->deadline.due_ns * 1e-9;
    status->ring_fill = pnr_ring_fill(p->parts.acquisition->ring);
    status->radar = &p->parts.setup->radar;
    status->config = p->parts.config;
    status->realtime = &p->parts.realtime->outcome;
    if (p->parts.acquisition->source != NULL) {
        status->source = p->parts.info;
        status->source_refused = pnr_source_refused(p->parts.acquisition->source);
        status->source_dropped = pnr_source_dropped(p->parts.acquisition->source);
    }
    status->zero = &p->zero;
    status->slips = p->slip.n_slips;
    status->events = p->parts.events;
    status->devices = p->devices;
    if (p->parts.isolation != NULL) {
        status->has_worker = true;
        status->worker_deaths = pnr_isolation_deaths(p->parts.isolation);
        status->is_degraded = pnr_isolation_is_degraded(p->parts.isolation);
    }
}

/* Reports the progress to options->watch. status: the present status; NULL: the thread will write
 * to the log. */
static void show_progress(const pnr_publishing *p, const pnr_status *status)
{
    pnr_progress progress;

    if (p->parts.options->watch == NULL || p->parts.options->feed != NULL ||
        p->parts.info->n_samples == UINT64_MAX)
        return;
    if (status != NULL)
        progress = (pnr_progress){.n_done = status->account.positions,
                                  .n_samples = p->parts.info->n_samples,
                                  .elapsed_s = status->elapsed_s,
                                  .n_echoes = p->n_echoes};
    p->parts.options->watch(p->parts.options->watch_context, status != NULL ? &progress : NULL);
}

void pnr_publishing_tell_events(pnr_publishing *p)
{
    pnr_event event;

    while (pnr_event_take(p->parts.events, &event)) {
        show_progress(p, NULL);
        pnr_event_log(p->parts.events, &event);
        (void)pnr_publisher_send_event(p->publisher, &event);
    }
}

void pnr_publishing_keep_zero(pnr_publishing *p, bool lasting)
{
    pnr_zero_memory memory;
    pnr_error error;

    if (!p->is_zero_kept || !pnr_zero_remember(&p->zero, &memory))
        return;
    if (pnr_zero_state_write(p->parts.config, p->parts.info->format, &memory, lasting, &error) !=
            PNR_OK &&
        !p->is_zero_refused) {
        p->is_zero_refused = true;
        pnr_log(PNR_LOG_WARN, "%s", error.text);
    }
}

/* Posts one event with the number of windows on which the engine has failed since the last call. */
static void tell_failures(pnr_publishing *p)
{
    const uint64_t n_dropped = p->samples.dropped_engine_error;

    if (n_dropped == p->n_told)
        return;
    pnr_event_post(p->parts.events, PNR_EVENT_ENGINE_FAILED, PNR_EVENT_NO_SAMPLE,
                   (double)(n_dropped - p->n_told), 0,
                   "engine %s failed on %llu windows (%s); on %llu of %llu since the start",
                   p->report.engine, (unsigned long long)(n_dropped - p->n_told),
                   pnr_error_text(p->failure), (unsigned long long)n_dropped,
                   (unsigned long long)p->samples.windows);
    p->n_told = n_dropped;
}

/* Reports each device that was lost since the last call, as an event. */
static void tell_devices(pnr_publishing *p)
{
    const pnr_devices *lost = &p->devices.lost;
    pnr_devices told = p->lost_told;

    for (size_t i = 0; i < lost->n; i++) {
        const size_t n_before = told.n;

        pnr_devices_add(&told, lost->index[i]);
        if (told.n > n_before)
            pnr_event_post(p->parts.events, PNR_EVENT_DEVICE_LOST, PNR_EVENT_NO_SAMPLE,
                           lost->index[i], (double)p->devices.used.n,
                           "engine %s: device %u is lost; devices left: %zu", p->report.engine,
                           lost->index[i], p->devices.used.n);
    }
    p->lost_told = *lost; /* a new worker may use a lost device again */
}

/* Reports how many results (or profiles and maps) were not sent since the last call, as one
 * event. */
static void tell_unsent(pnr_publishing *p, pnr_event_kind kind, const char *noun, uint64_t n_unsent,
                        uint64_t *n_told)
{
    const unsigned long long n_new = n_unsent - *n_told;

    if (n_new == 0)
        return;
    pnr_event_post(p->parts.events, kind, p->report.sample, (double)n_new, 0,
                   "%llu %s were not sent: a subscriber, a pipe or a disk was too slow for them; "
                   "%llu of %llu since the start",
                   n_new, noun, (unsigned long long)n_unsent,
                   (unsigned long long)p->account.results);
    *n_told = n_unsent;
}

static void tell_all_unsent(pnr_publishing *p)
{
    tell_unsent(p, PNR_EVENT_RESULTS_UNSENT, "results", p->account.unsent_queue_full,
                &p->n_unsent_told);
    tell_unsent(p, PNR_EVENT_MAPS_UNSENT, "profiles or maps", p->account.unsent_maps,
                &p->n_maps_told);
}

/* Posts an event when the processing thread begins to hang, for example in an engine that never
 * returns. */
static void tell_hang(pnr_publishing *p)
{
    const uint64_t last_ns = atomic_load(&p->account_ns), now = pnr_clock_ns();
    const double seconds = last_ns > 0 && now > last_ns ? (double)(now - last_ns) * 1e-9 : 0;
    const bool does_hang = seconds > p->parts.config->engine.deadline_hang;

    if (does_hang && !p->does_hang)
        pnr_event_post(p->parts.events, PNR_EVENT_ENGINE_HANGS, PNR_EVENT_NO_SAMPLE, seconds, 0,
                       "engine %s has not answered for %.3g s (engine.deadline_hang): if it never "
                       "does, SIGTERM twice ends the program; engine.isolate = yes would start the "
                       "engine again",
                       p->report.engine, seconds);
    p->does_hang = does_hang;
}

/* Reports all faults since the last call, and all events that wait. */
static void tell_all(pnr_publishing *p)
{
    tell_hang(p);
    pnr_deadline_tell(&p->deadline, p->parts.events);
    tell_failures(p);
    tell_devices(p);
    tell_all_unsent(p);
    pnr_publishing_tell_events(p);
    pnr_event_log_rest(p->parts.events);
}

void pnr_publishing_send_status(pnr_publishing *p)
{
    const uint64_t now = p->now_ns;

    pnr_watchdog_feed(&p->watchdog, now);
    if (now - p->status_ns < status_period_ns)
        return;

    pnr_status status;

    show_progress(p, NULL);
    (void)pnr_publisher_flush(p->publisher);
    fill_status(p, &status);
    (void)pnr_publisher_send_status(p->publisher, &status, false);
    tell_all(p);
    pnr_publishing_keep_zero(p, false);
    show_progress(p, &status);
    p->status_ns = now;
}

void pnr_publishing_log_trailing(uint64_t n_bytes)
{
    if (n_bytes > 0)
        pnr_log(PNR_LOG_WARN, "source: %llu bytes after the last whole sample are no sample",
                (unsigned long long)n_bytes);
}

/* Logs warnings about likely mistakes of the user, after a stream without errors. */
static void log_advice(const pnr_publishing *p, const pnr_account *account)
{
    const unsigned long long n_results = account->results;
    const char *endpoint = p->parts.config->publisher.endpoint;

    if (p->parts.acquisition->source != NULL)
        pnr_publishing_log_trailing(
            pnr_source_get_info(p->parts.acquisition->source)->n_trailing_bytes -
            p->parts.info->n_trailing_bytes);
    if (account->windows == 0)
        pnr_log(PNR_LOG_WARN, "nothing to correlate: a result takes %zu samples",
                pnr_plan_view_samples(&p->parts.setup->plan, 1));
    if (account->n_nonfinite > account->positions / 100)
        pnr_log(PNR_LOG_WARN, "%.3g %% of the samples are NaN or Inf: is source.format = %s right?",
                100 * (double)account->n_nonfinite / (double)account->positions,
                pnr_format_get(p->parts.info->format)->name);
    if (p->parts.options->feed != NULL || n_results == 0)
        return;
    if (p->n_echoes == 0)
        pnr_log(PNR_LOG_WARN,
                "no echo in %llu results: check the code and its chip rate, source.rate_hz, "
                "source.spectrum, source.tune_hz and code.tune_hz, code.epoch",
                n_results);
    if (p->parts.options->tap == NULL && p->parts.options->tap_cells == NULL &&
        p->recorder == NULL && (endpoint[0] == '\0' || !pnr_publisher_was_heard(p->publisher)))
        pnr_log(PNR_LOG_WARN,
                "nobody got the %llu results: %s%s, and nothing was printed (--print table)",
                n_results,
                endpoint[0] == '\0' ? "publisher.endpoint is empty" : "no subscriber was seen at ",
                endpoint[0] == '\0' ? "" : pnr_publisher_endpoint(p->publisher));
}

/* Logs the last lines of the run. */
static void log_end(pnr_publishing *p, const pnr_status *status, int code)
{
    char text[512];

    if (status->source_refused > 0)
        pnr_log(PNR_LOG_WARN, "source: %llu messages were refused",
                (unsigned long long)status->source_refused);
    if (code == PNR_OK)
        log_advice(p, &status->account);
    pnr_log(PNR_LOG_INFO, "%s: %s", status->reason,
            pnr_account_format(&status->account, text, sizeof text));
}

int pnr_publishing_close_account(pnr_publishing *p, uint64_t positions, int code, pnr_error *error,
                                 pnr_account *account)
{
    const pnr_pipeline_options *options = p->parts.options;
    const bool is_stopped =
        options->stop != NULL && __atomic_load_n(options->stop, __ATOMIC_RELAXED) != 0;
    char text[512];
    pnr_status status;

    show_progress(p, NULL);
    if (options->finish != NULL)
        code = options->finish(options->tap_context, code, error);
    pnr_sample_recorder_finish(p->parts.acquisition->recorder);
    pnr_result_recorder_finish(p->recorder);
    tell_devices(p);
    tell_all_unsent(p);
    pnr_publishing_tell_events(p);
    *account = p->account;
    pnr_account_add(account, &p->samples);
    add_recorders(p, account);
    if (!pnr_account_closes(account) || account->positions != positions)
        code = pnr_error_set(error, PNR_EINTERNAL, "the account does not close: %s",
                             pnr_account_format(account, text, sizeof text));
    pnr_publishing_keep_zero(p, true);
    fill_status(p, &status);
    status.reason = code != PNR_OK ? (error != NULL ? error->text : pnr_error_text(code))
                    : is_stopped   ? "stopped"
                                   : "end of input";
    status.exit_status = pnr_error_exit(code);
    (void)pnr_publisher_send_status(p->publisher, &status, true);
    log_end(p, &status, code);
    return options->end != NULL ? options->end(options->tap_context, &status, code, error) : code;
}
