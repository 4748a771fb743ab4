/* SPDX-License-Identifier: MIT */
/* Data bits change the sign of an echo within a look: one echo, at its Doppler, with its SNR. */
#include "base/complex.h"
#include "detector/sign.h"
#include "tests/fixture/detection_fixture.h"

#define SCENE                                                                                      \
    "code.degree=9", "detector.pfa=1e-6", "dwell.combine=doppler", "dwell.periods=10",             \
        "doppler.step=whole", "engine.batch=50"

/* One scene: bits of so many periods that change their sign at random (0: none), and echoes at the
 * same delay, `apart` rows from each other. in_middle: the sign changes in the middle of each
 * look. bins: mean Doppler, in cycles a period. */
typedef struct scene {
    size_t bits;
    double snr_db;
    int n_echoes;
    double apart;
    bool in_middle;
    double bins;
} scene;

typedef struct seen {
    double n, n_first, n_dwells, n_changed, n_flagged, snr, amplitude, delay2, doppler2, worst;
} seen;

/* Adds an echo of `bins` cycles a period; its bits begin at a random period. Sets changed[d] where
 * its sign changes by more than a tenth of the look from either end. */
static void add_data(chain *c, const scene *s, double lag, double bins, double amplitude,
                     bool *changed)
{
    const size_t n = c->setup->plan.n_samples, k = c->setup->plan.n_periods;
    const size_t first = s->in_middle ? k / 2 : (size_t)(uniform() * (double)s->bits);
    const double phase = 2 * M_PI * uniform();
    double(*a)[2] = delayed_code(c, lag), sign = 1;

    for (size_t i = 0; i < c->windows.spans[0].n_samples; i++) {
        const size_t period = (size_t)floor(((double)i - lag) / (double)n + 1); /* of the code */
        const bool begins = i > 0 && period > floor(((double)i - 1 - lag) / (double)n + 1);

        if (s->bits > 0 && begins && (period + first) % s->bits == 0 &&
            (s->in_middle || uniform() < 0.5)) {
            const size_t in_look = i % (n * k);

            sign = -sign;
            changed[i / (n * k)] |= in_look > n * k / 10 && in_look < n * k * 9 / 10;
        }

        const double complex x = sign * amplitude * CMPLX(a[i % n][0], a[i % n][1]) *
                                 pnr_cis(phase + 2 * M_PI * bins * (double)i / (double)n);

        c->x[i][0] += (float)creal(x);
        c->x[i][1] += (float)cimag(x);
    }
    free(a);
}

static void judge_echo(const chain *c, const pnr_echo *echo, double lag, double bins,
                       double amplitude, seen *out)
{
    const double rate = pnr_rational_double(c->setup->radar.rate_hz);
    const double hz = bins / c->setup->radar.period_s;
    const double doppler = (echo->doppler_hz - hz) / echo->doppler_sigma_hz;

    out->n_first++;
    out->snr += echo->snr;
    out->amplitude += echo->amplitude / amplitude;
    out->delay2 += pow((echo->lag - lag) / (echo->delay_sigma_s * rate), 2);
    out->doppler2 += doppler * doppler;
    out->worst = fmax(out->worst, fabs(doppler));
}

static seen run_scene(const char *const *settings, const scene *s, int n_batches)
{
    seen out = {0};
    chain c;

    if (!open_chain(&c, settings))
        skip();
    for (int batch = 0; batch < (SHARE > 1 ? 1 : n_batches); batch++) {
        const double n = (double)c.setup->plan.n_samples, k = (double)c.setup->plan.n_periods;
        const double power = 1e-3, lag = n * (0.1 + 0.8 * uniform());
        const double bins = s->bins + 0.4 * uniform() - 0.2;
        const double amplitude = sqrt(power / (n * k) * pow(10, s->snr_db / 10));
        bool changed[50] = {false};

        clear_chain(&c);
        add_noise(c.x, c.windows.spans[0].n_samples, power);
        for (int e = 0; e < s->n_echoes; e++)
            add_data(&c, s, lag, bins + e * s->apart / k, amplitude, changed);
        correlate_chain(&c);
        for (size_t d = 0; d < c.setup->plan.batch; d++) {
            pnr_detection found;

            detect_dwell(&c, d, &found);
            out.n_dwells++;
            out.n_changed += changed[d];
            out.n_flagged += found.is_sign_changed;
            out.n += (double)found.n_echoes;
            if (found.n_echoes > 0)
                judge_echo(&c, &found.echoes[0], lag, bins, amplitude, &out);
        }
    }
    close_chain(&c);
    out.snr = 10 * log10(out.snr / out.n_first);
    out.amplitude /= out.n_first;
    out.delay2 /= out.n_first;
    out.doppler2 /= out.n_first;
    print_message(
        "bits of %zu, %.0f dB: %.0f echoes in %.0f dwells, signs changed in %.0f, flagged "
        "%.0f, SNR %.2f dB, amplitude %.3f, (error/sigma)^2 of delay %.2f, Doppler %.2f, "
        "worst %.1f\n",
        s->bits, s->snr_db, out.n, out.n_dwells, out.n_changed, out.n_flagged, out.snr,
        out.amplitude, out.delay2, out.doppler2, out.worst);
    return out;
}

