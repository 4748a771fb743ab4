/* SPDX-License-Identifier: MIT */
/* Vectors for GNU Radio against real SUB sockets: the header, the numbers of the vectors, and slow
 * subscribers. GNU Radio itself judges them in tests/interop. */
#include "publisher/gnuradio.h"

#include "base/clock.h"
#include "source/gr_tags.h"
#include "tests/fixture/report_fixture.h"

#include <unistd.h>
#include <zmq.h>

enum { N_CELLS = 1 << 20, PATIENCE_MS = 60000 };

/* A map of large rows, so that few of them fill a queue. */
static const pnr_map_info map = {.row = {.n_cells = N_CELLS, .step_s = 0.25},
                                 .n_codes = 2,
                                 .n_rows = 1,
                                 .n_runs = 1,
                                 .runs = {{.first_hz = -3.5, .n_rows = 1}}};

static float cells[2 * N_CELLS];

typedef struct wire {
    pnr_config config;
    pnr_events events;
    pnr_gnuradio *out;
    void *context, *in;
} wire;

static int open_out(wire *w, const char *endpoint, const pnr_map_info *info, double patience_s,
                    pnr_error *error)
{
    snprintf(w->config.publisher.gnuradio, sizeof w->config.publisher.gnuradio, "%s", endpoint);
    w->config.publisher.max_subscribers = 2;
    pnr_events_begin(&w->events);
    return pnr_gnuradio_open(&w->config, info, patience_s, NULL, &w->events, &w->out, error);
}

static void name_endpoint(char endpoint[64])
{
    snprintf(endpoint, 64, "ipc://@pnr_test_gnuradio_%d", (int)getpid());
}

static void open_wire(wire *w, const pnr_map_info *info, double patience_s)
{
    const int patience_ms = PATIENCE_MS, one = 1;
    char endpoint[64];
    pnr_error error;

    memset(w, 0, sizeof *w);
    name_endpoint(endpoint);
    assert_int_equal(open_out(w, endpoint, info, patience_s, &error), PNR_OK);
    assert_int_equal(pnr_gnuradio_wait(w->out, 0, NULL), PNR_EAGAIN);
    w->context = zmq_ctx_new();
    w->in = zmq_socket(w->context, ZMQ_SUB);
    zmq_setsockopt(w->in, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    zmq_setsockopt(w->in, ZMQ_RCVHWM, &one, sizeof one);
    zmq_setsockopt(w->in, ZMQ_SUBSCRIBE, "", 0);
    assert_int_equal(zmq_connect(w->in, endpoint), 0);
    assert_int_equal(pnr_gnuradio_wait(w->out, PATIENCE_MS * 1e-3, NULL), PNR_OK);
}

static void close_wire(wire *w)
{
    zmq_close(w->in);
    zmq_ctx_term(w->context);
    pnr_gnuradio_close(w->out);
}

/* Receives a message and its header, which must be there. */
static void receive(wire *w, zmq_msg_t *message, pnr_gr_header *header)
{
    pnr_error error;

    zmq_msg_init(message);
    assert_true(zmq_msg_recv(message, w->in, 0) > 0);
    assert_false(zmq_msg_more(message));
    assert_int_equal(
        pnr_gr_header_read(zmq_msg_data(message), zmq_msg_size(message), header, &error), PNR_OK);
}

static bool has_bytes(zmq_msg_t *message, const char *bytes, size_t n)
{
    return memmem(zmq_msg_data(message), zmq_msg_size(message), bytes, n) != NULL;
}
#define HAS(message, text) has_bytes(message, text, sizeof(text) - 1)

TEST(test_a_map_with_its_tags)
{
    pnr_report report;
    pnr_gr_header header;
    zmq_msg_t message;
    wire w;

    for (size_t i = 0; i < 2 * N_CELLS; i++)
        cells[i] = (float)i;
    report_fixture(&report, 0);
    report.has_time = true;
    report.time_ns = INT64_C(1795228812250000000);
    report.sample = 0x0102030405060708;
    report.lost = 77;
    open_wire(&w, &map, 60);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(pnr_gnuradio_send(w.out, &report, &map, cells), PNR_OK);
        receive(&w, &message, &header);
        assert_true(header.offset == 2 * i);
        assert_int_equal(header.n_times, 1);
        assert_true(header.times[0].offset == 2 * i && header.times[0].utc_ns == report.time_ns);
        assert_int_equal(zmq_msg_size(&message), header.n_bytes + sizeof cells);
        assert_memory_equal((char *)zmq_msg_data(&message) + header.n_bytes, cells, sizeof cells);
        assert_true(HAS(&message, "\x02\x00\x06sample\x0b\x01\x02\x03\x04\x05\x06\x07\x08"));
        assert_true(HAS(&message, "\x02\x00\x04lost\x0b\0\0\0\0\0\0\0\x4d\x02\x00\x07pnradar"));
        assert_true(HAS(&message, "\x02\x00\x06step_s\x04\x3f\xd0\0\0\0\0\0\0"));
        assert_true(HAS(&message, "\x02\x00\x0a"
                                  "doppler_hz\x04\xc0\x0c\0\0\0\0\0\0"));
        assert_true(has_bytes(&message,
                              i == 0 ? "\x02\x00\x05"
                                       "dwell\x0b\0\0\0\0\0\0\0\0"
                                     : "\x02\x00\x05"
                                       "dwell\x0b\0\0\0\0\0\0\0\x01",
                              17));
        /* The second vector has another code. */
        assert_true(has_bytes(&message,
                              i == 0 ? "\x01\0\0\0\0\0\0\0\x02\x00\x04"
                                       "code\x0b\0\0\0\0\0\0\0\x02"
                                     : "\x03\0\0\0\0\0\0\0\x02\x00\x04"
                                       "code\x0b\0\0\0\0\0\0\0\x02",
                              24));
        zmq_msg_close(&message);
    }
    close_wire(&w);
}

