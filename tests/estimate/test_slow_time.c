/* SPDX-License-Identifier: MIT */
/* Slow time against its sums, term by term: tapers, odd and even counts, windows that are missing,
 * looks, and the mean removed. */
#include "estimate/slow_time.h"

#include "base/error.h"
#include "tests/fixture/test.h"

enum { MOST = 64, N = 100 };

typedef double value[2];

typedef struct sums {
    size_t n_periods;
    double w[MOST], u[MOST];
    bool without_mean;
} sums;

/* sum_p f(p) exp(2 pi i x (p - (K - 1)/2)), f = w^power u */
static void sum(const sums *s, int power, double x, value out)
{
    out[0] = out[1] = 0;
    for (size_t p = 0; p < s->n_periods; p++) {
        const double angle = 2 * M_PI * x * ((double)p - ((double)s->n_periods - 1) / 2);
        const double f = pow(s->w[p], power) * s->u[p];

        out[0] += f * cos(angle);
        out[1] += f * sin(angle);
    }
}

static void check(const pnr_slow_time *slow, const sums *s)
{
    value all, squares, windows;

    sum(s, 1, 0, all);
    sum(s, 2, 0, squares);
    sum(s, 0, 0, windows);
    for (double v = -3.3; v < 3.3; v += 0.37)
        for (double f = -2.1; f < 2.2; f += 0.35) {
            value echo, noise, want, cross, mean, still, other;

            pnr_slow_time_echo(slow, v, f, echo);
            pnr_slow_time_noise(slow, v, f, noise); /* of the rows at v and f */
            sum(s, 1, v - f, want);
            sum(s, 2, f - v, cross);
            if (s->without_mean) {
                sum(s, 0, v, mean);
                sum(s, 1, -f, still);
                want[0] -= (mean[0] * still[0] - mean[1] * still[1]) / windows[0];
                want[1] -= (mean[0] * still[1] + mean[1] * still[0]) / windows[0];
                sum(s, 1, -v, other);
                cross[0] -= (other[0] * still[0] + other[1] * still[1]) / windows[0];
                cross[1] -= (other[1] * still[0] - other[0] * still[1]) / windows[0];
                assert_true(
                    fabs(pnr_slow_time_energy(slow, v) -
                         (1 - (mean[0] * mean[0] + mean[1] * mean[1]) / windows[0] / windows[0]) *
                             windows[0] / (windows[0] - 1)) < 1e-6);
            }
            for (int c = 0; c < 2; c++) {
                assert_true(fabs(echo[c] - want[c] / all[0]) < 1e-6);
                assert_true(fabs(noise[c] - cross[c] / squares[0]) < 1e-6);
            }
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

TEST(nothing_is_destroyed)
{
    pnr_slow_time_destroy(NULL);
}
