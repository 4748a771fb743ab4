/* SPDX-License-Identifier: MIT */
/* Receives samples of a GNU Radio flow graph over ZeroMQ, from its PUB sink or its PUSH sink. */
#include "source/gr_tags.h"
#include "source/kind.h"
#include "source/zmq_sender.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    PATIENCE_MS = 50,
    MAX_MESSAGE_BYTES = 1 << 24,
    MOST_WAITING = 16,     /* high-water mark of libzmq, in messages; each has at most
                        * MAX_MESSAGE_BYTES */
    MAX_ASTRAY = 16,       /* after this number of consecutive refused offsets, the sender counts as
                      * restarted */
    MAX_FURTHER = 8,       /* limit of the number of parts after the items of a message */
    MAX_GAP_S = 24 * 3600, /* a longer gap means a wrong offset or time */
    KEEPALIVE_S = 5,       /* time between the probes of a silent connection */
    KEEPALIVE_PROBES = 2   /* the connection ends after this number of probes without an answer */
};
static const char sub_prefix[] = "zmq-sub:", pull_prefix[] = "zmq-pull:", bind_word[] = "bind:";

typedef struct stream {
    pnr_source_input *input;
    const char *endpoint;
    void *context, *socket;
    bool is_sub, is_bound, has_tags;
    const char *key; /* source.zmq_key; "": any key */
    pnr_rational rate_hz;
    size_t item_bytes;
    pnr_zmq_sender sender; /* used only if is_bound */

    zmq_msg_t message;
    const unsigned char *items;
    size_t n_items; /* items of the message that are not read yet */
    pnr_gr_header header;
    size_t next_time; /* index in header.times */

    bool has_begun;
    uint64_t offset;   /* GNU Radio's number of the next item */
    uint64_t position; /* position of the next item in the stream */
    uint64_t gap;      /* number of samples lost before the next item */
    unsigned n_astray;

    bool has_clock; /* clock_utc_ns is the time of clock_position, from a tag rx_time */
    uint64_t clock_position;
    int64_t clock_utc_ns;
} stream;

/* --- one message --- */

/* Receives a part of a message. False: none waits. */
static bool receive_part(stream *s, zmq_msg_t *part)
{
    zmq_msg_close(part);
    zmq_msg_init(part);
    return zmq_msg_recv(part, s->socket, ZMQ_DONTWAIT) >= 0;
}

/* Receives and drops the parts after the items. Returns their number. */
static size_t drop_further_parts(stream *s)
{
    bool more = zmq_msg_more(&s->message);
    zmq_msg_t part;
    size_t n = 0;

    zmq_msg_init(&part);
    for (; more && receive_part(s, &part); n++)
        more = zmq_msg_more(&part);
    zmq_msg_close(&part);
    return n;
}

/* Receives a message: a key, if the sender has one, and items. Drops further parts. PNR_EAGAIN:
 * there is no message, or it is refused. */
static int receive_message(stream *s)
{
    zmq_pollitem_t wanted = {.socket = s->socket, .events = ZMQ_POLLIN};
    bool is_ours = true, has_items = true;

    if (zmq_poll(&wanted, 1, PATIENCE_MS) <= 0 || !receive_part(s, &s->message))
        return PNR_EAGAIN;
    if (s->key[0] != '\0')
        is_ours = zmq_msg_size(&s->message) == strlen(s->key) &&
                  memcmp(zmq_msg_data(&s->message), s->key, strlen(s->key)) == 0;
    if (zmq_msg_more(&s->message))
        (void)receive_part(s, &s->message);
    else
        has_items = s->key[0] == '\0';

    const size_t n_further = drop_further_parts(s);
    const char *reason = s->is_bound && !pnr_zmq_sender_admits(&s->sender, &s->message)
                             ? "it comes over another connection than the stream"
                         : !is_ours                ? "it has another key than source.zmq_key"
                         : !has_items              ? "it has a key and no items"
                         : n_further > MAX_FURTHER ? "many parts follow its items"
                                                   : NULL;

    if (reason != NULL)
        pnr_source_refuse(s->input, reason);
    return reason == NULL ? PNR_OK : PNR_EAGAIN;
}

/* Checks that the items follow the previous ones, and sets s->gap to the number of missing items.
 * PNR_EAGAIN: the message is refused; PNR_EDATA: the sender has restarted. */
static int follow_offset(stream *s, pnr_error *error)
{
    const uint64_t most = (uint64_t)(MAX_GAP_S * pnr_rational_double(s->rate_hz));
    const uint64_t offset = s->header.offset;

    if (!s->has_begun)
        s->offset = offset;
    if (offset >= s->offset && offset - s->offset <= most) {
        s->gap = offset - s->offset;
        s->offset = offset;
        s->has_begun = true;
        s->n_astray = 0;
        return PNR_OK;
    }
    if (++s->n_astray >= MAX_ASTRAY)
        return pnr_error_set(error, PNR_EDATA,
                             "%.200s: the sender has restarted: its items go on at %" PRIu64
                             ", not at %" PRIu64,
                             s->input->name, offset, s->offset);
    pnr_source_refuse(s->input,
                      offset < s->offset ? "its items came before" : "its items are a day ahead");
    return PNR_EAGAIN;
}

