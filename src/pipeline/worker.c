/* SPDX-License-Identifier: MIT */
/* The worker: runs the loop of processing.c with an exchange over shared memory. The worker ends
 * when the process of the run ends, or after the end of the stream. */
#include "pipeline/worker.h"

#include "base/log.h"
#include "base/pause.h"
#include "config/config.h"
#include "engine/plan.h"
#include "pipeline/processing.h"
#include "pipeline/publishing.h"
#include "pipeline/shared.h"
#include "setup/setup.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t patience_ns = 50 * 1000 * 1000;

typedef struct worker {
    pnr_shared *shared;
    pnr_queue *views, *results;
    void *memory; /* samples */
    pnr_shared_bells *bells;
    bool is_pinned;
    pnr_config config;
    pnr_setup *setup;
    pnr_processing processing;
    pnr_exchange exchange;
    pnr_realtime realtime;
    /* lent: a queue of copies of the views in the engine. part: a copy of the last part of a
     * dwell. */
    pnr_shared_view *lent[PNR_MAX_IN_FLIGHT], *part;
    size_t n_copies, first_lent, n_lent;
    bool has_part;     /* `part` has not been uploaded */
    bool has_finished; /* a view was finished after the run was last woken */
    pnr_made *made;
} worker;

/* --- the exchange --- */

/* Copies a record, and removes it from the queue. */
static void take_record(worker *w, const pnr_shared_view *from, pnr_shared_view *to)
{
    memcpy(to, from,
           sizeof *from + from->n_ready * sizeof(uint64_t) + from->n_runs * sizeof(pnr_lost_run) +
               from->n_lost * sizeof(uint32_t));
    pnr_queue_pop(w->views);
}

/* Removes the parts before the next view from the queue. Copies the last part, which has the
 * samples of all parts. Returns the record of the view; NULL: it has not arrived. */
static const pnr_shared_view *pass_parts(worker *w)
{
    const pnr_shared_view *record;

    while ((record = pnr_queue_front(w->views)) != NULL && record->kind == PNR_VIEW_PART) {
        take_record(w, record, w->part);
        w->has_part = true;
    }
    return record;
}

static int acquire_view(void *of, size_t max_dwells, pnr_windows *out)
{
    worker *w = of;
    const pnr_shared_view *record = pass_parts(w);
    pnr_shared_view *copy = w->lent[(w->first_lent + w->n_lent) % w->n_copies];

    (void)max_dwells; /* the views of the run are small enough */
    if (record != NULL && record->kind == PNR_VIEW_END)
        return PNR_EEND;
    if (record == NULL || w->n_lent == w->n_copies)
        return PNR_EAGAIN;
    w->has_part = false;
    take_record(w, record, copy);
    *out = pnr_shared_read_view(copy, &w->shared->order, w->memory);
    w->n_lent++;
    return PNR_OK;
}

static int peek_view(void *of, size_t at_least, pnr_windows *out)
{
    worker *w = of;

    (void)at_least; /* the run sends no smaller part */
    (void)pass_parts(w);
    if (!w->has_part)
        return PNR_EAGAIN;
    w->has_part = false;
    *out = pnr_shared_read_view(w->part, &w->shared->order, w->memory);
    return PNR_OK;
}

static int wait_view(void *of, size_t at_least, pnr_queue *queue, uint64_t wait_ns)
{
    worker *w = of;

    (void)at_least, (void)queue;
    return pnr_bell_wait(&w->bells->samples, pnr_queue_has_record, w->views, PNR_LINGER_NS, wait_ns)
               ? PNR_OK
               : PNR_EAGAIN;
}

static bool is_half_full(const void *of)
{
    return atomic_load(&((const worker *)of)->shared->is_half_full);
}

static void release_view(void *of, const pnr_counted *counted)
{
    worker *w = of;

    (void)counted; /* finish_view sends the counts of this view */
    w->first_lent = (w->first_lent + 1) % w->n_copies;
    w->n_lent--;
}

/* Wakes the processing thread of the run. After the last result of a view, also wakes the
 * publishing thread. */
static void wake_run(void *of, bool is_idle)
{
    worker *w = of;

    (void)is_idle;
    pnr_bell_ring(&w->bells->samples);
    if (w->has_finished)
        pnr_bell_ring(&w->bells->results);
    w->has_finished = false;
}

/* Returns memory for a record. Waits while the queue is full. The run reads results at all times,
 * so the wait ends. */
