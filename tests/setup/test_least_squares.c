/* SPDX-License-Identifier: MIT */
/* Tests of the least-squares filter: its solution, its loss, its refusals, and the shape of a
 * filtered echo. */
#include "setup/least_squares.h"

#include "base/complex.h"
#include "base/transform.h"
#include "estimate/fit.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

#include <time.h>

typedef double complex value;

static value *random_phases(size_t n)
{
    value *code = calloc(n, sizeof *code);

    assert_non_null(code);
    for (size_t i = 0; i < n; i++)
        code[i] = pnr_cis(2 * M_PI * uniform());
    return code;
}

static pnr_waveform *autocorrelation_of(const value *code, size_t n)
{
    pnr_waveform *waveform, *autocorrelation;

    assert_int_equal(pnr_waveform_create(code, n, &waveform), PNR_OK);
    assert_int_equal(pnr_waveform_correlation(waveform, waveform, &autocorrelation), PNR_OK);
    pnr_waveform_destroy(waveform);
    return autocorrelation;
}

static void dissolve(pnr_least_squares *ls)
{
    pnr_waveform_destroy((pnr_waveform *)(uintptr_t)ls->autocorrelation);
    pnr_least_squares_destroy(ls);
}

static pnr_least_squares *solve(const value *code, size_t n, size_t n_gates)
{
    pnr_least_squares *ls;
    pnr_error error = {0};

    if (pnr_least_squares_create(autocorrelation_of(code, n), n_gates, n_gates == n, &ls, &error) !=
        PNR_OK)
        fail_msg("%s", error.text);
    return ls;
}

/* Computes c[k] = sum_n x[n + k] conj(a[n]) / R(0), cyclic, k = 0 .. n_gates - 1. */
static value *correlate(const value *x, const value *a, size_t n, size_t n_gates)
{
    value *c = calloc(n_gates, sizeof *c);
    double energy = 0;

    assert_non_null(c);
    for (size_t i = 0; i < n; i++)
        energy += pnr_power(a[i]);
    for (size_t k = 0; k < n_gates; k++) {
        for (size_t i = 0; i < n; i++)
            c[k] += x[(i + k) % n] * conj(a[i]);
        c[k] /= energy;
    }
    return c;
}

static value *filtered(const pnr_least_squares *ls, const value *c)
{
    value *out = calloc(ls->n_gates, sizeof *out);

    assert_non_null(out);
    for (size_t k = 0; k < ls->n_gates; k++)
        for (size_t j = 0; j < ls->n_gates; j++)
            out[k] += ls->filter[k * ls->n_gates + j] * c[j];
    return out;
}

/* Echoes at whole delays are recovered even 60 dB apart, and all other gates are zero. */
TEST(test_echoes)
{
    enum { N = 700, GATES = 150 };
    static const struct {
        size_t gate;
        value amplitude;
    } echoes[] = {
        {0, CMPLX(1000, 0)}, {3, CMPLX(0, 1)}, {70, CMPLX(-30, 40)}, {GATES - 1, CMPLX(0.6, -0.8)}};
    value *code = random_phases(N), *x = calloc(N, sizeof *x);
    pnr_least_squares *ls = solve(code, N, GATES);

    assert_non_null(x);
    for (size_t e = 0; e < 4; e++)
        for (size_t i = 0; i < N; i++)
            x[(i + echoes[e].gate) % N] += echoes[e].amplitude * code[i];

    value *c = correlate(x, code, N, GATES);
    value *h = filtered(ls, c);

    for (size_t k = 0; k < GATES; k++) {
        value want = 0;

        for (size_t e = 0; e < 4; e++)
            if (echoes[e].gate == k)
                want = echoes[e].amplitude / sqrt(ls->loss[k]);
        if (fabs(creal(h[k] - want)) > 1e-10 || fabs(cimag(h[k] - want)) > 1e-10)
            fail_msg("gate %zu: %g %g, not %g %g", k, creal(h[k]), cimag(h[k]), creal(want),
                     cimag(want));
    }
    assert_true(ls->condition > 1 && ls->condition < 30);
    free(c);
    free(h);
    free(x);
    dissolve(ls);
    free(code);
}

/* White noise has the covariance R(k - j) in the correlation, and F R F^H after the filter F. */
TEST(test_noise)
{
    enum { N = 400, GATES = 60 };
    value *code = random_phases(N);
    pnr_least_squares *ls = solve(code, N, GATES);

    for (size_t k = 0; k < GATES; k++) {
        value variance = 0;

        for (size_t i = 0; i < GATES; i++)
            for (size_t j = 0; j < GATES; j++)
                variance += ls->filter[k * GATES + i] *
                            pnr_waveform_at(ls->autocorrelation, (double)i - (double)j) *
                            conj(ls->filter[k * GATES + j]);
        assert_true(fabs(creal(variance) - 1) < 1e-12 && fabs(cimag(variance)) < 1e-12);
        assert_true(ls->loss[k] >= 1);
    }
    free(code);
    dissolve(ls);
}

