/* SPDX-License-Identifier: MIT */
/* The noise that the correlator sees, in scenes whose samples hold other noise: behind a receiver's
 * filter, with DC, with a carrier. The scenes are made here, and the truth from their spectra. */
#include "base/complex.h"
#include "base/transform.h"
#include "tests/fixture/detection_fixture.h"

enum { TAPS = 101 };

/* A scene besides the echo, for each sample: white noise of power `white` through a filter of unit
 * power gain (cutoff: of the Nyquist frequency; 0: none), a constant, and a tone. */
typedef struct scene {
    double white, cutoff, dc, tone, cycles; /* amplitudes; cycles a sample */
} scene;

static double tap[TAPS];

/* The windowed sinc of scipy.signal.firwin(101, cutoff), scaled to the power gain 1. */
static void design_filter(double cutoff)
{
    double energy = 0;

    for (int i = 0; i < TAPS; i++) {
        const double t = i - TAPS / 2, hamming = 0.54 - 0.46 * cos(2 * M_PI * i / (TAPS - 1));

        tap[i] = hamming * (t == 0 ? cutoff : sin(M_PI * cutoff * t) / (M_PI * t));
        energy += tap[i] * tap[i];
    }
    for (int i = 0; i < TAPS; i++)
        tap[i] /= sqrt(energy);
}

static void add_scene(chain *c, const scene *s)
{
    const size_t n = c->windows.spans[0].n_samples, length = n + TAPS - 1;
    float(*noise)[2] = calloc(length, sizeof *noise);
    const double turn = uniform();

    assert_non_null(noise);
    add_noise(noise, length, s->white);
    for (size_t i = 0; i < n; i++) {
        double complex x = s->dc + s->tone * pnr_cis(2 * M_PI * (turn + s->cycles * (double)i));

        if (s->cutoff == 0)
            x += CMPLX(noise[i][0], noise[i][1]);
        for (int t = 0; t < TAPS && s->cutoff > 0; t++)
            x += tap[t] * CMPLX(noise[i + (size_t)t][0], noise[i + (size_t)t][1]);
        c->x[i][0] += (float)creal(x);
        c->x[i][1] += (float)cimag(x);
    }
    free(noise);
}

/* The mean power that the scene gives a cell of one window, divided by that of white noise of power
 * 1: (1/N) sum over frequencies of the power density times |A(f)|^2, divided by sum |A|^2. */
static double noise_in_band(const chain *c, const scene *s)
{
    const size_t n = c->setup->plan.n_samples;
    double(*a)[2] = delayed_code(c, 0);
    double total = 0, energy = 0;

    assert_int_equal(pnr_transform_forward(a, n), PNR_OK);
    for (size_t k = 0; k < n; k++) {
        const double power = a[k][0] * a[k][0] + a[k][1] * a[k][1];
        double complex h = s->cutoff == 0;

        for (int t = 0; t < TAPS && s->cutoff > 0; t++)
            h += tap[t] * pnr_cis(2 * M_PI * (double)k * t / (double)n);
        total += power * s->white * pnr_power(h);
        energy += power;
    }
    total += s->dc * s->dc * (double)n * (a[0][0] * a[0][0] + a[0][1] * a[0][1]);
    free(a);
    return total / energy;
}

typedef struct seen {
    double n, n_found, n_false, n_coloured, snr, delay2;
} seen;

