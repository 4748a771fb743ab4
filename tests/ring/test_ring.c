/* SPDX-License-Identifier: MIT */
/* The ring against a model: which dwells it gives, their contents, the losses, and an account that
 * closes. */
#include "tests/fixture/random.h"
#include "tests/fixture/ring_fixture.h"
#include "tests/fixture/test.h"

#include <pthread.h>

/* One thread plays both sides in random order: every interleaving of calls. */
TEST(test_interleaved)
{
    for (int round = 0; round < 400; round++) {
        const size_t n = 1 + below(40), periods = 1 + below(4), max_dwells = 1 + below(4);
        const size_t dwell = n * periods, depth = 1 + below(4);
        const size_t n_behind = below(2) == 0 ? below(3 * n) : 0;
        const size_t capacity = dwell * (max_dwells + 1) + n_behind + below(4 * dwell);
        uint64_t at = 0;
        bool ended = false;
        pnr_account account;
        ring_bench b;

        open_linear_ring(&b, n, periods, max_dwells, capacity, below(3 * dwell), depth,
                         below(60 * dwell), n_behind);
        lose_at_random(&b);
        while (true) {
            pnr_windows v;

            if (at < b.m.length && below(2) == 0) {
                at += write_ring(&b, at, 1 + below(dwell));
            } else if (at == b.m.length && !ended) {
                pnr_ring_end(b.ring);
                ended = true;
            } else if (b.n_held > 0 && below(2) == 0) {
                release_ring_view(&b);
            } else if (below(3) == 0) {
                check_ring_peek(&b, below(dwell + n_behind));
            } else {
                const int code = pnr_ring_acquire(b.ring, 1 + below(max_dwells), &v);

                if (code == PNR_EEND)
                    break;
                if (code == PNR_OK) {
                    check_ring_view(&b, &v);
                } else {
                    assert_int_equal(code, PNR_EAGAIN);
                }
            }
            check_ring_account(&b, &account);
        }
        check_ring_end(&b);
        close_ring(&b);
    }
}

static void *writer(void *argument)
{
    ring_bench *b = argument;
    uint64_t at = 0, random = 12345;

    while (at < b->m.length) {
        random = random * UINT64_C(6364136223846793005) + 1;

        const uint64_t n = write_ring(b, at, 1 + (random >> 33) % 300);

        if (n == 0)
            (void)pnr_ring_wait_space(b->ring, 50 * 1000 * 1000);
        at += n;
    }
    pnr_ring_end(b->ring);
    return NULL;
}

TEST(test_threads)
{
    for (int round = 0; round < 6; round++) {
        ring_bench b;
        pthread_t thread;
        pnr_windows v;
        int code;

        open_linear_ring(&b, 64, 2, 3, 128 * 5, 77, 2, 200000, round < 3 ? 0 : 100);
        lose_at_random(&b);
        assert_int_equal(pthread_create(&thread, NULL, writer, &b), 0);
        while ((code = pnr_ring_acquire(b.ring, 3, &v)) != PNR_EEND) {
            if (code == PNR_OK) {
                check_ring_view(&b, &v);
                if (b.n_held == 2)
                    release_ring_view(&b);
            } else if (b.n_held > 0) {
                release_ring_view(&b);
            } else if (round % 2 == 0) {
                (void)pnr_ring_wait(b.ring, 0, NULL, 50 * 1000 * 1000);
            } else {
                check_ring_peek(&b, 20);
                (void)pnr_ring_wait(b.ring, 20, NULL, 50 * 1000 * 1000);
            }
        }
        pthread_join(thread, NULL);
        check_ring_end(&b);
        close_ring(&b);
    }
}

