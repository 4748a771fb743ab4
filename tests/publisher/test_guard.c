/* SPDX-License-Identifier: MIT */
/* Hostile peers at the publisher: they are disconnected, named and counted, and harm nobody. */
#include "base/clock.h"
#include "publisher/publisher.h"
#include "tests/fixture/report_fixture.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

enum { PATIENCE_MS = 60000, MOST = 8 };

static pnr_events events;
static pnr_config config;
static pnr_publisher *publisher;

static int set_up(void **state)
{
    pnr_error error = {0};

    (void)state;
    memset(&config, 0, sizeof config);
    strcpy(config.stream.name, "demo");
    strcpy(config.publisher.endpoint, "tcp://127.0.0.1:*");
    config.publisher.pack = 1;
    config.publisher.high_water = 100000;
    config.publisher.linger_s = 1;
    config.publisher.max_subscribers = MOST;
    config.detector.max_echoes = 8;
    pnr_events_begin(&events);
    if (pnr_publisher_create(&config, &events, &publisher, &error) != PNR_OK)
        fail_msg("%s", error.text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pnr_publisher_destroy(publisher);
    return 0;
}

/* --- a good subscriber --- */

static void *context, *good;

static void subscribe(void)
{
    const int patience_ms = PATIENCE_MS, high_water = 100000;

    context = zmq_ctx_new();
    good = zmq_socket(context, ZMQ_SUB);
    zmq_setsockopt(good, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    zmq_setsockopt(good, ZMQ_RCVHWM, &high_water, sizeof high_water);
    zmq_setsockopt(good, ZMQ_SUBSCRIBE, "range/demo", 10);
    assert_int_equal(zmq_connect(good, pnr_publisher_endpoint(publisher)), 0);
    for (int i = 0; pnr_publisher_subscribers(publisher) == 0; i++) {
        assert_true(i < PATIENCE_MS);
        usleep(1000);
    }
}

static void leave(void)
{
    zmq_close(good);
    zmq_ctx_term(context);
}

static void publish(uint64_t sample)
{
    static pnr_report report;

    report_fixture(&report, 1);
    report.sample = sample;
    assert_int_equal(pnr_publisher_send_range(publisher, &report), PNR_OK);
}

/* Receives the result of `sample`. */
static void expect_result(uint64_t sample)
{
    static char text[PNR_MESSAGE_MAX];
    static pnr_report report;
    int n;

    assert_int_equal(zmq_recv(good, text, sizeof text, 0), 10);
    n = zmq_recv(good, text, sizeof text, 0);
    assert_true(n > 0);
    assert_int_equal(pnr_message_read_range(text, (size_t)n, &report, NULL), PNR_OK);
    assert_true(report.sample == sample);
}

/* --- a guard that is late --- */

static atomic_bool is_held;

/* Holds the guard before it reads an event of libzmq. */
int zmq_recv(void *socket, void *data, size_t size, int flags)
{
    static int (*real)(void *, void *, size_t, int);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "zmq_recv");
    while (flags == ZMQ_DONTWAIT && size == 6 && atomic_load(&is_held))
        usleep(1000);
    return real(socket, data, size, flags);
}

/* --- a hostile peer, which speaks ZMTP 3.0 itself --- */

/* Connects. -1: the publisher has reset the connection before connect() returned. */
static int dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons((uint16_t)atoi(strrchr(pnr_publisher_endpoint(publisher), ':') + 1));
    if (connect(handle, (struct sockaddr *)&address, sizeof address) == 0)
        return handle;
    assert_true(errno == ECONNRESET || errno == ECONNABORTED);
    close(handle);
    return -1;
}

