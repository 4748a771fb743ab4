/* SPDX-License-Identifier: MIT */
/* Tests of waveform.c. The judge of values, shifts, autocorrelation and bandwidth is the direct
 * trigonometric sum. */
#include "code/waveform.h"

#include "base/complex.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/transform.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

typedef double complex sample;

static const size_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64, 101, 255, 256};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0], LONGEST = 1000 };

static void fill_random(sample *samples, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const double re = uniform();

        samples[k] = CMPLX(re, uniform());
    }
}

static void fill_tone(sample *samples, size_t n, double harmonic, double amplitude)
{
    for (size_t k = 0; k < n; k++)
        samples[k] += amplitude * pnr_cis(2 * M_PI * harmonic * (double)k / (double)n);
}

static pnr_waveform *create(const sample *samples, size_t n)
{
    pnr_waveform *waveform;

    assert_int_equal(pnr_waveform_create(samples, n, &waveform), PNR_OK);
    assert_int_equal(pnr_waveform_prepare(waveform), PNR_OK);
    return waveform;
}

/* Returns a(t) = 1/N sum_m X[m] exp(2 pi i m t / N), m = -N/2 .. N/2. The Nyquist harmonic is
 * X[N/2] cos(pi t). */
static sample direct(const sample *spectrum, size_t n, double t)
{
    sample value = 0;

    for (size_t bin = 0; bin < n; bin++) {
        double harmonic = 2 * bin <= n ? (double)bin : (double)bin - (double)n;
        double phase = 2 * M_PI * harmonic * fmod(t, (double)n) / (double)n;
        double c = cos(phase), s = 2 * bin == n ? 0 : sin(phase);

        value += spectrum[bin] * CMPLX(c, s) / (double)n;
    }
    return value;
}

static double rms(const sample *samples, size_t n)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += pnr_power(samples[k]);
    return sqrt(sum / (double)n);
}

TEST(value_at_any_time_is_the_trigonometric_sum)
{
    sample samples[LONGEST], spectrum[LONGEST];

    for (size_t i = 0; i <= N_LENGTHS; i++) {
        const size_t n = i < N_LENGTHS ? lengths[i] : LONGEST;
        const double spans[] = {0.5, 1, 3, 1e6};
        pnr_waveform *waveform;

        fill_random(samples, n);
        memcpy(spectrum, samples, n * sizeof *samples);
        assert_int_equal(pnr_transform_forward((double(*)[2])spectrum, n), PNR_OK);
        waveform = create(samples, n);
        for (int k = 0; k < 400; k++) {
            double t = uniform() * spans[k % 4] * (double)n;
            sample fast = pnr_waveform_at(waveform, t), slow = direct(spectrum, n, t);

            assert_true(cabs(fast - slow) < 1e-8 * rms(samples, n));
        }
        pnr_waveform_destroy(waveform);
    }
}

TEST(value_at_a_sample_is_the_sample_in_every_period)
{
    sample samples[256];

    for (size_t i = 0; i < N_LENGTHS; i++) {
        const size_t n = lengths[i];
        pnr_waveform *waveform;

        fill_random(samples, n);
        waveform = create(samples, n);
        for (int64_t k = -3 * (int64_t)n; k < 4 * (int64_t)n; k++) {
            sample value = pnr_waveform_at(waveform, (double)k);

            assert_true(cabs(value - samples[(size_t)(k + 3 * (int64_t)n) % n]) < 1e-14);
        }
        pnr_waveform_destroy(waveform);
    }
}

TEST(times_at_the_seam_and_beyond_reason_are_safe)
{
    sample samples[16];
    pnr_waveform *waveform;
    sample value;

    fill_random(samples, 16);
    waveform = create(samples, 16);
    assert_true(cabs(pnr_waveform_at(waveform, -1e-300) - samples[0]) < 1e-14);
    assert_true(cabs(pnr_waveform_at(waveform, nextafter(16, 0)) - samples[0]) < 1e-13);
    assert_true(cabs(pnr_waveform_at(waveform, nextafter(16, 17)) - samples[0]) < 1e-13);
    assert_true(pnr_waveform_at(waveform, 16 * 0x1p40 + 3.25) == pnr_waveform_at(waveform, 3.25));
    value = pnr_waveform_at(waveform, NAN);
    assert_true(isnan(creal(value)) && isnan(cimag(value)));
    value = pnr_waveform_at(waveform, -INFINITY);
    assert_true(isnan(creal(value)) && isnan(cimag(value)));
    pnr_waveform_destroy(waveform);
}

