/* SPDX-License-Identifier: MIT */
/* The ring against a model: which dwells it gives, their contents, the losses, and an account that
 * closes. */
#include "ring/ring.h"

#include "base/clock.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

#include <pthread.h>
#include <sys/resource.h>

/* The value of a sample encodes its position. */
static uint32_t value_at(uint64_t position)
{
    return (uint32_t)(position * 2654435761u) | 1;
}

/* The stream: each position is 0 (held), 1 (lost by the source) or 2 (ring full). */
typedef struct model {
    uint8_t *kind;
    uint64_t length;
} model;

typedef struct bench {
    pnr_ring *ring;
    uint32_t *memory;
    pnr_ring_shape shape;
    model m;
    /* the reader's view of the account: of what it has given back, and of what it still holds */
    pnr_account account;
    pnr_account held[4]; /* a queue */
    pnr_windows lent[4]; /* the same */
    size_t first_held, n_held;
    uint64_t next; /* position at which the next view should begin, except for refused dwells */
    uint64_t n_views;
    uint64_t shown, n_shown; /* first sample that peek showed last, and how many */
    uint64_t divided_from;   /* end of the last view before other dwells began; UINT64_MAX: none */
} bench;

static void open_linear(bench *b, size_t n, size_t periods, size_t max_dwells, size_t capacity,
                        uint64_t first_window, size_t depth, uint64_t length, size_t n_behind)
{
    pnr_error error = {0};

    memset(b, 0, sizeof *b);
    b->memory = calloc(capacity, sizeof *b->memory);
    b->m.kind = calloc(length + 1, 1);
    b->m.length = length;
    b->shape = (pnr_ring_shape){.memory = b->memory,
                                .capacity = capacity,
                                .sample_bytes = sizeof *b->memory,
                                .n_samples = n,
                                .n_behind = n_behind,
                                .n_periods = periods,
                                .max_dwells = max_dwells,
                                .first_window = first_window,
                                .depth = depth};
    if (pnr_ring_create(&b->shape, &b->ring, &error) != PNR_OK)
        fail_msg("%s", error.text);
    b->next = first_window;
    b->divided_from = UINT64_MAX;
}

static void open_bench(bench *b, size_t n, size_t periods, size_t max_dwells, size_t capacity,
                       uint64_t first_window, size_t depth, uint64_t length)
{
    open_linear(b, n, periods, max_dwells, capacity, first_window, depth, length, 0);
}

static void close_bench(bench *b)
{
    pnr_ring_destroy(b->ring);
    free(b->memory);
    free(b->m.kind);
}

/* Writes positions [at, at + n) of the model's kind at `at`; returns how many went (0: full). */
static uint64_t write_run(bench *b, uint64_t at, uint64_t n)
{
    uint64_t run = 1;
    void *data;
    size_t room;

    while (run < n && at + run < b->m.length && b->m.kind[at + run] == b->m.kind[at])
        run++;
    if (b->m.kind[at] != 0) {
        pnr_ring_skip(b->ring, run, b->m.kind[at] == 1 ? PNR_LOST_SOURCE : PNR_LOST_RING_FULL);
        return run;
    }
    if (pnr_ring_reserve(b->ring, run, &data, &room) != PNR_OK)
        return 0;
    assert_in_range(room, 1, run);
    for (size_t i = 0; i < room; i++)
        ((uint32_t *)data)[i] = value_at(at + i);
    pnr_ring_commit(b->ring, room);
    return room;
}

static uint64_t lost_in(const bench *b, uint64_t first, uint64_t n)
{
    uint64_t lost = 0;

    for (uint64_t i = first; i < first + n; i++)
        lost += b->m.kind[i] != 0;
    return lost;
}

static bool is_refused(const bench *b, uint64_t first)
{
    for (size_t p = 0; p < b->shape.n_periods; p++)
        if (lost_in(b, first + p * b->shape.n_samples, b->shape.n_samples) <=
            b->shape.n_samples / 2)
            return false;
    return true;
}

/* Every run of lost samples in the view, each from end to end;
 * of too many the last holds the rest. */
