/* SPDX-License-Identifier: MIT */
/* The correlator: an engine on each device, and the queue of the jobs in flight. The devices get
 * jobs in turn, so they return results in turn. When a device is lost, the jobs of all devices are
 * submitted again in the order of the queue. The jobs of each engine are therefore always in this
 * order. */
#include "correlator/correlator.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FAILED = 16 }; /* failures in sequence after which a device counts as lost */

typedef struct member {
    pnr_engine *engine;
    size_t device;
    bool is_lost;
    size_t n_in_flight;
    unsigned n_failed; /* failures in sequence */
} member;

typedef struct job {
    pnr_windows windows;
    uint64_t tag;
    member *of;    /* the device of the job */
    int code;      /* status that its submit returned: PNR_OK or PNR_E... */
    bool is_again; /* the job has failed on another device */
} job;

struct pnr_correlator {
    const pnr_engine_ops *ops;
    char name[48];
    size_t depth; /* greatest number of submits in flight on a device */
    member members[PNR_MAX_DEVICES];
    size_t n_members, n_left;
    size_t next;  /* index of the next member to get a job */
    member *last; /* the member that returned the last result */
    pnr_devices lost;
    char reason[160];             /* the reason of the last loss */
    job queue[PNR_MAX_IN_FLIGHT]; /* the oldest is queue[first] */
    size_t first, n_queued;
    size_t n_dealt; /* the first n_dealt jobs of the queue have been submitted */
    uint64_t next_tag;
};

static job *get_job(pnr_correlator *c, size_t i)
{
    return &c->queue[(c->first + i) % PNR_MAX_IN_FLIGHT];
}

/* --- devices that are lost --- */

static void mark_lost(pnr_correlator *c, member *m, const char *why)
{
    m->is_lost = true;
    c->n_left--;
    pnr_devices_add(&c->lost, m->device);
    snprintf(c->reason, sizeof c->reason, "%s", why);
    if (c->n_left > 0)
        pnr_log(PNR_LOG_WARN, "engine %s: device %zu is lost (%s); devices left: %zu", c->name,
                m->device, why, c->n_left);
}

/* Returns `code`, or PNR_ELOST if engines must not return this status. why: the reason, if the
 * device is lost. */
static int check_code(int code, char why[64])
{
    if (code <= PNR_OK && strcmp(pnr_error_name(code), "EUNKNOWN") != 0) {
        snprintf(why, 64, "the GPU is lost");
        return code;
    }
    snprintf(why, 64, "it returned the unknown status %d", code);
    return PNR_ELOST;
}

/* Takes all jobs back from the devices. The remaining devices first finish their jobs, and the
 * results are ignored. */
static void take_back(pnr_correlator *c)
{
    for (member *m = c->members; m < c->members + c->n_members; m++)
        while (!m->is_lost && m->n_in_flight > 0) {
            pnr_result ignored;
            char why[64];
            const int code = check_code(c->ops->collect(m->engine, true, &ignored), why);

            if (code == PNR_ELOST || code == PNR_EAGAIN)
                mark_lost(c, m, code == PNR_EAGAIN ? "it lost a submit" : why);
            m->n_in_flight--;
        }
    c->n_dealt = 0;
}

static void lose_device(pnr_correlator *c, member *m, const char *why)
{
    mark_lost(c, m, why);
    take_back(c);
}

/* --- jobs to devices --- */

/* Returns the device for the next job. NULL: all devices are lost. */
static member *next_member(pnr_correlator *c)
{
    if (c->n_left == 0)
        return NULL;
    while (c->members[c->next].is_lost)
        c->next = (c->next + 1) % c->n_members;
    return &c->members[c->next];
}

/* Submits the next jobs of the queue, until the next device has `depth` submits in flight. Returns
 * PNR_OK or PNR_ELOST. */
