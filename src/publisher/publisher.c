/* SPDX-License-Identifier: MIT */
/* The publisher: a ZeroMQ XPUB socket that never blocks a live stream. */
#include "publisher/publisher.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/plan.h"
#include "publisher/buffers.h"
#include "publisher/endpoint.h"
#include "publisher/gnuradio.h"
#include "publisher/guard.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <zmq.h>

enum {
    TOPIC_LEN = PNR_TEXT_LEN + 16,
    MAX_DRAIN = 4096, /* largest number of messages that one call reads */
    POLL_MS = 50,
    PAUSE_NS = 200000 /* time between two tries to acquire a buffer */
};

typedef enum {
    TOPIC_RANGE,
    TOPIC_PROFILE,
    TOPIC_MAP,
    TOPIC_STATUS,
    TOPIC_EVENT,
    TOPIC_END,
    TOPIC_COUNT
} topic_kind;
static const char *const topic_names[] = {"range", "profile", "map", "status", "event", "end"};

typedef struct topic {
    char name[TOPIC_LEN]; /* "range/<stream>" */
    uint64_t seq;         /* number of the next message */
} topic;

struct pnr_publisher {
    const pnr_config *config;
    pnr_events *events; /* may be NULL */
    void *context;
    void *socket; /* NULL: the publisher sends nothing */
    pnr_guard *guard;
    char endpoint[PNR_ENDPOINT_LEN];
    char run[17];
    char stream[PNR_TEXT_LEN];
    topic topics[TOPIC_COUNT];
    size_t n_subscribers[TOPIC_COUNT];
    bool was_heard; /* a peer has subscribed to a topic */
    char text[PNR_MESSAGE_MAX];

    /* with publisher.pack > 1: the results that are kept until the pack is full */
    size_t pack;
    size_t n_results, n_records, max_records;
    pnr_record *records; /* [max_records] */
    pnr_report first;    /* the first report of the pack */

    pnr_buffers cells; /* buffers of profiles and maps that a subscriber has not yet received */
    double patience_s; /* longest wait for a free buffer */
    bool is_stalled;   /* the last wait ended without a free buffer */
    const volatile int *stop;

    pnr_gnuradio *gnuradio; /* NULL: publisher.gnuradio is not set */
};

/* The binary part of a message. */
typedef struct attachment {
    const void *data;
    size_t bytes;
    pnr_buffer *buffer; /* buffer of the data, which libzmq releases; NULL: the data is copied */
} attachment;

static int make_part(zmq_msg_t *message, const attachment *part)
{
    pnr_buffer *buffer = part->buffer;

    if (buffer != NULL)
        return zmq_msg_init_data(message, buffer->data, part->bytes, pnr_buffers_release, buffer);
    if (zmq_msg_init_size(message, part->bytes) != 0)
        return -1;
    memcpy(zmq_msg_data(message), part->data, part->bytes);
    return 0;
}

/* Sends all parts, or none: libzmq refuses the first part if it refuses any. */
static int send_parts(pnr_publisher *p, zmq_msg_t *messages, size_t n)
{
    for (size_t i = 0; i < n; i++)
        while (zmq_msg_send(&messages[i], p->socket, ZMQ_DONTWAIT | (i + 1 < n ? ZMQ_SNDMORE : 0)) <
               0)
            if (errno != EINTR)
                return PNR_EAGAIN;
    return PNR_OK;
}

/* Sends the topic, the text in p->text and the attachment (NULL: none), or sends nothing. All parts
 * are allocated before the first one is sent. */
static int send_text(pnr_publisher *p, topic_kind kind, size_t length, const attachment *attached)
{
    const attachment parts[] = {
        {.data = p->topics[kind].name, .bytes = strlen(p->topics[kind].name)},
        {.data = p->text, .bytes = length},
        attached != NULL ? *attached : (attachment){0},
    };
    const size_t n_parts = length == 0 ? 0 : attached != NULL ? 3 : 2;
    zmq_msg_t messages[3];
    size_t n = 0;
    int code = PNR_EAGAIN;

    while (n < n_parts && make_part(&messages[n], &parts[n]) == 0)
        n++;
    if (n == n_parts && n > 0)
        code = send_parts(p, messages, n);
    else if (attached != NULL && attached->buffer != NULL) /* no message part releases the buffer */
        pnr_buffers_release(attached->buffer->data, attached->buffer);
    for (size_t i = 0; i < n; i++)
        zmq_msg_close(&messages[i]); /* does nothing for a message that was sent */
    return code;
}

/* --- packed results --- */

