/* SPDX-License-Identifier: MIT */
/* Runs the pipeline once in this process, with a subscriber that counts the results. */
#include "tools/bench/run.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/json.h"
#include "base/log.h"
#include "cli.h"
#include "engine/plan.h"
#include "publisher/message.h"
#include "tools/common/subscriber.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

/* A measurement showed that a virtual machine stops for 45 ms once in five minutes. The ring of a
 * live feed holds the samples of more than twice this time. */
static const double hiccup_s = 0.1;
static const double patience_s = 5.0;
enum { RING_SAMPLES = 1 << 22 /* samples of the smallest ring */, LIVE_SUBMITS = 32, POLL_MS = 50 };
enum { RECEIVE_HIGH_WATER = 1000000 };
static const char *const topics[] = {"range", "end", NULL};

/* --- the subscriber --- */

struct bench_subscriber {
    void *context, *socket;
    pthread_t thread;
    bool spin;
    bench_seen seen; /* may be NULL */
    void *seen_context;
    _Atomic uint64_t last_ns; /* time of the last message */
    _Atomic bool stop, ended;
    uint64_t results, bytes; /* until the thread is joined, only the thread writes these numbers */
};

static void count_results(bench_subscriber *s, uint64_t first_seq, uint64_t n)
{
    s->results += n;
    if (s->seen != NULL)
        s->seen(s->seen_context, first_seq, n, atomic_load(&s->last_ns));
}

/* Counts one result. `seq` precedes the echoes in the message, so the echoes are not parsed. */
static void count_single(bench_subscriber *s, const char *text, size_t length)
{
    static const char key[] = "\"seq\":";
    const char *at = memmem(text, length, key, sizeof key - 1);
    uint64_t seq = 0;

    if (at == NULL)
        return;
    for (at += sizeof key - 1; at < text + length && *at >= '0' && *at <= '9'; at++)
        seq = seq * 10 + (uint64_t)(*at - '0');
    count_results(s, seq, 1);
}

static void count_pack(bench_subscriber *s, const char *text, size_t length)
{
    json_t *header = pnr_json_read(text, length, NULL);
    json_int_t seq, n;

    if (json_unpack(header, "{s:I, s:I}", "seq", &seq, "n_results", &n) == 0 && seq >= 0 && n > 0)
        count_results(s, (uint64_t)seq, (uint64_t)n);
    json_decref(header);
}

static void count_message(bench_subscriber *s, pnr_subscriber_message *m)
{
    size_t length;
    const char *text;

    for (int part = 0; part < m->n_parts; part++) {
        (void)pnr_subscriber_part(m, part, &length);
        s->bytes += length;
    }
    text = pnr_subscriber_part(m, 1, &length);
    if (pnr_subscriber_has_topic(m, "end/"))
        atomic_store(&s->ended, true);
    else if (pnr_subscriber_has_topic(m, "range/"))
        (m->n_parts > 2 ? count_pack : count_single)(s, text, length);
}

static void *subscribe(void *argument)
{
    bench_subscriber *s = argument;
    zmq_pollitem_t item = {.socket = s->socket, .events = ZMQ_POLLIN};
    pnr_subscriber_message m;

    while (!atomic_load(&s->stop) && !atomic_load(&s->ended)) {
        if (pnr_subscriber_receive(s->socket, &m) == PNR_OK) {
            atomic_store(&s->last_ns, pnr_clock_ns());
            count_message(s, &m);
            pnr_subscriber_release(&m);
        } else if (!s->spin) {
            (void)zmq_poll(&item, 1, POLL_MS);
        }
    }
    return NULL;
}

static void destroy_subscriber(bench_subscriber *s)
{
    pnr_subscriber_destroy(s->socket);
    if (s->context != NULL)
        zmq_ctx_term(s->context);
    free(s);
}

int bench_subscriber_start(const char *endpoint, bool spin, bench_seen seen, void *context,
                           bench_subscriber **out, pnr_error *error)
{
    const pnr_subscriber_source source = {.endpoint = endpoint};
    bench_subscriber *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (s == NULL || (s->context = zmq_ctx_new()) == NULL) {
        free(s);
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a subscriber");
    }
    s->spin = spin;
    s->seen = seen;
    s->seen_context = context;
    if ((rc = pnr_subscriber_create(s->context, &source, topics, RECEIVE_HIGH_WATER, &s->socket,
                                    error)) == PNR_OK)
        rc = pnr_subscriber_connect(s->socket, &source, error);
    if (rc == PNR_OK && (rc = pthread_create(&s->thread, NULL, subscribe, s)) != 0)
        rc = pnr_error_set(error, PNR_EUNAVAILABLE, "subscriber thread: %s", strerror(rc));
    if (rc != PNR_OK) {
        destroy_subscriber(s);
        return rc;
    }
    *out = s;
    return PNR_OK;
}

