/* SPDX-License-Identifier: MIT */
/* What the tests of the pipeline share: a recording of a scene, a run and all that it published, a
 * subscriber. */
#ifndef PNR_PIPELINE_FIXTURE_H
#define PNR_PIPELINE_FIXTURE_H

#include "clock.h"
#include "pipeline.h"
#include "scene.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

/* 127 samples a period, a period 127 us; one target at sample 40.03, 27 dB above the noise after
 * correlation. */
static const char *const base_settings[] = {"code.type=m-sequence",
                                            "code.degree=7",
                                            "source.rate_hz=1000000",
                                            "source.format=ci16",
                                            "echo.noise_rms=0.05",
                                            "target.1.range_m=6000",
                                            "target.1.amplitude=0.1",
                                            "publisher.endpoint=",
                                            "engine.name=reference",
                                            "engine.batch=4",
                                            "publisher.linger_s=20",
                                            "publisher.high_water=100000",
                                            NULL};
enum { N = 127 };

typedef enum { HELD, LOST, BAD } kind; /* what a position of the stream is */

/* A configuration and its recording. kinds[n]: position n was written, lost by the recorder (and
 * not written), or is NaN. */
typedef struct stage {
    char folder[256], path[300], address[320];
    pnr_config config;
    kind *kinds; /* [n_positions] */
    size_t n_positions;
    unsigned char *bytes; /* [n_bytes]: the whole stream, lost positions too */
    size_t sample_bytes;
} stage;

static inline void set(stage *s, const char *assignment)
{
    pnr_error error;

    if (pnr_config_set(&s->config, assignment, &error) != PNR_OK)
        fail_msg("%s", error.text);
}

static inline void set_all(stage *s, const char *const *settings)
{
    for (; settings != NULL && *settings != NULL; settings++)
        set(s, *settings);
}

/* Modules built with this test; a test program stands in <build>/tests, what it needs beside it. */
static inline void find_modules(void)
{
    char path[4096] = "";
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);

    assert_true(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/engines");
    setenv("PNR_ENGINE_PATH", path, 1);
    setenv("PNR_LOG", "quiet", 0);
}

/* The scene of the settings, n_positions long, in memory; save writes it. */
static inline void open_stage(stage *s, size_t n_positions, const char *const *settings)
{
    const char *folder = getenv("TMPDIR");
    pnr_scene *scene;
    pnr_error error;

    memset(s, 0, sizeof *s);
    snprintf(s->folder, sizeof s->folder, "%s/pnr.XXXXXX", folder != NULL ? folder : "/tmp");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->path, sizeof s->path, "%s/echo.raw", s->folder);
    snprintf(s->address, sizeof s->address, "ipc://%s/s", s->folder);
    pnr_config_init(&s->config);
    set_all(s, base_settings);
    set_all(s, settings);
    strcpy(s->config.source.input, s->path);
    if (pnr_scene_create(&s->config, PNR_SCENE_ECHOES, &scene, &error) != PNR_OK)
        fail_msg("%s", error.text);

    double(*samples)[2] = calloc(n_positions + 1, sizeof *samples);

    s->n_positions = n_positions;
    s->sample_bytes = pnr_format_get(s->config.source.format)->bytes;
    s->bytes = calloc(n_positions + 1, s->sample_bytes);
    s->kinds = calloc(n_positions + 1, sizeof *s->kinds);
    assert_true(samples != NULL && s->bytes != NULL && s->kinds != NULL);
    pnr_scene_generate(scene, 0, 0, n_positions, samples);
    for (size_t i = 0; i < n_positions; i++)
        (void)pnr_format_write(s->config.source.format, samples[i], s->bytes + i * s->sample_bytes);
    free(samples);
    pnr_scene_destroy(scene);
    for (size_t r = 0; r < s->config.source.n_lost; r++)
        for (size_t i = 0; i < s->config.source.lost[r].count; i++)
            s->kinds[s->config.source.lost[r].first + i] = LOST;
}

static inline void close_stage(stage *s)
{
    (void)unlink(s->path);
    (void)rmdir(s->folder);
    pnr_config_clear(&s->config);
    free(s->kinds);
    free(s->bytes);
}

/* cf32: an I or Q that is no number. */
static inline void spoil(stage *s, size_t first, size_t count, float value)
{
    for (size_t i = first; i < first + count; i++) {
        memcpy(s->bytes + i * s->sample_bytes + 4 * (i % 2), &value, sizeof value);
        s->kinds[i] = BAD;
    }
}

/* The file: without what the recorder lost, and n_more bytes of a sample that was not finished. */
static inline void save(const stage *s, size_t n_more)
{
    FILE *file = fopen(s->path, "wb");

    assert_non_null(file);
    for (size_t i = 0; i < s->n_positions; i++)
        if (s->kinds[i] != LOST)
            assert_int_equal(fwrite(s->bytes + i * s->sample_bytes, s->sample_bytes, 1, file), 1);
    for (size_t i = 0; i < n_more; i++)
        assert_int_equal(fputc(1, file), 1);
    assert_int_equal(fclose(file), 0);
}

