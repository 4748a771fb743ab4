/* SPDX-License-Identifier: MIT */
/* The pipeline when its engine fails: every error at every place is reported to the caller, to
 * subscribers and in the account. */
#include "tests/fixture/pipeline_fixture.h"

enum { DWELLS = 20, GIVEN_UP = 16 }; /* after so many failures in a row */

/* A run of the fault engine: DWELLS dwells, all in the ring before the second is asked for. */
static void run_fault(const char *fault, outcome *o, subscriber *heard, const char *batch)
{
    static const char *const settings[] = {"engine.name=fault", "ring.bytes=24384", NULL};
    stage s;

    open_stage(&s, DWELLS * N, settings);
    set_stage(&s, batch);
    save_stage(&s, 0);
    setenv("PNR_FAULT", fault, 1);
    if (heard != NULL)
        subscribe(&s, heard, 1000);
    run_stage(&s, o);
    unsetenv("PNR_FAULT");
    if (heard != NULL)
        assert_end(heard, o);
    close_stage(&s);
}

/* --- before the first sample --- */

TEST(test_refused_at_start)
{
    static const struct {
        const char *place;
        int code; /* 0: the error itself */
    } places[] = {
        {"probe", PNR_EUNAVAILABLE}, {"alloc", PNR_ENOMEMORY}, {"describe", 0}, {"create", 0}};
    static const struct {
        const char *name;
        int code;
    } errors[] = {{"EUNAVAILABLE", PNR_EUNAVAILABLE},
                  {"EUNSUPPORTED", PNR_EUNSUPPORTED},
                  {"ENOMEMORY", PNR_ENOMEMORY},
                  {"EINTERNAL", PNR_EINTERNAL},
                  {"EENGINE", PNR_EENGINE},
                  {"ELOST", PNR_ELOST},
                  {"EAGAIN", PNR_EAGAIN},
                  {"ECONFIG", PNR_ECONFIG},
                  {"EPERMISSION", PNR_EPERMISSION},
                  {"EIO", PNR_EIO}};

    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
            const pnr_account nothing = {0};
            outcome o = {0};
            char fault[64];

            snprintf(fault, sizeof fault, "%s=%s", places[p].place, errors[e].name);
            run_fault(fault, &o, NULL, "engine.batch=1");
            assert_int_equal(o.code, places[p].code != 0 ? places[p].code : errors[e].code);
            assert_true(strlen(o.error.text) > 0);
            assert_same_account(&o.account, &nothing);
            forget_outcome(&o);
        }
}

/* --- while samples flow --- */

/* The account after call `at` of one place has failed; 0: all calls fail, until the engine is given
 * up. */
static pnr_account wanted(size_t at, bool is_lost)
{
    const size_t last = at > 0 ? at : is_lost ? 1 : GIVEN_UP;
    pnr_account a = {.positions = DWELLS * N, .used = DWELLS * N, .windows = DWELLS};

    a.dropped_engine_error = is_lost || at > 0 ? 1 : GIVEN_UP;
    a.dropped_shutdown = is_lost || at == 0 ? DWELLS - last : 0;
    a.processed = DWELLS - a.dropped_engine_error - a.dropped_shutdown;
    a.results = a.sent = a.processed;
    return a;
}

static void fail_at(const char *place, size_t at, const char *error)
{
    const bool is_lost = strcmp(error, "ELOST") == 0 || strtol(error, NULL, 10) != 0;
    const bool ends = is_lost || at == 0;
    const pnr_account a = wanted(at, is_lost);
    outcome o = {0};
    subscriber heard;
    char fault[64];

    if (at == 0)
        snprintf(fault, sizeof fault, "%s=%s", place, error);
    else
        snprintf(fault, sizeof fault, "%s:%zu=%s", place, at, error);
    run_fault(fault, &o, &heard, "engine.batch=1");
    assert_int_equal(o.code, ends ? PNR_ELOST : PNR_EENGINE);
    assert_int_equal(heard.end.exit_status, ends ? 75 : 70);
    if (ends && !is_lost)
        assert_non_null(strstr(o.error.text, "16 failures in a row"));
    if (strtol(error, NULL, 10) != 0)
        assert_non_null(strstr(o.error.text, error));
    assert_same_account(&o.account, &a);
    assert_chain(&o, N);
    for (size_t i = 0; i < o.n; i++) { /* the dwells that were not hit, no others */
        const bool is_behind = !is_lost && at > 0 && i + 1 >= at;

        assert_true(o.reports[i].sample == (i + (is_behind ? 1 : 0)) * N);
    }
    assert_true(heard.n_results == o.n);
    forget_outcome(&o);
}

