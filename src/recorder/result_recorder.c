/* SPDX-License-Identifier: MIT */
/* The recorder of results: reports go through a queue to a thread that writes one kind of file. */
#include "recorder/result_recorder.h"

#include "base/clock.h"
#include "base/log.h"
#include "recorder/module.h"
#include "recorder/result_file.h"
#include "ring/queue.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { QUEUE_BYTES = 16 << 20 };

static const uint64_t poll_ns = 10 * 1000 * 1000, full_ns = 1000 * 1000, sync_ns = 1000000000;

/* The kinds of files by extension. For a kind in a module, the table has the names of the module
 * and of the Debian package of its library. */
static const struct {
    const char *extension;
    const pnr_result_file *file; /* NULL: the operations are in the module */
    const char *module, *package;
} kinds[] = {
    {".jsonl", &pnr_result_file_json, NULL, NULL},
    {".csv", &pnr_result_file_csv, NULL, NULL},
    {".sqlite", NULL, "recorder-sqlite", "libsqlite3-0"},
    {".h5", NULL, "recorder-hdf5", "libhdf5-103-1"},
};

struct pnr_result_recorder {
    const pnr_config *config;
    pnr_events *told;
    bool can_wait;
    const pnr_result_file *file;
    void *state;
    pnr_queue *queue; /* queue of reports, without the unused elements of `echoes` */
    pthread_t thread;
    bool is_running;
    _Atomic bool ended;
    _Atomic uint64_t n_refused; /* results for which the queue had no space */
    _Atomic uint64_t n_unwritten;

    /* members that only the thread uses */
    pnr_error error;
    uint64_t n_recorded, n_unsynced, n_missed;
    uint64_t synced_ns;
    bool is_failing;
};

/* Finds the operations for the extension of this path. Loads their module if necessary. */
static int find_kind(const char *path, const pnr_result_file **out, pnr_error *error)
{
    const char *dot = strrchr(path, '.');
    size_t i = 0;

    while (i < sizeof kinds / sizeof *kinds &&
           (dot == NULL || strcasecmp(dot, kinds[i].extension) != 0))
        i++;
    if (i == sizeof kinds / sizeof *kinds)
        return pnr_refuse(error,
                          "recorder.results = %.300s: want a name with .jsonl, .csv, "
                          ".sqlite or .h5 at its end",
                          path);
    if ((*out = kinds[i].file) != NULL)
        return PNR_OK;

    const void *file = NULL;
    char name[300];

    snprintf(name, sizeof name, "recorder.results = %.200s", path);

    const int code = pnr_recorder_module_load(kinds[i].module, PNR_RESULT_FILE_SYMBOL, name,
                                              kinds[i].package, &file, error);

    *out = file;
    return code;
}

/* --- the thread --- */

/* Counts results that a failed call lost. Posts an event only at the first of several failures in
 * sequence. */
static void miss(pnr_result_recorder *r, uint64_t n)
{
    r->n_missed += n;
    atomic_fetch_add(&r->n_unwritten, n);
    if (!r->is_failing)
        pnr_event_post(r->told, PNR_EVENT_RECORDING_STOPS, PNR_EVENT_NO_SAMPLE, 0, 0,
                       "recording-stops: %s; tried again with every result", r->error.text);
    r->is_failing = true;
}

static void record_result(pnr_result_recorder *r, const pnr_report *report)
{
    if (r->file->add(r->state, report, &r->error) == PNR_OK) {
        r->n_unsynced++;
        return;
    }
    miss(r, 1);
    if (r->file->is_block) {
        miss(r, r->n_unsynced);
        r->n_unsynced = 0;
    }
}

