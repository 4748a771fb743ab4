/* SPDX-License-Identifier: MIT */
/* The pipeline in time: a source faster than the engine, a subscriber that stops reading, status
 * once a second. */
#include "pipeline_fixture.h"

/* Sums of what the results say is missing, and where the last one ends. */
typedef struct told {
    uint64_t missing, end;
} told;

static told told_by(const outcome *o)
{
    told t = {0};

    for (size_t i = 0; i < o->n; i++) {
        const pnr_report *r = &o->reports[i];

        t.missing += r->lost + r->lost_before;
        t.end = r->sample + N;
        assert_true(((r->flags & PNR_FLAG_LOST) != 0) == (r->lost > 0));
        assert_true(r->lost <= N / 2);
    }
    return t;
}

/* A recording in real time against an engine that takes slow_ms for a dwell and has a ring of four.
 */
static void run_slow(size_t n_dwells, const char *rate, const char *slow_ms, const char *chunk)
{
    static const char *const settings[] = {"engine.name=fault", "source.pace=real-time",
                                           "ring.bytes=2032", "engine.batch=1", NULL};
    stage s;
    outcome o = {0};
    subscriber heard;

    open_stage(&s, n_dwells * N + 10, settings);
    set(&s, rate);
    set(&s, chunk);
    set(&s, "radar.max_range_m=0");
    save(&s, 0);
    setenv("PNR_FAULT_SLOW_MS", slow_ms, 1);
    subscribe(&s, &heard, 100000);
    run(&s, &o);
    unsetenv("PNR_FAULT_SLOW_MS");
    assert_int_equal(o.code, PNR_OK);
    assert_end(&heard, &o);
    assert_string_equal(heard.end.reason, "end of input");

    const told t = told_by(&o);
    const pnr_account *a = &o.account;

    assert_true(a->positions == n_dwells * N + 10); /* every sample of the recording had its time */
    assert_true(a->lost_ring_full > 0);
    assert_int_equal(a->lost_source, 0);
    assert_chain(&o, N);
    assert_true(t.missing > 0);
    /* What was told, and what fell behind the last result: no less than what was lost. */
    assert_true(t.missing + (a->positions - t.end) >= a->lost_ring_full);
    assert_true(t.missing <= a->lost_ring_full + a->skipped_refused);
    assert_true(heard.n_results == o.n && heard.lost == 0);
    assert_true(a->processed == o.n);
    forget(&o);
    close_stage(&s);
}

static void test_source_1_5_times_faster(void **state)
{
    (void)state;
    run_slow(60, "source.rate_hz=9525", "20", "source.chunk=0"); /* 13.3 ms a dwell */
}

static void test_source_much_faster(void **state)
{
    (void)state;
    run_slow(4000, "source.rate_hz=1000000", "20", "source.chunk=0");
    run_slow(4000, "source.rate_hz=1000000", "20", "source.chunk=100");
    run_slow(4000, "source.rate_hz=1000000", "20", "source.chunk=508"); /* the whole ring */
}

/* --- a subscriber that stops reading --- */

enum { MANY = 20000, LAST = 5 };

typedef struct waiting {
    subscriber *heard;
    uint64_t before; /* what it had read when it went on */
} waiting;

/* All but the last few results have been sent: it goes on, and has read what was kept for it. */
static void resume(void *context, size_t n)
{
    waiting *w = context;

    if (n != MANY - LAST)
        return;
    w->before = w->heard->n_results;
    atomic_store(&w->heard->is_dry, 0);
    atomic_store(&w->heard->hold, 0);
    while (!atomic_load(&w->heard->is_dry))
        usleep(1000);
}

static void test_stopped_subscriber(void **state)
{
    static const char *const settings[] = {"engine.batch=64", "publisher.high_water=10", NULL};
    stage s;
    outcome o = {0};
    subscriber heard;
    waiting w = {.heard = &heard};

    (void)state;
    open_stage(&s, MANY * N, settings);
    save(&s, 0);
    subscribe(&s, &heard, 10);
    atomic_store(&heard.hold, 1);
    o.also = resume;
    o.also_context = &w;
    run(&s, &o);
    assert_int_equal(o.code, PNR_OK);
    assert_int_equal(o.n, MANY); /* nothing waited for it */
    assert_int_equal(o.account.sent, MANY);
    assert_end(&heard, &o); /* its own account closes */
    assert_true(heard.lost > 0 && heard.n_gaps > 0);
    assert_int_equal(heard.last_seq, MANY - 1);
    assert_true(heard.n_results >= LAST + w.before);
    forget(&o);
    close_stage(&s);
}

/* --- status --- */

static void test_status(void **state)
{
    static const char *const settings[] = {"engine.name=fault", "engine.batch=1", NULL};
    stage s;
    outcome o = {0};
    subscriber heard;

    (void)state;
    open_stage(&s, 22 * N, settings); /* samples are always there: no turn is idle */
    save(&s, 0);
    setenv("PNR_FAULT_SLOW_MS", "100", 1);
    subscribe(&s, &heard, 1000);
    run(&s, &o);
    unsetenv("PNR_FAULT_SLOW_MS");
    assert_end(&heard, &o);
    assert_true(heard.n_status >= 1); /* of 2.2 s or more */
    forget(&o);
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_source_1_5_times_faster),
        cmocka_unit_test(test_source_much_faster),
        cmocka_unit_test(test_stopped_subscriber),
        cmocka_unit_test(test_status),
    };

    find_modules();
    return cmocka_run_group_tests_name("pipeline_live", tests, NULL, NULL);
}
