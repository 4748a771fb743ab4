/* SPDX-License-Identifier: MIT */
/* The part of a code that real samples show once: half of its spectrum. */
#include "code/analytic.h"

#include "base/complex.h"
#include "base/error.h"
#include "base/transform.h"

#include <math.h>

int pnr_analytic_keep(double complex *a, size_t n, double tune, double *share)
{
    const double nearest = 1e-6 / (double)n; /* rounding of the tune */
    double all = 0, kept = 0;

    *share = 0;
    if (pnr_transform_forward((double(*)[2])a, n) != PNR_OK)
        return PNR_ENOMEMORY;
    for (size_t k = 0; k < n; k++) {
        const double before = remainder((double)k / (double)n + tune, 1);

        all += pnr_power(a[k]);
        if (before < nearest || before > 0.5 - nearest)
            a[k] = 0;
        kept += pnr_power(a[k]);
        a[k] /= (double)n;
    }
    if (all > 0)
        *share = kept / all;
    return pnr_transform_inverse((double(*)[2])a, n);
}
