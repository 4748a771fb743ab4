/* SPDX-License-Identifier: MIT */
/* The engine in a worker: the same results as in one process, also when workers are killed, stopped
 * or lose their engine at random windows of a live stream. PNR_LOSSES: how often (5). */
#include "pipeline/shared.h"
#include "tests/fixture/pipeline_fixture.h"
#include "tests/fixture/random.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { DWELLS = 2000, DWELL_US = 1000, MOST_LOSSES = 1000 };

/* Live: a dwell of 127 samples every millisecond, and a ring of two seconds. */
static const char *const base[] = {"source.rate_hz=127000", "radar.max_range_m=0", "engine.batch=4",
                                   "engine.deadline=1000",  "ring.seconds=2",      NULL};

/* --- losing workers --- */

/* Returns the process of the worker, the only child; 0: there is none. */
static pid_t find_worker(void)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    pid_t found = 0;

    assert_non_null(processes);
    while (found == 0 && (entry = readdir(processes)) != NULL) {
        char path[300], state;
        int pid = 0, parent = 0;
        FILE *file;

        snprintf(path, sizeof path, "/proc/%.200s/stat", entry->d_name);
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || (file = fopen(path, "r")) == NULL)
            continue;
        if (fscanf(file, "%d (%*[^)]) %c %d", &pid, &state, &parent) == 3 && parent == getpid() &&
            state != 'Z')
            found = pid;
        fclose(file);
    }
    closedir(processes);
    return found;
}

/* The results at which a worker is lost, and how long the next result took. */
typedef struct losses {
    const outcome *of;
    int signal;
    size_t n, at[MOST_LOSSES]; /* numbers of results, ascending */
    size_t n_lost, n_timed;
    uint64_t lost_ns;
    double seconds[MOST_LOSSES];
} losses;