static void fail_everywhere(const char *place)
{
    static const char *const errors[] = {"EENGINE", "ENOMEMORY", "EINTERNAL", "ELOST"};
    static const size_t at[] = {0, 1, 2, 5, DWELLS};

    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
        for (size_t i = 0; i < sizeof at / sizeof *at; i++)
            fail_at(place, at[i], errors[e]);
}

TEST(test_submit)
{
    fail_everywhere("submit");
    fail_at("submit", 0, "EAGAIN");
    fail_at("submit", 1, "EAGAIN");
    fail_at("submit", DWELLS, "EAGAIN");
}

TEST(test_collect)
{
    fail_everywhere("collect");
}

/* A status that no engine has: nothing is known of its state, so it is given up at once. */
TEST(test_unknown_status)
{
    static const char *const codes[] = {"-99", "7"};

    for (size_t i = 0; i < COUNT(codes); i++) {
        fail_at("submit", 3, codes[i]);
        fail_at("collect", 3, codes[i]);
    }
}

/* A result between failures shows that the engine works: 15 failures, one result, 15 failures. */
TEST(test_failures_apart)
{
    char fault[64 * 32] = "";
    outcome o = {0};

    for (size_t i = 1; i <= DWELLS - 2; i++)
        if (i != 3)
            snprintf(fault + strlen(fault), sizeof fault - strlen(fault), "submit:%zu=EENGINE,", i);
    run_fault(fault, &o, NULL, "engine.batch=1");
    assert_int_equal(o.code, PNR_EENGINE);
    assert_int_equal(o.account.dropped_engine_error, DWELLS - 3);
    assert_int_equal(o.n, 3);
    forget_outcome(&o);
}

/* Windows that fail in a live stream are in the log within a second, each once. */
TEST(test_failures_are_logged)
{
    static const char *const settings[] = {"engine.name=fault", "source.pace=real-time",
                                           "engine.batch=1", NULL};
    char path[] = "/tmp/pnradar-log-XXXXXX", text[4096] = "";
    const int file = mkstemp(path), saved = dup(STDERR_FILENO);
    const char *level = getenv("PNR_LOG");
    char before[16] = "";
    stage s;
    outcome o = {0};

    assert_true(file >= 0 && saved >= 0);
    snprintf(before, sizeof before, "%s", level != NULL ? level : "quiet");
    open_stage(&s, 10000 * N, settings); /* 1.27 s */
    save_stage(&s, 0);
    setenv("PNR_LOG", "info", 1);
    setenv("PNR_FAULT", "submit:2=EENGINE,collect:5=EENGINE", 1);
    dup2(file, STDERR_FILENO);
    run_stage(&s, &o);
    dup2(saved, STDERR_FILENO);
    close(saved);
    setenv("PNR_LOG", before, 1);
    unsetenv("PNR_FAULT");
    assert_true(pread(file, text, sizeof text - 1, 0) > 0);
    close(file);
    unlink(path);
    assert_int_equal(o.code, PNR_EENGINE);

    const char *line =
        strstr(text, "failed on 2 windows (the engine failed on this submit); on 2 of ");

    if (line == NULL)
        fail_msg("not in the log: %s", text);
    assert_null(strstr(line + strlen("failed on 2 windows ("), " windows ("));
    forget_outcome(&o);
    close_stage(&s);
}

