/* SPDX-License-Identifier: MIT */
/* Tests the targets of the scene against first principles: delay, stretch, Doppler, and the
 * truth. */
#include "tests/fixture/scene_fixture.h"

/* Computes a(u) as a sum over the harmonics; N is odd. */
static void direct_at(const double (*c)[2], size_t n, long double u, double value[2])
{
    value[0] = value[1] = 0;
    for (size_t i = 0; i < n; i++) {
        long double m = i <= n / 2 ? (long double)i : (long double)i - (long double)n;
        long double angle = m * u / (long double)n;
        double phase = turn * (double)(angle - roundl(angle));

        value[0] += (c[i][0] * cos(phase) - c[i][1] * sin(phase)) / (double)n;
        value[1] += (c[i][0] * sin(phase) + c[i][1] * cos(phase)) / (double)n;
    }
}

/* Computes the delay tau by iteration. The wave meets the target at the time t' of its reflection,
 * where the range is range_m - velocity_mps t'. */
static long double delay_of(const pnr_config *config, const pnr_target *target, long double t)
{
    long double speed = config->radar.speed_mps, back = 0;

    for (int i = 0; i < 200; i++)
        back = (target->range_m - target->velocity_mps * (t - back)) / speed;
    return config->radar.path == PNR_PATH_TWO_WAY ? 2 * back : back;
}

/* Each harmonic m of an echo at rest is that of the code, turned by -2 pi m d / N. The delay d may
 * be a fraction or beyond N/2. */
TEST(delays_by_fractions)
{
    static const double delays[] = {0, 0.5, 3.25, 510.999, 511.5, 777.123456, 1022.75};

    for (size_t k = 0; k < sizeof delays / sizeof *delays; k++) {
        char range[64];
        stage s;

        snprintf(range, sizeof range, "target.1.range_m=%.17g",
                 delays[k] * 299792458.0 / 2 / 1000000);
        open_scene(&s, (const char *const[]){range, "target.1.amplitude=0.5",
                                             "target.1.phase_rad=1.25", NULL});
        double(*c)[2] = spectrum_of_code(&s), (*x)[2] = make_samples(&s, 5 * s.n, s.n);
        assert_int_equal(pnr_transform_forward(x, s.n), PNR_OK);
        for (size_t i = 0; i < s.n; i++) {
            double m = i <= s.n / 2 ? (double)i : (double)i - (double)s.n;
            double angle = 1.25 - turn * m * delays[k] / (double)s.n;
            double re = 0.5 * (c[i][0] * cos(angle) - c[i][1] * sin(angle));
            double im = 0.5 * (c[i][0] * sin(angle) + c[i][1] * cos(angle));

            assert_true(hypot(x[i][0] - re, x[i][1] - im) < 1e-9 * sqrt((double)s.n));
        }
        free(x);
        free(c);
        close_scene(&s);
    }
}

static void moving_matches_the_wave(const char *const *settings)
{
    static const uint64_t positions[] = {0,    1,     255,       256,
                                         1023, 99999, 123456789, UINT64_C(1000000000007)};
    stage s;

    open_scene(&s, settings);
    double(*c)[2] = spectrum_of_code(&s);
    const pnr_target *target = &s.config.targets[0];
    const pnr_radar *radar = pnr_scene_radar(s.scene);
    for (size_t k = 0; k < sizeof positions / sizeof *positions; k++) {
        long double clock = 1 + (long double)s.config.echo.clock_ppm * 1e-6L;
        long double t = positions[k] / (s.rate * clock);
        long double tau = delay_of(&s.config, target, t), tau0 = delay_of(&s.config, target, 0);
        long double u = (t - tau - s.config.radar.zero_delay_s) * s.rate - radar->epoch_sample -
                        radar->epoch_fraction;
        long double angle = -(long double)s.config.radar.carrier_hz * (tau - tau0);
        double phase = turn * (double)(angle - roundl(angle)) + target->phase_rad, a[2], x[1][2];

        direct_at((const double(*)[2])c, s.n, fmodl(u, (long double)s.n), a);
        pnr_scene_generate(s.scene, 0, positions[k], 1, x);
        double re = target->amplitude * (a[0] * cos(phase) - a[1] * sin(phase));
        double im = target->amplitude * (a[0] * sin(phase) + a[1] * cos(phase));
        /* The waveform has an error of 1e-8. At 1e12 samples the rounding of t and of the phase in
         * this test adds to it. */
        assert_true(hypot(x[0][0] - re, x[0][1] - im) < 1e-6);
        if (k < 6)
            assert_true(hypot(x[0][0] - re, x[0][1] - im) < 3e-8);
    }
    free(c);
    close_scene(&s);
}

