/* SPDX-License-Identifier: MIT */
/* No thread of pnradar allocates or frees memory while results flow. Results for which libzmq finds
 * no memory are counted. */
#include "correlator/engines.h"
#include "tests/fixture/pipeline_fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_COUNTED 0 /* the sanitizers have their own malloc */
#else
#define IS_COUNTED 1
#endif

static _Atomic int is_counting;
static _Atomic long n_calls, n_of_zmq;
static _Atomic(void *) last_caller;

/* Allocations of this size are refused in this thread: those of messages. */
static _Thread_local size_t refuse_from, refuse_to;

#if IS_COUNTED
static bool is_from(void *caller, const char *library)
{
    Dl_info info;

    return dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
           strstr(info.dli_fname, library) != NULL;
}

static bool is_named(const char *prefix)
{
    char thread[17] = "";

    return prctl(PR_GET_NAME, thread) == 0 && strncmp(thread, prefix, strlen(prefix)) == 0;
}

/* The GPU driver's own, libzmq's own threads, and what it does in ours: C++, so through operator
 * new too. pnradar has no C++. */
static bool is_zmq(void *caller)
{
    return is_named("ZMQ") || is_from(caller, "libzmq") || is_from(caller, "libstdc++") ||
           is_from(caller, "libcuda");
}

static void note(void *caller)
{
    if (atomic_load(&is_counting) == 0 || is_named("listener"))
        return;
    if (is_zmq(caller)) {
        atomic_fetch_add(&n_of_zmq, 1);
    } else {
        atomic_fetch_add(&n_calls, 1);
        atomic_store(&last_caller, caller);
    }
}

#define EXPORT __attribute__((visibility("default"), noinline))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

EXPORT void *malloc(size_t size)
{
    note(__builtin_return_address(0));
    if (size >= refuse_from && size < refuse_to) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    note(__builtin_return_address(0));
    return __libc_calloc(count, size);
}

