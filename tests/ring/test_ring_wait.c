/* SPDX-License-Identifier: MIT */
/* How the sides of the ring wait, the fill, and the events of losses. */
#include "base/clock.h"
#include "tests/fixture/ring_fixture.h"
#include "tests/fixture/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { CHUNKS = 100 };

static void *slow_writer(void *argument)
{
    ring_bench *b = argument;

    for (size_t i = 0; i < CHUNKS; i++) {
        assert_int_equal(write_ring(b, 10 * i, 10), 10);
        (void)pnr_clock_sleep_until(pnr_clock_ns() + 200000, NULL);
    }
    return NULL;
}

/* How often this thread slept until the reader had work, and what it found then. */
static long sleeps_until_work(size_t at_least, uint64_t *n_there)
{
    struct rusage before, after;
    pthread_t thread;
    ring_bench b;

    open_ring(&b, 10 * CHUNKS, 1, 1, 20 * CHUNKS, 0, 1, 10 * CHUNKS);
    assert_int_equal(pthread_create(&thread, NULL, slow_writer, &b), 0);
    getrusage(RUSAGE_THREAD, &before);
    assert_int_equal(pnr_ring_wait(b.ring, at_least, NULL, UINT64_C(60000000000)), PNR_OK);
    getrusage(RUSAGE_THREAD, &after);
    *n_there = pnr_ring_positions(b.ring);
    pthread_join(thread, NULL);
    close_ring(&b);
    return after.ru_nvcsw - before.ru_nvcsw;
}

/* The reader is not woken for a chunk that it does not wait for. */
TEST(test_wakes_are_few)
{
    uint64_t n_there;

    assert_in_range(sleeps_until_work(0, &n_there), 0, CHUNKS / 4);
    assert_int_equal(n_there, 10 * CHUNKS);
    assert_in_range(sleeps_until_work(250, &n_there), 0, CHUNKS / 4);
    assert_in_range(n_there, 250, 10 * CHUNKS);
}

TEST(test_patience)
{
    const uint64_t began = pnr_clock_ns();
    ring_bench b;

    open_ring(&b, 10, 1, 1, 20, 0, 1, 1);
    assert_int_equal(pnr_ring_wait(b.ring, 0, NULL, 20 * 1000 * 1000), PNR_EAGAIN);
    assert_true(pnr_clock_ns() - began >= 20 * 1000 * 1000);
    assert_int_equal(pnr_ring_wait_space(b.ring, 1), PNR_OK);
    close_ring(&b);
}

typedef struct other_side {
    ring_bench *b;
    pnr_bell *bell;
    pnr_queue *queue;
    _Atomic int n_found; /* turns that the reader has finished */
} other_side;

/* Gives the reader a record and samples by turns, each when it waits for the next one. */
static void *give_by_turns(void *argument)
{
    other_side *o = argument;

    for (int turn = 0; turn < CHUNKS; turn++) {
        while (o->n_found < turn || o->bell->is_set == 0)
            (void)pnr_clock_sleep_until(pnr_clock_ns() + 100000, NULL);
        if (turn % 2 == 0) {
            assert_non_null(pnr_queue_reserve(o->queue, 1));
            pnr_queue_commit(o->queue, 1);
            pnr_bell_ring(o->bell);
        } else {
            assert_int_equal(write_ring(o->b, (uint64_t)turn / 2 * 10, 10), 10);
        }
    }
    return NULL;
}