/* Strong echoes too: there the lobes beyond the first pair are candidates. */
TEST(one_echo_at_its_doppler)
{
    static const char *const settings[][10] = {
        {SCENE, "code.bits=13"},
        {SCENE, "code.bits=20", "window.correlation=linear", "radar.max_range_m=70000"},
    };

    for (size_t i = 0; i < 2; i++)
        for (double snr_db = 24; snr_db <= 36; snr_db += 6) {
            const seen s =
                run_scene(settings[i], &(scene){i == 0 ? 13 : 20, snr_db, 1, 0, false, 0}, 60);

            /* A mean of 3000 squares has the standard deviation 0.026. */
            assert_on_average(s.n_changed > 300);
            assert_on_average(fabs(s.n - s.n_dwells) <= 6);
            assert_on_average(s.n_flagged >= 0.98 * s.n_changed);
            assert_on_average(fabs(s.snr - snr_db) < 0.2 && fabs(s.amplitude - 1) < 0.02);
            assert_on_average(s.delay2 > 0.8 && s.delay2 < 1.25);
            assert_on_average(s.doppler2 > 0.8 && s.doppler2 < 1.25 && s.worst < 5.5);
        }
}

/* Two equal lobes, so the row of the candidate is that of either: up to 1.25 rows beside the
 * echo. */
TEST(a_change_in_the_middle)
{
    static const char *const settings[] = {SCENE, "code.bits=10", NULL};

    for (double snr_db = 24; snr_db <= 36; snr_db += 6) {
        const seen s = run_scene(settings, &(scene){10, snr_db, 1, 0, true, 0}, 20);

        assert_on_average(fabs(s.n - s.n_dwells) <= 2 && s.n_flagged >= 0.99 * s.n_dwells);
        assert_on_average(s.doppler2 > 0.8 && s.doppler2 < 1.25 && s.worst < 5.5);
    }
}

/* The ten rows repeat after the last one, so lobes beyond it are candidates in the first rows. */
TEST(lobes_beyond_the_last_row)
{
    static const char *const settings[] = {SCENE, "code.bits=13", NULL};

    for (double snr_db = 30; snr_db <= 36; snr_db += 6) {
        const seen s = run_scene(settings, &(scene){13, snr_db, 1, 0, false, 0.1}, 40);

        assert_on_average(fabs(s.n - s.n_dwells) <= 4 && s.n_flagged >= 0.98 * s.n_changed);
        assert_on_average(s.doppler2 > 0.8 && s.doppler2 < 1.25 && s.worst < 5.5);
    }
}

/* Without data nothing is flagged; without code.bits nothing is corrected, which shows what the
 * test above is about. */
TEST(only_data_are_corrected)
{
    static const char *const with[] = {SCENE, "code.bits=13", NULL};
    static const char *const without[] = {SCENE, NULL};
    seen s;

    for (double snr_db = 20; snr_db <= 40; snr_db += 10) {
        s = run_scene(with, &(scene){0, snr_db, 1, 0, false, 0}, 20);
        assert_true(s.n_flagged <= 1 + 1e-3 * s.n_dwells);
        assert_on_average(s.doppler2 > 0.8 && s.doppler2 < 1.25);
    }
    s = run_scene(without, &(scene){13, 28, 1, 0, false, 0}, 20);
    assert_true(s.n_flagged == 0);
    assert_on_average(s.n > s.n_dwells && s.doppler2 > 10 && s.worst > 20);
}

/* Two echoes at one delay that differ by three rows are no pair of lobes. */
TEST(two_echoes_stay_two)
{
    static const char *const settings[] = {SCENE, "code.bits=13", NULL};
    const seen s = run_scene(settings, &(scene){0, 28, 2, 3, false, 0}, 10);

    assert_on_average(s.n >= 1.95 * s.n_dwells && s.n_flagged <= 0.02 * s.n_dwells);
}

static bool is_corrected(const char *const *settings)
{
    pnr_config config;
    pnr_setup *setup = setup_of(&config, settings);
    pnr_detector *detector;
    bool is;

    assert_int_equal(pnr_detector_create(&config, setup, &detector, NULL), PNR_OK);
    is = pnr_sign_is_corrected(detector, 0);
    pnr_detector_destroy(detector);
    pnr_setup_destroy(setup);
    pnr_config_clear(&config);
    return is;
}

TEST(where_it_is_corrected)
{
    static const char *const yes[][10] = {{SCENE, "code.bits=20"},
                                          {SCENE, "code.bits=20", "dwell.periods=40"},
                                          {SCENE, "code.bits=8"}};
    static const char *const no[][10] = {
        {SCENE},
        {SCENE, "code.bits=0"},
        {SCENE, "code.bits=2"},
        {SCENE, "code.bits=20", "dwell.periods=48"},
        {SCENE, "code.bits=20", "dwell.looks=2"},
        {SCENE, "code.bits=20", "detector.subtract=1"},
        {SCENE, "code.bits=20", "dwell.clutter=remove"},
        {SCENE, "code.bits=20", "dwell.combine=coherent"},
    };

    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(is_corrected(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(is_corrected(no[i]));
}
