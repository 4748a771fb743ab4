/* SPDX-License-Identifier: MIT */
/* Senders of datagrams that restart, that are old, that move, and second ones. */
#include "base/clock.h"
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
