/* SPDX-License-Identifier: MIT */
/* Sends views to the worker, reads its results, and starts another worker when this worker is
 * lost. */
#include "pipeline/isolation.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/module.h"
#include "base/pause.h"
#include "engine/plan.h"
#include "pipeline/pending.h"
#include "pipeline/worker_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* AFTER_ENGINE: number of views in use after the engine. The worker detects the echoes of one view,
 * and the run reads the results of another view. */
enum {
    AFTER_ENGINE = 2,
    MOST_VIEWS = PNR_MAX_IN_FLIGHT + AFTER_ENGINE + PNR_MOST_PENDING,
    MANY_DEATHS = 5,
    TWO = 2
};

static const uint64_t patience_ns = 10 * 1000 * 1000; /* longest wait between two checks of the
                                                       * worker */
static const uint64_t look_ns = 1000 * 1000;
static const uint64_t stop_patience_ns = PNR_NS_PER_S;
static const uint64_t minute_ns = 60 * (uint64_t)PNR_NS_PER_S;
static const uint64_t first_pause_ns = 20 * 1000 * 1000, most_pause_ns = 5 * (uint64_t)PNR_NS_PER_S;

struct pnr_isolation {
    pnr_isolation_parts parts;
    const pnr_exchange *exchange;
    int samples_fd;
    void *samples;
    size_t samples_bytes;
    bool has_lent_samples;   /* another isolation owns them */
    pnr_shared_bells *bells; /* in the same memory, after the samples */
    pnr_worker_process workers[TWO];
    pnr_worker_process *now, *next; /* now: the worker that gets views. next: the worker that will
                                     * replace it; NULL: none */
    char engines[TWO][48];          /* [0]: name of the first worker's engine; [1]: name of the cpu
                                     * engine that replaces it */
    pnr_realtime_outcome realtime;

    pnr_windows views[MOST_VIEWS];    /* view i is at index i mod MOST_VIEWS */
    uint64_t n_taken, n_sent, n_done; /* numbers of views acquired from the ring, sent to the
                                       * worker, and finished with all results */
    uint64_t next_sample;             /* results of all samples before this sample have arrived */
    uint64_t unreported;              /* number of samples from the last result to the end of the
                                       * last finished view */
    bool is_mad;                      /* the present worker has written impossible values */
    bool is_new;                      /* the present worker has sent no result */
    bool is_woken;                    /* the last wait found samples or results, but none could be
                                       * passed on */

    _Atomic uint64_t n_deaths;
    _Atomic bool is_degraded;
    uint64_t n_recent;               /* deaths since the engine was last changed */
    uint64_t deaths_ns[MANY_DEATHS]; /* times of the last deaths: death i is at index i mod
                                      * MANY_DEATHS */
    struct {
        unsigned n;  /* workers lost through this device, each less than a minute after the one
                      * before */
        uint64_t ns; /* time of the last of these losses */
    } suspects[PNR_MAX_DEVICES]; /* [i]: for devices.index[i] of the setup */
    uint64_t n_since_done;       /* deaths since the last finished view */
    uint64_t lost_ns;            /* when the worker before the present one was lost */
    uint64_t retry_ns;           /* when the wanted engine is tried again */
    uint64_t looked_ns;
    uint64_t stopped_ns; /* when *stop was seen; 0: not yet */
};

bool pnr_isolation_is_wanted(const pnr_config *config, bool is_live)
{
    const char *name = config->engine.name;

    if (config->engine.isolate != PNR_ISOLATE_AUTO)
        return config->engine.isolate == PNR_ISOLATE_YES;
    return is_live && (strcmp(name, "cuda") == 0 ||
                       (strcmp(name, "auto") == 0 && pnr_module_is_there("cuda")));
}

size_t pnr_isolation_views(const pnr_setup *setup)
{
    const pnr_plan *plan = &setup->plan;

    return pnr_setup_in_flight(setup) + AFTER_ENGINE +
           (pnr_plan_rows(plan) > 1 ? PNR_MOST_PENDING : 0);
}

size_t pnr_isolation_more_samples(const pnr_setup *setup)
{
    return AFTER_ENGINE * setup->plan.batch * pnr_plan_dwell_samples(&setup->plan);
}

void *pnr_isolation_memory(const pnr_isolation *i)
{
    return i->samples;
}

pnr_shared_bells *pnr_isolation_bells(const pnr_isolation *i)
{
    return i->bells;
}

