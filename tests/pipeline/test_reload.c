/* SPDX-License-Identifier: MIT */
/* The configuration is read again during a run. Each part gives the results of a run with that
 * configuration from that sample on, and no sample is lost. */
#include "tests/fixture/pipeline_fixture.h"
#include "tests/fixture/random.h"

#include <fcntl.h>
#include <sys/stat.h>

#ifdef __SANITIZE_THREAD__
enum { N_RELOADS = 10 };
#else
enum { N_RELOADS = 50 };
#endif

enum {
    DWELLS = 400,
    BEYOND = 20000,
    MOST_CHANGES = 64,
    MOST_RUNS = MOST_CHANGES + 1,
    MOST_SETTINGS = 6
};

static const char *const base[] = {"source.rate_hz=127000", "radar.max_range_m=0", "ring.seconds=3",
                                   "engine.deadline=1000",  "engine.name=cpu",     NULL};

/* The settings of one reload, after those of the stage. */
typedef struct change {
    const char *settings[MOST_SETTINGS];
    const char *refusal; /* part of the message; NULL: it is taken */
} change;

/* The writer of a FIFO, which asks for the changes one after the other. */
typedef struct station {
    stage s;
    outcome o;
    subscriber heard;
    const change *changes;
    size_t n_changes;
    bool is_late;                 /* a change is read only after the end of the stream */
    atomic_bool is_closed;        /* the whole stream is written */
    size_t n_written;             /* samples */
    _Atomic size_t n_read;        /* changes that were read */
    _Atomic size_t n_runs;        /* runs that have a result */
    size_t n_first[MOST_RUNS];    /* number of the first result of each run */
    char said[MOST_CHANGES][300]; /* errors of reading */
    pthread_t thread;
} station;

static int fill_config(const stage *s, const change *c, pnr_config *out, pnr_error *error)
{
    char *text = NULL;
    size_t n = 0;
    FILE *stream = open_memstream(&text, &n);
    int code;

    pnr_config_print(&s->config, stream);
    assert_int_equal(fclose(stream), 0);
    code = pnr_config_parse(out, text, n, "stage", error);
    free(text);
    for (size_t i = 0; c != NULL && code == PNR_OK && c->settings[i] != NULL; i++)
        code = pnr_config_set(out, c->settings[i], error);
    return code;
}

static int configure(void *context, pnr_config *config, pnr_error *error)
{
    station *t = context;
    const size_t k = atomic_load(&t->n_read);
    const int code = fill_config(&t->s, &t->changes[k], config, error);

    atomic_store(&t->n_read, k + 1);
    if (t->is_late) {
        while (!atomic_load(&t->is_closed))
            usleep(1000);
        usleep(500000);
    }
    return code;
}

/* Counts the runs, in the publishing thread. */
static void note_run(void *context, size_t n)
{
    station *t = context;
    const pnr_report *r = &t->o.reports[n - 1];
    const size_t i = atomic_load(&t->n_runs);

    if (n > 1 && strcmp(r->run, r[-1].run) == 0)
        return;
    assert_true(i < MOST_RUNS);
    t->n_first[i] = n - 1;
    atomic_store(&t->n_runs, i + 1);
}

/* The recording of the stage, again and again. */
static const unsigned char *sample_at(const station *t, size_t position)
{
    return t->s.bytes + position % t->s.n_positions * t->s.sample_bytes;
}

static void write_samples(station *t, int fd, size_t n)
{
    while (n > 0) {
        const size_t to_end = t->s.n_positions - t->n_written % t->s.n_positions;
        const size_t part = n < to_end ? n : to_end;

        assert_int_equal(write(fd, sample_at(t, t->n_written), part * t->s.sample_bytes),
                         part * t->s.sample_bytes);
        t->n_written += part;
        n -= part;
    }
}

/* Writes until the number of runs with a result is above n_runs, and n_read changes are read. */
static void write_until(station *t, int fd, size_t n_read, size_t n_runs)
{
    while (atomic_load(&t->n_read) < n_read || atomic_load(&t->n_runs) <= n_runs) {
        write_samples(t, fd, N);
        usleep(5000);
    }
}

/* Asks for each change amid samples, and writes until it has its first result or is refused. The
 * first run has a result before the first change. */
static void *write_stream(void *argument)
{
    station *t = argument;
    const int fd = open(t->s.path, O_WRONLY | O_CLOEXEC);
    size_t n_taken = 0;

    assert_true(fd >= 0);
    write_until(t, fd, 0, 0);
    for (size_t k = 0; k < t->n_changes; k++) {
        write_samples(t, fd, 1 + below(30 * N));
        __atomic_store_n(&t->o.reload, 1, __ATOMIC_RELAXED);
        write_samples(t, fd, 1 + below(30 * N));
        n_taken += t->changes[k].refusal == NULL && !t->is_late;
        write_until(t, fd, k + 1, t->is_late ? 0 : n_taken);
    }
    write_samples(t, fd, 40 * N);
    close(fd);
    atomic_store(&t->is_closed, true);
    return NULL;
}

