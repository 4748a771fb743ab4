/* SPDX-License-Identifier: MIT */
/* Receives samples in plain datagrams with a count, and in VITA-49 packets. The kernel writes the
 * samples of the expected datagram directly to their place in the memory of the reader, so samples
 * that arrive in order are never copied. */
#include "source/address.h"
#include "source/kind.h"
#include "source/reorder.h"
#include "source/sequence.h"
#include "source/udp_sender.h"
#include "source/udp_socket.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum {
    PATIENCE_MS = 50,
    QUIET_POLLS = 20,       /* after this many polls without a datagram, a missing datagram counts
                             * as lost */
    MAX_NAP_NS = 1000000,   /* longest wait to fill the memory of a read */
    MAX_WAITS = 8,          /* limit of the number of waits in a read that has samples */
    BATCH = 64,             /* limit of the number of datagrams of one system call */
    MAX_DATAGRAM = 1 << 16, /* limit of the length of a datagram, in bytes */
    FIRST_PAYLOAD = 1024,   /* bytes of samples that are expected in the first datagram */
    MAX_ASTRAY = 256,       /* this number of consecutive datagrams without new samples means that
                             * the sender has restarted, if pnr_udp_sender_is_silent */
    MAX_GAP_S = 24 * 3600,  /* a longer gap means a wrong count or time */
    N_GAPS = 64,
    N_PARTS = 3,
    CONTROL_BYTES = 64
};

static const char udp_prefix[] = "udp:", vrt_prefix[] = "vrt:";

/* The kernel writes a datagram in three parts: the header; the samples, into the memory of the
 * reader; and the remaining bytes, into an overflow buffer. */
typedef struct slot {
    unsigned char header[PNR_SEQUENCE_MAX_HEADER];
    struct iovec parts[N_PARTS];
    struct sockaddr_storage from;
    _Alignas(struct cmsghdr) char control[CONTROL_BYTES];
} slot;

typedef struct udp {
    pnr_source_input *input;
    const pnr_config *config;
    pnr_address address;
    pnr_sequence sequence;
    pnr_udp_sender sender;
    pnr_reorder *early; /* datagrams that arrived before datagrams with earlier samples */
    size_t sample_bytes, value_bytes;
    double rate_hz;

    slot slots[BATCH];
    struct mmsghdr messages[BATCH];
    unsigned char *spill;               /* [BATCH][MAX_DATAGRAM] overflow buffers */
    unsigned char *whole;               /* [MAX_DATAGRAM] buffer for a datagram in one piece */
    size_t header_bytes, payload_bytes; /* sizes in the latest datagram, which are expected in the
                                         * next ones, too */

    unsigned char *data; /* memory of the present read */
    size_t max_samples, filled;

    bool has_begun;
    uint64_t next;     /* number of the next sample to return */
    bool is_behind;    /* the kernel may have more datagrams */
    unsigned n_astray; /* consecutive datagrams without new samples, or with samples a day ahead */
    unsigned n_quiet;  /* consecutive polls without a datagram */
    bool has_time;     /* the sender has stated a time */
    uint64_t time_of;  /* number of the sample at utc_ns */
    int64_t utc_ns;

    pnr_run gaps[N_GAPS]; /* ring of the latest gaps */
    size_t n_gaps;
    uint64_t n_swapped, n_twice, n_late; /* datagrams out of order, duplicate, too late */
    uint64_t n_dropped;                  /* datagrams that the kernel dropped */
    uint64_t dropped_log_ns;             /* CLOCK_MONOTONIC of the latest warning of drops; 0: none
                                          * yet */
} udp;

/* --- the memory of a read --- */

/* Swaps the bytes of big-endian values in place. */
static void swap_values(const udp *u, unsigned char *bytes, size_t n_bytes)
{
    uint16_t v2;
    uint32_t v4;
    uint64_t v8;

#define SWAP_EACH(value, swap)                                                                     \
    for (size_t i = 0; i < n_bytes; i += sizeof(value)) {                                          \
        memcpy(&(value), bytes + i, sizeof(value));                                                \
        (value) = swap(value);                                                                     \
        memcpy(bytes + i, &(value), sizeof(value));                                                \
    }
    if (!u->sequence.is_vrt)
        return;
    if (u->value_bytes == sizeof v2)
        SWAP_EACH(v2, __builtin_bswap16)
    else if (u->value_bytes == sizeof v4)
        SWAP_EACH(v4, __builtin_bswap32)
    else if (u->value_bytes == sizeof v8)
        SWAP_EACH(v8, __builtin_bswap64)
#undef SWAP_EACH
}

