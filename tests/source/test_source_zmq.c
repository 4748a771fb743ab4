/* SPDX-License-Identifier: MIT */
/* Messages of GNU Radio over ZeroMQ: items, keys, stream tags, gaps, times, and messages that are
 * refused. */
#include "base/random.h"
#include "source/gr_tags.h"
#include "tests/fixture/source_fixture.h"

#include <endian.h>
#include <zmq.h>

enum { RATE = 1000, ITEM = 8, MAX_MESSAGE = 4096 };

/* A sender and the source that is connected to it. Item i of the sender holds the number i. */
typedef struct wire {
    void *context, *socket;
    pnr_config config;
    pnr_source *source;
} wire;

static void open_wire(wire *l, const char *kind, const char *settings)
{
    char endpoint[64] = "", list[256];
    size_t size = sizeof endpoint;
    pnr_error error = {0};
    unsigned char byte;

    memset(l, 0, sizeof *l);
    l->context = zmq_ctx_new();
    l->socket = zmq_socket(l->context, strcmp(kind, "zmq-sub") == 0 ? ZMQ_XPUB : ZMQ_PUSH);
    assert_int_equal(zmq_bind(l->socket, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(l->socket, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    pnr_config_init(&l->config);
    snprintf(l->config.source.input, sizeof l->config.source.input, "%s:%s", kind, endpoint);
    l->config.source.rate_hz = (pnr_rational){RATE, 1};
    snprintf(list, sizeof list, "%s", settings);
    for (char *rest = list, *one; (one = strsep(&rest, " ")) != NULL;)
        if (*one != '\0')
            assert_int_equal(pnr_config_set(&l->config, one, &error), PNR_OK);
    if (pnr_source_open(&l->config, &l->source, &error) != PNR_OK)
        fail_msg("%s", error.text);
    if (strcmp(kind, "zmq-sub") == 0) /* the subscription has come */
        assert_true(zmq_recv(l->socket, &byte, 1, 0) >= 1);
}

static void close_wire(wire *l)
{
    const int linger_ms = 0;

    pnr_source_close(l->source);
    zmq_setsockopt(l->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_close(l->socket);
    zmq_ctx_term(l->context);
    pnr_config_clear(&l->config);
}

/* --- messages --- */

typedef struct message {
    unsigned char bytes[MAX_MESSAGE];
    size_t n;
} message;

static void add_bytes(message *m, const void *bytes, size_t n)
{
    assert_true(m->n + n <= sizeof m->bytes);
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void add_u64(message *m, uint64_t value)
{
    add_bytes(m, &value, sizeof value);
}

static void add_header(message *m, uint64_t offset, uint64_t n_tags)
{
    m->n = 0;
    add_bytes(m, "\xf0\x5f\x01", 3);
    add_u64(m, offset);
    add_u64(m, n_tags);
}

#define ADD_TEXT(m, text) add_bytes(m, text, sizeof(text) - 1)

static void add_time(message *m, uint64_t offset, uint64_t seconds, double fraction)
{
    uint64_t bits;

    memcpy(&bits, &fraction, sizeof bits);
    add_u64(m, offset);
    ADD_TEXT(m, "\x02\x00\x07rx_time\x0c\x00\x00\x00\x02\x0b");
    add_u64(m, htobe64(seconds));
    ADD_TEXT(m, "\x04");
    add_u64(m, htobe64(bits));
    ADD_TEXT(m, "\x02\x00\x04usrp");
}

static void add_rate(message *m, uint64_t offset, double rate_hz)
{
    uint64_t bits;

    memcpy(&bits, &rate_hz, sizeof bits);
    add_u64(m, offset);
    ADD_TEXT(m, "\x02\x00\x07rx_rate\x04");
    add_u64(m, htobe64(bits));
    ADD_TEXT(m, "\x01");
}

static void add_items(message *m, uint64_t first, size_t n)
{
    for (uint64_t i = 0; i < n; i++)
        add_u64(m, first + i);
}

static void send_message(const wire *l, const message *m)
{
    assert_int_equal(zmq_send(l->socket, m->bytes, m->n, 0), (int)m->n);
}

static void send_items(const wire *l, uint64_t first, size_t n)
{
    message m;

    add_header(&m, first, 0);
    add_items(&m, first, n);
    send_message(l, &m);
}

/* --- the reader --- */

/* Reads the next block. */
static int read_block(wire *l, uint64_t *data, size_t max, pnr_source_block *block)
{
    pnr_error error = {0};
    int code = PNR_EAGAIN;

    for (int patience = 400; code == PNR_EAGAIN && patience > 0; patience--)
        code = pnr_source_read(l->source, data, max, block, &error);
    return code;
}

/* Expects n items first, first + 1, ... in blocks of any size. */
static void expect_items(wire *l, uint64_t first, size_t n)
{
    uint64_t data[64];
    pnr_source_block block;

    while (n > 0) {
        assert_int_equal(read_block(l, data, n < 7 ? n : 7, &block), PNR_OK);
        assert_true(block.gap == 0);
        for (size_t i = 0; i < block.n_samples; i++)
            assert_true(data[i] == first++);
        n -= block.n_samples;
    }
}

static void expect_gap(wire *l, uint64_t gap)
{
    uint64_t data[8];
    pnr_source_block block;

    assert_int_equal(read_block(l, data, 8, &block), PNR_OK);
    assert_int_equal(block.n_samples, 0);
    assert_true(block.gap == gap);
}

static void expect_refused(const wire *l, uint64_t n)
{
    assert_true(pnr_source_refused(l->source) == n);
}

/* --- items --- */

TEST(test_items_without_tags)
{
    static const size_t sizes[] = {5, 1, 64, 0, 13};
    static const char *const kinds[] = {"zmq-pull", "zmq-sub"};

    for (size_t k = 0; k < 2; k++) {
        uint64_t first = 0;
        wire l;

        open_wire(&l, kinds[k], "");

        const pnr_source_info *info = pnr_source_get_info(l.source);

        assert_int_equal(info->format, PNR_FORMAT_CF32);
        assert_int_equal(info->loss_visibility, PNR_LOSS_NONE);
        assert_int_equal(info->is_live, k == 1);
        assert_true(info->n_samples == UINT64_MAX);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            message m = {.n = 0};

            add_items(&m, first, sizes[i]);
            send_message(&l, &m);
            first += sizes[i];
        }
        expect_items(&l, 0, (size_t)first);
        expect_refused(&l, 0);
        close_wire(&l);
    }
}

TEST(test_keys_and_further_parts)
{
    message m = {.n = 0};
    wire l;

    open_wire(&l, "zmq-pull", "source.zmq_key=radar source.format=ci16 source.channels=2");
    assert_int_equal(pnr_source_get_info(l.source)->format, PNR_FORMAT_CI16);
    add_items(&m, 0, 10);
    zmq_send(l.socket, "radar", 5, ZMQ_SNDMORE);
    send_message(&l, &m);
    zmq_send(l.socket, "other", 5, ZMQ_SNDMORE);
    send_message(&l, &m);
    send_message(&l, &m); /* no key */
    zmq_send(l.socket, "radar", 5, 0);
    m.n = 0;
    add_items(&m, 10, 10);
    zmq_send(l.socket, "radar", 5, ZMQ_SNDMORE);
    zmq_send(l.socket, m.bytes, m.n, ZMQ_SNDMORE);
    zmq_send(l.socket, "more", 4, ZMQ_SNDMORE);
    zmq_send(l.socket, "", 0, 0);
    m.n = 0;
    add_items(&m, 20, 3);
    zmq_send(l.socket, "radar", 5, ZMQ_SNDMORE);
    send_message(&l, &m);
    expect_items(&l, 0, 23);
    expect_refused(&l, 3);
    close_wire(&l);
}

/* Opens a source that is bound to an endpoint. */
static void open_bound(wire *l, const char *kind, char endpoint[64])
{
    pnr_error error = {0};

    *l = (wire){.context = zmq_ctx_new()};
    pnr_config_init(&l->config);
    l->config.source.rate_hz = (pnr_rational){RATE, 1};
    snprintf(endpoint, 64, "ipc://@pnr_test_zmq_%d", (int)getpid());
    snprintf(l->config.source.input, sizeof l->config.source.input, "%s:bind:%s", kind, endpoint);
    if (pnr_source_open(&l->config, &l->source, &error) != PNR_OK)
        fail_msg("%s", error.text);
}

/* Ends the connection of a sender: zmq_ctx_term waits until it is closed, zmq_close does not. A
 * message of the next connection would be refused until then. */
static void end_sender(wire *l)
{
    zmq_close(l->socket);
    zmq_ctx_term(l->context);
    l->context = zmq_ctx_new();
}

TEST(test_a_source_that_is_bound)
{
    static const struct {
        const char *kind;
        int peer;
    } kinds[] = {{"zmq-pull", ZMQ_PUSH}, {"zmq-sub", ZMQ_XPUB}};

    for (size_t k = 0; k < COUNT(kinds); k++) {
        char endpoint[64];
        pnr_error error = {0};
        message m = {.n = 0};
        uint64_t data[8];
        pnr_source_block block;
        unsigned char byte;
        wire l;

        open_bound(&l, kinds[k].kind, endpoint);
        for (uint64_t sender = 0; sender < 2; sender++) { /* a flow graph starts again */
            l.socket = zmq_socket(l.context, kinds[k].peer);
            assert_int_equal(zmq_connect(l.socket, endpoint), 0);
            /* libzmq subscribes at a new sender while the source reads */
            for (int patience = 400;
                 kinds[k].peer == ZMQ_XPUB && zmq_recv(l.socket, &byte, 1, ZMQ_DONTWAIT) < 1;
                 patience--) {
                assert_true(patience > 0);
                assert_int_equal(pnr_source_read(l.source, data, COUNT(data), &block, &error),
                                 PNR_EAGAIN);
            }
            m.n = 0;
            add_items(&m, 10 * sender, 10);
            send_message(&l, &m);
            expect_items(&l, 10 * sender, 10);
            if (sender == 0)
                end_sender(&l);
        }
        close_wire(&l);
    }
}

/* Reads until n messages are refused. None of them has an item. */
static void read_until_refused(wire *l, uint64_t n)
{
    uint64_t data[8];
    pnr_source_block block;
    pnr_error error;

    for (int patience = 400; pnr_source_refused(l->source) < n; patience--) {
        assert_true(patience > 0);
        assert_int_equal(pnr_source_read(l->source, data, COUNT(data), &block, &error), PNR_EAGAIN);
    }
    expect_refused(l, n);
}

/* Any program may connect to a bound source. It neither adds items, nor moves the stream, nor ends
 * it, as long as the connection of the stream exists. */
TEST(test_strangers_at_a_bound_source)
{
    enum { ROUNDS = 5, ASTRAY = 40 };
    char endpoint[64];

    for (int has_tags = 0; has_tags < 2; has_tags++) {
        message m = {.n = 0};
        wire l, stranger;
        pnr_error error;

        open_bound(&l, "zmq-pull", endpoint);
        pnr_source_close(l.source);
        l.config.source.zmq_tags = has_tags;
        assert_int_equal(pnr_source_open(&l.config, &l.source, &error), PNR_OK);
        stranger = l;
        l.socket = zmq_socket(l.context, ZMQ_PUSH);
        stranger.socket = zmq_socket(l.context, ZMQ_PUSH);
        for (uint64_t round = 0; round < ROUNDS; round++) {
            if (round == 0)
                assert_int_equal(zmq_connect(l.socket, endpoint), 0);
            m.n = 0;
            if (has_tags)
                add_header(&m, 1000 + 10 * round, 0);
            add_items(&m, 10 * round, 10);
            send_message(&l, &m);
            expect_items(&l, 10 * round, 10);
            if (round == 0)
                assert_int_equal(zmq_connect(stranger.socket, endpoint), 0);
            for (uint64_t i = 0; i < ASTRAY; i++)
                send_items(&stranger, i, 1);
            send_items(&stranger, 1000 + 10 * round + 10, 5);   /* the next ones */
            send_items(&stranger, 1000 + UINT64_C(3600000), 5); /* an hour ahead */
            add_header(&m, 1000, 1);
            add_rate(&m, 1000, 2 * RATE);
            add_items(&m, 0, 4);
            send_message(&stranger, &m);
            read_until_refused(&l, (ASTRAY + 3) * (round + 1));
        }
        zmq_close(stranger.socket);

        /* The sender connects again. */
        end_sender(&l);
        l.socket = zmq_socket(l.context, ZMQ_PUSH);
        assert_int_equal(zmq_connect(l.socket, endpoint), 0);
        m.n = 0;
        if (has_tags)
            add_header(&m, 1000 + 10 * ROUNDS + 3, 0);
        add_items(&m, 500, 10);
        send_message(&l, &m);
        if (has_tags)
            expect_gap(&l, 3);
        expect_items(&l, 500, 10);
        expect_refused(&l, (ASTRAY + 3) * ROUNDS);
        close_wire(&l);
    }
}

/* A sender that connects again may get the descriptor of its last connection. Strangers stay
 * refused. */
TEST(test_strangers_after_the_sender_reconnects)
{
    enum { ROUNDS = 6 };
    message m = {.n = 0};
    uint64_t data[8];
    pnr_source_block block;
    pnr_error error;
    char endpoint[64];
    wire l, stranger;

    add_items(&m, 0, 10);
    open_bound(&l, "zmq-pull", endpoint);
    for (int round = 0; round < ROUNDS; round++) {
        if (round > 0)
            end_sender(&l);
        l.socket = zmq_socket(l.context, ZMQ_PUSH);
        /* libzmq closes its end: the next connection then gets the same descriptor */
        assert_int_equal(pnr_source_read(l.source, data, COUNT(data), &block, &error), PNR_EAGAIN);
        assert_int_equal(zmq_connect(l.socket, endpoint), 0);
        send_message(&l, &m);
        expect_items(&l, 0, 10);
    }
    stranger = l;
    stranger.socket = zmq_socket(l.context, ZMQ_PUSH);
    assert_int_equal(zmq_connect(stranger.socket, endpoint), 0);
    send_message(&stranger, &m);
    read_until_refused(&l, 1);
    zmq_close(stranger.socket);
    close_wire(&l);
}

TEST(test_a_message_of_many_parts)
{
    enum { PARTS = 300 };
    message m = {.n = 0};
    wire l;

    open_wire(&l, "zmq-pull", "");
    add_items(&m, 0, 10);
    send_message(&l, &m);
    for (int i = 1; i < PARTS; i++)
        zmq_send(l.socket, m.bytes, m.n, ZMQ_SNDMORE);
    send_message(&l, &m);
    m.n = 0;
    add_items(&m, 10, 10);
    send_message(&l, &m);
    expect_items(&l, 0, 20);
    expect_refused(&l, 1);
    close_wire(&l);
}

/* A source that does not read keeps few messages of a sender, and so little memory. */
TEST(test_few_messages_wait)
{
    enum { BYTES = 1 << 20, MOST_WAITING = 32 };
    static unsigned char bytes[BYTES];
    const int at_once = 1, patience_ms = 500;
    char endpoint[64];
    int n = 0;
    wire l;

    open_bound(&l, "zmq-pull", endpoint);
    l.socket = zmq_socket(l.context, ZMQ_PUSH);
    zmq_setsockopt(l.socket, ZMQ_SNDHWM, &at_once, sizeof at_once);
    zmq_setsockopt(l.socket, ZMQ_SNDTIMEO, &patience_ms, sizeof patience_ms);
    assert_int_equal(zmq_connect(l.socket, endpoint), 0);
    while (n <= MOST_WAITING && zmq_send(l.socket, bytes, BYTES, 0) == BYTES)
        n++;
    assert_in_range(n, 1, MOST_WAITING);
    close_wire(&l);
}

/* --- tags --- */

TEST(test_gaps_from_offsets)
{
    static const char *const kinds[] = {"zmq-pull", "zmq-sub"};

    for (size_t k = 0; k < 2; k++) {
        wire l;

        open_wire(&l, kinds[k], "source.zmq_tags=yes");
        assert_int_equal(pnr_source_get_info(l.source)->loss_visibility, PNR_LOSS_EXACT);
        send_items(&l, 1000000, 20); /* the flow graph has run for a while */
        send_items(&l, 1000020, 30);
        send_items(&l, 1000055, 10);
        send_items(&l, 1000065 + 86400000, 4); /* a day */
        expect_items(&l, 1000000, 50);
        expect_gap(&l, 5);
        expect_items(&l, 1000055, 10);
        expect_gap(&l, 86400000);
        expect_items(&l, 87400065, 4);
        expect_refused(&l, 0);
        close_wire(&l);
    }
}

TEST(test_all_other_tags_are_skipped)
{
    message m;
    wire l;

    open_wire(&l, "zmq-pull", "source.zmq_tags=yes");
    add_header(&m, 5, 3);
    add_u64(&m, 5);
    ADD_TEXT(&m, "\x02\x00\x01k");
    ADD_TEXT(&m, "\x08\x00\x00\x00\x09"           /* a vector of nine: */
                 "\x00\x03\x00\x00\x00\x01"       /* true, int32 */
                 "\x05"                           /* complex */
                 "0123456789abcdef\x06"           /* null */
                 "\x07\x01\x07\x02\x00\x02hi\x06" /* a list */
                 "\x09\x07\x02\x00\x01"
                 "a\x01\x06"                        /* a dict */
                 "\x0a\x03\x00\x00\x00\x02\x01\xff" /* a uniform vector of 2 int16 */
                 "abcd\x0c\x00\x00\x00\x00"         /* an empty tuple */
                 "\x0d"
                 "12345678"); /* int64 */
    ADD_TEXT(&m, "\x01");
    add_rate(&m, 5, RATE);
    add_u64(&m, 6);
    ADD_TEXT(&m, "\x02\x00\x07rx_freq\x04"
                 "12345678\x01");
    add_items(&m, 5, 11);
    send_message(&l, &m);
    expect_items(&l, 5, 11);
    expect_refused(&l, 0);
    close_wire(&l);
}

TEST(test_times)
{
    const int64_t start_ns = INT64_C(1700000000) * 1000000000;
    uint64_t data[64];
    pnr_source_block block;
    message m;
    wire l;

    open_wire(&l, "zmq-sub", "source.zmq_tags=yes");
    send_items(&l, 0, 10);
    assert_int_equal(read_block(&l, data, 10, &block), PNR_OK);
    assert_false(block.has_time);
    /* Item 14 is the first with a time, in the middle of a message. */
    add_header(&m, 10, 1);
    add_time(&m, 14, 1700000000, 0);
    add_items(&m, 10, 10);
    send_message(&l, &m);
    assert_int_equal(read_block(&l, data, 64, &block), PNR_OK);
    assert_int_equal(block.n_samples, 4);
    assert_false(block.has_time);
    assert_int_equal(read_block(&l, data, 64, &block), PNR_OK);
    assert_int_equal(block.n_samples, 6);
    assert_true(block.has_time && block.utc_ns == start_ns);
    /* Item 22, 8 ms later, has the time of 8 + 107 ms: the receiver lost 107 samples before it. The
     * message before it lost 0 and this one, by its offset, 0. */
    add_header(&m, 20, 1);
    add_time(&m, 22, 1700000000, 0.115);
    add_items(&m, 20, 5);
    send_message(&l, &m);
    expect_items(&l, 20, 2);
    expect_gap(&l, 107);
    assert_int_equal(read_block(&l, data, 64, &block), PNR_OK);
    assert_int_equal(block.n_samples, 3);
    assert_true(data[0] == 22 && block.utc_ns == start_ns + 115000000);
    /* Offset and time say the same: 30 items were lost on the way, and none in the receiver. */
    add_header(&m, 55, 2);
    add_time(&m, 55, 1700000000, 0.1480004);
    add_time(&m, 55, 1700000000, 0.1480004);
    add_items(&m, 55, 5);
    send_message(&l, &m);
    expect_gap(&l, 30);
    expect_items(&l, 55, 5);
    expect_refused(&l, 0);
    /* A clock that steps back, or ahead by two days, is no gap. */
    add_header(&m, 60, 2);
    add_time(&m, 60, 1700000000, 0.1);
    add_time(&m, 61, 1700172800, 0.0);
    add_items(&m, 60, 5);
    send_message(&l, &m);
    expect_items(&l, 60, 5);
    expect_refused(&l, 2);
    close_wire(&l);
}

/* --- what is refused --- */

TEST(test_hostile_messages)
{
    uint64_t n_refused = 0, seed = 5;
    message m;
    wire l;

    open_wire(&l, "zmq-pull", "source.zmq_tags=yes");
    send_items(&l, 0, 10);
    for (size_t i = 0; i < 300; i++) { /* random bytes behind a header that is right at first */
        add_header(&m, 10, 1 + i % 3);
        for (size_t n = pnr_random_next(&seed) % 90; n > 0; n--) {
            const unsigned char byte = (unsigned char)(pnr_random_next(&seed) % (i % 2 ? 256 : 14));

            add_bytes(&m, &byte, 1);
        }

        pnr_gr_header header;
        pnr_error error;

        if (pnr_gr_header_read(m.bytes, m.n, &header, &error) == PNR_OK)
            continue;
        assert_true(error.text[0] != '\0');
        send_message(&l, &m);
        n_refused++;
    }
    assert_true(n_refused > 200);
    zmq_send(l.socket, "", 0, 0);
    zmq_send(l.socket, "\xf0\x5f\x01", 3, 0);
    zmq_send(l.socket, "\xf0\x5f\x02 another version", 19, 0);
    add_header(&m, 10, UINT64_MAX); /* tags without end */
    send_message(&l, &m);
    add_header(&m, 10, 1); /* vectors in vectors without end */
    add_u64(&m, 10);
    for (int i = 0; i < 500; i++)
        ADD_TEXT(&m, "\x08\xff\xff\xff\xff");
    send_message(&l, &m);
    add_header(&m, 10, PNR_GR_MAX_TIMES + 1);
    for (int i = 0; i <= PNR_GR_MAX_TIMES; i++)
        add_time(&m, 10, 5, 0);
    send_message(&l, &m);
    add_header(&m, 10, 2); /* times out of order */
    add_time(&m, 12, 5, 0);
    add_time(&m, 11, 5, 0);
    send_message(&l, &m);
    add_header(&m, 10, 1);
    add_time(&m, 10, UINT64_MAX, 0);
    send_message(&l, &m);
    add_header(&m, 10, 1);
    add_time(&m, 10, 5, 1.5);
    send_message(&l, &m);
    add_header(&m, 10, 1);
    add_rate(&m, 10, -1);
    send_message(&l, &m);
    add_header(&m, 10, 0); /* half an item */
    ADD_TEXT(&m, "1234");
    send_message(&l, &m);
    add_header(&m, 7, 0); /* items that came before */
    add_items(&m, 7, 9);
    send_message(&l, &m);
    send_items(&l, 86400011 + 10, 9); /* more than a day ahead */
    n_refused += 13;
    send_items(&l, 12, 8); /* a good one */
    expect_items(&l, 0, 10);
    expect_gap(&l, 2);
    expect_items(&l, 12, 8);
    expect_refused(&l, n_refused);
    close_wire(&l);
}

TEST(test_tags_on_one_side_alone)
{
    message m = {.n = 0};
    wire l;

    open_wire(&l, "zmq-pull", ""); /* the sender has tags */
    add_header(&m, 0, 1);
    add_time(&m, 0, 5, 0);
    add_items(&m, 0, 4);
    send_message(&l, &m);
    add_header(&m, 4, 0); /* cut, and no multiple of an item */
    m.n -= 2;
    send_message(&l, &m);
    m.n = 0;
    add_items(&m, 4, 4);
    send_message(&l, &m);
    zmq_send(l.socket, "12345", 5, 0);
    m.n = 0;
    add_items(&m, 8, 1);
    send_message(&l, &m);
    expect_items(&l, 4, 5);
    expect_refused(&l, 3);
    close_wire(&l);

    open_wire(&l, "zmq-pull", "source.zmq_tags=yes"); /* the sender has none */
    send_message(&l, &m);
    send_items(&l, 0, 3);
    expect_items(&l, 0, 3);
    expect_refused(&l, 1);
    close_wire(&l);
}

TEST(test_a_sender_that_restarts)
{
    uint64_t data[8];
    pnr_source_block block;
    wire l;

    open_wire(&l, "zmq-pull", "source.zmq_tags=yes");
    send_items(&l, 1000, 8);
    for (uint64_t i = 0; i < 16; i++)
        send_items(&l, i, 1);
    expect_items(&l, 1000, 8);
    assert_int_equal(read_block(&l, data, 8, &block), PNR_EDATA);
    expect_refused(&l, 15);
    close_wire(&l);
}

TEST(test_another_rate)
{
    uint64_t data[8];
    pnr_source_block block;
    message m;
    wire l;

    open_wire(&l, "zmq-pull", "source.zmq_tags=yes");
    add_header(&m, 0, 1);
    add_rate(&m, 0, 2 * RATE);
    add_items(&m, 0, 4);
    send_message(&l, &m);
    assert_int_equal(read_block(&l, data, 8, &block), PNR_ECONFIG);
    close_wire(&l);
}

TEST(test_addresses)
{
    pnr_config config = source_config("-");
    pnr_error error;

    strcpy(config.source.input, "zmq-sub:nonsense");
    expect_source_refused(&config, PNR_ECONFIG, "zmq-sub:nonsense", "zmq-sub:tcp://HOST:PORT",
                          NULL);
    strcpy(config.source.input, "zmq-pull:bind:tcp://nowhere:1");
    expect_source_refused(&config, PNR_ECONFIG, "want zmq-pull:bind:tcp://HOST:PORT", NULL);
    strcpy(config.source.input, "zmq-pull:");
    expect_source_refused(&config, PNR_ECONFIG, "zmq-pull:tcp://HOST:PORT", NULL);
    assert_int_equal(pnr_source_complete(&config, &error), PNR_OK); /* without a connection */
    assert_int_equal(config.source.format, PNR_FORMAT_CF32);
    assert_int_equal(config.source.rate_hz.den, 0);
}
