/* SPDX-License-Identifier: MIT */
/* Senders of datagrams that restart, that are old, that move, and second ones. */
#include "base/clock.h"
#include "source/udp_sender.h"
#include "tests/fixture/random.h"
#include "tests/fixture/source_fixture.h"
#include "tests/fixture/udp_fixture.h"

#include <sys/socket.h>

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

/* Binds a new socket of the sender to an address of this machine, with any port but *first. Sets
 * *first if it is 0. */
static void move_to(wire *w, uint32_t host, in_port_t *first)
{
    struct sockaddr_in at;
    socklen_t n_bytes;

    do {
        at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
        n_bytes = sizeof at;
        close(change_port(w));
        assert_int_equal(bind(w->fd, (struct sockaddr *)&at, sizeof at), 0);
        assert_int_equal(getsockname(w->fd, (struct sockaddr *)&at, &n_bytes), 0);
    } while (at.sin_port == *first);
    if (*first == 0)
        *first = at.sin_port;
}

/* A sender that takes a new port for each datagram. */
TEST(test_any_port_of_one_host)
{
    static const form *const tried[] = {&forms[0], &forms[2]};
    enum { N = 200 };

    for (size_t i = 0; i < COUNT(tried); i++)
        for (int is_asked = 0; is_asked < 2; is_asked++) {
            in_port_t first = 0;
            uint64_t lost;
            wire w;

            open_wire(&w, tried[i]->kind,
                      is_asked ? "source.udp_sender=address source.udp_reorder=0" : "");
            for (uint64_t k = 0; k < N; k++) {
                move_to(&w, INADDR_LOOPBACK, &first);
                if (k != 50)
                    send_packet(&w, tried[i], k);
                move_to(&w, INADDR_LOOPBACK + 1, &first); /* another host */
                send_packet(&w, tried[i], k < 100 ? k + 1 : k * 100000);
            }
            assert_int_equal(read_all(&w, &lost), is_asked ? 10 * (N - 1) : 10);
            assert_int_equal(lost, is_asked ? 10 : 0);
            assert_int_equal(w.end, PNR_EAGAIN);
            expect_refused(&w, is_asked ? N : 2 * N - 2);
            close_wire(&w);
        }
}

/* The reason says how such a sender is taken. */
TEST(test_the_reason_names_the_key)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(4000)}, there = here;
    struct msghdr message = {.msg_name = &here, .msg_namelen = sizeof here};
    pnr_udp_sender sender = {0};
    char text[PNR_UDP_REASON_LEN];

    here.sin_addr.s_addr = there.sin_addr.s_addr = htonl(0x0a000001);
    pnr_udp_sender_hear(&sender, &message, 1);
    message.msg_name = &there;
    there.sin_port = htons(4001);
    assert_string_equal(pnr_udp_sender_reason(&sender, &message, text),
                        "it comes from 10.0.0.1 port 4001, and the stream from 10.0.0.1 port 4000 "
                        "(source.udp_sender = address takes all ports)");
    there.sin_addr.s_addr = htonl(0x0a000002);
    assert_string_equal(pnr_udp_sender_reason(&sender, &message, text),
                        "it comes from 10.0.0.2 port 4001, and the stream from 10.0.0.1 port 4000");
}

TEST(test_any_port_of_ipv6)
{
    struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_port = htons(4000)}, there = here;
    struct msghdr message = {.msg_name = &here, .msg_namelen = sizeof here};

    here.sin6_addr.s6_addr[15] = there.sin6_addr.s6_addr[15] = 1;
    for (int has_any_port = 0; has_any_port < 2; has_any_port++) {
        pnr_udp_sender sender = {.has_any_port = has_any_port};

        there = here;
        message.msg_name = &here;
        pnr_udp_sender_hear(&sender, &message, 1);
        message.msg_name = &there;
        assert_true(pnr_udp_sender_admits(&sender, &message));
        there.sin6_port = htons(4001);
        assert_int_equal(pnr_udp_sender_admits(&sender, &message), has_any_port);
        there.sin6_addr.s6_addr[3] = 7;
        assert_false(pnr_udp_sender_admits(&sender, &message));
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