const char *pnr_isolation_engine(const pnr_isolation *i)
{
    return i->engines[0];
}

const pnr_realtime_outcome *pnr_isolation_realtime(const pnr_isolation *i)
{
    return &i->realtime;
}

uint64_t pnr_isolation_deaths(const pnr_isolation *i)
{
    return atomic_load(&i->n_deaths);
}

bool pnr_isolation_is_degraded(const pnr_isolation *i)
{
    return atomic_load(&i->is_degraded);
}

/* --- results --- */

/* True if a dwell of the oldest view begins at this sample. */
static bool is_dwell_of_view(const pnr_isolation *i, uint64_t sample)
{
    const pnr_windows *view = &i->views[i->n_done % MOST_VIEWS];
    const uint64_t n_dwell = pnr_plan_dwell_samples(&i->parts.setup->plan);

    return i->n_done < i->n_sent && sample >= view->first_sample &&
           sample - view->first_sample < view->n_dwells * n_dwell &&
           (sample - view->first_sample) % n_dwell == 0;
}

/* True if a result of `bytes` bytes belongs to the oldest view, and its sizes and indices are in
 * range. A faulty worker may write any bytes. */
static bool is_possible(const pnr_isolation *i, const pnr_made *made, size_t bytes)
{
    const pnr_plan *plan = &i->parts.setup->plan;
    const pnr_detection *detection = &made->detection;
    bool is_good =
        is_dwell_of_view(i, made->sample) && bytes >= offsetof(pnr_made, detection.echoes) &&
        detection->n_echoes <= PNR_MAX_CANDIDATES && detection->n_outside == 0 &&
        pnr_made_bytes(made) <= bytes && made->dwell.n_periods >= 1 &&
        made->dwell.n_periods <= pnr_plan_windows(plan) &&
        (made->cells_at == 0 || (plan->want_profile != PNR_WANT_NONE && made->cells_at < bytes &&
                                 pnr_plan_profile_bytes(plan) <= bytes - made->cells_at));

    for (size_t e = 0; is_good && e < detection->n_echoes; e++)
        is_good = detection->echoes[e].code < plan->n_codes;
    return is_good;
}

/* True if the counts are those of the oldest view, and the numbers of devices are in range. */
static bool are_possible(const pnr_isolation *i, const pnr_shared_finish *finish, size_t bytes)
{
    const pnr_windows *view = &i->views[i->n_done % MOST_VIEWS];
    const pnr_counted *counted = &finish->counted;
    const size_t n_samples = i->parts.setup->plan.n_samples;

    return i->n_done < i->n_sent && bytes >= sizeof *finish &&
           counted->account.windows == view->n_dwells * view->n_periods &&
           counted->account.positions == counted->account.windows * n_samples &&
           counted->devices.used.n <= PNR_MAX_DEVICES && counted->devices.lost.n <= PNR_MAX_DEVICES;
}

/* Passes a result to the exchange, unless an earlier worker has already sent this result. */
static void pass_result(pnr_isolation *i, const pnr_made *from)
{
    pnr_made *made;

    if (from->sample < i->next_sample)
        return;
    made = i->exchange->reserve(i->exchange->of);
    memcpy(made, from, pnr_made_bytes(from));
    made->is_restarted = i->is_new && pnr_isolation_deaths(i) > 0;
    made->engine = pnr_isolation_is_degraded(i) ? i->engines[1] : NULL;
    i->exchange->commit(i->exchange->of, pnr_made_cells(from));
    i->next_sample = from->sample + pnr_plan_dwell_samples(&i->parts.setup->plan);
    i->is_new = false;
}

static void finish_view(pnr_isolation *i, const pnr_counted *counted)
{
    const pnr_windows *view = &i->views[i->n_done % MOST_VIEWS];

    i->next_sample = view->first_sample +
                     view->n_dwells * (uint64_t)pnr_plan_dwell_samples(&i->parts.setup->plan);
    i->exchange->release(i->exchange->of, counted);
    i->exchange->finish(i->exchange->of, counted);
    i->unreported = counted->unreported;
    i->n_since_done = 0;
    i->n_done++;
}

/* Passes on a record that the worker has made. After an impossible record, drops all later
 * records. */
