/* SPDX-License-Identifier: MIT */
/* Runs the pipeline in a thread. pnradar_push writes to the ring of the pipeline. keep_result adds
 * each result to a queue. */
#include "library/pnradar.h"

#include "base/clock.h"
#include "pipeline/pipeline.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64, CHUNK_BYTES = 1 << 20 };

static const uint64_t patience_ns = 50 * 1000 * 1000;

typedef struct entry {
    pnradar_result result; /* `echoes` is set by pnradar_get */
    pnradar_echo echoes[PNR_MAX_CANDIDATES];
} entry;

struct pnradar {
    pnr_config config;
    size_t sample_bytes;
    pthread_t thread;
    bool is_running;   /* `thread` has been created */
    volatile int stop; /* also set by the pipeline when the engine is lost */

    pthread_mutex_t mutex; /* protects all members after it */
    pthread_cond_t changed;
    pnr_ring *ring;   /* NULL before the pipeline opens and after it ends */
    bool is_pushing;  /* pnradar_push uses the ring */
    bool is_finished; /* pnradar_finish was called */
    bool is_over;     /* the pipeline has ended and has set `error` */
    entry *queue;     /* [room], cyclic: `count` entries from index `first` on */
    size_t room, first, count;
    pnr_error error;

    entry current; /* the result of the last pnradar_get */
};

static bool is_stopped(const pnradar *radar)
{
    return __atomic_load_n(&radar->stop, __ATOMIC_RELAXED) != 0;
}

/* Waits for a change, or until the time until_ns of CLOCK_MONOTONIC. The caller holds the mutex. */
static void wait_for_change(pnradar *radar, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / PNR_NS_PER_S),
                                   .tv_nsec = (long)(until_ns % PNR_NS_PER_S)};

    (void)pthread_cond_timedwait(&radar->changed, &radar->mutex, &until);
}

/* --- the threads of the pipeline --- */

static void copy_echo(const pnr_echo *from, pnradar_echo *to)
{
#define COPY_NUMBER(x, name) to->name = from->name + 1;
#define COPY_FIELD(x, name) to->name = from->name;
    PNR_ECHO_FIELDS(COPY_NUMBER, COPY_FIELD, COPY_FIELD, COPY_FIELD, )
#undef COPY_NUMBER
#undef COPY_FIELD
    _Static_assert(sizeof to->code_name == sizeof from->code_name, "the name of a code");
    memcpy(to->code_name, &from->code_name, sizeof to->code_name);
}