/* An engine that always answers EAGAIN, or loses a submit so that each later result belongs to
 * another submit, is dropped; no result is assigned to the wrong samples. */
TEST(test_collect_out_of_step)
{
    static const char *const faults[] = {"collect=EAGAIN", "collect:1=EAGAIN", "collect:5=EAGAIN",
                                         "collect:20=EAGAIN"};
    outcome clean = {0};

    run_fault("", &clean, NULL, "engine.batch=1");
    assert_int_equal(clean.n, DWELLS);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        outcome o = {0};
        subscriber heard;

        run_fault(faults[i], &o, &heard, "engine.batch=1");
        assert_int_equal(o.code, PNR_ELOST);
        assert_int_equal(heard.end.exit_status, 75);
        assert_true(o.account.positions == DWELLS * N);
        assert_true(o.account.dropped_engine_error >= 1 &&
                    o.account.dropped_engine_error <= PNR_MAX_DEPTH);
        assert_true(o.n < DWELLS);
        for (size_t r = 0; r < o.n; r++)
            assert_true(is_same_report(&o.reports[r], &clean.reports[r]));
        forget_outcome(&o);
    }
    forget_outcome(&clean);
}

/* Several failures of one run, in submits of several dwells:
 * each takes its own submit and no more. */
TEST(test_several)
{
    outcome o = {0};
    subscriber heard;

    run_fault("submit:2=EENGINE,collect:1=EENGINE,submit:4=EAGAIN", &o, &heard, "engine.batch=4");
    assert_int_equal(o.code, PNR_EENGINE);
    assert_true(o.account.positions == DWELLS * N);
    assert_int_equal(o.account.dropped_engine_error, 12); /* three of five submits of four */
    assert_int_equal(o.account.processed, 8);
    assert_chain(&o, N);
    assert_true(o.reports[0].sample == 8 * N && o.reports[0].lost_before == 8 * N);
    assert_non_null(strstr(o.error.text, "12 of 20 windows"));
    forget_outcome(&o);
}

/* The engine is lost while a live source continues: the source is stopped, and all samples are
 * counted. */
TEST(test_lost_in_real_time)
{
    static const char *const settings[] = {"engine.name=fault", "source.pace=real-time",
                                           "ring.bytes=8128", "engine.batch=1", NULL};
    stage s;
    outcome o = {0};
    subscriber heard;

    open_stage(&s, 100000 * N, settings); /* 12.7 s */
    save_stage(&s, 0);
    setenv("PNR_FAULT", "collect:10=ELOST", 1);
    subscribe(&s, &heard, 1000);
    run_stage(&s, &o);
    unsetenv("PNR_FAULT");
    assert_int_equal(o.code, PNR_ELOST);
    assert_end(&heard, &o);
    assert_int_equal(o.n, 9);
    assert_true(o.account.dropped_engine_error >= 1);
    assert_true(o.account.positions < 100000 * N);
    forget_outcome(&o);
    close_stage(&s);
}

/* --- an engine that does not answer --- */

/* Status and event come from a thread that does not wait for the engine. */
TEST(test_hang_is_reported)
{
    static const char *const settings[] = {"engine.name=fault", "engine.batch=1",
                                           "engine.deadline_hang=0.1", NULL};
    outcome o = {0};
    subscriber heard;
    stage s;

    open_stage(&s, N, settings);
    save_stage(&s, 0);
    setenv("PNR_FAULT_SLOW_MS", "2500", 1);
    subscribe(&s, &heard, 1000);
    run_stage(&s, &o);
    unsetenv("PNR_FAULT_SLOW_MS");
    assert_int_equal(o.code, PNR_OK);
    assert_end(&heard, &o);
    assert_true(heard.n_status >= 1);
    assert_int_equal(heard.events[PNR_EVENT_ENGINE_HANGS].count, 1);
    forget_outcome(&o);
    close_stage(&s);
}
