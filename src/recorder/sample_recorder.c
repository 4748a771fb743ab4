/* SPDX-License-Identifier: MIT */
/* The recorder of samples. Blocks of samples go through a queue to a thread that writes recordings.
 * Each block has its position. Any loss is therefore a jump of the position, and begins a new
 * capture. */
#include "recorder/sample_recorder.h"

#include "base/clock.h"
#include "base/log.h"
#include "recorder/module.h"
#include "recorder/recording.h"
#include "ring/queue.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BLOCK_BYTES = 1 << 18, /* largest number of bytes of samples in a block */
    MIN_QUEUE_BYTES = 1 << 22,
    EVENT_QUEUE_BYTES = 1 << 14,
    SAME_TIME = 1000, /* largest number of recordings with the same time in their names */
    N_TRIGGERS = 3
};

static const uint64_t stuck_patience_ns = 500 * 1000 * 1000;
static const uint64_t poll_ns = 10 * 1000 * 1000, full_ns = 1000 * 1000,
                      retry_after_ns = 1000000000;

#define TRIGGER_WORD(name, word) [PNR_TRIGGER_##name] = word,
static const char *const trigger_words[N_TRIGGERS] = {PNR_TRIGGERS(TRIGGER_WORD)};

typedef struct block {
    uint64_t first;
    int64_t start_utc_ns;
    size_t n_samples;
} block; /* the samples follow in memory */

typedef struct event {
    pnr_trigger trigger;
    uint64_t position;
} event;

struct pnr_sample_recorder {
    const pnr_config *config;
    pnr_events *told;
    bool can_wait, is_folder, is_triggered;
    size_t sample_bytes, block_samples;
    pnr_rational rate_hz;
    uint64_t part_samples;  /* largest number of samples in a recording */
    uint64_t before, after; /* samples that are recorded around an event */
    uint64_t kept;          /* number of newest samples that stay in the queue for late events */
    double late;            /* fill of the queue, 0 .. 1, above which no hash is computed */
    pthread_t thread;
    bool is_running;
    pnr_queue *blocks;
    pnr_queue *events[2]; /* events of the publishing thread, and of the acquisition thread */
    _Atomic bool ended;
    _Atomic bool is_full;         /* the queue was full; the recorder's thread clears this flag */
    _Atomic uint64_t newest;      /* position after the newest sample */
    _Atomic uint64_t searched;    /* all events before this position have been reported */
    _Atomic uint64_t n_refused;   /* samples for which the queue had no space */
    _Atomic uint64_t n_unwritten; /* samples that could not be written */

    /* members that only the thread uses */
    const pnr_recording_kind *kind;
    void *recording; /* state that kind->create has made */
    bool is_open;
    uint64_t n_in_part; /* samples in the open recording */
    uint64_t next;      /* position after the last sample written */
    uint64_t n_dropped; /* samples that the recording dropped, and that are counted as missed */
    pnr_error error;
    event cause;          /* the event that began the present recording */
    uint64_t from, until; /* positions to record, from .. until - 1; from = until: none */
    uint64_t done;        /* position after the last sample recorded around an event */
    uint64_t n_recorded, n_parts;
    bool is_failing;
    uint64_t retry_ns; /* time of the next try */
    uint64_t n_missed; /* samples not recorded since the failure began */
    uint64_t n_told;   /* refused samples that have been reported */
    uint64_t told_ns;
    uint64_t stuck_at; /* value of `searched` when the queue was found full */
    uint64_t stuck_ns; /* time at which the queue was first full with this value */
};

/* --- names --- */

/* Writes the path of a new recording: FOLDER/<stream>-<UTC>. The name of the second recording of
 * the same time ends with -2, and so on. */
static void name_part(const pnr_sample_recorder *r, int64_t utc_ns, unsigned number,
                      char out[PATH_MAX])
{
    const char *folder = r->config->recorder.samples;
    char time[PNR_TIME_LEN], again[16] = "";
    int y, month, d, h, m, s;

    pnr_time_format(utc_ns, time);
    (void)sscanf(time, "%d-%d-%dT%d:%d:%d", &y, &month, &d, &h, &m, &s);
    if (number > 1)
        snprintf(again, sizeof again, "-%u", number);
    snprintf(out, PATH_MAX, "%s%s%s-%04d%02d%02dT%02d%02d%02d.%.3sZ%s", folder,
             folder[strlen(folder) - 1] == '/' ? "" : "/", r->config->stream.name, y, month, d, h,
             m, s, strchr(time, '.') + 1, again);
}