/* More lost runs in one dwell than the ring has marks for. */
TEST(test_many_runs)
{
    const uint64_t length = 200000;
    uint64_t at = 0;
    ring_bench b;
    pnr_windows v;

    open_ring(&b, 100000, 1, 1, 200000, 0, 1, length);
    for (uint64_t i = 0; i < length; i += 3)
        b.m.kind[i] = 1;
    while (at < length) {
        const uint64_t n = write_ring(&b, at, 1);

        if (n == 0 || at % 5000 == 0) {
            if (pnr_ring_acquire(b.ring, 1, &v) == PNR_OK) {
                check_ring_view(&b, &v);
                release_ring_view(&b);
            }
        }
        at += n;
    }
    pnr_ring_end(b.ring);
    while (pnr_ring_acquire(b.ring, 1, &v) != PNR_EEND) {
        check_ring_view(&b, &v);
        release_ring_view(&b);
    }
    assert_int_equal(b.n_views, 2);
    check_ring_end(&b);
    close_ring(&b);
}

/* A source that was disconnected for weeks. */
static void be_away(size_t n_behind)
{
    const uint64_t away = UINT64_C(1) << 50;
    ring_bench b;
    pnr_windows v;
    pnr_account account = {0};
    void *data;
    size_t room;

    open_linear_ring(&b, 100, 2, 2, 1000, 0, 2, 1, n_behind);
    assert_int_equal(pnr_ring_reserve(b.ring, 250, &data, &room), PNR_OK);
    assert_int_equal(room, 250);
    pnr_ring_commit(b.ring, 250);
    pnr_ring_skip(b.ring, away, PNR_LOST_RING_FULL);
    assert_int_equal(pnr_ring_acquire(b.ring, 2, &v), PNR_OK);
    assert_int_equal(v.n_dwells, 2); /* the second has half a window, so it is used */
    assert_int_equal(v.lost[2], 50);
    assert_int_equal(v.lost[3], 100);
    assert_int_equal(pnr_ring_acquire(b.ring, 2, &v), PNR_EAGAIN);
    pnr_ring_release(b.ring);
    assert_int_equal(pnr_ring_acquire(b.ring, 2, &v), PNR_EAGAIN);
    while (pnr_ring_reserve(b.ring, 1000, &data, &room) == PNR_OK)
        pnr_ring_commit(b.ring, room);
    pnr_ring_end(b.ring);
    assert_int_equal(pnr_ring_acquire(b.ring, 2, &v), PNR_OK);
    assert_int_equal(v.first_sample % 200, 0);
    assert_true(v.first_sample >= away);
    pnr_ring_release(b.ring);
    while (pnr_ring_acquire(b.ring, 2, &v) == PNR_OK)
        pnr_ring_release(b.ring);
    pnr_ring_account(b.ring, &account);
    assert_int_equal(account.lost_ring_full, away);
    close_ring(&b);
}

TEST(test_long_loss)
{
    be_away(0);
    be_away(150);
}

TEST(test_too_small)
{
    uint32_t memory[100];
    const pnr_ring_shape shape = {.memory = memory,
                                  .capacity = 100,
                                  .sample_bytes = 4,
                                  .n_samples = 60,
                                  .n_periods = 1,
                                  .max_dwells = 1,
                                  .depth = 2};
    pnr_ring *ring;
    pnr_error error = {0};

    assert_int_equal(pnr_ring_create(&shape, &ring, &error), PNR_ECONFIG);
    assert_null(ring);
    assert_non_null(strstr(error.text, "100 samples"));
    pnr_ring_destroy(NULL);
}

/* The part is zeroed, shown while it grows, and not changed by later samples; if its dwell is
 * refused, it is not the next view. */