int pnr_publisher_flush(pnr_publisher *p)
{
    const attachment records = {p->records, p->n_records * sizeof *p->records, NULL};
    int code;

    if (p->n_results == 0)
        return PNR_OK;
    code = send_text(
        p, TOPIC_RANGE,
        pnr_message_write_pack(&p->first, p->n_results, p->n_records, p->text, sizeof p->text),
        &records);
    if (code == PNR_OK)
        p->n_results = p->n_records = 0;
    return code;
}

size_t pnr_publisher_waiting(const pnr_publisher *p)
{
    return p->n_results;
}

static int pack_result(pnr_publisher *p, const pnr_report *report)
{
    const size_t n_echoes = report->detection.n_echoes;
    const size_t n_new = n_echoes > 0 ? n_echoes : 1;

    if ((p->n_results == p->pack || n_new > p->max_records - p->n_records) &&
        pnr_publisher_flush(p) != PNR_OK)
        return PNR_EAGAIN;
    if (p->n_results == 0)
        p->first = *report;
    for (size_t i = 0; i < n_new; i++)
        pnr_message_fill_record(report, i, &p->records[p->n_records++]);
    if (++p->n_results == p->pack)
        (void)pnr_publisher_flush(p); /* after a refusal the next call tries again */
    return PNR_OK;
}

/* --- messages --- */

/* Copies run and stream into a message of this topic. Returns the seq of the message. */
static uint64_t sign_message(pnr_publisher *p, topic_kind kind, char run[17],
                             char stream[PNR_TEXT_LEN])
{
    memcpy(run, p->run, sizeof p->run);
    memcpy(stream, p->stream, sizeof p->stream);
    return p->topics[kind].seq++;
}

int pnr_publisher_send_range(pnr_publisher *p, pnr_report *report)
{
    report->seq = sign_message(p, TOPIC_RANGE, report->run, report->stream);
    if (p->socket == NULL)
        return PNR_OK;
    if (p->pack > 1)
        return pack_result(p, report);
    return send_text(p, TOPIC_RANGE, pnr_message_write_range(report, p->text, sizeof p->text),
                     NULL);
}

void pnr_publisher_skip_ranges(pnr_publisher *p, uint64_t n)
{
    p->topics[TOPIC_RANGE].seq += n;
}

/* Waits at most patience_s for a free buffer. After a wait without success, does not wait again
 * until a call finds a free buffer: a subscriber that has stopped delays the run only once. */
static pnr_buffer *wait_for_buffer(pnr_publisher *p)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const uint64_t begin_ns = pnr_clock_ns();
    pnr_buffer *buffer = pnr_buffers_acquire(&p->cells);

    while (buffer == NULL && !p->is_stalled && (p->stop == NULL || !*p->stop) &&
           (double)(pnr_clock_ns() - begin_ns) * 1e-9 < p->patience_s) {
        (void)nanosleep(&pause, NULL);
        buffer = pnr_buffers_acquire(&p->cells);
    }
    p->is_stalled = buffer == NULL;
    return buffer;
}

int pnr_publisher_send_cells(pnr_publisher *p, const pnr_report *report, const pnr_map_info *info,
                             const float *cells)
{
    const topic_kind kind = pnr_map_is_profile(info) ? TOPIC_PROFILE : TOPIC_MAP;
    const uint64_t seq = p->topics[kind].seq++;
    const size_t bytes = pnr_map_bytes(info);
    pnr_buffer *buffer;

    if (p->gnuradio != NULL) /* a gap in the numbers of the vectors shows a refusal */
        (void)pnr_gnuradio_send(p->gnuradio, report, info, cells);
    if (p->socket == NULL)
        return PNR_OK;
    if ((buffer = wait_for_buffer(p)) == NULL)
        return PNR_EAGAIN;
    memcpy(buffer->data, cells, bytes);
    return send_text(p, kind, pnr_message_write_cells(report, seq, info, p->text, sizeof p->text),
                     &(attachment){.bytes = bytes, .buffer = buffer});
}

int pnr_publisher_send_status(pnr_publisher *p, pnr_status *status, bool is_end)
{
    const topic_kind kind = is_end ? TOPIC_END : TOPIC_STATUS;

    status->subscribers = pnr_publisher_subscribers(p);
    status->access = pnr_endpoint_access(p->config);
    status->seq = sign_message(p, kind, status->run, status->stream);
    if (p->socket == NULL)
        return PNR_OK;
    return send_text(p, kind, pnr_message_write_status(status, p->text, sizeof p->text), NULL);
}

int pnr_publisher_send_event(pnr_publisher *p, const pnr_event *event)
{
    const uint64_t seq = p->topics[TOPIC_EVENT].seq++;

    if (p->socket == NULL)
        return PNR_OK;
    return send_text(
        p, TOPIC_EVENT,
        pnr_message_write_event(p->run, p->stream, seq, event, p->text, sizeof p->text), NULL);
}

