/* SPDX-License-Identifier: MIT */
/* The direct path through the whole pipeline: it drifts, fades, raises an alarm, and the next run
 * begins where the last one ended. */
#include "tests/fixture/pipeline_fixture.h"

#include "detector/zero_state.h"

/* 600 periods of 127 us; a direct path and a target of 47 dB after correlation; the receiver's
 * clock loses 3 samples against the transmitter's, in every path alike. */
enum { PERIODS = 600 };
static const char *const drifting[] = {
    "radar.zero=direct-path", "radar.zero_delay_s=3.3e-6", "radar.zero_search_m=1500",
    "radar.min_range_m=3000", "radar.max_range_m=12000",   "echo.leak_amplitude=0.1",
    "echo.noise_rms=0.005",   "echo.clock_ppm=39.37",      NULL};
static const double samples_m = 149.896229;

/* The same scene without the direct path between two positions. */
static void fade(stage *s, size_t from, size_t to)
{
    const double leak = s->config.echo.leak_amplitude;
    double(*samples)[2] = calloc(to - from, sizeof *samples);
    pnr_scene *scene;
    pnr_error error;

    s->config.echo.leak_amplitude = 0;
    assert_non_null(samples);
    assert_int_equal(pnr_scene_create(&s->config, &scene, &error), PNR_OK);
    pnr_scene_generate(scene, 0, from, to - from, samples);
    for (size_t i = from; i < to; i++)
        (void)pnr_format_write(s->config.source.format, samples[i - from],
                               s->bytes + i * s->sample_bytes);
    s->config.echo.leak_amplitude = leak;
    pnr_scene_destroy(scene);
    free(samples);
}

/* Mean and rms of the target's range error in samples, over results from .. to - 1, and the largest
 * error over its sigma. */
static void errors_of(const outcome *o, size_t from, size_t to, double *mean, double *rms,
                      double *worst)
{
    double sum = 0, squares = 0;

    *worst = 0;
    for (size_t i = from; i < to; i++) {
        const pnr_detection *d = &o->reports[i].detection;

        if (d->n_echoes != 1)
            fail_msg("%zu echoes in result %zu", d->n_echoes, i);

        const double error_m = d->echoes[0].range_m - 6000;

        sum += error_m / samples_m;
        squares += pow(error_m / samples_m, 2);
        *worst = fmax(*worst, fabs(error_m) / d->echoes[0].range_sigma_m);
    }
    *mean = sum / (double)(to - from);
    *rms = sqrt(squares / (double)(to - from));
}

TEST(test_drift)
{
    stage s;
    outcome o = {0};
    double mean, rms, worst;

    open_stage(&s, (size_t)N * PERIODS, drifting);
    save_stage(&s, 0);
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_OK);
    assert_int_equal(o.n, PERIODS);
    errors_of(&o, 0, PERIODS, &mean, &rms, &worst);
    print_message("# drift of 3 samples: mean error %.5f samples, rms %.5f, worst %.2f sigma\n",
                  mean, rms, worst);
    assert_true(fabs(mean) <= 0.001 && rms < 0.005 && worst < 5);
    for (size_t tenth = 0; tenth < 10; tenth++) {
        errors_of(&o, tenth * PERIODS / 10, (tenth + 1) * PERIODS / 10, &mean, &rms, &worst);
        assert_true(fabs(mean) <= 0.01);
    }
    for (size_t i = 0; i < PERIODS; i++) {
        const pnr_zero *zero = &o.reports[i].zero;
        /* The delay of the receiver in the middle of the dwell. */
        const double true_s = 3.3e-6 + 39.37e-6 * ((double)i + 0.5) * N * 1e-6;

        assert_true(zero->is_tracked && zero->held_s == 0 && zero->snr_db > 40);
        if (fabs(zero->delay_s - true_s) > 5 * zero->sigma_s)
            fail_msg("result %zu: zero delay %g +- %g, not %g", i, zero->delay_s, zero->sigma_s,
                     true_s);
        assert_false(o.reports[i].flags & PNR_FLAG_ZERO_ALARM);
    }
    assert_true(fabs(o.reports[PERIODS - 1].zero.drift_ppm - 39.37) < 0.5);
    assert_true(fabs(o.reports[PERIODS - 1].zero.moved_s - 3e-6) < 0.02e-6);
    forget_outcome(&o);

    /* With a fixed zero the ranges contain the drift: this shows that the test above measures
     * something. */
    set_stage(&s, "radar.zero=fixed");
    run_stage(&s, &o);
    errors_of(&o, 0, PERIODS, &mean, &rms, &worst);
    assert_true(fabs(mean - 1.5) < 0.01 && !o.reports[0].zero.is_tracked);
    forget_outcome(&o);
    close_stage(&s);
}

