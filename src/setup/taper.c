/* SPDX-License-Identifier: MIT */
/* Computes tapers: cosine sums, and the Dolph-Chebyshev taper from its spectrum. */
#include "setup/taper.h"

#include "base/error.h"
#include "base/transform.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_TERMS = 4 };

/* The coefficients a_j of w[p] = sum_j (-1)^j a_j cos(2 pi j (p + 1/2) / n). */
static const double terms_of[][MAX_TERMS] = {
    [PNR_TAPER_RECTANGULAR] = {1},
    [PNR_TAPER_HANN] = {0.5, 0.5},
    [PNR_TAPER_BLACKMAN_HARRIS] = {0.35875, 0.48829, 0.14128, 0.01168},
};

static void fill_cosines(const double a[MAX_TERMS], size_t n, double *weights)
{
    for (size_t p = 0; p < n; p++) {
        const double x = 2 * M_PI * ((double)p + 0.5) / (double)n;

        weights[p] = a[0] - a[1] * cos(x) + a[2] * cos(2 * x) - a[3] * cos(3 * x);
    }
}

/* Returns the Chebyshev polynomial T_m(x). */
static double chebyshev(size_t m, double x)
{
    const double order = (double)m;

    if (fabs(x) <= 1)
        return cos(order * acos(x));
    return (x < 0 && m % 2 == 1 ? -1 : 1) * cosh(order * acosh(fabs(x)));
}

/* Computes the Dolph-Chebyshev taper. Bin m of the spectrum of its n weights is T_(n-1)(b cos(pi m
 * / n)), if the phase is 0 at the middle of the taper. With this b the main lobe is sidelobe_db dB
 * above the sidelobes. */
static int fill_dolph(double sidelobe_db, size_t n, double *weights)
{
    const double b = cosh(acosh(pow(10, sidelobe_db / 20)) / (double)(n > 1 ? n - 1 : 1));
    double(*bins)[2] = malloc(n * sizeof *bins);

    if (bins == NULL)
        return PNR_ENOMEMORY;
    for (size_t m = 0; m < n; m++) {
        const double value = chebyshev(n - 1, b * cos(M_PI * (double)m / (double)n));
        /* The middle of the taper is at (n - 1) / 2. Rotates bin m by exp(-i pi m (n - 1) / n). */
        double turn[2];

        pnr_transform_root(m * (n - 1) % (2 * n), 2 * n, turn);
        bins[m][0] = value * turn[0];
        bins[m][1] = -value * turn[1];
    }
    if (pnr_transform_inverse(bins, n) != PNR_OK) {
        free(bins);
        return PNR_ENOMEMORY;
    }
    for (size_t p = 0; p < n; p++)
        weights[p] = bins[p][0];
    free(bins);
    return PNR_OK;
}

int pnr_taper_fill(pnr_taper kind, double sidelobe_db, size_t n, double *weights)
{
    double sum = 0;

    if (kind != PNR_TAPER_DOLPH_CHEBYSHEV)
        fill_cosines(terms_of[kind], n, weights);
    else if (fill_dolph(sidelobe_db, n, weights) != PNR_OK)
        return PNR_ENOMEMORY;
    for (size_t p = 0; p < n; p++)
        sum += weights[p] * weights[p];
    for (size_t p = 0; p < n; p++)
        weights[p] *= sqrt((double)n / sum);
    return PNR_OK;
}

double pnr_taper_loss_db(const double *weights, size_t n)
{
    double sum = 0;

    for (size_t p = 0; p < n; p++)
        sum += weights != NULL ? weights[p] : 1;
    return fmax(0, -20 * log10(sum / (double)n));
}

size_t pnr_taper_stride(const double *weights, size_t n)
{
    double(*bins)[2];
    size_t stride = 1;

    if (weights == NULL)
        return 1;
    if ((bins = malloc(n * sizeof *bins)) == NULL)
        return 0;
    for (size_t p = 0; p < n; p++) {
        bins[p][0] = weights[p] * weights[p] / (double)n;
        bins[p][1] = 0;
    }
    if (pnr_transform_forward(bins, n) != PNR_OK) {
        free(bins);
        return 0;
    }
    for (size_t m = 1; m <= n / 2; m++)
        if (bins[m][0] * bins[m][0] + bins[m][1] * bins[m][1] > 0.02)
            stride = m + 1;
    free(bins);
    return stride;
}
