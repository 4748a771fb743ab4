/* SPDX-License-Identifier: MIT */
/* Samples that vanish from a recording, through the whole pipeline. */
#include "tests/fixture/pipeline_fixture.h"

enum { PERIODS = 400 };
#define SCENE                                                                                      \
    "target.1.range_m=3000", "target.1.amplitude=0.1", "target.2.range_m=9000",                    \
        "target.2.amplitude=0.05", "echo.noise_rms=0.02", "detector.pfa=1e-4"

/* Runs a recording. Returns the sum of its slips and checks flags against them. target_m: the
 * range of its one echo after the last slip; 0: not checked. */
static uint32_t slips_of(const char *const *settings, double target_m, size_t *n, size_t *last)
{
    uint32_t sum = 0;
    outcome o = {0};
    stage s;

    open_stage(&s, (size_t)N * PERIODS, settings);
    save_stage(&s, 0);
    run_stage(&s, &o);
    if (o.code != PNR_OK)
        fail_msg("%s", o.error.text);
    *n = 0;
    for (size_t i = 0; i < o.n; i++) {
        const pnr_report *r = &o.reports[i];

        assert_int_equal((r->flags & PNR_FLAG_SLIP) != 0, r->slip != 0);
        sum += r->slip;
        *n += r->slip > 0;
        if (r->slip > 0)
            *last = (size_t)(r->sample / N);
        if (*n > 0 && target_m > 0)
            assert_true(r->detection.n_echoes == 1 && r->zero.held_s == 0 &&
                        fabs(r->detection.echoes[0].range_m - target_m) < 30);
    }
    forget_outcome(&o);
    close_stage(&s);
    return sum;
}

TEST(slips_are_reported_with_their_size)
{
    static const char *const kinds[][2] = {
        {"dwell.periods=1", "dwell.combine=none"},
        {"dwell.periods=4", "dwell.combine=coherent"},
        {"dwell.periods=4", "dwell.combine=incoherent"},
        {"dwell.periods=8", "dwell.combine=doppler"},
    };

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const char *const settings[] = {SCENE, "echo.slips=12345+45,33333+3", kinds[k][0],
                                        kinds[k][1], NULL};
        size_t n, last = 0;

        assert_int_equal(slips_of(settings, 0, &n, &last), 48);
        assert_int_equal(n, 2);
        print_message("%s: the second slip, in period 262, is seen in period %zu\n", kinds[k][1],
                      last);
        assert_true(last >= 262 && last <= 262 + 8 * 4);
    }
}

/* A subscriber gets each slip and each loss as an event, and the end counts them. */
TEST(slips_and_losses_are_events)
{
    static const char *const settings[] = {SCENE, "echo.slips=12345+45,33333+3",
                                           "source.lost=40000+700", NULL};
    outcome o = {0};
    subscriber heard;
    stage s;

    open_stage(&s, (size_t)N * PERIODS, settings);
    save_stage(&s, 0);
    subscribe(&s, &heard, 100000);
    run_stage(&s, &o);
    pthread_join(heard.thread, NULL);
    assert_int_equal(o.code, PNR_OK);
    assert_true(heard.has_end && !heard.is_bad);
    if (strstr(heard.text, "\"events\":{\"loss-begins\":1,\"loss-ends\":1,") == NULL ||
        strstr(heard.text, "\"slip\":2,") == NULL)
        fail_msg("%.800s", heard.text);
    assert_int_equal(heard.n_events, 4);
    assert_int_equal(heard.events[PNR_EVENT_SLIP].count, 2);
    assert_true(heard.events[PNR_EVENT_SLIP].sample / N >= 260);
    assert_int_equal(heard.events[PNR_EVENT_LOSS_BEGINS].sample, 40000);
    assert_int_equal(heard.events[PNR_EVENT_LOSS_ENDS].sample, 40700);
    assert_non_null(strstr(heard.events[PNR_EVENT_LOSS_ENDS].text, "700 samples lost"));
    forget_outcome(&o);
    close_stage(&s);
}

/* The direct path's tracker follows at once. */
TEST(ranges_are_right_after_a_slip)
{
    static const char *const direct[] = {"target.1.range_m=3000",   "target.1.amplitude=0.1",
                                         "echo.noise_rms=0.02",     "detector.pfa=1e-4",
                                         "echo.leak_amplitude=0.2", "radar.zero=direct-path",
                                         "echo.slips=12345+45",     NULL};
    size_t n, last;

    assert_int_equal(slips_of(direct, 3000, &n, &last), 45);
}

/* Counted gaps, movers, a drifting clock and noise give none. */
TEST(nothing_else_is_a_slip)
{
    static const char *const scenes[][8] = {
        {SCENE},
        {SCENE, "source.lost=12345+45,33333+3000"},
        {SCENE, "echo.clock_ppm=300"},
        {"target.1.range_m=5000", "target.1.velocity_mps=-60000", "target.1.amplitude=0.1",
         "echo.noise_rms=0.02"},
        {"echo.noise_rms=0.02", "detector.pfa=0.9"},
    };
    size_t n, last;

    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        const char *settings[9] = {NULL};

        memcpy(settings, scenes[i], sizeof scenes[i]);
        assert_int_equal(slips_of(settings, 0, &n, &last), 0);
    }
}