static void take_record(pnr_isolation *i, const pnr_made_head *record, size_t bytes)
{
    const pnr_made *made = (const pnr_made *)record;
    const pnr_shared_finish *finish = (const pnr_shared_finish *)record;
    const bool is_result = bytes >= sizeof *record && record->kind == PNR_MADE_RESULT;

    i->is_mad |= is_result ? !is_possible(i, made, bytes) : !are_possible(i, finish, bytes);
    if (i->is_mad)
        return;
    if (is_result)
        pass_result(i, made);
    else
        finish_view(i, &finish->counted);
}

/* Reads all results of the present worker. Returns false if there are none. */
static bool take_results(pnr_isolation *i)
{
    const pnr_made_head *record;
    size_t n = 0;

    while ((record = pnr_queue_front(i->now->results)) != NULL) {
        take_record(i, record, pnr_queue_front_bytes(i->now->results));
        pnr_queue_pop(i->now->results);
        if (++n % PNR_MADE_TOGETHER == 0)
            i->exchange->wake(i->exchange->of, false);
    }
    if (n > 0)
        i->exchange->wake(i->exchange->of, false);
    return n > 0;
}

/* --- a lost worker --- */

static bool has_stand_in(const pnr_isolation *i)
{
    return strncmp(i->engines[0], "cpu/", 4) != 0;
}

static const char *engine_name(const pnr_isolation *i, bool is_degraded)
{
    return is_degraded ? "cpu" : i->parts.config->engine.name;
}

/* Counts the loss of the present worker for the device that caused this loss. */
static void note_suspect(pnr_isolation *i, uint64_t now)
{
    const size_t first_lost = atomic_load(&i->now->shared->first_lost);
    const pnr_devices *devices = &i->parts.setup->devices;

    for (size_t d = 0; d < devices->n; d++)
        if (devices->index[d] + (size_t)1 == first_lost) {
            i->suspects[d].n = now - i->suspects[d].ns < minute_ns ? i->suspects[d].n + 1 : 1;
            i->suspects[d].ns = now;
        }
}

/* Returns the devices that have caused the loss of at least two workers, the last one less than a
 * minute ago. If these are all devices, returns none. */
static pnr_devices broken_devices(const pnr_isolation *i, uint64_t now)
{
    const pnr_devices *devices = &i->parts.setup->devices;
    pnr_devices broken = {0};

    for (size_t d = 0; d < devices->n; d++)
        if (i->suspects[d].n > 1 && now - i->suspects[d].ns < minute_ns)
            pnr_devices_add(&broken, devices->index[d]);
    if (broken.n == devices->n)
        broken.n = 0;
    return broken;
}

/* Starts a worker with the wanted engine, or with cpu if is_degraded. A worker that cannot be
 * started counts as lost at once. */
static void start_worker(pnr_isolation *i, pnr_worker_process *w, bool is_degraded)
{
    const pnr_devices broken = broken_devices(i, pnr_clock_ns());

    pnr_worker_start(w, engine_name(i, is_degraded), pnr_isolation_deaths(i) > 0 ? &broken : NULL,
                     i->unreported);
}

/* Counts a death. Returns true if it is the fifth in a minute. */
static bool is_too_often(pnr_isolation *i, uint64_t now)
{
    const uint64_t n = ++i->n_recent;

    atomic_fetch_add(&i->n_deaths, 1);
    i->deaths_ns[n % MANY_DEATHS] = now;
    return n >= MANY_DEATHS && now - i->deaths_ns[(n + 1) % MANY_DEATHS] < minute_ns;
}

/* Replaces the wanted engine by the cpu engine. */
static void degrade(pnr_isolation *i, uint64_t now)
{
    atomic_store(&i->is_degraded, true);
    i->retry_ns = now + minute_ns;
    i->n_recent = 0;
    pnr_event_post(i->parts.events, PNR_EVENT_DEGRADED, i->next_sample,
                   (double)pnr_isolation_deaths(i), 0,
                   "%d workers lost within a minute: the cpu engine takes over from %s, which is "
                   "tried again every minute",
                   MANY_DEATHS, i->engines[0]);
}

/* Returns the time to wait before a worker is started, when n workers before it have failed. */
static uint64_t pause_before(uint64_t n)
{
    const uint64_t pause = n < 2 ? 0 : n < 20 ? first_pause_ns << (n - 2) : most_pause_ns;

    return pause < most_pause_ns ? pause : most_pause_ns;
}

/* Ends the present worker. The next worker begins at the first view that does not have all its
 * results. */