/* Maps, and delays that are not cyclic: the same drift, in dwells of 8 periods. */
TEST(test_kinds)
{
    static const char *const kinds[][3] = {
        {"dwell.periods=8", "dwell.combine=doppler", NULL},
        {"dwell.periods=8", "dwell.combine=coherent", "window.correlation=linear"},
        {"dwell.periods=8", "dwell.combine=coherent", NULL},
    };
    double mean, rms, worst;
    stage s;

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        outcome o = {0};

        open_stage(&s, (size_t)N * PERIODS, drifting);
        for (size_t i = 0; i < 3 && kinds[k][i] != NULL; i++)
            set_stage(&s, kinds[k][i]);
        save_stage(&s, 0);
        run_stage(&s, &o);
        if (o.code != PNR_OK)
            fail_msg("%s", o.error.text);
        assert_true(o.n >= PERIODS / 8 - 1);
        errors_of(&o, 0, o.n, &mean, &rms, &worst);
        print_message("# %s: mean error %.5f samples, rms %.5f, worst %.2f sigma\n", kinds[k][1],
                      mean, rms, worst);
        assert_true(fabs(mean) <= 0.01 && rms <= 0.01);
        assert_true(o.reports[o.n - 1].zero.held_s == 0);
        assert_true(fabs(o.reports[o.n - 1].zero.drift_ppm - 39.37) < 1);
        forget_outcome(&o);
        close_stage(&s);
    }
}

/* Clutter between the direct path and the wanted ranges, stronger than the target, and more of it
 * than max_echoes: none of it takes the target's place, also with searches after the first. */
TEST(test_clutter)
{
    static const char *const settings[] = {"target.2.range_m=500",
                                           "target.2.amplitude=0.07",
                                           "target.3.range_m=1100",
                                           "target.3.amplitude=0.05",
                                           "target.4.range_m=1700",
                                           "target.4.amplitude=0.06",
                                           "target.5.range_m=2300",
                                           "target.5.amplitude=0.05",
                                           "target.6.range_m=2800",
                                           "target.6.amplitude=0.07",
                                           "target.1.amplitude=0.02",
                                           "echo.leak_amplitude=0.15",
                                           "detector.max_echoes=1",
                                           "dwell.periods=8",
                                           "dwell.combine=doppler",
                                           "radar.zero_search_m=300",
                                           NULL};
    const char *all[32];
    double mean, rms, worst;
    size_t n = 0;
    stage s;

    for (size_t i = 0; drifting[i] != NULL; i++)
        all[n++] = drifting[i];
    for (size_t i = 0; settings[i] != NULL; i++)
        all[n++] = settings[i];
    all[n] = NULL;
    open_stage(&s, (size_t)N * 64, all);
    save_stage(&s, 0);
    for (size_t k = 0; k < 2; k++) {
        outcome o = {0};

        set_stage(&s, k == 0 ? "detector.subtract=0" : "detector.subtract=2");
        run_stage(&s, &o);
        assert_int_equal(o.code, PNR_OK);
        assert_int_equal(o.n, 8);
        errors_of(&o, 0, o.n, &mean, &rms, &worst);
        assert_true(fabs(mean) <= 0.02);
        forget_outcome(&o);
    }
    close_stage(&s);
}

TEST(test_fading)
{
    enum { FROM = 300, TO = 450 };
    stage s;
    outcome o = {0};
    double mean, rms, worst, sigma_s = 0;

    open_stage(&s, (size_t)N * PERIODS, drifting);
    fade(&s, (size_t)N * FROM, (size_t)N * TO);
    save_stage(&s, 0);
    run_stage(&s, &o);
    assert_int_equal(o.n, PERIODS);
    errors_of(&o, FROM, TO, &mean, &rms, &worst);
    print_message("# 150 dwells without direct path: mean error %.5f samples, worst %.2f sigma\n",
                  mean, worst);
    assert_true(fabs(mean) <= 0.01 && worst < 5);
    for (size_t i = 0; i < PERIODS; i++) {
        const pnr_zero *zero = &o.reports[i].zero;

        if (i < FROM || i >= TO) {
            assert_true(zero->held_s == 0 && zero->snr_db > 40);
            continue;
        }
        assert_true(isnan(zero->snr_db) && zero->sigma_s > sigma_s);
        assert_true(fabs(zero->held_s - (double)(i + 1 - FROM) * N * 1e-6) < 1e-12);
        sigma_s = zero->sigma_s;
    }
    errors_of(&o, TO, PERIODS, &mean, &rms, &worst);
    assert_true(fabs(mean) <= 0.01 && worst < 5);
    forget_outcome(&o);
    close_stage(&s);
}