/* Opens a recording whose first sample is at this position. */
static int open_part(pnr_sample_recorder *r, uint64_t first, int64_t start_utc_ns)
{
    const int64_t utc_ns = start_utc_ns != PNR_RECORDING_NO_TIME
                               ? start_utc_ns + pnr_rational_time_ns(r->rate_hz, first)
                               : pnr_clock_utc_ns();
    int code = PNR_ECONFIG;
    char path[PATH_MAX];

    if (!r->is_folder)
        code = r->kind->open(r->recording, r->config->recorder.samples, &r->error);
    for (unsigned i = 1; r->is_folder && code == PNR_ECONFIG && i <= SAME_TIME; i++) {
        name_part(r, utc_ns, i, path);
        code = r->kind->open(r->recording, path, &r->error);
    }
    if (code == PNR_OK && r->is_triggered && r->kind->label != NULL)
        r->kind->label(r->recording, trigger_words[r->cause.trigger], r->cause.position);
    r->is_open = code == PNR_OK;
    r->n_in_part = 0;
    return code;
}

/* --- failures --- */

static void miss(pnr_sample_recorder *r, uint64_t n_samples)
{
    r->n_missed += n_samples;
    atomic_fetch_add(&r->n_unwritten, n_samples);
}

/* Counts samples that the recording accepted and then could not write. Returns the outcome of its
 * latest file. */
static int miss_dropped(pnr_sample_recorder *r)
{
    uint64_t n = 0;
    const int code =
        r->kind->outcome != NULL ? r->kind->outcome(r->recording, &n, &r->error) : PNR_OK;

    miss(r, n - r->n_dropped);
    r->n_recorded -= n - r->n_dropped;
    r->n_dropped = n;
    return code;
}

static void begin_failure(pnr_sample_recorder *r, uint64_t position)
{
    if (!r->is_failing)
        pnr_event_post(r->told, PNR_EVENT_RECORDING_STOPS, position, 0, 0,
                       "recording-stops: %s; tried again every second", r->error.text);
    r->is_failing = true;
    r->retry_ns = r->kind->outcome == NULL ? pnr_clock_ns() + retry_after_ns : 0;
}

static void end_failure(pnr_sample_recorder *r, uint64_t position)
{
    if (r->is_failing)
        pnr_event_post(r->told, PNR_EVENT_RECORDING_RESUMES, position, (double)r->n_missed, 0,
                       "recording-resumes: %" PRIu64 " samples are not recorded", r->n_missed);
    r->is_failing = false;
    r->n_missed = 0;
}

/* Posts an event with the number of samples that the queue has refused, at most once a second. */
static void tell_refused(pnr_sample_recorder *r)
{
    const uint64_t n = atomic_load(&r->n_refused), now = pnr_clock_ns();

    if (n == r->n_told || now < r->told_ns + retry_after_ns)
        return;
    pnr_event_post(r->told, PNR_EVENT_RECORDING_LATE, r->next, (double)(n - r->n_told), 0,
                   "recording-late: the disk is slower than the stream for longer than "
                   "recorder.buffer_s = %.10g: %" PRIu64 " samples are not recorded",
                   r->config->recorder.buffer_s, n - r->n_told);
    r->n_told = n;
    r->told_ns = now;
}

/* --- the thread --- */

/* Ends the open recording. */
static void close_part(pnr_sample_recorder *r)
{
    if (!r->is_open)
        return;
    r->is_open = false;
    r->n_parts += r->n_in_part > 0;
    if (r->kind->finish(r->recording, &r->error) != PNR_OK && pnr_log_is_ready())
        pnr_log(PNR_LOG_WARN, "%s", r->error.text);
    (void)miss_dropped(r);
}

/* Appends to the open recording, or to a new one. */
static int append_samples(pnr_sample_recorder *r, uint64_t position, int64_t start_utc_ns,
                          const void *samples, size_t n_samples, size_t *n_written)
{
    const bool is_late = !r->can_wait && pnr_queue_fill(r->blocks) > r->late;
    int code = r->is_open ? PNR_OK : open_part(r, position, start_utc_ns);

    *n_written = 0;
    if (code != PNR_OK)
        return code;
    if (is_late && r->kind->skip_hash != NULL)
        r->kind->skip_hash(r->recording);
    return r->kind->append(r->recording, position, start_utc_ns, samples, n_samples, n_written,
                           &r->error);
}