static void replace_worker(pnr_isolation *i, const char *reason)
{
    const uint64_t now = pnr_clock_ns();

    pnr_worker_kill(i->now);
    note_suspect(i, now);
    (void)take_results(i); /* results that the worker has finished */
    pnr_event_post(i->parts.events, PNR_EVENT_WORKER_LOST, i->next_sample,
                   (double)(pnr_isolation_deaths(i) + 1), (double)(i->n_taken - i->n_done),
                   "worker lost: %.160s; another one continues at sample %llu", reason,
                   (unsigned long long)i->next_sample);
    if (is_too_often(i, now) && has_stand_in(i) && !pnr_isolation_is_degraded(i))
        degrade(i, now);
    i->n_since_done++;
    i->n_sent = i->n_done;
    i->is_new = true;
    i->is_mad = false;
    i->lost_ns = now;
    i->now->due_ns = now + pause_before(i->n_since_done);
}

/* --- views --- */

static bool may_take_view(const pnr_isolation *i)
{
    return i->n_taken - i->n_done < pnr_isolation_views(i->parts.setup);
}

/* Returns the least number of samples in a part of the next dwell that is sent now; 0: no part is
 * sent now. */
static size_t part_to_send(const pnr_isolation *i)
{
    return i->now->is_ready && i->next == NULL && i->n_sent == i->n_taken &&
                   i->n_taken - i->n_done < pnr_setup_in_flight(i->parts.setup)
               ? i->now->shared->ahead
               : 0;
}

/* Acquires views from the ring, and sends views to the worker while its queue has space. Returns
 * the code of the ring. */
static int send_views(pnr_isolation *i, bool *is_any)
{
    int code = PNR_EAGAIN;

    while (may_take_view(i) &&
           (code = i->exchange->acquire(i->exchange->of, i->parts.max_dwells,
                                        &i->views[i->n_taken % MOST_VIEWS])) == PNR_OK)
        i->n_taken++;
    while (i->now->is_ready && i->next == NULL && i->n_sent < i->n_taken &&
           pnr_worker_send(i->now, PNR_VIEW_WHOLE, &i->views[i->n_sent % MOST_VIEWS])) {
        i->n_sent++;
        *is_any = true;
    }
    return code;
}

/* Sends the part of the next dwell that has already arrived. */
static void send_part(pnr_isolation *i, bool *is_any)
{
    const size_t ahead = part_to_send(i);
    pnr_windows part;

    if (ahead > 0 && i->exchange->peek(i->exchange->of, ahead, &part) == PNR_OK)
        *is_any |= pnr_worker_send(i->now, PNR_VIEW_PART, &part);
}

/* --- the loop --- */

/* Copies the engine's name when a worker is ready. Reports the start if the worker replaces a lost
 * one. */
static void welcome_worker(pnr_isolation *i)
{
    const pnr_worker_process *w = i->now;

    char *name = i->engines[pnr_isolation_is_degraded(i)];

    if (name[0] == '\0') /* written only once, because the publishing thread reads it */
        snprintf(name, sizeof i->engines[0], "%s", w->shared->engine);
    if (i->lost_ns != 0)
        pnr_event_post(i->parts.events, PNR_EVENT_WORKER_STARTED, i->next_sample,
                       (double)(pnr_clock_ns() - i->lost_ns) * 1e-9, 0,
                       "worker started: %s, process %d, %.3g s after the last one was lost",
                       w->shared->engine, (int)w->pid,
                       (double)(pnr_clock_ns() - i->lost_ns) * 1e-9);
}

/* While the cpu engine replaces the wanted engine, tries the wanted engine again in a second
 * worker. The second worker takes over when it is ready and the first worker has finished its
 * views. */
static void retry_engine(pnr_isolation *i, uint64_t now)
{
    pnr_worker_process *other = &i->workers[i->now == &i->workers[0]];
    char reason[256];

    if (!pnr_isolation_is_degraded(i))
        return;
    if (!other->is_started && now >= i->retry_ns) {
        i->retry_ns = now + minute_ns;
        start_worker(i, other, false);
    }
    if (!other->is_started)
        return;
    if (pnr_worker_is_lost(other, false, reason, sizeof reason)) {
        pnr_log(PNR_LOG_INFO, "%s cannot be used again yet: %s", i->engines[0], reason);
        pnr_worker_kill(other);
        i->next = NULL;
        return;
    }
    if (other->is_ready)
        i->next = other; /* sends no more views to the present worker */
    if (i->next == NULL || i->n_done < i->n_sent)
        return;
    pnr_worker_kill(i->now);
    i->now = i->next;
    i->next = NULL;
    i->is_new = true;
    i->lost_ns = 0;
    atomic_store(&i->is_degraded, false);
    i->n_recent = 0;
    pnr_event_post(i->parts.events, PNR_EVENT_RESTORED, i->next_sample, 0, 0,
                   "the engine %s works again", i->engines[0]);
}