/* The reader waits for samples and for records at once, on a bell of its own. */
TEST(test_waits_for_both)
{
    ring_bench b;
    pnr_bell bell = {0};
    pthread_t thread;
    pnr_windows v;
    other_side o = {&b, &bell, pnr_queue_create(1000, 8), 0};

    assert_non_null(o.queue);
    open_ring(&b, 10, 1, 1, 10 * CHUNKS, 0, 1, 10 * CHUNKS);
    pnr_ring_destroy(b.ring);
    b.shape.reader = &bell;
    assert_int_equal(pnr_ring_create(&b.shape, &b.ring, NULL), PNR_OK);
    assert_int_equal(pthread_create(&thread, NULL, give_by_turns, &o), 0);
    for (int turn = 0; turn < CHUNKS; turn++) {
        while (pnr_ring_wait(b.ring, 0, o.queue, UINT64_C(60000000000)) != PNR_OK)
            ;
        if (turn % 2 == 0) {
            assert_non_null(pnr_queue_front(o.queue));
            assert_int_equal(pnr_ring_acquire(b.ring, 1, &v), PNR_EAGAIN);
            pnr_queue_pop(o.queue);
        } else {
            assert_null(pnr_queue_front(o.queue));
            assert_int_equal(pnr_ring_acquire(b.ring, 1, &v), PNR_OK);
            check_ring_view(&b, &v);
            release_ring_view(&b);
        }
        o.n_found++;
    }
    pthread_join(thread, NULL);
    free(o.queue);
    close_ring(&b);
}

/* The fill is the greatest one since the last call, and at most 1. */
TEST(test_fill)
{
    pnr_windows view;
    ring_bench b;

    open_ring(&b, 10, 1, 1, 40, 0, 1, 1);
    assert_true(pnr_ring_fill(b.ring) == 0);
    pnr_ring_commit(b.ring, 15);
    pnr_ring_commit(b.ring, 15);
    assert_int_equal(pnr_ring_acquire(b.ring, 1, &view), PNR_OK);
    assert_true(pnr_ring_fill(b.ring) == 0.75);
    pnr_ring_release(b.ring);
    assert_true(pnr_ring_fill(b.ring) == 0.5);
    pnr_ring_commit(b.ring, 12);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pnr_ring_acquire(b.ring, 1, &view), PNR_OK);
        pnr_ring_release(b.ring);
    }
    assert_true(pnr_ring_fill(b.ring) == 0.8); /* 32 samples, two dwells ago */
    assert_true(pnr_ring_fill(b.ring) == 0.3);
    pnr_ring_skip(b.ring, 1000, PNR_LOST_RING_FULL);
    assert_true(pnr_ring_fill(b.ring) == 1);
    close_ring(&b);
}

/* --- events --- */

static void expect_event(pnr_events *events, pnr_event_kind kind, uint64_t sample, double source,
                         double ring_full)
{
    pnr_event event;

    assert_true(pnr_event_take(events, &event));
    assert_int_equal(event.kind, kind);
    assert_true(event.sample == sample);
    assert_true(event.numbers[0] == source && event.numbers[1] == ring_full);
}

/* A loss has one begin and one end, however many parts it has; the stream's end ends it too. */
TEST(losses_begin_and_end)
{
    pnr_events events;
    pnr_event event;
    ring_bench b;

    pnr_events_begin(&events);
    open_linear_ring(&b, 10, 1, 2, 100, 0, 1, 200, 0);
    pnr_ring_destroy(b.ring);
    b.shape.events = &events;
    assert_int_equal(pnr_ring_create(&b.shape, &b.ring, NULL), PNR_OK);
    pnr_ring_commit(b.ring, 7);
    pnr_ring_commit(b.ring, 3);
    assert_false(pnr_event_take(&events, &event));
    pnr_ring_skip(b.ring, 5, PNR_LOST_SOURCE);
    pnr_ring_skip(b.ring, 20, PNR_LOST_RING_FULL);
    pnr_ring_skip(b.ring, 1, PNR_LOST_SOURCE);
    expect_event(&events, PNR_EVENT_LOSS_BEGINS, 10, 5, 0);
    assert_false(pnr_event_take(&events, &event));
    pnr_ring_commit(b.ring, 4);
    expect_event(&events, PNR_EVENT_LOSS_ENDS, 36, 6, 20);
    pnr_ring_commit(b.ring, 4);
    pnr_ring_skip(b.ring, 2, PNR_LOST_RING_FULL);
    expect_event(&events, PNR_EVENT_LOSS_BEGINS, 44, 0, 2);
    pnr_ring_end(b.ring);
    expect_event(&events, PNR_EVENT_LOSS_ENDS, 46, 0, 2);
    assert_false(pnr_event_take(&events, &event));
    pnr_ring_destroy(b.ring);
    free(b.memory);
    free(b.m.kind);
}