static void run_station(station *t, const change *changes, size_t n, const char *const *more)
{
    open_stage(&t->s, DWELLS * N, base);
    set_stage_all(&t->s, more);
    t->changes = changes;
    t->n_changes = n;
    t->o.configure = configure;
    t->o.configure_context = t->o.also_context = t;
    t->o.also = note_run;
    assert_int_equal(mkfifo(t->s.path, 0600), 0);
    if (t->s.config.publisher.pack == 1)
        subscribe(&t->s, &t->heard, 100000);
    assert_int_equal(pthread_create(&t->thread, NULL, write_stream, t), 0);
    run_stage(&t->s, &t->o);
    if (t->o.code != PNR_OK)
        fail_msg("%s", t->o.error.text);
    pthread_join(t->thread, NULL);
    if (t->s.config.publisher.pack == 1)
        assert_end(&t->heard, &t->o);
}

static void close_station(station *t)
{
    forget_outcome(&t->o);
    close_stage(&t->s);
}

/* Returns the change that began a run; NULL: the start. */
static const change *change_of(const station *t, size_t run)
{
    size_t k = 0;

    for (size_t n = 0; n < run; k++)
        n += t->changes[k].refusal == NULL;
    return run > 0 ? &t->changes[k - 1] : NULL;
}

/* Runs the configuration of a run on a file of the samples from its first dwell on. */
static void run_alone(const station *t, size_t run, uint64_t first, outcome *alone)
{
    const uint64_t beyond =
        run + 1 < t->n_runs ? t->o.reports[t->n_first[run + 1]].sample + BEYOND : UINT64_MAX;
    const size_t end = beyond < t->n_written ? beyond : t->n_written;
    stage s;

    open_stage(&s, N, NULL);
    pnr_config_clear(&s.config);
    pnr_config_init(&s.config);
    assert_int_equal(fill_config(&t->s, change_of(t, run), &s.config, NULL), PNR_OK);
    set_stage(&s, "publisher.endpoint=");
    set_stage(&s, "engine.isolate=no");
    s.config.code.epoch.sample -= (int64_t)first;
    set_stage(&s, "source.pace=fast");
    snprintf(s.config.source.input, sizeof s.config.source.input, "%s", s.path);
    free(s.bytes);
    free(s.kinds);
    s.n_positions = end - first;
    s.bytes = malloc(s.n_positions * s.sample_bytes);
    s.kinds = calloc(s.n_positions, sizeof *s.kinds);
    for (size_t i = 0; i < s.n_positions; i++)
        memcpy(s.bytes + i * s.sample_bytes, sample_at(t, first + i), s.sample_bytes);
    save_stage(&s, 0);
    run_stage(&s, alone);
    if (alone->code != PNR_OK)
        fail_msg("%s", alone->error.text);
    close_stage(&s);
}

/* Compares the results of a run with those of a run alone from its first sample on. Returns the end
 * of its last dwell. */
static uint64_t check_run(station *t, size_t run)
{
    const size_t begin = t->n_first[run];
    const size_t end = run + 1 < t->n_runs ? t->n_first[run + 1] : t->o.n;
    const uint64_t first = t->o.reports[begin].sample;
    outcome alone = {0};
    uint64_t dwell;

    run_alone(t, run, first, &alone);
    assert_true(run + 1 < t->n_runs ? alone.n >= end - begin : alone.n == end - begin);
    for (size_t i = begin; i < end; i++) {
        pnr_report *r = &t->o.reports[i];

        r->sample -= first;
        r->flags &= ~(unsigned)PNR_FLAG_LATE;
        r->has_time = false; /* a FIFO has the time of the host */
        r->time_ns = 0;
        r->time_source = PNR_TIME_NONE;
        if (!is_same_report(r, &alone.reports[i - begin]))
            fail_msg("run %zu of %zu: result %zu at sample %llu is not that of a run alone", run,
                     t->n_runs, i - begin, (unsigned long long)(r->sample + first));
    }
    dwell = alone.n > 1 ? alone.reports[1].sample : N;
    forget_outcome(&alone);
    return first + (end - begin) * dwell;
}

/* Every run is as it is alone, on the grid of its code, and begins less than a period after the end
 * of the one before. */