static void lose_worker(void *context, size_t n)
{
    losses *l = context;
    pid_t worker;

    if (l->of->reports[n - 1].flags & PNR_FLAG_RESTARTED) {
        l->seconds[l->n_timed++] = (double)(pnr_clock_ns() - l->lost_ns) * 1e-9;
        l->lost_ns = 0;
    }
    if (l->n_lost == l->n || n < l->at[l->n_lost] || l->lost_ns != 0 ||
        (worker = find_worker()) == 0)
        return;
    l->n_lost++;
    l->lost_ns = pnr_clock_ns();
    assert_int_equal(kill(worker, l->signal), 0);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_times(const char *what, losses *l)
{
    qsort(l->seconds, l->n_timed, sizeof l->seconds[0], by_size);
    if (l->n_timed > 0)
        print_message("%s: %zu workers; from the loss to the next result %.3f s, at most %.3f s\n",
                      what, l->n_timed, l->seconds[l->n_timed / 2], l->seconds[l->n_timed - 1]);
}

/* --- runs --- */

static void open_live(stage *s, const char *const *more)
{
    open_stage(s, DWELLS * N, base);
    set_stage_all(s, more);
    save_stage(s, 0);
}

/* The same stream in one process, as fast as it goes. */
static void run_undisturbed(const char *engine, outcome *o)
{
    stage s;
    const char *const more[] = {engine, NULL};

    open_live(&s, more);
    run_stage(&s, o);
    assert_int_equal(o->code, PNR_OK);
    assert_int_equal(o->n, DWELLS);
    close_stage(&s);
}

/* Nothing is lost, and all is the same but for the flags of a restart. */
static void assert_undisturbed(outcome *o, const outcome *wanted, size_t n_restarts)
{
    size_t n = 0;

    assert_int_equal(o->code, PNR_OK);
    assert_true(pnr_account_lossless(&o->account));
    assert_chain(o, N);
    for (size_t i = 0; i < o->n; i++) {
        n += (o->reports[i].flags & PNR_FLAG_RESTARTED) != 0;
        o->reports[i].flags &= ~(unsigned)(PNR_FLAG_LATE | PNR_FLAG_RESTARTED);
    }
    assert_same_reports(o, wanted);
    assert_same_account(&o->account, &wanted->account);
    assert_int_equal(n, n_restarts);
}

TEST(test_same_bits)
{
    static const char *const engines[] = {"engine.name=reference", "engine.name=cpu"};

    for (size_t e = 0; e < COUNT(engines); e++) {
        const char *const more[] = {engines[e], "engine.isolate=yes", NULL};
        outcome wanted = {0}, o = {0};
        stage s;

        run_undisturbed(engines[e], &wanted);
        open_live(&s, more);
        run_stage(&s, &o);
        assert_undisturbed(&o, &wanted, 0);
        forget_outcome(&o);
        forget_outcome(&wanted);
        close_stage(&s);
    }
}

/* Maps, several submits in detection, cells and subtracted echoes. */
TEST(test_same_maps)
{
    static const char *const kinds[][6] = {
        {"dwell.periods=8", "dwell.combine=doppler", "detector.threads=3", NULL},
        {"dwell.periods=4", "dwell.combine=doppler", "publisher.profile=power", NULL},
        {"detector.subtract=2", "detector.threads=2", NULL},
        {"source.format=cf32", "source.lost=1000+20,20000+300", "source.tune_hz=1234.5", NULL},
    };

    for (size_t k = 0; k < COUNT(kinds); k++) {
        outcome wanted = {0}, o = {0};
        stage s;

        open_stage(&s, 400 * N, base);
        set_stage(&s, "engine.name=cpu");
        set_stage_all(&s, kinds[k]);
        for (size_t r = 0; r < s.config.source.n_lost; r++)
            for (size_t i = 0; i < s.config.source.lost[r].count; i++)
                s.kinds[s.config.source.lost[r].first + i] = LOST;
        save_stage(&s, 0);
        run_stage(&s, &wanted);
        set_stage(&s, "engine.isolate=yes");
        run_stage(&s, &o);
        assert_int_equal(o.code, PNR_OK);
        assert_true(o.n > 40);
        assert_same_reports(&o, &wanted);
        assert_same_account(&o.account, &wanted.account);
        forget_outcome(&o);
        forget_outcome(&wanted);
        close_stage(&s);
    }
}

/* Number of losses of each kind. */
static size_t n_wanted(void)
{
    const char *wanted = getenv("PNR_LOSSES");

    return wanted != NULL ? strtoul(wanted, NULL, 10) : 5;
}

/* Loses workers by a signal at random results, at most n_each in a run. */
static void lose_workers(const char *what, int number, const char *const *more, size_t n_each)
{
    static losses l;
    size_t left = n_wanted();
    losses all = {0};
    outcome wanted = {0};

    run_undisturbed(more[0], &wanted);
    while (left > 0) {
        outcome o = {.also = lose_worker, .also_context = &l};
        stage s;

        l = (losses){.of = &o, .signal = number, .n = left < n_each ? left : n_each};
        for (size_t i = 0; i < l.n; i++)
            l.at[i] = 100 + i * 350 + below(300);
        open_live(&s, more);
        run_stage(&s, &o);
        /* On a busy machine a worker may be lost when all its results are on their way. */
        assert_in_range(l.n_timed, 1, l.n);
        assert_undisturbed(&o, &wanted, l.n_timed);
        for (size_t i = 0; i < l.n_timed && all.n_timed < MOST_LOSSES; i++)
            all.seconds[all.n_timed++] = l.seconds[i];
        forget_outcome(&o);
        close_stage(&s);
        left -= l.n_timed;
    }
    print_times(what, &all);
    forget_outcome(&wanted);
}

/* The usual deadline is 5 s, so a busy machine loses no other workers. */
TEST(test_killed)
{
    static const char *const live[] = {"engine.name=cpu", "engine.isolate=yes",
                                       "source.pace=real-time", NULL};

    lose_workers("killed", SIGKILL, live, 5);
}

/* A sanitizer makes a worker so slow that a busy machine stops it for longer than 0.3 s. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HANG "engine.deadline_hang=1"
#else
#define HANG "engine.deadline_hang=0.3"
#endif
TEST(test_stopped)
{
    static const char *const live[] = {"engine.name=cpu", "engine.isolate=yes",
                                       "source.pace=real-time", HANG, NULL};

    lose_workers("stopped", SIGSTOP, live, 2);
}

/* Four in a run: at the fifth cpu would stand in. */
TEST(test_killed_cuda)
{
    static const char *const live_cuda[] = {"engine.name=cuda", "engine.isolate=yes",
                                            "source.pace=real-time", NULL};
    outcome o = {0};
    stage s;

    open_live(&s, live_cuda);
    set_stage(&s, "source.pace=fast");
    run_stage(&s, &o);
    close_stage(&s);
    if (o.code == PNR_EUNAVAILABLE) {
        print_message("skipped: %s\n", o.error.text);
        return;
    }
    lose_workers("killed, cuda", SIGKILL, live_cuda, 4);
    forget_outcome(&o);
}

/* Each worker loses its engine at its 450th submit; at a fifth one in a minute cpu would stand
 * in. */
TEST(test_lost_engine)
{
    static const char *const more[] = {"engine.name=fault", "engine.isolate=yes", "engine.batch=1",
                                       "source.pace=real-time", NULL};
    static const char *const places[] = {"submit:450=ELOST", "collect:450=ELOST",
                                         "submit:450=-700"};
    static losses all;
    outcome wanted = {0};

    run_undisturbed("engine.name=reference", &wanted);
    for (size_t i = 0; i < wanted.n; i++)
        strcpy(wanted.reports[i].engine, "fault/sum");
    for (size_t i = 0; i < COUNT(places) || all.n_timed < n_wanted(); i++) {
        outcome o = {0};
        stage s;

        open_live(&s, more);
        setenv("PNR_FAULT", places[i % COUNT(places)], 1);
        run_stage(&s, &o);
        unsetenv("PNR_FAULT");
        for (size_t r = 0; r < o.n && all.n_timed < MOST_LOSSES; r++)
            if (o.reports[r].flags & PNR_FLAG_RESTARTED)
                all.seconds[all.n_timed++] = o.reports[r].latency_us * 1e-6;
        assert_undisturbed(&o, &wanted, 4);
        forget_outcome(&o);
        close_stage(&s);
    }
    print_times("lost engine", &all);
    forget_outcome(&wanted);
}

/* --- the cpu engine stands in --- */

/* Results from the engine fault, then from cpu. Returns the number of the first one from cpu. */
static size_t first_from_cpu(const outcome *o)
{
    size_t n = 0;

    while (n < o->n && strcmp(o->reports[n].engine, "fault/sum") == 0)
        n++;
    for (size_t i = n; i < o->n; i++)
        assert_string_equal(o->reports[i].engine, "cpu/walsh");
    return n;
}

TEST(test_stand_in)
{
    static const char *const more[] = {"engine.name=fault", "engine.isolate=yes", "engine.batch=1",
                                       NULL};
    outcome o = {0};
    subscriber heard;
    stage s;

    open_live(&s, more);
    setenv("PNR_FAULT", "submit:10=ELOST", 1);
    subscribe(&s, &heard, 100000);
    run_stage(&s, &o);
    unsetenv("PNR_FAULT");
    assert_int_equal(o.code, PNR_OK);
    assert_true(pnr_account_lossless(&o.account));
    assert_chain(&o, N);
    assert_int_equal(o.n, DWELLS);
    assert_int_equal(first_from_cpu(&o), 5 * 9); /* five workers, nine results each */
    assert_end(&heard, &o);
    assert_non_null(strstr(heard.text, "\"worker\":{\"deaths\":5,\"degraded\":true}"));
    assert_non_null(strstr(heard.text, "\"worker-lost\":5,\"worker-started\":5,\"degraded\":1,"));
    forget_outcome(&o);
    close_stage(&s);
}

static void mend_engine(void *context, size_t n)
{
    (void)context;
    if (n == 1000)
        unsetenv("PNR_FAULT");
}

/* It takes more than a minute, so only by hand. */
TEST(test_restored)
{
    static const char *const more[] = {"engine.name=fault",
                                       "engine.isolate=yes",
                                       "engine.batch=1",
                                       "source.pace=real-time",
                                       "source.rate_hz=3175",
                                       "radar.max_range_m=0",
                                       NULL};
    outcome o = {.also = mend_engine};
    stage s;

    if (getenv("PNR_LOSSES") == NULL) {
        print_message("skipped: PNR_LOSSES is not set, and this takes 80 s\n");
        return;
    }
    open_live(&s, more);
    setenv("PNR_FAULT", "submit:10=ELOST", 1);
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_OK);
    assert_true(pnr_account_lossless(&o.account));
    assert_chain(&o, N);
    assert_int_equal(o.n, DWELLS);
    assert_string_equal(o.reports[1200].engine, "cpu/walsh");
    assert_string_equal(o.reports[DWELLS - 1].engine, "fault/sum");
    forget_outcome(&o);
    close_stage(&s);
}