/* Returns true if the run was stopped more than a second ago and no worker is ready. */
static bool has_given_up(pnr_isolation *i)
{
    if (i->stopped_ns == 0 && i->parts.stop != NULL &&
        __atomic_load_n(i->parts.stop, __ATOMIC_RELAXED) != 0)
        i->stopped_ns = i->looked_ns;
    return i->stopped_ns > 0 && !i->now->is_ready &&
           i->looked_ns - i->stopped_ns > stop_patience_ns;
}

/* Checks the worker, at most once in look_ns: starts it, reports that it is ready, or replaces
 * it. */
static void look_after_worker(pnr_isolation *i)
{
    const uint64_t now = pnr_clock_ns();
    pnr_worker_process *w;
    char reason[256];
    bool was_ready;

    if (now - i->looked_ns < look_ns)
        return;
    i->looked_ns = now;
    retry_engine(i, now);
    w = i->now;
    was_ready = w->is_ready;
    if (!w->is_started) {
        if (now >= w->due_ns)
            start_worker(i, w, pnr_isolation_is_degraded(i));
        return;
    }
    if (pnr_worker_is_lost(w, i->n_done < i->n_sent, reason, sizeof reason)) {
        replace_worker(i, reason);
        return;
    }
    if (i->is_mad || pnr_queue_is_broken(w->results)) {
        replace_worker(i, "its results cannot be");
        return;
    }
    if (w->is_ready && !was_ready)
        welcome_worker(i);
    atomic_store(&w->shared->is_half_full, i->exchange->is_half_full(i->exchange->of));
}

static void wait_for_results(pnr_isolation *i)
{
    (void)pnr_bell_wait(&i->bells->samples, pnr_queue_has_record, i->now->results, 0, patience_ns);
}

/* Waits for samples or results. While no view can be acquired, waits for results alone. */
static void wait_for_work(pnr_isolation *i, bool is_over)
{
    if (i->n_taken == i->n_done)
        i->exchange->wake(i->exchange->of, true);
    if (i->parts.setup->plan.spin) {
        pnr_pause();
    } else if (i->is_woken || is_over || !may_take_view(i)) {
        i->is_woken = false;
        wait_for_results(i);
    } else {
        i->is_woken = i->exchange->wait(i->exchange->of, part_to_send(i), i->now->results,
                                        patience_ns) == PNR_OK;
    }
}

/* Tells the worker that the stream has ended. A worker that does not react is killed later. */
static void end_worker(pnr_isolation *i)
{
    static const pnr_windows none;

    i->now->is_ending = pnr_worker_send(i->now, PNR_VIEW_END, &none);
    pnr_bell_ring(&i->bells->samples);
}

int pnr_isolation_run(pnr_isolation *i, const pnr_exchange *exchange)
{
    i->exchange = exchange;
    for (;;) {
        bool is_any = take_results(i);

        exchange->turn(exchange->of);
        look_after_worker(i);

        const int code = send_views(i, &is_any);

        send_part(i, &is_any);
        if (is_any)
            pnr_bell_ring(&i->bells->samples);
        if (code == PNR_EEND && i->n_done == i->n_taken) {
            end_worker(i);
            return PNR_EEND;
        }
        if ((code == PNR_EEND && i->n_since_done >= MANY_DEATHS) || has_given_up(i))
            return PNR_ELOST;
        i->is_woken &= !is_any;
        if (!is_any)
            wait_for_work(i, code == PNR_EEND);
    }
}

bool pnr_isolation_drop(pnr_isolation *i, pnr_windows *out)
{
    if (i->n_done == i->n_taken)
        return false;
    *out = i->views[i->n_done++ % MOST_VIEWS];
    return true;
}

uint64_t pnr_isolation_unreported(const pnr_isolation *i)
{
    return i->unreported;
}

/* --- create and destroy --- */

/* Allocates all pages now, as huge pages if the system supports them for shared memory. Returns
 * false if there is not enough memory. */