/* --- a run and what it published --- */

typedef struct outcome {
    int code;
    pnr_error error;
    pnr_account account;
    pnr_report *reports; /* [n] */
    size_t n, room;
    size_t stop_at; /* the stop flag is raised at this result, counted from 1; 0: never */
    volatile int stop;
    void (*also)(void *context, size_t n); /* called at each result */
    void *also_context;
} outcome;

static inline void keep(void *context, const pnr_report *report)
{
    outcome *o = context;

    if (o->n == o->room) {
        o->room = 2 * o->room + 16;
        o->reports = realloc(o->reports, o->room * sizeof *o->reports);
        if (o->reports == NULL)
            abort();
    }
    o->reports[o->n++] = *report;
    if (o->n == o->stop_at)
        __atomic_store_n(&o->stop, 1, __ATOMIC_SEQ_CST);
    if (o->also != NULL)
        o->also(o->also_context, o->n);
}

static inline void run(const stage *s, outcome *o)
{
    const pnr_pipeline_options options = {.stop = &o->stop, .tap = keep, .tap_context = o};

    o->error = (pnr_error){0};
    o->n = 0;
    o->code = pnr_pipeline_run(&s->config, &options, &o->account, &o->error);
    if (!pnr_account_closes(&o->account)) {
        char text[512];

        fail_msg("does not close: %s", pnr_account_format(&o->account, text, sizeof text));
    }
    assert_true(o->account.results == o->n);
    assert_int_equal(o->code, o->error.code);
}

static inline void forget(outcome *o)
{
    free(o->reports);
    *o = (outcome){0};
}

/* Each dwell begins where the one before ended, or lost_before says how many positions lie between;
 * seq counts. */
static inline void assert_chain(const outcome *o, size_t dwell)
{
    for (size_t i = 0; i < o->n; i++) {
        const pnr_report *r = &o->reports[i];

        assert_true(r->seq == i);
        if (i > 0)
            assert_true(r->sample == r[-1].sample + dwell + r->lost_before);
    }
}

/* The bits of everything in which two runs of one stream must agree: all but run, latency and host
 * time. */
static inline bool is_same_report(const pnr_report *a, const pnr_report *b)
{
    const pnr_detection *x = &a->detection, *y = &b->detection;

    return strcmp(a->stream, b->stream) == 0 && strcmp(a->engine, b->engine) == 0 &&
           a->seq == b->seq && a->sample == b->sample && a->has_time == b->has_time &&
           a->time_ns == b->time_ns && a->time_source == b->time_source &&
           a->periods == b->periods && a->lost == b->lost && a->lost_before == b->lost_before &&
           a->flags == b->flags && memcmp(&a->pfa_cell, &b->pfa_cell, sizeof a->pfa_cell) == 0 &&
           a->cells_above == b->cells_above &&
           memcmp(&x->noise_power, &y->noise_power, sizeof x->noise_power) == 0 &&
           x->n_echoes == y->n_echoes &&
           memcmp(x->echoes, y->echoes, x->n_echoes * sizeof *x->echoes) == 0;
}

static inline void assert_same_reports(const outcome *a, const outcome *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        if (!is_same_report(&a->reports[i], &b->reports[i]))
            fail_msg("result %zu at sample %llu is not the same", i,
                     (unsigned long long)a->reports[i].sample);
}

static inline void assert_same_account(const pnr_account *is, const pnr_account *wanted)
{
    char a[512], b[512];

    if (memcmp(is, wanted, sizeof *is) != 0)
        fail_msg("%s\nwanted: %s", pnr_account_format(is, a, sizeof a),
                 pnr_account_format(wanted, b, sizeof b));
}

/* The account by its definition, position by position, of a run that took everything: dwells of
 * n_periods windows from sample `first` on, each seen when n_behind more samples are there. */
static inline pnr_account wanted_linear_account(const stage *s, size_t n_positions, size_t first,
                                                size_t n_periods, size_t n_behind)
{
    const size_t dwell = N * n_periods;
    pnr_account a = {.positions = n_positions};
    size_t at = 0;

    for (; at < first && at < n_positions; at++)
        *(s->kinds[at] == LOST ? &a.lost_source : &a.skipped_alignment) += 1;
    for (; at + dwell + n_behind <= n_positions && at >= first; at += dwell) {
        bool is_seen = false, is_used = false; /* by the engine */

        for (size_t pass = 0; pass < 2; pass++)
            for (size_t p = 0; p < n_periods; p++) {
                size_t count[3] = {0};

                for (size_t i = 0; i < N; i++)
                    count[s->kinds[at + p * N + i]]++;
                is_seen |= count[LOST] <= N / 2;
                if (pass == 0)
                    continue;

                const size_t bad = is_seen ? count[BAD] : 0;
                const bool is_refused = count[LOST] + bad > N / 2;

                a.lost_source += count[LOST] + bad;
                a.n_nonfinite += bad;
                *(is_refused ? &a.skipped_refused : &a.used) += N - count[LOST] - bad;
                *(is_refused ? &a.refused_too_much_lost : &a.processed) += 1;
                a.windows++;
                is_used |= !is_refused;
            }
        a.results += is_used;
    }
    for (; at < n_positions; at++)
        *(s->kinds[at] == LOST ? &a.lost_source : &a.skipped_tail) += 1;
    a.sent = a.results;
    return a;
}

