/* SPDX-License-Identifier: MIT */
/* Several devices: the same bits in the same order as one, also when devices fail or are lost. The
 * devices are those of the fault engine, and, where there are several, GPUs. */
#include "correlator/engines.h"
#include "tests/fixture/gpu_fixture.h"
#include "tests/fixture/pipeline_fixture.h"
#include "tests/fixture/random.h"

enum { DWELLS = 60, ROUNDS = 40 };

/* A way to make dwells; all give an echo in each. */
typedef struct dwell_kind {
    const char *name;
    size_t n_periods;
    const char *settings[12];
} dwell_kind;

static const dwell_kind kinds[] = {
    {"single", 1, {"source.lost=1000+20, 2540+127, 4000+400"}},
    {"packed", 1, {"publisher.pack=8", "detector.threads=2", "source.format=ci8"}},
    {"looks", 3, {"dwell.periods=3", "dwell.combine=incoherent", "source.lost=700+63"}},
    {"map",
     3,
     {"dwell.periods=3", "dwell.combine=doppler", "radar.carrier_hz=1e9", "doppler.step=whole",
      "detector.threads=2"}},
    {"cells", 2, {"dwell.periods=2", "dwell.combine=doppler", "publisher.profile=power"}},
    {"linear", 1, {"window.correlation=linear", "radar.max_range_m=10000"}},
    {"subtract", 1, {"detector.subtract=2", "target.2.range_m=11000", "target.2.amplitude=0.05"}},
};

static void open_kind(stage *s, const dwell_kind *way)
{
    open_stage(s, DWELLS * N * way->n_periods + 17, way->settings);
    set_stage(s, "engine.name=fault");
    set_stage(s, "engine.deadline=1000");
    set_stage(s, "engine.batch=1");
    save_stage(s, 0);
    setenv("PNR_FAULT_DEVICES", "16", 1);
    setenv("PNR_FAULT_LAZY", "1", 1);
}

static void close_kind(stage *s, outcome *a, outcome *b)
{
    unsetenv("PNR_FAULT");
    unsetenv("PNR_FAULT_DEVICES");
    unsetenv("PNR_FAULT_LAZY");
    unsetenv("PNR_FAULT_TOGETHER");
    forget_outcome(a);
    forget_outcome(b);
    close_stage(s);
}

/* The first device alone. */
static void run_one(stage *s, outcome *one)
{
    unsetenv("PNR_FAULT");
    set_stage(s, "engine.device=0");
    run_stage(s, one);
    assert_int_equal(one->code, PNR_OK);
    assert_true(one->n >= DWELLS - 5 && one->reports[0].detection.n_echoes > 0);
}

static void assert_same(const outcome *o, const outcome *one)
{
    if (o->code != PNR_OK)
        fail_msg("%s", o->error.text);
    assert_same_account(&o->account, &one->account);
    assert_same_reports(o, one);
    assert_chain(o, (size_t)(one->reports[1].sample - one->reports[0].sample));
}

/* --- devices that work --- */

TEST(test_same_bits)
{
    static const char *const devices[] = {"0,1", "3,0,7", "0,1,2,3,4,5,6,7", "all"};
    static const char *const depths[] = {"engine.depth=1", "engine.depth=3", "engine.depth=4"};
    static const char *const batches[] = {"engine.batch=1", "engine.batch=2", "engine.batch=0"};
    stage s;

    for (size_t k = 0; k < COUNT(kinds); k++) {
        outcome one = {0}, o = {0};

        open_kind(&s, &kinds[k]);
        run_one(&s, &one);
        for (size_t d = 0; d < COUNT(devices); d++) {
            char setting[64];

            snprintf(setting, sizeof setting, "engine.device=%s", devices[d]);
            set_stage(&s, setting);
            set_stage(&s, depths[(k + d) % COUNT(depths)]);
            set_stage(&s, batches[(k + 2 * d) % COUNT(batches)]);
            run_stage(&s, &o);
            assert_same(&o, &one);
        }
        close_kind(&s, &o, &one);
    }
}