static void check_runs(station *t, size_t n_runs)
{
    uint64_t end = 0, skipped = 0;
    char counted[40];

    assert_int_equal(t->n_runs, n_runs);
    for (size_t run = 0; run < n_runs; run++) {
        const uint64_t first = t->o.reports[t->n_first[run]].sample;

        assert_in_range(first, end, end + 1023);
        skipped += first - end;
        end = check_run(t, run);
    }
    assert_int_equal(t->o.account.positions, t->n_written);
    assert_true(pnr_account_lossless(&t->o.account));
    assert_int_equal(t->o.account.skipped_alignment, skipped);
    if (t->s.config.publisher.pack > 1)
        return; /* the subscriber reads no packs */
    snprintf(counted, sizeof counted, "\"reloaded\":%zu,", n_runs - 1);
    assert_non_null(strstr(t->heard.text, counted));
    assert_int_equal(t->heard.n_results, t->o.n);
}

/* One process, a worker, and a stream that cannot wait, with a ring for a busy machine. */
static const char *const ways[][5] = {
    {"engine.isolate=no", NULL},
    {"engine.isolate=yes", NULL},
    {"engine.isolate=yes", "source.pace=real-time", "publisher.pack=7", "ring.seconds=30", NULL},
};

TEST(test_other_configurations)
{
    static const change changes[] = {
        {.settings = {"detector.pfa=1e-9"}},
        {.settings = {"code.degree=8"}},
        {.settings = {"code.degree=6", "code.epoch=17"}},
        {.settings = {"dwell.periods=4", "dwell.combine=coherent"}},
        {.settings = {"code.degree=9", "dwell.periods=8", "dwell.combine=doppler",
                      "dwell.looks=2"}},
        {.settings = {"window.correlation=linear", "radar.max_range_m=90000"}},
        {.settings = {"engine.batch=1", "detector.subtract=1", "engine.depth=1"}},
        {.settings = {"radar.zero=direct-path"}},
        {.settings = {NULL}},
    };

    for (size_t w = 0; w < 2; w++) {
        station t = {0};

        run_station(&t, changes, COUNT(changes), ways[w]);
        check_runs(&t, COUNT(changes) + 1);
        close_station(&t);
    }
}

/* In the third way a pack is not full when another run begins. */
TEST(test_many_reloads)
{
    static const change odd = {.settings = {"detector.pfa=1e-6"}};
    static const change even = {.settings = {"code.degree=8"}};
    change changes[N_RELOADS];

    for (size_t k = 0; k < COUNT(changes); k++)
        changes[k] = k % 2 ? odd : even;
    for (size_t w = 0; w < COUNT(ways); w++) {
        station t = {0};
        const size_t n = w == 2 ? 10 : COUNT(changes);

        run_station(&t, changes, n, ways[w]);
        check_runs(&t, n + 1);
        close_station(&t);
    }
}

/* The stream ends while the parts of a change are opened. They use parts of the run. */
TEST(test_end_while_opening)
{
    static const change changes[] = {{.settings = {"detector.pfa=1e-6"}}};

    for (size_t w = 0; w < COUNT(ways); w++) {
        station t = {.is_late = true};

        run_station(&t, changes, 1, ways[w]);
        check_runs(&t, 1);
        close_station(&t);
    }
}

/* What is wrong, or needs a new start, is refused with the key and its value; the run goes on. */
TEST(test_refused)
{
    static const change changes[] = {
        {{"code.degree=99"}, "code.degree = \"99\""},
        {{"code.no_such=1"}, "no_such"},
        {{"source.rate_hz=200000"}, "source.rate_hz = \"200000\", and it was \"127000\""},
        {{"stream.name=other"}, "stream.name = \"other\""},
        {{"ring.seconds=4"}, "ring.seconds = \"4\""},
        {{"publisher.endpoint="}, "publisher.endpoint = \"\""},
        {{"recorder.results=/tmp/x.csv"}, "recorder.results"},
        {{"engine.name=reference", "engine.isolate=auto"}, "engine.isolate = \"auto\""},
        {{"code.type=barker", "code.length=8"}, "8"},
        {{"code.degree=18"}, "at least ring.bytes = 2097144"},
        {{"code.degree=2"}, "dwells of at least"},
        {{"engine.method=walsh", "code.type=zadoff-chu", "code.length=127"}, "walsh"},
        {{"radar.zero=direct-path", "radar.zero_state_path=/no/such/folder/state"}, "/no/such"},
        {.settings = {"detector.pfa=1e-9"}},
    };

    for (size_t w = 0; w < 2; w++)
        for (size_t k = 0; k + 1 < COUNT(changes); k++) {
            const change two[] = {changes[k], changes[COUNT(changes) - 1]};
            station t = {0};

            run_station(&t, two, 2, ways[w]);
            check_runs(&t, 2);
            assert_int_equal(t.heard.events[PNR_EVENT_RELOAD_REFUSED].count, 1);
            if (strstr(t.heard.events[PNR_EVENT_RELOAD_REFUSED].text, changes[k].refusal) == NULL)
                fail_msg("no \"%s\" in: %s", changes[k].refusal,
                         t.heard.events[PNR_EVENT_RELOAD_REFUSED].text);
            close_station(&t);
        }
}
