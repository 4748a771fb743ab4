/* SPDX-License-Identifier: MIT */
/* The publishing thread and its queue. */
#include "pipeline/publishing_state.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pause.h"
#include "detector/zero_state.h"
#include "engine/plan.h"
#include "pipeline/shared.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t patience_ns = 50 * 1000 * 1000, account_period_ns = 100 * 1000 * 1000;
static const double live_s = 2; /* the queue of a live stream has space for the results of this
                                 * number of seconds */

enum {
    LEAST_BYTES = 1 << 20,
    MOST_BYTES = 32 << 20,
    CELLS_BYTES = 4 << 20,
    USUAL_ECHOES = 4,
    LINE = 64
};

typedef struct account_record {
    pnr_made_head head;
    pnr_account account;
    int failure;
    pnr_device_state devices;
} account_record;

/* --- the processing thread --- */

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* Returns memory for a record. NULL: the queue is full, and `must` is false. */
static void *reserve_record(pnr_publishing *p, size_t n_bytes, bool must)
{
    void *record;

    while ((record = pnr_queue_reserve(p->to, n_bytes)) == NULL && must) {
        pnr_bell_ring(p->bell);
        if (p->spins)
            pnr_pause();
        else
            pnr_queue_wait_space(p->to, n_bytes, patience_ns);
    }
    return record;
}

pnr_made *pnr_publishing_reserve(pnr_publishing *p)
{
    const bool must = !p->is_live;

    p->made = reserve_record(p, pnr_made_most_bytes(p->cells_bytes), must);
    p->has_cells = p->made != NULL && p->cells_bytes > 0;
    if (p->made == NULL)
        p->made = reserve_record(p, sizeof *p->made, must);
    if (p->made == NULL)
        p->made = &p->spare;
    return p->made;
}

void pnr_publishing_commit(pnr_publishing *p, const float *cells)
{
    pnr_made *made = p->made;

    if (made == &p->spare) {
        p->n_unsent++;
        return;
    }
    made->head = (pnr_made_head){.n_unsent = p->n_unsent};
    p->n_unsent = 0;
    pnr_queue_commit(p->to, pnr_made_finish(made, p->has_cells ? cells : NULL, p->cells_bytes));
}

void pnr_publishing_account(pnr_publishing *p, const pnr_account *account, int failure,
                            const pnr_device_state *devices, bool must)
{
    account_record *record = reserve_record(p, sizeof *record, must);

    if (record == NULL)
        return;
    record->head = (pnr_made_head){.kind = PNR_MADE_ACCOUNT, .n_unsent = p->n_unsent};
    record->account = *account;
    record->failure = failure;
    record->devices = *devices;
    p->n_unsent = 0;
    pnr_queue_commit(p->to, sizeof *record);
}

bool pnr_publishing_wants_account(pnr_publishing *p)
{
    const uint64_t now = pnr_clock_ns();

    if (now - p->account_ns < account_period_ns)
        return false;
    p->account_ns = now;
    return true;
}

void pnr_publishing_wake(pnr_publishing *p, bool is_idle)
{
    const bool was_idle = atomic_load_explicit(&p->is_idle, memory_order_relaxed);

    if (is_idle != was_idle)
        atomic_store(&p->is_idle, is_idle);
    if (!is_idle || (!was_idle && p->packs))
        pnr_bell_ring(p->bell);
}

/* --- the publishing thread --- */

/* Counts results that the full queue refused. Skips their numbers, so that subscribers see a
 * gap. */
static void count_unsent(pnr_publishing *p, uint64_t n_unsent)
{
    if (n_unsent == 0)
        return;
    (void)pnr_publisher_flush(p->publisher);
    pnr_publisher_skip_ranges(p->publisher, n_unsent);
    p->account.results += n_unsent;
    p->account.unsent_queue_full += n_unsent;
}