/* Sets items and n_items. PNR_EAGAIN: the message is refused; PNR_ECONFIG: it states another rate;
 * PNR_EDATA: the sender has restarted. */
static int open_message(stream *s, pnr_error *error)
{
    const unsigned char *bytes = zmq_msg_data(&s->message);
    size_t n_bytes = zmq_msg_size(&s->message);
    pnr_error reason = {0};
    int code = pnr_gr_header_read(bytes, n_bytes, &s->header, &reason);

    s->next_time = 0;
    if (!s->has_tags) {
        if (code == PNR_OK || (pnr_gr_is_header(bytes, n_bytes) && n_bytes % s->item_bytes != 0)) {
            pnr_source_refuse(s->input, "it has stream tags: set source.zmq_tags = yes");
            return PNR_EAGAIN;
        }
        s->header = (pnr_gr_header){0};
    } else if (code != PNR_OK) {
        pnr_source_refuse(
            s->input,
            pnr_gr_is_header(bytes, n_bytes)
                ? reason.text
                : "it has no stream tags: set pass_tags in GNU Radio, or source.zmq_tags = no");
        return PNR_EAGAIN;
    }
    bytes += s->header.n_bytes;
    n_bytes -= s->header.n_bytes;
    if (n_bytes % s->item_bytes != 0) {
        snprintf(reason.text, sizeof reason.text, "its %zu bytes are no whole items of %zu",
                 n_bytes, s->item_bytes);
        pnr_source_refuse(s->input, reason.text);
        return PNR_EAGAIN;
    }
    if (s->header.rate_hz > 0 &&
        fabs(s->header.rate_hz / pnr_rational_double(s->rate_hz) - 1) > 1e-6)
        return pnr_refuse(error, "%.200s: rx_rate is %.10g Hz, source.rate_hz says %.10g Hz",
                          s->input->name, s->header.rate_hz, pnr_rational_double(s->rate_hz));
    if (s->has_tags && (code = follow_offset(s, error)) != PNR_OK)
        return code;
    s->items = bytes;
    s->n_items = n_bytes / s->item_bytes;
    if (s->is_bound)
        pnr_zmq_sender_hear(&s->sender, &s->message);
    return PNR_OK;
}

/* --- the stream --- */

/* Compares the tags rx_time of the next item with the clock of the stream. The first tag sets this
 * clock. If the time of a later tag is ahead of the clock, the receiver has lost the samples
 * between the two times. */
static void take_times(stream *s)
{
    const __int128 ns_per_s = PNR_NS_PER_S, num = s->rate_hz.num, den = s->rate_hz.den;
    const double most = MAX_GAP_S * pnr_rational_double(s->rate_hz);

    for (; s->next_time < s->header.n_times; s->next_time++) {
        const pnr_gr_time *t = &s->header.times[s->next_time];
        const __int128 counted = s->position + s->gap - s->clock_position;

        if (t->offset != s->offset)
            return;
        if (!s->has_clock) {
            s->has_clock = true;
            s->clock_position = s->position + s->gap;
            s->clock_utc_ns = t->utc_ns;
            continue;
        }

        const __int128 elapsed = t->utc_ns - s->clock_utc_ns;
        const __int128 passed =
            elapsed >= 0 ? (elapsed * num * 2 + den * ns_per_s) / (2 * den * ns_per_s) : -1;

        if (passed < counted || (double)(passed - counted) > most)
            pnr_source_refuse(
                s->input,
                "its rx_time steps back, or ahead by more than a day; its items are taken");
        else
            s->gap += (uint64_t)(passed - counted);
    }
}

static int stream_read(void *state, void *data, size_t max_samples, pnr_source_block *block,
                       pnr_error *error)
{
    stream *s = state;
    size_t n;
    int code;

    if (s->n_items == 0 &&
        ((code = receive_message(s)) != PNR_OK || (code = open_message(s, error)) != PNR_OK))
        return code;
    if (s->n_items == 0)
        return PNR_EAGAIN;
    take_times(s);
    block->has_time = s->has_clock && s->position >= s->clock_position;
    if (block->has_time)
        block->utc_ns =
            s->clock_utc_ns + pnr_rational_time_ns(s->rate_hz, s->position - s->clock_position);
    if ((block->gap = s->gap) > 0) {
        s->position += s->gap;
        s->gap = 0;
        return PNR_OK;
    }
    n = s->n_items < max_samples ? s->n_items : max_samples;
    if (s->next_time < s->header.n_times && s->header.times[s->next_time].offset - s->offset < n)
        n = (size_t)(s->header.times[s->next_time].offset - s->offset);
    memcpy(data, s->items, n * s->item_bytes);
    s->items += n * s->item_bytes;
    s->n_items -= n;
    s->offset += n;
    s->position += n;
    block->n_samples = n;
    return PNR_OK;
}

