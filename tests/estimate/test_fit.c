/* SPDX-License-Identifier: MIT */
/* The fit without noise: exact; and its variances against those worked out by hand. Its behaviour
 * in noise is test_estimate's. */
#include "estimate/fit.h"
#include "estimate/fit_among.h"

#include "base/complex.h"
#include "base/error.h"
#include "tests/fixture/test.h"

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2, N = 1001 };

typedef double complex value;

/* bandwidth: B; NULL: not asked for. */
static pnr_waveform *autocorrelation_of(const value *samples, size_t n, double *bandwidth)
{
    pnr_waveform *waveform, *autocorrelation;

    assert_int_equal(pnr_waveform_create(samples, n, &waveform), PNR_OK);
    assert_int_equal(pnr_waveform_correlation(waveform, waveform, &autocorrelation), PNR_OK);
    if (bandwidth != NULL)
        *bandwidth = pnr_waveform_bandwidth(waveform);
    pnr_waveform_destroy(waveform);
    return autocorrelation;
}

/* A flat spectrum: R(u) = sin(pi u) / (N sin(pi u / N)). */
static pnr_waveform *flat(void)
{
    value impulse[N] = {1};

    return autocorrelation_of(impulse, N, NULL);
}

/* Chips of seven samples, turned 48 times a period: a spectrum far from flat, with a mean. */
static pnr_waveform *turned(double *bandwidth)
{
    value samples[N];
    unsigned bits = 1;

    for (size_t k = 0; k < N; k++) {
        const double phase = 2 * M_PI * 48 * (double)k / N;

        if (k % 7 == 0)
            bits = bits * 1103515245 + 12345;
        samples[k] = pnr_cis(phase) * (bits >> 20 & 1 ? 1 : -1);
    }
    return autocorrelation_of(samples, N, bandwidth);
}

/* At 140 dB the standard deviation of a delay is 4e-8 samples, at one sample a chip. */
TEST(without_noise_it_is_exact)
{
    pnr_waveform *const waveforms[] = {flat(), turned(NULL)};

    for (size_t w = 0; w < 2; w++) {
        pnr_fit *fit;

        assert_int_equal(pnr_fit_create(waveforms[w], &fit), PNR_OK);
        for (double d = -0.99; d < 1; d += 0.0331) {
            const value peak = 3 * pnr_cis(7 * d);
            value c[J];
            pnr_fitted fitted;

            for (int j = 0; j < J; j++)
                c[j] = peak * pnr_waveform_at(waveforms[w], j - MIDDLE - d);
            pnr_fit_find(fit, c, d > 0 ? 0.5 : -0.5, &fitted);
            assert_true(fabs(fitted.delay - d) < (fabs(d) < 0.95 ? 2e-9 : 1e-6));
            assert_true(cabs(fitted.peak - peak) < 3e-6);
            assert_true(fabs(fitted.power / 9 - 1) < 1e-3);
            /* Rounding, and with nearly dependent lags what their loading leaves. */
            const pnr_residual rest = pnr_fit_noise(fit, c, &fitted);

            assert_true(rest.noise < 1e-5);
            assert_true(fitted.cells > 1 && fitted.cells < 5.5 && rest.cells >= 0.5 &&
                        rest.cells <= 15.5);
        }
        pnr_fit_destroy(fit);
        pnr_waveform_destroy(waveforms[w]);
    }
}

/* A flat spectrum at a lag: r is 1 at the middle and 0 elsewhere, r'_j = +-1/j around it, so that
 * the 17 values hold 2 sum 1/j^2, j = 1..8, of the pi^2/3 that all lags hold. */
TEST(variances_of_a_flat_spectrum)
{
    pnr_waveform *waveform = flat();
    value c[J] = {0};
    double information = 0;
    pnr_fitted fitted;
    pnr_fit *fit;

    assert_int_equal(pnr_fit_create(waveform, &fit), PNR_OK);
    for (int j = 1; j <= MIDDLE; j++)
        information += 2.0 / (j * j);
    c[MIDDLE] = 1;
    pnr_fit_find(fit, c, 0, &fitted);
    assert_true(fabs(fitted.delay_variance * 2 * information - 1) < 1e-3);
    assert_true(fabs(sqrt(fitted.delay_variance * 2 * M_PI * M_PI / 3) - 1.038) < 1e-3);
    assert_true(fabs(fitted.amplitude_variance - 0.5) < 1e-3);
    assert_true(fabs(fitted.phase_variance - 0.5) < 1e-3);
    assert_true(fabs(pnr_fit_noise(fit, c, &fitted).cells - 15.5) < 0.01);
    pnr_fit_destroy(fit);
    pnr_waveform_destroy(waveform);
}

/* The phase is that at the code's own mean frequency w: its variance is 1/2 (1 + w^2/B). Where the
 * sampling is dense the 17 values hold all there is. */