/* Every device gets work: a failure of its first submit is seen. */
TEST(test_all_work)
{
    outcome one = {0}, o = {0};
    stage s;

    open_kind(&s, &kinds[0]);
    set_stage(&s, "ring.bytes=0");
    run_one(&s, &one);
    set_stage(&s, "engine.device=all");
    for (int d = 0; d < 16; d += 5) {
        subscriber heard;
        char fault[40];

        snprintf(fault, sizeof fault, "%d.submit:1=ELOST", d);
        setenv("PNR_FAULT", fault, 1);
        subscribe(&s, &heard, 1000);
        run_stage(&s, &o);
        assert_end(&heard, &o);
        assert_same(&o, &one);
        assert_int_equal(heard.events[PNR_EVENT_DEVICE_LOST].count, 1);
        snprintf(fault, sizeof fault, "\"lost\":[%d]", d);
        assert_non_null(strstr(heard.text, fault));
        strcpy(s.config.publisher.endpoint, "");
    }
    close_kind(&s, &o, &one);
}

/* --- devices that fail --- */

/* Runs on devices with a fault. n_lost: devices that are lost according to the events. */
static void run_fault(stage *s, const char *devices, const char *fault, outcome *o, size_t n_lost)
{
    subscriber heard;
    char setting[64];

    snprintf(setting, sizeof setting, "engine.device=%s", devices);
    set_stage(s, setting);
    setenv("PNR_FAULT", fault, 1);
    subscribe(s, &heard, 1000);
    run_stage(s, o);
    assert_end(&heard, o);
    assert_int_equal(heard.events[PNR_EVENT_DEVICE_LOST].count, n_lost);
    strcpy(s->config.publisher.endpoint, "");
}

/* One device fails in every way; nothing is lost. */
TEST(test_one_fails)
{
    static const struct {
        const char *fault;
        size_t n_lost;
    } faults[] = {
        {"1.submit:1=ELOST", 1},         {"1.collect:1=ELOST", 1},  {"0.submit:5=ELOST", 1},
        {"2.collect:6=ELOST", 1},        {"1.submit:3=EENGINE", 0}, {"0.collect:3=EENGINE", 0},
        {"1.submit:3=EAGAIN", 0},        {"1.submit=EENGINE", 1},   {"2.collect=ENOMEMORY", 1},
        {"1.collect:4=-99", 1},          {"1.submit:4=7", 1},       {"2.collect:2=EAGAIN", 1},
        {"1.search_without:3=ELOST", 1},
    };
    const dwell_kind *const way = &kinds[COUNT(kinds) - 1];
    outcome one = {0}, o = {0};
    stage s;

    open_kind(&s, way);
    run_one(&s, &one);
    for (size_t i = 0; i < COUNT(faults); i++) {
        run_fault(&s, "0,1,2", faults[i].fault, &o, faults[i].n_lost);
        assert_same(&o, &one);
    }
    close_kind(&s, &o, &one);
}

/* Another device is lost while the jobs of the first one are done again; the last one is left. */
TEST(test_lost_again)
{
    outcome one = {0}, o = {0};
    stage s;

    open_kind(&s, &kinds[0]);
    run_one(&s, &one);
    for (unsigned at = 1; at <= 12; at++) {
        char fault[100];

        snprintf(fault, sizeof fault, "0.collect:3=ELOST,1.submit:%u=ELOST,2.collect:%u=ELOST", at,
                 at / 2 + 1);
        run_fault(&s, "0,1,2,3", fault, &o, 3);
        assert_same(&o, &one);
    }
    close_kind(&s, &o, &one);
}

/* All but one of some devices are lost, at random calls. */
TEST(test_random_losses)
{
    static const char *const places[] = {"submit", "collect", "search_without"};

    for (size_t k = 0; k < COUNT(kinds); k++) {
        outcome one = {0}, o = {0};
        stage s;

        open_kind(&s, &kinds[k]);
        run_one(&s, &one);
        for (size_t round = 0; round < ROUNDS / COUNT(kinds); round++) {
            const size_t n = 2 + below(4), kept = below(n);
            char devices[40] = "engine.device=", fault[200] = "";

            for (size_t d = 0; d < n; d++) {
                sprintf(devices + strlen(devices), "%s%zu", d > 0 ? "," : "", d);
                if (d != kept)
                    sprintf(fault + strlen(fault), "%zu.%s:%zu=ELOST,", d,
                            places[below(COUNT(places))], 1 + below(10));
            }
            set_stage(&s, devices);
            setenv("PNR_FAULT", fault, 1);
            run_stage(&s, &o);
            if (o.code != PNR_OK || o.n != one.n)
                print_message("%s: %s %s\n", kinds[k].name, devices, fault);
            assert_same(&o, &one);
        }
        close_kind(&s, &o, &one);
    }
}