/* A flag is the same bit here and on the wire. */
#define PNR_SAME_FLAG(name, word)                                                                  \
    _Static_assert((int)PNRADAR_##name == (int)PNR_FLAG_##name, "bits of flags");
PNR_FLAGS(PNR_SAME_FLAG)

static void fill_entry(const pnr_report *report, entry *out)
{
    const pnr_detection *detection = &report->detection;

    out->result = (pnradar_result){.sample = report->sample,
                                   .lost = report->lost,
                                   .lost_before = report->lost_before,
                                   .slip = report->slip,
                                   .periods = report->periods,
                                   .flags = report->flags,
                                   .noise_power = detection->noise_power,
                                   .n_echoes = detection->n_echoes};
    for (size_t i = 0; i < detection->n_echoes; i++)
        copy_echo(&detection->echoes[i], &out->echoes[i]);
}

/* Adds a result to the queue. Waits while the queue is full. A pnradar_push that waits for space in
 * the ring enlarges a full queue, so that the two threads do not wait for each other. */
static void keep_result(void *context, const pnr_report *report)
{
    pnradar *radar = context;

    pthread_mutex_lock(&radar->mutex);
    while (radar->count == radar->room && !is_stopped(radar))
        pthread_cond_wait(&radar->changed, &radar->mutex);
    if (radar->count < radar->room)
        fill_entry(report, &radar->queue[(radar->first + radar->count++) % radar->room]);
    pthread_cond_broadcast(&radar->changed);
    pthread_mutex_unlock(&radar->mutex);
}

/* Lends the ring to pnradar_push until the last sample is pushed or the pipeline stops. */
static void lend_ring(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory,
                      size_t capacity, const volatile int *stop)
{
    pnradar *radar = context;

    (void)plan, (void)memory, (void)capacity, (void)stop;
    pthread_mutex_lock(&radar->mutex);
    radar->ring = ring;
    pthread_cond_broadcast(&radar->changed);
    while (radar->is_pushing || !(radar->is_finished || is_stopped(radar)))
        wait_for_change(radar, pnr_clock_ns() + patience_ns);
    radar->ring = NULL;
    pthread_mutex_unlock(&radar->mutex);
}

static void *run_pipeline(void *context)
{
    pnradar *radar = context;
    const pnr_pipeline_options options = {.stop = &radar->stop,
                                          .tap = keep_result,
                                          .tap_context = radar,
                                          .feed = lend_ring,
                                          .feed_context = radar};
    pnr_error error = {0};
    pnr_account account;

    (void)pnr_pipeline_run(&radar->config, &options, &account, &error);
    pthread_mutex_lock(&radar->mutex);
    radar->error = error;
    radar->is_over = true;
    pthread_cond_broadcast(&radar->changed);
    pthread_mutex_unlock(&radar->mutex);
    return NULL;
}

/* --- create, destroy --- */

static int read_configuration(pnr_config *config, const char *text, pnr_error *error)
{
    int code;

    if ((code = pnr_config_set(config, "publisher.endpoint=", error)) != PNR_OK ||
        (code = pnr_config_parse(config, text, strlen(text), "configuration", error)) != PNR_OK ||
        (code = pnr_config_check(config, error)) != PNR_OK)
        return code;
    if (config->source.format == PNR_FORMAT_NONE)
        return pnr_refuse(error, "source.format is not given: which of %s are the samples?",
                          pnr_format_names());
    return PNR_OK;
}

static void init_sync(pnradar *radar)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&radar->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&radar->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Starts the pipeline and waits until it is open. */
static int start_pipeline(pnradar *radar, pnr_error *error)
{
    int code;

    radar->sample_bytes =
        pnr_format_get(radar->config.source.format)->bytes * radar->config.source.channels;
    radar->room = FIRST_ROOM;
    if ((radar->queue = calloc(radar->room, sizeof *radar->queue)) == NULL ||
        pthread_create(&radar->thread, NULL, run_pipeline, radar) != 0)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a radar");
    radar->is_running = true;
    pthread_mutex_lock(&radar->mutex);
    while (radar->ring == NULL && !radar->is_over)
        pthread_cond_wait(&radar->changed, &radar->mutex);
    code = radar->error.code;
    *error = radar->error;
    pthread_mutex_unlock(&radar->mutex);
    return code;
}

pnradar *pnradar_create(const char *configuration, char *why, size_t size)
{
    pnradar *radar = calloc(1, sizeof *radar);
    pnr_error error = {0};
    int code = PNR_ENOMEMORY;

    if (radar != NULL) {
        init_sync(radar);
        pnr_config_init(&radar->config);
        if ((code = read_configuration(&radar->config, configuration, &error)) == PNR_OK)
            code = start_pipeline(radar, &error);
    }
    if (code != PNR_OK) {
        if (why != NULL)
            (void)snprintf(why, size, "%s", error.text[0] ? error.text : pnr_error_text(code));
        pnradar_destroy(radar);
        return NULL;
    }
    return radar;
}

void pnradar_destroy(pnradar *radar)
{
    if (radar == NULL)
        return;
    if (radar->is_running) {
        pthread_mutex_lock(&radar->mutex);
        __atomic_store_n(&radar->stop, 1, __ATOMIC_RELAXED);
        pthread_cond_broadcast(&radar->changed);
        pthread_mutex_unlock(&radar->mutex);
        pthread_join(radar->thread, NULL);
    }
    pthread_cond_destroy(&radar->changed);
    pthread_mutex_destroy(&radar->mutex);
    pnr_config_clear(&radar->config);
    free(radar->queue);
    free(radar);
}

/* --- push --- */

/* Doubles a full queue. A program with one thread cannot read results during pnradar_push. */
static int make_room(pnradar *radar)
{
    entry *more = NULL;
    int code = PNR_OK;

    pthread_mutex_lock(&radar->mutex);
    if (radar->count == radar->room) {
        more = calloc(2 * radar->room, sizeof *more);
        code = more != NULL ? PNR_OK : PNR_ENOMEMORY;
    }
    if (more != NULL) {
        for (size_t i = 0; i < radar->count; i++)
            more[i] = radar->queue[(radar->first + i) % radar->room];
        free(radar->queue);
        radar->queue = more;
        radar->first = 0;
        radar->room *= 2;
        pthread_cond_broadcast(&radar->changed);
    }
    pthread_mutex_unlock(&radar->mutex);
    return code;
}

/* Copies samples to the lent ring. PNR_EEND: the pipeline has stopped. */
static int push_samples(pnradar *radar, const char *from, size_t n)
{
    const bool waits = radar->config.source.pace != PNR_PACE_REAL_TIME;
    const size_t most = CHUNK_BYTES / radar->sample_bytes;
    int code = PNR_OK;

    while (n > 0 && code == PNR_OK && !is_stopped(radar)) {
        void *to;
        size_t some;

        if (pnr_ring_reserve(radar->ring, n < most ? n : most, &to, &some) == PNR_OK) {
            memcpy(to, from, some * radar->sample_bytes);
            pnr_ring_commit(radar->ring, some);
            from += some * radar->sample_bytes;
            n -= some;
        } else if (!waits) {
            pnr_ring_skip(radar->ring, n, PNR_LOST_RING_FULL);
            n = 0;
        } else if ((code = make_room(radar)) == PNR_OK) {
            (void)pnr_ring_wait_space(radar->ring, patience_ns);
        }
    }
    return n == 0 ? PNR_OK : code != PNR_OK ? code : PNR_EEND;
}

int pnradar_push(pnradar *radar, const void *samples, size_t n)
{
    int code = PNR_EEND;

    pthread_mutex_lock(&radar->mutex);
    if (!radar->is_finished && radar->ring != NULL) {
        radar->is_pushing = true;
        pthread_mutex_unlock(&radar->mutex);
        code = push_samples(radar, samples, n);
        pthread_mutex_lock(&radar->mutex);
        radar->is_pushing = false;
        pthread_cond_broadcast(&radar->changed);
    }
    if (radar->is_finished)
        pnr_error_set(&radar->error, PNR_EUSAGE, "samples after pnradar_finish");
    else if (code == PNR_ENOMEMORY)
        pnr_error_set(&radar->error, code, "no memory for %zu more results", radar->room);
    else
        while (code != PNR_OK && !radar->is_over)
            pthread_cond_wait(&radar->changed, &radar->mutex);
    pthread_mutex_unlock(&radar->mutex);
    return code == PNR_OK ? 0 : -1;
}

void pnradar_finish(pnradar *radar)
{
    pthread_mutex_lock(&radar->mutex);
    radar->is_finished = true;
    pthread_cond_broadcast(&radar->changed);
    pthread_mutex_unlock(&radar->mutex);
}

/* --- get --- */

static void take_oldest(pnradar *radar)
{
    const entry *oldest = &radar->queue[radar->first];

    radar->current.result = oldest->result;
    memcpy(radar->current.echoes, oldest->echoes, oldest->result.n_echoes * sizeof *oldest->echoes);
    radar->current.result.echoes = radar->current.echoes;
    radar->first = (radar->first + 1) % radar->room;
    radar->count--;
    pthread_cond_broadcast(&radar->changed);
}

int pnradar_get(pnradar *radar, double patience_s, pnradar_result *result)
{
    const double most_s = 1e9; /* thirty years */
    const uint64_t until_ns =
        pnr_clock_ns() + (uint64_t)(fmin(fmax(patience_s, 0), most_s) * (double)PNR_NS_PER_S);
    int code;

    pthread_mutex_lock(&radar->mutex);
    while (radar->count == 0 && !radar->is_over && pnr_clock_ns() < until_ns)
        wait_for_change(radar, until_ns);
    code = radar->count > 0 ? 1 : radar->is_over && radar->error.code != PNR_OK ? -1 : 0;
    if (code == 1) {
        take_oldest(radar);
        *result = radar->current.result;
    }
    pthread_mutex_unlock(&radar->mutex);
    return code;
}

const char *pnradar_error(const pnradar *radar)
{
    return radar->error.text;
}

const char *pnradar_version(void)
{
    return PNR_VERSION;
}
