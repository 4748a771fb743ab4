/* SPDX-License-Identifier: MIT */
/* The pipeline: the way of the data in one place, and the account of what went along it. */
#include "pipeline.h"

#include "acquisition.h"
#include "clock.h"
#include "correlator.h"
#include "detector.h"
#include "log.h"
#include "publisher.h"
#include "setup.h"
#include "source.h"
#include "stats.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t patience_ns = 50 * 1000 * 1000;
static const uint64_t status_period_ns = 1000 * 1000 * 1000;

typedef struct pipeline {
    const pnr_config *config;
    const pnr_pipeline_options *options;
    pnr_source_info info;
    pnr_setup *setup;
    const pnr_engine_ops *ops;
    pnr_correlator *correlator;
    pnr_detector *detector;
    pnr_publisher *publisher;
    void *memory; /* the ring's, from the engine */
    size_t capacity, max_dwells;
    pnr_ring *ring;
    pnr_acquisition acquisition;
    pthread_t thread;
    bool is_acquiring;

    pnr_windows
        fed[PNR_MAX_DEPTH]; /* what the engine has: submits n_back .. n_fed - 1, modulo the depth */
    uint64_t n_fed, n_back; /* submits taken; and come back */
    bool is_out_of_step;    /* the engine keeps or mixes up its submits */

    pnr_report report;   /* filled anew for each dwell */
    pnr_account account; /* without the ring's part */
    pnr_histogram latency_ns;
    uint64_t unreported; /* positions of dwells without a result since the last one with */
    uint64_t began_ns, next_status_ns;
} pipeline;

/* --- after the engine: one result --- */

static void fill_time(const pipeline *p, pnr_report *report)
{
    const pnr_radar *radar = &p->setup->radar;
    int64_t start = radar->start_utc_ns;

    report->time_source = PNR_TIME_NONE;
    if (radar->has_start)
        report->time_source = PNR_TIME_FILE;
    else if (p->info.n_samples == UINT64_MAX &&
             (start = atomic_load(&p->acquisition.start_utc_ns)) != 0)
        report->time_source = PNR_TIME_HOST;
    report->has_time = report->time_source != PNR_TIME_NONE;
    report->time_ns =
        report->has_time ? start + pnr_rational_time_ns(radar->rate_hz, report->sample) : 0;
}

/* Every window of dwell d goes to its place in the account; returns the samples lost in the dwell.
 */
static uint64_t account_for(pipeline *p, const pnr_windows *windows, const pnr_result *result,
                            size_t d)
{
    const size_t n = p->setup->plan.n_samples, n_periods = windows->n_periods;
    pnr_account *account = &p->account;
    uint64_t lost_in_dwell = 0;

    for (size_t w = d * n_periods; w < (d + 1) * n_periods; w++) {
        const uint64_t lost = windows->lost[w], nonfinite = result->nonfinite[w];
        const bool is_refused = lost + nonfinite > n / 2;

        account->positions += n;
        account->windows++;
        account->lost_source += nonfinite;
        account->n_nonfinite += nonfinite;
        *(is_refused ? &account->skipped_refused : &account->used) += n - lost - nonfinite;
        *(is_refused ? &account->refused_too_much_lost : &account->processed) += 1;
        lost_in_dwell += lost + nonfinite;
    }
    account->n_clipped += result->dwells[d].n_clipped;
    return lost_in_dwell;
}

static unsigned flags_of(const pipeline *p, const pnr_dwell *dwell, uint64_t lost)
{
    return (lost > dwell->n_nonfinite ? PNR_FLAG_LOST : 0) |
           (dwell->n_nonfinite > 0 ? PNR_FLAG_NONFINITE : 0) |
           (dwell->n_clipped > 0 ? PNR_FLAG_CLIPPED : 0) |
           (dwell->n_periods < p->setup->plan.n_periods ? PNR_FLAG_PARTIAL : 0) |
           (dwell->n_maxima > dwell->n_candidates ? PNR_FLAG_MORE_ECHOES : 0);
}

static void publish(pipeline *p, const pnr_result *result, size_t d)
{
    const pnr_plan *plan = &p->setup->plan;

    p->account.results++;
    if (pnr_publisher_send_range(p->publisher, &p->report) == PNR_OK)
        p->account.sent++;
    else
        p->account.unsent_publish_refused++;
    if (plan->want_profile != PNR_WANT_NONE) {
        const size_t values = plan->want_profile == PNR_WANT_COMPLEX ? 2 : 1;
        const size_t n_cells = plan->n_samples * plan->oversample;

        /* A profile is a picture beside the result: one that finds no place is not a loss. */
        (void)pnr_publisher_send_profile(p->publisher, &p->report,
                                         result->profile + d * n_cells * values, n_cells,
                                         plan->oversample);
    }
}