/* Records n_samples samples of a block, from sample `skip` of the block on. */
static void record_samples(pnr_sample_recorder *r, const block *b, size_t skip, size_t n_samples)
{
    const uint64_t position = b->first + skip;
    const char *samples = (const char *)(b + 1) + skip * r->sample_bytes;
    size_t n_written = 0;
    int code;

    if (r->is_failing && pnr_clock_ns() < r->retry_ns) {
        miss(r, n_samples);
        return;
    }
    if (r->is_folder && r->n_in_part + n_samples > r->part_samples)
        close_part(r);
    code = append_samples(r, position, b->start_utc_ns, samples, n_samples, &n_written);
    if (code == PNR_EDATA && r->is_folder) { /* another gap needs another recording */
        close_part(r);
        code = append_samples(r, position, b->start_utc_ns, samples, n_samples, &n_written);
    }
    r->next = position + n_written;
    r->n_in_part += n_written;
    r->n_recorded += n_written;
    if (code == PNR_OK)
        code = miss_dropped(r);
    (code == PNR_OK ? end_failure : begin_failure)(r, position);
    if (n_written < n_samples)
        miss(r, n_samples - n_written);
}

/* Returns the queue with the earliest event. NULL: no event waits. */
static pnr_queue *earliest_event(const pnr_sample_recorder *r)
{
    const event *a = pnr_queue_front(r->events[0]), *b = pnr_queue_front(r->events[1]);

    if (a == NULL && b == NULL)
        return NULL;
    return r->events[b != NULL && (a == NULL || b->position < a->position)];
}

/* Reads the waiting events in order, and extends the interval [from, until) to the samples around
 * each event. If the interval is empty, the next event begins it. Stops at an event whose samples
 * do not touch the interval. */
static void take_events(pnr_sample_recorder *r)
{
    pnr_queue *queue;

    while ((queue = earliest_event(r)) != NULL) {
        const event *e = pnr_queue_front(queue);
        const uint64_t from = e->position > r->before ? e->position - r->before : 0;
        const uint64_t until = e->position + r->after;

        if (r->from == r->until) {
            r->cause = *e;
            r->from = from;
            r->until = until;
        } else if (from > r->until) {
            return; /* this event begins another recording */
        } else {    /* an echo may lie before a loss that was reported earlier */
            r->from = from < r->from ? from : r->from;
            r->until = until > r->until ? until : r->until;
        }
        pnr_queue_pop(queue);
    }
}

/* True if the queue has been full for stuck_patience_ns without new results. The source of a file
 * then waits for space in the queue, so no further result is possible. */
static bool is_stuck(pnr_sample_recorder *r, uint64_t searched)
{
    if (!atomic_exchange(&r->is_full, false))
        return false;
    if (r->stuck_ns == 0 || searched != r->stuck_at) {
        r->stuck_at = searched;
        r->stuck_ns = pnr_clock_ns();
    }
    return pnr_clock_ns() - r->stuck_ns > stuck_patience_ns;
}

/* True if the samples before `end` no longer wait for events. The samples of a live stream wait
 * until `kept` newer samples have arrived. The samples of a file wait for their results. A full
 * queue ends the wait. */
static bool is_past(pnr_sample_recorder *r, uint64_t end)
{
    const uint64_t searched = atomic_load(&r->searched);

    if (r->can_wait)
        return end + r->before <= searched || is_stuck(r, searched);
    return end + r->kept <= atomic_load(&r->newest) || atomic_exchange(&r->is_full, false);
}

/* Records those samples of the oldest block that are near an event. True: the block is not needed
 * any more. */
static bool follow_events(pnr_sample_recorder *r, const block *b, bool is_over)
{
    const uint64_t end = b->first + b->n_samples;
    uint64_t from, until;

    take_events(r);
    if (r->from == r->until)
        return is_over || is_past(r, end);
    from = r->from > r->done ? r->from : r->done;
    from = from > b->first ? from : b->first;
    until = end < r->until ? end : r->until;
    if (from < until) {
        record_samples(r, b, (size_t)(from - b->first), (size_t)(until - from));
        r->done = until;
    }
    if (end < r->until)
        return true;
    if (!is_over && !is_past(r, r->until + 1))
        return false; /* an event that extends the interval may still be reported */
    if (!r->kind->is_continued)
        close_part(r);
    r->from = r->until = 0;
    return false; /* another event may be in this block */
}