static void check_runs(const bench *b, const pnr_windows *v, uint64_t n)
{
    size_t found = 0;
    uint64_t end = 0;

    for (uint64_t i = 0, count; i < n; i += count) {
        const uint64_t first = v->first_sample + i;

        count = 1;
        if (b->m.kind[first] == 0)
            continue;
        while (i + count < n && b->m.kind[first + count] != 0)
            count++;
        if (found < v->n_lost_runs) {
            assert_int_equal(v->lost_runs[found].first, i);
            assert_true(v->lost_runs[found].count >= count);
            if (found + 1 < v->n_lost_runs)
                assert_int_equal(v->lost_runs[found].count, count);
        }
        found++;
        end = i + count;
    }
    assert_true(found == v->n_lost_runs || (found > v->n_lost_runs && v->n_lost_runs >= 1024));
    if (found > 0)
        assert_int_equal(
            v->lost_runs[v->n_lost_runs - 1].first + v->lost_runs[v->n_lost_runs - 1].count, end);
}

static void check_samples(const bench *b, const pnr_windows *v)
{
    const uint64_t n = v->spans[0].n_samples + v->spans[1].n_samples;

    for (size_t i = 0; i < n; i++) {
        const uint64_t position = v->first_sample + i;
        const uint32_t got = i < v->spans[0].n_samples
                                 ? ((const uint32_t *)v->spans[0].data)[i]
                                 : ((const uint32_t *)v->spans[1].data)[i - v->spans[0].n_samples];

        if (got != (b->m.kind[position] == 0 ? value_at(position) : 0))
            fail_msg("position %llu holds %u", (unsigned long long)position, got);
    }
    check_runs(b, v, n);
}

/* peek shows the beginning of the next dwell that is not refused, and each time more of it. */
static void check_peek(bench *b, size_t at_least)
{
    const size_t dwell = b->shape.n_samples * b->shape.n_periods;
    pnr_windows v;
    const int code = pnr_ring_peek(b->ring, at_least, &v);

    if (code != PNR_OK) {
        assert_true(code == PNR_EAGAIN || code == PNR_EEND);
        return;
    }

    const uint64_t n = v.spans[0].n_samples + v.spans[1].n_samples;

    assert_in_range(n, at_least > 0 ? at_least : 1, dwell + b->shape.n_behind);
    assert_int_equal(v.n_dwells, n == dwell + b->shape.n_behind);
    assert_true(v.first_sample >= b->next && (v.first_sample - b->next) % dwell == 0);
    for (uint64_t at = b->next; at < v.first_sample; at += dwell)
        assert_true(is_refused(b, at));
    check_samples(b, &v);
    if (b->n_shown > 0 && b->shown == v.first_sample)
        assert_true(n >= b->n_shown + (at_least > 0 ? at_least : 1));
    b->shown = v.first_sample;
    b->n_shown = n;
}

/* Every sample of a view is where it should be. */
static void check_view(bench *b, const pnr_windows *v)
{
    const size_t n = b->shape.n_samples, dwell = n * b->shape.n_periods;
    uint64_t lost_before = 0;

    if (b->n_views++ == 0)
        lost_before = lost_in(b, 0, b->next);
    while (is_refused(b, b->next)) {
        b->next += dwell;
        lost_before += dwell;
    }
    assert_int_equal(v->first_sample, b->next);
    if (b->divided_from == UINT64_MAX)
        assert_int_equal(v->lost_before, lost_before);
    else /* some dwells of the old division were refused whole */
        assert_in_range(v->lost_before, lost_in(b, b->divided_from, b->next - b->divided_from),
                        b->next - b->divided_from);
    b->divided_from = UINT64_MAX;
    assert_in_range(v->n_dwells, 1, b->shape.max_dwells);
    assert_int_equal(v->spans[0].n_samples + v->spans[1].n_samples,
                     v->n_dwells * dwell + b->shape.n_behind);
    check_samples(b, v);
    if (b->n_shown > 0 && !is_refused(b, b->shown))
        assert_int_equal(v->first_sample, b->shown);
    b->n_shown = 0;

    const size_t place = (b->first_held + b->n_held++) % 4;
    pnr_account *held = &b->held[place];

    b->lent[place] = *v;
    *held = (pnr_account){0};
    for (size_t w = 0; w < v->n_dwells * b->shape.n_periods; w++) {
        const uint64_t lost = lost_in(b, v->first_sample + w * n, n);

        assert_int_equal(v->lost[w], lost);
        held->positions += n;
        held->windows++;
        held->processed++;
        held->used += n - lost;
    }
    for (size_t d = 0; d < v->n_dwells; d++)
        assert_false(is_refused(b, v->first_sample + d * dwell));
    b->next += v->n_dwells * dwell;
}

