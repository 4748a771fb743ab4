/* SPDX-License-Identifier: MIT */
/* Slow time against its sums, term by term: tapers, odd and even counts, windows that are missing,
 * looks, and the mean removed. */
#include "estimate/slow_time.h"

#include "base/complex.h"
#include "base/error.h"
#include "tests/fixture/test.h"

enum { MOST = 64, N = 100 };

typedef double complex value;

typedef struct sums {
    size_t n_periods;
    double w[MOST];
    value u[MOST];
    bool without_mean;
} sums;

/* sum_p f(p) exp(2 pi i x (p - (K - 1)/2)), f = w^power u */
static value sum(const sums *s, int power, double x)
{
    value total = 0;

    for (size_t p = 0; p < s->n_periods; p++) {
        const double angle = 2 * M_PI * x * ((double)p - ((double)s->n_periods - 1) / 2);

        total += pow(s->w[p], power) * s->u[p] * pnr_cis(angle);
    }
    return total;
}

/* The derivative of sum with respect to x. */
static value slope_of(const sums *s, int power, double x)
{
    sums turned = *s;

    for (size_t p = 0; p < s->n_periods; p++)
        turned.u[p] *= CMPLX(0, 2 * M_PI * ((double)p - ((double)s->n_periods - 1) / 2));
    return sum(&turned, power, x);
}

static void is_near(value x, value y)
{
    assert_true(fabs(creal(x - y)) < 1e-6 && fabs(cimag(x - y)) < 1e-6);
}

/* Asserts the response of the row at f, alone and as the last of several rows, and its slope. */
static void is_response(const pnr_slow_time *slow, size_t n_periods, double v, double f, value want,
                        value slope)
{
    enum { ROWS = 17 };
    value found[ROWS], slopes[ROWS];

    for (int n = 1; n <= ROWS; n += ROWS - 1) {
        pnr_slow_time_echo(slow, v, f - (n - 1) / (double)n_periods, n, found, slopes);
        is_near(found[n - 1], want);
        assert_true(cabs(slopes[n - 1] - slope) < 1e-5);
    }
}

static void check(const pnr_slow_time *slow, const sums *s)
{
    const double all = creal(sum(s, 1, 0)), squares = creal(sum(s, 2, 0));
    const double windows = creal(sum(s, 0, 0));

    for (double v = -3.3; v < 3.3; v += 0.37)
        for (double f = -2.1; f < 2.2; f += 0.35) {
            value want = sum(s, 1, v - f), slope = slope_of(s, 1, v - f), cross = sum(s, 2, f - v);
            value once[MOST], not_any[MOST], direct = 0, mean_of = 0;

            pnr_slow_time_windows(slow, 1, v - f, once);
            pnr_slow_time_windows(slow, 0, v, not_any);
            for (size_t p = 0; p < s->n_periods; p++) {
                direct += once[p];
                mean_of += not_any[p];
            }
            is_near(direct, want / all);
            is_near(mean_of, sum(s, 0, v) / windows);

            if (s->without_mean) {
                const value mean = sum(s, 0, v), still = sum(s, 1, -f);

                want -= mean * still / windows;
                slope -= slope_of(s, 0, v) * still / windows;
                cross -= sum(s, 1, -v) * conj(still) / windows;
            }
            is_response(slow, s->n_periods, v, f, want / all, slope / all);
            is_near(pnr_slow_time_noise(slow, v, f), cross / squares); /* of the rows at v and f */
        }
}