static int deal_jobs(pnr_correlator *c)
{
    while (c->n_dealt < c->n_queued) {
        job *j = get_job(c, c->n_dealt);
        member *m = next_member(c);
        char why[64];

        if (m == NULL)
            return PNR_ELOST;
        if (m->n_in_flight == c->depth)
            return PNR_OK;

        const pnr_job submit = {.windows = &j->windows, .tag = j->tag};

        j->windows.submitted_ns = pnr_clock_ns();
        j->of = m;
        j->code = check_code(c->ops->submit(m->engine, &submit), why);
        if (j->code == PNR_ELOST) {
            lose_device(c, m, why);
            continue;
        }
        if (j->code == PNR_EAGAIN) /* an engine with room must not return PNR_EAGAIN */
            j->code = PNR_EENGINE;
        m->n_in_flight += j->code == PNR_OK;
        c->n_dealt++;
        c->next = (c->next + 1) % c->n_members;
    }
    return c->n_left > 0 ? PNR_OK : PNR_ELOST;
}

bool pnr_correlator_has_room(const pnr_correlator *c)
{
    return c->n_queued < c->n_left * c->depth;
}

int pnr_correlator_submit(pnr_correlator *c, const pnr_windows *windows)
{
    if (c->n_left == 0)
        return PNR_ELOST;
    /* Jobs of a device that is lost can be waiting to be submitted again. If another device is lost
     * then, these jobs and this one still fit in the queue. */
    if (!pnr_correlator_has_room(c))
        return PNR_EAGAIN;
    *get_job(c, c->n_queued++) = (job){.windows = *windows, .tag = c->next_tag++};
    return deal_jobs(c);
}

int pnr_correlator_upload_ahead(pnr_correlator *c, const pnr_windows *windows)
{
    member *m = next_member(c);
    char why[64];

    if (m == NULL)
        return PNR_ELOST;
    if (c->ops->upload_ahead == NULL || c->n_dealt < c->n_queued || m->n_in_flight == c->depth)
        return PNR_EAGAIN;

    const int code = check_code(c->ops->upload_ahead(m->engine, windows), why);

    if (code != PNR_ELOST)
        return code;
    lose_device(c, m, why);
    return c->n_left > 0 ? PNR_OK : PNR_ELOST;
}

/* --- results --- */

/* Collects the result of a job from its device. Returns PNR_EAGAIN if the result is not ready. */
static int collect_job(pnr_correlator *c, job *j, bool wait, pnr_result *result)
{
    member *m = j->of;
    char why[64];
    int code;

    if (j->code != PNR_OK)
        return j->code;
    code = check_code(c->ops->collect(m->engine, wait, result), why);
    if (code == PNR_EAGAIN && !wait)
        return code;
    if (code == PNR_EAGAIN || (code == PNR_OK && result->tag != j->tag)) {
        snprintf(why, sizeof why, "it lost a submit");
        code = PNR_ELOST;
    }
    m->n_in_flight--;
    if (code == PNR_ELOST)
        lose_device(c, m, why);
    return code;
}

/* Counts the failure of a job. True: the job was taken back, and is submitted again if a device
 * remains. */
static bool is_taken_back(pnr_correlator *c, job *j, int code)
{
    member *m = j->of;
    char why[160];

    if (++m->n_failed == MOST_FAILED) {
        snprintf(why, sizeof why, "%d failures in a row, the last: %.100s", MOST_FAILED,
                 pnr_error_text(code));
        lose_device(c, m, why);
        return true;
    }
    if (c->n_left == 1 || j->is_again)
        return false;
    pnr_log(PNR_LOG_WARN, "engine %s: device %zu failed on a submit (%s): it goes to another one",
            c->name, m->device, pnr_error_text(code));
    j->is_again = true;
    c->next = ((size_t)(m - c->members) + 1) % c->n_members;
    take_back(c);
    return true;
}