static int stream_describe(pnr_source_input *input, const pnr_config *config, pnr_source_info *info,
                           void **state, pnr_error *error)
{
    stream *s = calloc(1, sizeof *s);
    const pnr_format format =
        config->source.format != PNR_FORMAT_NONE ? config->source.format : PNR_FORMAT_CF32;
    const pnr_format_info *words = pnr_format_get(format);

    if (s == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a ZeroMQ source");
    *state = s;
    zmq_msg_init(&s->message);
    if (pnr_format_in_memory(format) != format)
        return pnr_refuse(error, "source.format = %s is for raw files and pipes alone",
                          words->name);
    s->input = input;
    s->is_sub = strncmp(input->name, sub_prefix, sizeof sub_prefix - 1) == 0;
    s->endpoint = input->name + strlen(s->is_sub ? sub_prefix : pull_prefix);
    s->is_bound = strncmp(s->endpoint, bind_word, sizeof bind_word - 1) == 0;
    s->endpoint += s->is_bound ? strlen(bind_word) : 0;
    s->has_tags = config->source.zmq_tags;
    s->key = config->source.zmq_key;
    s->rate_hz = config->source.rate_hz;
    info->format = format;
    info->n_channels = config->source.channels > 0 ? config->source.channels : 1;
    s->item_bytes = words->bytes * info->n_channels;
    info->n_samples = UINT64_MAX;
    info->loss_visibility = s->has_tags ? PNR_LOSS_EXACT : PNR_LOSS_NONE;
    info->is_live = s->is_sub;
    snprintf(info->text, sizeof info->text, "GNU Radio's %s sink %s tags, %s, %zu %s",
             s->is_sub ? "PUB" : "PUSH", s->has_tags ? "with" : "without", words->name,
             info->n_channels, info->n_channels == 1 ? "channel" : "channels");
    return PNR_OK;
}

/* Connects to the sender, or binds the endpoint so that the sender can connect. */
static int reach_sender(const stream *s, pnr_error *error)
{
    int number;

    if ((s->is_bound ? zmq_bind : zmq_connect)(s->socket, s->endpoint) == 0)
        return PNR_OK;
    number = zmq_errno();
    return pnr_error_set(
        error, number == EADDRINUSE || number == EADDRNOTAVAIL ? PNR_EUNAVAILABLE : PNR_ECONFIG,
        "source.input = %.200s: %s: want %s%stcp://HOST:PORT or ipc://PATH", s->input->name,
        zmq_strerror(number), s->is_sub ? sub_prefix : pull_prefix, s->is_bound ? bind_word : "");
}

static int stream_open(void *state, pnr_error *error)
{
    static const int options[][2] = {{ZMQ_RCVHWM, MOST_WAITING},
                                     {ZMQ_LINGER, 0},
                                     {ZMQ_TCP_KEEPALIVE, 1},
                                     {ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_S},
                                     {ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_S},
                                     {ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_PROBES}};
    const int64_t max_bytes = MAX_MESSAGE_BYTES;
    stream *s = state;
    bool is_good;
    int code;

    s->context = zmq_ctx_new();
    s->socket = s->context != NULL ? zmq_socket(s->context, s->is_sub ? ZMQ_SUB : ZMQ_PULL) : NULL;
    is_good = s->socket != NULL &&
              zmq_setsockopt(s->socket, ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes) == 0;
    for (size_t i = 0; is_good && i < sizeof options / sizeof *options; i++)
        is_good = zmq_setsockopt(s->socket, options[i][0], &options[i][1], sizeof(int)) == 0;
    if (!is_good ||
        (s->is_sub && zmq_setsockopt(s->socket, ZMQ_SUBSCRIBE, s->key, strlen(s->key)) != 0))
        return pnr_error_set(error, PNR_EUNAVAILABLE, "%.200s: %s", s->input->name,
                             zmq_strerror(zmq_errno()));
    if ((code = reach_sender(s, error)) != PNR_OK)
        return code;
    if (s->is_sub && !s->has_tags)
        pnr_log(PNR_LOG_WARN,
                "source: without stream tags no loss is seen: set pass_tags in GNU Radio and "
                "source.zmq_tags = yes, or take a PUSH sink and zmq-pull");
    return PNR_OK;
}

static void stream_close(void *state)
{
    stream *s = state;

    zmq_msg_close(&s->message);
    if (s->socket != NULL)
        zmq_close(s->socket);
    while (s->context != NULL && zmq_ctx_term(s->context) != 0 && zmq_errno() == EINTR)
        ;
    free(s);
}

#define STREAM_OF(prefix_)                                                                         \
    {                                                                                              \
        .title = "a GNU Radio stream", .prefix = (prefix_), .describe = stream_describe,           \
        .open = stream_open, .read = stream_read, .close = stream_close                            \
    }
const pnr_source_kind pnr_source_zmq_sub = STREAM_OF(sub_prefix);
const pnr_source_kind pnr_source_zmq_pull = STREAM_OF(pull_prefix);