TEST(the_nyquist_bin_is_a_cosine)
{
    sample samples[8], shifted[8];
    pnr_waveform *waveform;

    for (size_t k = 0; k < 8; k++)
        samples[k] = k % 2 ? CMPLX(-3, 2) : CMPLX(3, -2);
    waveform = create(samples, 8);
    for (double t = -9; t < 9; t += 0.11) {
        sample value = pnr_waveform_at(waveform, t);

        assert_true(fabs(creal(value) - 3 * cos(M_PI * t)) < 4e-8);
        assert_true(fabs(cimag(value) + 2 * cos(M_PI * t)) < 4e-8);
    }
    assert_int_equal(pnr_waveform_shift(waveform, 0.3, shifted), PNR_OK);
    for (size_t k = 0; k < 8; k++) {
        assert_true(fabs(creal(shifted[k] - samples[k] * cos(0.3 * M_PI))) < 1e-14);
        assert_true(fabs(cimag(shifted[k] - samples[k] * cos(0.3 * M_PI))) < 1e-14);
    }
    pnr_waveform_destroy(waveform);
}

TEST(a_shift_is_the_waveform_later)
{
    static const double shifts[] = {0.25, 0.5, -0.5, -0.37, 3.75, -11.1, 100.625, 1e7 + 0.3};
    sample samples[256], spectrum[256], shifted[256];

    for (size_t i = 0; i < N_LENGTHS; i++) {
        const size_t n = lengths[i];
        pnr_waveform *waveform;

        fill_random(samples, n);
        memcpy(spectrum, samples, n * sizeof *samples);
        assert_int_equal(pnr_transform_forward((double(*)[2])spectrum, n), PNR_OK);
        waveform = create(samples, n);
        for (size_t s = 0; s < sizeof shifts / sizeof shifts[0]; s++) {
            assert_int_equal(pnr_waveform_shift(waveform, shifts[s], shifted), PNR_OK);
            for (size_t k = 0; k < n; k++)
                assert_true(cabs(direct(spectrum, n, (double)k - fmod(shifts[s], (double)n)) -
                                 shifted[k]) < 3e-13);
        }
        pnr_waveform_destroy(waveform);
    }
}

TEST(a_delay_is_the_shift_from_the_table_and_its_slope)
{
    static const double delays[] = {0, 0.3, -0.5, 7.25, -100.9, 1234.56, 1e-12, -1e-17};

    for (size_t l = 0; l < N_LENGTHS; l++) {
        const size_t n = lengths[l];
        sample samples[256], want[256], value[256], slope[256];
        pnr_waveform *waveform;

        fill_random(samples, n);
        waveform = create(samples, n);
        for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
            const double d = delays[i], h = 1e-3;

            assert_int_equal(pnr_waveform_shift(waveform, d, want), PNR_OK);
            pnr_waveform_delay(waveform, d, value, NULL);
            for (size_t k = 0; k < n; k++)
                assert_true(cabs(value[k] - want[k]) < 1e-7);
            pnr_waveform_delay(waveform, d, value, slope);
            for (size_t k = 0; k < n; k++) {
                sample before = pnr_waveform_at(waveform, (double)k - d - h);
                sample after = pnr_waveform_at(waveform, (double)k - d + h);
                sample error = slope[k] - (after - before) / (2 * h);

                assert_true(fabs(creal(error)) < 1e-4 && fabs(cimag(error)) < 1e-4);
            }
        }
        pnr_waveform_destroy(waveform);
    }
}

TEST(a_shift_by_whole_samples_is_a_rotation_to_the_bit)
{
    sample samples[256], shifted[256];

    for (size_t i = 0; i < N_LENGTHS; i++) {
        const size_t n = lengths[i];
        pnr_waveform *waveform;

        fill_random(samples, n);
        waveform = create(samples, n);
        for (int64_t shift = -2 * (int64_t)n - 1; shift <= 2 * (int64_t)n + 1; shift++) {
            size_t later = (size_t)(shift + 3 * (int64_t)n) % n;

            assert_int_equal(pnr_waveform_shift(waveform, (double)shift, shifted), PNR_OK);
            for (size_t k = 0; k < n; k++)
                assert_memory_equal(&shifted[(k + later) % n], &samples[k], sizeof *samples);
        }
        pnr_waveform_destroy(waveform);
    }
}