TEST(variances_of_a_turned_code)
{
    double b;
    pnr_waveform *waveform = turned(&b);
    value c[J];
    pnr_fitted fitted;
    pnr_fit *fit;

    assert_int_equal(pnr_fit_create(waveform, &fit), PNR_OK);
    for (int j = 0; j < J; j++)
        c[j] = pnr_waveform_at(waveform, j - MIDDLE);

    const double w = cimag(pnr_waveform_at(waveform, 1e-3)) / 1e-3; /* R' = i w */

    pnr_fit_find(fit, c, 0, &fitted);
    assert_true(fabs(w - 2 * M_PI * 48 / N) < 0.1);
    assert_true(fabs(fitted.delay_variance * 2 * b - 1) < 0.02);
    assert_true(fabs(fitted.amplitude_variance * 2 - 1) < 0.01);
    assert_true(fabs(fitted.phase_variance * 2 / (1 + w * w / b) - 1) < 0.02);
    pnr_fit_destroy(fit);
    pnr_waveform_destroy(waveform);
}

/* Fills the values of an echo of peak 1. */
static void put_echo(const pnr_waveform *waveform, double delay, value c[J])
{
    for (int j = 0; j < J; j++)
        c[j] = pnr_waveform_at(waveform, j - MIDDLE - delay);
}

/* An echo some lags away, of random phase, moves the fit as its pull says, also where the values
 * far from the peak contain nearly all of it. */
TEST(another_echo_pulls_the_fit)
{
    enum { PHASES = 12 };
    const double size = 1e-4, d = 0.3;
    pnr_waveform *waveform = turned(NULL);
    pnr_fit_among *among;
    pnr_fit *fit;

    assert_int_equal(pnr_fit_create(waveform, &fit), PNR_OK);
    assert_int_equal(pnr_fit_among_create(waveform, &among), PNR_OK);

    const pnr_fit_pull *pull = pnr_fit_among_pull(among, d);

    for (double apart = 5; apart < 20; apart++) {
        double delay2 = 0, amplitude2 = 0;
        value other[J], c[J];
        pnr_fitted alone, fitted;

        put_echo(waveform, d, c);
        put_echo(waveform, d + apart, other);
        pnr_fit_find(fit, c, d, &alone);
        for (int p = 0; p < PHASES; p++) {
            value sum[J];

            for (int j = 0; j < J; j++)
                sum[j] = c[j] + size * pnr_cis(2 * M_PI * p / PHASES) * other[j];
            pnr_fit_find(fit, sum, d, &fitted);
            delay2 += pow((fitted.delay - alone.delay) / size, 2) / PHASES;
            amplitude2 += pow((cabs(fitted.peak) - cabs(alone.peak)) / size, 2) / PHASES;
        }

        const double delay = pnr_power(pnr_inner(pull->delay, other)) / 2;
        const double amplitude = pnr_power(pnr_inner(pull->amplitude, other)) / 2;

        assert_true(fabs(delay - delay2) < 0.05 * delay2 + 0.01);
        assert_true(fabs(amplitude - amplitude2) < 0.05 * amplitude2 + 1e-4);
    }
    pnr_fit_among_destroy(among);
    pnr_fit_destroy(fit);
    pnr_waveform_destroy(waveform);
}

/* Two echoes beside this one, 20 dB stronger, of any phase: alone the fit is far off, among them it
 * is exact, and the factors of the others cost only a part of the information. */
TEST(among_stronger_echoes_it_is_exact)
{
    const double delays[] = {-11.4, 12.3};
    double most = 0; /* greatest error of the fit of the echo alone, lags */
    pnr_waveform *waveform = turned(NULL);
    pnr_fit_among *among;
    pnr_fit *fit;

    assert_int_equal(pnr_fit_create(waveform, &fit), PNR_OK);
    assert_int_equal(pnr_fit_among_create(waveform, &among), PNR_OK);
    for (double d = -0.6; d < 0.7; d += 0.2) {
        const value peak = 3 * pnr_cis(5 * d);
        value c[J], middle = 0, centre;
        pnr_vector others[2];
        pnr_fitted fitted, clean;

        put_echo(waveform, d, c);
        pnr_fit_find(fit, c, d, &clean);
        for (int j = 0; j < J; j++)
            c[j] *= peak;
        for (int k = 0; k < 2; k++) {
            const value factor = pnr_cis(9 * d + 2 * k);

            put_echo(waveform, delays[k], others[k]);
            for (int j = 0; j < J; j++) {
                others[k][j] *= 30;
                c[j] += factor * others[k][j];
            }
            middle += factor * others[k][MIDDLE];
        }
        pnr_fit_find(fit, c, d, &fitted);
        most = fmax(most, fabs(fitted.delay - d));
        fitted = clean;
        fitted.delay = d / 2;
        assert_true(pnr_fit_among_find(among, fit, c, (const pnr_vector *)others, 2, 1e-6, &fitted,
                                       &centre));
        assert_true(fabs(fitted.delay - d) < 1e-3);
        assert_true(cabs(fitted.peak - peak) < 1e-2 && cabs(centre - middle) < 1e-2);
        assert_true(fitted.delay_variance > clean.delay_variance);
        assert_true(fitted.delay_variance < 20 * clean.delay_variance);
    }
    print_message("alone the fit is up to %.2f lags off\n", most);
    assert_true(most > 0.1);
    pnr_fit_among_destroy(among);
    pnr_fit_destroy(fit);
    pnr_waveform_destroy(waveform);
}

TEST(nothing_is_destroyed)
{
    pnr_fit_among_destroy(NULL);
    pnr_fit_destroy(NULL);
}