EXPORT void *realloc(void *memory, size_t size)
{
    note(__builtin_return_address(0));
    return __libc_realloc(memory, size);
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size)
{
    note(__builtin_return_address(0));
    *memory = __libc_memalign(alignment, size);
    return *memory != NULL ? 0 : ENOMEM;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    note(__builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

EXPORT void free(void *memory)
{
    if (memory != NULL)
        note(__builtin_return_address(0));
    __libc_free(memory);
}
#endif

/* --- nothing is allocated --- */

enum { DWELLS = 3000, COUNT_FROM = 500 };

/* One in each thread, to see that the count sees them. */
typedef struct run_count {
    size_t n;
    void *volatile extra; /* allocated by the tap */
    bool is_tapping;
} run_count;

static void count(void *context, const pnr_report *report)
{
    run_count *c = context;

    (void)report;
    c->n++;
    if (c->n == COUNT_FROM) {
        atomic_store(&n_calls, 0);
        atomic_store(&n_of_zmq, 0);
        atomic_store(&is_counting, 1);
    }
    if (c->is_tapping && c->n == COUNT_FROM + 1)
        c->extra = malloc(10);
    if (c->n == DWELLS - 1)
        atomic_store(&is_counting, 0);
}

/* Fills the ring as a source would, and allocates once when asked. Counting starts when result
 * COUNT_FROM is published, which may be long after it was found, so the second half of the samples
 * waits for that. */
static void feed(void *context, pnr_ring *ring, const pnr_plan *plan, void *memory, size_t capacity,
                 const volatile int *stop)
{
    const bool *is_allocating = context;
    bool is_done = !*is_allocating, has_begun = false;

    (void)memory;
    for (size_t left = DWELLS * plan->n_samples; left > 0 && *stop == 0;) {
        void *data;
        size_t n;

        has_begun |= atomic_load(&is_counting) != 0;
        if (!has_begun && left <= DWELLS / 2 * plan->n_samples) {
            sched_yield();
            continue;
        }
        if (pnr_ring_reserve(ring, left < 500 ? left : 500, &data, &n) != PNR_OK) {
            (void)pnr_ring_wait_space(ring, 50000000);
            continue;
        }
        if (!is_done && has_begun) {
            void *volatile extra = malloc(10);

            atomic_store(&is_counting, atomic_load(&is_counting)); /* not moved after the free */
            free(extra);
            is_done = true;
        }
        memset(data, 1, n * 4);
        pnr_ring_commit(ring, n);
        left -= n;
        (void)capacity;
    }
}

static void explain(void)
{
    Dl_info info = {0};
    void *caller = atomic_load(&last_caller);

    if (caller != NULL && dladdr(caller, &info) != 0)
        print_message("last by %s + %#zx in %s\n", info.dli_sname != NULL ? info.dli_sname : "?",
                      (size_t)((char *)caller - (char *)info.dli_fbase), info.dli_fname);
}

/* Calls of pnradar's own between result COUNT_FROM and the last but one; -1: the engine is not
 * here.
 */
static long calls_of(const char *const *settings, const char *engine, bool is_tapping,
                     pnr_pipeline_feed feeder, bool is_feeding)
{
    stage s;
    subscriber heard;
    pnr_account account;
    pnr_error error = {0};
    run_count c = {.is_tapping = is_tapping};
    volatile int stop = 0;
    const pnr_pipeline_options options = {.stop = &stop,
                                          .tap = count,
                                          .tap_context = &c,
                                          .feed = feeder,
                                          .feed_context = &is_feeding};
    const pnr_engine_ops *ops;

    if (pnr_engine_find(strchr(engine, '=') + 1, 0, &ops, &error) != PNR_OK) {
        print_message("skipped: %s\n", error.text);
        return -1;
    }
    open_stage(&s, DWELLS * N, settings);
    set_stage(&s, engine);
    save_stage(&s, 0);
    subscribe(&s, &heard, 100000);

    const int code = pnr_pipeline_run(&s.config, &options, &account, &error);

    atomic_store(&is_counting, 0);
    pthread_join(heard.thread, NULL);
    free(c.extra);
    close_stage(&s);
    assert_int_equal(code, PNR_OK);
    assert_int_equal(c.n, DWELLS);
    assert_true(heard.n_results > 0);
    return atomic_load(&n_calls);
}

static const char *const plain[] = {"source.chunk=100", "ring.bytes=32K", NULL};

/* The count counts: the processing thread's, the acquisition thread's, and libzmq's apart. */
TEST(test_count)
{
    if (!IS_COUNTED) {
        print_message("skipped: a sanitizer has its own malloc\n");
        return;
    }
    assert_int_equal(calls_of(plain, "engine.name=reference", true, NULL, false), 1);
    assert_true(atomic_load(&n_of_zmq) > 0);
    assert_int_equal(calls_of(plain, "engine.name=reference", false, feed, true), 2);
    assert_int_equal(calls_of(plain, "engine.name=reference", false, feed, false), 0);
}

static void nothing(const char *const *settings, const char *engine)
{
    if (!IS_COUNTED) {
        print_message("skipped: a sanitizer has its own malloc\n");
        return;
    }

    const long n = calls_of(settings, engine, false, NULL, false);

    if (n > 0)
        explain();
    assert_true(n <= 0);
}

/* Everything that a stream may ask of the two threads. */
static const char *const rich[] = {"source.chunk=33",
                                   "ring.bytes=64K",
                                   "source.lost=1000+20, 20000+30",
                                   "source.format=cf32",
                                   "source.tune_hz=1234.5",
                                   "source.start_time=2026-11-21T02:40:12Z",
                                   "detector.oversample=2",
                                   "target.2.range_m=11000",
                                   "target.2.amplitude=0.05",
                                   "publisher.profile=power",
                                   NULL};
static const char *const live[] = {"source.pace=real-time", "source.chunk=50", "ring.bytes=2M",
                                   NULL};
/* Awake for 1.5 s, and every result late: a status and a warning are sent. The direct path is
 * tracked, raises an alarm, and is kept in its file. */
TEST(test_late)
{
    const char *folder = getenv("TMPDIR");
    char path[300], keep[330];
    const char *const late[] = {"source.pace=real-time",
                                "source.rate_hz=250000",
                                "engine.wait=spin",
                                "engine.deadline=1e-9",
                                "radar.max_range_m=0",
                                "ring.bytes=2M",
                                "radar.zero=direct-path",
                                "radar.zero_alarm_m=1e-3",
                                "echo.leak_amplitude=0.1",
                                keep,
                                NULL};

    snprintf(path, sizeof path, "%s/pnr.zero.%d", folder != NULL ? folder : "/tmp", (int)getpid());
    snprintf(keep, sizeof keep, "radar.zero_state_path=%s", path);
    setenv("PNR_LOG", "info", 1);
    nothing(late, "engine.name=reference");
    setenv("PNR_LOG", "quiet", 1);
    assert_true(unlink(path) == 0 || !IS_COUNTED);
}

#define ON(engine)                                                                                 \
    TEST(test_##engine)                                                                            \
    {                                                                                              \
        nothing(plain, "engine.name=" #engine);                                                    \
        nothing(rich, "engine.name=" #engine);                                                     \
        nothing(live, "engine.name=" #engine);                                                     \
    }
ON(reference)
ON(cpu)
ON(cuda)

/* --- libzmq finds no memory for a message --- */

enum { FEW = 50 };

/* Results 10..19 find none. A message is longer than what libzmq keeps in place, shorter than its
 * queues' blocks. */
static void starve(void *context, size_t n)
{
    (void)context;
    refuse_from = n >= 10 && n < 20 ? 200 : 0;
    refuse_to = n >= 10 && n < 20 ? 4000 : 0;
}

TEST(test_refused)
{
    stage s;
    subscriber heard;
    outcome o = {.also = starve};

    if (!IS_COUNTED) {
        print_message("skipped: a sanitizer has its own malloc\n");
        return;
    }
    open_stage(&s, FEW * N, NULL);
    save_stage(&s, 0);
    subscribe(&s, &heard, 1000);
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_OK);
    assert_int_equal(o.account.results, FEW);
    assert_int_equal(o.account.unsent_publish_refused, 10);
    assert_false(pnr_account_lossless(&o.account));
    assert_end(&heard, &o);
    assert_int_equal(heard.n_results, FEW - 10);
    assert_int_equal(heard.lost, 10); /* their numbers are used up */
    assert_int_equal(heard.n_gaps, 1);
    forget_outcome(&o);
    close_stage(&s);
}

/* After the last full pack nothing is sent. */
static void starve_at_the_end(void *context, size_t n)
{
    (void)context;
    refuse_from = n >= 41 ? 200 : 0;
    refuse_to = n >= 41 ? 16000 : 0;
}

TEST(test_pack_refused)
{
    static const char *const settings[] = {"publisher.pack=8", NULL};
    stage s;
    outcome o = {.also = starve_at_the_end};

    if (!IS_COUNTED) {
        print_message("skipped: a sanitizer has its own malloc\n");
        return;
    }
    open_stage(&s, FEW * N, settings);
    strcpy(s.config.publisher.endpoint, s.address);
    save_stage(&s, 0);
    run_stage(&s, &o);
    refuse_to = 0;
    assert_int_equal(o.code, PNR_OK);
    assert_int_equal(o.account.results, FEW);
    /* The pack that holds 41 waits for memory, and so what follows it finds no place. It is 41..48,
     * or began sooner where the program had nothing else to do and sent a pack that was not full.
     */
    assert_in_range(o.account.sent, 34, 40);
    assert_int_equal(o.account.sent + o.account.unsent_publish_refused, FEW);
    forget_outcome(&o);
    close_stage(&s);
}