/* Lent, partly arrived, or not yet reported. */
static void check_account(const bench *b, pnr_account *account)
{
    char text[512];

    *account = b->account;
    pnr_ring_account(b->ring, account);
    if (!pnr_account_closes(account))
        fail_msg("%s", pnr_account_format(account, text, sizeof text));
}

static void release(bench *b)
{
    const pnr_account *held = &b->held[b->first_held];

    assert_true(b->n_held > 0);
    check_samples(b, &b->lent[b->first_held]); /* still as it was lent */
    b->account.positions += held->positions;
    b->account.windows += held->windows;
    b->account.processed += held->processed;
    b->account.used += held->used;
    b->first_held = (b->first_held + 1) % 4;
    b->n_held--;
    pnr_ring_release(b->ring);
}

static void check_end(bench *b)
{
    uint64_t lost[3] = {0};
    pnr_account account;
    pnr_windows v;

    while (b->n_held > 0)
        release(b);
    assert_int_equal(pnr_ring_acquire(b->ring, 1, &v), PNR_EEND);
    assert_int_equal(pnr_ring_acquire(b->ring, 1, &v), PNR_EEND);
    check_account(b, &account);
    for (uint64_t i = 0; i < b->m.length; i++)
        lost[b->m.kind[i]]++;
    assert_int_equal(account.positions, b->m.length);
    assert_int_equal(account.positions, pnr_ring_positions(b->ring));
    assert_int_equal(account.lost_source, lost[1]);
    assert_int_equal(account.lost_ring_full, lost[2]);
    /* every dwell that could have been a view was one */
    while (b->next + b->shape.n_samples * b->shape.n_periods + b->shape.n_behind <= b->m.length) {
        assert_true(is_refused(b, b->next));
        b->next += b->shape.n_samples * b->shape.n_periods;
    }
}

static void random_losses(bench *b)
{
    for (uint64_t runs = below(30); runs > 0; runs--) {
        const uint64_t first = below(b->m.length);
        const uint64_t count = below(4) == 0 ? below(b->m.length / 2) : below(60);
        const uint8_t kind = (uint8_t)(1 + below(2));

        for (uint64_t i = first; i < first + count && i < b->m.length; i++)
            b->m.kind[i] = kind;
    }
}

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
        bench b;

        open_linear(&b, n, periods, max_dwells, capacity, below(3 * dwell), depth,
                    below(60 * dwell), n_behind);
        random_losses(&b);
        while (true) {
            pnr_windows v;

            if (at < b.m.length && below(2) == 0) {
                at += write_run(&b, at, 1 + below(dwell));
            } else if (at == b.m.length && !ended) {
                pnr_ring_end(b.ring);
                ended = true;
            } else if (b.n_held > 0 && below(2) == 0) {
                release(&b);
            } else if (below(3) == 0) {
                check_peek(&b, below(dwell + n_behind));
            } else {
                const int code = pnr_ring_acquire(b.ring, 1 + below(max_dwells), &v);

                if (code == PNR_EEND)
                    break;
                if (code == PNR_OK) {
                    check_view(&b, &v);
                } else {
                    assert_int_equal(code, PNR_EAGAIN);
                }
            }
            check_account(&b, &account);
        }
        check_end(&b);
        close_bench(&b);
    }
}

