/* SPDX-License-Identifier: MIT */
/* Tests of the scene: levels, noise, leak, interference, tuning, chips, channels, blocks, and
 * refused settings. */
#include "tests/fixture/scene_fixture.h"
#include "transmit/wave.h"

/* The noise and the echo have their configured levels, within four standard deviations of each
 * estimate. */
TEST(keeps_the_levels)
{
    enum { PERIODS = 100 };
    stage s;

    open_scene(&s, (const char *const[]){"target.1.range_m=30000", "target.1.snr_db=-10",
                                         "echo.noise_rms=0.2", "echo.seed=3", NULL});
    size_t total = PERIODS * s.n;
    double(*noisy)[2] = make_samples(&s, 0, total), (*c)[2] = spectrum_of_code(&s), amplitude[2];
    double(*mean)[2] = calloc(s.n, sizeof *mean);
    for (size_t i = 0; i < total; i++) {
        mean[i % s.n][0] += noisy[i][0] / PERIODS;
        mean[i % s.n][1] += noisy[i][1] / PERIODS;
    }
    double within = 0; /* energy of the noise after the mean over the periods is subtracted */
    for (size_t i = 0; i < total; i++) {
        double re = noisy[i][0] - mean[i % s.n][0], im = noisy[i][1] - mean[i % s.n][1];
        within += re * re + im * im;
    }
    double power = within / (double)(total - s.n);
    assert_true(fabs(power / 0.04 - 1) < 4 / sqrt((double)(total - s.n)));

    measured_delay(&s, (const double(*)[2])c, mean, 30000 * 2 / 299792458.0 * s.rate, amplitude);
    double expected = 0.2 * pow(10, -0.5), sigma = 0.2 / sqrt(2.0 * (double)total);
    assert_true(fabs(hypot(amplitude[0], amplitude[1]) - expected) < 4 * sigma);

    pnr_truth truth;
    pnr_scene_truth(s.scene, 0, 0, &truth);
    assert_true(fabs(truth.snr_db + 10) < 1e-12);
    free(noisy);
    free(mean);
    free(c);
    close_scene(&s);
}

/* The scene with a leak, two targets and a CW signal equals the sum of scenes with one of these
 * each. */
TEST(adds_up)
{
    static const char *const parts[][4] = {
        {"echo.leak_amplitude=0.5", NULL},
        {"target.1.range_m=10000", "target.1.amplitude=0.25", "target.1.velocity_mps=30", NULL},
        {"target.1.range_m=20000", "target.1.amplitude=0.125", NULL},
        {"echo.cw_hz=12345.5", "echo.cw_amplitude=0.0625", NULL},
    };
    double(*sum)[2] = calloc(3000, sizeof *sum);
    stage s;

    for (size_t k = 0; k < 4; k++) {
        open_scene(&s, parts[k]);
        double(*x)[2] = make_samples(&s, 1000000, 3000);
        double energy = 0;
        for (size_t i = 0; i < 3000; i++) {
            sum[i][0] += x[i][0];
            sum[i][1] += x[i][1];
            energy += x[i][0] * x[i][0] + x[i][1] * x[i][1];
        }
        assert_true(energy > 0.9 * 3000 * ldexp(1, -2 * (int)k - 2));
        if (k == 3)
            for (size_t i = 0; i < 3000; i++) {
                double phase = turn * fmod(12345.5e-6 * (1000000 + (double)i), 1);
                assert_true(fabs(x[i][0] - 0.0625 * cos(phase)) < 1e-9);
                assert_true(fabs(x[i][1] - 0.0625 * sin(phase)) < 1e-9);
            }
        free(x);
        close_scene(&s);
    }
    open_scene(&s, (const char *const[]){"echo.leak_amplitude=0.5", "target.1.range_m=10000",
                                         "target.1.amplitude=0.25", "target.1.velocity_mps=30",
                                         "target.2.range_m=20000", "target.2.amplitude=0.125",
                                         "echo.cw_hz=12345.5", "echo.cw_amplitude=0.0625", NULL});
    double(*x)[2] = make_samples(&s, 1000000, 3000);
    for (size_t i = 0; i < 3000; i++)
        assert_true(hypot(x[i][0] - sum[i][0], x[i][1] - sum[i][1]) < 1e-12);
    free(x);
    free(sum);
    close_scene(&s);
}