static void take_record(pnr_publishing *p, const void *record)
{
    const pnr_made_head *head = record;

    count_unsent(p, head->n_unsent);
    if (head->kind == PNR_MADE_ACCOUNT) {
        const account_record *made = record;

        p->samples = made->account;
        p->failure = made->failure;
        p->devices = made->devices;
    } else {
        pnr_publishing_report(p, record);
    }
}

/* The condition of pnr_bell_wait: true if the publishing thread has work. The thread that adds work
 * rings the bell. */
static bool has_work(void *of)
{
    pnr_publishing *p = of;

    return pnr_queue_has_record(p->queue) || atomic_load(&p->is_over) ||
           atomic_load(&p->next) != NULL ||
           (p->packs && !p->has_flushed && atomic_load(&p->is_idle));
}

/* Calls options->pause, and sends packs if the processing thread is idle. Then waits for the next
 * record. */
static void wait_for_record(pnr_publishing *p)
{
    const pnr_pipeline_options *options = p->parts.options;

    if (p->is_fresh && options->pause != NULL)
        options->pause(options->tap_context);
    p->is_fresh = false;
    (void)pnr_publisher_subscribers(p->publisher); /* this also disconnects hostile peers */
    p->has_flushed = atomic_load(&p->is_idle);
    if (p->has_flushed)
        (void)pnr_publisher_flush(p->publisher);
    if (p->spins)
        pnr_pause();
    else
        (void)pnr_bell_wait(p->bell, has_work, p, p->bell != &p->own_bell ? PNR_LINGER_NS : 0,
                            patience_ns);
}

/* Passes the trigger signal to the recorder of samples, and the reload signal to the reload
 * thread. */
static void take_signals(const pnr_publishing *p)
{
    volatile int *reload = p->parts.options->reload;
    pnr_sample_recorder *recorder = p->parts.acquisition->recorder;
    volatile int *trigger = p->parts.options->trigger;

    if (trigger != NULL && recorder != NULL &&
        __atomic_exchange_n(trigger, 0, __ATOMIC_RELAXED) != 0)
        pnr_sample_recorder_trigger(recorder, PNR_TRIGGER_SIGNAL, 0);
    if (p->parts.reload != NULL && __atomic_exchange_n(reload, 0, __ATOMIC_RELAXED) != 0)
        pnr_reload_ask(p->parts.reload);
}

void pnr_publishing_finish_pack(pnr_publishing *p)
{
    if (pnr_publisher_flush(p->publisher) != PNR_OK) { /* these results were counted as sent */
        const uint64_t n = pnr_publisher_waiting(p->publisher);

        p->account.sent -= n;
        p->account.unsent_publish_refused += n;
    }
}

static void *publish_thread(void *argument)
{
    pnr_publishing *p = argument;

    pnr_realtime_touch_stack();
    for (;;) {
        const bool is_over = atomic_load(&p->is_over); /* read before the queue, so that no record
                                                        * is missed */
        const bool has_next = atomic_load(&p->next) != NULL;
        const void *record = pnr_queue_front(p->queue);

        pnr_publishing_tell_events(p);
        pnr_publishing_send_status(p);
        take_signals(p);
        if (record != NULL) {
            take_record(p, record);
            pnr_queue_pop(p->queue);
            p->is_fresh = true;
        } else if (has_next) {
            pnr_publishing_take_change(p);
        } else if (is_over) {
            pnr_publishing_finish_pack(p);
            return NULL;
        } else {
            wait_for_record(p);
            p->now_ns = pnr_clock_ns();
        }
    }
}

/* --- start and stop --- */

/* Waits at most wait_s for a subscriber. Meanwhile sends WATCHDOG to the service manager, because
 * this wait is not a hang. */