static bool populate(void *memory, size_t n_bytes)
{
    (void)madvise(memory, n_bytes, MADV_HUGEPAGE); /* only a hint: an error does no harm */
    if (madvise(memory, n_bytes, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL)
        return false;
    memset(memory, 0, n_bytes); /* Linux before 5.14 */
    return true;
}

static int open_samples(pnr_isolation *i, pnr_error *error)
{
    const pnr_isolation *before = i->parts.before;
    size_t bells_at;

    if (before != NULL) {
        i->samples_fd = before->samples_fd;
        i->samples = before->samples;
        i->samples_bytes = before->samples_bytes;
        i->bells = before->bells;
        i->has_lent_samples = true;
        return PNR_OK;
    }
    bells_at = pnr_shared_bells_at(i->parts.capacity * pnr_plan_sample_bytes(&i->parts.setup->plan),
                                   &i->samples_bytes);
    i->samples_fd = memfd_create("pnradar samples", MFD_CLOEXEC);
    if (i->samples_fd < 0 || ftruncate(i->samples_fd, (off_t)i->samples_bytes) != 0 ||
        (i->samples = mmap(NULL, i->samples_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                           i->samples_fd, 0)) == MAP_FAILED)
        i->samples = NULL;
    if (i->samples == NULL || !populate(i->samples, i->samples_bytes))
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a ring of %zu bytes",
                             i->samples_bytes);
    i->bells = (pnr_shared_bells *)((char *)i->samples + bells_at);
    return PNR_OK;
}

/* True if the cpu engine now replaces the wanted engine, and the new configuration has the same
 * engine.name. */
static bool begins_degraded(const pnr_isolation *i)
{
    const pnr_isolation *before = i->parts.before;

    return before != NULL && pnr_isolation_is_degraded(before) &&
           strcmp(i->parts.config->engine.name, before->parts.config->engine.name) == 0;
}

/* Waits until the first worker is ready. */
static int wait_for_worker(pnr_isolation *i, pnr_error *error)
{
    pnr_worker_process *w = i->now;
    char reason[256];

    while (!w->is_ready) {
        if (pnr_worker_is_lost(w, false, reason, sizeof reason)) {
            if (error != NULL && w->shared->error.code != PNR_OK)
                *error = w->shared->error;
            else
                pnr_error_set(error, PNR_EUNAVAILABLE, "engine.isolate: %s", reason);
            return error != NULL ? error->code : PNR_EUNAVAILABLE;
        }
        if (i->parts.stop != NULL && __atomic_load_n(i->parts.stop, __ATOMIC_RELAXED) != 0)
            return PNR_EEND;
        wait_for_results(i);
    }
    welcome_worker(i);
    i->realtime = w->shared->realtime;
    return PNR_OK;
}

int pnr_isolation_create(const pnr_isolation_parts *parts, pnr_isolation **out, pnr_error *error)
{
    pnr_isolation *i = calloc(1, sizeof *i);
    int code;

    *out = NULL;
    if (i == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine.isolate: out of memory");
    i->parts = *parts;
    i->samples_fd = -1;
    i->now = &i->workers[0];
    code = open_samples(i, error);
    for (size_t w = 0; w < TWO && code == PNR_OK; w++)
        code = pnr_worker_open(&i->workers[w], &i->parts, i->samples_fd, error);
    if (code == PNR_OK) {
        if (begins_degraded(i)) {
            atomic_store(&i->is_degraded, true);
            memcpy(i->engines[0], parts->before->engines[0], sizeof i->engines[0]);
        }
        start_worker(i, i->now, pnr_isolation_is_degraded(i));
        code = wait_for_worker(i, error);
    }
    if (code != PNR_OK) {
        pnr_isolation_destroy(i);
        return code;
    }
    *out = i;
    return PNR_OK;
}

void pnr_isolation_hand_over(pnr_isolation *from, pnr_isolation *to)
{
    to->has_lent_samples = false;
    from->has_lent_samples = true;
    atomic_store(&to->n_deaths, pnr_isolation_deaths(from));
    memcpy(to->deaths_ns, from->deaths_ns, sizeof to->deaths_ns);
    to->n_recent = from->n_recent;
    to->retry_ns = from->retry_ns;
}

void pnr_isolation_destroy(pnr_isolation *i)
{
    if (i == NULL)
        return;
    for (size_t w = 0; w < TWO; w++)
        pnr_worker_close(&i->workers[w]);
    if (i->samples != NULL && !i->has_lent_samples)
        munmap(i->samples, i->samples_bytes);
    if (i->samples_fd >= 0 && !i->has_lent_samples)
        close(i->samples_fd);
    free(i);
}
