/* SPDX-License-Identifier: MIT */
/* The pipeline in time: a source faster than the engine, a subscriber that stops reading, status
 * once a second, deadlines, waiting awake, samples ahead of their dwell. */
#include "tests/fixture/pipeline_fixture.h"

#include <dlfcn.h>
#include <sys/resource.h>

/* Sums of the reported losses, and the end of the last result. */
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

/* A recording in real time against an engine that takes slow_ms
 * for a dwell and has a ring of four. */
static void run_slow(size_t n_dwells, const char *rate, const char *slow_ms, const char *chunk)
{
    static const char *const settings[] = {"engine.name=fault", "source.pace=real-time",
                                           "ring.bytes=2032", "engine.batch=1", NULL};
    stage s;
    outcome o = {0};
    subscriber heard;

    open_stage(&s, n_dwells * N + 10, settings);
    set_stage(&s, rate);
    set_stage(&s, chunk);
    set_stage(&s, "radar.max_range_m=0");
    save_stage(&s, 0);
    setenv("PNR_FAULT_SLOW_MS", slow_ms, 1);
    subscribe(&s, &heard, 100000);
    run_stage(&s, &o);
    unsetenv("PNR_FAULT_SLOW_MS");
    assert_int_equal(o.code, PNR_OK);
    assert_end(&heard, &o);
    assert_string_equal(heard.end.reason, "end of input");

    const told t = told_by(&o);
    const pnr_account *a = &o.account;

    assert_true(a->positions == n_dwells * N + 10); /* every sample of the recording had its time */
    assert_true(a->lost_ring_full > 0);
    assert_true(heard.fullest > 0.5 && heard.fullest <= 1);
    assert_int_equal(a->lost_source, 0);
    assert_chain(&o, N);
    assert_true(t.missing > 0);
    /* The reported losses and those after the last result: no less than the account has lost. */
    assert_true(t.missing + (a->positions - t.end) >= a->lost_ring_full);
    assert_true(t.missing <= a->lost_ring_full + a->skipped_refused);
    assert_true(heard.n_results == o.n && heard.lost == 0);
    assert_true(a->processed == o.n);
    forget_outcome(&o);
    close_stage(&s);
}

TEST(test_source_1_5_times_faster)
{
    run_slow(60, "source.rate_hz=9525", "20", "source.chunk=0"); /* 13.3 ms a dwell */
}

TEST(test_source_much_faster)
{
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

/* All but the last few results have been sent: the subscriber continues, and has read the messages
 * that were kept for it. */
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

TEST(test_stopped_subscriber)
{
    static const char *const settings[] = {"engine.batch=64", "publisher.high_water=10", NULL};
    stage s;
    outcome o = {0};
    subscriber heard;
    waiting w = {.heard = &heard};

    open_stage(&s, MANY * N, settings);
    save_stage(&s, 0);
    subscribe(&s, &heard, 10);
    atomic_store(&heard.hold, 1);
    o.also = resume;
    o.also_context = &w;
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_OK);
    assert_int_equal(o.n, MANY); /* nothing waited for it */
    assert_int_equal(o.account.sent, MANY);
    assert_end(&heard, &o); /* its own account closes */
    assert_true(heard.lost > 0 && heard.n_gaps > 0);
    assert_int_equal(heard.last_seq, MANY - 1);
    assert_true(heard.n_results >= LAST + w.before);
    forget_outcome(&o);
    close_stage(&s);
}

/* --- a tap that waits --- */

enum { WAIT_DWELLS = 2500 };

/* The whole stream at once, in a ring of its size, and a tap that waits until this many samples
 * have left the ring. */
typedef struct tap_wait {
    const stage *stage;
    size_t n_left;
    _Atomic bool is_over;
} tap_wait;