void bench_subscriber_finish(bench_subscriber *s, double patience, bench_received *out)
{
    const uint64_t patience_ns = (uint64_t)(patience * 1e9);
    const uint64_t start_ns = pnr_clock_ns();

    *out = (bench_received){0};
    if (s == NULL)
        return;
    while (!atomic_load(&s->ended)) {
        const uint64_t now_ns = pnr_clock_ns(), last_ns = atomic_load(&s->last_ns);

        if (now_ns > (last_ns > start_ns ? last_ns : start_ns) + patience_ns)
            break;
        pnr_clock_sleep_until(now_ns + 1000000, NULL);
    }
    atomic_store(&s->stop, true);
    pthread_join(s->thread, NULL);
    out->results = s->results;
    out->bytes = s->bytes;
    out->last_ns = atomic_load(&s->last_ns);
    out->ended = atomic_load(&s->ended);
    destroy_subscriber(s);
}

/* --- the run --- */

/* Returns the size of the ring in bytes. If ring.bytes is at least one dwell, returns ring.bytes
 * rounded down to whole dwells. Else returns the space of all submits in flight and of two more,
 * but at least RING_SAMPLES samples. A live feed gets more space, because it drops samples when the
 * ring is full. The ring holds whole dwells, so the code continues without a phase jump when the
 * samples are committed again. */
static size_t ring_bytes(const pnr_config *config, const pnr_setup *setup, double rate_hz)
{
    const pnr_plan *plan = &setup->plan;
    const size_t n_submits = pnr_setup_in_flight(setup) + 2;
    const size_t dwell = pnr_plan_dwell_samples(plan);
    const size_t dwell_bytes = dwell * pnr_format_get(plan->format)->bytes * plan->n_channels;
    const size_t in_hiccup = (size_t)(hiccup_s * rate_hz / (double)dwell);
    size_t n_dwells =
        (rate_hz > 0 && n_submits < LIVE_SUBMITS ? LIVE_SUBMITS : n_submits) * plan->batch;

    if (n_dwells < in_hiccup)
        n_dwells = in_hiccup;
    if (config->ring.bytes >= dwell_bytes)
        return config->ring.bytes / dwell_bytes * dwell_bytes;
    if (n_dwells * dwell < RING_SAMPLES)
        n_dwells = (RING_SAMPLES + dwell - 1) / dwell;
    return n_dwells * dwell_bytes;
}

int bench_run(const pnr_config *config, const pnr_setup *setup, double rate_hz,
              const bench_run_hooks *hooks, bench_outcome *out, pnr_error *error)
{
    const pnr_pipeline_options options = {.stop = &pnr_stop,
                                          .can_isolate = true,
                                          .tap = hooks->tap,
                                          .tap_context = hooks->context,
                                          .feed = hooks->feed,
                                          .feed_context = hooks->context};
    bench_subscriber *subscriber = NULL;
    pnr_config fed = *config;
    int rc;

    memset(out, 0, sizeof *out);
    fed.ring.seconds = 0;
    fed.ring.bytes = ring_bytes(config, setup, rate_hz);
    if (rate_hz > 0) {
        fed.source.pace = PNR_PACE_REAL_TIME;
        /* default of the deadline: the time in which the feed fills the ring */
        if (fed.engine.deadline == 0)
            fed.engine.deadline =
                (double)fed.ring.bytes / (rate_hz * (double)pnr_plan_sample_bytes(&setup->plan));
    }
    fed.publisher.wait_s = patience_s;
    if (fed.publisher.high_water < hooks->high_water)
        fed.publisher.high_water = hooks->high_water;
    rc = bench_subscriber_start(fed.publisher.endpoint, hooks->spin, hooks->seen, hooks->context,
                                &subscriber, error);
    if (rc == PNR_OK)
        rc = pnr_pipeline_run(&fed, &options, &out->account, error);
    bench_subscriber_finish(subscriber, rc == PNR_OK ? patience_s : 0.0, &out->received);
    return rc;
}

bool bench_is_complete(const bench_outcome *outcome)
{
    return pnr_account_closes(&outcome->account) && outcome->received.ended;
}

bool bench_is_lossless(const bench_outcome *outcome)
{
    return pnr_account_lossless(&outcome->account) &&
           outcome->received.results == outcome->account.sent;
}

void bench_warn_open(const bench_outcome *outcome, size_t n_samples)
{
    char text[512];

    if (!pnr_account_closes(&outcome->account))
        pnr_log(PNR_LOG_ERROR, "N = %zu: the account does not close: %s", n_samples,
                pnr_account_format(&outcome->account, text, sizeof text));
    if (!outcome->received.ended)
        pnr_log(PNR_LOG_ERROR, "N = %zu: the subscriber never saw the end", n_samples);
}

void bench_commit_live(pnr_ring *ring, size_t n)
{
    while (n > 0) {
        void *data;
        size_t room;

        if (pnr_ring_reserve(ring, n, &data, &room) != PNR_OK) {
            pnr_ring_skip(ring, n, PNR_LOST_RING_FULL);
            return;
        }
        pnr_ring_commit(ring, room);
        n -= room;
    }
}
