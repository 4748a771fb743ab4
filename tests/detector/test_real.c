/* SPDX-License-Identifier: MIT */
/* Real samples, at base band and on a carrier, through the engine: delay, amplitude, SNR, and no
 * false echoes. The signal is the real part of the code's own interpolation, made here. */
#include "base/complex.h"
#include "base/transform.h"
#include "tests/fixture/detection_fixture.h"

/* Means over the echoes. bias_sigma and snr_sigma are standard deviations of these means: of `bias`
 * from the stated sigmas, of `snr` from its scatter. snr, cn0 and amplitude are divided by the true
 * ones. */
typedef struct seen {
    double n, n_found, n_false, bias, bias_sigma, delay2, snr, snr_sigma, cn0, amplitude;
} seen;

/* Writes a cos(2 pi tune n + phase) of one echo, and noise of this deviation, as real samples over
 * the chain's complex ones. */
static void write_real(chain *c, const double (*a)[2], double amplitude, double tune, double noise)
{
    const size_t n = c->setup->plan.n_samples, count = c->windows.spans[0].n_samples;
    const double phase = tune > 0 ? 2 * M_PI * uniform() : 0;
    float *x = (float *)c->x;

    for (size_t i = 0; i < count; i++) {
        const double complex carrier = pnr_cis(phase + 2 * M_PI * remainder(tune * (double)i, 1));
        const double complex value = amplitude * carrier * CMPLX(a[i % n][0], a[i % n][1]);

        x[i] = (float)(creal(value) + noise * gaussian());
    }
}

/* The waveform that the transmitter sends, whatever the setup makes of it for real samples. On a
 * carrier it has no frequencies that real samples would fold back: below 0 and beyond half of the
 * rate, there. */
static pnr_waveform *sent_waveform(const char *const *settings, double tune)
{
    pnr_config config;
    pnr_setup *setup = setup_of(&config, settings); /* of complex samples */
    pnr_waveform *out;
    const size_t n = setup->plan.n_samples;
    double complex *a = calloc(n, sizeof *a);

    assert_non_null(a);
    assert_int_equal(pnr_waveform_shift(setup->codes[0].waveform, 0, a), PNR_OK);
    assert_int_equal(pnr_transform_forward((double(*)[2])a, n), PNR_OK);
    for (size_t k = 0; k < n; k++) {
        const double cycles = tune + (2 * k < n ? (double)k : (double)k - (double)n) / (double)n;

        a[k] = tune > 0 && (cycles <= 0 || cycles >= 0.5) ? 0 : a[k] / (double)n;
    }
    assert_int_equal(pnr_transform_inverse((double(*)[2])a, n), PNR_OK);
    assert_int_equal(pnr_waveform_create(a, n, &out), PNR_OK);
    free(a);
    pnr_setup_destroy(setup);
    pnr_config_clear(&config);
    return out;
}