/* Adds the next n_samples, which are already in the memory of the read, to the result of the read.
 * Swaps their bytes to the byte order of this machine. */
static void hand_over(udp *u, size_t n_samples)
{
    swap_values(u, u->data + u->filled * u->sample_bytes, n_samples * u->sample_bytes);
    u->filled += n_samples;
    u->next += n_samples;
}

/* Copies the next samples from datagrams that arrived early. Stops at a sample that has not arrived
 * yet. */
static void take_early(udp *u)
{
    pnr_reorder_packet *first;

    while (u->filled < u->max_samples && (first = pnr_reorder_front(u->early)) != NULL &&
           first->first == u->next) {
        const size_t room = u->max_samples - u->filled;
        const size_t n = first->n_samples < room ? first->n_samples : room;

        memcpy(u->data + u->filled * u->sample_bytes, first->bytes, n * u->sample_bytes);
        first->first += n;
        first->n_samples -= n;
        first->bytes += n * u->sample_bytes;
        if (first->n_samples == 0)
            pnr_reorder_drop(u->early);
        hand_over(u, n);
    }
}

/* --- one datagram --- */

/* Copies the parts of a datagram to u->whole. */
static void gather_datagram(const udp *u, const slot *from, size_t n_bytes)
{
    size_t n = 0;

    for (size_t i = 0; i < N_PARTS && n < n_bytes; i++) {
        const size_t left = n_bytes - n;
        const size_t part = from->parts[i].iov_len < left ? from->parts[i].iov_len : left;

        memcpy(u->whole + n, from->parts[i].iov_base, part);
        n += part;
    }
}

/* Counts a datagram as late if its samples were declared lost before, else as a duplicate. */
static void count_stale(udp *u, const pnr_datagram *d)
{
    bool is_late = false;

    for (size_t i = 0; i < N_GAPS && !is_late; i++)
        is_late = d->first - u->gaps[i].first < u->gaps[i].count;
    *(is_late ? &u->n_late : &u->n_twice) += 1;
}

/* Returns PNR_EAGAIN; or PNR_EDATA after too many consecutive datagrams without new samples, if the
 * sender of the stream is silent. */
static int count_astray(udp *u, const pnr_datagram *d, pnr_error *error)
{
    u->n_astray += u->n_astray < MAX_ASTRAY;
    if (u->n_astray < MAX_ASTRAY || !pnr_udp_sender_is_silent(&u->sender))
        return PNR_EAGAIN;
    return pnr_error_set(error, PNR_EDATA,
                         "%.200s: the sender has restarted: its samples go on at %" PRIu64
                         ", not at %" PRIu64,
                         u->input->name, d->first, u->next);
}

/* Returns PNR_OK: the samples of the datagram are new; PNR_EAGAIN: they are not new, or the
 * datagram is refused; PNR_EDATA: the sender has restarted. */
static int judge_datagram(udp *u, const pnr_datagram *d, pnr_error *error)
{
    if (!u->has_begun) {
        u->has_begun = true;
        u->next = d->first;
        u->gaps[u->n_gaps++] = (pnr_run){0, d->first};
    }
    if (d->first >= u->next && (double)(d->first - u->next) <= MAX_GAP_S * u->rate_hz) {
        u->n_astray = 0;
        return PNR_OK;
    }
    if (d->first + d->n_samples <= u->next)
        count_stale(u, d);
    else
        pnr_source_refuse(u->input, d->first < u->next ? "some of its samples came before"
                                                       : "its samples are a day ahead");
    return count_astray(u, d, error);
}

/* True if the samples of the datagram are the next samples of the stream, and do not need more
 * space than one slot. They are then moved to their place in the memory of the read. This
 * overwrites no other datagram of the batch. */
static bool is_in_turn(const udp *u, const pnr_datagram *d, bool is_in_parts)
{
    return is_in_parts && d->first == u->next && pnr_reorder_count(u->early) == 0 &&
           d->n_payload <= u->payload_bytes;
}

/* Adds the samples of a datagram to the result of the read, or copies the datagram to u->early.
 * from: its slot. */