static void report_dwell(pipeline *p, const pnr_windows *windows, const pnr_result *result,
                         size_t d)
{
    const pnr_plan *plan = &p->setup->plan;
    const size_t n_dwell = plan->n_samples * plan->n_periods;
    const pnr_dwell *dwell = &result->dwells[d];
    pnr_report *report = &p->report;
    const uint64_t lost = account_for(p, windows, result, d);

    if (d == 0)
        p->unreported += windows->lost_before;
    if (dwell->n_periods == 0) { /* too much of it was not finite */
        p->unreported += n_dwell;
        return;
    }
    report->sample = windows->first_sample + d * n_dwell;
    fill_time(p, report);
    report->periods = dwell->n_periods;
    report->lost = lost;
    report->lost_before = p->unreported;
    p->unreported = 0;
    report->flags = flags_of(p, dwell, lost);
    report->cells_above = dwell->n_above;
    pnr_detector_detect(p->detector, dwell, result->candidates + d * plan->max_candidates,
                        &report->detection);

    const uint64_t latency_ns = pnr_clock_ns() - windows->ready_ns[d];

    report->latency_us = (double)latency_ns * 1e-3;
    pnr_histogram_add(&p->latency_ns, latency_ns);
    publish(p, result, d);
    if (p->options->tap != NULL)
        p->options->tap(p->options->tap_context, report);
}

/* Windows that were handed out and came to nothing. */
static void drop(pipeline *p, const pnr_windows *windows, uint64_t *reason)
{
    const size_t n = p->setup->plan.n_samples;

    for (size_t w = 0; w < windows->n_dwells * windows->n_periods; w++) {
        p->account.positions += n;
        p->account.windows++;
        p->account.used += n - windows->lost[w];
        *reason += 1;
    }
    p->unreported += windows->lost_before + windows->n_dwells * windows->n_periods * n;
}

static bool is_in_flight(const pipeline *p)
{
    return p->n_back < p->n_fed;
}

/* Windows of the oldest submit that will not become results. */
static void drop_oldest(pipeline *p)
{
    drop(p, &p->fed[p->n_back++ % PNR_MAX_DEPTH], &p->account.dropped_engine_error);
    pnr_ring_release(p->ring);
}

/* The oldest submit's end: PNR_OK, PNR_EAGAIN when there is none ready, PNR_ELOST. An engine that
 * gives nothing though we wait, or the result of another submit, can be believed no more: all that
 * it has is dropped. */
static int collect(pipeline *p, bool wait)
{
    pnr_windows windows;
    pnr_result result;
    const int code = pnr_correlator_collect(p->correlator, wait, &windows, &result);

    if (code == PNR_EAGAIN && !wait)
        return code;
    if (code == PNR_EAGAIN || (code == PNR_OK && result.tag != p->n_back)) {
        p->is_out_of_step = true;
        while (is_in_flight(p))
            drop_oldest(p);
        return PNR_ELOST;
    }
    if (code != PNR_OK) {
        drop_oldest(p);
        return code == PNR_ELOST ? PNR_ELOST : PNR_OK;
    }
    p->n_back++;
    for (size_t d = 0; d < result.n_dwells; d++)
        report_dwell(p, &windows, &result, d);
    pnr_ring_release(p->ring);
    return PNR_OK;
}

/* --- before the engine --- */

/* The oldest leave first, so that views go back to the ring in order. */
static int feed(pipeline *p, const pnr_windows *windows)
{
    int code = pnr_correlator_submit(p->correlator, windows);

    if (code == PNR_OK) {
        p->fed[p->n_fed++ % PNR_MAX_DEPTH] = *windows;
        return code;
    }
    while (is_in_flight(p))
        if (collect(p, true) == PNR_ELOST)
            code = PNR_ELOST;
    drop(p, windows, &p->account.dropped_engine_error);
    pnr_ring_release(p->ring);
    return code;
}

