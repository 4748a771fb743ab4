/* SPDX-License-Identifier: MIT */
/* The direct path is tracked without bias and with a correct sigma, held when it fades, and removed
 * from the echoes. */
#include "detector/zero.h"

#include "base/clock.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

enum { PERIOD = 1000 };
static const double rate_hz = 1e6, us = 1e-6;

static pnr_config config;
static pnr_radar radar;
static pnr_zero_tracker zero;

static void set(const char *assignment)
{
    pnr_error error;

    if (pnr_config_set(&config, assignment, &error) != PNR_OK)
        fail_msg("%s", error.text);
}

static void derive(void)
{
    pnr_error error;

    if (pnr_radar_derive(&config, PERIOD, &radar, &error) != PNR_OK)
        fail_msg("%s", error.text);
}

static int begin(void **state)
{
    (void)state;
    pnr_config_init(&config);
    set("source.rate_hz=1e6");
    set("radar.zero=direct-path");
    set("radar.zero_delay_s=5e-6");
    derive();
    pnr_zero_begin(&zero, &config, &radar, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    pnr_config_clear(&config);
    return 0;
}

/* An echo as the detector reports it: its delay counts from radar.zero_delay_s and is wrapped. */
static pnr_echo echo_at(double delay_s, double sigma_s, double snr_db)
{
    const double delay = delay_s - config.radar.zero_delay_s;
    const double wrapped =
        delay - radar.period_s * floor((delay - radar.min_delay_s) / radar.period_s);

    return (pnr_echo){.delay_s = wrapped,
                      .delay_samples = wrapped * rate_hz,
                      .delay_sigma_s = sigma_s,
                      .range_m = wrapped * radar.metres_per_second,
                      .range_sigma_m = sigma_s * radar.metres_per_second,
                      .snr_db = snr_db};
}

static pnr_detection dwell_of(const pnr_echo *echoes, size_t n)
{
    pnr_detection d = {.n_echoes = n};

    memcpy(d.echoes, echoes, n * sizeof *echoes);
    return d;
}

/* One dwell with the direct path alone. */
static void see(uint64_t dwell, double delay_s, double sigma_s)
{
    const pnr_echo direct = echo_at(delay_s, sigma_s, 30);
    pnr_detection d = dwell_of(&direct, 1);

    pnr_zero_track(&zero, dwell * PERIOD, &d);
    assert_int_equal(d.n_echoes, 0);
}

static void miss(uint64_t dwell)
{
    pnr_detection d = {0};

    pnr_zero_track(&zero, dwell * PERIOD, &d);
}

/* A drift of any speed leaves no bias, and the error over many runs agrees with sigma. */
TEST_BETWEEN(test_drift, begin, end)
{
    enum { RUNS = 400, DWELLS = 600 };
    const double sigma_s = 0.02 * us;

    for (int speed = 0; speed < 3; speed++) {
        const double drift = (double[]){0, 5e-6, -6e-5}[speed]; /* 3 and 36 samples in all */
        double sum = 0, sum_squares = 0, drift_squares = 0;

        for (int run = 0; run < RUNS; run++) {
            const double start_s = (4 + 2 * uniform()) * us;

            pnr_zero_begin(&zero, &config, &radar, NULL);
            for (uint64_t k = 0; k < DWELLS; k++)
                see(k, start_s + drift * (double)k * 1e-3 + sigma_s * gaussian(), sigma_s);

            const double error = zero.last.delay_s - start_s - drift * (DWELLS - 1) * 1e-3;

            assert_true(zero.last.held_s == 0 && zero.last.snr_db == 30);
            sum += error / zero.last.sigma_s;
            sum_squares += pow(error / zero.last.sigma_s, 2);
            drift_squares += pow((zero.v - drift), 2) / zero.vv;
        }
        /* The filter allows for a drift that wanders, but this one is constant, so sigma is
         * slightly too large. */
        assert_true(zero.last.sigma_s < 0.2 * sigma_s);
        assert_true(fabs(sum / RUNS) < 4 / sqrt(RUNS));
        assert_true(sum_squares / RUNS > 0.4 && sum_squares / RUNS < 1.3);
        assert_true(drift_squares / RUNS > 0.2 && drift_squares / RUNS < 1.3);
    }
}

/* With the drift that the model assumes the normalised error has variance 1. */
TEST_BETWEEN(test_sigma, begin, end)
{
    enum { RUNS = 2000, DWELLS = 300 };
    const double sigma_s = 0.02 * us, dt = PERIOD / rate_hz;
    double sum_squares = 0, held_squares = 0;

    for (int run = 0; run < RUNS; run++) {
        double x = 5 * us, v = 1e-6 * gaussian();

        pnr_zero_begin(&zero, &config, &radar, NULL);
        for (uint64_t k = 0; k < DWELLS + 500; k++) {
            /* v' is white noise of density 1e-16: the exact step of both. */
            const double a = gaussian(), b = gaussian(), root = sqrt(1e-16 * dt);

            x += v * dt + root * dt * (a / 2 + b / sqrt(12));
            v += root * a;
            if (k < DWELLS)
                see(k, x + sigma_s * gaussian(), sigma_s);
            else
                miss(k);
            if (k == DWELLS - 1)
                sum_squares += pow((zero.last.delay_s - x) / zero.last.sigma_s, 2);
        }
        held_squares += pow((zero.last.delay_s - x) / zero.last.sigma_s, 2);
        assert_true(fabs(zero.last.held_s - 0.5) < 1e-9 && isnan(zero.last.snr_db));
    }
    assert_true(fabs(sum_squares / RUNS - 1) < 4 * sqrt(2.0 / RUNS));
    assert_true(fabs(held_squares / RUNS - 1) < 4 * sqrt(2.0 / RUNS));
}

/* Before the first detection the zero delay is that of the configuration, with the error of the
 * whole search. */
TEST_BETWEEN(test_never_seen, begin, end)
{
    const pnr_echo far = echo_at(70 * us, 0.01 * us, 40);
    pnr_detection d;

    for (uint64_t k = 0; k < 3; k++) {
        d = dwell_of(&far, 1);
        pnr_zero_track(&zero, k * PERIOD, &d);
        assert_true(zero.last.is_tracked && zero.last.delay_s == 5e-6);
        assert_true(fabs(zero.last.sigma_s - 10 * us / sqrt(3)) < 1e-12);
        assert_true(isnan(zero.last.held_s) && isnan(zero.last.moved_s) && !zero.is_alarm);
        assert_int_equal(d.n_echoes, 1);
        assert_true(d.echoes[0].delay_s == far.delay_s);
        assert_true(d.echoes[0].delay_sigma_s > 5 * us);
    }
}

/* The strongest echo of the first code near the last delay is the direct path. The delays of the
 * others count from it, with its sigma. Echoes beyond the ranges, and the weakest, are removed. */
TEST_BETWEEN(test_echoes, begin, end)
{
    pnr_echo echoes[6];
    pnr_detection d;

    set("radar.min_range_m=1500");  /* 10 us */
    set("radar.max_range_m=30000"); /* 200.14 us */
    set("detector.max_echoes=2");
    derive();
    pnr_zero_begin(&zero, &config, &radar, NULL);
    echoes[0] = echo_at(120 * us, 0.003 * us, 50); /* strong, and no direct path */
    echoes[1] = echo_at(7 * us, 0.004 * us, 40);
    echoes[1].code = 1;                          /* of another transmitter */
    echoes[2] = echo_at(8 * us, 0.004 * us, 35); /* this is it */
    echoes[3] = echo_at(4 * us, 0.004 * us, 33); /* between it and the ranges */
    echoes[4] = echo_at(210 * us, 0.1 * us, 20); /* beyond 200.14 + 5, within 200.14 + 8 - .. */
    echoes[5] = echo_at(300 * us, 0.1 * us, 15);
    d = dwell_of(echoes, 6);
    pnr_zero_track(&zero, 0, &d);
    assert_true(fabs(zero.last.delay_s - 8 * us) < 1e-15 && zero.last.snr_db == 35);
    assert_true(fabs(zero.last.sigma_s - 0.004 * us) < 1e-15 && zero.last.held_s == 0);
    assert_int_equal(d.n_echoes, 1);
    assert_true(fabs(d.echoes[0].delay_s - 112 * us) < 1e-15);
    assert_true(fabs(d.echoes[0].delay_samples - 112) < 1e-9);
    assert_true(fabs(d.echoes[0].delay_sigma_s - 0.005 * us) < 1e-15);
    assert_true(fabs(d.echoes[0].range_m - 112 * us * radar.metres_per_second) < 1e-8);
    assert_true(fabs(d.echoes[0].range_sigma_m - 0.005 * us * radar.metres_per_second) < 1e-8);

    /* The ranges move with it: 207 us was beyond them, and is inside now. */
    echoes[4] = echo_at(207 * us, 0.1 * us, 20);
    d = dwell_of(echoes, 6);
    pnr_zero_track(&zero, PERIOD, &d);
    assert_int_equal(d.n_echoes, 2);
    assert_true(fabs(d.echoes[1].delay_s - 199 * us) < 1e-12);

    echoes[3] = echo_at(100 * us, 0.004 * us, 33);
    d = dwell_of(echoes, 6);
    pnr_zero_track(&zero, 2 * PERIOD, &d);
    assert_int_equal(d.n_echoes, 2); /* max_echoes, without the direct path */
    assert_true(d.echoes[1].snr_db == 33);
}

/* It may drift over the whole period, far beyond the search around its first place. */
TEST_BETWEEN(test_round, begin, end)
{
    const double drift = 1e-5, sigma_s = 0.01 * us;
    uint64_t k;

    for (k = 0; k < 250000; k++)
        see(k, 5 * us + drift * (double)k * 1e-3 + sigma_s * gaussian(), sigma_s);
    assert_true(fabs(zero.last.delay_s - (5 * us + drift * (double)(k - 1) * 1e-3)) < sigma_s);
    assert_true(fabs(zero.last.drift_ppm - 10) < 0.1);
    /* Two turns and a half. */
    assert_true(fabs(fabs(zero.last.moved_s) - 500 * us) < 0.1 * us);
}

/* An echo that jumps is an outlier at first, and accepted when it stays. */
TEST_BETWEEN(test_astray, begin, end)
{
    uint64_t k = 0;

    for (; k < 100; k++)
        see(k, 5 * us, 0.01 * us);
    see(k++, 9 * us, 0.01 * us);
    assert_true(fabs(zero.last.delay_s - 5 * us) < 1e-9 && zero.last.held_s > 0);
    see(k++, 5 * us, 0.01 * us);
    assert_true(fabs(zero.last.delay_s - 5 * us) < 1e-9 && zero.last.held_s == 0);
    for (int i = 0; i < 15; i++)
        see(k++, 9 * us, 0.01 * us);
    assert_true(fabs(zero.last.delay_s - 5 * us) < 1e-9);
    see(k++, 9 * us, 0.01 * us);
    assert_true(fabs(zero.last.delay_s - 9 * us) < 1e-12 && zero.last.held_s == 0);
    assert_true(fabs(zero.last.moved_s - 4 * us) < 1e-12);
}

/* Crossing the limit once raises one alarm; noise around the limit raises no other. */
TEST_BETWEEN(test_alarm, begin, end)
{
    pnr_events events;
    pnr_event event;
    uint64_t k = 0;

    set("radar.zero_alarm_m=300"); /* 2.0014 us */
    pnr_zero_begin(&zero, &config, &radar, NULL);
    pnr_events_begin(&events);
    zero.events = &events;
    for (int turn = 1; turn <= 2; turn++) {
        for (int i = 0; i < 1000; i++, k++) {
            see(k, 5 * us + i * 2.1e-3 * us, 0.01 * us);
            if (zero.last.moved_s < 1.8 * us)
                assert_false(zero.is_alarm);
        }
        assert_true(zero.is_alarm && zero.n_alarms == (uint64_t)turn);
        for (int i = 1000; i >= 0; i--, k++)
            see(k, 5 * us + i * 2.1e-3 * us, 0.01 * us);
        assert_true(!zero.is_alarm && zero.n_alarms == (uint64_t)turn);
    }
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_ZERO_ALARM), 2);
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_ZERO_ALARM_ENDS), 2);
    assert_true(pnr_event_take(&events, &event) && event.kind == PNR_EVENT_ZERO_ALARM);
    assert_true(fabs(event.numbers[0] - 300) < 3 && event.numbers[1] == 300);
    assert_true(event.sample > 0 && event.sample % PERIOD == 0);
    assert_non_null(strstr(event.text, "beyond radar.zero_alarm_m = 300 (alarm 1)"));
    assert_true(pnr_event_take(&events, &event) && event.kind == PNR_EVENT_ZERO_ALARM_ENDS);
}