static void *reserve_record(worker *w, size_t n_bytes)
{
    void *record;

    while ((record = pnr_queue_reserve(w->results, n_bytes)) == NULL) {
        wake_run(w, false);
        if (w->setup->plan.spin)
            pnr_pause();
        else
            pnr_queue_wait_space(w->results, n_bytes, patience_ns);
        atomic_fetch_add(&w->shared->turns, 1); /* the worker does not hang: it waits for the run */
    }
    return record;
}

static pnr_made *reserve_result(void *of)
{
    worker *w = of;

    w->made = reserve_record(w, pnr_made_most_bytes(w->shared->order.cells_bytes));
    return w->made;
}

static void commit_result(void *of, const float *cells)
{
    worker *w = of;

    w->made->head = (pnr_made_head){.kind = PNR_MADE_RESULT};
    pnr_queue_commit(w->results, pnr_made_finish(w->made, cells, w->shared->order.cells_bytes));
}

static void finish_view(void *of, const pnr_counted *counted)
{
    worker *w = of;
    pnr_shared_finish *record = reserve_record(w, sizeof *record);

    *record = (pnr_shared_finish){.head = {.kind = PNR_MADE_ACCOUNT}, .counted = *counted};
    pnr_queue_commit(w->results, sizeof *record);
    w->has_finished = true;
}

static void begin_turn(void *of)
{
    atomic_fetch_add_explicit(&((worker *)of)->shared->turns, 1, memory_order_relaxed);
}

static pnr_exchange exchange_of(worker *w)
{
    return (pnr_exchange){.of = w,
                          .acquire = acquire_view,
                          .peek = peek_view,
                          .wait = wait_view,
                          .is_half_full = is_half_full,
                          .release = release_view,
                          .reserve = reserve_result,
                          .commit = commit_result,
                          .finish = finish_view,
                          .wake = wake_run,
                          .turn = begin_turn};
}

/* --- open --- */

static int map_memory(worker *w, int fd, pnr_error *error)
{
    struct stat size;
    const pnr_shared_order *order;
    size_t bytes, bells_at;

    if (fstat(fd, &size) != 0 || (size_t)size.st_size < sizeof(pnr_shared) ||
        (w->shared = mmap(NULL, (size_t)size.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) ==
            MAP_FAILED) {
        w->shared = NULL;
        return pnr_error_set(error, PNR_EUSAGE, "%s is for pnradar itself", PNR_WORKER_OPTION);
    }
    order = &w->shared->order;
    if (order->bytes[0] != sizeof(pnr_shared) || order->bytes[1] != sizeof(pnr_made) ||
        getppid() != order->parent)
        return pnr_error_set(error, PNR_EUSAGE, "%s: this is not the worker of that run",
                             PNR_WORKER_OPTION);
    w->views = (pnr_queue *)((char *)w->shared + order->views_at);
    w->results = (pnr_queue *)((char *)w->shared + order->results_at);
    bells_at = pnr_shared_bells_at(order->capacity * order->sample_bytes, &bytes);
    w->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, order->samples_fd, 0);
    if (w->memory == MAP_FAILED) {
        w->memory = NULL;
        return pnr_error_set(error, PNR_ENOMEMORY, "worker: the samples cannot be mapped");
    }
    w->bells = (pnr_shared_bells *)((char *)w->memory + bells_at);
    return PNR_OK;
}

static int open_setup(worker *w, pnr_error *error)
{
    const pnr_shared_order *order = &w->shared->order;
    int code = pnr_config_parse(&w->config, (const char *)w->shared + order->config_at,
                                order->config_bytes, "worker", error);

    /* engine.method is for engine.name. Another engine chooses its method itself. */
    if (strcmp(order->engine, w->config.engine.name) != 0)
        snprintf(w->config.engine.method, sizeof w->config.engine.method, "auto");
    if (code != PNR_OK || (code = pnr_setup_create(&w->config, order->format, order->n_channels,
                                                   &w->setup, error)) != PNR_OK)
        return code;
    if (order->wants_power && w->setup->plan.want_profile == PNR_WANT_NONE)
        pnr_setup_want_power(w->setup, &w->config);
    w->setup->devices = order->devices;
    w->n_copies = pnr_setup_in_flight(w->setup);
    for (size_t i = 0; i <= w->n_copies; i++) {
        pnr_shared_view *copy = calloc(1, order->most_view_bytes);

        *(i < w->n_copies ? &w->lent[i] : &w->part) = copy;
        if (copy == NULL)
            return pnr_error_set(error, PNR_ENOMEMORY, "worker: out of memory");
    }
    return PNR_OK;
}