static void feed_at_once(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory,
                         size_t capacity, const volatile int *stop)
{
    tap_wait *w = context;
    const size_t n_samples = WAIT_DWELLS * N;
    void *data;
    size_t n;

    (void)plan, (void)memory, (void)stop;
    assert_int_equal(pnr_ring_reserve(ring, n_samples, &data, &n), PNR_OK);
    assert_int_equal(n, n_samples);
    memcpy(data, w->stage->bytes, n * w->stage->sample_bytes);
    pnr_ring_commit(ring, n);
    while (pnr_ring_reserve(ring, capacity, &data, &n) != PNR_OK || n < w->n_left)
        pnr_clock_sleep_until(pnr_clock_ns() + 1000000, NULL);
    atomic_store(&w->is_over, true);
}

static void wait_at_100(void *context, size_t n)
{
    const tap_wait *w = context;

    while (n == 100 && !atomic_load(&w->is_over))
        pnr_clock_sleep_until(pnr_clock_ns() + 1000000, NULL);
}

/* Many echoes of noise, so that the queue holds some hundred results. */
static void run_waiting(size_t n_left, const char *pace, outcome *o, subscriber *heard)
{
    static const char *const settings[] = {
        "engine.name=cpu",      "source.rate_hz=127000", "radar.max_range_m=0",    "engine.batch=1",
        "engine.deadline=1000", "detector.pfa=0.9999",   "detector.max_echoes=16", NULL};
    char ring[64];
    stage s;
    tap_wait w = {.stage = &s, .n_left = n_left};

    open_stage(&s, WAIT_DWELLS * N, settings);
    snprintf(ring, sizeof ring, "ring.bytes=%zu", WAIT_DWELLS * N * s.sample_bytes);
    set_stage(&s, ring);
    set_stage(&s, pace);
    subscribe(&s, heard, 100000);
    o->also = wait_at_100;
    o->also_context = o->feed_context = &w;
    o->feed = feed_at_once;
    run_stage(&s, o);
    assert_int_equal(o->code, PNR_OK);
    assert_true(o->account.used == WAIT_DWELLS * N && o->account.results == WAIT_DWELLS);
    assert_end(heard, o);
    assert_true(heard->n_results == o->account.sent);
    close_stage(&s);
}

/* A live stream loses no sample while the tap waits; the results that find the queue full are
 * counted, and subscribers see a gap. A recording waits for the tap. */
TEST(test_tap_waits)
{
    outcome few = {0}, many = {0}, recorded = {0};
    subscriber heard;

    run_waiting(200 * N, "source.pace=real-time", &few, &heard);
    assert_true(few.n >= 200);
    run_waiting(2450 * N, "source.pace=real-time", &many, &heard);
    assert_in_range(many.account.unsent_queue_full, 1, 2349);
    /* By their numbers subscribers see all of them but those after the last one that was sent. */
    assert_int_equal(heard.lost + WAIT_DWELLS - 1 - heard.last_seq, many.account.unsent_queue_full);
    run_waiting(200 * N, "source.pace=fast", &recorded, &heard);
    assert_true(pnr_account_lossless(&recorded.account));
    for (size_t i = 0, k = 0; i < many.n; i++, k++) {
        while (k < recorded.n && recorded.reports[k].sample < many.reports[i].sample)
            k++;
        assert_true(k < recorded.n);
        /* Since half of the ring waits, weaker echoes may be left out. */
        assert_true(many.reports[i].flags & PNR_FLAG_COARSE ||
                    is_same_report(&many.reports[i], &recorded.reports[k]));
    }
    forget_outcome(&few);
    forget_outcome(&many);
    forget_outcome(&recorded);
}

/* --- maps of a live stream --- */

enum { MAP_PERIODS = 4096, MAP_DWELLS = 4 };

/* Dwell d of the stream is fed when d - n_ahead results have left the queue, and the subscriber has
 * received the maps of these results: the publisher has memory for two maps. */
typedef struct turns {
    const stage *stage;
    const subscriber *heard;
    size_t n_ahead;
    _Atomic size_t n_taken;
    _Atomic bool is_fed; /* all dwells have left the ring */
} turns;