/* 150 m are a sample: the alarm is raised at a third of the run, and remains. */
TEST(test_alarm)
{
    stage s;
    outcome o = {0};
    size_t first = 0;

    open_stage(&s, (size_t)N * PERIODS, drifting);
    set_stage(&s, "radar.zero_alarm_m=149.896229");
    save_stage(&s, 0);
    run_stage(&s, &o);
    while (first < o.n && !(o.reports[first].flags & PNR_FLAG_ZERO_ALARM))
        first++;
    assert_true(first > 190 && first < 210);
    for (size_t i = first; i < o.n; i++)
        assert_true(o.reports[i].flags & PNR_FLAG_ZERO_ALARM);
    forget_outcome(&o);
    close_stage(&s);
}

/* Reads the state that a run of this configuration left. */
static void read_state(const pnr_config *of, pnr_zero_memory *memory)
{
    pnr_radar radar;
    pnr_error error;

    assert_int_equal(pnr_radar_derive(of, N, &radar, &error), PNR_OK);
    assert_true(pnr_zero_state_read(of, &radar, PNR_FORMAT_CI16, NULL, memory));
}

/* A state that is 55 km off is not used: the ranges are as without it, and the file is right again
 * afterwards. */
TEST(test_poisoned_state)
{
    char path[320], setting[400];
    pnr_zero_memory memory;
    pnr_error error;
    stage s;
    outcome o = {0};
    double mean, rms, worst;

    open_stage(&s, (size_t)N * PERIODS, drifting);
    save_stage(&s, 0);
    snprintf(path, sizeof path, "%s/zero", s.folder);
    snprintf(setting, sizeof setting, "radar.zero_state_path=%s", path);
    set_stage(&s, setting);
    memory = (pnr_zero_memory){3.3e-6 + 55e3 / 149.896229e6, 1e-9, 0, 1e-9, 3.3e-6};
    assert_int_equal(pnr_zero_state_write(&s.config, PNR_FORMAT_CI16, &memory, false, &error),
                     PNR_OK);
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_OK);
    errors_of(&o, 0, PERIODS, &mean, &rms, &worst);
    assert_true(fabs(mean) <= 0.001 && rms < 0.005);
    forget_outcome(&o);
    read_state(&s.config, &memory);
    assert_true(fabs(memory.delay_s - 6.3e-6) < 0.05e-6);
    (void)unlink(path);
    close_stage(&s);
}

/* A second run in which the direct path is not seen measures from where the first one ended; one of
 * another rate, or after a file that is broken, does not. */
TEST(test_restart)
{
    char path[320], setting[400];
    pnr_zero_memory memory;
    stage s;
    outcome o = {0};
    double mean, rms, worst;

    open_stage(&s, (size_t)N * PERIODS, drifting);
    fade(&s, (size_t)N * 400, (size_t)N * PERIODS);
    save_stage(&s, 0);
    snprintf(path, sizeof path, "%s/zero", s.folder);
    snprintf(setting, sizeof setting, "radar.zero_state_path=%s", path);
    set_stage(&s, setting);
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_OK);
    forget_outcome(&o);
    read_state(&s.config, &memory);
    assert_true(fabs(memory.delay_s - 6.3e-6) < 0.05e-6 && fabs(memory.first_s - 3.3e-6) < 0.05e-6);

    /* The recording continues there, without the direct path and without drift. */
    set_stage(&s, "echo.clock_ppm=0");
    set_stage(&s, "echo.leak_amplitude=0");
    set_stage(&s, "radar.zero_delay_s=6.3e-6");
    fade(&s, 0, (size_t)N * PERIODS);
    set_stage(&s, "radar.zero_delay_s=3.3e-6");
    save_stage(&s, 0);
    run_stage(&s, &o);
    errors_of(&o, 0, PERIODS, &mean, &rms, &worst);
    assert_true(fabs(mean) <= 0.05 && isnan(o.reports[0].zero.held_s));
    assert_true(fabs(o.reports[0].zero.moved_s - 3e-6) < 0.05e-6);
    assert_true(o.reports[0].detection.echoes[0].range_sigma_m > 100);
    forget_outcome(&o);
    /* A run that never detected it has nothing to keep. */
    read_state(&s.config, &memory);

    assert_int_equal(truncate(path, 20), 0);
    run_stage(&s, &o);
    errors_of(&o, 0, PERIODS, &mean, &rms, &worst);
    assert_true(fabs(mean - 3) < 0.05);
    forget_outcome(&o);

    set_stage(&s, "radar.zero_state_path=/nowhere/zero");
    run_stage(&s, &o);
    assert_int_equal(o.code, PNR_EIO);
    assert_non_null(strstr(o.error.text, "/nowhere/zero"));
    forget_outcome(&o);
    (void)unlink(path);
    close_stage(&s);
}