TEST(test_peek)
{
    ring_bench b;
    pnr_windows v;

    open_ring(&b, 100, 1, 2, 300, 7, 2, 1000);
    memset(b.m.kind + 37, 1, 5);
    memset(b.m.kind + 107 + 20, 1, 100);
    assert_int_equal(pnr_ring_peek(b.ring, 0, &v), PNR_EAGAIN);
    assert_int_equal(write_ring(&b, 0, 7), 7);
    assert_int_equal(pnr_ring_peek(b.ring, 0, &v), PNR_EAGAIN); /* alignment is no view */
    assert_int_equal(write_ring(&b, 7, 30), 30);
    assert_int_equal(pnr_ring_peek(b.ring, 31, &v), PNR_EAGAIN);
    check_ring_peek(&b, 30);
    assert_int_equal(b.n_shown, 30);
    assert_int_equal(pnr_ring_peek(b.ring, 1, &v), PNR_EAGAIN); /* nothing new */
    assert_int_equal(write_ring(&b, 37, 5), 5);
    assert_int_equal(write_ring(&b, 42, 65), 65);
    assert_int_equal(write_ring(&b, 107, 20), 20);
    check_ring_peek(&b, 1);
    assert_int_equal(b.n_shown, 100); /* whole, and no more than it */
    assert_int_equal(pnr_ring_acquire(b.ring, 2, &v), PNR_OK);
    check_ring_view(&b, &v);
    check_ring_peek(&b, 1);
    assert_int_equal(b.shown, 107);
    assert_int_equal(write_ring(&b, 127, 100), 100); /* more than half of it is lost */
    assert_int_equal(write_ring(&b, 227, 10), 10);
    check_ring_peek(&b, 1);
    assert_int_equal(b.shown, 207);
    assert_int_equal(b.n_shown, 30);
    release_ring_view(&b);
    pnr_ring_end(b.ring);
    assert_int_equal(pnr_ring_peek(b.ring, 1, &v), PNR_EEND);
    b.m.length = 237;
    check_ring_end(&b);
    close_ring(&b);
}

/* Windows of 10 + 6 samples: a loss in the 6 samples after a dwell is shown with it, and counted
 * with the next. The last dwell, without all of its 6 samples, is the tail. */
TEST(test_behind)
{
    ring_bench b;
    pnr_windows v;
    pnr_account account;

    open_linear_ring(&b, 10, 2, 4, 200, 0, 2, 66, 6);
    memset(b.m.kind + 22, 1, 3);
    memset(b.m.kind + 44, 2, 16); /* lost across the end of a dwell */
    for (uint64_t at = 0; at < 25;)
        at += write_ring(&b, at, 1);
    assert_int_equal(pnr_ring_acquire(b.ring, 4, &v), PNR_EAGAIN); /* 26 are needed */
    check_ring_peek(&b, 25);
    for (uint64_t at = 25; at < 66;)
        at += write_ring(&b, at, 1);
    assert_int_equal(pnr_ring_acquire(b.ring, 1, &v), PNR_OK);
    assert_int_equal(v.n_dwells, 1);
    assert_int_equal(v.n_lost_runs, 1);
    assert_int_equal(v.lost_runs[0].first, 22);
    assert_int_equal(v.lost_runs[0].count, 3);
    assert_int_equal(v.lost[0] + v.lost[1], 0);
    check_ring_view(&b, &v);
    assert_int_equal(pnr_ring_acquire(b.ring, 4, &v), PNR_OK);
    assert_int_equal(v.n_dwells, 1); /* the third has no window of use */
    assert_int_equal(v.lost[0], 3);
    assert_int_equal(v.n_lost_runs, 2);
    assert_int_equal(v.lost_runs[1].first, 24);
    assert_int_equal(v.lost_runs[1].count, 2);
    check_ring_view(&b, &v);
    release_ring_view(&b);
    release_ring_view(&b);
    close_ring(&b);

    /* 26 + 20 + 19: two dwells and a tail. */
    open_linear_ring(&b, 10, 2, 4, 200, 0, 2, 65, 6);
    for (uint64_t at = 0; at < 65;)
        at += write_ring(&b, at, 65);
    pnr_ring_end(b.ring);
    assert_int_equal(pnr_ring_acquire(b.ring, 4, &v), PNR_OK);
    assert_int_equal(v.n_dwells, 2);
    check_ring_view(&b, &v);
    assert_int_equal(pnr_ring_acquire(b.ring, 4, &v), PNR_EEND);
    release_ring_view(&b);
    check_ring_account(&b, &account);
    assert_int_equal(account.skipped_tail, 25);
    check_ring_end(&b);
    close_ring(&b);
}
