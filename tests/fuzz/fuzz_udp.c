/* SPDX-License-Identifier: MIT */
/* libFuzzer: any sequence of datagrams, losses, silences and senders. The calls of the kernel are
 * those below, and the time is theirs, so that nothing waits. */
#include "require.h"
#include "source/kind.h"
#include "source/udp_socket.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A datagram of the input begins with a byte of these flags. */
enum {
    HOLDS_PLACE = 1, /* its count is the expected one plus a signed byte, its samples are counted */
    IS_OTHER = 2,    /* another sender */
    COMES_LATE = 4,  /* nothing is there before it */
    IS_SILENT = 8,   /* nothing comes for more than a second before it */
    LOSES = 16       /* the kernel has dropped some */
};
enum { MOST = 2048, RATE = 1000000, QUIET_READS = 64 };

static fuzz_input input;
static uint64_t now_ns, position;
static uint32_t n_dropped;
static bool has_waited, holds_places;

/* --- the kernel --- */

int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, out);
    *out = (struct timespec){(time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000)};
    return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    now_ns += (uint64_t)time->tv_nsec;
    return 0;
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    (void)fds, (void)n;
    if (input.n > 0)
        return 1;
    now_ns += (uint64_t)timeout_ms * 1000000;
    return 0;
}

int pnr_udp_socket_open(const char *name, const pnr_address *address, size_t buffer_bytes, int *fd,
                        pnr_error *error)
{
    (void)name, (void)address, (void)buffer_bytes, (void)error;
    *fd = -1;
    return PNR_OK;
}

/* Makes a plain datagram whose samples are their own numbers. Returns its bytes. */
static size_t place_datagram(unsigned char bytes[MOST])
{
    const int8_t off = (int8_t)take_byte(&input);
    const size_t n = 1 + take_byte(&input) % 64;
    const uint64_t first = position + (uint64_t)(int64_t)off;

    if (off >= 0)
        position = first + n;
    memcpy(bytes, &first, sizeof first);
    for (size_t i = 0; i < n; i++) {
        const uint32_t sample = (uint32_t)(first + i);

        memcpy(bytes + sizeof first + i * sizeof sample, &sample, sizeof sample);
    }
    return sizeof first + n * sizeof(uint32_t);
}

static void scatter(struct msghdr *to, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < to->msg_iovlen && n > 0; i++) {
        const size_t part = to->msg_iov[i].iov_len < n ? to->msg_iov[i].iov_len : n;

        memcpy(to->msg_iov[i].iov_base, bytes, part);
        bytes += part;
        n -= part;
    }
}

static void state_drops(struct msghdr *message)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(message);

    *c = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof n_dropped), .cmsg_level = SOL_SOCKET, .cmsg_type = SO_RXQ_OVFL};
    memcpy(CMSG_DATA(c), &n_dropped, sizeof n_dropped);
    message->msg_controllen = CMSG_SPACE(sizeof n_dropped);
}

/* Takes one datagram of the input. False: there is none at the moment. */
static bool receive(struct mmsghdr *to)
{
    unsigned char bytes[MOST];
    const uint8_t *raw;
    unsigned flags;
    size_t n;

    if (input.n == 0)
        return false;
    flags = *input.at;
    if ((flags & (COMES_LATE | IS_SILENT)) != 0 && !has_waited) {
        now_ns += flags & IS_SILENT ? 1100000000 : 50000000;
        has_waited = true;
        return false;
    }
    has_waited = false;
    take_byte(&input);
    holds_places &= (flags & HOLDS_PLACE) != 0;
    if ((flags & HOLDS_PLACE) != 0) {
        n = place_datagram(bytes);
    } else {
        n = take_bytes(&input, 8 * take_byte(&input) % MOST, &raw);
        memcpy(bytes, raw, n);
    }
    memset(to->msg_hdr.msg_name, flags & IS_OTHER ? 1 : 2, 16);
    to->msg_hdr.msg_namelen = 16;
    n_dropped += flags & LOSES ? 1 + flags : 0;
    state_drops(&to->msg_hdr);
    scatter(&to->msg_hdr, bytes, n);
    to->msg_len = (unsigned)n;
    return true;
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags, struct timespec *timeout)
{
    unsigned i = 0;

    (void)fd, (void)flags, (void)timeout;
    while (i < n && receive(&messages[i]))
        i++;
    errno = EAGAIN;
    return i > 0 ? (int)i : -1;
}