static size_t fill_status(pipeline *p, pnr_status *status)
{
    memset(status, 0, sizeof *status);
    memcpy(status->run, p->report.run, sizeof status->run);
    memcpy(status->stream, p->report.stream, sizeof status->stream);
    memcpy(status->engine, p->report.engine, sizeof status->engine);
    status->elapsed_s = (double)(pnr_clock_ns() - p->began_ns) * 1e-9;
    status->account = p->account;
    pnr_ring_account(p->ring, &status->account);
    status->latency_p50_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.5) * 1e-3;
    status->latency_p99_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.99) * 1e-3;
    status->latency_p999_us = (double)pnr_histogram_quantile(&p->latency_ns, 0.999) * 1e-3;
    status->latency_max_us = (double)p->latency_ns.max * 1e-3;
    status->subscribers = pnr_publisher_subscribers(p->publisher);
    status->radar = &p->setup->radar;
    status->config = p->config;
    return status->subscribers;
}

static void tell_status(pipeline *p)
{
    const uint64_t now = pnr_clock_ns();

    if (now < p->next_status_ns)
        return;

    pnr_status status;

    (void)pnr_publisher_flush(p->publisher);
    (void)fill_status(p, &status);
    (void)pnr_publisher_send_status(p->publisher, &status, false);
    p->next_status_ns = now + status_period_ns;
}

/* One turn: a finished result leaves before we wait for new samples. */
static int turn(pipeline *p)
{
    pnr_windows windows;
    int code = PNR_OK;
    int acquired = PNR_EAGAIN;

    tell_status(p);
    while (p->n_fed - p->n_back < p->setup->plan.depth &&
           (acquired = pnr_ring_acquire(p->ring, p->max_dwells, &windows)) == PNR_OK) {
        if ((code = feed(p, &windows)) == PNR_ELOST)
            return code;
        if (collect(p, false) == PNR_ELOST)
            return PNR_ELOST;
        tell_status(p); /* also while the samples never pause */
    }
    if (is_in_flight(p))
        return collect(p, true);
    if (acquired == PNR_EEND)
        return PNR_EEND;
    (void)pnr_publisher_flush(p->publisher);
    (void)pnr_ring_wait(p->ring, patience_ns);
    return PNR_OK;
}

/* The device is gone: what is in flight and what is in the ring is counted, and nothing more comes.
 */
static void abandon(pipeline *p)
{
    pnr_windows windows;
    int code;

    atomic_store(&p->acquisition.cancel, 1);
    while (is_in_flight(p))
        (void)collect(p, true);
    while ((code = pnr_ring_acquire(p->ring, p->max_dwells, &windows)) != PNR_EEND) {
        if (code == PNR_OK) {
            drop(p, &windows, &p->account.dropped_shutdown);
            pnr_ring_release(p->ring);
        } else {
            (void)pnr_ring_wait(p->ring, patience_ns);
        }
    }
}

/* --- from open to close --- */

/* How many dwells a submit may hold so that the ring has room for all submits in flight and for the
 * source, and how many samples that ring has. */
static int shape_ring(pipeline *p, pnr_error *error)
{
    const pnr_config *config = p->config;
    const pnr_plan *plan = &p->setup->plan;
    const size_t sample_bytes = plan->n_channels * pnr_format_get(plan->format)->bytes;
    const size_t dwell = plan->n_samples * plan->n_periods;
    const double rate = pnr_rational_double(p->setup->radar.rate_hz);
    const size_t views = plan->depth + 1; /* one more for the source to write into */

    p->max_dwells = plan->batch;
    if (config->ring.bytes > 0)
        p->capacity = config->ring.bytes / sample_bytes;
    else if (config->ring.seconds > 0)
        p->capacity = (size_t)(config->ring.seconds * rate);
    else
        p->capacity = views * plan->batch * dwell;
    if (config->ring.bytes == 0 && config->ring.seconds == 0)
        return PNR_OK;
    if (p->capacity / dwell < 2)
        return pnr_error_set(
            error, PNR_ECONFIG,
            "ring of %zu samples (%zu bytes): a dwell has %zu samples, so at least "
            "ring.bytes = %zu is needed",
            p->capacity, p->capacity * sample_bytes, dwell, 2 * dwell * sample_bytes);
    if (p->max_dwells > p->capacity / dwell / views)
        p->max_dwells = p->capacity / dwell / views;
    if (p->max_dwells < 1)
        p->max_dwells = 1;
    p->setup->plan.batch = p->max_dwells;
    return PNR_OK;
}

