/* SPDX-License-Identifier: MIT */
/* The status of the pipeline, sent once a second, and the account at the end, whose sums must
 * hold. */
#include "pipeline/state.h"

#include "base/clock.h"
#include "base/log.h"
#include "detector/zero_state.h"
#include "engine/plan.h"

#include <string.h>

static const uint64_t status_period_ns = 1000 * 1000 * 1000;

static void fill_status(pnr_pipeline *p, pnr_status *status)
{
    *status = (pnr_status){.account = p->account};
    memcpy(status->engine, p->report.engine, sizeof status->engine);
    status->elapsed_s = (double)(pnr_clock_ns() - p->began_ns) * 1e-9;
    pnr_ring_account(p->ring, &status->account);
    status->latency_p50_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.5) * 1e-3;
    status->latency_p99_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.99) * 1e-3;
    status->latency_p999_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.999) * 1e-3;
    status->latency_max_us = (double)p->latency_ns.max * 1e-3;
    status->deadline_s = (double)p->deadline.due_ns * 1e-9;
    status->radar = &p->setup->radar;
    status->config = p->config;
    status->realtime = &p->realtime.outcome;
    if (p->acquisition.source != NULL) {
        status->source = &p->info;
        status->source_refused = pnr_source_refused(p->acquisition.source);
    }
    status->zero = &p->zero;
    status->slips = p->slip.n_slips;
    status->events = &p->events;
}

/* status: the present status; NULL: the program is about to log. */
static void show_progress(const pnr_pipeline *p, const pnr_status *status)
{
    pnr_progress progress;

    if (p->options->watch == NULL || p->options->feed != NULL || p->info.n_samples == UINT64_MAX)
        return;
    if (status != NULL)
        progress = (pnr_progress){.n_done = status->account.positions,
                                  .n_samples = p->info.n_samples,
                                  .elapsed_s = status->elapsed_s,
                                  .n_echoes = p->n_echoes};
    p->options->watch(p->options->watch_context, status != NULL ? &progress : NULL);
}

void pnr_pipeline_tell_events(pnr_pipeline *p)
{
    pnr_event event;

    while (pnr_event_take(&p->events, &event)) {
        show_progress(p, NULL);
        pnr_event_log(&p->events, &event);
        (void)pnr_publisher_send_event(p->publisher, &event);
    }
}

/* Writes the zero delay for the next run. Logs only the first failure. lasting: writes to the disk,
 * not only to the page cache. */
static void write_zero_state(pnr_pipeline *p, bool lasting)
{
    pnr_zero_memory memory;
    pnr_error error;

    if (!p->is_zero_kept || !pnr_zero_remember(&p->zero, &memory))
        return;
    if (pnr_zero_state_write(p->config, p->info.format, &memory, lasting, &error) != PNR_OK &&
        !p->is_zero_refused) {
        p->is_zero_refused = true;
        pnr_log(PNR_LOG_WARN, "%s", error.text);
    }
}

void pnr_pipeline_send_status(pnr_pipeline *p)
{
    const uint64_t now = pnr_clock_ns();

    if (now - p->status_ns < status_period_ns)
        return;

    pnr_status status;

    show_progress(p, NULL);
    (void)pnr_publisher_flush(p->publisher);
    fill_status(p, &status);
    (void)pnr_publisher_send_status(p->publisher, &status, false);
    p->is_heard |= status.subscribers > 0;
    pnr_deadline_tell(&p->deadline, &p->events);
    pnr_pipeline_tell_failures(p);
    pnr_pipeline_tell_events(p);
    pnr_event_log_rest(&p->events);
    write_zero_state(p, false);
    show_progress(p, &status);
    p->status_ns = now;
}

void pnr_pipeline_log_trailing(uint64_t n_bytes)
{
    if (n_bytes > 0)
        pnr_log(PNR_LOG_WARN, "source: %llu bytes after the last whole sample are no sample",
                (unsigned long long)n_bytes);
}

/* Logs what the user of a finished stream should check or should know. */
static void log_advice(const pnr_pipeline *p, const pnr_account *account)
{
    const unsigned long long n_results = account->results;
    const char *endpoint = p->config->publisher.endpoint;

    if (p->acquisition.source != NULL)
        pnr_pipeline_log_trailing(pnr_source_get_info(p->acquisition.source)->n_trailing_bytes -
                                  p->info.n_trailing_bytes);
    if (account->windows == 0)
        pnr_log(PNR_LOG_WARN, "nothing to correlate: a result takes %zu samples",
                pnr_plan_view_samples(&p->setup->plan, 1));
    if (account->n_nonfinite > account->positions / 100)
        pnr_log(PNR_LOG_WARN, "%.3g %% of the samples are NaN or Inf: is source.format = %s right?",
                100 * (double)account->n_nonfinite / (double)account->positions,
                pnr_format_get(p->info.format)->name);
    if (p->options->feed != NULL || n_results == 0)
        return;
    if (p->n_echoes == 0)
        pnr_log(PNR_LOG_WARN,
                "no echo in %llu results: check the code and its chip rate, source.rate_hz, "
                "source.spectrum, source.tune_hz and code.tune_hz, code.epoch",
                n_results);
    if (p->options->tap == NULL && p->options->tap_cells == NULL &&
        (endpoint[0] == '\0' || !p->is_heard))
        pnr_log(PNR_LOG_WARN,
                "nobody got the %llu results: %s%s, and nothing was printed (--print table)",
                n_results,
                endpoint[0] == '\0' ? "publisher.endpoint is empty" : "no subscriber was seen at ",
                endpoint[0] == '\0' ? "" : pnr_publisher_endpoint(p->publisher));
}

int pnr_pipeline_close_account(pnr_pipeline *p, int code, pnr_error *error, pnr_account *account)
{
    const bool is_stopped =
        p->options->stop != NULL && __atomic_load_n(p->options->stop, __ATOMIC_RELAXED) != 0;
    char text[512];
    pnr_status status;

    show_progress(p, NULL);
    *account = p->account;
    pnr_ring_account(p->ring, account);
    if (!pnr_account_closes(account) || account->positions != pnr_ring_positions(p->ring))
        code = pnr_error_set(error, PNR_EINTERNAL, "the account does not close: %s",
                             pnr_account_format(account, text, sizeof text));
    pnr_deadline_tell(&p->deadline, &p->events);
    pnr_pipeline_tell_failures(p);
    pnr_pipeline_tell_events(p);
    pnr_event_log_rest(&p->events);
    write_zero_state(p, true);
    fill_status(p, &status);
    status.reason = code != PNR_OK ? (error != NULL ? error->text : pnr_error_text(code))
                    : is_stopped   ? "stopped"
                                   : "end of input";
    status.exit_status = pnr_error_exit(code);
    (void)pnr_publisher_send_status(p->publisher, &status, true);
    p->is_heard |= status.subscribers > 0;
    if (status.source_refused > 0)
        pnr_log(PNR_LOG_WARN, "source: %llu messages were refused",
                (unsigned long long)status.source_refused);
    if (code == PNR_OK)
        log_advice(p, account);
    pnr_log(PNR_LOG_INFO, "%s: %s", status.reason, pnr_account_format(account, text, sizeof text));
    return code;
}