static bool wait_for_subscriber(pnr_publishing *p, double wait_s)
{
    const pnr_notify *service = p->parts.options->service;
    const volatile int *stop = p->parts.options->stop;
    const bool is_watched = service != NULL && service->watchdog_ns > 0;
    const double most_s = is_watched ? (double)service->watchdog_ns * 1e-9 / 4 : wait_s;

    for (; wait_s > 0 && (stop == NULL || !*stop); wait_s -= most_s) {
        if (pnr_publisher_wait(p->publisher, wait_s < most_s ? wait_s : most_s, stop) == PNR_OK)
            return true;
        if (is_watched)
            pnr_notify_send(service, "WATCHDOG=1");
    }
    return false;
}

int pnr_publishing_start(pnr_publishing *p, pnr_error *error)
{
    const double wait_s = p->parts.config->publisher.wait_s;

    if (wait_s > 0 && !wait_for_subscriber(p, wait_s))
        pnr_log(PNR_LOG_WARN, "no subscriber within %.3g s", wait_s);
    p->began_ns = p->status_ns = p->now_ns = pnr_clock_ns();
    p->watchdog = (pnr_watchdog){.notify = p->parts.options->service,
                                 .threads = {&p->parts.acquisition->turns, p->parts.turns}};
    if (pthread_create(&p->thread, NULL, publish_thread, p) != 0)
        return pnr_error_set(error, PNR_ENOMEMORY, "no publishing thread could be started");
    return PNR_OK;
}

void pnr_publishing_stop(pnr_publishing *p)
{
    atomic_store(&p->is_over, true);
    pnr_bell_ring(p->bell);
    pthread_join(p->thread, NULL);
}

pthread_t pnr_publishing_thread(const pnr_publishing *p)
{
    return p->thread;
}

/* --- create and destroy --- */

/* Returns the size of the queue in bytes. For results, a live stream has space for the usual
 * results of live_s seconds, at least LEAST_BYTES and at most MOST_BYTES; a recording has
 * LEAST_BYTES. For cells, there are CELLS_BYTES more, or the bytes of the cells of one result (live
 * stream: two results) if these are more. A record is contiguous: with the bytes of one result,
 * even an empty queue may have no contiguous space for the cells, and a live stream cannot wait. */
static size_t queue_capacity(const pnr_setup *setup, size_t cells_bytes, bool is_live)
{
    const double dwell_s =
        (double)pnr_plan_dwell_samples(&setup->plan) / pnr_rational_double(setup->radar.rate_hz);
    const size_t usual =
        offsetof(pnr_made, detection.echoes) + (USUAL_ECHOES + 1) * sizeof(pnr_echo);
    const double wanted = is_live ? live_s / dwell_s * (double)usual : 0;
    size_t capacity = LEAST_BYTES;

    if (wanted > LEAST_BYTES)
        capacity = wanted < MOST_BYTES ? (size_t)wanted : MOST_BYTES;
    if (cells_bytes > 0) {
        const size_t least = is_live ? 2 * cells_bytes : cells_bytes;

        capacity += least > CELLS_BYTES ? least : CELLS_BYTES;
    }
    return capacity;
}

size_t pnr_publishing_bytes(const pnr_setup *setup, bool is_live)
{
    const size_t cells_bytes = pnr_plan_profile_bytes(&setup->plan);

    return pnr_queue_bytes(queue_capacity(setup, cells_bytes, is_live),
                           pnr_made_most_bytes(cells_bytes));
}