static void take_datagram(udp *u, const slot *from, const pnr_datagram *d, bool is_in_parts,
                          size_t n_bytes)
{
    const struct iovec *samples = &from->parts[1];
    unsigned char *place = u->data + u->filled * u->sample_bytes;

    if (is_in_turn(u, d, is_in_parts)) {
        const size_t here = samples->iov_len < d->n_payload ? samples->iov_len : d->n_payload;

        if (place != samples->iov_base)
            memmove(place, samples->iov_base, here);
        hand_over(u, here / u->sample_bytes);
        if (here < d->n_payload)
            (void)pnr_reorder_add(u->early, u->next, (d->n_payload - here) / u->sample_bytes,
                                  from->parts[2].iov_base, u->sample_bytes);
        return;
    }
    if (is_in_parts)
        gather_datagram(u, from, n_bytes);
    if (pnr_reorder_add(u->early, d->first, d->n_samples, u->whole + d->n_header,
                        u->sample_bytes) != PNR_OK)
        u->n_twice++;
}

/* Processes a datagram of n_bytes. Returns PNR_OK, also if the datagram is refused; or an error
 * that ends the run. */
static int receive_datagram(udp *u, const slot *from, size_t n_bytes, uint64_t now_ns,
                            pnr_error *error)
{
    const struct msghdr *message = &u->messages[from - u->slots].msg_hdr;
    const bool is_in_parts =
        n_bytes >= u->header_bytes &&
        pnr_sequence_header_bytes(&u->sequence, from->header) == u->header_bytes;
    const unsigned char *bytes = is_in_parts ? from->header : u->whole;
    pnr_error reason = {0};
    char other[PNR_UDP_REASON_LEN];
    pnr_datagram d;
    int code;

    if (!pnr_udp_sender_admits(&u->sender, message)) {
        pnr_source_refuse(u->input, pnr_udp_sender_reason(&u->sender, message, other));
        return PNR_OK;
    }
    if (!is_in_parts)
        gather_datagram(u, from, n_bytes);
    code = pnr_sequence_place(&u->sequence, bytes, is_in_parts ? u->header_bytes : n_bytes, n_bytes,
                              &d, &reason);
    if (code == PNR_EDATA)
        pnr_source_refuse(u->input, reason.text);
    if (code == PNR_ECONFIG)
        return pnr_refuse(error, "%.200s: %s", u->input->name, reason.text);
    if (code != PNR_OK || (code = judge_datagram(u, &d, error)) == PNR_EAGAIN)
        return PNR_OK;
    if (code != PNR_OK)
        return code;
    pnr_udp_sender_hear(&u->sender, message, now_ns);
    u->n_swapped += u->sequence.has_begun && d.first < u->sequence.latest.first;
    if (d.has_time) {
        u->has_time = true;
        u->time_of = d.first;
        u->utc_ns = d.utc_ns;
    }
    pnr_sequence_follow(&u->sequence, &d);
    take_datagram(u, from, &d, is_in_parts, n_bytes);
    return PNR_OK;
}

/* --- a batch --- */

/* Prepares slot i for the i-th datagram after the next expected one. False: the memory of the read
 * is full. */
static bool prepare_slot(udp *u, size_t i)
{
    const size_t begin = u->filled * u->sample_bytes + i * u->payload_bytes;
    const size_t end = u->max_samples * u->sample_bytes;
    slot *s = &u->slots[i];

    if (begin >= end)
        return false;
    s->parts[0] = (struct iovec){s->header, u->header_bytes};
    s->parts[1] = (struct iovec){u->data + begin,
                                 end - begin < u->payload_bytes ? end - begin : u->payload_bytes};
    s->parts[2] = (struct iovec){u->spill + i * MAX_DATAGRAM, MAX_DATAGRAM};
    u->messages[i].msg_hdr = (struct msghdr){.msg_name = &s->from,
                                             .msg_namelen = sizeof s->from,
                                             .msg_iov = s->parts,
                                             .msg_iovlen = N_PARTS,
                                             .msg_control = s->control,
                                             .msg_controllen = CONTROL_BYTES};
    return true;
}

/* Adds to u->n_dropped the datagrams that the kernel has dropped since the last call. The kernel
 * counts them modulo 2^32. */
static void count_dropped(udp *u, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        uint32_t dropped;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL)
            continue;
        memcpy(&dropped, CMSG_DATA(c), sizeof dropped);
        u->n_dropped += (uint32_t)(dropped - (uint32_t)u->n_dropped);
    }
}

static void warn_of_drops(udp *u)
{
    const uint64_t now = pnr_clock_ns();

    if ((u->dropped_log_ns != 0 && now - u->dropped_log_ns < (uint64_t)PNR_NS_PER_S) ||
        !pnr_log_is_ready())
        return;
    u->dropped_log_ns = now;
    pnr_log(PNR_LOG_WARN,
            "source: the kernel has dropped %" PRIu64 " datagrams: its buffer was full",
            u->n_dropped);
}