/* --- subscribers --- */

/* Counts a subscription, or its end, for every topic that begins with the subscribed prefix. */
static void count_subscription(pnr_publisher *p, const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < TOPIC_COUNT && size > 0; i++) {
        const char *name = p->topics[i].name;
        size_t *n = &p->n_subscribers[i];

        if (size - 1 > strlen(name) || memcmp(data + 1, name, size - 1) != 0)
            continue;
        if (data[0] == 1) {
            ++*n;
            p->was_heard = true;
        }
        if (data[0] == 0 && *n > 0)
            --*n;
    }
}

size_t pnr_publisher_subscribers(pnr_publisher *p)
{
    unsigned char data[PNR_GUARD_SUBSCRIPTION_LEN];
    size_t size;
    int code = PNR_OK;

    for (int i = 0; p->socket != NULL && i < MAX_DRAIN && code != PNR_EAGAIN; i++)
        if ((code = pnr_guard_receive(p->guard, data, &size)) == PNR_OK)
            count_subscription(p, data, size);
    return p->n_subscribers[TOPIC_RANGE];
}

bool pnr_publisher_was_heard(const pnr_publisher *p)
{
    return p->was_heard;
}

int pnr_publisher_wait(pnr_publisher *p, double patience_s, const volatile int *stop)
{
    const uint64_t begin_ns = pnr_clock_ns();

    if (p->gnuradio != NULL && pnr_gnuradio_wait(p->gnuradio, patience_s, stop) != PNR_OK)
        return PNR_EAGAIN;
    if (p->socket == NULL)
        return PNR_OK; /* no subscriber can connect */
    while (stop == NULL || !*stop) {
        zmq_pollitem_t item = {.socket = p->socket, .events = ZMQ_POLLIN};

        if (pnr_publisher_subscribers(p) + p->n_subscribers[TOPIC_EVENT] > 0)
            return PNR_OK;
        if ((double)(pnr_clock_ns() - begin_ns) * 1e-9 >= patience_s)
            break;
        (void)zmq_poll(&item, 1, POLL_MS);
    }
    return PNR_EAGAIN;
}

const char *pnr_publisher_endpoint(const pnr_publisher *p)
{
    return p->endpoint;
}

/* --- create and destroy --- */

static int make_run(char run[17], pnr_error *error)
{
    uint64_t number;

    while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        if (errno != EINTR)
            return pnr_error_set(error, PNR_EUNAVAILABLE, "getrandom: %s", strerror(errno));
    snprintf(run, 17, "%016" PRIx64, number);
    return PNR_OK;
}

void pnr_publisher_begin_run(pnr_publisher *p)
{
    (void)make_run(p->run, NULL); /* getrandom has worked in pnr_publisher_create */
    for (size_t i = 0; i < TOPIC_COUNT; i++)
        p->topics[i].seq = 0;
    p->n_results = p->n_records = 0;
}

static int positive_int(double value)
{
    return value < 1 ? 1 : value > INT_MAX ? INT_MAX : (int)value;
}

static int set_options(const pnr_publisher *p, const pnr_config *config, pnr_error *error)
{
    const struct {
        int option, value;
        const char *name;
    } options[] = {
        /* ZMQ_SNDHWM = 0 would mean no limit, so positive_int returns at least 1. */
        {ZMQ_SNDHWM, positive_int((double)config->publisher.high_water), "publisher.high_water"},
        {ZMQ_LINGER, positive_int(config->publisher.linger_s * 1e3), "publisher.linger_s"},
    };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (zmq_setsockopt(p->socket, options[i].option, &options[i].value,
                           sizeof options[i].value) != 0)
            return pnr_refuse(error, "%s = %d is refused by libzmq: %s", options[i].name,
                              options[i].value, zmq_strerror(zmq_errno()));
    return PNR_OK;
}

/* Moves the libzmq thread to the processor of the processing thread, if that thread spins. The
 * processor of a thread that spins is awake; an idle processor needs tens of microseconds to wake
 * up. Moves nothing if the processing thread has a real-time priority, because the libzmq thread
 * would never run. Checks the affinity first, because libzmq aborts on a forbidden processor. */
static void share_processor(void *context, const pnr_config *config)
{
    const int cpu = config->realtime.processing_cpu;
    cpu_set_t allowed;

    if (config->engine.wait == PNR_WAIT_SPIN && config->realtime.priority == 0 && cpu >= 0 &&
        cpu < CPU_SETSIZE && sched_getaffinity(0, sizeof allowed, &allowed) == 0 &&
        CPU_ISSET(cpu, &allowed))
        (void)zmq_ctx_set(context, ZMQ_THREAD_AFFINITY_CPU_ADD, cpu);
}