static int open_queue(pnr_publishing *p, pnr_error *error)
{
    const pnr_setup *setup = p->parts.setup;
    const size_t bytes = round_up(pnr_publishing_bytes(setup, p->parts.is_live), LINE);
    void *memory = aligned_alloc(LINE, bytes);

    if (memory == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a queue of %zu bytes", bytes);
    memset(memory, 0, bytes); /* touches all pages before the first sample arrives */
    p->cells_bytes = pnr_plan_profile_bytes(&setup->plan);
    p->queue = pnr_queue_init(memory, queue_capacity(setup, p->cells_bytes, p->parts.is_live),
                              pnr_made_most_bytes(p->cells_bytes));
    p->to = p->queue;
    return PNR_OK;
}

/* Opens the publisher, with memory for profiles or maps if they are wanted. A live stream cannot
 * wait for a subscriber that is slow; a recording can. */
static int open_publisher(pnr_publishing *p, pnr_error *error)
{
    const pnr_config *config = p->parts.config;
    const int code = pnr_publisher_create(config, p->parts.events, &p->publisher, error);

    if (code != PNR_OK || config->publisher.profile == PNR_PROFILE_OFF)
        return code;
    if (pnr_map_bytes(&p->map) > PNR_CELLS_MAX)
        pnr_log(PNR_LOG_WARN,
                "publisher.profile: a map has %.4g MiB, and pnradar-listen receives at most %d: "
                "search fewer Doppler rows or codes",
                (double)pnr_map_bytes(&p->map) / 0x1p20, PNR_CELLS_MAX >> 20);
    return pnr_publisher_reserve_cells(p->publisher, &p->map,
                                       p->parts.is_live ? 0 : config->publisher.linger_s,
                                       p->parts.options->stop, error);
}

static int check_zero_state(const pnr_publishing *p, pnr_error *error)
{
    const pnr_config *config = p->parts.config;

    return config->radar.zero == PNR_ZERO_DIRECT_PATH && config->radar.zero_state_path[0] != '\0'
               ? pnr_zero_state_check(config, error)
               : PNR_OK;
}

/* Opens the recorder of results. A live stream never waits for a disk; a recording does. */
static int open_recorder(pnr_publishing *p, pnr_error *error)
{
    if (p->parts.config->recorder.results[0] == '\0')
        return PNR_OK;
    return pnr_result_recorder_create(p->parts.config, !p->parts.is_live, p->parts.events,
                                      &p->recorder, error);
}

int pnr_publishing_prepare(const pnr_publishing_parts *parts, pnr_publishing **out,
                           pnr_error *error)
{
    pnr_publishing *p = calloc(1, sizeof *p);
    int code;

    *out = NULL;
    if (p == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "publishing: out of memory");
    p->parts = *parts;
    p->is_live = parts->is_live;
    p->spins = parts->setup->plan.spin;
    p->packs = parts->config->publisher.pack > 1;
    p->bell =
        parts->isolation != NULL ? &pnr_isolation_bells(parts->isolation)->results : &p->own_bell;
    if ((code = check_zero_state(p, error)) == PNR_OK &&
        (code = pnr_publishing_fill_map(p, error)) == PNR_OK &&
        (code = open_queue(p, error)) == PNR_OK)
        *out = p;
    else
        pnr_publishing_destroy(p);
    return code;
}

int pnr_publishing_create(const pnr_publishing_parts *parts, pnr_publishing **out, pnr_error *error)
{
    pnr_publishing *p;
    int code = pnr_publishing_prepare(parts, &p, error);

    *out = NULL;
    if (code != PNR_OK)
        return code;
    pnr_publishing_begin_trackers(p);
    if ((code = open_publisher(p, error)) != PNR_OK || (code = open_recorder(p, error)) != PNR_OK) {
        pnr_publishing_destroy(p);
        return code;
    }
    p->report.is_live = parts->is_live;
    pnr_publishing_begin_reports(p);
    *out = p;
    return PNR_OK;
}

void pnr_publishing_change(pnr_publishing *p, pnr_publishing *next, uint64_t sample,
                           uint64_t skipped)
{
    p->to = next->to;
    p->cells_bytes = next->cells_bytes;
    p->next_sample = sample;
    p->next_skipped = skipped;
    atomic_store(&p->next, next);
    pnr_bell_ring(p->bell);
}

bool pnr_publishing_has_taken(const pnr_publishing *next)
{
    return atomic_load(&next->has_taken);
}

void pnr_publishing_destroy(pnr_publishing *p)
{
    if (p == NULL)
        return;
    pnr_publisher_destroy(p->publisher);
    pnr_result_recorder_destroy(p->recorder);
    free(p->queue);
    free(p->code_names);
    free(p);
}
