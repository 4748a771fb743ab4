/* SPDX-License-Identifier: MIT */
/* The publisher against real SUB sockets: what arrives, what a slow subscriber misses, and that
 * nothing waits for it. */
#include "publisher/publisher.h"

#include "base/clock.h"
#include "tests/fixture/report_fixture.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

enum { PATIENCE_MS = 60000 };

static void configure(pnr_config *config, const char *endpoint)
{
    memset(config, 0, sizeof *config);
    strcpy(config->stream.name, "demo");
    snprintf(config->publisher.endpoint, sizeof config->publisher.endpoint, "%s", endpoint);
    config->publisher.pack = 1;
    config->publisher.high_water = 1000;
    config->publisher.max_subscribers = 8;
    config->publisher.linger_s = 1;
    config->detector.max_echoes = 8;
}

static pnr_publisher *create(const pnr_config *config)
{
    pnr_publisher *publisher;
    pnr_error error = {0};

    if (pnr_publisher_create(config, NULL, &publisher, &error) != PNR_OK)
        fail_msg("%s", error.text);
    return publisher;
}

/* A subscriber, connected and known to the publisher. */
typedef struct subscriber {
    void *context, *socket;
} subscriber;

static void connect_to(subscriber *s, pnr_publisher *publisher, const char *topic, int high_water)
{
    const int patience_ms = PATIENCE_MS, linger = 0;

    s->context = zmq_ctx_new();
    s->socket = zmq_socket(s->context, ZMQ_SUB);
    assert_non_null(s->socket);
    zmq_setsockopt(s->socket, ZMQ_RCVHWM, &high_water, sizeof high_water);
    zmq_setsockopt(s->socket, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    zmq_setsockopt(s->socket, ZMQ_LINGER, &linger, sizeof linger);
    assert_int_equal(zmq_setsockopt(s->socket, ZMQ_SUBSCRIBE, topic, strlen(topic)), 0);
    assert_int_equal(zmq_connect(s->socket, pnr_publisher_endpoint(publisher)), 0);
}

static void subscribe(subscriber *s, pnr_publisher *publisher, const char *topic, int high_water)
{
    const size_t before = pnr_publisher_subscribers(publisher);
    const uint64_t begin_ns = pnr_clock_ns();

    connect_to(s, publisher, topic, high_water);
    while (pnr_publisher_subscribers(publisher) <= before) {
        assert_true(pnr_clock_ns() - begin_ns < PATIENCE_MS * UINT64_C(1000000));
        usleep(1000);
    }
}

/* Waits until the publisher counts n subscribers. */
static void await_subscribers(pnr_publisher *publisher, size_t n)
{
    for (int i = 0; pnr_publisher_subscribers(publisher) != n; i++) {
        assert_true(i < PATIENCE_MS);
        usleep(1000);
    }
}

static void unsubscribe(subscriber *s)
{
    zmq_close(s->socket);
    zmq_ctx_term(s->context);
}

/* One part, with a NUL after it; -1: nothing within the patience. */
static int part(subscriber *s, char *out, size_t size)
{
    const int n = zmq_recv(s->socket, out, size - 1, 0);

    assert_true(n < (int)size);
    if (n >= 0)
        out[n] = '\0';
    return n;
}

static bool more(subscriber *s)
{
    int value = 0;
    size_t size = sizeof value;

    zmq_getsockopt(s->socket, ZMQ_RCVMORE, &value, &size);
    return value != 0;
}

/* A whole range message that is not packed. */
static void receive(subscriber *s, pnr_report *out)
{
    static char text[PNR_MESSAGE_MAX];
    pnr_error error = {0};
    int n;

    assert_true(part(s, text, sizeof text) > 0);
    assert_string_equal(text, "range/demo");
    assert_true(more(s));
    n = part(s, text, sizeof text);
    assert_true(n > 0);
    assert_false(more(s));
    if (pnr_message_read_range(text, (size_t)n, out, &error) != PNR_OK)
        fail_msg("%s", error.text);
}

static void exchange(const char *endpoint)
{
    pnr_publisher *publisher;
    pnr_report report, read;
    pnr_config config;
    subscriber s;
    uint64_t i;

    configure(&config, endpoint);
    publisher = create(&config);
    subscribe(&s, publisher, "range/demo", 1000);
    for (i = 0; i < 20; i++) {
        report_fixture(&report, i % 4);
        report.sample = i * 1023;
        assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
        assert_true(report.seq == i);
    }
    for (i = 0; i < 20; i++) {
        receive(&s, &read);
        assert_true(read.seq == i);
        assert_true(read.sample == i * 1023);
        assert_int_equal(read.detection.n_echoes, i % 4);
        assert_string_equal(read.run, report.run);
        assert_string_equal(read.stream, "demo");
    }
    unsubscribe(&s);
    pnr_publisher_destroy(publisher);
}

TEST(test_tcp)
{
    exchange("tcp://127.0.0.1:*");
}

TEST(test_ipc)
{
    char folder[] = "/tmp/pnradar-publisher-XXXXXX", endpoint[80];

    assert_non_null(mkdtemp(folder));
    snprintf(endpoint, sizeof endpoint, "ipc://%s/s", folder);
    exchange(endpoint);
    unlink(endpoint + 6);
    assert_int_equal(rmdir(folder), 0);
}

/* Each topic has a separate seq; a status has no reason, an end has one. */
TEST(test_topics)
{
    static char text[PNR_MESSAGE_MAX];
    static const char *const want[] = {"status/demo", "status/demo", "end/demo"};
    pnr_publisher *publisher;
    pnr_status status = {.account = {.results = 3, .sent = 3}};
    pnr_end_summary summary;
    pnr_report report;
    pnr_config config;
    pnr_error error;
    subscriber s;
    int i, n;

    configure(&config, "tcp://127.0.0.1:*");
    publisher = create(&config);
    subscribe(&s, publisher, "", 1000); /* a prefix of range/demo */
    zmq_setsockopt(s.socket, ZMQ_SUBSCRIBE, "status/", 7);
    zmq_setsockopt(s.socket, ZMQ_SUBSCRIBE, "end/", 4);
    zmq_setsockopt(s.socket, ZMQ_UNSUBSCRIBE, "", 0); /* arrives after the two subscriptions */
    await_subscribers(publisher, 0);
    report_fixture(&report, 1);
    assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
    assert_int_equal(pnr_publisher_send_status(publisher, &status, false), PNR_OK);
    assert_int_equal(status.seq, 0);
    assert_int_equal(pnr_publisher_send_status(publisher, &status, false), PNR_OK);
    assert_int_equal(status.seq, 1);
    status.reason = "end of input";
    assert_int_equal(pnr_publisher_send_status(publisher, &status, true), PNR_OK);
    assert_int_equal(status.seq, 0);
    for (i = 0; i < 3; i++) {
        assert_true(part(&s, text, sizeof text) > 0);
        assert_string_equal(text, want[i]);
        n = part(&s, text, sizeof text);
        assert_int_equal((i < 2 ? pnr_message_read_status : pnr_message_read_end)(text, (size_t)n,
                                                                                  &summary, &error),
                         PNR_OK);
        assert_string_equal(summary.run, status.run);
        assert_int_equal(summary.account.results, 3);
    }
    assert_string_equal(summary.reason, "end of input");
    unsubscribe(&s);
    pnr_publisher_destroy(publisher);
}

TEST(test_subscribers)
{
    pnr_publisher *publisher;
    pnr_config config;
    subscriber a, b, c;
    volatile int stop = 0;

    configure(&config, "tcp://127.0.0.1:*");
    publisher = create(&config);
    assert_int_equal(pnr_publisher_subscribers(publisher), 0);
    assert_int_equal(pnr_publisher_wait(publisher, 0.05, &stop), PNR_EAGAIN);
    subscribe(&a, publisher, "range/demo", 1000);
    assert_int_equal(pnr_publisher_wait(publisher, 10, &stop), PNR_OK);
    subscribe(&b, publisher, "range/demo", 1000); /* the same again: another one */
    subscribe(&c, publisher, "ran", 1000);
    zmq_setsockopt(c.socket, ZMQ_SUBSCRIBE, "range/demo2", 11); /* not ours */
    zmq_setsockopt(c.socket, ZMQ_SUBSCRIBE, "status/", 7);
    await_subscribers(publisher, 3);
    unsubscribe(&a); /* gone without a word */
    unsubscribe(&b);
    await_subscribers(publisher, 1);
    unsubscribe(&c);
    stop = 1;
    assert_int_equal(pnr_publisher_wait(publisher, 1000, &stop), PNR_EAGAIN);
    pnr_publisher_destroy(publisher);
}

/* A subscriber that leaves before the publisher counts its subscribers has been there. */
TEST(test_brief_subscriber)
{
    zmq_pollitem_t item = {.events = ZMQ_POLLIN};
    pnr_publisher *publisher;
    pnr_report report;
    pnr_config config;
    subscriber s;

    configure(&config, "tcp://127.0.0.1:*");
    publisher = create(&config);
    report_fixture(&report, 1);
    connect_to(&s, publisher, "range/demo", 1000);
    item.socket = s.socket;
    for (int i = 0; zmq_poll(&item, 1, 1) == 0; i++) {
        assert_true(i < PATIENCE_MS);
        assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
    }
    unsubscribe(&s);
    assert_false(pnr_publisher_was_heard(publisher)); /* nobody has looked */
    await_subscribers(publisher, 0);
    assert_true(pnr_publisher_was_heard(publisher));
    pnr_publisher_destroy(publisher);
}

/* A subscriber that does not read: sends stay quick, and what it missed shows as a gap in seq. */
TEST(test_slow_subscriber)
{
    enum { N = 30000 };
    const int patience_ms = 100;
    pnr_publisher *publisher;
    pnr_report report, read;
    pnr_config config;
    subscriber s;
    struct rusage before, after;
    uint64_t i, received = 0, last = 0;

    configure(&config, "tcp://127.0.0.1:*");
    config.publisher.high_water = 10;
    publisher = create(&config);
    subscribe(&s, publisher, "range/demo", 10);
    getrusage(RUSAGE_THREAD, &before);
    for (i = 0; i < N; i++) {
        report_fixture(&report, 1);
        assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
    }
    getrusage(RUSAGE_THREAD, &after);
    print_message("%d sends to a stopped subscriber slept %ld times\n", N,
                  after.ru_nvcsw - before.ru_nvcsw);
    assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 0, N / 10);

    /* The kept results arrive; then the subscriber keeps up again, and sees the gap. */
    zmq_setsockopt(s.socket, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    while (last < N) {
        static char text[PNR_MESSAGE_MAX];
        pnr_error error;
        int n;

        if (part(&s, text, sizeof text) < 0) {
            assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
            continue;
        }
        n = part(&s, text, sizeof text);
        assert_int_equal(pnr_message_read_range(text, (size_t)n, &read, &error), PNR_OK);
        assert_true(received == 0 || read.seq > last);
        last = read.seq;
        received++;
    }
    assert_in_range(received, 2, last); /* last + 1 were sent, and some are lost */
    unsubscribe(&s);
    pnr_publisher_destroy(publisher);
}

static void receive_pack(subscriber *s, uint64_t first, size_t n_results)
{
    static char text[PNR_MESSAGE_MAX];
    static char records[65536];
    pnr_report read;
    pnr_error error = {0};
    pnr_pack pack;
    size_t i, k;
    int length, bytes;

    assert_true(part(s, text, sizeof text) > 0);
    assert_string_equal(text, "range/demo");
    length = part(s, text, sizeof text);
    assert_true(length > 0);
    assert_true(more(s));
    bytes = part(s, records, sizeof records);
    assert_true(bytes > 0);
    assert_false(more(s));
    if (pnr_message_open_pack(text, (size_t)length, records, (size_t)bytes, &pack, &error) !=
        PNR_OK)
        fail_msg("%s", error.text);
    for (i = 0; i < n_results; i++) {
        assert_true(pnr_message_next_dwell(&pack, &read));
        assert_true(read.seq == first + i);
        assert_int_equal(read.detection.n_echoes, (first + i) % 3);
        for (k = 0; k < read.detection.n_echoes; k++)
            assert_true(fabs(read.detection.echoes[k].range_m - 374740.625 - 1000 * (double)k) <
                        1e-6);
    }
    assert_false(pnr_message_next_dwell(&pack, &read));
}

TEST(test_pack)
{
    pnr_publisher *publisher;
    pnr_report report;
    pnr_config config;
    subscriber s;
    char run[17];
    size_t i;

    configure(&config, "tcp://127.0.0.1:*");
    config.publisher.pack = 5;
    publisher = create(&config);
    subscribe(&s, publisher, "range/demo", 1000);
    for (i = 0; i < 12; i++) {
        assert_int_equal(pnr_publisher_waiting(publisher), i % 5);
        report_fixture(&report, i % 3);
        assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
    }
    assert_int_equal(pnr_publisher_waiting(publisher), 2);
    assert_int_equal(pnr_publisher_flush(publisher), PNR_OK);
    assert_int_equal(pnr_publisher_waiting(publisher), 0);
    assert_int_equal(pnr_publisher_flush(publisher), PNR_OK); /* nothing left: no message */
    receive_pack(&s, 0, 5);
    receive_pack(&s, 5, 5);
    receive_pack(&s, 10, 2);

    /* Another configuration may have more echoes. */
    report_fixture(&report, 64);
    for (i = 0; i < 3; i++)
        assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
    assert_int_equal(pnr_publisher_waiting(publisher), 1);

    /* Another run. */
    pnr_publisher_begin_run(publisher);
    assert_int_equal(pnr_publisher_waiting(publisher), 0);
    memcpy(run, report.run, sizeof run);
    assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
    assert_true(report.seq == 0);
    assert_string_not_equal(report.run, run);
    unsubscribe(&s);
    pnr_publisher_destroy(publisher);
}

TEST(test_profile)
{
    static char text[PNR_MESSAGE_MAX];
    const float profile[] = {1, 2, 3, 4, 5, 6};
    static const pnr_map_info info = {
        .row = {.is_complex = true, .n_cells = 3, .oversample = 1}, .n_codes = 1, .n_rows = 1};
    pnr_publisher *publisher;
    pnr_report report;
    pnr_config config;
    subscriber s;

    configure(&config, "tcp://127.0.0.1:*");
    config.publisher.profile = PNR_PROFILE_COMPLEX;
    publisher = create(&config);
    subscribe(&s, publisher, "", 1000);
    report_fixture(&report, 0);
    assert_int_equal(pnr_publisher_reserve_cells(publisher, &info, 0, NULL, NULL), PNR_OK);
    assert_int_equal(pnr_publisher_send_cells(publisher, &report, &info, profile), PNR_OK);
    assert_true(part(&s, text, sizeof text) > 0);
    assert_string_equal(text, "profile/demo");
    assert_true(part(&s, text, sizeof text) > 0);
    assert_non_null(strstr(text, "\"n_cells\":3"));
    assert_int_equal(part(&s, text, sizeof text), sizeof profile);
    assert_memory_equal(text, profile, sizeof profile);
    unsubscribe(&s);
    pnr_publisher_destroy(publisher);
}

TEST(test_map)
{
    static char text[PNR_MESSAGE_MAX];
    static const char *const names[] = {"a code"};
    static const pnr_map_info map = {.row = {.n_cells = 3, .oversample = 1},
                                     .n_codes = 1,
                                     .n_rows = 2,
                                     .code_names = names,
                                     .n_runs = 1,
                                     .runs = {{-1, 2, 2}}};
    const float cells[] = {1, 2, 3, 4, 5, 6};
    pnr_publisher *publisher;
    pnr_report report;
    pnr_config config;
    subscriber s;

    configure(&config, "tcp://127.0.0.1:*");
    publisher = create(&config);
    subscribe(&s, publisher, "", 1000);
    report_fixture(&report, 0);
    assert_int_equal(pnr_publisher_reserve_cells(publisher, &map, 0, NULL, NULL), PNR_OK);
    for (int seq = 0; seq < 2; seq++) {
        char wanted[32];

        snprintf(wanted, sizeof wanted, "\"seq\":%d,", seq);
        assert_int_equal(pnr_publisher_send_cells(publisher, &report, &map, cells), PNR_OK);
        assert_true(part(&s, text, sizeof text) > 0);
        assert_string_equal(text, "map/demo");
        assert_true(part(&s, text, sizeof text) > 0);
        assert_non_null(strstr(text, "\"shape\":[1,2,3]"));
        assert_non_null(strstr(text, wanted));
        assert_int_equal(part(&s, text, sizeof text), sizeof cells);
        assert_memory_equal(text, cells, sizeof cells);
    }
    unsubscribe(&s);
    pnr_publisher_destroy(publisher);
}

/* Two large maps at most wait for a subscriber that does not read. A patient publisher waits for it
 * once; when it reads again, all maps that were accepted arrive whole. */
TEST(test_slow_maps)
{
    enum { N_CELLS = 1 << 21, N = 20, ROWS = 2 };
    static const char *const names[] = {"a code"};
    static const pnr_map_info map = {.row = {.n_cells = N_CELLS, .oversample = 1},
                                     .n_codes = 1,
                                     .n_rows = ROWS,
                                     .code_names = names,
                                     .n_runs = 1,
                                     .runs = {{-1, 2, ROWS}}};
    static char text[PNR_MESSAGE_MAX];
    const size_t bytes = sizeof(float) * ROWS * N_CELLS;
    float *cells = malloc(bytes);
    char *read = malloc(bytes + 1);
    pnr_publisher *publisher;
    pnr_report report;
    pnr_config config;
    subscriber s;
    uint64_t longest_ns = 0;
    size_t n_sent = 0;
    volatile int stop = 0;

    assert_true(cells != NULL && read != NULL);
    configure(&config, "tcp://127.0.0.1:*");
    publisher = create(&config);
    subscribe(&s, publisher, "", 1);
    report_fixture(&report, 0);
    assert_int_equal(pnr_publisher_reserve_cells(publisher, &map, 0.3, &stop, NULL), PNR_OK);
    for (size_t i = 0; i < N; i++) {
        const uint64_t now_ns = pnr_clock_ns();

        for (size_t cell = 0; cell < ROWS * N_CELLS; cell += 1000)
            cells[cell] = (float)(n_sent * 1000000 + cell);
        n_sent += pnr_publisher_send_cells(publisher, &report, &map, cells) == PNR_OK;
        longest_ns = pnr_clock_ns() - now_ns > longest_ns ? pnr_clock_ns() - now_ns : longest_ns;
    }
    print_message("%zu of %d maps were accepted, the longest send took %.0f ms\n", n_sent, N,
                  (double)longest_ns * 1e-6);
    assert_in_range(n_sent, 2, 8); /* two here, others in the sockets and the subscriber's queue */
    assert_true(longest_ns > UINT64_C(290000000));
    stop = 1;
    for (size_t m = 0; m < n_sent; m++) {
        assert_true(part(&s, text, sizeof text) > 0);
        assert_string_equal(text, "map/demo");
        assert_true(part(&s, text, sizeof text) > 0);
        assert_int_equal(part(&s, read, bytes + 1), bytes);
        for (size_t cell = 0; cell < ROWS * N_CELLS; cell += 1000) {
            const float want = (float)(m * 1000000 + cell);

            assert_memory_equal(read + cell * sizeof want, &want, sizeof want);
        }
    }
    /* The buffers are free again, after a stop too. */
    for (int i = 0; pnr_publisher_send_cells(publisher, &report, &map, cells) != PNR_OK; i++) {
        assert_true(i < PATIENCE_MS);
        usleep(1000);
    }
    unsubscribe(&s);
    pnr_publisher_destroy(publisher);
    free(cells);
    free(read);
}

TEST(test_no_endpoint)
{
    pnr_publisher *publisher;
    pnr_report report;
    pnr_status status = {0};
    pnr_config config;

    configure(&config, "");
    config.publisher.pack = 3;
    publisher = create(&config);
    assert_string_equal(pnr_publisher_endpoint(publisher), "");
    report_fixture(&report, 1);
    assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
    assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
    assert_true(report.seq == 1);
    assert_int_equal(pnr_publisher_flush(publisher), PNR_OK);
    assert_int_equal(pnr_publisher_waiting(publisher), 0);
    assert_int_equal(pnr_publisher_send_cells(publisher, &report, &(pnr_map_info){0}, NULL),
                     PNR_OK);
    assert_int_equal(pnr_publisher_send_status(publisher, &status, true), PNR_OK);
    assert_string_equal(report.run, status.run);
    assert_int_equal(pnr_publisher_subscribers(publisher), 0);
    assert_int_equal(pnr_publisher_wait(publisher, 1000, NULL), PNR_OK);
    pnr_publisher_destroy(publisher);
    pnr_publisher_destroy(NULL);
}

TEST(test_create_fails_in_words)
{
    pnr_publisher *first, *second;
    struct rlimit limit, low;
    pnr_config config;
    pnr_error error;

    configure(&config, "tcp://127.0.0.1:*");
    first = create(&config);
    configure(&config, pnr_publisher_endpoint(first));
    assert_int_equal(pnr_publisher_create(&config, NULL, &second, &error), PNR_EUNAVAILABLE);
    assert_null(second);
    assert_non_null(strstr(error.text, pnr_publisher_endpoint(first)));
    assert_non_null(strstr(error.text, "in use"));

    configure(&config, "tcp://*:*");
    assert_int_equal(pnr_publisher_create(&config, NULL, &second, &error), PNR_ECONFIG);
    assert_null(second);

    configure(&config, "tcp://127.0.0.1:*");
    config.publisher.pack = SIZE_MAX / 4;
    assert_int_equal(pnr_publisher_create(&config, NULL, &second, &error), PNR_ENOMEMORY);
    assert_null(second);

    configure(&config, "tcp://127.0.0.1:*");
    getrlimit(RLIMIT_NOFILE, &limit);
    low = limit;
    low.rlim_cur = 10;
    setrlimit(RLIMIT_NOFILE, &low);
    assert_int_equal(pnr_publisher_create(&config, NULL, &second, &error), PNR_EUNAVAILABLE);
    setrlimit(RLIMIT_NOFILE, &limit);
    assert_null(second);
    pnr_publisher_destroy(first);
}

/* The end leaves within linger, also with a subscriber that never reads. */
TEST(test_linger)
{
    pnr_publisher *publisher;
    pnr_report report;
    pnr_config config;
    subscriber s;
    uint64_t begin_ns;
    int i;

    configure(&config, "tcp://127.0.0.1:*");
    config.publisher.linger_s = 0.2;
    config.publisher.high_water = 100000;
    publisher = create(&config);
    subscribe(&s, publisher, "range/demo", 1);
    report_fixture(&report, 64);
    for (i = 0; i < 1000; i++)
        assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
    begin_ns = pnr_clock_ns();
    pnr_publisher_destroy(publisher);
    assert_true(pnr_clock_ns() - begin_ns < UINT64_C(60000000000));
    unsubscribe(&s);
}

static void write_key(const char *folder, const char *name, const char *key)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    fprintf(file, "%s\n", key);
    fclose(file);
}