static void one_dwell(size_t n_periods, size_t n_looks, bool with_taper, bool without_mean,
                      const uint32_t *lost)
{
    double taper[MOST];
    sums s = {.n_periods = n_periods, .without_mean = without_mean};
    pnr_plan plan = {.n_samples = N,
                     .n_periods = n_periods,
                     .n_looks = n_looks,
                     .remove_mean = without_mean,
                     .taper = with_taper ? taper : NULL};
    double looks = 0, gain = 0, noise_gain = 0;
    pnr_slow_time *slow;

    for (size_t p = 0; p < n_periods; p++) {
        taper[p] = 0.3 + 0.7 * sin(M_PI * ((double)p + 0.5) / (double)n_periods);
        s.w[p] = with_taper ? taper[p] : 1;
    }
    for (size_t l = 0; l < n_looks; l++) {
        bool is_there = false;

        for (size_t p = 0; p < n_periods; p++) {
            const uint32_t gone = lost != NULL ? lost[l * n_periods + p] : 0;
            const double share = gone > N / 2 ? 0 : 1 - gone / (double)N;

            s.u[p] += share;
            gain += s.w[p] * share;
            noise_gain += s.w[p] * s.w[p] * share;
            is_there |= share > 0;
        }
        looks += is_there;
    }
    for (size_t p = 0; p < n_periods; p++)
        s.u[p] /= looks;
    assert_int_equal(pnr_slow_time_create(&plan, &slow), PNR_OK);
    pnr_slow_time_begin(slow, lost, NULL);
    assert_true(pnr_slow_time_is_whole(slow) == (lost == NULL));
    assert_true(fabs(pnr_slow_time_gain(slow) - gain) < 1e-9 * gain);
    assert_true(fabs(pnr_slow_time_noise_gain(slow) - noise_gain) < 1e-9 * noise_gain);
    assert_true(pnr_slow_time_looks(slow) == looks);
    check(slow, &s);
    pnr_slow_time_begin(slow, NULL, lost); /* not finite is as good as lost */
    check(slow, &s);
    pnr_slow_time_destroy(slow);
}

TEST(it_is_its_sums)
{
    static const size_t counts[] = {1, 2, 3, 8, 17, 64};
    uint32_t lost[3 * MOST] = {10, 0, 60, 50, 0, 51};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int taper = 0; taper < 2; taper++) {
            one_dwell(counts[i], 1, taper, false, NULL);
            one_dwell(counts[i], 1, taper, false, lost);
            one_dwell(counts[i], 3, taper, false, lost);
            if (counts[i] > 3) {
                one_dwell(counts[i], 1, taper, true, NULL);
                one_dwell(counts[i], 2, taper, true, lost);
            }
        }
    for (size_t p = 0; p < 8; p++)
        lost[8 + p] = N; /* a look of which nothing is left */
    one_dwell(8, 3, true, false, lost);
}

/* Signs change the echo alone; lost windows stay lost, and begin forgets the signs. */
TEST(signs_weigh_the_echo)
{
    enum { K = 11 };
    static const double complex signs[K] = {1, 1, 1, CMPLX(-0.3, 0.4), -1, -1, -1, 1, 1, 0.5, -1};
    static const double taper[K] = {0.2, 0.4, 0.6, 0.8, 0.9, 1, 0.9, 0.8, 0.6, 0.4, 0.2};
    static const uint32_t lost[K] = {0, 0, 0, 20, 0, N, 0, 0, 30};

    for (int with_taper = 0; with_taper < 2; with_taper++) {
        const pnr_plan plan = {
            .n_samples = N, .n_periods = K, .n_looks = 1, .taper = with_taper ? taper : NULL};
        sums s = {.n_periods = K}, plain = s;
        pnr_slow_time *slow;

        for (size_t p = 0; p < K; p++) {
            s.w[p] = plain.w[p] = with_taper ? taper[p] : 1;
            plain.u[p] = lost[p] > N / 2 ? 0 : 1 - lost[p] / (double)N;
            s.u[p] = plain.u[p] * signs[p];
        }
        assert_int_equal(pnr_slow_time_create(&plan, &slow), PNR_OK);
        pnr_slow_time_begin(slow, lost, NULL);
        pnr_slow_time_signs(slow, signs);
        for (double v = -1.3; v < 1.3; v += 0.37) {
            const value want = sum(&s, 1, v - 0.21) / sum(&plain, 1, 0);
            value windows[K], direct = 0;

            is_response(slow, K, v, 0.21, want, slope_of(&s, 1, v - 0.21) / sum(&plain, 1, 0));
            pnr_slow_time_windows(slow, 1, v - 0.21, windows);
            for (size_t p = 0; p < K; p++)
                direct += windows[p];
            is_near(direct, want);
        }
        is_near(pnr_slow_time_noise(slow, 0.1, 0.4), sum(&plain, 2, 0.3) / sum(&plain, 2, 0));
        assert_true(fabs(pnr_slow_time_gain(slow) - creal(sum(&plain, 1, 0))) < 1e-9);
        pnr_slow_time_signs(slow, NULL);
        check(slow, &plain);
        pnr_slow_time_signs(slow, signs);
        pnr_slow_time_begin(slow, lost, NULL);
        check(slow, &plain);
        pnr_slow_time_destroy(slow);
    }
}

TEST(nothing_is_destroyed)
{
    pnr_slow_time_destroy(NULL);
}