static void feed_in_turns(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory,
                          size_t capacity, const volatile int *stop)
{
    turns *t = context;
    const size_t dwell = (size_t)MAP_PERIODS * N;

    void *data;
    size_t n;

    (void)plan, (void)memory;
    for (size_t d = 0; d < MAP_DWELLS && *stop == 0; d++) {
        size_t done = 0;

        while ((atomic_load(&t->n_taken) + t->n_ahead < d || t->heard->n_cells + t->n_ahead < d) &&
               *stop == 0)
            pnr_clock_sleep_until(pnr_clock_ns() + 1000000, NULL);
        for (; done < dwell; done += n) {
            assert_int_equal(pnr_ring_reserve(ring, dwell - done, &data, &n), PNR_OK);
            memcpy(data, t->stage->bytes + (d * dwell + done) * t->stage->sample_bytes,
                   n * t->stage->sample_bytes);
            pnr_ring_commit(ring, n);
        }
    }
    while (*stop == 0 && (pnr_ring_reserve(ring, capacity, &data, &n) != PNR_OK || n < capacity))
        pnr_clock_sleep_until(pnr_clock_ns() + 1000000, NULL);
    atomic_store(&t->is_fed, true);
}

static void note_taken(void *context, size_t n)
{
    turns *t = context;

    atomic_store(&t->n_taken, n);
}

static void keep_result(void *context, size_t n)
{
    turns *t = context;

    (void)n;
    while (t->n_ahead > 0 && !atomic_load(&t->is_fed))
        pnr_clock_sleep_until(pnr_clock_ns() + 1000000, NULL);
}

static void run_maps(size_t n_ahead, outcome *o, subscriber *heard)
{
    static const char *const settings[] = {"engine.name=cpu",         "dwell.combine=doppler",
                                           "dwell.periods=4096",      "detector.oversample=2",
                                           "source.pace=real-time",   "engine.deadline=1000",
                                           "publisher.profile=power", NULL};
    char ring[64];
    stage s;
    turns t = {.stage = &s, .heard = heard, .n_ahead = n_ahead};

    open_stage(&s, (size_t)MAP_DWELLS * MAP_PERIODS * N, settings);
    snprintf(ring, sizeof ring, "ring.bytes=%zu",
             (size_t)MAP_DWELLS * MAP_PERIODS * N * s.sample_bytes);
    set_stage(&s, ring);
    subscribe(&s, heard, 1000);
    o->wants_cells = true;
    o->feed = feed_in_turns;
    o->also = keep_result;
    o->rest = note_taken;
    o->feed_context = o->also_context = &t;
    run_stage(&s, o);
    assert_int_equal(o->code, PNR_OK);
    assert_int_equal(o->n, MAP_DWELLS);
    assert_end(heard, o);
    close_stage(&s);
}

/* Each map has space in the queue, if the map before it was taken. While nobody takes results, the
 * queue passes over maps: they are counted, and an event says so. */
TEST(test_maps_of_a_live_stream)
{
    outcome taken = {0}, untaken = {0};
    subscriber heard;

    run_maps(0, &taken, &heard);
    assert_int_equal(taken.n_cells, MAP_DWELLS);
    assert_true(pnr_account_lossless(&taken.account));
    run_maps(MAP_DWELLS, &untaken, &heard);
    assert_in_range(untaken.account.unsent_maps, 1, MAP_DWELLS - 1);
    assert_int_equal(untaken.n_cells + untaken.account.unsent_maps, MAP_DWELLS);
    assert_int_equal(untaken.account.sent, MAP_DWELLS);
    /* One event a second at most tells of them. */
    assert_in_range(heard.events[PNR_EVENT_MAPS_UNSENT].count, 1, untaken.account.unsent_maps);
    forget_outcome(&taken);
    forget_outcome(&untaken);
}

/* --- status --- */