static void sync_results(pnr_result_recorder *r)
{
    r->synced_ns = pnr_clock_ns();
    if (r->n_unsynced == 0)
        return;
    if (r->file->sync(r->state, &r->error) != PNR_OK) {
        miss(r, r->n_unsynced);
    } else {
        r->n_recorded += r->n_unsynced;
        if (r->is_failing)
            pnr_event_post(r->told, PNR_EVENT_RECORDING_RESUMES, PNR_EVENT_NO_SAMPLE,
                           (double)r->n_missed, 0,
                           "recording-resumes: %" PRIu64 " results are not recorded", r->n_missed);
        r->is_failing = false;
        r->n_missed = 0;
    }
    r->n_unsynced = 0;
}

static void *record_thread(void *argument)
{
    pnr_result_recorder *r = argument;

    for (;;) {
        const bool is_over = atomic_load(&r->ended); /* read before the queue, because no result is
                                                      * added after the end */
        const pnr_report *report = pnr_queue_front(r->queue);

        if (report == NULL && is_over)
            break;
        if (report != NULL) {
            record_result(r, report);
            pnr_queue_pop(r->queue);
        } else {
            pnr_queue_wait(r->queue, poll_ns); /* no other thread wakes this thread */
        }
        if (pnr_clock_ns() >= r->synced_ns + sync_ns)
            sync_results(r);
    }
    sync_results(r);
    return NULL;
}

/* --- the other threads --- */

void pnr_result_recorder_add(pnr_result_recorder *r, const pnr_report *report)
{
    const size_t n_bytes = offsetof(pnr_report, detection) + offsetof(pnr_detection, echoes) +
                           report->detection.n_echoes * sizeof *report->detection.echoes;
    void *place;

    while ((place = pnr_queue_reserve(r->queue, n_bytes)) == NULL && r->can_wait)
        pnr_queue_wait_space(r->queue, n_bytes, full_ns);
    if (place == NULL) {
        atomic_fetch_add(&r->n_refused, 1);
        return;
    }
    memcpy(place, report, n_bytes);
    pnr_queue_commit(r->queue, n_bytes);
}

uint64_t pnr_result_recorder_lost(const pnr_result_recorder *r)
{
    return atomic_load(&r->n_refused) + atomic_load(&r->n_unwritten);
}

int pnr_result_recorder_create(const pnr_config *config, bool can_wait, pnr_events *events,
                               pnr_result_recorder **out, pnr_error *error)
{
    pnr_result_recorder *r = calloc(1, sizeof *r);
    int code;

    *out = NULL;
    if (r == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "recorder: out of memory");
    r->config = config;
    r->can_wait = can_wait;
    r->told = events;
    if ((code = find_kind(config->recorder.results, &r->file, error)) != PNR_OK ||
        (code = r->file->open(config->recorder.results, &r->state, error)) != PNR_OK)
        goto fail;
    if ((r->queue = pnr_queue_create(QUEUE_BYTES, sizeof(pnr_report))) == NULL ||
        pthread_create(&r->thread, NULL, record_thread, r) != 0) {
        code = pnr_error_set(error, PNR_ENOMEMORY, "recorder: out of memory");
        goto fail;
    }
    r->is_running = true;
    *out = r;
    return PNR_OK;
fail:
    pnr_result_recorder_destroy(r);
    return code;
}

void pnr_result_recorder_finish(pnr_result_recorder *r)
{
    if (r == NULL || !r->is_running)
        return;
    atomic_store(&r->ended, true);
    pthread_join(r->thread, NULL);
    r->is_running = false;
    if (r->file->close(r->state, &r->error) != PNR_OK)
        pnr_log(PNR_LOG_WARN, "%s", r->error.text);
    r->state = NULL;
    pnr_log(PNR_LOG_INFO, "recorder: %" PRIu64 " results in %s; %" PRIu64 " not recorded",
            r->n_recorded, r->config->recorder.results, pnr_result_recorder_lost(r));
}

void pnr_result_recorder_destroy(pnr_result_recorder *r)
{
    if (r == NULL)
        return;
    pnr_result_recorder_finish(r);
    if (r->state != NULL)
        (void)r->file->close(r->state, NULL);
    free(r->queue);
    free(r);
}