static inline pnr_account wanted_account(const stage *s, size_t n_positions, size_t first,
                                         size_t n_periods)
{
    return wanted_linear_account(s, n_positions, first, n_periods, 0);
}

/* --- a subscriber of its own thread, until `end` comes --- */

typedef struct subscriber {
    const char *address;
    int high_water;
    pthread_t thread;
    _Atomic int hold;   /* 1: after the first result it reads no more, until it is 0 */
    _Atomic int is_dry; /* nothing came for a while after that */
    _Atomic uint64_t n_results;
    uint64_t n_late;                            /* by flag */
    uint64_t first_seq, last_seq, n_gaps, lost; /* by seq */
    uint64_t n_status;
    bool has_end, is_bad;
    pnr_end_summary end;
    char text[PNR_MESSAGE_MAX];
} subscriber;

static inline void take(subscriber *s, const char *topic, size_t length)
{
    static _Thread_local pnr_report report;
    pnr_error error = {0};

    if (strncmp(topic, "range/", 6) == 0) {
        s->is_bad |= pnr_message_read_range(s->text, length, &report, &error) != PNR_OK;
        if (s->n_results == 0)
            s->first_seq = report.seq;
        else if (report.seq != s->last_seq + 1) {
            s->n_gaps++;
            s->lost += report.seq - s->last_seq - 1;
        }
        s->last_seq = report.seq;
        s->n_late += (report.flags & PNR_FLAG_LATE) != 0;
        s->n_results++;
    } else if (strncmp(topic, "end/", 4) == 0) {
        s->is_bad |= pnr_message_read_end(s->text, length, &s->end, &error) != PNR_OK;
        s->has_end = true;
    } else if (strncmp(topic, "status/", 7) == 0) {
        pnr_end_summary status;

        s->is_bad |= pnr_message_read_status(s->text, length, &status, &error) != PNR_OK ||
                     !pnr_account_closes(&status.account);
        s->n_status++;
    }
}

static inline void *subscriber_thread(void *argument)
{
    subscriber *s = argument;
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_SUB);
    const int patience_ms = 200, retry_ms = 5;
    const uint64_t begin_ns = pnr_clock_ns();
    char topic[256];

    prctl(PR_SET_NAME, "listener"); /* no thread of the pipeline's */
    zmq_setsockopt(socket, ZMQ_RCVHWM, &s->high_water, sizeof s->high_water);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    zmq_setsockopt(socket, ZMQ_RECONNECT_IVL, &retry_ms, sizeof retry_ms);
    zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
    zmq_connect(socket, s->address);
    while (!s->has_end && pnr_clock_ns() - begin_ns < UINT64_C(120000000000)) {
        while (s->n_results > 0 && atomic_load(&s->hold) != 0)
            usleep(1000);

        const int n = zmq_recv(socket, topic, sizeof topic - 1, 0);

        if (n < 0) {
            atomic_store(&s->is_dry, s->n_results > 0);
            continue;
        }
        topic[n < (int)sizeof topic ? n : (int)sizeof topic - 1] = '\0';

        const int length = zmq_recv(socket, s->text, sizeof s->text, 0);

        if (length < 0 || length > (int)sizeof s->text)
            s->is_bad = true;
        else
            take(s, topic, (size_t)length);
    }
    zmq_close(socket);
    zmq_ctx_term(context);
    return NULL;
}

/* The run waits for it. */
static inline void subscribe(stage *of, subscriber *s, int high_water)
{
    set(of, "publisher.wait_s=60");
    strcpy(of->config.publisher.endpoint, of->address);
    memset(s, 0, sizeof *s);
    s->address = of->address;
    s->high_water = high_water;
    assert_int_equal(pthread_create(&s->thread, NULL, subscriber_thread, s), 0);
}

/* Its end is the run's: reason, status, account. */
static inline void assert_end(subscriber *s, const outcome *o)
{
    pthread_join(s->thread, NULL);
    assert_false(s->is_bad);
    assert_true(s->has_end);
    assert_same_account(&s->end.account, &o->account);
    assert_int_equal(s->end.exit_status, pnr_error_exit(o->code));
    if (o->code != PNR_OK)
        assert_true(strncmp(s->end.reason, o->error.text, sizeof s->end.reason - 1) == 0);
    if (s->n_results > 0)
        assert_true(s->last_seq - s->first_seq + 1 == s->n_results + s->lost);
}

#endif