TEST(test_status)
{
    static const char *const settings[] = {"engine.name=fault", "engine.batch=1", NULL};
    stage s;
    outcome o = {0};
    subscriber heard;

    open_stage(&s, 22 * N, settings); /* samples are always available, so the loop is never idle */
    save_stage(&s, 0);
    setenv("PNR_FAULT_SLOW_MS", "100", 1);
    subscribe(&s, &heard, 1000);
    run_stage(&s, &o);
    unsetenv("PNR_FAULT_SLOW_MS");
    assert_end(&heard, &o);
    assert_true(heard.n_status >= 1); /* of 2.2 s or more */
    forget_outcome(&o);
    close_stage(&s);
}

/* --- deadlines --- */

/* Every result says for itself whether it was late; returns how many were. */
static uint64_t late_by_latency(const outcome *o, double deadline_s)
{
    uint64_t n_late = 0;

    for (size_t i = 0; i < o->n; i++) {
        const bool is_late = o->reports[i].latency_us > deadline_s * 1e6;

        assert_int_equal((o->reports[i].flags & PNR_FLAG_LATE) != 0, is_late);
        n_late += is_late;
    }
    return n_late;
}

/* A live stream, 50 ms a dwell, before an engine that takes slow_ms: what is late is the same in
 * the results, the account and at the subscriber. Returns it. */
static uint64_t run_late(const char *slow_ms, const char *deadline, double deadline_s)
{
    static const char *const settings[] = {"engine.name=fault",   "source.pace=real-time",
                                           "source.rate_hz=2540", "engine.batch=1",
                                           "ring.bytes=16K",      NULL}; /* the whole stream */
    enum { DWELLS = 12 };
    stage s;
    outcome o = {0};
    subscriber heard;

    open_stage(&s, DWELLS * N, settings);
    set_stage(&s, "radar.max_range_m=0");
    set_stage(&s, deadline);
    save_stage(&s, 0);
    setenv("PNR_FAULT_SLOW_MS", slow_ms, 1);
    subscribe(&s, &heard, 1000);
    run_stage(&s, &o);
    unsetenv("PNR_FAULT_SLOW_MS");
    assert_int_equal(o.code, PNR_OK);
    assert_int_equal(o.n, DWELLS);
    assert_end(&heard, &o);
    assert_true(heard.end.deadline_s == deadline_s);
    assert_true(pnr_account_lossless(&o.account)); /* late is not lost */

    const uint64_t n_late = late_by_latency(&o, deadline_s);

    assert_true(o.account.deadline_missed == n_late);
    assert_true(heard.end.account.deadline_missed == n_late && heard.n_late == n_late);
    forget_outcome(&o);
    close_stage(&s);
    return n_late;
}

TEST(test_deadline)
{
    assert_int_equal(run_late("0", "engine.deadline=30", 30), 0);
    assert_int_equal(run_late("20", "engine.deadline=0.01", 0.01), 12);
    (void)run_late("45", "engine.deadline=0", 0.05); /* a period; some are late, or none */
}

/* A recording that plays as fast as it goes has none, unless it is given. */
TEST(test_deadline_of_a_recording)
{
    stage s;
    outcome o = {0};

    open_stage(&s, 20 * N, NULL);
    save_stage(&s, 0);
    run_stage(&s, &o);
    assert_int_equal(o.account.deadline_missed, 0);
    assert_int_equal(o.reports[0].flags, 0);
    set_stage(&s, "engine.deadline=1e-9");
    run_stage(&s, &o);
    assert_int_equal(o.account.deadline_missed, 20);
    assert_int_equal(o.reports[19].flags, PNR_FLAG_LATE);
    forget_outcome(&o);
    close_stage(&s);
}

/* --- waiting awake --- */

/* Sleeps of the processing thread between the first result and the last. */
typedef struct sleeps {
    long first, last;
} sleeps;

static void count_sleeps(void *context, size_t n)
{
    sleeps *s = context;
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    *(n == 1 ? &s->first : &s->last) = usage.ru_nvcsw;
}

static void run_awake(stage *s, const char *wait, outcome *o, long *n_sleeps)
{
    sleeps seen = {0};

    set_stage(s, wait);
    o->also = count_sleeps;
    o->also_context = &seen;
    run_stage(s, o);
    assert_int_equal(o->code, PNR_OK);
    *n_sleeps = seen.last - seen.first;
}