/* With random phases, 1000 gates of 10,000 lags cost 0.44 dB. The circular inverse of the spectrum,
 * which solves for all lags, costs the mean of 1 / E over N bins. E is exponential with mean 1, so
 * the cost is ln N + 1 - 2 * 0.5772 + L, where L has Landau's distribution. Its median is 10.1 dB.
 * E exp(-s L) = exp(s ln s), so P(L < -l) <= exp(-exp(l - 1)): below 7.3 dB is at most one code of
 * two million. */
TEST(test_loss)
{
    enum { N = 10000, GATES = 1000 };
    value *code = random_phases(N);
    const clock_t start = clock();
    pnr_least_squares *ls = solve(code, N, GATES);
    double inverse = 0;

    print_message("%d of %d gates: %.3f dB, at worst %.3f, condition %.3g, %.2f s\n", GATES, N,
                  ls->mean_loss_db, ls->worst_loss_db, ls->condition,
                  (double)(clock() - start) / CLOCKS_PER_SEC);
    assert_true(fabs(ls->mean_loss_db - 0.45) < 0.12); /* varies by 0.02 dB from code to code */

    assert_int_equal(pnr_transform_forward((double(*)[2])code, N), PNR_OK);
    for (size_t m = 0; m < N; m++)
        inverse += 1 / pnr_power(code[m]);
    print_message("all of them by the spectral inverse: %.2f dB\n", 10 * log10(inverse));
    assert_true(10 * log10(inverse) > 7.3);
    free(code);
    dissolve(ls);
}

/* With all lags as gates, the filter is the inverse of the spectrum. The loss of every gate is the
 * mean of 1/|spectrum|^2. */
TEST(test_all_lags)
{
    enum { N = 257 };
    value *code = NULL, spectrum[N];
    double inverse, least, most;

    do { /* one code in 600 has so little power at some frequency that it is refused */
        free(code);
        code = random_phases(N);
        memcpy(spectrum, code, sizeof spectrum);
        assert_int_equal(pnr_transform_forward((double(*)[2])spectrum, N), PNR_OK);
        inverse = most = 0;
        least = INFINITY;
        for (size_t m = 0; m < N; m++) {
            const double power = pnr_power(spectrum[m]);

            inverse += 1 / power;
            least = fmin(least, power);
            most = fmax(most, power);
        }
    } while (most > 5e5 * least);

    pnr_least_squares *ls = solve(code, N, N);

    for (size_t k = 0; k < N; k++)
        assert_true(fabs(ls->loss[k] / inverse - 1) < 1e-9);
    assert_true(ls->condition < 1.0001 * most / least && ls->condition > 0.5 * most / least);
    free(code);
    dissolve(ls);
}

/* For an m-sequence and all its lags, the loss is 2 N / (N + 1), about 3 dB, and the condition is N
 * + 1. */
TEST(test_m_sequence)
{
    enum { DEGREE = 9, N = (1 << DEGREE) - 1 };
    value code[N];
    unsigned bits = 1;

    for (size_t i = 0; i < N; i++) {
        code[i] = bits & 1 ? -1 : 1;
        bits = bits >> 1 | ((bits ^ bits >> 4) & 1) << (DEGREE - 1); /* x^9 + x^4 + 1 */
    }

    pnr_least_squares *ls = solve(code, N, N);

    for (size_t k = 0; k < N; k++)
        assert_true(fabs(ls->loss[k] - 2.0 * N / (N + 1)) < 1e-9);
    assert_true(fabs(ls->condition / (N + 1) - 1) < 1e-6);
    dissolve(ls);
}

static void refuse(const value *code, size_t n, size_t n_gates, const char *word)
{
    pnr_waveform *autocorrelation = autocorrelation_of(code, n);
    pnr_least_squares *ls = (pnr_least_squares *)1;
    pnr_error error = {0};

    assert_int_equal(pnr_least_squares_create(autocorrelation, n_gates, false, &ls, &error),
                     PNR_ECONFIG);
    pnr_waveform_destroy(autocorrelation);
    assert_null(ls);
    if (strstr(error.text, word) == NULL)
        fail_msg("no '%s' in '%s'", word, error.text);
    print_message("%s\n", error.text);
}

TEST(test_refused)
{
    enum { N = 5000 };
    value *held = random_phases(N), *even = random_phases(N);

    for (size_t i = 0; i < N; i++) /* held chips of four samples have no power at rate / 4 */
        held[i] = held[i / 4 * 4];
    refuse(held, N, 2000, "condition number ");
    refuse(held, N, PNR_MAX_FILTER_GATES + 1, "4097 range gates; at most 4096");

    /* the code repeats after N / 2 samples, so two gates have the same code */
    for (size_t i = N / 2; i < N; i++)
        even[i] = even[i - N / 2];
    refuse(even, N, N / 2 + 1, "condition number");
    free(held);
    free(even);
}