/* A run continues from the end of the last one, and accepts its first detection of the direct path
 * without the outlier test. */
TEST_BETWEEN(test_memory, begin, end)
{
    pnr_zero_memory memory;
    double first;

    assert_false(pnr_zero_remember(&zero, &memory));
    for (uint64_t k = 0; k < 300; k++)
        see(k, 6 * us + 3e-6 * (double)k * 1e-3, 0.01 * us);
    assert_true(pnr_zero_remember(&zero, &memory));
    first = zero.first;

    pnr_zero_begin(&zero, &config, &radar, &memory);
    miss(0);
    assert_true(zero.last.delay_s == memory.delay_s && isnan(zero.last.held_s));
    assert_true(fabs(zero.last.sigma_s - 1 * us) < 1e-9);
    assert_true(fabs(zero.last.moved_s - (memory.delay_s - first)) < 1e-15);
    assert_false(pnr_zero_remember(&zero, &memory));
    see(1, 6.4 * us, 0.01 * us);
    assert_true(fabs(zero.last.delay_s - 6.4 * us) < 1e-15);
    assert_true(fabs(zero.last.moved_s - (6.4 * us - first)) < 1e-15);
    assert_true(fabs(zero.last.drift_ppm - 3) < 0.1);
}

/* One dwell with an echo 7 us from the configured delay and 16 us from the memory; the search
 * reaches 10 us. */