/* The same bits, whether it sleeps or spins; and when it spins, it never sleeps. */
static void spin(const char *engine)
{
    static const char *const settings[] = {"source.pace=real-time", "source.rate_hz=254000",
                                           "engine.batch=1",        "engine.deadline=1000",
                                           "radar.max_range_m=0",   NULL};
    enum { DWELLS = 600 }; /* 0.3 s */
    stage s;
    outcome asleep = {0}, awake = {0};
    long n_sleeps = 0, n_naps = 0;

    open_stage(&s, DWELLS * N, settings);
    set_stage(&s, engine);
    set_stage(&s, "ring.bytes=1M");
    save_stage(&s, 0);
    run_awake(&s, "engine.wait=sleep", &asleep, &n_sleeps);
    /* The cpu engine's team may make its caller wait, and on a busy machine so does a lock that
     * another thread holds: then it is tried again. */
    for (int tries = 0;
         tries == 0 || (strstr(engine, "reference") != NULL && n_naps > 10 + n_sleeps / 10);
         tries++) {
        assert_true(tries < 5);
        run_awake(&s, "engine.wait=spin", &awake, &n_naps);
        assert_same_reports(&awake, &asleep);
        assert_same_account(&awake.account, &asleep.account);
        assert_int_equal(awake.n, DWELLS);
    }
    forget_outcome(&asleep);
    forget_outcome(&awake);
    close_stage(&s);
}

TEST(test_spin)
{
    spin("engine.name=reference");
    spin("engine.name=cpu");
}

/* A broken engine ends the run: it is dropped if it has no result, also when we spin. */
TEST(test_spin_with_faults)
{
    static const char *const faults[] = {"collect=EAGAIN", "collect:5=EAGAIN", "submit:3=ELOST",
                                         "collect:7=ELOST", "collect:2=EENGINE"};
    static const char *const settings[] = {"engine.name=fault", "engine.wait=spin",
                                           "ring.bytes=24384", "engine.batch=1", NULL};

    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        stage s;
        outcome o = {0};

        open_stage(&s, 20 * N, settings);
        save_stage(&s, 0);
        setenv("PNR_FAULT", faults[i], 1);
        run_stage(&s, &o);
        unsetenv("PNR_FAULT");
        assert_int_equal(o.code, strstr(faults[i], "EENGINE") ? PNR_EENGINE : PNR_ELOST);
        assert_true(o.account.positions == 20 * N);
        forget_outcome(&o);
        close_stage(&s);
    }
}

/* --- samples ahead of their dwell --- */

/* As engine_fault.c counts them. */
typedef struct fault_ahead {
    uint64_t n_uploads, n_kept, n_dropped, n_broken;
} fault_ahead;

/* The counts of the fault engine, which stays loaded once it was. */
static fault_ahead *ahead_of_fault(void)
{
    char path[4096];
    void *module, *found;

    snprintf(path, sizeof path, "%s/fault.so", getenv("PNR_MODULE_PATH"));
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    assert_non_null(module);
    found = dlsym(module, "pnr_fault_ahead");
    assert_non_null(found);
    dlclose(module);
    return found;
}

enum { LONG_PERIODS = 400, LONG_DWELL = LONG_PERIODS * N, LONG_DWELLS = 8 };

/* Dwells of 0.25 s and 200 kB, of which the engine gets at least 64 KiB at a time. */
static void run_ahead(const char *const *more, const char *fault, outcome *o)
{
    static const char *const settings[] = {
        "engine.name=fault",    "source.rate_hz=203200",  "radar.max_range_m=0",
        "dwell.periods=400",    "dwell.combine=coherent", "engine.batch=1",
        "engine.deadline=1000", "ring.seconds=10",        NULL}; /* a ring of the whole stream */
    stage s;

    open_stage(&s, LONG_DWELLS * LONG_DWELL + 100, settings);
    set_stage_all(&s, more);
    for (size_t r = 0; r < s.config.source.n_lost; r++)
        for (size_t i = 0; i < s.config.source.lost[r].count; i++)
            s.kinds[s.config.source.lost[r].first + i] = LOST;
    save_stage(&s, 0);
    *ahead_of_fault() = (fault_ahead){0};
    setenv("PNR_FAULT", fault, 1);
    run_stage(&s, o);
    unsetenv("PNR_FAULT");
    close_stage(&s);
}