/* The leak is the code at range zero. */
TEST(leaks_at_zero)
{
    stage s;
    pnr_wave *wave;
    pnr_error error;

    open_scene(&s, (const char *const[]){"echo.leak_amplitude=1", "code.epoch=5", NULL});
    assert_int_equal(pnr_wave_create(&s.config, false, &wave, &error), PNR_OK);
    double(*leak)[2] = make_samples(&s, 5, 2 * s.n), (*sent)[2] = calloc(2 * s.n, sizeof *sent);
    assert_non_null(sent);
    pnr_wave_generate(wave, 0, 2 * s.n, sent);
    for (size_t i = 0; i < 2 * s.n; i++) {
        assert_true(hypot(leak[i][0] - sent[i][0], leak[i][1] - sent[i][1]) < 1e-11);
        assert_true(fabs(fabs(sent[i][0]) - 1) < 1e-11 && fabs(sent[i][1]) < 1e-11);
    }
    assert_true(fabs(pnr_wave_peak(wave) - 1) < 1e-12);
    free(leak);
    free(sent);
    pnr_wave_destroy(wave);
    close_scene(&s);
}

TEST(turns_by_the_tune)
{
    static const uint64_t first = UINT64_C(3000000000000000);
    const char *still[] = {"target.1.range_m=3000", "target.1.amplitude=1", NULL, NULL, NULL};
    const pnr_rational cycles = {-1234567, 3000000};
    stage s;

    open_scene(&s, still);
    double(*x)[2] = make_samples(&s, first, 1000);
    close_scene(&s);
    still[2] = "source.tune_hz=-1234567/3";
    open_scene(&s, still);
    double(*tuned)[2] = make_samples(&s, first, 1000);
    close_scene(&s);
    still[3] = "source.spectrum=inverted";
    open_scene(&s, still);
    double(*inverted)[2] = make_samples(&s, first, 1000);
    close_scene(&s);
    for (size_t i = 0; i < 1000; i++) {
        double phase = turn * ldexp((double)pnr_rational_phase(cycles, first + i), -64);
        double re = x[i][0] * cos(phase) - x[i][1] * sin(phase);
        double im = x[i][0] * sin(phase) + x[i][1] * cos(phase);

        assert_true(hypot(tuned[i][0] - re, tuned[i][1] - im) < 1e-14);
        assert_true(inverted[i][0] == tuned[i][0] && inverted[i][1] == -tuned[i][1]);
    }
    free(x);
    free(tuned);
    free(inverted);
}

/* The first scene is plain. The second scene has every imperfection of a receiver, and a slip. */
TEST(is_the_same_in_any_blocks)
{
    static const uint64_t first = (UINT64_C(1) << 40) + 77;
    enum { TOTAL = 5000, PLAIN = 12 };
    const char *settings[] = {"echo.leak_amplitude=0.5",
                              "target.1.range_m=10000",
                              "target.1.amplitude=0.25",
                              "target.1.velocity_mps=30",
                              "target.2.range_m=20000",
                              "target.2.amplitude=0.125",
                              "echo.cw_hz=12345.5",
                              "echo.cw_amplitude=0.0625",
                              "echo.noise_rms=0.1",
                              "echo.clock_ppm=3",
                              "source.tune_hz=777/7",
                              "source.spectrum=inverted",
                              NULL,
                              "target.2.data_bit_periods=1",
                              "echo.noise_bandwidth_hz=600000",
                              "echo.phase_noise_rad=5",
                              "echo.iq_gain_db=1",
                              "echo.iq_phase_rad=0.1",
                              "echo.dc_amplitude=0.1",
                              "echo.slips=7+100,1099511628777+3000,1099511631900+1",
                              NULL};
    double(*part)[2] = malloc(TOTAL * sizeof *part);
    stage s;

    for (int full = 0; full < 2; full++) {
        if (full)
            settings[PLAIN] = "echo.dc_phase_rad=1";
        open_scene(&s, settings);
        double(*whole)[2] = make_samples(&s, first, TOTAL);
        for (size_t i = 0, n = 1; i < TOTAL; i += n, n = n * 7 % 601 + 1) {
            n = n < TOTAL - i ? n : TOTAL - i;
            pnr_scene_generate(s.scene, 0, first + i, n, part + i);
        }
        assert_memory_equal(whole, part, TOTAL * sizeof *part);
        free(whole);
        close_scene(&s);
    }
    free(part);
}

/* Rectangular chips whose band ends at half of the rate: 1023 chips of a GPS code in 4000 samples,
 * delayed by 2.6 samples. One target is at rest, one moves very slowly. The band limit makes the
 * chips ripple. */
