/* SPDX-License-Identifier: MIT */
/* The acquisition thread alone: the samples of a recording are in the ring, refused samples are
 * counted, and it stops. */
#include "pipeline/acquisition.h"

#include "base/clock.h"
#include "tests/fixture/test.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 10, CAPACITY = 4 * N };

/* A recording of i16 samples 0, 1, 2, ... and a ring of four windows. */
typedef struct stage {
    char path[256];
    pnr_config config;
    int16_t memory[CAPACITY];
    int16_t spare[CAPACITY];
    pnr_acquisition a;
    volatile int stop;
    pthread_t thread;
} stage;

static void open_stage(stage *s, size_t n_samples, size_t chunk, const char *lost)
{
    const char *folder = getenv("TMPDIR");
    pnr_error error;

    memset(s, 0, sizeof *s);
    snprintf(s->path, sizeof s->path, "%s/pnr-acquisition.XXXXXX",
             folder != NULL ? folder : "/tmp");

    FILE *file = fdopen(mkstemp(s->path), "wb");

    assert_non_null(file);
    for (size_t i = 0; i < n_samples; i++) {
        const int16_t sample = (int16_t)i;

        assert_int_equal(fwrite(&sample, sizeof sample, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
    pnr_config_init(&s->config);
    assert_int_equal(pnr_config_set(&s->config, "source.format=i16", &error), PNR_OK);
    assert_int_equal(pnr_config_set(&s->config, "source.rate_hz=1000", &error), PNR_OK);
    assert_int_equal(pnr_config_set(&s->config, lost, &error), PNR_OK);
    strcpy(s->config.source.input, s->path);

    const pnr_ring_shape shape = {.memory = s->memory,
                                  .capacity = CAPACITY,
                                  .sample_bytes = sizeof *s->memory,
                                  .n_samples = N,
                                  .n_periods = 1,
                                  .max_dwells = 1,
                                  .depth = 1};

    assert_int_equal(pnr_ring_create(&shape, &s->a.ring, &error), PNR_OK);
    if (pnr_source_open(&s->config, &s->a.source, &error) != PNR_OK)
        fail_msg("%s", error.text);
    s->a.chunk = chunk;
    s->a.spare = s->spare;
    s->a.rate_hz = s->config.source.rate_hz;
    s->a.stop = &s->stop;
}

static void close_stage(stage *s)
{
    pnr_source_close(s->a.source);
    pnr_ring_destroy(s->a.ring);
    pnr_config_clear(&s->config);
    unlink(s->path);
}

static void *run(void *argument)
{
    pnr_acquisition_run(argument);
    return NULL;
}

static void start(stage *s)
{
    assert_int_equal(pthread_create(&s->thread, NULL, run, &s->a), 0);
}

/* The next window; false at the end. */
static bool next(stage *s, pnr_windows *out)
{
    int code;

    while ((code = pnr_ring_acquire(s->a.ring, 1, out)) == PNR_EAGAIN)
        (void)pnr_ring_wait(s->a.ring, 0, NULL, 10000000);
    assert_true(code == PNR_OK || code == PNR_EEND);
    return code == PNR_OK;
}

static int16_t sample_at(const pnr_windows *w, size_t i)
{
    const pnr_span *span = &w->spans[i >= w->spans[0].n_samples];

    return ((const int16_t *)span->data)[i - (span == w->spans ? 0 : w->spans[0].n_samples)];
}

/* Reads all; the samples of a recording without holes are their own index. Returns the windows
 * seen. */
static size_t drain(stage *s)
{
    pnr_windows w;
    size_t n = 0;

    for (; next(s, &w); n++) {
        for (size_t i = 0; i < N; i++)
            assert_int_equal(sample_at(&w, i), (int16_t)(w.first_sample + i));
        pnr_ring_release(s->a.ring);
    }
    return n;
}

static pnr_account account_of(const stage *s)
{
    pnr_account account = {0};

    pnr_ring_account(s->a.ring, &account);
    return account;
}

/* --- the tests --- */

TEST(test_every_sample)
{
    for (size_t chunk = 1; chunk <= CAPACITY; chunk += 3) {
        stage s;

        open_stage(&s, 1007, chunk, "source.lost=");
        start(&s);
        assert_int_equal(drain(&s), 100);
        pthread_join(s.thread, NULL);
        assert_int_equal(s.a.code, PNR_OK);
        assert_int_equal(account_of(&s).skipped_tail, 7);
        assert_true(pnr_ring_positions(s.a.ring) == 1007);
        assert_true(s.a.start_utc_ns > 0);
        close_stage(&s);
    }
}

TEST(test_gap)
{
    stage s;
    pnr_windows w;
    size_t n = 0;

    open_stage(&s, 100, 7, "source.lost=12+3, 40+60");
    start(&s);
    for (; next(&s, &w); n++) {
        for (size_t i = 0; i < N; i++) { /* the file continues where the gap ends */
            const size_t at = (size_t)w.first_sample + i;
            const size_t hole = at >= 100 ? 63 : at >= 15 ? 3 : 0;
            const bool is_hole = at >= 12 && at < 15;

            assert_int_equal(sample_at(&w, i), is_hole ? 0 : (int16_t)(at - hole));
        }
        assert_int_equal(w.lost[0], w.first_sample == 10 ? 3 : 0);
        assert_int_equal(w.lost_before, w.first_sample == 100 ? 60 : 0);
        pnr_ring_release(s.a.ring);
    }
    pthread_join(s.thread, NULL);
    assert_int_equal(n, 10);
    assert_int_equal(account_of(&s).lost_source, 63);
    assert_int_equal(account_of(&s).lost_ring_full, 0);
    close_stage(&s);
}

/* Without a reader a recording waits, and either flag stops it. */
TEST(test_stop)
{
    for (int by_cancel = 0; by_cancel < 2; by_cancel++) {
        stage s;

        open_stage(&s, 1000, 8, "source.lost=");
        start(&s);
        while (pnr_ring_positions(s.a.ring) < CAPACITY)
            usleep(1000);
        if (by_cancel)
            atomic_store(&s.a.cancel, 1);
        else
            __atomic_store_n(&s.stop, 1, __ATOMIC_SEQ_CST);
        pthread_join(s.thread, NULL);
        assert_int_equal(s.a.code, PNR_OK);
        assert_true(pnr_ring_positions(s.a.ring) == CAPACITY);
        assert_int_equal(account_of(&s).lost_ring_full, 0);
        close_stage(&s);
    }
}

/* With a flag set before the start nothing is read. */
TEST(test_stopped_before)
{
    stage s;
    pnr_windows w;

    open_stage(&s, 1000, 8, "source.lost=");
    s.stop = 1;
    start(&s);
    pthread_join(s.thread, NULL);
    assert_true(pnr_ring_positions(s.a.ring) == 0);
    assert_int_equal(pnr_ring_acquire(s.a.ring, 1, &w), PNR_EEND);
    close_stage(&s);
}

/* Without a reader a live source continues; samples that find no space are lost, each counted
 * once. */
TEST(test_live)
{
    for (size_t chunk = 1; chunk <= CAPACITY; chunk += 13) {
        stage s;

        open_stage(&s, 1003, chunk, "source.lost=500+100");
        s.a.is_live = true;
        start(&s);
        pthread_join(s.thread, NULL);
        assert_int_equal(s.a.code, PNR_OK);
        assert_true(pnr_ring_positions(s.a.ring) == 1103);
        assert_int_equal(drain(&s), 4);

        const pnr_account a = account_of(&s);

        assert_int_equal(a.lost_ring_full, 1003 - CAPACITY);
        assert_int_equal(a.lost_source, 100);
        assert_true(a.positions + CAPACITY ==
                    1103); /* the reader counts the windows that it has seen */
        close_stage(&s);
    }
}

/* The last sample of a dwell never waits for a later one, at any size of a live read. */
TEST(test_live_reads_end_with_dwells)
{
    stage s;
    pnr_windows w;
    uint64_t before_ns = 0;
    size_t n = 0;

    open_stage(&s, 3 * N, CAPACITY, "source.lost=");
    s.a.is_live = true;
    s.a.dwell = N;
    s.a.first_window = 0;
    start(&s);
    pthread_join(s.thread, NULL);
    for (; next(&s, &w); n++) {
        assert_true(w.ready_ns[0] > before_ns); /* each was committed on its own */
        before_ns = w.ready_ns[0];
        pnr_ring_release(s.a.ring);
    }
    assert_int_equal(n, 3);
    close_stage(&s);
}

/* No sample arrives before its time: 300 at 1000 Hz. */
TEST(test_pace)
{
    stage s;
    pnr_windows w;

    open_stage(&s, 300, 4, "source.lost=100+20");
    s.a.is_live = s.a.is_paced = true;

    const uint64_t began_ns = pnr_clock_ns();

    start(&s);
    while (next(&s, &w)) {
        assert_true(pnr_clock_ns() - began_ns >= (w.first_sample + N) * 1000000);
        assert_true(w.ready_ns[0] - began_ns >= (w.first_sample + N) * 1000000);
        pnr_ring_release(s.a.ring);
    }
    pthread_join(s.thread, NULL);
    assert_true(pnr_ring_positions(s.a.ring) == 320);
    close_stage(&s);
}

/* A stop does not wait for samples whose time is far away. */
TEST(test_pace_stopped)
{
    stage s;

    open_stage(&s, 300, 30, "source.lost=");
    s.a.is_live = s.a.is_paced = true;
    s.a.rate_hz = (pnr_rational){1, 3600}; /* 30 samples: 30 hours */
    start(&s);
    while (atomic_load(&s.a.start_utc_ns) == 0) /* the first samples have been read */
        usleep(1000);
    __atomic_store_n(&s.stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(s.thread, NULL);
    assert_int_equal(s.a.code, PNR_OK);
    /* Samples that were read early are counted. */
    assert_true(pnr_ring_positions(s.a.ring) == 30);
    close_stage(&s);
}

/* Writes n samples into the FIFO. */
static void write_zeros(int fd, size_t n)
{
    static const int16_t zeros[10000];

    assert_true(n <= COUNT(zeros));
    assert_int_equal(write(fd, zeros, n * sizeof zeros[0]), n * sizeof zeros[0]);
}

/* A source stands still for a second: the time of the host moves by it. When its samples come at
 * once after all, the time moves back. */
TEST(a_source_stands_still)
{
    static pnr_events events;
    pnr_event event;
    int64_t first, start_ns, utc_ns;
    stage s;
    int fd;

    pnr_events_begin(&events);
    open_stage(&s, 10, 10, "source.lost=");
    pnr_source_close(s.a.source);
    assert_int_equal(unlink(s.path), 0);
    assert_int_equal(mkfifo(s.path, 0600), 0);
    assert_true((fd = open(s.path, O_RDWR | O_CLOEXEC)) >= 0);
    assert_int_equal(pnr_source_open(&s.config, &s.a.source, NULL), PNR_OK);
    s.a.is_live = s.a.is_clocked = true;
    s.a.events = &events;
    write_zeros(fd, 10);
    start(&s);
    while ((first = atomic_load(&s.a.start_utc_ns)) == 0)
        usleep(1000);
    sleep(1);
    while ((start_ns = atomic_load(&s.a.start_utc_ns)) == first) {
        write_zeros(fd, 10);
        usleep(10000);
    }
    assert_true(start_ns - first >= 900 * 1000000);
    assert_true(start_ns + (int64_t)pnr_ring_positions(s.a.ring) * 1000000 <= pnr_clock_utc_ns());
    assert_int_equal(pnr_acquisition_start(&s.a, &utc_ns), PNR_TIME_HOST);
    assert_true(utc_ns == start_ns);
    while (!pnr_event_take(&events, &event))
        usleep(1000);
    assert_int_equal(event.kind, PNR_EVENT_TIME_MOVED);
    assert_true(fabs(event.numbers[0] - (double)(start_ns - first) * 1e-9) < 1e-6);
    for (int i = 0; atomic_load(&s.a.start_utc_ns) != first; i++) {
        assert_true(i < 100000);
        write_zeros(fd, 10000);
        usleep(1000);
    }
    atomic_store(&s.a.cancel, 1);
    write_zeros(fd, 10);
    pthread_join(s.thread, NULL);
    close(fd);
    close_stage(&s);
}

TEST(test_error)
{
    stage s;

    open_stage(&s, 1000, 8, "source.lost=");
    assert_int_equal(truncate(s.path, 200), 0);
    start(&s);
    assert_int_equal(drain(&s), 10);
    pthread_join(s.thread, NULL);
    assert_int_equal(s.a.code, PNR_EDATA);
    assert_int_equal(s.a.error.code, PNR_EDATA);
    assert_non_null(strstr(s.a.error.text, "cut short"));
    close_stage(&s);
}