TEST(a_tone_of_either_sign_turns_the_right_way)
{
    const size_t n = 63;

    for (double harmonic = -31; harmonic <= 31; harmonic++) {
        sample samples[63] = {0}, shifted[63];
        pnr_waveform *waveform;

        fill_tone(samples, n, harmonic, 1);
        waveform = create(samples, n);
        assert_int_equal(pnr_waveform_shift(waveform, 5.3, shifted), PNR_OK);
        for (size_t k = 0; k < n; k++) {
            double phase = 2 * M_PI * harmonic * ((double)k - 5.3) / (double)n;

            assert_true(cabs(shifted[k] - pnr_cis(phase)) < 1e-13);
            assert_true(cabs(pnr_waveform_at(waveform, (double)k - 5.3) - pnr_cis(phase)) < 1e-8);
        }
        pnr_waveform_destroy(waveform);
    }
}

/* Returns R(u) = sum_n a(n + u) conj(a(n)), from the direct sum. */
static sample direct_autocorrelation(const sample *samples, const sample *spectrum, size_t n,
                                     double u)
{
    sample value = 0;

    for (size_t k = 0; k < n; k++)
        value += direct(spectrum, n, (double)k + u) * conj(samples[k]);
    return value;
}

TEST(autocorrelation_is_its_definition)
{
    sample samples[256], spectrum[256];

    for (size_t i = 0; i < N_LENGTHS; i++) {
        const size_t n = lengths[i];
        pnr_waveform *waveform, *correlation;
        double energy;
        sample value;

        fill_random(samples, n);
        memcpy(spectrum, samples, n * sizeof *samples);
        assert_int_equal(pnr_transform_forward((double(*)[2])spectrum, n), PNR_OK);
        waveform = create(samples, n);
        energy = pnr_waveform_energy(waveform);
        assert_int_equal(pnr_waveform_correlation(waveform, waveform, &correlation), PNR_OK);
        for (double u = -10; u <= 10; u += n > 64 ? 0.625 : 0.08) {
            value = pnr_waveform_at(correlation, u);
            assert_true(cabs(value - direct_autocorrelation(samples, spectrum, n, u) / energy) <
                        1e-8);
            assert_true(cabs(value - conj(pnr_waveform_at(correlation, -u))) < 1e-8);
        }
        value = pnr_waveform_at(correlation, 0);
        assert_true(fabs(creal(value) - 1) < 1e-13 && fabs(cimag(value)) < 1e-13);
        assert_true(fabs(energy / (pow(rms(samples, n), 2) * (double)n) - 1) < 1e-14);
        pnr_waveform_destroy(correlation);
        pnr_waveform_destroy(waveform);
    }
}

static double bandwidth_of(const sample *samples, size_t n)
{
    pnr_waveform *waveform = create(samples, n);
    double bandwidth = pnr_waveform_bandwidth(waveform);

    pnr_waveform_destroy(waveform);
    return bandwidth;
}

TEST(bandwidth_is_the_variance_of_frequency)
{
    enum { N = 101 };
    const double step = 2 * M_PI / N;
    sample impulse[N] = {1}, tone[N] = {0}, pair[N] = {0}, aside[N] = {0};
    sample nyquist[8] = {1, -1, 1, -1, 1, -1, 1, -1};
    sample nothing[4] = {0};

    /* For a flat spectrum the mean of (2 pi m / N)^2 over m = -50 .. 50 is pi^2/3 (1 - 1/N^2). */
    assert_true(fabs(bandwidth_of(impulse, N) / (M_PI * M_PI / 3 * (1 - 1.0 / (N * N))) - 1) <
                1e-12);
    fill_tone(tone, N, 30, 2);
    assert_true(fabs(bandwidth_of(tone, N)) < 1e-12);
    fill_tone(pair, N, 20, 1);
    fill_tone(pair, N, -20, 1);
    assert_true(fabs(bandwidth_of(pair, N) / pow(20 * step, 2) - 1) < 1e-12);
    fill_tone(aside, N, 10, sqrt(3));
    fill_tone(aside, N, 14, 1);
    /* Two lines of weights 3/4 and 1/4, four bins apart, have the variance 3/16 of 4^2 bins^2. */
    assert_true(fabs(bandwidth_of(aside, N) / (3 * step * step) - 1) < 1e-11);
    assert_true(fabs(bandwidth_of(nyquist, 8) / (M_PI * M_PI) - 1) < 1e-12);
    assert_true(bandwidth_of(nothing, 4) == 0);
}