int pnr_correlator_collect(pnr_correlator *c, bool wait, pnr_windows *windows, pnr_result *result)
{
    job *j;
    int code;

    do {
        if (c->n_queued == 0)
            return PNR_EAGAIN;
        if (deal_jobs(c) == PNR_ELOST)
            return PNR_ELOST;
        j = get_job(c, 0);
        code = collect_job(c, j, wait, result);
        if (code == PNR_EAGAIN)
            return code;
    } while (code == PNR_ELOST || (code != PNR_OK && is_taken_back(c, j, code)));
    if (code == PNR_OK)
        j->of->n_failed = 0;
    c->last = j->of;
    *windows = j->windows;
    windows->collected_ns = pnr_clock_ns();
    c->first = (c->first + 1) % PNR_MAX_IN_FLIGHT;
    c->n_queued--;
    c->n_dealt--;
    return code;
}

int pnr_correlator_search_without(pnr_correlator *c, const pnr_windows *windows, size_t dwell,
                                  const pnr_removal *removals, size_t n_removals,
                                  pnr_result *result)
{
    member *m = c->last;
    char why[64];
    int code;

    if (c->ops->search_without == NULL)
        return PNR_EUNSUPPORTED;
    do { /* any device can search, because it gets the samples again */
        if (m == NULL || m->is_lost)
            m = next_member(c);
        if (m == NULL)
            return PNR_ELOST;
        code = check_code(
            c->ops->search_without(m->engine, windows, dwell, removals, n_removals, result), why);
        if (code == PNR_ELOST)
            lose_device(c, m, why);
    } while (code == PNR_ELOST);
    return code;
}

const char *pnr_correlator_name(const pnr_correlator *c)
{
    return c->name;
}

pnr_device_state pnr_correlator_devices(const pnr_correlator *c)
{
    pnr_device_state state = {0};

    if (c->ops->count == NULL || c->n_members + c->lost.n < 2)
        return state;
    state.lost = c->lost;
    for (size_t i = 0; i < c->n_members; i++)
        if (!c->members[i].is_lost)
            pnr_devices_add(&state.used, c->members[i].device);
    return state;
}

const char *pnr_correlator_reason(const pnr_correlator *c)
{
    return c->reason;
}

/* --- create and destroy --- */

/* Creates the engine of each device. If `must` is true, an engine that cannot be created is an
 * error. If `must` is false, its device counts as lost. */
static int create_engines(pnr_correlator *c, const pnr_plan *plan, const pnr_devices *devices,
                          bool must, pnr_error *error)
{
    const size_t n = c->ops->count != NULL ? devices->n : 1;
    pnr_plan own = *plan;
    int code = PNR_OK;

    while (c->n_members < n && (code == PNR_OK || !must)) {
        member *m = &c->members[c->n_members];

        m->device = own.device = devices->index[c->n_members++];
        c->n_left++;
        code = c->ops->create(&own, &m->engine, error);
        if (code != PNR_OK && !must) {
            pnr_log(PNR_LOG_WARN, "engine %s: device %zu is not used: %s", c->name, m->device,
                    pnr_error_text(code));
            mark_lost(c, m, "no engine could be created there");
        }
    }
    return c->n_left > 0 && !must ? PNR_OK : code;
}

int pnr_correlator_create(const pnr_engine_ops *ops, const pnr_plan *plan,
                          const pnr_engine_choice *choice, const pnr_devices *devices,
                          const pnr_devices *lost, pnr_correlator **out, pnr_error *error)
{
    pnr_correlator *c = calloc(1, sizeof *c);
    char list[PNR_DEVICES_LEN];
    int code;

    *out = NULL;
    if (c == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "correlator: out of memory");
    c->ops = ops;
    c->depth = plan->depth;
    if (lost != NULL)
        c->lost = *lost;
    snprintf(c->name, sizeof c->name, "%.15s/%.31s", ops->name, choice->method);
    if ((code = create_engines(c, plan, devices, lost == NULL, error)) != PNR_OK) {
        pnr_correlator_destroy(c);
        return code;
    }
    if (c->n_members > 1)
        pnr_log(PNR_LOG_INFO, "engine %s: the work is dealt out to the devices %s", c->name,
                pnr_devices_format(devices, list));
    *out = c;
    return PNR_OK;
}

void pnr_correlator_destroy(pnr_correlator *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n_members; i++)
        c->ops->destroy(c->members[i].engine);
    free(c);
}
