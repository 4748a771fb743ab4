/* SPDX-License-Identifier: MIT */
/* Sets the spectrum of a code to 0 at the frequencies that are outside of the band or in a
 * notch. */
#include "code/band.h"

#include "base/complex.h"
#include "base/transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_notch(pnr_band *band, double centre, double reach)
{
    if (band->n_notches == PNR_MAX_NOTCHES)
        return; /* cannot happen, because window.notch has at most PNR_CONFIG_NOTCHES */
    band->notches[band->n_notches].centre = centre;
    band->notches[band->n_notches++].reach = reach;
}

static int add_notches(pnr_band *band, const pnr_notches *notches, double rate, pnr_error *error)
{
    for (size_t i = 0; i < notches->n; i++) {
        const double centre_hz = notches->at[i].centre_hz;

        if (fabs(centre_hz) > rate / 2)
            return pnr_refuse(error,
                              "window.notch: %.10g Hz is beyond half of source.rate_hz = %.10g",
                              centre_hz, rate);
        add_notch(band, centre_hz / rate, notches->at[i].width_hz / rate);
    }
    return PNR_OK;
}

int pnr_band_add_notches(pnr_band *band, const pnr_config *config, bool is_real, double lowest,
                         double highest, pnr_error *error)
{
    const double rate = pnr_rational_double(config->source.rate_hz);
    int rc = PNR_OK;

    if (config->window.dc == PNR_DC_REMOVE)
        add_notch(band, 0, 0);
    if ((rc = add_notches(band, &config->window.notch, rate, error)) != PNR_OK)
        return rc;

    const size_t n = band->n_notches;

    for (size_t i = 0; i < n; i++) {
        const double centre = config->source.spectrum == PNR_SPECTRUM_INVERTED
                                  ? -band->notches[i].centre
                                  : band->notches[i].centre;
        const double reach = band->notches[i].reach + (highest - lowest) / 2;
        const double middle = (highest + lowest) / 2;

        band->notches[i].centre = centre - middle;
        band->notches[i].reach = reach;
        if (is_real && centre != 0)
            add_notch(band, -centre - middle, reach);
    }
    return PNR_OK;
}

static bool is_removed(const pnr_band *band, double cycles, size_t n)
{
    const double nearest = (0.5 + 1e-6) / (double)n;

    for (size_t i = 0; i < band->n_notches; i++)
        if (fabs(remainder(cycles - band->notches[i].centre, 1)) <=
            fmax(band->notches[i].reach + 1e-6 / (double)n, nearest))
            return true;
    return false;
}

int pnr_band_keep(const pnr_band *band, double complex *a, size_t n, double *share, double *removed)
{
    /* cycles per sample: a margin for the rounding error of band->tune */
    const double nearest = 1e-6 / (double)n;
    double all = 0, shown = 0, kept = 0;

    *share = *removed = 0;

    const int rc = pnr_transform_forward((double(*)[2])a, n);

    if (rc != PNR_OK)
        return rc;
    for (size_t k = 0; k < n; k++) {
        const double cycles = remainder((double)k / (double)n + band->tune, 1);

        all += pnr_power(a[k]);
        if (band->is_half && (cycles < nearest || cycles > 0.5 - nearest))
            a[k] = 0;
        shown += pnr_power(a[k]);
        if (is_removed(band, cycles, n))
            a[k] = 0;
        kept += pnr_power(a[k]);
        a[k] /= (double)n;
    }
    if (all > 0)
        *share = kept / all;
    if (shown > 0)
        *removed = 1 - kept / shown;
    return pnr_transform_inverse((double(*)[2])a, n);
}