/* Plants one echo of this SNR against the noise of a cell (-INFINITY: none) at a random delay. */
static seen run_scene(const char *const *settings, const scene *s, double snr_db, size_t n_dwells)
{
    seen out = {0};
    chain c;

    if (!open_chain(&c, settings))
        skip();
    design_filter(s->cutoff > 0 ? s->cutoff : 0.5);

    const double n = (double)c.setup->plan.n_samples;
    const double windows = (double)pnr_plan_windows(&c.setup->plan);
    const double rate = pnr_rational_double(c.setup->radar.rate_hz);
    const double cell = noise_in_band(&c, s);
    const double amplitude = sqrt(cell * pow(10, snr_db / 10) / (n * windows));

    for (n_dwells /= SHARE; out.n < (double)n_dwells;) {
        double *delays = calloc(c.setup->plan.batch, sizeof *delays);

        assert_non_null(delays);
        clear_chain(&c);
        add_scene(&c, s);
        for (size_t d = 0; amplitude > 0 && d < c.setup->plan.batch; d++) {
            double(*a)[2] = delayed_code(&c, delays[d] = uniform() * n);

            add_echo(&c, d, (const double(*)[2])a, amplitude, 7 * uniform());
            free(a);
        }
        correlate_chain(&c);
        for (size_t d = 0; d < c.setup->plan.batch; d++, out.n++) {
            pnr_detection found;

            detect_dwell(&c, d, &found);
            out.n_coloured += found.is_coloured;
            for (size_t e = 0; e < found.n_echoes; e++) {
                const pnr_echo *echo = &found.echoes[e];
                const double error = remainder(echo->lag - delays[d], n);

                if (amplitude == 0 || fabs(error) > 1) {
                    out.n_false++;
                    continue;
                }
                out.n_found++;
                out.snr += echo->snr;
                out.delay2 += pow(error / (echo->delay_sigma_s * rate), 2);
            }
        }
        free(delays);
    }
    out.snr = 10 * log10(out.snr / out.n_found);
    out.delay2 /= out.n_found;
    print_message("%s: %.0f dwells, found %.0f, false %.0f, SNR %.2f of %.2f dB, (error/sigma)^2 "
                  "%.2f\n",
                  c.setup->codes[0].code->name, out.n, out.n_found, out.n_false, out.snr, snr_db,
                  out.delay2);
    close_chain(&c);
    return out;
}

static const char *const four[] = {"code.degree=8", "code.chip_rate_hz=250000", "detector.pfa=1e-2",
                                   "engine.batch=100", NULL};
static const char *const rare[] = {"code.degree=8", "code.chip_rate_hz=250000", "detector.pfa=1e-4",
                                   "engine.batch=100", NULL};
static const char *const one[] = {"code.degree=10", "detector.pfa=1e-4", "engine.batch=100", NULL};
static const char *const phases[] = {"code.type=random", "code.length=1000", "detector.pfa=1e-4",
                                     "engine.batch=100", NULL};

/* A receiver whose filter passes 0.625 of its samples' bandwidth: all of the noise is in the code's
 * band. At most 100 false alarms are expected; 1.5 times as many are 5 standard deviations more. */
TEST(noise_behind_a_filter_gives_no_more_false_alarms)
{
    const seen s = run_scene(four, &(scene){.white = 0.01, .cutoff = 0.625}, -INFINITY, 10000);

    assert_on_average(s.n_false <= 1.5 * 0.01 * 10000);
}

TEST(snr_counts_the_noise_in_the_band_of_the_code)
{
    const scene coloured = {.white = 0.01, .cutoff = 0.625},
                narrow = {.white = 0.01, .cutoff = 0.3};

    for (double snr_db = 20; snr_db <= 60; snr_db += 20) {
        const seen s = run_scene(rare, &coloured, snr_db, 2500);
        const seen t = run_scene(rare, &narrow, snr_db, 2500);

        assert_on_average(s.n_found > 0.9 * s.n && t.n_found > 0.9 * t.n);
        /* At 20 dB the noise of the echo itself scatters the mean by 0.014 dB, and it is 0.1 dB too
         * low. From 40 dB on the noise of a cell, known to 7 %, scatters it by 0.006 dB. */
        assert_on_average(fabs(s.snr - snr_db) < (snr_db < 30 ? 0.2 : 0.1));
        assert_on_average(fabs(t.snr - snr_db) < (snr_db < 30 ? 0.2 : 0.1));
        /* the mean of 2500 squares of normal numbers scatters by 0.028 */
        assert_on_average(s.delay2 > 0.8 && s.delay2 < 1.25);
        assert_on_average(t.delay2 > 0.8 && t.delay2 < 1.25);
    }
}

/* The code suppresses DC by N; and what remains of it is the same in every cell. It is 8 % of the
 * noise of a cell, which the stated sigma counts. It has no slope, so it moves no delay: (error /
 * sigma)^2 is 0.92. The mean of 4000 squares scatters by 0.021. */
TEST(dc_costs_no_snr)
{
    const scene dc = {.white = 0.001, .dc = 0.3};
    const seen s = run_scene(one, &dc, 30, 4000);

    assert_on_average(s.n_found == s.n && s.n_false < 5);
    assert_on_average(fabs(s.snr - 30) < 0.2);
    assert_on_average(fabs(s.delay2 - 0.92) < 0.12);
}

