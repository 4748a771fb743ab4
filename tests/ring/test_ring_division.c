/* SPDX-License-Identifier: MIT */
/* Other dwells begin while the stream goes on. */
#include "tests/fixture/random.h"
#include "tests/fixture/ring_fixture.h"
#include "tests/fixture/test.h"

/* Goes on with other dwells. Windows begin on the new grid after the last view and the dwells that
 * were refused after it: only the samples up to the first window are skipped. */
static void divide(ring_bench *b)
{
    const uint64_t from = b->next, dwell = b->shape.n_samples * b->shape.n_periods;
    pnr_ring_shape shape = b->shape;
    pnr_ring_division *division;
    pnr_error error = {0};
    bool is_right = b->n_views == 0 || b->divided_from != UINT64_MAX; /* no view was given since */

    shape.n_samples = 1 + below(40);
    shape.n_periods = 1 + below(4);
    shape.n_behind = below(2) == 0 ? below(2 * shape.n_samples) : 0;
    shape.max_dwells = 1 + below(4);
    shape.depth = 1 + below(4);
    shape.first_window = below(1000);
    if (pnr_ring_prepare(b->ring, &shape, &division, &error) != PNR_OK) {
        assert_int_equal(error.code, PNR_ECONFIG);
        return;
    }

    uint64_t skipped;
    const uint64_t first = pnr_ring_divide(b->ring, division, &skipped);
    const uint64_t n = shape.n_samples;

    pnr_ring_division_destroy(division);
    assert_true(skipped < n);
    assert_int_equal(first % n, shape.first_window % n);
    for (uint64_t end = from; !is_right && end < first + n; end += dwell)
        is_right = first >= end && first - end < n;
    assert_true(is_right);
    if (b->divided_from == UINT64_MAX)
        b->divided_from = b->n_views == 0 ? 0 : from;
    b->shape = shape;
    b->next = first;
    b->n_shown = 0;
}

/* As test_interleaved, but the division into dwells changes from time to time. */
TEST(other_dwells_begin)
{
    size_t n_divided = 0;

    for (int round = 0; round < 400; round++) {
        const size_t n = 1 + below(40), periods = 1 + below(4);
        uint64_t at = 0;
        bool ended = false;
        pnr_account account;
        ring_bench b;

        open_linear_ring(&b, n, periods, 1 + below(4), 840 + below(2000), below(200), 1 + below(4),
                         below(20000), below(2) == 0 ? below(n) : 0);
        lose_at_random(&b);
        while (true) {
            pnr_windows v;
            int code = PNR_EAGAIN;

            if (at < b.m.length && below(2) == 0) {
                at += write_ring(&b, at, 1 + below(500));
            } else if (at == b.m.length && !ended) {
                pnr_ring_end(b.ring);
                ended = true;
            } else if (b.n_held > 0 && below(2) == 0) {
                release_ring_view(&b);
            } else if (b.n_held == 0 && below(8) == 0) {
                divide(&b);
                n_divided++;
            } else if ((code = pnr_ring_acquire(b.ring, 1 + below(4), &v)) == PNR_EEND) {
                break;
            } else if (code == PNR_OK) {
                check_ring_view(&b, &v);
            } else if (below(2) == 0) {
                check_ring_peek(&b, 1 + below(40));
            }
            check_ring_account(&b, &account);
        }
        check_ring_end(&b);
        close_ring(&b);
    }
    assert_true(n_divided > 1000);
}

/* A dwell with more marks than the ring keeps is skipped as far as it has arrived. */
TEST(a_dwell_of_many_marks_is_skipped)
{
    enum { DWELL = 20000, MARKS = 10000 };
    pnr_ring_division *division;
    pnr_account account = {0};
    pnr_error error = {0};
    uint64_t skipped;
    pnr_windows v;
    ring_bench b;

    open_ring(&b, DWELL, 1, 1, 3 * DWELL, 0, 1, 2 * DWELL);
    for (uint64_t at = 0; at < MARKS; at++)
        b.m.kind[at] = at % 100 == 0;
    for (uint64_t at = 0; at < MARKS;)
        at += write_ring(&b, at, 1);
    assert_int_equal(pnr_ring_acquire(b.ring, 1, &v), PNR_EAGAIN);
    b.shape.n_samples = 64;
    assert_int_equal(pnr_ring_prepare(b.ring, &b.shape, &division, &error), PNR_OK);
    b.next = pnr_ring_divide(b.ring, division, &skipped);
    pnr_ring_division_destroy(division);
    assert_int_equal(b.next, (MARKS + 63) / 64 * 64);
    assert_int_equal(skipped, b.next);
    pnr_ring_account(b.ring, &account);
    assert_int_equal(account.positions, MARKS);
    assert_int_equal(account.skipped_alignment, MARKS - MARKS / 100);
    assert_int_equal(account.lost_source, MARKS / 100);
    for (uint64_t at = MARKS; at < 2 * DWELL;)
        at += write_ring(&b, at, 2 * DWELL);
    pnr_ring_end(b.ring);
    b.n_views = 1;
    b.divided_from = 0;
    while (pnr_ring_acquire(b.ring, 1, &v) == PNR_OK) {
        check_ring_view(&b, &v);
        release_ring_view(&b);
    }
    check_ring_end(&b);
    close_ring(&b);
}

/* A ring is refused for more dwells than its queue of marks is for, and for a dwell too long. */
TEST(dwells_that_do_not_fit_are_refused)
{
    pnr_ring_division *division;
    pnr_error error = {0};
    pnr_ring_shape shape;
    ring_bench b;

    open_ring(&b, 1000, 1, 1, 100000, 0, 1, 10);
    shape = b.shape;
    shape.n_samples = 60000;
    assert_int_equal(pnr_ring_prepare(b.ring, &shape, &division, &error), PNR_ECONFIG);
    assert_null(division);
    assert_non_null(strstr(error.text, "2 dwells of 60000 samples"));
    shape.n_samples = 10;
    assert_int_equal(pnr_ring_prepare(b.ring, &shape, &division, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "made for dwells of at least 13 samples"));
    close_ring(&b);
}
