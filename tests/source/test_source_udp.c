/* SPDX-License-Identifier: MIT */
/* Datagrams over loopback: counted ones and VITA-49; losses, order and duplicates to the sample;
 * what is refused. */
#include "base/clock.h"
#include "source/vrt.h"
#include "tests/fixture/random.h"
#include "tests/fixture/source_fixture.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { RATE = 1000000, MAX_BYTES = 4096, STREAM = 0x1f2e3d4c };

/* A sender and the source that hears it. */
typedef struct wire {
    int fd;
    struct sockaddr_in to;
    pnr_config config;
    pnr_source *source;
    uint64_t position; /* of the reader */
    int end;           /* the code of the last read */
    pnr_error error;
} wire;

/* Returns a port that is free. */
static unsigned free_port(void)
{
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;

    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static void open_wire(wire *w, const char *kind, const char *settings)
{
    const unsigned port = free_port();
    char list[256];

    memset(w, 0, sizeof *w);
    w->fd = socket(AF_INET, SOCK_DGRAM, 0);
    w->to = (struct sockaddr_in){.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    pnr_config_init(&w->config);
    snprintf(w->config.source.input, sizeof w->config.source.input, "%s:127.0.0.1:%u", kind, port);
    w->config.source.rate_hz = (pnr_rational){RATE, 1};
    snprintf(list, sizeof list, "%s", settings);
    for (char *rest = list, *one; (one = strsep(&rest, " ")) != NULL;)
        if (*one != '\0')
            assert_int_equal(pnr_config_set(&w->config, one, &w->error), PNR_OK);
    if (pnr_source_open(&w->config, &w->source, &w->error) != PNR_OK)
        fail_msg("%s", w->error.text);
}

static void close_wire(wire *w)
{
    pnr_source_close(w->source);
    close(w->fd);
    pnr_config_clear(&w->config);
}

/* --- datagrams --- */

typedef struct datagram {
    unsigned char bytes[MAX_BYTES];
    size_t n;
} datagram;

static void add_bytes(datagram *d, const void *bytes, size_t n)
{
    assert_true(d->n + n <= sizeof d->bytes);
    memcpy(d->bytes + d->n, bytes, n);
    d->n += n;
}

static void add_u32(datagram *d, uint32_t value)
{
    value = htobe32(value);
    add_bytes(d, &value, sizeof value);
}

static void add_u64(datagram *d, uint64_t value)
{
    add_u32(d, (uint32_t)(value >> 32));
    add_u32(d, (uint32_t)value);
}

/* Each sample of the stream is another one: I and Q of the sample at this position. */
static uint32_t sample_at(uint64_t position)
{
    return (uint32_t)(position * 2654435761u + 12345);
}

/* The form of a stream of datagrams. */
typedef struct form {
    const char *kind, *settings;
    bool counts_packets, is_even; /* is_even: all packets have the same length */
    bool has_stream, has_class, has_trailer;
    unsigned tsi, tsf;
    size_t most_lost, most_astray; /* packets lost in a row; places that a packet is moved by */
} form;

static const form forms[] = {
    {.kind = "udp", .most_lost = 40, .most_astray = 12},
    {.kind = "udp",
     .settings = "source.udp_count=packets",
     .counts_packets = true,
     .is_even = true,
     .most_lost = 40,
     .most_astray = 12},
    {.kind = "vrt",
     .is_even = true,
     .has_stream = true,
     .tsi = 1,
     .tsf = 2,
     .most_lost = 40,
     .most_astray = 12},
    {.kind = "vrt",
     .has_stream = true,
     .has_class = true,
     .has_trailer = true,
     .tsi = 2,
     .tsf = 1,
     .most_lost = 40,
     .most_astray = 12,
     .settings = "source.vrt_stream=0x1f2e3d4c"},
    {.kind = "vrt", .tsi = 0, .tsf = 3, .most_lost = 40, .most_astray = 12, .has_trailer = true},
    {.kind = "vrt",
     .has_stream = true,
     .tsi = 3,
     .tsf = 3,
     .is_even = true,
     .most_lost = 40,
     .most_astray = 12},
    {.kind = "vrt",
     .settings = "source.vrt_place=count",
     .is_even = true,
     .has_stream = true,
     .most_lost = 3,
     .most_astray = 3},
};

enum { START_S = 1700000000, LONGEST = 60 };

/* Makes packet number `number` of the stream, with n samples from `position` on. */
static void make_datagram(const form *f, uint64_t number, uint64_t position, size_t n, datagram *d)
{
    const bool is_vrt = strcmp(f->kind, "vrt") == 0;
    const size_t n_words = 1 + f->has_stream + 2 * (size_t)f->has_class + (f->tsi != 0) +
                           2 * (size_t)(f->tsf != 0) + n + f->has_trailer;
    const uint64_t in_second = position % RATE;

    d->n = 0;
    if (!is_vrt) {
        const uint64_t count = htole64(f->counts_packets ? number : position);

        add_bytes(d, &count, sizeof count);
    } else {
        add_u32(d, (uint32_t)f->has_stream << 28 | (uint32_t)f->has_class << 27 |
                       (uint32_t)f->has_trailer << 26 | f->tsi << 22 | f->tsf << 20 |
                       (uint32_t)(number & 15) << 16 | (uint32_t)n_words);
        if (f->has_stream)
            add_u32(d, STREAM);
        if (f->has_class)
            add_u64(d, UINT64_C(0x0012345678000100));
        if (f->tsi != 0)
            add_u32(d, (uint32_t)(START_S + position / RATE));
        if (f->tsf != 0)
            add_u64(d, f->tsf == 1   ? in_second
                       : f->tsf == 2 ? in_second * (UINT64_C(1000000000000) / RATE)
                                     : position - 1000); /* wraps */
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t sample = sample_at(position + i);
        const uint32_t wire_order =
            is_vrt ? (sample & 0xff00ff00) >> 8 | (sample & 0xff00ff) << 8 : sample;

        add_bytes(d, &wire_order, sizeof wire_order);
    }
    if (f->has_trailer)
        add_u32(d, 0x40000);
}

static void send_datagram(const wire *w, const datagram *d)
{
    assert_int_equal(
        sendto(w->fd, d->bytes, d->n, 0, (const struct sockaddr *)&w->to, sizeof w->to),
        (ssize_t)d->n);
}

/* --- the reader --- */

/* Reads until nothing is there, in chunks of several sizes, and compares each sample. The samples
 * are those from `origin` on; has[i] is false for those that must be lost. */
static void expect_samples(wire *w, uint64_t origin, const bool *has, uint64_t n)
{
    uint32_t data[700];
    pnr_source_block block;

    while ((w->end = pnr_source_read(w->source, data, 1 + below(COUNT(data)), &block, &w->error)) ==
           PNR_OK) {
        assert_true(w->position + block.gap + block.n_samples <= n);
        assert_true((block.gap > 0) != (block.n_samples > 0));
        for (uint64_t i = 0; i < block.gap; i++)
            assert_false(has[w->position + i]);
        for (uint64_t i = 0; i < block.n_samples; i++) {
            assert_true(has[w->position + i]);
            assert_int_equal(data[i], sample_at(origin + w->position + i));
        }
        w->position += block.gap + block.n_samples;
    }
    assert_int_equal(w->end, PNR_EAGAIN);
}

/* --- losses, order, duplicates --- */

typedef struct packet {
    uint64_t number, position;
    size_t n;
    size_t place; /* of sending */
} packet;

enum { N_PACKETS = 600, MARGIN = 30 };

static int by_place(const void *a, const void *b)
{
    const packet *p = a, *q = b;

    return p->place < q->place ? -1 : p->place > q->place ? 1 : 0;
}

/* Plans which packets are sent, and in which order. Of the first and last ones none is missing. */
static size_t plan_packets(const form *f, uint64_t origin, packet *out, bool *has, uint64_t *n)
{
    size_t n_lost = 0, n_out = 0;

    *n = 0;
    for (size_t i = 0; i < N_PACKETS; i++) {
        const bool is_safe = i < MARGIN || i >= N_PACKETS - MARGIN;
        const packet p = {.number = 5 + i,
                          .position = origin + *n,
                          .n = f->is_even ? 37 : 1 + below(LONGEST),
                          .place = 16 * i};

        n_lost = !is_safe && (n_lost > 0 ? n_lost < f->most_lost && below(10) < 8 : below(60) == 0)
                     ? n_lost + 1
                     : 0;
        memset(has + *n, n_lost == 0, p.n);
        *n += p.n;
        if (n_lost > 0)
            continue;
        out[n_out++] = p;
        if (!is_safe && below(20) == 0)
            out[n_out - 1].place += 16 * below(f->most_astray) + 8;
        if (!is_safe && below(20) == 0) {
            out[n_out] = p;
            out[n_out++].place += 16 * below(f->most_astray) + 4;
        }
    }
    qsort(out, n_out, sizeof *out, by_place);
    return n_out;
}

TEST(test_losses_order_and_duplicates_are_exact)
{
    static packet packets[2 * N_PACKETS];
    static bool has[N_PACKETS * LONGEST];

    for (size_t i = 0; i < COUNT(forms); i++) {
        const form *f = &forms[i];
        const uint64_t origin = f->counts_packets ? 5 * 37 : UINT64_C(123456789012);
        uint64_t n;
        const size_t n_packets = plan_packets(f, origin, packets, has, &n);
        datagram d;
        wire w;

        open_wire(&w, f->kind, f->settings != NULL ? f->settings : "");
        assert_int_equal(pnr_source_get_info(w.source)->loss_visibility,
                         w.config.source.vrt_place == PNR_VRT_BY_TIME ? PNR_LOSS_EXACT
                                                                      : PNR_LOSS_FLAG);
        assert_true(pnr_source_get_info(w.source)->is_live);
        for (size_t at = 0; at < n_packets; at++) {
            make_datagram(f, packets[at].number, packets[at].position, packets[at].n, &d);
            send_datagram(&w, &d);
            if (at % 100 == 99 || at + 1 == n_packets)
                expect_samples(&w, origin, has, n);
        }
        assert_true(w.position == n);
        assert_true(pnr_source_refused(w.source) == 0);
        close_wire(&w);
    }
}

/* --- single cases --- */

/* Sends packet `number` of equal packets of 10 samples. */
static void send_packet(const wire *w, const form *f, uint64_t number)
{
    datagram d;

    make_datagram(f, number, number * 10, 10, &d);
    send_datagram(w, &d);
}

/* Reads until nothing is there. Returns the samples; *lost: the positions that are lost. */
static uint64_t read_all(wire *w, uint64_t *lost)
{
    uint32_t data[512];
    pnr_source_block block;
    uint64_t n = 0;

    *lost = 0;
    while ((w->end = pnr_source_read(w->source, data, COUNT(data), &block, &w->error)) == PNR_OK) {
        n += block.n_samples;
        *lost += block.gap;
    }
    return n;
}

static void expect_refused(const wire *w, uint64_t n)
{
    assert_int_equal(pnr_source_refused(w->source), n);
}

TEST(test_a_packet_that_comes_too_late_stays_lost)
{
    const form *f = &forms[0];
    uint64_t lost;
    wire w;

    open_wire(&w, f->kind, "source.udp_reorder=3");
    send_packet(&w, f, 7);
    for (uint64_t i = 9; i < 12; i++)
        send_packet(&w, f, i);
    assert_int_equal(read_all(&w, &lost), 10); /* three wait */
    assert_int_equal(lost, 0);
    send_packet(&w, f, 12);
    assert_int_equal(read_all(&w, &lost), 40);
    assert_int_equal(lost, 10);
    send_packet(&w, f, 8);
    send_packet(&w, f, 6); /* from before the first one */
    send_packet(&w, f, 13);
    assert_int_equal(read_all(&w, &lost), 10);
    assert_int_equal(lost, 0);
    expect_refused(&w, 0);
    close_wire(&w);
}

TEST(test_a_packet_that_waits_comes_again)
{
    static const uint64_t numbers[] = {1, 3, 2, 3, 4, 4, 5};
    uint64_t lost;
    wire w;

    open_wire(&w, "udp", "");
    for (size_t i = 0; i < COUNT(numbers); i++)
        send_packet(&w, &forms[0], numbers[i]);
    assert_int_equal(read_all(&w, &lost), 50);
    assert_int_equal(lost, 0);
    close_wire(&w);
}

TEST(test_a_loss_at_the_end_of_a_sender_is_declared)
{
    const form *f = &forms[0];
    uint64_t lost = 0, n = 0, more;
    wire w;

    open_wire(&w, f->kind, "");
    send_packet(&w, f, 1);
    send_packet(&w, f, 3);
    for (int i = 0; i < 100 && lost == 0; i++) {
        n += read_all(&w, &more);
        lost += more;
    }
    assert_int_equal(n, 20);
    assert_int_equal(lost, 10);
    close_wire(&w);
}

TEST(test_what_the_kernel_drops_is_a_gap)
{
    static const form *const tried[] = {&forms[0], &forms[2]};

    for (size_t i = 0; i < COUNT(tried); i++) {
        uint64_t lost, n;
        wire w;

        open_wire(&w, tried[i]->kind, "source.udp_buffer=4096 source.udp_reorder=0");
        for (uint64_t k = 0; k < 300; k++)
            send_packet(&w, tried[i], k);
        n = read_all(&w, &lost);
        assert_true(n > 0 && n < 3000 && lost == 0);
        assert_true(pnr_source_dropped(w.source) == 0); /* the next datagram tells */
        for (uint64_t k = 300; k < 303; k++)
            send_packet(&w, tried[i], k);
        n += read_all(&w, &lost);
        assert_int_equal(n + lost, 3030);
        assert_true(pnr_source_dropped(w.source) * 10 == lost);
        expect_refused(&w, 0);
        close_wire(&w);
    }
}

TEST(test_a_receiver_of_vita49_that_loses_samples_itself)
{
    const form *f = &forms[2];
    uint64_t lost;
    datagram d;
    wire w;

    open_wire(&w, f->kind, "source.udp_reorder=0");
    make_datagram(f, 15, 1000, 10, &d);
    send_datagram(&w, &d);
    make_datagram(f, 16, 1023, 10, &d); /* the packet count goes on, the time jumps by 13 */
    send_datagram(&w, &d);
    assert_int_equal(read_all(&w, &lost), 20);
    assert_int_equal(lost, 13);
    make_datagram(f, 17, 1033 + UINT64_C(3600) * RATE, 10, &d); /* the link was down for an hour */
    send_datagram(&w, &d);
    assert_int_equal(read_all(&w, &lost), 10);
    assert_true(lost == UINT64_C(3600) * RATE);
    make_datagram(f, 18, 1043 + UINT64_C(100000) * RATE, 10, &d); /* more than a day */
    send_datagram(&w, &d);
    assert_int_equal(read_all(&w, &lost), 0);
    expect_refused(&w, 1);
    close_wire(&w);
}

/* Stamps of a clock that is 5 ppm off and cut to microseconds; 49 packets in a row are lost. */
TEST(test_clocks_that_drift)
{
    pnr_vrt_time from = {PNR_VRT_UTC, PNR_VRT_PICOSECONDS, START_S, 0}, to = from;
    const pnr_rational rate = {3 * RATE, 7};

    to.seconds += 7 * 86400;
    assert_true(pnr_vrt_elapsed(&from, &to, rate) == INT64_C(3) * RATE * 86400);
    assert_true(pnr_vrt_elapsed(&to, &from, rate) == -INT64_C(3) * RATE * 86400);
    to.seconds = from.seconds;
    to.fraction = 999999999999;
    assert_true(pnr_vrt_elapsed(&from, &to, rate) == 428571);
    from = (pnr_vrt_time){PNR_VRT_OTHER, PNR_VRT_FREE_RUNNING, 5, UINT64_MAX};
    to = (pnr_vrt_time){PNR_VRT_OTHER, PNR_VRT_FREE_RUNNING, 900, 9};
    assert_true(pnr_vrt_elapsed(&from, &to, rate) == 10);

    const form *f = &forms[2];
    static uint32_t data[30000];
    pnr_source_block block;
    datagram d;
    wire w;

    open_wire(&w, f->kind, "source.udp_reorder=0");
    for (uint64_t i = 0; i < 3000; i++) {
        const uint64_t ps = i * 1000 * 1000000 / 200000 * 200001;
        const uint64_t fraction = htobe64(ps % 1000000000000 / 1000000 * 1000000);
        const uint32_t second = htobe32((uint32_t)(START_S + ps / 1000000000000));

        if (i % 300 > 250)
            continue; /* lost, 49 in a row */
        make_datagram(f, i, i * 1000, 1000, &d);
        memcpy(d.bytes + 8, &second, sizeof second);
        memcpy(d.bytes + 12, &fraction, sizeof fraction);
        send_datagram(&w, &d);
        while (i % 20 == 0 && w.position < (i + 1) * 1000) {
            assert_int_equal(pnr_source_read(w.source, data, COUNT(data), &block, &w.error),
                             PNR_OK);
            assert_true(block.gap == 0 || block.gap == 49000);
            w.position += block.n_samples + block.gap;
        }
    }
    assert_int_equal(w.position, 2941 * 1000);
    expect_refused(&w, 0);
    close_wire(&w);
}

TEST(test_times)
{
    static const struct {
        unsigned tsi, tsf;
        int64_t begin_s; /* 0: no time */
    } times[] = {{1, 2, START_S}, {1, 1, START_S}, {2, 2, START_S + 315964800 - 18},
                 {3, 2, 0},       {1, 3, 0},       {0, 1, 0}};

    for (size_t i = 0; i < COUNT(times); i++) {
        const form f = {.kind = "vrt", .tsi = times[i].tsi, .tsf = times[i].tsf};
        uint32_t data[64];
        pnr_source_block block;
        datagram d;
        wire w;

        open_wire(&w, f.kind, "");
        make_datagram(&f, 0, 1250000, 10, &d);
        send_datagram(&w, &d);
        assert_int_equal(pnr_source_read(w.source, data, 4, &block, &w.error), PNR_OK);
        assert_int_equal(block.has_time, times[i].begin_s != 0);
        assert_int_equal(pnr_source_read(w.source, data, 6, &block, &w.error), PNR_OK);
        if (block.has_time)
            assert_true(block.utc_ns == times[i].begin_s * 1000000000 + 1250004000);
        close_wire(&w);
    }
}

/* --- what is refused --- */

TEST(test_hostile_datagrams)
{
    static const form *const tried[] = {&forms[0], &forms[2]};

    for (size_t i = 0; i < COUNT(tried); i++) {
        const form *f = tried[i];
        uint64_t n_refused = 0, lost;
        datagram d;
        wire w;

        open_wire(&w, f->kind, "");
        send_packet(&w, f, 100);
        assert_int_equal(read_all(&w, &lost), 10);
        for (size_t n = 0; n < 8; n++, n_refused++) { /* too short for a count, or a header */
            make_datagram(f, 101, 1010, 1, &d);
            d.n = n;
            send_datagram(&w, &d);
        }
        make_datagram(f, 101, 1010, 10, &d);
        d.n -= 3; /* no whole samples */
        send_datagram(&w, &d);
        make_datagram(f, 101, 1005, 10, &d); /* samples of two packets */
        send_datagram(&w, &d);
        make_datagram(f, 101, 1010 + UINT64_C(90000) * RATE, 10, &d); /* more than a day ahead */
        send_datagram(&w, &d);
        n_refused += 3;
        if (f->tsi == 0) {
            make_datagram(f, 0, UINT64_MAX - 5, 10, &d);
            send_datagram(&w, &d);
            n_refused++;
        }
        for (size_t k = 0; k < 400 && f->tsi != 0; k++) { /* of types that are not read */
            d.n = 4 * (1 + below(20));
            for (size_t b = 0; b < d.n; b++)
                d.bytes[b] = (unsigned char)below(256);
            d.bytes[0] |= 0x80;
            send_datagram(&w, &d);
            n_refused++;
            if (k % 50 == 0)
                assert_int_equal(read_all(&w, &lost) + lost, 0);
        }
        send_packet(&w, f, 101);
        assert_int_equal(read_all(&w, &lost), 10);
        assert_int_equal(lost, 0);
        expect_refused(&w, n_refused);
        close_wire(&w);
    }
}

/* Packets of VITA-49 that differ from a right one in one place. */
TEST(test_hostile_packets_of_vita49)
{
    static const struct {
        size_t at; /* byte */
        unsigned char value;
    } changes[] = {
        {0, 0x51},  /* another type */
        {0, 0x11},  /* a spectrum */
        {3, 16},    /* a length that is not that of the datagram */
        {1, 0x01},  /* no time stamp */
        {1, 0x21},  /* picoseconds of no second */
        {1, 0x71},  /* another form of time */
        {4, 0xff},  /* another stream */
        {12, 0xff}, /* beyond the second */
    };
    const form *f = &forms[2];
    uint64_t lost;
    datagram d;
    wire w;

    open_wire(&w, f->kind, "");
    send_packet(&w, f, 0);
    for (size_t i = 0; i < COUNT(changes); i++) {
        make_datagram(f, 1, 10, 10, &d);
        d.bytes[changes[i].at] = changes[i].value;
        send_datagram(&w, &d);
    }
    send_packet(&w, f, 1);
    assert_int_equal(read_all(&w, &lost) + lost, 20);
    expect_refused(&w, COUNT(changes));
    close_wire(&w);
}

TEST(test_padding_of_vita49)
{
    const form f = {.kind = "vrt", .has_stream = true, .has_class = true, .tsi = 1, .tsf = 2};
    uint64_t lost;
    datagram d;
    wire w;

    open_wire(&w, f.kind, "source.format=ci8");
    make_datagram(&f, 0, 0, 5, &d); /* ten samples of ci8 */
    send_datagram(&w, &d);
    make_datagram(&f, 1, 10, 5, &d);
    d.bytes[8] |= 16 << 3; /* the last one is padding */
    send_datagram(&w, &d);
    assert_int_equal(read_all(&w, &lost), 19);
    d.bytes[8] |= 3 << 3;
    send_datagram(&w, &d);
    assert_int_equal(read_all(&w, &lost) + lost, 0);
    expect_refused(&w, 1);
    close_wire(&w);
}

/* --- senders that restart, that are old, that move --- */

enum { SILENCE_MS = 1100 };

/* Reads nothing for so long that the sender counts as silent. */
static void keep_silent(wire *w)
{
    const uint64_t begin_ns = pnr_clock_ns();
    uint64_t lost;

    while (pnr_clock_ns() - begin_ns < SILENCE_MS * UINT64_C(1000000))
        assert_int_equal(read_all(w, &lost) + lost, 0);
}

/* Sends one packet, and after a silence 256 from `first` on, which end the stream. */
static void restart_at(uint64_t first)
{
    const form *f = &forms[0];
    uint64_t lost;
    wire w;

    open_wire(&w, f->kind, "");
    send_packet(&w, f, 1000);
    assert_int_equal(read_all(&w, &lost), 10);
    keep_silent(&w);
    for (uint64_t i = 0; i < 256; i++) {
        assert_int_equal(w.end, PNR_EAGAIN);
        send_packet(&w, f, first + i);
        if (i % 50 == 0 || i > 253)
            assert_int_equal(read_all(&w, &lost), 0);
    }
    assert_int_equal(w.end, PNR_EDATA);
    assert_non_null(strstr(w.error.text, "restarted"));
    close_wire(&w);
}

TEST(test_senders_that_restart)
{
    restart_at(0);
    restart_at(UINT64_C(9000) * RATE); /* of ten samples: more than a day ahead */
}

/* As long as the stream goes on, no number of old datagrams ends it. */
TEST(test_stale_datagrams_do_not_end_a_stream)
{
    const form *f = &forms[0];
    uint64_t lost;
    wire w;

    open_wire(&w, f->kind, "");
    send_packet(&w, f, 1000);
    for (uint64_t round = 1; round <= 5; round++) {
        for (uint64_t i = 0; i < 300; i++) /* as many as wait in a small buffer of the kernel */
            send_packet(&w, f, i);
        send_packet(&w, f, 1000 + round);
        assert_int_equal(read_all(&w, &lost), round == 1 ? 20 : 10);
        assert_int_equal(lost, 0);
        assert_int_equal(w.end, PNR_EAGAIN);
    }
    close_wire(&w);
}

static void make_context(uint32_t stream, double frequency_hz, double rate_hz, uint32_t format,
                         datagram *d);

/* Gives the sender another port. Returns its former socket. */
static int change_port(wire *w)
{
    const int before = w->fd;

    w->fd = socket(AF_INET, SOCK_DGRAM, 0);
    return before;
}

/* A second sender neither adds samples, nor ends the stream, nor moves it by a day. */
TEST(test_a_second_sender_is_refused)
{
    static const form *const tried[] = {&forms[0], &forms[2]};

    for (size_t i = 0; i < COUNT(tried); i++) {
        const form *f = tried[i];
        uint64_t lost;
        datagram d;
        wire w;
        int first;

        open_wire(&w, f->kind, "");
        send_packet(&w, f, 1000);
        assert_int_equal(read_all(&w, &lost), 10);
        first = change_port(&w);
        for (uint64_t k = 0; k < 100; k++) { /* old, next, and hours ahead */
            send_packet(&w, f, k);
            send_packet(&w, f, 1001 + k);
            send_packet(&w, f, UINT64_C(360000000) + k);
        }
        make_context(STREAM, 1e6, 2 * RATE, 0, &d);
        send_datagram(&w, &d);
        close(w.fd);
        w.fd = first;
        send_packet(&w, f, 1001);
        assert_int_equal(read_all(&w, &lost), 10);
        assert_int_equal(lost, 0);
        assert_int_equal(w.end, PNR_EAGAIN);
        expect_refused(&w, 301);
        close_wire(&w);
    }
}

/* A sender that goes on from another port after a silence is the same stream. */
TEST(test_a_sender_that_moves)
{
    const form *f = &forms[0];
    uint64_t lost;
    wire w;

    open_wire(&w, f->kind, "source.udp_reorder=0");
    send_packet(&w, f, 1000);
    assert_int_equal(read_all(&w, &lost), 10);
    close(change_port(&w));
    keep_silent(&w);
    send_packet(&w, f, 1005);
    assert_int_equal(read_all(&w, &lost), 10);
    assert_int_equal(lost, 40);
    expect_refused(&w, 0);
    close_wire(&w);
}

/* --- context --- */

/* Makes a context of these indicators with the fields rate and frequency, and others of zeros. */
static void make_context(uint32_t stream, double frequency_hz, double rate_hz, uint32_t format,
                         datagram *d)
{
    const bool has_format = format != 0;

    d->n = 0;
    add_u32(d, 0x40000000 | 1u << 22 | 2u << 20 | (15 + 2 * (uint32_t)has_format));
    add_u32(d, stream);
    add_u32(d, START_S); /* as long a header as that of the data */
    add_u64(d, 0);
    add_u32(d, 1u << 31 | 1u << 30 | 1u << 29 | 1u << 27 | 1u << 21 | (uint32_t)has_format << 15 |
                   1u << 1);
    add_u32(d, 0); /* more indicators */
    add_u32(d, 77);
    add_u64(d, 0); /* bandwidth */
    add_u64(d, (uint64_t)(frequency_hz * (1 << 20)));
    add_u64(d, (uint64_t)(rate_hz * (1 << 20)));
    if (has_format) {
        add_u32(d, format);
        add_u32(d, 0);
    }
    add_u32(d, 0); /* a field that is not read */
}

TEST(test_contexts)
{
    static const struct {
        double frequency_hz, rate_hz;
        uint32_t format;
        const char *words; /* NULL: it agrees */
    } contexts[] = {
        {99.5e6, RATE, 0, NULL},
        {99.5e6, RATE, 0xa00003cf, NULL},
        {99.5e6, 2 * RATE, 0, "2000000 Hz"},
        {88e6, RATE, 0, "88000000 Hz"},
        {99.5e6, RATE, 0xa00001c7, "integer samples of 8 bits"},
        {99.5e6, RATE, 0x800003cf, "real integer"},
        {99.5e6, RATE, 0xae0007df, "complex float samples of 32 bits"},
        {99.5e6, RATE, 0xb00003cf, "complex unsigned"},
    };
    const form *f = &forms[2];
    uint64_t lost;
    datagram d;

    for (size_t i = 0; i < COUNT(contexts); i++) {
        wire w;

        open_wire(&w, f->kind, "source.centre_hz=99.5e6");
        make_context(STREAM + 1, 5, 5, 0, &d); /* of another stream */
        send_datagram(&w, &d);
        send_packet(&w, f, 0);
        send_datagram(&w, &d);
        make_context(STREAM, contexts[i].frequency_hz, contexts[i].rate_hz, contexts[i].format, &d);
        send_datagram(&w, &d);
        send_packet(&w, f, 1);
        assert_int_equal(read_all(&w, &lost), contexts[i].words == NULL ? 20 : 0);
        assert_int_equal(w.end, contexts[i].words == NULL ? PNR_EAGAIN : PNR_ECONFIG);
        if (contexts[i].words != NULL)
            assert_non_null(strstr(w.error.text, contexts[i].words));
        expect_refused(&w, 0);
        close_wire(&w);
    }
}

/* --- addresses --- */

TEST(test_multicast)
{
    const form *f = &forms[0];
    const struct in_addr local = {htonl(INADDR_LOOPBACK)};
    uint64_t lost;
    wire w, second;

    open_wire(&w, f->kind, "");
    pnr_source_close(w.source);
    snprintf(w.config.source.input, sizeof w.config.source.input, "udp:239.255.77.3%%lo:%u",
             ntohs(w.to.sin_port));
    if (pnr_source_open(&w.config, &w.source, &w.error) != PNR_OK)
        fail_msg("%s", w.error.text);
    second = w; /* two may hear a group */
    assert_int_equal(pnr_source_open(&second.config, &second.source, &w.error), PNR_OK);
    w.to.sin_addr.s_addr = inet_addr("239.255.77.3");
    assert_int_equal(setsockopt(w.fd, IPPROTO_IP, IP_MULTICAST_IF, &local, sizeof local), 0);
    send_packet(&w, f, 4);
    assert_int_equal(read_all(&w, &lost), 10);
    assert_int_equal(read_all(&second, &lost), 10);
    pnr_source_close(second.source);
    close_wire(&w);
}

TEST(test_addresses)
{
    pnr_config config = source_config("-");
    pnr_error error;
    wire w;

    config.source.rate_hz = (pnr_rational){RATE, 1};
    strcpy(config.source.input, "udp:5000");
    expect_source_refused(&config, PNR_ECONFIG, "want udp:HOST:PORT", NULL);
    strcpy(config.source.input, "vrt:127.0.0.1:99999");
    expect_source_refused(&config, PNR_ECONFIG, "want vrt:HOST:PORT", NULL);
    strcpy(config.source.input, "udp:239.1.2.3%nothing:5000");
    expect_source_refused(&config, PNR_ECONFIG, "no interface nothing", NULL);
    strcpy(config.source.input, "udp:192.0.2.1:5000");
    expect_source_refused(&config, PNR_EUNAVAILABLE, "192.0.2.1", NULL);
    strcpy(config.source.input, "vrt:*:4991");
    strcpy(config.source.vrt_stream, "0x123456789");
    expect_source_refused(&config, PNR_ECONFIG, "vrt_stream", NULL);
    strcpy(config.source.vrt_stream, "");
    config.source.format = PNR_FORMAT_CI4;
    expect_source_refused(&config, PNR_ECONFIG, "ci4", NULL);
    config.source.format = PNR_FORMAT_NONE;
    assert_int_equal(pnr_source_complete(&config, &error), PNR_OK); /* without a socket */
    assert_int_equal(config.source.format, PNR_FORMAT_CI16);

    open_wire(&w, "udp", "");
    expect_source_refused(&w.config, PNR_EUNAVAILABLE, "in use", NULL);
    close_wire(&w);
}