TEST(test_a_profile_without_a_time)
{
    pnr_map_info profile = map;
    pnr_report report;
    pnr_gr_header header;
    zmq_msg_t message;
    wire w;

    profile.n_codes = 1;
    profile.row.n_cells = 100;
    report_fixture(&report, 0);
    report.has_time = false;
    open_wire(&w, &profile, 0);
    assert_int_equal(pnr_gnuradio_send(w.out, &report, &profile, cells), PNR_OK);
    receive(&w, &message, &header);
    assert_int_equal(header.n_times, 0);
    assert_int_equal(zmq_msg_size(&message), header.n_bytes + 400);
    assert_false(HAS(&message, "doppler_hz"));
    assert_false(HAS(&message, "\x04"
                               "code"));
    zmq_msg_close(&message);
    close_wire(&w);
}

/* Sends until `n` messages more than any queue holds; the subscriber reads nothing yet. Returns how
 * many were refused. */
static size_t send_many(wire *w, size_t n)
{
    pnr_report report;
    size_t n_refused = 0;

    report_fixture(&report, 0);
    for (size_t i = 0; i < n; i++)
        n_refused += pnr_gnuradio_send(w->out, &report, &map, cells) != PNR_OK;
    return n_refused;
}

/* Reads what arrives until vector number `last`. Returns the number of messages. */
static size_t read_until(wire *w, uint64_t last)
{
    pnr_gr_header header = {0};
    zmq_msg_t message;
    size_t n = 0;

    do {
        receive(w, &message, &header);
        zmq_msg_close(&message);
        n++;
    } while (header.offset < last);
    assert_true(header.offset == last);
    return n;
}

TEST(test_a_recording_waits_once_for_a_subscriber_that_has_stopped)
{
    const uint64_t begin_ns = pnr_clock_ns();
    size_t n_refused;
    wire w;

    open_wire(&w, &map, 0.2);
    n_refused = send_many(&w, 40);
    assert_true(n_refused > 1 && n_refused < 40);
    assert_true(pnr_clock_ns() - begin_ns >= 200000000);
    assert_int_equal(read_until(&w, 2 * (39 - n_refused)), 40 - n_refused);
    /* It reads again: the next vectors have the numbers of all that were computed. */
    while (send_many(&w, 1) != 0)
        n_refused = 0;
    pnr_gr_header header;
    zmq_msg_t message;

    receive(&w, &message, &header);
    assert_true(header.offset >= 80);
    zmq_msg_close(&message);
    close_wire(&w);
}

TEST(test_a_live_stream_never_waits)
{
    wire w;

    open_wire(&w, &map, 0);
    assert_int_equal(send_many(&w, 40), 0);
    close_wire(&w);
}

/* Waits until the guard has refused n peers. Returns true if somebody subscribed meanwhile. */
static bool await_refusals(wire *w, uint64_t n)
{
    bool is_subscribed = false;

    for (int i = 0; pnr_event_count(&w->events, PNR_EVENT_SUBSCRIBER_REFUSED) < n; i++) {
        assert_true(i < PATIENCE_MS);
        is_subscribed = pnr_gnuradio_wait(w->out, 0, NULL) == PNR_OK || is_subscribed;
        usleep(1000);
    }
    return is_subscribed;
}

TEST(test_a_peer_that_sends_no_subscription_is_disconnected)
{
    wire w;
    void *peer;
    char endpoint[64];

    open_wire(&w, &map, 0);
    name_endpoint(endpoint);
    peer = zmq_socket(w.context, ZMQ_XSUB);
    assert_int_equal(zmq_connect(peer, endpoint), 0);
    assert_int_equal(zmq_send(peer, "no subscription", 15, 0), 15);
    assert_false(await_refusals(&w, 1));
    zmq_close(peer);
    close_wire(&w);
}

TEST(test_more_peers_than_max_subscribers_are_refused)
{
    void *peers[2];
    char endpoint[64];
    wire w;

    open_wire(&w, &map, 0);
    name_endpoint(endpoint);
    for (size_t i = 0; i < COUNT(peers); i++) {
        peers[i] = zmq_socket(w.context, ZMQ_SUB);
        zmq_setsockopt(peers[i], ZMQ_SUBSCRIBE, "", 0);
        assert_int_equal(zmq_connect(peers[i], endpoint), 0);
        if (i == 0)
            assert_int_equal(pnr_gnuradio_wait(w.out, PATIENCE_MS * 1e-3, NULL), PNR_OK);
    }
    (void)await_refusals(&w, 1); /* the refused one may have subscribed before */
    for (size_t i = 0; i < COUNT(peers); i++)
        zmq_close(peers[i]);
    close_wire(&w);
}

TEST(test_endpoints_that_are_refused)
{
    static const struct {
        const char *endpoint, *word;
    } cases[] = {{"tcp://*:5557", "publisher.expose"}, {"udp://127.0.0.1:5557", "want tcp://"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        pnr_error error;
        static wire w;

        assert_int_equal(open_out(&w, cases[i].endpoint, &map, 0, &error), PNR_ECONFIG);
        assert_null(w.out);
        assert_non_null(strstr(error.text, "publisher.gnuradio = "));
        assert_non_null(strstr(error.text, cases[i].word));
    }
}