static int open_worker(worker *w, pnr_error *error)
{
    const pnr_shared_order *order = &w->shared->order;
    pnr_processing *p = &w->processing;
    int code = open_setup(w, error);

    if (code != PNR_OK)
        return code;
    w->exchange = exchange_of(w);
    p->config = &w->config;
    p->setup = w->setup;
    p->devices = pnr_devices_without(&order->devices, &order->left_out);
    p->lost = order->left_out;
    p->may_lack = order->may_lack_devices;
    p->is_live = order->is_live;
    p->max_dwells = order->max_dwells;
    p->exchange = &w->exchange;
    p->unreported = order->unreported;
    if ((code = pnr_processing_choose(p, order->engine, error)) != PNR_OK ||
        (code = pnr_processing_check_memory(p, order->capacity, true, error)) != PNR_OK)
        return code;
    if (p->ops->pin != NULL &&
        (code = p->ops->pin(w->memory, order->capacity * order->sample_bytes, error)) != PNR_OK)
        return code;
    w->is_pinned = p->ops->pin != NULL;
    return pnr_processing_open(p, error);
}

/* Tells the run that the worker is ready. */
static void report_ready(worker *w)
{
    pnr_shared *shared = w->shared;

    pnr_realtime_begin(&w->realtime, &w->config);
    pnr_realtime_touch_stack();
    pnr_realtime_enter_worker(&w->realtime, &w->config);
    shared->realtime = w->realtime.outcome;
    shared->ahead = w->processing.ahead;
    snprintf(shared->engine, sizeof shared->engine, "%s",
             pnr_correlator_name(w->processing.correlator));
    atomic_store(&shared->state, PNR_WORKER_READY);
    wake_run(w, true);
}

static void report_failure(worker *w, const pnr_error *error)
{
    w->shared->error = *error;
    atomic_store(&w->shared->state, PNR_WORKER_FAILED);
    wake_run(w, true);
}

/* Reports the device that was lost first. With CUDA, the other devices of the process are lost
 * after it. */
static void report_first_lost(worker *w)
{
    const pnr_device_state state = pnr_correlator_devices(w->processing.correlator);
    const size_t n_before = w->processing.lost.n;

    if (state.lost.n > n_before)
        atomic_store(&w->shared->first_lost, 1 + (size_t)state.lost.index[n_before]);
}

/* Processes views until the run sends the end of the stream. */
static int run_worker(worker *w, pnr_error *error)
{
    int code = open_worker(w, error);

    if (code != PNR_OK)
        return code;
    report_ready(w);
    code = pnr_processing_run(&w->processing);
    if (code == PNR_ELOST)
        report_first_lost(w);
    wake_run(w, true);
    return code == PNR_EEND ? PNR_OK
                            : pnr_error_set(error, code, "engine %s: %s", w->shared->engine,
                                            pnr_correlator_reason(w->processing.correlator));
}

/* Writes all devices of an engine to standard output. */
static void write_devices(const char *engine)
{
    pnr_devices devices = {0};
    pnr_error error = {0};
    const int code = pnr_engine_list_devices(engine, &devices, NULL, &error);

    if (code != PNR_OK)
        pnr_log(PNR_LOG_ERROR, "%s", error.text);
    else if (write(STDOUT_FILENO, &devices, sizeof devices) != (ssize_t)sizeof devices)
        _exit(pnr_error_exit(PNR_EIO));
    _exit(pnr_error_exit(code));
}

void pnr_worker_main(int argc, char **argv)
{
    worker *w;
    pnr_error error = {0};
    int code;

    if (argc < 3 || argc > 4 || strcmp(argv[1], PNR_WORKER_OPTION) != 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc == 4 && strcmp(argv[2], PNR_WORKER_DEVICES) == 0)
        write_devices(argv[3]);
    (void)signal(SIGINT, SIG_IGN); /* after a signal the run still processes the samples in its
                                    * ring */
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    if ((w = calloc(1, sizeof *w)) == NULL)
        _exit(pnr_error_exit(PNR_ENOMEMORY));
    pnr_config_init(&w->config);
    if ((code = map_memory(w, atoi(argv[2]), &error)) == PNR_OK &&
        (code = run_worker(w, &error)) != PNR_OK)
        report_failure(w, &error);
    else if (code != PNR_OK)
        pnr_log(PNR_LOG_ERROR, "%s", error.text);
    if (code != PNR_OK)
        _exit(pnr_error_exit(code)); /* a lost engine may hang when it is closed */
    pnr_processing_close(&w->processing);
    exit(0);
}