/* Checks pnr_least_squares_response: an echo at any delay is correlated and filtered, and must
 * equal the response. */
static void respond(size_t n, size_t n_gates, size_t step)
{
    value *code = random_phases(n), *x = calloc(n, sizeof *x);
    pnr_waveform *waveform;
    pnr_least_squares *ls = solve(code, n, n_gates);

    assert_int_equal(pnr_waveform_create(code, n, &waveform), PNR_OK);
    for (size_t gate = 0; gate < n_gates; gate += step)
        for (double delay = -1; delay <= 1; delay += 0.25) {
            value response[PNR_NEIGHBOURS];

            assert_int_equal(pnr_waveform_shift(waveform, (double)gate + delay, x), PNR_OK);

            value *c = correlate(x, code, n, n_gates);
            value *h = filtered(ls, c);

            pnr_least_squares_response(ls, gate, delay, response);
            for (size_t i = 0; i < PNR_NEIGHBOURS; i++) {
                const size_t at = gate + n + i - PNR_NEIGHBOURS / 2;
                const size_t k = n_gates == n || at >= n ? at % n : n;
                const value want = k < n_gates ? h[k] : 0;

                if (cabs(response[i] - want) > 1e-6)
                    fail_msg("delay %g, gate %zu: %g %g, not %g %g", (double)gate + delay, k,
                             creal(response[i]), cimag(response[i]), creal(want), cimag(want));
                if (delay == 0 && i != PNR_NEIGHBOURS / 2)
                    assert_true(cabs(response[i]) < 1e-6);
            }
            free(c);
            free(h);
        }
    free(code);
    free(x);
    pnr_waveform_destroy(waveform);
    dissolve(ls);
}

TEST(test_response)
{
    respond(301, 90, 11);
    respond(67, 67, 3); /* all lags are gates, so the last gate is next to the first */
}

/* Between two gates a filtered echo is the band-limited pulse sin(pi t) / (pi t), whatever the code
 * is. The sidelobes of the pulse outside the gates are missing, which changes the echo by some
 * thousandths. */
TEST(test_between)
{
    enum { N = 2047, GATES = 400 };
    value *code = random_phases(N);
    pnr_least_squares *ls = solve(code, N, GATES);

    for (size_t away = 0; away <= 100; away += 20) {
        value response[PNR_NEIGHBOURS];

        pnr_least_squares_response(ls, 200 + away, 0.3 - (double)away, response);
        for (int i = 0; i < PNR_NEIGHBOURS; i++) {
            const double t = M_PI * ((double)away + i - PNR_NEIGHBOURS / 2 - 0.3);

            assert_true(fabs(creal(response[i]) * sqrt(ls->loss[200]) - sin(t) / t) < 0.02);
            assert_true(fabs(cimag(response[i])) < 0.02);
        }
    }
    dissolve(ls);
    free(code);
}

/* After pnr_least_squares_restore the 17 values are those of the correlation. The fit finds the
 * echo to a hundredth of a sample. When the missing part is added, it finds the echo within
 * rounding errors. */
TEST(test_restored)
{
    enum { N = 1023, GATES = 300 };
    value *code = random_phases(N);
    pnr_least_squares *ls = solve(code, N, GATES);
    pnr_fit *fit;

    assert_int_equal(pnr_fit_create(ls->autocorrelation, &fit), PNR_OK);
    for (size_t gate = 40; gate < GATES - 40; gate += 37)
        for (double delay = -0.5; delay <= 0.5; delay += 0.25) {
            value seen[PNR_NEIGHBOURS], full[PNR_NEIGHBOURS];
            pnr_fitted found;

            pnr_least_squares_echo(ls, gate, delay, seen);
            pnr_fit_find(fit, seen, delay, &found);
            assert_true(fabs(found.delay - delay) < (delay == 0 ? 1e-9 : 0.01));
            assert_true(fabs(creal(found.peak) - 1) < 0.01 && fabs(cimag(found.peak)) < 0.02);
            for (int turn = 0; turn < 3; turn++) {
                value echo[PNR_NEIGHBOURS];

                pnr_least_squares_echo(ls, gate, found.delay, echo);
                for (int j = 0; j < PNR_NEIGHBOURS; j++) {
                    const double u = j - PNR_NEIGHBOURS / 2 - found.delay;

                    full[j] =
                        seen[j] + found.peak * (pnr_waveform_at(ls->autocorrelation, u) - echo[j]);
                }
                pnr_fit_find(fit, full, found.delay, &found);
            }
            assert_true(fabs(found.delay - delay) < 1e-6);
            assert_true(fabs(creal(found.peak) - 1) < 1e-6 && fabs(cimag(found.peak)) < 1e-6);
        }
    pnr_fit_destroy(fit);
    dissolve(ls);
    free(code);
}