static int open_ring(pipeline *p, pnr_error *error)
{
    const pnr_plan *plan = &p->setup->plan;
    const size_t sample_bytes = plan->n_channels * pnr_format_get(plan->format)->bytes;
    const pnr_ring_shape shape = {
        .capacity = p->capacity,
        .sample_bytes = sample_bytes,
        .n_samples = plan->n_samples,
        .n_periods = plan->n_periods,
        .max_dwells = p->max_dwells,
        .first_window = p->setup->radar.first_window,
        .zero_byte = plan->format == PNR_FORMAT_CU8 || plan->format == PNR_FORMAT_U8 ? 0x80 : 0,
        .depth = plan->depth,
    };
    pnr_ring_shape with_memory = shape;

    if ((p->memory = p->ops->alloc(p->capacity * sample_bytes)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a ring of %zu bytes",
                             p->capacity * sample_bytes);
    with_memory.memory = p->memory;
    return pnr_ring_create(&with_memory, &p->ring, error);
}

static int open_acquisition(pipeline *p, pnr_error *error)
{
    pnr_acquisition *a = &p->acquisition;
    const pnr_config *config = p->config;
    const pnr_plan *plan = &p->setup->plan;
    const size_t sample_bytes = plan->n_channels * pnr_format_get(plan->format)->bytes;
    const size_t dwell = plan->n_samples * plan->n_periods;
    size_t chunk = (size_t)(1 << 20) / sample_bytes;

    a->ring = p->ring;
    a->rate_hz = p->setup->radar.rate_hz;
    a->stop = p->options->stop;
    a->is_paced = config->source.pace == PNR_PACE_REAL_TIME;
    a->is_live = a->is_paced || p->info.is_live;
    if (a->is_live &&
        chunk > dwell / 4) /* a quarter of a dwell at a time: the last one is soon there */
        chunk = dwell / 4;
    if (config->source.chunk > 0)
        chunk = config->source.chunk;
    a->chunk = chunk < 1 ? 1 : chunk > p->capacity ? p->capacity : chunk;
    if ((a->spare = malloc(a->chunk * sample_bytes)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a chunk of %zu samples",
                             a->chunk);
    return PNR_OK;
}

static void *acquire_thread(void *argument)
{
    pipeline *p = argument;

    if (p->options->feed == NULL) {
        pnr_acquisition_run(&p->acquisition);
    } else {
        p->options->feed(p->options->feed_context, p->ring, &p->setup->plan, p->memory, p->capacity,
                         p->options->stop);
        pnr_ring_end(p->ring);
    }
    return NULL;
}

static void fill_constants(pipeline *p)
{
    const char *engine = pnr_correlator_name(p->correlator);

    memcpy(p->report.run, pnr_publisher_run(p->publisher), sizeof p->report.run);
    memcpy(p->report.stream, p->config->stream.name, sizeof p->report.stream);
    strncpy(p->report.engine, engine, sizeof p->report.engine - 1);
    p->report.pfa_cell = p->setup->pfa_cell;
}

/* Everything slow, and everything that allocates. */
static int open_all(pipeline *p, pnr_error *error)
{
    const pnr_config *config = p->config;
    int code;

    p->info = (pnr_source_info){
        .format = config->source.format, .n_channels = config->source.channels, .n_samples = 0};
    if (p->options->feed == NULL) {
        if ((code = pnr_source_open(config, &p->acquisition.source, error)) != PNR_OK)
            return code;
        p->info = *pnr_source_get_info(p->acquisition.source);
        pnr_log(PNR_LOG_INFO, "source: %s", p->info.text);
        if (p->info.n_trailing_bytes > 0)
            pnr_log(PNR_LOG_WARN, "source: %llu bytes after the last whole sample are no sample",
                    (unsigned long long)p->info.n_trailing_bytes);
    }
    if ((code = pnr_setup_create(config, p->info.format, p->info.n_channels, &p->setup, error)) !=
            PNR_OK ||
        (code = shape_ring(p, error)) != PNR_OK ||
        (code = pnr_engine_choose(config->engine.name, &p->setup->plan, &p->ops, error)) !=
            PNR_OK ||
        (code = pnr_correlator_create(p->ops, &p->setup->plan, &p->correlator, error)) != PNR_OK ||
        (code = open_ring(p, error)) != PNR_OK || (code = open_acquisition(p, error)) != PNR_OK ||
        (code = pnr_detector_create(config, p->setup, &p->detector, error)) != PNR_OK ||
        (code = pnr_publisher_create(config, &p->publisher, error)) != PNR_OK)
        return code;
    fill_constants(p);
    pnr_log(PNR_LOG_INFO, "code %s: N = %zu samples a period, %.6g ms; ring of %zu samples",
            p->setup->code->name, p->setup->plan.n_samples, p->setup->radar.period_s * 1e3,
            p->capacity);
    return PNR_OK;
}

static void close_all(pipeline *p)
{
    pnr_publisher_destroy(p->publisher);
    pnr_detector_destroy(p->detector);
    pnr_correlator_destroy(p->correlator);
    pnr_ring_destroy(p->ring);
    if (p->ops != NULL && p->memory != NULL)
        p->ops->free(p->memory);
    pnr_setup_destroy(p->setup);
    pnr_source_close(p->acquisition.source);
    free(p->acquisition.spare);
    free(p);
}

/* Both threads, from the first sample to the last result. */
static int stream(pipeline *p, pnr_error *error)
{
    int code;

    p->began_ns = pnr_clock_ns();
    p->next_status_ns = p->began_ns + status_period_ns;
    if (pthread_create(&p->thread, NULL, acquire_thread, p) != 0)
        return pnr_error_set(error, PNR_ENOMEMORY, "no acquisition thread could be started");
    while ((code = turn(p)) == PNR_OK)
        ;
    if (code == PNR_ELOST)
        abandon(p);
    pthread_join(p->thread, NULL);
    if (pnr_publisher_flush(p->publisher) != PNR_OK) { /* taken, but they never left */
        const uint64_t n = pnr_publisher_waiting(p->publisher);

        p->account.sent -= n;
        p->account.unsent_publish_refused += n;
    }
    if (code == PNR_ELOST)
        return pnr_error_set(error, code, "engine %s: %s", p->report.engine,
                             p->is_out_of_step ? "it lost a submit: restart the program"
                                               : pnr_error_text(code));
    if (p->acquisition.code != PNR_OK) {
        if (error != NULL)
            *error = p->acquisition.error;
        return p->acquisition.code;
    }
    if (p->account.dropped_engine_error > 0)
        return pnr_error_set(error, PNR_EENGINE, "engine %s failed on %llu of %llu windows",
                             p->report.engine, (unsigned long long)p->account.dropped_engine_error,
                             (unsigned long long)p->account.windows);
    return PNR_OK;
}

/* The end: the account is closed, checked, told to subscribers and to the log. */
static int close_account(pipeline *p, int code, pnr_error *error, pnr_account *account)
{
    const bool is_stopped = p->options->stop != NULL && *p->options->stop != 0;
    char text[512];
    pnr_status status;

    *account = p->account;
    pnr_ring_account(p->ring, account);
    if (!pnr_account_closes(account) || account->positions != pnr_ring_positions(p->ring))
        code = pnr_error_set(error, PNR_EINTERNAL, "the account does not close: %s",
                             pnr_account_format(account, text, sizeof text));
    (void)fill_status(p, &status);
    status.reason = code != PNR_OK ? (error != NULL ? error->text : pnr_error_text(code))
                    : is_stopped   ? "stopped"
                                   : "end of input";
    status.exit_status = pnr_error_exit(code);
    (void)pnr_publisher_send_status(p->publisher, &status, true);
    pnr_log(PNR_LOG_INFO, "%s: %s", status.reason, pnr_account_format(account, text, sizeof text));
    if (code == PNR_OK && account->windows == 0)
        pnr_log(PNR_LOG_WARN, "nothing to correlate: a result takes %zu samples",
                p->setup->plan.n_samples * p->setup->plan.n_periods);
    return code;
}

int pnr_pipeline_run(const pnr_config *config, const pnr_pipeline_options *options,
                     pnr_account *account, pnr_error *error)
{
    static const pnr_pipeline_options none;
    pipeline *p = calloc(1, sizeof *p);
    int code;

    memset(account, 0, sizeof *account);
    if (p == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "pipeline: out of memory");
    p->config = config;
    p->options = options != NULL ? options : &none;
    code = open_all(p, error);
    if (code == PNR_OK) {
        if (config->publisher.wait_s > 0 &&
            pnr_publisher_wait(p->publisher, config->publisher.wait_s, p->options->stop) != PNR_OK)
            pnr_log(PNR_LOG_WARN, "no subscriber came within %.3g s", config->publisher.wait_s);
        code = stream(p, error);
        code = close_account(p, code, error, account);
    }
    close_all(p);
    return code;
}