static int open_socket(pnr_publisher *p, const pnr_config *config, pnr_error *error)
{
    /* Each connection uses two descriptors, one of libzmq and one of the guard. */
    int code = pnr_endpoint_enough_files(PNR_ENDPOINT_FILES + 2 * config->publisher.max_subscribers,
                                         error);

    if (code != PNR_OK)
        return code;
    if ((p->context = zmq_ctx_new()) != NULL)
        share_processor(p->context, config);
    p->socket = p->context != NULL ? zmq_socket(p->context, ZMQ_XPUB) : NULL;
    if (p->socket == NULL)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "publisher: no ZeroMQ socket: %s",
                             zmq_strerror(zmq_errno()));
    if ((code = set_options(p, config, error)) != PNR_OK ||
        (code = pnr_guard_create(p->context, p->socket, config, config->publisher.curve_clients,
                                 p->events, &p->guard, error)) != PNR_OK)
        return code;
    return pnr_endpoint_bind(p->socket, config, PNR_BIND_RESULTS, p->endpoint, error);
}

static int allocate_pack(pnr_publisher *p, const pnr_config *config, pnr_error *error)
{
    const size_t max_echoes = config->detector.max_echoes;
    const size_t a_result =
        max_echoes > 0 && max_echoes < PNR_MAX_CANDIDATES ? max_echoes : PNR_MAX_CANDIDATES;

    p->pack = config->publisher.pack;
    if (p->pack <= 1)
        return PNR_OK;
    if (p->pack <= SIZE_MAX / sizeof *p->records / PNR_MAX_CANDIDATES) {
        p->max_records = p->pack * a_result;
        if (p->max_records < PNR_MAX_CANDIDATES) /* a result may have this many records */
            p->max_records = PNR_MAX_CANDIDATES;
        p->records = calloc(p->max_records, sizeof *p->records);
    }
    if (p->records == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "publisher.pack = %zu: no memory for it",
                             p->pack);
    return PNR_OK;
}

int pnr_publisher_create(const pnr_config *config, pnr_events *events, pnr_publisher **out,
                         pnr_error *error)
{
    pnr_publisher *p = calloc(1, sizeof *p);
    int code;

    *out = NULL;
    if (p == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "publisher: out of memory");
    p->config = config;
    p->events = events;
    memcpy(p->stream, config->stream.name, sizeof p->stream);
    p->stream[sizeof p->stream - 1] = '\0';
    for (size_t i = 0; i < TOPIC_COUNT; i++)
        snprintf(p->topics[i].name, TOPIC_LEN, "%s/%s", topic_names[i], p->stream);
    if ((code = make_run(p->run, error)) != PNR_OK)
        goto fail;
    if (config->publisher.endpoint[0] != '\0' &&
        ((code = allocate_pack(p, config, error)) != PNR_OK ||
         (code = open_socket(p, config, error)) != PNR_OK))
        goto fail;
    *out = p;
    return PNR_OK;
fail:
    pnr_publisher_destroy(p);
    return code;
}

int pnr_publisher_reserve_cells(pnr_publisher *p, const pnr_map_info *info, double patience_s,
                                const volatile int *stop, pnr_error *error)
{
    const size_t bytes = pnr_map_bytes(info), most = pnr_plan_maps(bytes);
    /* A recording waits until a map is received. Meanwhile the next ones are in the queue of
     * results and in the engine. */
    const size_t n = patience_s > 0 ? (most + 1) / 2 : most;

    p->patience_s = patience_s;
    p->stop = stop;
    if (p->config->publisher.gnuradio[0] != '\0') {
        const int code =
            pnr_gnuradio_open(p->config, info, patience_s, stop, p->events, &p->gnuradio, error);

        if (code != PNR_OK)
            return code;
    }
    if (p->socket == NULL || pnr_buffers_create(n, bytes, &p->cells) == PNR_OK)
        return PNR_OK;
    return pnr_error_set(error, PNR_ENOMEMORY,
                         "publisher.profile: no memory for %zu maps of %.4g MiB", n,
                         (double)bytes / 0x1p20);
}

void pnr_publisher_destroy(pnr_publisher *p)
{
    if (p == NULL)
        return;
    pnr_gnuradio_close(p->gnuradio);
    pnr_guard_destroy(p->guard);
    if (p->socket != NULL)
        zmq_close(p->socket);
    while (p->context != NULL && zmq_ctx_term(p->context) != 0 && zmq_errno() == EINTR)
        ;
    pnr_buffers_destroy(&p->cells); /* zmq_ctx_term has released all buffers */
    free(p->records);
    free(p);
}