/* Receives the waiting datagrams. Returns PNR_OK; PNR_EAGAIN: none waits; or an error that ends the
 * run. */
static int receive_batch(udp *u, pnr_error *error)
{
    const uint64_t n_dropped = u->n_dropped;
    unsigned n = 0;
    int code = PNR_OK, n_received;

    while (n < BATCH && prepare_slot(u, n))
        n++;
    u->is_behind = false;
    n_received = recvmmsg(u->input->fd, u->messages, n, MSG_DONTWAIT, NULL);

    const uint64_t now = pnr_clock_ns();

    if (n_received < 0 && errno != EAGAIN && errno != EINTR)
        return pnr_error_set(error, PNR_EIO, "%.200s: %s", u->input->name, strerror(errno));
    if (n_received <= 0) {
        u->sender.empty_ns = now;
        return PNR_EAGAIN;
    }
    u->n_quiet = 0;
    u->is_behind = (unsigned)n_received == n;
    for (int i = 0; i < n_received && code == PNR_OK; i++) {
        code = receive_datagram(u, &u->slots[i], u->messages[i].msg_len, now, error);
        count_dropped(u, &u->messages[i].msg_hdr);
    }
    if ((unsigned)n_received < n)
        u->sender.empty_ns = now;
    if (u->n_dropped != n_dropped) {
        atomic_store(&u->input->n_dropped, u->n_dropped);
        warn_of_drops(u);
    }
    if (u->sequence.has_begun) {
        u->header_bytes = u->sequence.latest.n_header;
        u->payload_bytes = u->sequence.latest.n_payload;
    }
    return code;
}

/* --- the stream --- */

/* True if the datagram that is missing before the early datagrams counts as lost: enough datagrams
 * have arrived after it, or none has arrived for a while. */
static bool is_lost(const udp *u)
{
    return pnr_reorder_count(u->early) > u->config->source.udp_reorder ||
           (pnr_reorder_count(u->early) > 0 && u->n_quiet >= QUIET_POLLS);
}

/* Counts the samples before the first early datagram as lost. Returns their number. */
static uint64_t declare_lost(udp *u)
{
    const uint64_t gap = pnr_reorder_front(u->early)->first - u->next;

    u->gaps[u->n_gaps++ % N_GAPS] = (pnr_run){u->next, gap};
    u->next += gap;
    return gap;
}

/* Waits if the kernel has no datagram. A read without samples goes on until PATIENCE_MS after its
 * begin, or until a poll of PATIENCE_MS without a datagram. A read with samples waits until the
 * rest of its memory should be full, if this takes at most MAX_NAP_NS; so it needs fewer system
 * calls. False: the read ends. */
static bool wait_for_more(udp *u, uint64_t began_ns, int *n_waits)
{
    struct pollfd wanted = {.fd = u->input->fd, .events = POLLIN};
    const double left_ns = (double)(u->max_samples - u->filled) / u->rate_hz * 1e9;

    if (u->filled > 0) {
        if ((*n_waits)++ >= MAX_WAITS)
            return false;
        return u->is_behind || (left_ns <= MAX_NAP_NS &&
                                nanosleep(&(struct timespec){.tv_nsec = (long)left_ns}, NULL) == 0);
    }
    if (pnr_clock_ns() - began_ns >= PATIENCE_MS * UINT64_C(1000000))
        return false;
    if (u->is_behind || poll(&wanted, 1, PATIENCE_MS) > 0)
        return true;
    u->n_quiet++;
    return false;
}

static void state_time(const udp *u, uint64_t first, pnr_source_block *block)
{
    const bool is_after = first >= u->time_of;
    const int64_t apart_ns = pnr_rational_time_ns(
        u->sequence.rate_hz, is_after ? first - u->time_of : u->time_of - first);

    block->has_time = u->has_time;
    block->utc_ns = u->utc_ns + (is_after ? apart_ns : -apart_ns);
}