static void *record_thread(void *argument)
{
    pnr_sample_recorder *r = argument;

    for (;;) {
        const bool is_over = atomic_load(&r->ended); /* read before the queue, because no block is
                                                      * added after the end */
        const block *b = pnr_queue_front(r->blocks);
        bool is_done = b != NULL;

        if (b == NULL && is_over)
            break;
        if (b != NULL && r->is_triggered)
            is_done = follow_events(r, b, is_over);
        else if (b != NULL)
            record_samples(r, b, 0, b->n_samples);
        if (is_done)
            pnr_queue_pop(r->blocks);
        else
            (void)pnr_clock_sleep_until(pnr_clock_ns() + poll_ns, NULL);
        tell_refused(r);
    }
    close_part(r);
    return NULL;
}

/* --- the other threads --- */

void pnr_sample_recorder_add(pnr_sample_recorder *r, uint64_t position, int64_t start_utc_ns,
                             const void *samples, size_t n_samples)
{
    const char *from = samples;

    while (n_samples > 0) {
        const size_t n = n_samples < r->block_samples ? n_samples : r->block_samples;
        const size_t n_bytes = sizeof(block) + n * r->sample_bytes;
        block *b = pnr_queue_reserve(r->blocks, n_bytes);

        if (b == NULL)
            atomic_store(&r->is_full, true);
        if (b == NULL && r->can_wait) {
            pnr_queue_wait_space(r->blocks, n_bytes, full_ns);
            continue;
        }
        if (b == NULL) {
            atomic_fetch_add(&r->n_refused, n_samples);
            break;
        }
        *b = (block){position, start_utc_ns, n};
        memcpy(b + 1, from, n * r->sample_bytes);
        pnr_queue_commit(r->blocks, n_bytes);
        from += n * r->sample_bytes;
        position += n;
        n_samples -= n;
        atomic_store(&r->newest, position);
    }
}

void pnr_sample_recorder_trigger(pnr_sample_recorder *r, pnr_trigger trigger, uint64_t position)
{
    pnr_queue *queue = r->events[trigger == PNR_TRIGGER_LOSS];
    event *e = r->is_triggered ? pnr_queue_reserve(queue, sizeof *e) : NULL;

    if (e == NULL) /* no samples are recorded around events, or the queue is full */
        return;
    *e = (event){trigger, trigger == PNR_TRIGGER_SIGNAL ? atomic_load(&r->newest) : position};
    pnr_queue_commit(queue, sizeof *e);
}

void pnr_sample_recorder_search(pnr_sample_recorder *r, uint64_t position)
{
    atomic_store(&r->searched, position);
}

uint64_t pnr_sample_recorder_lost(const pnr_sample_recorder *r)
{
    return atomic_load(&r->n_refused) + atomic_load(&r->n_unwritten);
}

/* --- create and destroy --- */

static int find_kind(const pnr_config *config, const pnr_recording_kind **out, pnr_error *error)
{
    const void *found = &pnr_recording_sigmf;
    const int code = config->recorder.format == PNR_RECORD_DIGITAL_RF
                         ? pnr_recorder_module_load("recorder-digital-rf", PNR_RECORDING_SYMBOL,
                                                    "recorder.format = digital-rf", "libhdf5-103-1",
                                                    &found, error)
                         : PNR_OK;
    const pnr_recording_kind *kind = found;

    if (code != PNR_OK)
        return code;
    if (kind->abi != PNR_RECORDING_ABI)
        return pnr_error_set(error, PNR_EUNAVAILABLE,
                             "recorder-digital-rf.so is of interface %d, this program needs %d: "
                             "install both of one version",
                             kind->abi, PNR_RECORDING_ABI);
    *out = kind;
    return PNR_OK;
}