/* False: the publisher has hung up. */
static bool say(int handle, const void *bytes, size_t n)
{
    for (const char *at = bytes; n > 0;) {
        const ssize_t sent = send(handle, at, n, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return false;
        at += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/* Waits until the publisher hangs up. */
static void await_hangup(int handle)
{
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    char byte[256];
    ssize_t n;

    setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while ((n = recv(handle, byte, sizeof byte, 0)) > 0)
        (void)pnr_publisher_subscribers(publisher);
    assert_true(n == 0 || errno == ECONNRESET || errno == ECONNABORTED);
}

/* Connects as a SUB socket with the NULL mechanism. -1: the publisher has hung up. */
static int shake_hands(void)
{
    static const unsigned char greeting[64] = {0xff, [8] = 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    static const unsigned char ready[] = "\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB";
    const int handle = dial();
    char answer[64 + 27];

    if (handle < 0)
        return -1;
    if (!say(handle, greeting, sizeof greeting) || !say(handle, ready, sizeof ready - 1) ||
        recv(handle, answer, sizeof answer, MSG_WAITALL) <= 0) {
        close(handle);
        return -1;
    }
    return handle;
}

/* Sends subscription `number`, a message of `size` bytes. */
static bool say_subscription(int handle, uint32_t number, size_t size)
{
    unsigned char frame[9 + 1024] = {size > 255 ? 2 : 0};
    const size_t head = size > 255 ? 9 : 2;

    frame[head - 1] = (unsigned char)size;
    if (size > 255)
        frame[head - 2] = (unsigned char)(size >> 8);
    frame[head] = 1;
    memset(frame + head + 1, 'x', size - 1);
    memcpy(frame + head + 1, &number, sizeof number);
    return say(handle, frame, head + size);
}

static size_t open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t n = 0;

    while (readdir(folder) != NULL)
        n++;
    closedir(folder);
    return n;
}

/* Waits until libzmq and the guard have n descriptors more than `before`. */
static void await_files(size_t n)
{
    for (int i = 0; open_files() != n; i++) {
        assert_true(i < PATIENCE_MS);
        usleep(1000);
    }
}

/* Connects a peer that the guard knows. */
static int join_publisher(void)
{
    const size_t before = open_files();
    const int handle = shake_hands();

    assert_true(handle >= 0);
    await_files(before + 3); /* ours, libzmq's and the guard's */
    return handle;
}

/* --- the flood --- */

typedef struct flood {
    size_t size;
    _Atomic uint32_t n_said;
    _Atomic bool is_over;
} flood;

/* Sends 28,200 subscriptions, and connects again whenever the publisher hangs up. */
static void *flood_publisher(void *argument)
{
    char rest[4096];
    flood *f = argument;
    int handle = -1;

    for (int tries = 0; atomic_load(&f->n_said) < 28200 && tries < 50; tries++) {
        handle = shake_hands();
        while (handle >= 0 && atomic_load(&f->n_said) < 28200 &&
               say_subscription(handle, atomic_load(&f->n_said), f->size))
            atomic_fetch_add(&f->n_said, 1);
        if (handle >= 0) {
            (void)recv(handle, rest, sizeof rest, MSG_WAITALL); /* till the publisher hangs up */
            close(handle);
        }
        usleep(2000);
    }
    atomic_store(&f->is_over, true);
    return NULL;
}

#ifdef __SANITIZE_ADDRESS__
size_t __sanitizer_get_current_allocated_bytes(void); /* gcc has no header for it */
#endif

/* The memory of the program in MiB. */
static double used_mib(void)
{
#ifdef __SANITIZE_ADDRESS__
    /* The resident memory would include the sanitizer's own, and memory that is already free. */
    return (double)__sanitizer_get_current_allocated_bytes() / 0x1p20;
#else
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long all = 0, resident = 0;

    assert_int_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 0x1p20;
#endif
}

/* Another subscriber gets every result while a peer floods the publisher with subscriptions. */
static void withstand(size_t size)
{
    flood f = {.size = size};
    uint64_t n = 0;
    pthread_t thread;
    double before, after;

    subscribe();
    for (; n < 100; n++)
        publish(n);
    before = used_mib();
    assert_int_equal(pthread_create(&thread, NULL, flood_publisher, &f), 0);
    /* A fast peer has left its bytes to the kernel before the first one is read. */
    while (!atomic_load(&f.is_over) ||
           pnr_event_count(&events, PNR_EVENT_SUBSCRIBER_REFUSED) == 0) {
        assert_true(n < PATIENCE_MS);
        publish(n++);
        (void)pnr_publisher_subscribers(publisher);
        usleep(1000);
    }
    pthread_join(thread, NULL);
    after = used_mib();

    print_message("# subscriptions of %zu bytes: %u of 28200 sent, %.1f MiB more, %llu refused\n",
                  size, atomic_load(&f.n_said), after - before,
                  (unsigned long long)pnr_event_count(&events, PNR_EVENT_SUBSCRIBER_REFUSED));
    assert_true(after - before < 32);
    for (uint64_t i = 0; i < n; i++)
        expect_result(i);
    leave();
}

TEST_BETWEEN(flood_of_1000_bytes, set_up, tear_down)
{
    withstand(1000);
}

TEST_BETWEEN(flood_of_255_bytes, set_up, tear_down)
{
    withstand(255);
}

TEST_BETWEEN(flood_of_40_bytes, set_up, tear_down)
{
    withstand(40);
}

/* --- single messages --- */

/* A peer leaves messages and a PING in the buffer of libzmq, and resets the connection before the
 * publisher takes the first one. libzmq 4.3 ended the program when its queue of messages had a
 * limit. */
TEST_BETWEEN(ping_of_a_peer_that_has_left, set_up, tear_down)
{
    enum { MESSAGES = 16, FRAME = 13 };
    static const char ping[] = "\x04\x07\x04PING\0";
    static const struct linger reset = {.l_onoff = 1};
    char bytes[MESSAGES * FRAME + sizeof ping];
    const int handle = join_publisher();

    for (size_t i = 0; i < MESSAGES; i++)
        memcpy(bytes + i * FRAME, i % 2 == 0 ? "\0\x0b\1range/demo" : "\0\x0b\0range/demo", FRAME);
    memcpy(bytes + sizeof bytes - sizeof ping, ping, sizeof ping);
    assert_true(say(handle, bytes, sizeof bytes));
    usleep(100000); /* libzmq reads */
    setsockopt(handle, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(handle);
    usleep(100000); /* libzmq sees the end */
    for (int i = 0; i < 10; i++) {
        (void)pnr_publisher_subscribers(publisher);
        usleep(10000);
    }
    assert_int_equal(pnr_publisher_subscribers(publisher), 0);
    subscribe();
    publish(1);
    expect_result(1);
    leave();
}

static void expect_refusal(const char *words)
{
    pnr_event event;

    for (int i = 0; !pnr_event_take(&events, &event); i++) {
        assert_true(i < PATIENCE_MS);
        (void)pnr_publisher_subscribers(publisher);
        usleep(1000);
    }
    assert_int_equal(event.kind, PNR_EVENT_SUBSCRIBER_REFUSED);
    if (strstr(event.text, words) == NULL || strstr(event.text, "127.0.0.1") == NULL)
        fail_msg("%s", event.text);
}

/* As many subscriptions as are allowed, then one more. */
TEST_BETWEEN(too_many_subscriptions, set_up, tear_down)
{
    const int handle = join_publisher();
    pnr_event event;

    for (uint32_t i = 0; i < 64; i++)
        assert_true(say_subscription(handle, i, 6));
    assert_true(say(handle, "\0\x0b\x01range/demo", 13));
    expect_refusal("64 subscriptions");
    await_hangup(handle);
    close(handle);
    assert_false(pnr_event_take(&events, &event));
    for (int i = 0; pnr_publisher_subscribers(publisher) > 0; i++) { /* they are forgotten */
        assert_true(i < PATIENCE_MS);
        usleep(1000);
    }
}

/* A subscriber that comes and goes with its topics stays. */
TEST_BETWEEN(changing_subscriptions, set_up, tear_down)
{
    const int handle = join_publisher();
    pnr_event event;

    for (int i = 0; i < 300; i++) {
        assert_true(say(handle, "\0\x0b\x01range/demo", 13));
        assert_true(say(handle, "\0\x0b\x00range/demo", 13));
    }
    assert_true(say(handle, "\0\x0b\x01range/demo", 13));
    for (int i = 0; pnr_publisher_subscribers(publisher) != 1; i++) {
        assert_true(i < PATIENCE_MS);
        usleep(1000);
    }
    assert_false(pnr_event_take(&events, &event));
    close(handle);
}

TEST_BETWEEN(no_subscription, set_up, tear_down)
{
    static const char *const junk[] = {"\0\x04\x07"
                                       "abc",
                                       "\0\x01\xff", "\0\0"};
    const size_t before = open_files();

    for (size_t i = 0; i < COUNT(junk); i++) {
        const int handle = join_publisher();

        assert_true(say(handle, junk[i], 2 + (size_t)junk[i][1]));
        expect_refusal("no subscription");
        await_hangup(handle);
        close(handle);
        await_files(before); /* libzmq closes its descriptor after the hang-up */
    }
}

/* The last messages of a peer that has left may be taken for those of the next peers, whose
 * descriptors have the same number; for those of two or three, not of one peer a message. */
TEST_BETWEEN(messages_of_a_peer_that_has_left, set_up, tear_down)
{
    enum { MESSAGES = 40, TRIES = 8, RESULT = 100 };
    const size_t before = open_files();
    const int hostile = join_publisher();
    char bytes[4096];
    int tries = 0, handle;

    for (int i = 0; i < MESSAGES; i++)
        (void)say(hostile, "\0\x04\x07xyz", 6);
    expect_refusal("no subscription");
    for (int i = 0; i < 50; i++) {
        (void)pnr_publisher_subscribers(publisher);
        usleep(1000);
    }
    await_hangup(hostile);
    close(hostile);
    await_files(before); /* the next peers have the same descriptors */
    for (size_t n_heard = 0; n_heard < RESULT; tries++) {
        ssize_t n = 1;

        assert_true(tries < TRIES);
        n_heard = 0;
        handle = shake_hands();
        if (handle < 0 || !say(handle, "\0\x0b\x01range/demo", 13))
            n = 0;
        while (n_heard < RESULT && (n > 0 || (n < 0 && errno == EAGAIN))) {
            (void)pnr_publisher_subscribers(publisher);
            publish(1);
            n = recv(handle, bytes, sizeof bytes, MSG_DONTWAIT);
            n_heard += n > 0 ? (size_t)n : 0;
        }
        if (handle >= 0)
            close(handle);
        await_files(before);
    }
    print_message("# %d peers until one was served\n", tries);
}

/* Opens files until no number below the next one is free. */
static size_t fill_numbers(int fill[64])
{
    size_t n = 0;

    do
        fill[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fill[n++] < (int)open_files() && n < 64);
    return n;
}

/* Connects a peer that libzmq refuses. */
static int join_refused(void)
{
    const size_t before = open_files();
    const int handle = shake_hands();

    await_files(before + 2);
    (void)say_subscription(handle, 0, 1000);
    await_files(before + 1);
    return handle;
}

/* Releases the guard, and gives it time for all events of libzmq. */
static void release_guard(void)
{
    pnr_event event;

    atomic_store(&is_held, false);
    for (int i = 0; i < 300; i++) {
        (void)pnr_publisher_subscribers(publisher);
        usleep(1000);
    }
    assert_false(pnr_event_take(&events, &event));
}

/* The guard hears of a peer that libzmq has refused only after the descriptor of this peer has
 * become the guard's own one of a good subscriber. This subscriber stays. */
TEST_BETWEEN(descriptor_of_the_guard, set_up, tear_down)
{
    int fill[64], hostile;
    size_t n;

    atomic_store(&is_held, true);
    subscribe();
    n = fill_numbers(fill);
    hostile = join_refused();
    release_guard();
    publish(7);
    expect_result(7);
    close(hostile);
    while (n > 0)
        close(fill[--n]);
    leave();
}

/* The same after it has become that of another subscriber. */
TEST_BETWEEN(descriptor_of_the_next_peer, set_up, tear_down)
{
    char bytes[256];
    int fill[64], handle;
    size_t n = fill_numbers(fill);

    atomic_store(&is_held, true);
    close(join_refused());
    handle = shake_hands();
    assert_true(handle >= 0 && say(handle, "\0\x0b\x01range/demo", 13));
    release_guard();
    publish(7);
    assert_true(recv(handle, bytes, sizeof bytes, 0) > 0);
    close(handle);
    while (n > 0)
        close(fill[--n]);
}

/* libzmq has read all bytes of a flood before the guard hears of the peer, which sends no more. */
TEST_BETWEEN(flood_before_the_guard, set_up, tear_down)
{
    int handle;

    atomic_store(&is_held, true);
    handle = shake_hands();
    assert_true(handle >= 0);
    for (uint32_t i = 0; i < 200; i++) {
        assert_true(say_subscription(handle, i, 255));
        for (int tries = 0; tries < 5; tries++)
            (void)pnr_publisher_subscribers(publisher);
    }
    for (int i = 0; i < 300; i++) {
        (void)pnr_publisher_subscribers(publisher);
        usleep(1000);
    }
    atomic_store(&is_held, false);
    expect_refusal("more than a subscriber needs");
    await_hangup(handle);
    close(handle);
}

/* A message of 400 bytes is below libzmq's limit and above ours. */
TEST_BETWEEN(long_subscription, set_up, tear_down)
{
    const int handle = join_publisher();

    assert_true(say_subscription(handle, 1, 400));
    expect_refusal("at most 255 bytes");
    await_hangup(handle);
    close(handle);
}

/* --- connections --- */

/* Peers that never finish their handshake make room for one that does. */
TEST_BETWEEN(half_open_connections, set_up, tear_down)
{
    enum { PEERS = 500 };
    static int handles[PEERS];

    for (size_t i = 0; i < PEERS; i++)
        handles[i] = dial();
    subscribe();
    publish(5);
    expect_result(5);
    for (int i = 0; pnr_event_count(&events, PNR_EVENT_SUBSCRIBER_REFUSED) < PEERS - MOST; i++) {
        assert_true(i < PATIENCE_MS);
        usleep(1000);
    }
    for (size_t i = 0; i < PEERS; i++)
        close(handles[i]);
    leave();
}

/* Each one is a subscriber; one more is refused, and gets in when another has left. */
TEST_BETWEEN(too_many_connections, set_up, tear_down)
{
    const size_t before = open_files();
    int handles[MOST], more;

    for (size_t i = 0; i < MOST; i++) {
        handles[i] = join_publisher();
        assert_true(say(handles[i], "\0\x0b\x01range/demo", 13));
    }
    for (int i = 0; pnr_publisher_subscribers(publisher) != MOST; i++) {
        assert_true(i < PATIENCE_MS);
        usleep(1000);
    }
    more = dial();
    expect_refusal("max_subscribers = 8");
    if (more >= 0)
        await_hangup(more);
    close(more);
    for (size_t i = 0; i < MOST; i++)
        close(handles[i]);
    subscribe();
    leave();
    await_files(before);
}