TEST(kurtosis_is_that_of_frequency)
{
    enum { N = 101 };
    sample impulse[N] = {1}, pair[N] = {0}, aside[N] = {0};
    const double kurtosis_flat = 0.6 * (3.0 * N * N - 7) / (1.0 * N * N - 1);
    const double kurtosis_aside = 0.75 * pow(0.25, 4) + 0.25 * pow(0.75, 4);
    const struct {
        const sample *samples;
        double kurtosis;
    } cases[] = {
        {impulse, kurtosis_flat}, /* the kurtosis of a discrete uniform variable */
        {pair, 1},
        {aside, kurtosis_aside / pow(3.0 / 16, 2)},
    };

    fill_tone(pair, N, 20, 1);
    fill_tone(pair, N, -20, 1);
    fill_tone(aside, N, 10, sqrt(3));
    fill_tone(aside, N, 14, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pnr_waveform *waveform = create(cases[i].samples, N);

        assert_true(fabs(pnr_waveform_kurtosis(waveform) / cases[i].kurtosis - 1) < 1e-10);
        assert_true(pnr_waveform_nyquist(waveform) == 0);
        pnr_waveform_destroy(waveform);
    }
}

TEST(nyquist_is_what_half_a_sample_takes)
{
    sample samples[64], late[64];
    pnr_waveform *waveform;

    fill_random(samples, 64);
    waveform = create(samples, 64);
    for (double d = 0; d < 1; d += 0.125) {
        double energy = 0;

        assert_int_equal(pnr_waveform_shift(waveform, d, late), PNR_OK);
        for (size_t k = 0; k < 64; k++)
            energy += pnr_power(late[k]);
        assert_true(fabs(energy / pnr_waveform_energy(waveform) - 1 +
                         pnr_waveform_nyquist(waveform) * pow(sin(M_PI * d), 2)) < 1e-12);
    }
    pnr_waveform_destroy(waveform);
}

TEST(no_value_exceeds_its_bound)
{
    enum { N = 101, CHIP = 4 };
    sample samples[N];

    for (int chip = 1; chip <= CHIP; chip += CHIP - 1) {
        pnr_waveform *waveform;
        double most = 0;

        for (int k = 0; k < N; k++)
            samples[k] = k % chip == 0 ? CMPLX(uniform() - 0.5, uniform() - 0.5) : samples[k - 1];
        waveform = create(samples, N);
        for (double t = N / 2.0; t >= 0; t -= 0.01) {
            most = fmax(most, cabs(pnr_waveform_at(waveform, t)));
            most = fmax(most, cabs(pnr_waveform_at(waveform, -t)));
            assert_true(most <= pnr_waveform_most(waveform, t));
        }
        assert_true(pnr_waveform_most(waveform, 0) < (chip == 1 ? 4 : 2) * most);
        pnr_waveform_destroy(waveform);
    }
}

TEST(a_stop_ends_the_work)
{
    enum { N = 101 };
    sample samples[N];
    pnr_waveform *waveform, *none;
    int stop = 1;

    fill_random(samples, N);
    assert_int_equal(pnr_waveform_create(samples, N, &waveform), PNR_OK);
    pnr_parallel_stop_at(&stop);
    assert_int_equal(pnr_waveform_create(samples, N, &none), PNR_EEND);
    assert_null(none);
    assert_int_equal(pnr_waveform_shift(waveform, 0.5, samples), PNR_EEND);
    assert_int_equal(pnr_waveform_prepare(waveform), PNR_EEND);
    assert_int_equal(pnr_waveform_correlation(waveform, waveform, &none), PNR_EEND);
    assert_null(none);
    pnr_parallel_stop_at(NULL);
    assert_int_equal(pnr_waveform_prepare(waveform), PNR_OK);
    pnr_waveform_destroy(waveform);
}

TEST(samples_are_copied_and_destroy_takes_null)
{
    sample samples[3] = {1, 2, 3};
    pnr_waveform *waveform = create(samples, 3);

    memset(samples, 0, sizeof samples);
    assert_int_equal(pnr_waveform_prepare(waveform), PNR_OK);
    assert_true(fabs(creal(pnr_waveform_at(waveform, 1)) - 2) < 1e-14);
    pnr_waveform_destroy(waveform);
    pnr_waveform_destroy(NULL);
    assert_int_equal(pnr_waveform_create(samples, SIZE_MAX, &waveform), PNR_ENOMEMORY);
    assert_null(waveform);
}