static bool is_folder(const char *path)
{
    struct stat status;

    return path[strlen(path) - 1] == '/' || (stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

/* Checks before a long run that a recording can be written. */
static int check_path(const pnr_sample_recorder *r, pnr_error *error)
{
    const pnr_config *config = r->config;
    char path[PATH_MAX];

    if (!r->is_folder && !r->kind->is_continued &&
        (r->is_triggered || config->recorder.rotate_s > 0 || config->recorder.rotate_bytes > 0))
        return pnr_refuse(error,
                          "recorder.samples = %.300s: it is no folder, and %s makes several "
                          "recordings: name a folder",
                          config->recorder.samples,
                          r->is_triggered ? "recorder.pre_trigger_s" : "a rotation");
    if (!r->is_folder)
        return r->kind->check(r->recording, config->recorder.samples, error);
    name_part(r, pnr_clock_utc_ns(), SAME_TIME + 1, path);
    return r->kind->check(r->recording, path, error);
}

/* Converts seconds to samples, at most 2^62. */
static uint64_t samples_of(const pnr_sample_recorder *r, double seconds)
{
    return (uint64_t)fmin(seconds * pnr_rational_double(r->rate_hz), 0x1p62);
}

/* Computes the members of *r that count samples. Returns the number of bytes of the queue. */
static size_t measure(pnr_sample_recorder *r, const pnr_setup *setup)
{
    const pnr_config *config = r->config;
    const double pre_s = config->recorder.pre_trigger_s, buffer_s = config->recorder.buffer_s;
    const uint64_t by_size = config->recorder.rotate_bytes / r->sample_bytes;
    const uint64_t by_time = samples_of(r, config->recorder.rotate_s);
    /* The samples of a file wait for the results of their dwells. */
    const double waiting = r->can_wait ? 2 * (double)pnr_plan_dwell_samples(&setup->plan) : 0;
    double bytes = ((double)samples_of(r, pre_s + buffer_s) + waiting) * (double)r->sample_bytes;

    r->part_samples = UINT64_MAX;
    if (config->recorder.rotate_bytes > 0)
        r->part_samples = by_size > 1 ? by_size : 1;
    if (config->recorder.rotate_s > 0 && by_time < r->part_samples)
        r->part_samples = by_time > 1 ? by_time : 1;
    r->block_samples = BLOCK_BYTES / r->sample_bytes;
    if (r->block_samples > r->part_samples)
        r->block_samples = (size_t)r->part_samples;
    r->is_triggered = pre_s > 0;
    r->before = samples_of(r, pre_s);
    r->after = samples_of(r, config->recorder.post_trigger_s);
    r->kept = samples_of(r, pre_s + buffer_s / 2); /* an event can be reported buffer_s / 2 late */
    r->late = 1 - buffer_s / (pre_s + buffer_s) / 4;
    bytes += 0.01 * bytes + 2 * BLOCK_BYTES; /* the headers of the blocks */
    return bytes < MIN_QUEUE_BYTES ? MIN_QUEUE_BYTES : (size_t)fmin(bytes, 0x1p62);
}

int pnr_sample_recorder_create(const pnr_config *config, const pnr_setup *setup, pnr_format format,
                               size_t n_channels, bool can_wait, pnr_events *events,
                               pnr_sample_recorder **out, pnr_error *error)
{
    pnr_sample_recorder *r = calloc(1, sizeof *r);
    size_t bytes;
    int code;

    *out = NULL;
    if (r == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "recorder: out of memory");
    r->config = config;
    r->can_wait = can_wait;
    r->told = events;
    r->rate_hz = setup->radar.rate_hz;
    r->sample_bytes = pnr_format_get(format)->bytes * n_channels;
    if ((code = find_kind(config, &r->kind, error)) != PNR_OK ||
        (code = r->kind->create(config, setup, format, n_channels, &r->recording, error)) != PNR_OK)
        goto fail;
    r->is_folder = !r->kind->is_continued && is_folder(config->recorder.samples);
    bytes = measure(r, setup);
    if ((code = check_path(r, error)) != PNR_OK)
        goto fail;
    r->blocks = pnr_queue_create(bytes, sizeof(block) + r->block_samples * r->sample_bytes);
    r->events[0] = pnr_queue_create(EVENT_QUEUE_BYTES, sizeof(event));
    r->events[1] = pnr_queue_create(EVENT_QUEUE_BYTES, sizeof(event));
    if (r->blocks == NULL || r->events[0] == NULL || r->events[1] == NULL ||
        pthread_create(&r->thread, NULL, record_thread, r) != 0) {
        code = pnr_error_set(error, PNR_ENOMEMORY,
                             "recorder: no memory for %zu bytes: recorder.buffer_s = %.10g", bytes,
                             config->recorder.buffer_s);
        goto fail;
    }
    r->is_running = true;
    *out = r;
    return PNR_OK;
fail:
    pnr_sample_recorder_destroy(r);
    return code;
}

void pnr_sample_recorder_finish(pnr_sample_recorder *r)
{
    if (r == NULL || !r->is_running)
        return;
    atomic_store(&r->ended, true);
    pthread_join(r->thread, NULL);
    r->is_running = false;
    pnr_log(PNR_LOG_INFO,
            "recorder: %" PRIu64 " samples in %" PRIu64 " recordings; %" PRIu64 " not recorded",
            r->n_recorded, r->n_parts, pnr_sample_recorder_lost(r));
}

void pnr_sample_recorder_destroy(pnr_sample_recorder *r)
{
    if (r == NULL)
        return;
    pnr_sample_recorder_finish(r);
    free(r->blocks);
    free(r->events[0]);
    free(r->events[1]);
    if (r->kind != NULL)
        r->kind->destroy(r->recording);
    free(r);
}
