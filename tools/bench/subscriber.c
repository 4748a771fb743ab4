/* SPDX-License-Identifier: MIT */
/* The subscriber of bench stream: a real one, in a thread of its own, that counts results by their
 * seq. */
#include "tools/bench/stream.h"

#include "base/clock.h"
#include "publisher/message.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

struct stream_subscriber {
    void *context, *socket;
    pthread_t thread;
    bool spin;
    stream_seen seen; /* may be NULL */
    void *seen_context;
    _Atomic uint64_t last_ns; /* when the last message came */
    _Atomic bool stop, ended;
    uint64_t received, first_seq, next_seq, bytes; /* the thread's, until it is joined */
};

enum { MAX_PARTS = 4, POLL_MS = 50, HIGH_WATER = 1000000 };

/* Results first_seq .. first_seq + n - 1 came. */
static void count(stream_subscriber *s, uint64_t first_seq, uint64_t n)
{
    if (s->received == 0)
        s->first_seq = first_seq;
    s->received += n;
    s->next_seq = first_seq + n;
    if (s->seen != NULL)
        s->seen(s->seen_context, first_seq, n, atomic_load(&s->last_ns));
}

/* The members that are counted come first in every message; the echoes behind them are not read. */
static void take_single(stream_subscriber *s, const char *text, size_t length)
{
    static const char key[] = "\"seq\":";
    const char *at = memmem(text, length, key, sizeof key - 1);
    uint64_t seq = 0;

    if (at == NULL)
        return;
    for (at += sizeof key - 1; at < text + length && *at >= '0' && *at <= '9'; at++)
        seq = seq * 10 + (uint64_t)(*at - '0');
    count(s, seq, 1);
}

static void take_pack(stream_subscriber *s, const char *text, size_t length)
{
    json_t *header = json_loadb(text, length, 0, NULL);
    json_int_t seq, n;

    if (json_unpack(header, "{s:I, s:I}", "seq", &seq, "n_results", &n) == 0 && seq >= 0 && n > 0)
        count(s, (uint64_t)seq, (uint64_t)n);
    json_decref(header);
}

/* One message of up to MAX_PARTS parts. */
static void take(stream_subscriber *s, zmq_msg_t *parts, size_t n_parts)
{
    const char *topic = zmq_msg_data(&parts[0]);
    const size_t length = zmq_msg_size(&parts[0]);

    if (n_parts < 2)
        return;
    if (length >= 6 && memcmp(topic, "range/", 6) == 0) {
        if (n_parts == 2)
            take_single(s, zmq_msg_data(&parts[1]), zmq_msg_size(&parts[1]));
        else
            take_pack(s, zmq_msg_data(&parts[1]), zmq_msg_size(&parts[1]));
    } else if (length >= 4 && memcmp(topic, "end/", 4) == 0) {
        atomic_store(&s->ended, true);
    }
}

static void *subscribe(void *argument)
{
    stream_subscriber *s = argument;
    zmq_msg_t parts[MAX_PARTS];

    while (!atomic_load(&s->stop) && !atomic_load(&s->ended)) {
        size_t n = 0;
        int more = 1;

        while (more && n < MAX_PARTS) {
            zmq_msg_init(&parts[n]);
            if (zmq_msg_recv(&parts[n], s->socket, s->spin ? ZMQ_DONTWAIT : 0) < 0) {
                zmq_msg_close(&parts[n]);
                break;
            }
            s->bytes += zmq_msg_size(&parts[n]);
            more = zmq_msg_more(&parts[n++]);
        }
        if (n > 0) {
            atomic_store(&s->last_ns, pnr_clock_ns());
            take(s, parts, n);
        }
        while (n > 0)
            zmq_msg_close(&parts[--n]);
    }
    return NULL;
}

static void destroy(stream_subscriber *s)
{
    if (s->socket != NULL)
        zmq_close(s->socket);
    if (s->context != NULL)
        zmq_ctx_term(s->context);
    free(s);
}

int stream_subscriber_start(const char *endpoint, bool spin, stream_seen seen, void *context,
                            stream_subscriber **out, pnr_error *error)
{
    stream_subscriber *s = calloc(1, sizeof *s);
    const int high_water = HIGH_WATER, patience_ms = POLL_MS, linger_ms = 0;
    int rc;

    *out = NULL;
    if (s == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a subscriber");
    s->spin = spin;
    s->seen = seen;
    s->seen_context = context;
    s->context = zmq_ctx_new();
    s->socket = s->context != NULL ? zmq_socket(s->context, ZMQ_SUB) : NULL;
    if (s->socket == NULL ||
        zmq_setsockopt(s->socket, ZMQ_RCVHWM, &high_water, sizeof high_water) != 0 ||
        zmq_setsockopt(s->socket, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms) != 0 ||
        zmq_setsockopt(s->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms) != 0 ||
        zmq_setsockopt(s->socket, ZMQ_SUBSCRIBE, "range/", 6) != 0 ||
        zmq_setsockopt(s->socket, ZMQ_SUBSCRIBE, "end/", 4) != 0 ||
        zmq_connect(s->socket, endpoint) != 0) {
        rc = pnr_error_set(error, PNR_EUNAVAILABLE, "subscriber of %s: %s", endpoint,
                           zmq_strerror(zmq_errno()));
        destroy(s);
        return rc;
    }
    rc = pthread_create(&s->thread, NULL, subscribe, s);
    if (rc != 0) {
        destroy(s);
        return pnr_error_set(error, PNR_EUNAVAILABLE, "subscriber thread: %s", strerror(rc));
    }
    *out = s;
    return PNR_OK;
}

void stream_subscriber_finish(stream_subscriber *subscriber, double patience_s, stream_result *out)
{
    const uint64_t patience_ns = (uint64_t)(patience_s * 1e9);
    const uint64_t start_ns = pnr_clock_ns();

    if (subscriber == NULL)
        return;
    for (;;) {
        const uint64_t now_ns = pnr_clock_ns(), last_ns = atomic_load(&subscriber->last_ns);
        const uint64_t since_ns = last_ns > start_ns ? last_ns : start_ns;

        if (atomic_load(&subscriber->ended) || now_ns > since_ns + patience_ns)
            break;
        pnr_clock_sleep_until(now_ns + 1000000, NULL);
    }
    atomic_store(&subscriber->stop, true);
    pthread_join(subscriber->thread, NULL);
    out->received = subscriber->received;
    out->bytes = subscriber->bytes;
    out->last_ns = atomic_load(&subscriber->last_ns);
    out->ended = atomic_load(&subscriber->ended);
    out->missed = subscriber->received > 0
                      ? subscriber->next_seq - subscriber->first_seq - subscriber->received
                      : 0;
    destroy(subscriber);
}