/* All devices are lost or fail: the results so far are right, and the account closes. */
TEST(test_all_fail)
{
    static const char *const faults[] = {"collect:5=ELOST", "0.submit:3=ELOST,1.collect:4=ELOST",
                                         "collect=EENGINE", "submit=EENGINE",
                                         "0.collect:2=7,1.submit=EENGINE"};
    outcome one = {0}, o = {0};
    stage s;

    open_kind(&s, &kinds[0]);
    run_one(&s, &one);
    for (size_t i = 0; i < COUNT(faults); i++) {
        run_fault(&s, "0,1", faults[i], &o, 2);
        assert_int_equal(o.code, PNR_ELOST);
        assert_true(o.n < one.n && o.account.dropped_engine_error > 0);
        for (size_t r = 0; r < o.n; r++)
            assert_true(is_same_report(&o.reports[r], &one.reports[r]));
    }
    close_kind(&s, &o, &one);
}

/* A job that fails on two devices is dropped, as one that fails on the only device. */
TEST(test_job_fails_twice)
{
    outcome one = {0}, o = {0};
    stage s;

    open_kind(&s, &kinds[0]);
    run_one(&s, &one);
    set_stage(&s, "engine.depth=1");
    run_fault(&s, "0,1", "0.submit:1=EENGINE,1.submit:1=EENGINE", &o, 0);
    assert_int_equal(o.code, PNR_EENGINE);
    assert_int_equal(o.account.dropped_engine_error, 1);
    assert_int_equal(o.n, one.n - 1);
    assert_true(o.reports[0].sample == one.reports[1].sample);
    close_kind(&s, &o, &one);
}

/* --- devices that do not start --- */

TEST(test_refused)
{
    static const struct {
        const char *devices, *fault, *text;
    } cases[] = {{"0,1", "1.probe=EUNAVAILABLE", "device 1"},
                 {"2,16", "", "device 16"},
                 {"0,1", "1.create=ENOMEMORY", "engine fault"},
                 {"4,5", "5.model=EENGINE", "device 5"},
                 {"all", "probe=EUNAVAILABLE", "engine fault"}};
    outcome one = {0}, o = {0};
    stage s;

    open_kind(&s, &kinds[0]);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char setting[64];

        snprintf(setting, sizeof setting, "engine.device=%s", cases[i].devices);
        set_stage(&s, setting);
        setenv("PNR_FAULT", cases[i].fault, 1);
        run_stage(&s, &o);
        assert_true(o.code == PNR_EUNAVAILABLE || o.code == PNR_ENOMEMORY);
        if (strstr(o.error.text, cases[i].text) == NULL)
            fail_msg("%s", o.error.text);
    }
    close_kind(&s, &o, &one);
}

/* `all` are those that work and are of one model. */
TEST(test_all_that_work)
{
    outcome one = {0}, o = {0};
    stage s;

    open_kind(&s, &kinds[0]);
    run_one(&s, &one);
    run_fault(&s, "all", "0.probe=EUNAVAILABLE,2.model=EENGINE,0.submit=ELOST,2.submit=ELOST", &o,
              0);
    assert_same(&o, &one);
    close_kind(&s, &o, &one);
}

/* --- in a worker --- */

TEST(test_worker)
{
    static const char *const devices[] = {"0,1,2", "all"};
    outcome one = {0}, o = {0};
    stage s;

    open_kind(&s, &kinds[3]);
    run_one(&s, &one);
    set_stage(&s, "engine.isolate=yes");
    setenv("PNR_FAULT_DEVICES", "3", 1);
    for (size_t i = 0; i < COUNT(devices); i++) {
        run_fault(&s, devices[i], "1.collect:3=ELOST", &o, 1);
        assert_same(&o, &one);
    }
    close_kind(&s, &o, &one);
}

/* From the first result on, device 1 is broken for a worker that begins: the next one does without.
 * The first worker is lost long after. */