/* A carrier of 20 dB above the noise, at the zero of the code's spectrum. */
TEST(a_carrier_that_the_code_suppresses_hides_nothing)
{
    const seen s = run_scene(rare, &(scene){.white = 1e-4, .tone = 0.1, .cycles = 0.25}, 20, 1000);

    assert_on_average(s.n_found > 0.97 * s.n && s.n_false < 5);
    assert_on_average(fabs(s.snr - 20) < 0.2);
}

/* White noise is as before, also where the code's sidelobes hold as much as the echo. */
TEST(white_noise_stays_white)
{
    for (double snr_db = 20; snr_db <= 60; snr_db += 20) {
        const seen s = run_scene(phases, &(scene){.white = 1e-3}, snr_db, 2000);

        assert_on_average(s.n_found > 0.97 * s.n && s.n_false < 5);
        assert_on_average(fabs(s.snr - snr_db) < 0.1);
        /* the mean of 2000 squares of normal numbers scatters by 0.032 */
        assert_on_average(fabs(s.delay2 - 1) < 0.15);
    }
}

/* An echo half-way between two samples lacks the code's Nyquist bin. This is about 1 % of its
 * energy, and 100 times the energy of the noise. The autocorrelation has another share there. */
TEST(white_noise_of_an_even_code_is_not_called_coloured)
{
    static const char *const even[] = {"code.type=random", "code.length=100", "code.seed=1",
                                       "engine.batch=100", NULL};
    const seen s = run_scene(even, &(scene){.white = 1e-3}, 60, 1000);

    print_message("%.0f of %.0f dwells are called coloured\n", s.n_coloured, s.n);
    assert_on_average(s.n_coloured <= 0.002 * s.n);
}

/* Noise that repeats from period to period lies in the rows around Doppler 0 and is 17 dB above
 * that of an echo's row. CFAR finds the echo, and its SNR and sigma count the noise around it. */
TEST(cfar_counts_the_noise_around_the_echo)
{
    static const char *const settings[] = {
        "code.type=random",     "code.length=200",          "dwell.combine=doppler",
        "dwell.periods=32",     "dwell.taper=hann",         "detector.cfar=ca",
        "detector.pfa=1e-4",    "detector.cfar_training=8", "engine.batch=4",
        "doppler.min_hz=-2500", "doppler.max_hz=2490",      NULL};
    const double snr = 1000, bins = 0.3125, white = 1e-4, repeated = 4e-4;
    double n_found = 0, n_dwells = 0, sum = 0, delay2 = 0;
    chain c;

    if (!open_chain(&c, settings))
        return;

    const size_t n = c.setup->plan.n_samples;
    double gain = 0, noise_gain = 0;

    for (size_t p = 0; p < c.n_windows; p++) {
        gain += c.setup->plan.taper[p];
        noise_gain += c.setup->plan.taper[p] * c.setup->plan.taper[p];
    }
    for (; n_dwells < 400.0 / SHARE;) {
        const double lag = uniform() * (double)n, phase = 7 * uniform();
        const double amplitude = sqrt(snr * white * noise_gain / ((double)n * gain * gain));
        double(*a)[2] = delayed_code(&c, lag);
        float(*same)[2] = calloc(n, sizeof *same);

        assert_non_null(same);
        clear_chain(&c);
        add_noise(c.x, c.windows.spans[0].n_samples, white);
        add_noise(same, n, repeated);
        for (size_t i = 0; i < c.windows.spans[0].n_samples; i++) {
            const double complex turn =
                pnr_cis(phase + 2 * M_PI * bins * (double)(i % dwell_samples(&c)) / (double)n);
            const double complex x = amplitude * turn * CMPLX(a[i % n][0], a[i % n][1]);

            c.x[i][0] += (float)creal(x) + same[i % n][0];
            c.x[i][1] += (float)cimag(x) + same[i % n][1];
        }
        free(a);
        free(same);
        correlate_chain(&c);
        for (size_t d = 0; d < c.setup->plan.batch; d++, n_dwells++) {
            pnr_detection found;

            detect_dwell(&c, d, &found);
            for (size_t e = 0; e < found.n_echoes; e++) {
                const pnr_echo *echo = &found.echoes[e];
                const double error = remainder(echo->lag - lag, (double)n);

                if (fabs(error) > 1 ||
                    fabs(echo->doppler_hz * c.setup->radar.period_s - bins) > 0.05)
                    continue;
                n_found++;
                sum += echo->snr;
                delay2 += pow(error / (echo->delay_sigma_s * 1e6), 2);
            }
        }
    }
    print_message("CFAR: found %.0f of %.0f, SNR %.2f of 30 dB, (error/sigma)^2 %.2f\n", n_found,
                  n_dwells, 10 * log10(sum / n_found), delay2 / n_found);
    close_chain(&c);
    assert_on_average(n_found > 0.9 * n_dwells);
    assert_on_average(fabs(10 * log10(sum / n_found) - 30) < 0.7);
    assert_on_average(delay2 / n_found > 0.7 && delay2 / n_found < 1.4);
}

