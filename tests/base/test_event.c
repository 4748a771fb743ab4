/* SPDX-License-Identifier: MIT */
/* Tests of event.c: each event is counted, few are queued, and no thread loses an event of another
 * thread. */
#include "base/clock.h"
#include "base/event.h"
#include "tests/fixture/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static pnr_events events;

static void post(pnr_event_kind kind, uint64_t sample)
{
    pnr_event_post(&events, kind, sample, 1.5, -2, "sample %llu", (unsigned long long)sample);
}

TEST(test_one)
{
    const int64_t begin_ns = pnr_clock_utc_ns();
    pnr_event event;

    pnr_events_begin(&events);
    assert_false(pnr_event_take(&events, &event));
    post(PNR_EVENT_SLIP, 41943);
    assert_true(pnr_event_take(&events, &event));
    assert_int_equal(event.kind, PNR_EVENT_SLIP);
    assert_true(event.sample == 41943 && event.count == 1);
    assert_true(event.utc_ns >= begin_ns && event.utc_ns <= pnr_clock_utc_ns());
    assert_true(event.numbers[0] == 1.5 && event.numbers[1] == -2);
    assert_string_equal(event.text, "sample 41943");
    assert_false(pnr_event_take(&events, &event));
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_SLIP), 1);
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_CLIPPING), 0);
    pnr_event_post(NULL, PNR_EVENT_SLIP, 0, 0, 0, "nobody listens");
    assert_int_equal(pnr_event_count(NULL, PNR_EVENT_SLIP), 0);
}

/* When one kind of event floods the queue, all its events are counted, few are queued, and the
 * other kinds still have space. */
TEST(test_flood)
{
    const uint64_t begin_ns = pnr_clock_ns();
    pnr_event event;
    size_t n = 0;

    pnr_events_begin(&events);
    for (uint64_t i = 0; i < 10000; i++)
        post(PNR_EVENT_LOSS_BEGINS, i);

    const size_t most =
        PNR_EVENT_BURST + 1 + (size_t)((pnr_clock_ns() - begin_ns) / (uint64_t)PNR_NS_PER_S);

    post(PNR_EVENT_SLIP, 7);
    for (; pnr_event_take(&events, &event) && event.kind == PNR_EVENT_LOSS_BEGINS; n++)
        assert_true(n >= PNR_EVENT_BURST || (event.count == n + 1 && event.sample == n));
    assert_in_range(n, PNR_EVENT_BURST, most);
    assert_true(event.kind == PNR_EVENT_SLIP && event.sample == 7);
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_LOSS_BEGINS), 10000);
}

/* When no thread takes events, the queue keeps the oldest ones, and the counts go on. */
TEST(test_full)
{
    pnr_event event;
    size_t n = 0;

    pnr_events_begin(&events);
    for (size_t i = 0; i < 3 * PNR_EVENT_QUEUE; i++) {
        atomic_store(&events.due_ns[PNR_EVENT_SLIP], 0); /* removes the limit on the rate */
        post(PNR_EVENT_SLIP, i);
    }
    for (; pnr_event_take(&events, &event); n++)
        assert_true(event.sample == n && event.count == n + 1);
    assert_int_equal(n, PNR_EVENT_QUEUE);
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_SLIP), 3 * PNR_EVENT_QUEUE);
    atomic_store(&events.due_ns[PNR_EVENT_SLIP], 0);
    post(PNR_EVENT_SLIP, 5);
    assert_true(pnr_event_take(&events, &event) && event.count == 3 * PNR_EVENT_QUEUE + 1);
}

enum { THREADS = 4, EACH = 20000 };

static void *post_many(void *argument)
{
    const uint64_t thread = (uint64_t)(size_t)argument;

    for (uint64_t i = 0; i < EACH; i++) {
        atomic_store(&events.due_ns[PNR_EVENT_SLIP], 0);
        post(PNR_EVENT_SLIP, thread * EACH + i);
    }
    return NULL;
}

/* Events of several threads arrive whole, and the events of each thread arrive in order. */
TEST(test_threads)
{
    uint64_t next[THREADS] = {0}, n = 0;
    pthread_t threads[THREADS];
    pnr_event event;
    char text[32];

    pnr_events_begin(&events);
    for (size_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, post_many, (void *)t), 0);
    for (bool is_over = false; !is_over;) {
        is_over = pnr_event_count(&events, PNR_EVENT_SLIP) == THREADS * EACH;
        while (pnr_event_take(&events, &event)) {
            const uint64_t thread = event.sample / EACH, i = event.sample % EACH;

            snprintf(text, sizeof text, "sample %llu", (unsigned long long)event.sample);
            assert_string_equal(event.text, text);
            assert_true(i >= next[thread]);
            next[thread] = i + 1;
            n++;
        }
    }
    for (size_t t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    while (pnr_event_take(&events, &event))
        n++;
    assert_in_range(n, PNR_EVENT_QUEUE, THREADS * EACH);
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_SLIP), THREADS * EACH);
}

/* Takes and logs all events. Returns the lines of the log. */
static const char *logged(char text[1024])
{
    const int saved = dup(STDERR_FILENO);
    size_t length = 0;
    pnr_event event;
    ssize_t n;
    int pair[2];

    setenv("PNR_LOG", "info", 1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    dup2(pair[1], STDERR_FILENO);
    while (pnr_event_take(&events, &event))
        pnr_event_log(&events, &event);
    pnr_event_log_rest(&events);
    dup2(saved, STDERR_FILENO);
    while ((n = recv(pair[0], text + length, 1023 - length, MSG_DONTWAIT)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    close(pair[0]);
    close(pair[1]);
    close(saved);
    return text;
}

TEST(test_log)
{
    char text[1024];

    pnr_events_begin(&events);
    assert_string_equal(logged(text), "");
    pnr_event_post(&events, PNR_EVENT_SLIP, 1, 0, 0, "a \033[31mslip");
    assert_non_null(strstr(logged(text), ": warning: a ?[31mslip\n"));
    assert_string_equal(logged(text), "");
    for (uint64_t i = 0; i < 1000; i++)
        post(PNR_EVENT_LOSS_ENDS, i);
    assert_non_null(strstr(logged(text), "sample 0\n"));
    assert_null(strstr(text, "warning"));
    assert_non_null(strstr(text, " more events loss-ends, 1000 so far\n"));
}

/* When the pipe of standard error is full, the log line is written later. */
TEST(test_full_pipe)
{
    const int saved = dup(STDERR_FILENO);
    char byte = 0, text[1024];
    pnr_event event;
    int ends[2];

    setenv("PNR_LOG", "info", 1);
    pnr_events_begin(&events);
    post(PNR_EVENT_SLIP, 3);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    /* the size of a pipe depends on the pipes of other programs */
    while (write(ends[1], &byte, 1) == 1)
        ;
    dup2(ends[1], STDERR_FILENO);
    assert_true(pnr_event_take(&events, &event));
    pnr_event_log(&events, &event);
    pnr_event_log_rest(&events);
    dup2(saved, STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    close(saved);
    assert_non_null(strstr(logged(text), "1 more events slip, 1 so far\n"));
}
