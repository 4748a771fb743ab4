/* SPDX-License-Identifier: MIT */
/* Real samples, at base band and on a carrier, through the engine: delay, amplitude, SNR, and no
 * false echoes. The signal is the real part of the code's own interpolation, made here. */
#include "base/complex.h"
#include "base/transform.h"
#include "tests/fixture/detection_fixture.h"

typedef struct seen {
    double n, n_found, n_false, bias, delay2, snr, cn0, amplitude;
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
            out.delay2 += pow(error / (echo->delay_sigma_s * rate), 2);
            out.snr += echo->snr;
            out.cn0 += pow(10, echo->cn0_dbhz / 10) * c.setup->radar.period_s;
            out.amplitude += echo->amplitude / amplitude;
        }
    }
    out.bias /= out.n_found;
    out.delay2 /= out.n_found;
    out.amplitude /= out.n_found;
    out.snr = 10 * log10(out.snr / out.n_found);
    out.cn0 = 10 * log10(out.cn0 / out.n_found);
    print_message("%s, tune %g: %.0f dwells, found %.0f, false %.0f, bias %.4f samples, "
                  "(error/sigma)^2 %.3f, SNR %.2f of %.0f dB, amplitude %.3f\n",
                  c.setup->codes[0].code->name, tune, out.n, out.n_found, out.n_false, out.bias,
                  out.delay2, out.snr, snr_db, out.amplitude);
    free(a);
    pnr_waveform_destroy(waveform);
    close_chain(&c);
    return out;
}

static void assert_right(const seen *s, double snr_db)
{
    assert_on_average(s->n_found == s->n && s->n_false <= 1);
    assert_on_average(fabs(s->bias) < 0.01);
    assert_on_average(s->delay2 > 0.8 && s->delay2 < 1.25);
    assert_on_average(fabs(s->amplitude - 1) < 0.02);
    assert_on_average(fabs(s->snr - snr_db) < 0.2 && fabs(s->cn0 - snr_db) < 0.2);
}

TEST(at_base_band)
{
    static const char *const one[] = {"code.degree=9", "engine.batch=1", "detector.pfa=1e-4", NULL};
    static const char *const four[] = {"code.degree=8", "code.chip_rate_hz=250000",
                                       "engine.batch=1", "detector.pfa=1e-4", NULL};

    for (double snr_db = 25; snr_db <= 45; snr_db += 20) {
        const seen s = run_real(one, 0, snr_db, 1000), t = run_real(four, 0, snr_db, 1000);

        assert_right(&s, snr_db);
        assert_right(&t, snr_db);
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

        assert_right(&s, snr_db);
        assert_right(&t, snr_db);
    }
}