static void remove_key(const char *folder, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

/* Connects with the key of a client, or without any (NULL), and tells whether a result arrives. */
static bool hears(pnr_publisher *publisher, const char *server, const char *public,
                  const char *secret)
{
    const int linger = 0, patience_ms = 5000;
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_SUB);
    char endpoint[64], text[64];
    pnr_report report;
    bool is_heard;

    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1%s",
             strrchr(pnr_publisher_endpoint(publisher), ':'));
    if (public != NULL) {
        zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server, 41);
        zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public, 41);
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, 41);
    }
    zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    zmq_connect(socket, endpoint);
    is_heard = pnr_publisher_wait(publisher, public != NULL ? 2 : 0.5, NULL) == PNR_OK;
    report_fixture(&report, 1);
    assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
    if (is_heard)
        assert_int_equal(zmq_recv(socket, text, sizeof text, 0), 10);
    zmq_close(socket);
    zmq_ctx_term(context);
    await_subscribers(publisher, 0);
    return is_heard;
}

/* Connects without a key, and waits until the publisher hangs up. */
static void shake_hands_badly(const pnr_publisher *publisher)
{
    static const unsigned char greeting[64] = {0xff, [8] = 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char bytes[256];

    address.sin_port = htons((uint16_t)atoi(strrchr(pnr_publisher_endpoint(publisher), ':') + 1));
    assert_int_equal(connect(handle, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(handle, greeting, 10, MSG_NOSIGNAL), 10);
    usleep(300 * 1000); /* the guard sees the connection before libzmq closes it */
    assert_int_equal(send(handle, greeting + 10, 54, MSG_NOSIGNAL), 54);
    while (recv(handle, bytes, sizeof bytes, 0) > 0)
        ;
    close(handle);
}

/* A key is admitted while the folder has it. Another one is refused and named; no key hears
 * nothing. */
TEST(test_curve)
{
    char folder[] = "/tmp/pnradar-curve-XXXXXX", clients[64], public[41], secret[41];
    char known[41], known_secret[41], other[41], other_secret[41];
    pnr_publisher *publisher = NULL;
    pnr_config config;
    pnr_events events;
    pnr_event event;
    pnr_error error;

    if (!zmq_has("curve"))
        skip();
    assert_non_null(mkdtemp(folder));
    snprintf(clients, sizeof clients, "%s/clients", folder);
    assert_int_equal(mkdir(clients, 0700), 0);
    zmq_curve_keypair(public, secret);
    zmq_curve_keypair(known, known_secret);
    zmq_curve_keypair(other, other_secret);
    write_key(folder, "own.secret", secret);
    write_key(clients, "known", known);
    configure(&config, "tcp://0.0.0.0:*"); /* beyond this machine: allowed with keys */
    snprintf(config.publisher.curve_secret_path, 100, "%s/own.secret", folder);
    assert_int_equal(pnr_publisher_create(&config, NULL, &publisher, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "any key may subscribe: give publisher.curve_clients"));
    snprintf(config.publisher.curve_clients, 100, "%s", clients);
    pnr_events_begin(&events);
    if (pnr_publisher_create(&config, &events, &publisher, &error) != PNR_OK)
        fail_msg("%s", error.text);
    assert_true(hears(publisher, public, known, known_secret));
    assert_false(pnr_event_take(&events, &event));
    assert_false(hears(publisher, public, other, other_secret));
    assert_true(pnr_event_take(&events, &event));
    assert_int_equal(event.kind, PNR_EVENT_SUBSCRIBER_REFUSED);
    assert_non_null(strstr(event.text, "127.0.0.1"));
    assert_non_null(strstr(event.text, other));
    while (pnr_event_take(&events, &event))
        assert_non_null(strstr(event.text, other));
    assert_false(hears(publisher, public, NULL, NULL));
    while (pnr_event_take(&events, &event))
        ;
    shake_hands_badly(publisher); /* the refused keys before do not hide it */
    for (int i = 0; !pnr_event_take(&events, &event); i++) {
        assert_true(i < 10000);
        usleep(1000);
    }
    if (strstr(event.text, "its handshake failed") == NULL)
        fail_msg("%s", event.text);
    write_key(clients, "other", other);
    remove_key(clients, "known");
    assert_true(hears(publisher, public, other, other_secret));
    assert_false(hears(publisher, public, known, known_secret));
    pnr_publisher_destroy(publisher);
    write_key(clients, "strange", "no key");
    assert_int_equal(pnr_publisher_create(&config, NULL, &publisher, &error), PNR_EDATA);
    assert_non_null(strstr(error.text, "strange"));
    remove_key(clients, "strange");
    remove_key(clients, "other");
    remove_key(folder, "own.secret");
    rmdir(clients);
    assert_int_equal(pnr_publisher_create(&config, NULL, &publisher, &error), PNR_ENOINPUT);
    rmdir(folder);
}