/* Nearly all of dwell 3 is lost, bit by bit: it is refused when some of it has gone ahead. */
static const char *const lost_bit_by_bit[] = {
    "source.pace=real-time", "source.lost=1000+77,152450+20000,172451+20000,192452+10748,300000+1",
    NULL};

TEST(test_ahead)
{
    const char *fast[] = {"source.pace=fast", lost_bit_by_bit[1], NULL};
    const fault_ahead *counts = ahead_of_fault();
    outcome live = {0}, recorded = {0};

    run_ahead(fast, "", &recorded);
    assert_int_equal(recorded.code, PNR_OK);
    assert_int_equal(recorded.n, LONG_DWELLS - 1);
    assert_int_equal(counts->n_uploads, 0); /* nobody waits for a recording */
    /* On a busy machine whole dwells arrive at once: then it is tried again. */
    for (int tries = 0; tries == 0 || counts->n_kept < 2; tries++) {
        assert_true(tries < 5);
        run_ahead(lost_bit_by_bit, "", &live);
        assert_int_equal(live.code, PNR_OK);
        assert_same_reports(&live, &recorded);
        assert_same_account(&live.account, &recorded.account);
        print_message("%llu times ahead: %llu submits began with it, %llu did not come\n",
                      (unsigned long long)counts->n_uploads, (unsigned long long)counts->n_kept,
                      (unsigned long long)counts->n_dropped);
        assert_int_equal(counts->n_broken, 0);
        assert_in_range(counts->n_kept, 0, LONG_DWELLS - 1);
        assert_in_range(counts->n_dropped, 0, 1);
        assert_in_range(counts->n_uploads, counts->n_kept, 3 * LONG_DWELLS);
    }
    forget_outcome(&live);
    forget_outcome(&recorded);
}

/* A GPU that uploads what comes ahead gives the bits of one that uploads all at once. */
TEST(test_ahead_cuda)
{
    const char *fast[] = {"engine.name=cuda", "source.pace=fast", lost_bit_by_bit[1], NULL};
    const char *live[] = {"engine.name=cuda", lost_bit_by_bit[0], lost_bit_by_bit[1], NULL};
    outcome ahead = {0}, whole = {0};

    run_ahead(fast, "", &whole);
    if (whole.code == PNR_EUNAVAILABLE) {
        print_message("skipped: %s\n", whole.error.text);
        return;
    }
    assert_int_equal(whole.code, PNR_OK);
    run_ahead(live, "", &ahead);
    assert_same_reports(&ahead, &whole);
    assert_same_account(&ahead.account, &whole.account);
    forget_outcome(&ahead);
    forget_outcome(&whole);
}

/* EAGAIN is not an error; a device that is lost while it waits for the remaining samples is. */
TEST(test_ahead_fails)
{
    static const char *const live[] = {"source.pace=real-time", NULL};
    const fault_ahead *counts = ahead_of_fault();
    outcome o = {0};

    run_ahead(live, "upload_ahead=EAGAIN", &o);
    assert_int_equal(o.code, PNR_OK);
    assert_int_equal(o.n, LONG_DWELLS);
    assert_int_equal(counts->n_uploads, 0);
    for (int tries = 0; tries < 5 && o.code != PNR_ELOST; tries++) /* as in test_ahead */
        run_ahead(live, "upload_ahead:2=ELOST", &o);
    assert_int_equal(o.code, PNR_ELOST);
    assert_true(o.n < LONG_DWELLS);
    forget_outcome(&o);
}