/* Goes on with other dwells. Windows begin on the new grid after the last view and the dwells that
 * were refused after it: only the samples up to the first window are skipped. */
static void divide(bench *b)
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

/* As test_interleaved, and now and then other dwells begin. */
TEST(other_dwells_begin)
{
    size_t n_divided = 0;

    for (int round = 0; round < 400; round++) {
        const size_t n = 1 + below(40), periods = 1 + below(4);
        uint64_t at = 0;
        bool ended = false;
        pnr_account account;
        bench b;

        open_linear(&b, n, periods, 1 + below(4), 840 + below(2000), below(200), 1 + below(4),
                    below(20000), below(2) == 0 ? below(n) : 0);
        random_losses(&b);
        while (true) {
            pnr_windows v;
            int code = PNR_EAGAIN;

            if (at < b.m.length && below(2) == 0) {
                at += write_run(&b, at, 1 + below(500));
            } else if (at == b.m.length && !ended) {
                pnr_ring_end(b.ring);
                ended = true;
            } else if (b.n_held > 0 && below(2) == 0) {
                release(&b);
            } else if (b.n_held == 0 && below(8) == 0) {
                divide(&b);
                n_divided++;
            } else if ((code = pnr_ring_acquire(b.ring, 1 + below(4), &v)) == PNR_EEND) {
                break;
            } else if (code == PNR_OK) {
                check_view(&b, &v);
            } else if (below(2) == 0) {
                check_peek(&b, 1 + below(40));
            }
            check_account(&b, &account);
        }
        check_end(&b);
        close_bench(&b);
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
    bench b;

    open_bench(&b, DWELL, 1, 1, 3 * DWELL, 0, 1, 2 * DWELL);
    for (uint64_t at = 0; at < MARKS; at++)
        b.m.kind[at] = at % 100 == 0;
    for (uint64_t at = 0; at < MARKS;)
        at += write_run(&b, at, 1);
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
        at += write_run(&b, at, 2 * DWELL);
    pnr_ring_end(b.ring);
    b.n_views = 1;
    b.divided_from = 0;
    while (pnr_ring_acquire(b.ring, 1, &v) == PNR_OK) {
        check_view(&b, &v);
        release(&b);
    }
    check_end(&b);
    close_bench(&b);
}

/* A ring is refused for more dwells than its queue of marks is for, and for a dwell too long. */
TEST(dwells_that_do_not_fit_are_refused)
{
    pnr_ring_division *division;
    pnr_error error = {0};
    pnr_ring_shape shape;
    bench b;

    open_bench(&b, 1000, 1, 1, 100000, 0, 1, 10);
    shape = b.shape;
    shape.n_samples = 60000;
    assert_int_equal(pnr_ring_prepare(b.ring, &shape, &division, &error), PNR_ECONFIG);
    assert_null(division);
    assert_non_null(strstr(error.text, "2 dwells of 60000 samples"));
    shape.n_samples = 10;
    assert_int_equal(pnr_ring_prepare(b.ring, &shape, &division, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "made for dwells of at least 13 samples"));
    close_bench(&b);
}

static void *writer(void *argument)
{
    bench *b = argument;
    uint64_t at = 0, random = 12345;

    while (at < b->m.length) {
        random = random * UINT64_C(6364136223846793005) + 1;

        const uint64_t n = write_run(b, at, 1 + (random >> 33) % 300);

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
        bench b;
        pthread_t thread;
        pnr_windows v;
        int code;

        open_linear(&b, 64, 2, 3, 128 * 5, 77, 2, 200000, round < 3 ? 0 : 100);
        random_losses(&b);
        assert_int_equal(pthread_create(&thread, NULL, writer, &b), 0);
        while ((code = pnr_ring_acquire(b.ring, 3, &v)) != PNR_EEND) {
            if (code == PNR_OK) {
                check_view(&b, &v);
                if (b.n_held == 2)
                    release(&b);
            } else if (b.n_held > 0) {
                release(&b);
            } else if (round % 2 == 0) {
                (void)pnr_ring_wait(b.ring, 0, NULL, 50 * 1000 * 1000);
            } else {
                check_peek(&b, 20);
                (void)pnr_ring_wait(b.ring, 20, NULL, 50 * 1000 * 1000);
            }
        }
        pthread_join(thread, NULL);
        check_end(&b);
        close_bench(&b);
    }
}

/* More lost runs in one dwell than the ring has marks for. */
TEST(test_many_runs)
{
    const uint64_t length = 200000;
    uint64_t at = 0;
    bench b;
    pnr_windows v;

    open_bench(&b, 100000, 1, 1, 200000, 0, 1, length);
    for (uint64_t i = 0; i < length; i += 3)
        b.m.kind[i] = 1;
    while (at < length) {
        const uint64_t n = write_run(&b, at, 1);

        if (n == 0 || at % 5000 == 0) {
            if (pnr_ring_acquire(b.ring, 1, &v) == PNR_OK) {
                check_view(&b, &v);
                release(&b);
            }
        }
        at += n;
    }
    pnr_ring_end(b.ring);
    while (pnr_ring_acquire(b.ring, 1, &v) != PNR_EEND) {
        check_view(&b, &v);
        release(&b);
    }
    assert_int_equal(b.n_views, 2);
    check_end(&b);
    close_bench(&b);
}

/* A source that was disconnected for weeks. */
static void be_away(size_t n_behind)
{
    const uint64_t away = UINT64_C(1) << 50;
    bench b;
    pnr_windows v;
    pnr_account account = {0};
    void *data;
    size_t room;

    open_linear(&b, 100, 2, 2, 1000, 0, 2, 1, n_behind);
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
    close_bench(&b);
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
    bench b;
    pnr_windows v;

    open_bench(&b, 100, 1, 2, 300, 7, 2, 1000);
    memset(b.m.kind + 37, 1, 5);
    memset(b.m.kind + 107 + 20, 1, 100);
    assert_int_equal(pnr_ring_peek(b.ring, 0, &v), PNR_EAGAIN);
    assert_int_equal(write_run(&b, 0, 7), 7);
    assert_int_equal(pnr_ring_peek(b.ring, 0, &v), PNR_EAGAIN); /* alignment is no view */
    assert_int_equal(write_run(&b, 7, 30), 30);
    assert_int_equal(pnr_ring_peek(b.ring, 31, &v), PNR_EAGAIN);
    check_peek(&b, 30);
    assert_int_equal(b.n_shown, 30);
    assert_int_equal(pnr_ring_peek(b.ring, 1, &v), PNR_EAGAIN); /* nothing new */
    assert_int_equal(write_run(&b, 37, 5), 5);
    assert_int_equal(write_run(&b, 42, 65), 65);
    assert_int_equal(write_run(&b, 107, 20), 20);
    check_peek(&b, 1);
    assert_int_equal(b.n_shown, 100); /* whole, and no more than it */
    assert_int_equal(pnr_ring_acquire(b.ring, 2, &v), PNR_OK);
    check_view(&b, &v);
    check_peek(&b, 1);
    assert_int_equal(b.shown, 107);
    assert_int_equal(write_run(&b, 127, 100), 100); /* more than half of it is lost */
    assert_int_equal(write_run(&b, 227, 10), 10);
    check_peek(&b, 1);
    assert_int_equal(b.shown, 207);
    assert_int_equal(b.n_shown, 30);
    release(&b);
    pnr_ring_end(b.ring);
    assert_int_equal(pnr_ring_peek(b.ring, 1, &v), PNR_EEND);
    b.m.length = 237;
    check_end(&b);
    close_bench(&b);
}

/* Windows of 10 + 6 samples: a loss in the 6 samples after a dwell is shown with it, and counted
 * with the next. The last dwell, without all of its 6 samples, is the tail. */
TEST(test_behind)
{
    bench b;
    pnr_windows v;
    pnr_account account;

    open_linear(&b, 10, 2, 4, 200, 0, 2, 66, 6);
    memset(b.m.kind + 22, 1, 3);
    memset(b.m.kind + 44, 2, 16); /* lost across the end of a dwell */
    for (uint64_t at = 0; at < 25;)
        at += write_run(&b, at, 1);
    assert_int_equal(pnr_ring_acquire(b.ring, 4, &v), PNR_EAGAIN); /* 26 are needed */
    check_peek(&b, 25);
    for (uint64_t at = 25; at < 66;)
        at += write_run(&b, at, 1);
    assert_int_equal(pnr_ring_acquire(b.ring, 1, &v), PNR_OK);
    assert_int_equal(v.n_dwells, 1);
    assert_int_equal(v.n_lost_runs, 1);
    assert_int_equal(v.lost_runs[0].first, 22);
    assert_int_equal(v.lost_runs[0].count, 3);
    assert_int_equal(v.lost[0] + v.lost[1], 0);
    check_view(&b, &v);
    assert_int_equal(pnr_ring_acquire(b.ring, 4, &v), PNR_OK);
    assert_int_equal(v.n_dwells, 1); /* the third has no window of use */
    assert_int_equal(v.lost[0], 3);
    assert_int_equal(v.n_lost_runs, 2);
    assert_int_equal(v.lost_runs[1].first, 24);
    assert_int_equal(v.lost_runs[1].count, 2);
    check_view(&b, &v);
    release(&b);
    release(&b);
    close_bench(&b);

    /* 26 + 20 + 19: two dwells and a tail. */
    open_linear(&b, 10, 2, 4, 200, 0, 2, 65, 6);
    for (uint64_t at = 0; at < 65;)
        at += write_run(&b, at, 65);
    pnr_ring_end(b.ring);
    assert_int_equal(pnr_ring_acquire(b.ring, 4, &v), PNR_OK);
    assert_int_equal(v.n_dwells, 2);
    check_view(&b, &v);
    assert_int_equal(pnr_ring_acquire(b.ring, 4, &v), PNR_EEND);
    release(&b);
    check_account(&b, &account);
    assert_int_equal(account.skipped_tail, 25);
    check_end(&b);
    close_bench(&b);
}

enum { CHUNKS = 100 };

static void *slow_writer(void *argument)
{
    bench *b = argument;

    for (size_t i = 0; i < CHUNKS; i++) {
        assert_int_equal(write_run(b, 10 * i, 10), 10);
        (void)pnr_clock_sleep_until(pnr_clock_ns() + 200000, NULL);
    }
    return NULL;
}

/* How often this thread slept until the reader had work, and what it found then. */
static long sleeps_until_work(size_t at_least, uint64_t *n_there)
{
    struct rusage before, after;
    pthread_t thread;
    bench b;

    open_bench(&b, 10 * CHUNKS, 1, 1, 20 * CHUNKS, 0, 1, 10 * CHUNKS);
    assert_int_equal(pthread_create(&thread, NULL, slow_writer, &b), 0);
    getrusage(RUSAGE_THREAD, &before);
    assert_int_equal(pnr_ring_wait(b.ring, at_least, NULL, UINT64_C(60000000000)), PNR_OK);
    getrusage(RUSAGE_THREAD, &after);
    *n_there = pnr_ring_positions(b.ring);
    pthread_join(thread, NULL);
    close_bench(&b);
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
    bench b;

    open_bench(&b, 10, 1, 1, 20, 0, 1, 1);
    assert_int_equal(pnr_ring_wait(b.ring, 0, NULL, 20 * 1000 * 1000), PNR_EAGAIN);
    assert_true(pnr_clock_ns() - began >= 20 * 1000 * 1000);
    assert_int_equal(pnr_ring_wait_space(b.ring, 1), PNR_OK);
    close_bench(&b);
}

/* The fill is the greatest one since the last call, and at most 1. */
TEST(test_fill)
{
    pnr_windows view;
    bench b;

    open_bench(&b, 10, 1, 1, 40, 0, 1, 1);
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
    close_bench(&b);
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
    bench b;

    pnr_events_begin(&events);
    open_linear(&b, 10, 1, 2, 100, 0, 1, 200, 0);
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