static void break_device(void *context, size_t n)
{
    (void)context;
    if (n == 1)
        setenv("PNR_FAULT", "1.probe=EUNAVAILABLE", 1);
}

TEST(test_next_worker)
{
    outcome one = {0}, o = {.also = break_device};
    stage s;

    open_kind(&s, &kinds[0]);
    run_one(&s, &one);
    set_stage(&s, "engine.isolate=yes");
    setenv("PNR_FAULT_TOGETHER", "1", 1); /* lost one by one, devices make events of their own */
    run_fault(&s, "0,1,2", "collect:15=ELOST", &o, 1);
    for (size_t i = 0; i < o.n; i++)
        o.reports[i].flags &= ~(unsigned)PNR_FLAG_RESTARTED;
    assert_same(&o, &one);
    close_kind(&s, &o, &one);
}

/* A device that takes the whole worker down twice is left out of the third one. */
TEST(test_broken_device)
{
    outcome one = {0}, o = {0};
    subscriber heard;
    stage s;

    open_kind(&s, &kinds[0]);
    run_one(&s, &one);
    set_stage(&s, "engine.isolate=yes");
    set_stage(&s, "engine.device=0,1,2");
    setenv("PNR_FAULT", "1.collect:5=ELOST", 1);
    setenv("PNR_FAULT_TOGETHER", "1", 1);
    subscribe(&s, &heard, 1000);
    run_stage(&s, &o);
    assert_end(&heard, &o);
    for (size_t i = 0; i < o.n; i++)
        o.reports[i].flags &= ~(unsigned)PNR_FLAG_RESTARTED;
    assert_same(&o, &one);
    assert_int_equal(heard.events[PNR_EVENT_WORKER_LOST].count, 2);
    assert_non_null(strstr(heard.text, "\"devices\":{\"used\":[0,2],\"lost\":[1]}"));
    close_kind(&s, &o, &one);
}

/* --- GPUs --- */

/* False, and a message: this machine has fewer than two GPUs. */
static bool has_gpus(void)
{
    pnr_devices devices = {0};

    if (pnr_engine_list_devices("cuda", &devices, NULL, NULL) == PNR_OK && devices.n > 1)
        return true;
    print_message("skipped: no two GPUs of one model here\n");
    return false;
}

TEST(test_gpus)
{
    static const char *const devices[] = {"engine.device=1", "engine.device=1,0",
                                          "engine.device=all"};
    stage s;

    for (size_t k = 0; k < COUNT(kinds) && has_gpus(); k++) {
        outcome one = {0}, o = {0};

        open_kind(&s, &kinds[k]);
        set_stage(&s, "engine.name=cuda");
        run_one(&s, &one);
        for (size_t i = 0; i < 2 * COUNT(devices); i++) {
            set_stage(&s, devices[i / 2]);
            set_stage(&s, i % 2 == 0 ? "engine.batch=1" : "engine.batch=3");
            run_stage(&s, &o);
            assert_same(&o, &one);
        }
        close_kind(&s, &o, &one);
    }
}

/* Breaks the second GPU for this process after the thousandth result. */
static void break_second(void *context, size_t n)
{
    (void)context;
    if (n == 1000)
        assert_true(break_gpu(1));
}

/* A kernel writes to an illegal address on one GPU of a live stream: CUDA then fails on all GPUs of
 * this process, so this is the last test. */
TEST(test_gpu_is_lost)
{
    static const char *const settings[] = {
        "engine.name=cuda", "engine.isolate=no",   "engine.batch=1",        "engine.deadline=1000",
        "ring.seconds=3",   "radar.max_range_m=0", "source.rate_hz=635000", NULL};
    outcome one = {0}, o = {.also = break_second};
    stage s;

    if (!has_gpus())
        return;
    open_stage(&s, 10000 * N, settings); /* 2 s */
    save_stage(&s, 0);
    run_stage(&s, &one);
    assert_int_equal(one.code, PNR_OK);
    set_stage(&s, "source.pace=real-time");
    set_stage(&s, "engine.device=0,1");
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_ELOST);
    assert_true(o.n >= 1000 && o.n < one.n);
    for (size_t i = 0; i < o.n; i++)
        assert_true(is_same_report(&o.reports[i], &one.reports[i]));
    forget_outcome(&one);
    forget_outcome(&o);
    close_stage(&s);
}
