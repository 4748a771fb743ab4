/* SPDX-License-Identifier: MIT */
/* One recording gives the same bits at any pace, chunk, batch, ring and number of threads, in ten
 * runs. */
#include "tests/fixture/pipeline_fixture.h"

enum {
    DWELLS = 40,
    ROUNDS = 10
}; /* fewer than 2^14 samples, so that the ring has a mark for each
                                    * chunk of one sample */

/* A way to run; the rows of one column are taken in turn. */
static const char *const paces[] = {"source.pace=fast", "source.pace=real-time"};
static const char *const chunks[] = {"source.chunk=1", "source.chunk=7", "source.chunk=1000",
                                     "source.chunk=0"};
static const char *const batches[] = {"engine.batch=1", "engine.batch=2", "engine.batch=5",
                                      "engine.batch=0"};
static const char *const depths[] = {"engine.depth=1", "engine.depth=3", "engine.depth=4"};
static const char *const threads[] = {"engine.threads=1", "engine.threads=2"};
static const char *const detection[] = {"detector.threads=1", "detector.threads=16",
                                        "detector.threads=2"};

/* A whole recording fits the larger rings: a live source may find a smaller one full. */
static const char *const rings[] = {"ring.bytes=400K", "ring.bytes=150K"};
#define ROW(table, i) ((table)[(i) % (sizeof(table) / sizeof *(table))])

/* Each round runs every pace with every chunk, and each time another of the rest. */
static void compare(const char *engine, const char *const *settings, size_t n_periods)
{
    stage s;
    outcome first = {0}, o = {0};
    size_t turn = 0;

    open_stage(&s, DWELLS * N * n_periods + 17, settings);
    set_stage(&s, engine);
    set_stage(&s, "engine.deadline=1000"); /* late is not of the recording */
    save_stage(&s, 0);
    run_stage(&s, &first);
    if (first.code == PNR_EUNAVAILABLE) {
        print_message("skipped: %s\n", first.error.text);
        close_stage(&s);
        return;
    }
    assert_int_equal(first.code, PNR_OK);
    assert_true(first.n >= DWELLS - 5);
    assert_true(first.reports[0].detection.n_echoes > 0);
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t p = 0; p < 2; p++)
            for (size_t c = 0; c < 4; c++, turn++) {
                set_stage(&s, paces[p]);
                set_stage(&s, chunks[c]);
                set_stage(&s, ROW(batches, turn + round));
                set_stage(&s, ROW(depths, turn));
                set_stage(&s, ROW(threads, turn + turn / 3));
                set_stage(&s, ROW(detection, turn + turn / 4));
                set_stage(&s, p == 0 ? ROW(rings, turn + turn / 2) : rings[0]);
                run_stage(&s, &o);
                assert_int_equal(o.code, PNR_OK);
                assert_same_account(&o.account, &first.account);
                assert_same_reports(&o, &first);
            }
    forget_outcome(&first);
    forget_outcome(&o);
    close_stage(&s);
}

/* Single periods of integers, with holes. */
static void single(const char *engine)
{
    static const char *const settings[] = {"source.lost=1000+20, 2540+127, 4000+400",
                                           "target.2.range_m=11000", "target.2.amplitude=0.05",
                                           NULL};

    compare(engine, settings, 1);
}

/* Dwells of three on the finer grid, floats that are tuned. */
static void incoherent(const char *engine)
{
    static const char *const settings[] = {"dwell.periods=3",        "dwell.combine=incoherent",
                                           "detector.oversample=2",  "source.format=cf32",
                                           "source.tune_hz=12345.5", "code.epoch=33",
                                           "source.lost=700+63",     NULL};

    compare(engine, settings, 3);
}

static void coherent(const char *engine)
{
    static const char *const settings[] = {"dwell.periods=2",      "dwell.combine=coherent",
                                           "source.format=ci8",    "source.spectrum=inverted",
                                           "radar.carrier_hz=1e7", NULL};

    compare(engine, settings, 2);
}

/* Maps with several echoes: detection takes most of the time. */
static void doppler(const char *engine)
{
    static const char *const settings[] = {"dwell.periods=3",
                                           "dwell.combine=doppler",
                                           "radar.carrier_hz=1e9",
                                           "doppler.step=whole",
                                           "target.2.range_m=11000",
                                           "target.2.amplitude=0.1",
                                           "target.3.range_m=15000",
                                           "target.3.amplitude=0.1",
                                           "target.3.velocity_mps=60",
                                           "source.lost=900+100",
                                           NULL};

    compare(engine, settings, 3);
}

#define ON(engine)                                                                                 \
    TEST(test_##engine)                                                                            \
    {                                                                                              \
        single("engine.name=" #engine);                                                            \
        incoherent("engine.name=" #engine);                                                        \
        coherent("engine.name=" #engine);                                                          \
        doppler("engine.name=" #engine);                                                           \
    }
ON(reference)
ON(cpu)
ON(cuda)