/* --- the reader --- */

/* Reads to the end of the input. The memory of a read has room for max_samples of n_bytes. Returns
 * PNR_EAGAIN, or the error that ended the stream. */
static int read_all(void *state, size_t max_samples, size_t n_bytes)
{
    unsigned char *samples = malloc(max_samples * n_bytes);
    uint64_t at = 0;
    bool has_origin = false;
    int code = PNR_EAGAIN, n_quiet = 0;

    while ((code == PNR_OK || code == PNR_EAGAIN) && n_quiet < QUIET_READS) {
        const uint64_t began_ns = now_ns;
        pnr_source_block block = {0};
        pnr_error error = {0};
        uint32_t sample;

        code = pnr_source_udp.read(state, samples, max_samples, &block, &error);
        require(code == PNR_OK || code == PNR_EAGAIN || error.text[0] != '\0');
        require(code != PNR_EAGAIN || now_ns - began_ns >= 50000000);
        require(code != PNR_OK ||
                ((block.gap > 0) != (block.n_samples > 0) && block.n_samples <= max_samples));
        n_quiet = code == PNR_EAGAIN && input.n == 0 ? n_quiet + 1 : 0;
        at += code == PNR_OK ? block.gap : 0;
        for (size_t i = 0; code == PNR_OK && holds_places && i < block.n_samples; i++, at++) {
            memcpy(&sample, samples + i * n_bytes, sizeof sample);
            if (!has_origin)
                at = sample;
            has_origin = true;
            require(sample == (uint32_t)at);
        }
    }
    free(samples);
    return code;
}

enum { VRT = 1, PACKETS = 2, BY_COUNT = 4, WIDE = 8, NO_ORDER = 16, N_KINDS = 32 };

/* A source of one kind, and its state as it was opened. To allocate its 10 MB takes far longer than
 * to read an input. */
typedef struct opened {
    pnr_config config;
    pnr_source_input from;
    pnr_source_info info;
    void *state, *first;
    size_t n_bytes;
} opened;

static void open_source(opened *o, unsigned how)
{
    pnr_error error;

    pnr_config_init(&o->config);
    o->config.source.rate_hz = (pnr_rational){RATE, 1};
    o->config.source.format = how & WIDE ? PNR_FORMAT_CF64 : PNR_FORMAT_CI16;
    o->config.source.udp_count = how & PACKETS ? PNR_UDP_PACKETS : PNR_UDP_SAMPLES;
    o->config.source.vrt_place = how & BY_COUNT ? PNR_VRT_BY_COUNT : PNR_VRT_BY_TIME;
    o->config.source.udp_reorder = how & NO_ORDER ? 0 : 5;
    o->from = (pnr_source_input){
        .fd = -1, .is_address = true, .name = how & VRT ? "vrt:127.0.0.1:9" : "udp:127.0.0.1:9"};
    require(pnr_source_udp.describe(&o->from, &o->config, &o->info, &o->state, &error) == PNR_OK);
    require(pnr_source_udp.open(o->state, &error) == PNR_OK);
    o->n_bytes = malloc_usable_size(o->state);
    o->first = realloc(o->first, o->n_bytes);
    memcpy(o->first, o->state, o->n_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static opened sources[N_KINDS];
    opened *o;
    unsigned how;

    setenv("PNR_LOG", "quiet", 1);
    input = (fuzz_input){data, n_bytes};
    how = take_byte(&input) % N_KINDS;
    now_ns = 1000000000;
    position = 1000;
    n_dropped = 0;
    has_waited = false;
    holds_places = (how & (VRT | PACKETS | WIDE)) == 0;
    o = &sources[how];
    if (o->state == NULL)
        open_source(o, how);
    else
        memcpy(o->state, o->first, o->n_bytes);
    o->from.n_refused = o->from.n_dropped = o->from.refused_log_ns = 0;
    if (read_all(o->state, 1 + take_byte(&input), how & WIDE ? 16 : 4) != PNR_EAGAIN) {
        pnr_source_udp.close(o->state); /* datagrams may wait for their turn */
        o->state = NULL;
    }
    return 0;
}