static void see_elsewhere(uint64_t dwell)
{
    const pnr_echo echo = echo_at(12 * us, 0.01 * us, 30);
    pnr_detection d = dwell_of(&echo, 1);

    pnr_zero_track(&zero, dwell * PERIOD, &d);
}

/* A wrong delay of an earlier run is dropped when the direct path is seen near the configured
 * delay, and nothing near the wrong one; without any direct path it stays. */
TEST_BETWEEN(test_wrong_memory, begin, end)
{
    const pnr_zero_memory wrong = {-4 * us, 1e-9, 0, 1e-9, -4 * us};

    pnr_events events;

    pnr_events_begin(&events);
    pnr_zero_begin(&zero, &config, &radar, &wrong);
    zero.events = &events;
    for (uint64_t k = 0; k < 100; k++)
        miss(k);
    assert_true(zero.last.delay_s == wrong.delay_s);
    for (uint64_t k = 100; k < 115; k++) {
        see_elsewhere(k);
        assert_true(zero.last.delay_s == wrong.delay_s && isnan(zero.last.held_s));
    }
    see_elsewhere(115);
    assert_true(fabs(zero.last.delay_s - 12 * us) < 1e-12 && zero.last.held_s == 0);
    assert_true(zero.last.moved_s == 0);
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_ZERO_STATE_DROPPED), 1);

    pnr_zero_begin(&zero, &config, &radar, &wrong); /* one dwell without it begins a new count */
    for (uint64_t k = 0; k < 40; k++)
        if (k % 10 == 9)
            miss(k);
        else
            see_elsewhere(k);
    assert_true(zero.last.delay_s == wrong.delay_s);
}

TEST_BETWEEN(test_fixed, begin, end)
{
    const pnr_echo echo = echo_at(5 * us, 0.01 * us, 40);
    pnr_detection d = dwell_of(&echo, 1);
    pnr_zero_memory memory;

    set("radar.zero=fixed");
    pnr_zero_begin(&zero, &config, &radar, NULL);
    pnr_zero_track(&zero, 0, &d);
    assert_true(d.n_echoes == 1 && memcmp(&d.echoes[0], &echo, sizeof echo) == 0);
    assert_false(zero.last.is_tracked || pnr_zero_remember(&zero, &memory));
}