static int udp_read(void *state, void *data, size_t max_samples, pnr_source_block *block,
                    pnr_error *error)
{
    udp *u = state;
    const uint64_t began_ns = pnr_clock_ns();
    int code = PNR_OK, n_waits = 0;

    u->data = data;
    u->max_samples = max_samples;
    u->filled = 0;
    do {
        take_early(u);
        if (u->filled == max_samples || is_lost(u))
            break;
        code = receive_batch(u, error);
        take_early(u);
    } while ((code == PNR_OK || code == PNR_EAGAIN) && u->filled < max_samples && !is_lost(u) &&
             wait_for_more(u, began_ns, &n_waits));
    if (code != PNR_OK && code != PNR_EAGAIN)
        return code;
    if (u->filled == 0 && is_lost(u)) {
        state_time(u, u->next, block);
        block->gap = declare_lost(u);
        return PNR_OK;
    }
    state_time(u, u->next - u->filled, block);
    block->n_samples = u->filled;
    return u->filled > 0 ? PNR_OK : PNR_EAGAIN;
}

static int udp_describe(pnr_source_input *input, const pnr_config *config, pnr_source_info *info,
                        void **state, pnr_error *error)
{
    const bool is_vrt = strncmp(input->name, vrt_prefix, sizeof vrt_prefix - 1) == 0;
    const pnr_format format =
        config->source.format != PNR_FORMAT_NONE ? config->source.format : PNR_FORMAT_CI16;
    const pnr_format_info *words = pnr_format_get(format);
    udp *u = calloc(1, sizeof *u);
    int code;

    if (u == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a source of datagrams");
    *state = u;
    if (pnr_format_in_memory(format) != format)
        return pnr_refuse(error, "source.format = %s is for raw files and pipes alone",
                          words->name);
    u->input = input;
    u->config = config;
    if ((code = pnr_address_read(is_vrt ? vrt_prefix : udp_prefix, input->name, &u->address,
                                 error)) != PNR_OK ||
        (code = pnr_sequence_init(config, is_vrt, format, &u->sequence, error)) != PNR_OK)
        return code;
    u->sender.has_any_port = config->source.udp_sender == PNR_UDP_BY_ADDRESS;
    u->sample_bytes = u->sequence.sample_bytes;
    u->value_bytes = words->bytes / (words->is_complex ? 2 : 1);
    u->rate_hz = pnr_rational_double(config->source.rate_hz);
    u->header_bytes = is_vrt ? PNR_SEQUENCE_MAX_HEADER : 8;
    u->payload_bytes = u->sample_bytes > FIRST_PAYLOAD
                           ? u->sample_bytes
                           : FIRST_PAYLOAD / u->sample_bytes * u->sample_bytes;
    info->format = format;
    info->n_channels = u->sequence.n_channels;
    info->n_samples = UINT64_MAX;
    info->loss_visibility = is_vrt && !u->sequence.uses_time ? PNR_LOSS_FLAG : PNR_LOSS_EXACT;
    info->is_live = true;
    snprintf(info->text, sizeof info->text, "%s, %s, %zu %s",
             !is_vrt                 ? "counted datagrams"
             : u->sequence.uses_time ? "VITA-49 with time stamps"
                                     : "VITA-49 by its packet count",
             words->name, info->n_channels, info->n_channels == 1 ? "channel" : "channels");
    return PNR_OK;
}

static int udp_open(void *state, pnr_error *error)
{
    udp *u = state;
    const size_t most_early = u->config->source.udp_reorder + BATCH + 1;

    u->early = pnr_reorder_create(most_early, MAX_DATAGRAM);
    u->spill = malloc((size_t)BATCH * MAX_DATAGRAM);
    u->whole = malloc(MAX_DATAGRAM);
    if (u->early == NULL || u->spill == NULL || u->whole == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu datagrams", most_early);
    return pnr_udp_socket_open(u->input->name, &u->address, u->config->source.udp_buffer,
                               &u->input->fd, error);
}

static void udp_close(void *state)
{
    udp *u = state;

    if (u->n_swapped + u->n_twice + u->n_late + u->n_dropped > 0)
        pnr_log(PNR_LOG_INFO,
                "source: of the datagrams, %" PRIu64 " came out of order, %" PRIu64
                " twice and %" PRIu64 " too late; the kernel dropped %" PRIu64,
                u->n_swapped, u->n_twice, u->n_late, u->n_dropped);
    pnr_reorder_destroy(u->early);
    free(u->spill);
    free(u->whole);
    free(u);
}

#define DATAGRAMS_OF(title_, prefix_)                                                              \
    {                                                                                              \
        .title = (title_), .prefix = (prefix_), .describe = udp_describe, .open = udp_open,        \
        .read = udp_read, .close = udp_close                                                       \
    }
const pnr_source_kind pnr_source_udp = DATAGRAMS_OF("a stream of datagrams", udp_prefix);
const pnr_source_kind pnr_source_vrt = DATAGRAMS_OF("a stream of VITA-49", vrt_prefix);
