/* SPDX-License-Identifier: MIT */
/* Tests thresholds against closed forms, and against random noise. */
#include "setup/threshold.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

static void near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("%.17g, not %.17g", got, want);
}

TEST(test_gamma)
{
    near(pnr_gamma_q(1, 30), exp(-30), 1e-12);
    near(pnr_gamma_q(3, 10), exp(-10) * (1 + 10 + 50), 1e-12);
    near(pnr_gamma_q(3, 0.1), exp(-0.1) * (1 + 0.1 + 0.005), 1e-12);
    near(pnr_gamma_q(0.5, 2), erfc(sqrt(2)), 1e-12);
    near(pnr_gamma_q(400, 400), 0.49335087016121, 1e-12); /* by scipy.special.gammaincc */
    assert_true(pnr_gamma_q(4, 0) == 1);
}

/* Values that underflow, or in which the terms of lgamma cancel, by gammainc and gammaincc of
 * scipy.special. */
TEST(test_gamma_log)
{
    near(pnr_gamma_log(1, 800).q, -800, 1e-15);
    near(pnr_gamma_log(1, 800).density, log(800) - 800, 1e-15);
    near(pnr_gamma_log(2, 1e-9).p, log(0.5e-18) - 2e-9 / 3, 1e-15);
    near(exp(pnr_gamma_log(4000, 3500).p), 7.525652166073827e-17, 1e-11);
    near(exp(pnr_gamma_log(4000, 4300).q), 1.7846744015788043e-06, 1e-11);
    near(exp(pnr_gamma_log(3e7, 3.003e7).q), 2.1818610808820703e-08, 1e-8);
    for (double a = 15; a <= 17; a += 0.5) /* near 16, where the method of computation changes */
        assert_true(fabs(pnr_gamma_log(a, 20).density - (a * log(20) - 20 - lgamma(a))) < 1e-13);
}

TEST(test_beta)
{
    near(pnr_beta_i(1, 9, 0.2), 1 - pow(0.8, 9), 1e-12);
    near(pnr_beta_i(2, 5, 0.3), 0.579825, 1e-12);
    near(pnr_beta_i(7, 1, 0.9), pow(0.9, 7), 1e-12);
    near(pnr_beta_i(3, 4, 0.5) + pnr_beta_i(4, 3, 0.5), 1, 1e-14);
    assert_true(pnr_beta_i(2, 2, 0) == 0 && pnr_beta_i(2, 2, 1) == 1);
}

/* With independent cells the probability of a search is nearly n times that of a cell. */
TEST(test_cell)
{
    for (double pfa = 1e-8; pfa < 0.1; pfa *= 10) {
        const double cell = pnr_threshold_cell_pfa(pfa, 1023, 0, 1);

        /* n (p - p^2) = -log(1 - pfa) */
        near(1023 * (cell - cell * cell), -log1p(-pfa), 1e-9);
    }
    /* Correlated cells count as fewer independent cells, so each cell may have a higher false-alarm
     * probability. */
    assert_true(pnr_threshold_cell_pfa(1e-3, 2046, 0.405, 1) >
                pnr_threshold_cell_pfa(1e-3, 2046, 0, 1));
    assert_true(pnr_threshold_cell_pfa(1e-3, 2046, 0.9, 4) >
                pnr_threshold_cell_pfa(1e-3, 2046, 0.5, 4));
}

/* With one look of n samples, P(P/floor > t) = (1 - t/n)^(n-1), so t = n (1 - p^(1/(n-1))). */
TEST(test_ratio)
{
    for (double n = 13; n < 1e6; n *= 3)
        for (double p = 1e-9; p < 0.2; p *= 10)
            near(pnr_threshold_ratio(p, 1, n), -n * expm1(log(p) / (n - 1)), 1e-9);
    near(pnr_threshold_ratio(1e-6, 1, 1e8), -log(1e-6), 1e-5);
    assert_true(pnr_threshold_ratio(1e-3, 1, 1) ==
                1); /* a single cell is its own floor, so it never exceeds the floor */
    assert_true(pnr_threshold_ratio(1e-6, 16, 1000) < pnr_threshold_ratio(1e-6, 4, 1000));
    /* If the floor is the mean of n other samples, P(P/floor > t) = (1 + t/n)^-n. */
    for (double n = 13; n < 1e6; n *= 3)
        for (double p = 1e-9; p < 0.2; p *= 10)
            near(pnr_threshold_ratio_apart(p, 1, n), n * expm1(-log(p) / n), 1e-9);
    assert_true(pnr_threshold_ratio_apart(1e-6, 4, 100) > pnr_threshold_ratio(1e-6, 4, 100));
}

/* Draws correlated cells: a moving average over w white values gives the correlation |rho| = (w -
 * 1)/w of neighbours. The share of searches with a cell above the threshold must be the wanted
 * probability. */
TEST(test_correlated)
{
    static const struct {
        int width;
        size_t looks;
    } cases[] = {{1, 1}, {2, 1}, {4, 1}, {3, 4}};

    for (size_t c = 0; c < 4; c++) {
        enum { CELLS = 500, SEARCHES = 20000 };
        const int w = cases[c].width;
        const double rho = (double)(w - 1) / w, asked = 0.02;
        const double cell = pnr_threshold_cell_pfa(asked, CELLS, rho * rho, cases[c].looks);
        double low = 0, high = 200;
        int found = 0;

        for (int i = 0; i < 100; i++)
            *(pnr_gamma_q((double)cases[c].looks, (low + high) / 2) > cell ? &low : &high) =
                (low + high) / 2;
        for (int s = 0; s < SEARCHES; s++) {
            double power[CELLS] = {0};
            int above = 0;

            for (size_t look = 0; look < cases[c].looks; look++) {
                double x[CELLS][2];

                for (int i = 0; i < CELLS; i++) {
                    const double r = sqrt(-log(uniform())), angle = 2 * M_PI * uniform();

                    x[i][0] = r * cos(angle);
                    x[i][1] = r * sin(angle);
                }
                for (int i = 0; i < CELLS; i++) {
                    double re = 0, im = 0;

                    for (int k = 0; k < w; k++) {
                        re += x[(i + k) % CELLS][0];
                        im += x[(i + k) % CELLS][1];
                    }
                    power[i] += (re * re + im * im) / w;
                }
            }
            for (int i = 0; i < CELLS; i++)
                above |= power[i] > low;
            found += above;
        }
        /* 400 searches are expected; 20 % is 4 standard deviations, and the formula has an error
         * below 3 % */
        if (fabs(found / (asked * SEARCHES) - 1) > 0.2)
            fail_msg("width %d, looks %zu: %d of %d searches, %g asked", w, cases[c].looks, found,
                     SEARCHES, asked);
    }
}
