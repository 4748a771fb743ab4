/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes that a peer sends to the publisher: frames after a handshake, or all from
 * the first byte on. Afterwards a good subscriber gets an event. */
#include "publisher/publisher.h"
#include "require.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_MS = 8000, MOST_FRAME = 512 };

static pnr_config config;
static pnr_events events;
static pnr_publisher *publisher;

static void open_publisher(void)
{
    pnr_error error;

    pnr_config_init(&config);
    strcpy(config.stream.name, "demo");
    snprintf(config.publisher.endpoint, sizeof config.publisher.endpoint, "ipc://@pnradar-fuzz-%d",
             (int)getpid());
    config.publisher.max_subscribers = 4;
    pnr_events_begin(&events);
    require(pnr_publisher_create(&config, &events, &publisher, &error) == PNR_OK);
}

static int dial(void)
{
    const char *name = pnr_publisher_endpoint(publisher) + strlen("ipc://@");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(address.sun_path + 1, name);
    require(connect(fd, (const struct sockaddr *)&address,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) == 0);
    return fd;
}

/* False: the publisher has hung up. */
static bool say(int fd, const void *bytes, size_t n)
{
    return send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* libzmq takes no message before it has sent its own half of the handshake. */
static bool shake_hands(int fd)
{
    enum { HALF = 64 + 28 };
    unsigned char theirs[HALF];
    static const unsigned char greeting[64] = {0xff, [8] = 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    static const unsigned char ready[] = "\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB";

    return say(fd, greeting, sizeof greeting) && say(fd, ready, sizeof ready - 1) &&
           recv(fd, theirs, HALF, MSG_WAITALL) == HALF;
}

/* Sends the frames of the input: a byte of flags, a length, and so many bytes. */
static bool say_frames(int fd, fuzz_input *input)
{
    enum { MORE = 1, COMMAND = 4, REPEATS = 8 };
    unsigned char frame[2 + MOST_FRAME];
    const uint8_t *body;

    while (input->n > 0) {
        const unsigned flags = take_byte(input);
        const size_t n = take_bytes(input, take_byte(input), &body);
        int times = flags & REPEATS ? 1 + (int)(flags >> 4) : 1;

        frame[0] = flags & (MORE | COMMAND);
        frame[1] = (unsigned char)n;
        memcpy(frame + 2, body, n);
        while (times-- > 0)
            if (!say(fd, frame, 2 + n))
                return false;
    }
    return true;
}

/* Says no more, and waits until the publisher has read all, or has hung up. It reads on only while
 * its thread takes the messages. */
static void await_end(int fd)
{
    char bytes[256];
    ssize_t n;

    shutdown(fd, SHUT_WR);
    for (int i = 0;
         (n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0 || (n < 0 && errno == EAGAIN); i++) {
        struct pollfd wanted = {.fd = fd, .events = POLLIN};

        require(i < PATIENCE_MS);
        (void)pnr_publisher_subscribers(publisher);
        (void)poll(&wanted, 1, i < 20 ? 0 : 1);
    }
    close(fd);
}

/* Subscribes to events. False: the publisher hangs up, which it may if it takes the last message of
 * a peer that has left for one of the next peer. Then a subscriber connects again, as libzmq
 * does. */
static bool hear_event(void)
{
    static const pnr_event event = {.kind = PNR_EVENT_SUBSCRIBER_REFUSED, .text = "fuzz"};
    const int fd = dial();
    bool is_heard = false;

    if (shake_hands(fd) && say(fd, "\0\x0b\1event/demo", 13))
        for (int i = 0; !is_heard; i++) {
            struct pollfd wanted = {.fd = fd, .events = POLLIN};
            char topic[12];

            require(i < PATIENCE_MS);
            (void)pnr_publisher_subscribers(publisher);
            (void)pnr_publisher_send_event(publisher, &event);
            if (poll(&wanted, 1, i < 20 ? 0 : 1) == 0)
                continue;
            if (recv(fd, topic, sizeof topic, MSG_WAITALL) < (ssize_t)sizeof topic)
                break;
            require(memcmp(topic,
                           "\1\x0a"
                           "event/demo",
                           sizeof topic) == 0);
            is_heard = true;
        }
    close(fd);
    return is_heard;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    enum { TRIES = 20 };
    fuzz_input input = {data, n_bytes};
    int fd, tries = 0;

    if (n_bytes == 0)
        return 0;
    if (publisher == NULL)
        open_publisher();
    fd = dial();
    if (take_byte(&input) % 4 == 0)
        (void)say(fd, input.at, input.n);
    else if (shake_hands(fd))
        (void)say_frames(fd, &input);
    await_end(fd);
    while (!hear_event())
        require(++tries < TRIES);
    return 0;
}