TEST(has_square_chips)
{
    const char *settings[] = {"code.type=gps-l1ca",
                              "code.prn=1",
                              "source.rate_hz=4000000",
                              "code.chip_rate_hz=1023000",
                              "code.pulse=rectangular",
                              "target.1.amplitude=1",
                              "target.1.range_m=97.43254885",
                              NULL,
                              NULL,
                              NULL};
    pnr_code *code;
    pnr_error error;
    stage s;

    for (int moving = 0; moving < 2; moving++) {
        settings[7] = moving ? "target.1.velocity_mps=0.001" : NULL;
        settings[8] = "radar.carrier_hz=0";
        open_scene(&s, settings);
        assert_int_equal(s.n, 4000);
        assert_int_equal(pnr_code_create(&s.config, &code, &error), PNR_OK);
        double(*x)[2] = make_samples(&s, 8000, 4000);
        size_t inside = 0;
        for (size_t n = 0; n < 4000; n++) {
            const double place = fmod((double)n + 4000 - 2.6, 4000) * 1023 / 4000;
            const double within = (place - floor(place)) * 4000 / 1023;

            assert_true(fabs(x[n][1]) < 1e-9);
            if (within < 0.7 || within > 4000.0 / 1023 - 0.7)
                continue;
            assert_true(fabs(x[n][0] - code->chips[(size_t)place][0]) < 0.35);
            inside++;
        }
        assert_true(inside > 2500);
        free(x);
        pnr_code_destroy(code);
        close_scene(&s);
    }
}

TEST(leaves_other_channels_to_noise)
{
    stage s;

    open_scene(&s, (const char *const[]){"source.layout=channels", "source.channels=3",
                                         "source.channel=1", "source.format=f64",
                                         "target.1.range_m=3000", "target.1.amplitude=1",
                                         "echo.noise_rms=0.01", NULL});
    double power[3] = {0}, (*x)[2] = malloc(4000 * sizeof *x);
    for (size_t c = 0; c < 3; c++) {
        pnr_scene_generate(s.scene, c, 0, 4000, x);
        for (size_t i = 0; i < 4000; i++)
            power[c] += (x[i][0] * x[i][0] + x[i][1] * x[i][1]) / 4000;
    }
    assert_true(fabs(power[0] / 1e-4 - 1) < 0.1 && fabs(power[2] / 1e-4 - 1) < 0.1);
    assert_true(power[0] != power[2]);
    assert_true(fabs(power[1] - 1) < 0.01);
    free(x);
    close_scene(&s);
}

TEST(refuses_nonsense)
{
    static const struct {
        const char *settings[4];
        const char *says;
    } cases[] = {
        {{"target.1.range_m=1", "target.1.amplitude=1", "target.1.velocity_mps=299792458"},
         "target.1.velocity_mps"},
        {{"target.1.range_m=1", "target.1.snr_db=3"}, "noise_rms"},
        {{"code.1.degree=10", "code.2.degree=9"}, "code.2"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pnr_error error = {0};
        stage s;

        assert_int_equal(try_scene(&s, cases[i].settings, &error), PNR_ECONFIG);
        assert_non_null(strstr(error.text, cases[i].says));
        assert_null(s.scene);
        close_scene(&s);
    }
}

/* The scene of targets with two codes, of which one is at rest and one moves, equals the sum of two
 * scenes with one code each. */
TEST(each_target_has_its_code)
{
    static const char *const both[] = {
        "code.1.degree=10",         "code.2.type=random",    "code.2.length=1023",
        "target.1.amplitude=0.5",   "target.1.range_m=3000", "target.2.amplitude=0.3",
        "target.2.velocity_mps=70", "target.2.code=2",       "target.3.amplitude=0.1",
        "target.3.range_m=900",     "target.3.code=2",       NULL};
    static const char *const first[] = {"target.1.amplitude=0.5", "target.1.range_m=3000", NULL};
    static const char *const second[] = {"code.type=random",
                                         "code.length=1023",
                                         "target.1.amplitude=0.3",
                                         "target.1.velocity_mps=70",
                                         "target.2.amplitude=0.1",
                                         "target.2.range_m=900",
                                         NULL};
    static const char *const pulses[] = {"code.pulse=band-limited", "code.pulse=rectangular"};

    for (size_t pulse = 0; pulse < 2; pulse++) {
        const char *const *const settings[] = {both, first, second};
        double(*x[3])[2];

        for (size_t i = 0; i < 3; i++) {
            stage s;
            pnr_error error;

            pnr_config_init(&s.config);
            set_scene(&s.config, scene_base);
            set_scene(&s.config, settings[i]);
            assert_int_equal(pnr_config_set(&s.config, pulses[pulse], &error), PNR_OK);
            assert_int_equal(pnr_scene_create(&s.config, &s.scene, &error), PNR_OK);
            x[i] = make_samples(&s, 0, 3000);
            close_scene(&s);
        }
        for (size_t i = 0; i < 3000; i++)
            for (size_t q = 0; q < 2; q++)
                assert_true(fabs(x[0][i][q] - x[1][i][q] - x[2][i][q]) < 1e-12);
        for (size_t i = 0; i < 3; i++)
            free(x[i]);
    }
}