/* Two satellites, 45 and 28 dB above the noise, in a search of n_codes. wanted_db: the SNR of the
 * second one. least2: the least (error / sigma)^2. */
static void search_satellites(size_t n_codes, int n_dwells, double wanted_db, double tolerance_db,
                              double least2)
{
    enum { MAX_CODES = 30, OTHERS = 6 };
    char prns[MAX_CODES][24];
    const char *settings[MAX_CODES + OTHERS + 1] = {
        "code.type=gps-l1ca", "code.chip_rate_hz=1.023e6", "source.rate_hz=2.046e6",
        "engine.batch=1",     "detector.pfa=1e-4",         "detector.max_echoes=4"};
    static const double levels_db[] = {45, 28};
    double n_found = 0, n_false = 0, snr = 0, delay2 = 0;
    chain c;

    for (size_t i = 0; i < n_codes; i++) {
        snprintf(prns[i], sizeof prns[i], "code.%zu.prn=%zu", i + 1, i + 1);
        settings[OTHERS + i] = prns[i];
    }
    if (!open_chain(&c, settings))
        return;

    const size_t n = c.setup->plan.n_samples;
    double complex *a = calloc(n, sizeof *a);

    assert_non_null(a);
    for (int i = 0; i < n_dwells / SHARE; i++) {
        double lag[2];
        pnr_detection found;

        clear_chain(&c);
        add_noise(c.x, n, 1e-4);
        for (int k = 0; k < 2; k++) {
            const double amplitude = sqrt(pow(10, levels_db[k] / 10) * 1e-4 / (double)n);

            lag[k] = uniform() * (double)n;
            assert_int_equal(pnr_waveform_shift(c.setup->codes[k].waveform, lag[k], a), PNR_OK);
            add_echo(&c, 0, (const double(*)[2])a, amplitude, 7 * uniform());
        }
        correlate_chain(&c);
        detect_dwell(&c, 0, &found);
        for (size_t e = 0; e < found.n_echoes; e++) {
            const pnr_echo *echo = &found.echoes[e];
            const double error = remainder(echo->lag - lag[echo->code % 2], (double)n);

            n_false += echo->code > 1 || fabs(error) > 1;
            if (fabs(error) > 1 || echo->code != 1)
                continue;
            n_found++;
            snr += echo->snr;
            delay2 += pow(error / (echo->delay_sigma_s * 2.046e6), 2);
        }
    }
    print_message("%zu codes: found %.0f, false %.0f, SNR %.2f dB, (error/sigma)^2 %.2f\n", n_codes,
                  n_found, n_false, 10 * log10(snr / n_found), delay2 / n_found);
    free(a);
    close_chain(&c);
    assert_on_average(n_false <= 2 && n_found > 0.86 * n_dwells);
    assert_on_average(fabs(10 * log10(snr / n_found) - wanted_db) < tolerance_db);
    assert_on_average(delay2 / n_found > least2 && delay2 / n_found < 1.35);
}

/* The cross-correlations of few codes are known: the strong satellite is subtracted. */
TEST(echoes_of_other_codes_are_subtracted)
{
    search_satellites(2, 1000, 28, 0.2, 0.65); /* the mean of 1000 scatters by 0.037 dB */
}

/* The tables of many codes would be too large: the strong satellite's cross-correlation is noise to
 * the weak one, 13 dB above the rest, and counts in its SNR and sigma. (error / sigma)^2 is 0.7 on
 * average; its mean over 300 dwells scatters by 0.1 or less. One echo in 18 is not found. */
TEST(echoes_of_many_other_codes_are_noise)
{
    search_satellites(28, 300, 14.7, 1.5, 0.3);
}