/* --- a worker that never starts, and one that hangs --- */

TEST(test_refused_at_start)
{
    static const char *const places[] = {"probe=EUNAVAILABLE", "describe=EUNSUPPORTED",
                                         "create=ENOMEMORY", "create=ELOST"};
    static const int codes[] = {PNR_EUNAVAILABLE, PNR_EUNSUPPORTED, PNR_ENOMEMORY, PNR_ELOST};

    for (size_t i = 0; i < COUNT(places); i++) {
        const char *const more[] = {"engine.name=fault", "engine.isolate=yes", NULL};
        const pnr_account nothing = {0};
        outcome o = {0};
        stage s;

        open_live(&s, more);
        setenv("PNR_FAULT", places[i], 1);
        run_stage(&s, &o);
        unsetenv("PNR_FAULT");
        assert_int_equal(o.code, codes[i]);
        assert_non_null(strstr(o.error.text, "fault"));
        assert_same_account(&o.account, &nothing);
        forget_outcome(&o);
        close_stage(&s);
    }
}

/* An engine that fails on a submit loses its windows, as in one process. */
TEST(test_failing_engine)
{
    static const char *const faults[] = {"submit:7=EENGINE", "collect:7=EENGINE"};

    for (size_t i = 0; i < COUNT(faults); i++) {
        const char *const more[] = {"engine.name=fault", "engine.batch=1", NULL};
        outcome here = {0}, there = {0};
        stage s;

        open_live(&s, more);
        setenv("PNR_FAULT", faults[i], 1);
        run_stage(&s, &here);
        set_stage(&s, "engine.isolate=yes");
        run_stage(&s, &there);
        unsetenv("PNR_FAULT");
        assert_int_equal(there.code, PNR_EENGINE);
        assert_int_equal(there.account.dropped_engine_error, 1);
        assert_same_reports(&there, &here);
        assert_same_account(&there.account, &here.account);
        forget_outcome(&here);
        forget_outcome(&there);
        close_stage(&s);
    }
}

