/* SPDX-License-Identifier: MIT */
/* Datagrams over loopback: losses, order, duplicates; what is refused; addresses. */
#include "tests/fixture/random.h"
#include "tests/fixture/source_fixture.h"
#include "tests/fixture/udp_fixture.h"

#include <arpa/inet.h>
#include <sys/socket.h>

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

/* A read of one sample asks the kernel for one datagram at a time. Until the loss is certain, none
 * of these datagrams has the next sample. */
TEST(test_a_short_read_goes_on_while_datagrams_wait)
{
    const form *f = &forms[0];
    uint64_t n = 0, lost = 0;
    wire w;

    open_wire(&w, f->kind, "source.udp_reorder=16");
    send_packet(&w, f, 1);
    for (uint64_t i = 3; i < 3 + 17; i++)
        send_packet(&w, f, i);
    while (n + lost < 20) {
        uint32_t sample;
        pnr_source_block block;

        assert_int_equal(pnr_source_read(w.source, &sample, 1, &block, &w.error), PNR_OK);
        n += block.n_samples;
        lost += block.gap;
    }
    assert_int_equal(lost, 10);
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
