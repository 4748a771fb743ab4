/* SPDX-License-Identifier: MIT */
/* Tests of taper.c: the weights of scipy, the sidelobes, the losses, and the correlation of
 * rows. */
#include "setup/taper.h"

#include "base/error.h"
#include "tests/fixture/test.h"

static double *fill(pnr_taper kind, double sidelobe_db, size_t n)
{
    double *w = malloc(n * sizeof *w);

    assert_non_null(w);
    assert_int_equal(pnr_taper_fill(kind, sidelobe_db, n, w), PNR_OK);
    return w;
}

/* The first half of the weights by scipy.signal.windows: hann and blackmanharris, periodic, of 16
 * points at the odd points; chebwin of 8 and 7 points. Each is scaled by sqrt(n / sum of
 * squares). */
TEST(weights_are_scipys)
{
    static const struct {
        pnr_taper kind;
        size_t n;
        double half[4];
    } cases[] = {
        {PNR_TAPER_RECTANGULAR, 8, {1, 1, 1, 1}},
        {PNR_TAPER_HANN, 8, {0.062152101443, 0.504036866824, 1.128956295032, 1.570841060412}},
        {PNR_TAPER_BLACKMAN_HARRIS,
         8,
         {0.006023156178, 0.1629852768, 0.856307811818, 1.800037903088}},
        {PNR_TAPER_DOLPH_CHEBYSHEV,
         8,
         {0.109355001692, 0.484238971712, 1.096889456298, 1.596993306981}},
        {PNR_TAPER_DOLPH_CHEBYSHEV,
         7,
         {0.14376503999, 0.627529282043, 1.312315026632, 1.651283067394}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double *w = fill(cases[i].kind, 60, cases[i].n);

        for (size_t p = 0; p < cases[i].n; p++) {
            const size_t mirror = p < cases[i].n - 1 - p ? p : cases[i].n - 1 - p;

            if (!(fabs(w[p] - cases[i].half[mirror]) < 1e-11))
                fail_msg("case %zu, weight %zu: %.15g instead of %.15g", i, p, w[p],
                         cases[i].half[mirror]);
        }
        free(w);
    }
}

/* A dwell of one period is the same with and without a taper. */
TEST(one_period_weighs_one)
{
    for (int kind = PNR_TAPER_RECTANGULAR; kind <= PNR_TAPER_DOLPH_CHEBYSHEV; kind++) {
        double *w = fill((pnr_taper)kind, 60, 1);

        assert_true(fabs(w[0] - 1) < 1e-12);
        free(w);
    }
}

/* Returns how far, in dB, the highest lobe lies below the main lobe. Searches from `from_row` rows
 * on, at FINER points a row. */
static double sidelobe_db(const double *w, size_t n, double from_row)
{
    enum { FINER = 16 };
    double peak = 0, sum = 0;

    for (size_t p = 0; p < n; p++)
        sum += w[p];
    for (size_t i = (size_t)(from_row * FINER); i <= n * FINER / 2; i++) {
        double re = 0, im = 0;

        for (size_t p = 0; p < n; p++) {
            const double x = 2 * M_PI * (double)i * (double)p / (double)(n * FINER);

            re += w[p] * cos(x);
            im += w[p] * sin(x);
        }
        peak = fmax(peak, hypot(re, im));
    }
    return 20 * log10(sum / peak);
}

TEST(sidelobes_are_as_asked)
{
    static const double asked_db[] = {20, 40, 60, 80, 120};

    for (size_t n = 63; n <= 64; n++) {
        double *hann = fill(PNR_TAPER_HANN, 0, n);
        double *blackman = fill(PNR_TAPER_BLACKMAN_HARRIS, 0, n);

        assert_true(fabs(sidelobe_db(hann, n, 2) - 31.47) < 0.1);
        assert_true(sidelobe_db(blackman, n, 4) > 91.9);
        free(hann);
        free(blackman);
        for (size_t i = 0; i < sizeof asked_db / sizeof asked_db[0]; i++) {
            const double at = asked_db[i];
            double *w = fill(PNR_TAPER_DOLPH_CHEBYSHEV, at, n);
            /* The main lobe has fallen to the ripple at b cos(pi x / n) = 1. */
            const double b = cosh(acosh(pow(10, at / 20)) / (double)(n - 1));
            const double edge = (double)n / M_PI * acos(1 / b);

            /* All sidelobes have the same height. */
            if (!(fabs(sidelobe_db(w, n, edge + 0.07) - at) < 0.15))
                fail_msg("%zu weights, %g dB: %g dB", n, at, sidelobe_db(w, n, edge + 0.07));
            free(w);
        }
    }
}

/* The equivalent noise bandwidths of F. J. Harris (1978), table 1: 1.50 and 2.00 bins. */
TEST(losses_are_those_of_the_books)
{
    double *hann = fill(PNR_TAPER_HANN, 0, 512);
    double *blackman = fill(PNR_TAPER_BLACKMAN_HARRIS, 0, 512);

    assert_true(fabs(pnr_taper_loss_db(NULL, 512)) < 1e-9);
    assert_true(fabs(pnr_taper_loss_db(hann, 512) - 10 * log10(1.5)) < 1e-9);
    assert_true(fabs(pnr_taper_loss_db(blackman, 512) - 10 * log10(2.004)) < 0.01);
    free(hann);
    free(blackman);
}

TEST(rows_beyond_the_stride_are_not_correlated)
{
    double *hann = fill(PNR_TAPER_HANN, 0, 64);
    double *blackman = fill(PNR_TAPER_BLACKMAN_HARRIS, 0, 64);

    assert_int_equal(pnr_taper_stride(NULL, 64), 1);
    assert_int_equal(pnr_taper_stride(hann, 64), 3);
    assert_int_equal(pnr_taper_stride(blackman, 64), 4);
    free(hann);
    free(blackman);
}