/* --- a worker that goes mad --- */

/* Appends a record of n_bytes to a queue; 0: bytes that are no record. */
static void append_to(pnr_queue *queue, size_t n_bytes, const pnr_made *record)
{
    enum { HEAD_AT = 64, FAR = 16384 }; /* in a pnr_queue */
    uint64_t *head = (uint64_t *)(void *)((unsigned char *)queue + HEAD_AT);

    assert_true(*head < 1 << 19); /* what follows was never written */
    if (n_bytes == 0) {
        __atomic_fetch_add(head, FAR, __ATOMIC_SEQ_CST);
        return;
    }
    memcpy(pnr_queue_reserve(queue, sizeof *record), record, sizeof *record);
    pnr_queue_commit(queue, n_bytes);
}

/* Appends what cannot be to the results of the stopped worker, as a wild write would. */
static void write_wildly(size_t n_bytes, const pnr_made *record)
{
    for (int fd = 3; fd < 200; fd++) {
        char path[64], name[64] = "";
        struct stat size;
        pnr_shared *shared;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, name, sizeof name - 1) < 0 ||
            strncmp(name, "/memfd:pnradar worker", 21) != 0 || fstat(fd, &size) != 0)
            continue;
        shared = mmap(NULL, (size_t)size.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_true(shared != MAP_FAILED);
        if (shared->state == PNR_WORKER_READY) /* not that of a worker that may stand in */
            append_to((void *)((unsigned char *)shared + shared->order.results_at), n_bytes,
                      record);
        munmap(shared, (size_t)size.st_size);
    }
}

/* Five times, each in another way. The last time is half of the stream before its end, so that a
 * worker whose results wait in its queue still has some to make. */
static void go_mad(void *context, size_t n)
{
    static const struct {
        size_t n_bytes;
        pnr_made made;
    } writes[] = {
        {0, {.sample = 0}},
        {sizeof(pnr_made), {.dwell.n_periods = 1, .detection.n_echoes = 1000000}},
        {sizeof(pnr_made), {.sample = UINT64_MAX / 2, .dwell.n_periods = 1}}, /* of no view */
        {sizeof(pnr_made_head), {.detection.n_echoes = 1}},                   /* cut short */
        {sizeof(pnr_made), {.head.kind = PNR_MADE_ACCOUNT}}, /* of a view without windows */
    };
    const size_t turn = n / 250;
    siginfo_t info;
    pid_t worker;

    (void)context;
    if (n % 250 != 50 || n > 1050)
        return;
    worker = find_worker();
    assert_true(worker > 0 && kill(worker, SIGSTOP) == 0);
    assert_int_equal(waitid(P_PID, (id_t)worker, &info, WSTOPPED | WNOWAIT), 0);
    write_wildly(writes[turn].n_bytes, &writes[turn].made);
}

/* Such a worker is replaced like one that dies. */
TEST(test_mad_worker)
{
    static const char *const more[] = {"engine.name=cpu", "engine.isolate=yes",
                                       "source.pace=real-time", "engine.deadline_hang=100", NULL};
    outcome wanted = {0}, o = {.also = go_mad};
    stage s;

    run_undisturbed(more[0], &wanted);
    open_live(&s, more);
    run_stage(&s, &o);
    assert_undisturbed(&o, &wanted, 5);
    forget_outcome(&wanted);
    forget_outcome(&o);
    close_stage(&s);
}