static seen run_real(const char *const *settings, double tune, double snr_db, size_t n_dwells)
{
    pnr_waveform *waveform = sent_waveform(settings, tune);
    seen out = {0};
    chain c;

    if (!open_format_chain(&c, settings, PNR_FORMAT_F32))
        skip();

    const size_t n = c.setup->plan.n_samples;
    const double rate = pnr_rational_double(c.setup->radar.rate_hz);
    /* At base band the matched filter has A^2 E / sigma^2 with the noise of a real dimension, and
     * half of it against one cell of complex noise; on a carrier a quarter. */
    const double amplitude = 0.1, snr = pow(10, snr_db / 10);
    const double energy = pnr_waveform_energy(waveform) * (tune > 0 ? 0.25 : 0.5);
    const double noise = amplitude * sqrt(energy / snr);
    double complex *a = calloc(n, sizeof *a);

    assert_non_null(a);
    for (n_dwells /= SHARE; out.n < (double)n_dwells; out.n++) {
        const double lag = floor(uniform() * (double)n) + floor(4 * uniform()) / 4;
        pnr_detection found;

        assert_int_equal(pnr_waveform_shift(waveform, lag, a), PNR_OK);
        write_real(&c, (const double(*)[2])a, amplitude, tune, noise);
        correlate_chain(&c);
        detect_dwell(&c, 0, &found);
        for (size_t e = 0; e < found.n_echoes; e++) {
            const pnr_echo *echo = &found.echoes[e];
            const double error = remainder(echo->lag - lag, (double)n);

            if (fabs(error) > 1) {
                out.n_false++;
                continue;
            }
            out.n_found++;
            out.bias += error;
            out.bias_sigma += pow(echo->delay_sigma_s * rate, 2);
            out.delay2 += pow(error / (echo->delay_sigma_s * rate), 2);
            out.snr += echo->snr / snr;
            out.snr_sigma += pow(echo->snr / snr, 2);
            out.cn0 += pow(10, echo->cn0_dbhz / 10) * c.setup->radar.period_s / snr;
            out.amplitude += echo->amplitude / amplitude;
        }
    }
    out.bias /= out.n_found;
    out.bias_sigma = sqrt(out.bias_sigma) / out.n_found;
    out.delay2 /= out.n_found;
    out.amplitude /= out.n_found;
    out.snr /= out.n_found;
    out.snr_sigma = sqrt((out.snr_sigma / out.n_found - out.snr * out.snr) / out.n_found);
    out.cn0 /= out.n_found;
    print_message("%s, tune %g, %.0f dB: %.0f dwells, found %.0f, false %.0f, bias %.4f of sigma "
                  "%.4f samples, (error/sigma)^2 %.3f, S %.3f and C/N0 %.3f times the true one, "
                  "sigma %.4f, amplitude %.3f\n",
                  c.setup->codes[0].code->name, tune, snr_db, out.n, out.n_found, out.n_false,
                  out.bias, out.bias_sigma, out.delay2, out.snr, out.cn0, out.snr_sigma,
                  out.amplitude);
    free(a);
    pnr_waveform_destroy(waveform);
    close_chain(&c);
    return out;
}

/* Asserts that a mean of n squares of normal numbers of variance 1 is within five sigmas. The cube
 * root of such a mean is nearly normal with the mean 1 - v and the variance v = 2 / (9 n) (Wilson
 * and Hilferty 1931). */
static void assert_mean_square(double mean, double n)
{
    const double v = 2 / (9 * n);

    assert_on_average(fabs(cbrt(mean) - (1 - v)) < 5 * sqrt(v));
}

/* The limits are those of chance, about once in 1e5 runs of the program. The number of false echoes
 * has a Poisson distribution with a mean of at most 0.1: more than 4 in one of 1e7 runs. The noise
 * of an echo of 45 dB comes from few cells around it, so its S scatters; 2.3 % are 0.1 dB. */
static void assert_right(const seen *s)
{
    const double snr_limit = 0.023 + 4 * s->snr_sigma;

    assert_on_average(s->n_found == s->n && s->n_false <= 4);
    assert_on_average(fabs(s->bias) < 5 * s->bias_sigma);
    assert_mean_square(s->delay2, s->n_found);
    assert_on_average(fabs(s->amplitude - 1) < 0.02);
    assert_on_average(fabs(s->snr - 1) < snr_limit && fabs(s->cn0 - 1) < snr_limit);
}

TEST(at_base_band)
{
    static const char *const one[] = {"code.degree=9", "engine.batch=1", "detector.pfa=1e-4", NULL};
    static const char *const four[] = {"code.degree=8", "code.chip_rate_hz=250000",
                                       "engine.batch=1", "detector.pfa=1e-4", NULL};

    for (double snr_db = 25; snr_db <= 45; snr_db += 20) {
        const seen s = run_real(one, 0, snr_db, 1000), t = run_real(four, 0, snr_db, 1000);

        assert_right(&s);
        assert_right(&t);
    }
}

/* A sonar: 12 samples a chip on a carrier of a quarter of the rate. */
TEST(on_a_carrier)
{
    static const char *const sonar[] = {"code.degree=9",        "code.chip_rate_hz=1e6/12",
                                        "source.tune_hz=250e3", "engine.batch=1",
                                        "detector.pfa=1e-4",    NULL};
    static const char *const gps[] = {"code.type=gps-l1ca",     "code.prn=7",
                                      "source.rate_hz=8184000", "code.chip_rate_hz=1.023e6",
                                      "source.tune_hz=2.046e6", "engine.batch=1",
                                      "detector.pfa=1e-4",      NULL};

    for (double snr_db = 25; snr_db <= 45; snr_db += 20) {
        const seen s = run_real(sonar, 0.25, snr_db, 500), t = run_real(gps, 0.25, snr_db, 500);

        assert_right(&s);
        assert_right(&t);
    }
}