TEST(moves_like_a_real_wave)
{
    moving_matches_the_wave((const char *const[]){"target.1.range_m=54321.98765",
                                                  "target.1.velocity_mps=7500",
                                                  "target.1.amplitude=1", NULL});
    moving_matches_the_wave((const char *const[]){
        "target.1.range_m=12000", "target.1.velocity_mps=-321.5", "target.1.amplitude=1",
        "target.1.phase_rad=-2", "echo.clock_ppm=12.5", "radar.zero_delay_s=3.3e-6",
        "code.epoch=-77", NULL});
    moving_matches_the_wave((const char *const[]){"radar.path=one-way", "target.1.range_m=12000",
                                                  "target.1.velocity_mps=900",
                                                  "target.1.amplitude=1", NULL});
    /* a sonar, for which v / c is not small */
    moving_matches_the_wave((const char *const[]){
        "radar.speed_mps=343", "source.rate_hz=48000", "radar.carrier_hz=8000",
        "target.1.range_m=1.234", "target.1.velocity_mps=20", "target.1.amplitude=1", NULL});
    /* the receiver's clock has an error, which stretches the code but not the carrier */
    moving_matches_the_wave((const char *const[]){"echo.clock_ppm=-40", "target.1.range_m=100",
                                                  "target.1.amplitude=1", NULL});
}

/* An approaching target has the Doppler 2 v f / (c - v), and the phase of its peak grows by 2 pi
 * times this times Tr. */
TEST(approach_turns_forward)
{
    stage s;
    double before[2], after[2];

    open_scene(&s, (const char *const[]){"target.1.range_m=30000", "target.1.velocity_mps=150",
                                         "target.1.amplitude=1", NULL});
    double(*c)[2] = spectrum_of_code(&s);
    double(*x)[2] = make_samples(&s, 0, s.n), (*y)[2] = make_samples(&s, s.n, s.n);
    double guess = 30000 * 2 / 299792458.0 * s.rate;
    measured_delay(&s, (const double(*)[2])c, x, guess, before);
    measured_delay(&s, (const double(*)[2])c, y, guess, after);
    double step = atan2(after[1] * before[0] - after[0] * before[1],
                        after[0] * before[0] + after[1] * before[1]);
    double doppler_hz = 2 * 150 * 30e6 / (299792458.0 - 150);
    double expected = turn * doppler_hz * (double)s.n / s.rate;
    assert_true(expected > 0.1 && expected < 1);
    assert_true(fabs(step - expected) < 1e-4 * expected);
    free(x);
    free(y);
    free(c);
    close_scene(&s);
}

/* The truth of a period is the delay that the correlation of its samples shows: at the start,
 * later, and with an error of the clock. */
TEST(tells_the_truth)
{
    static const uint64_t periods[] = {0, 1, 1000, 50000};
    stage s;

    open_scene(&s, (const char *const[]){"target.1.range_m=140000", "target.1.velocity_mps=400",
                                         "target.1.amplitude=1", "echo.clock_ppm=0.25",
                                         "radar.zero_delay_s=2.5e-6", "code.epoch=300", NULL});
    double(*c)[2] = spectrum_of_code(&s);
    const pnr_radar *radar = pnr_scene_radar(s.scene);
    for (size_t k = 0; k < sizeof periods / sizeof *periods; k++) {
        double(*x)[2] = make_samples(&s, radar->first_window + periods[k] * s.n, s.n), amplitude[2];
        pnr_truth truth;

        pnr_scene_truth(s.scene, 0, periods[k], &truth);
        double time =
            ((double)radar->first_window + ((double)periods[k] + 0.5) * (double)s.n) / s.rate;
        assert_true(fabs(truth.range_m - (140000 - 400 * time)) < 0.2);
        assert_true(truth.velocity_mps == 400 && isinf(truth.snr_db));
        assert_true(fabs(truth.delay_samples - truth.delay_s * s.rate) < 1e-9);
        assert_true(truth.delay_s >= radar->min_delay_s &&
                    truth.delay_s < radar->min_delay_s + radar->period_s);

        double guess = truth.delay_samples + 2.5 + 0.2;
        double lag = measured_delay(&s, (const double(*)[2])c, x, guess, amplitude);
        double error = remainder(lag - 2.5 - truth.delay_samples, (double)s.n);
        assert_true(fabs(error) < 1e-4);
        /* This is also the delay of the true range, plus 0.25e-6 of the elapsed samples, which is
         * the error of the clock. */
        double ideal = truth.range_m * 2 / 299792458.0 * s.rate + 0.25e-6 * time * s.rate;
        assert_true(fabs(remainder(ideal - truth.delay_samples, (double)s.n)) < 1e-3);
        free(x);
    }
    free(c);
    close_scene(&s);
}
