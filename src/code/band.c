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
        return; /* cannot happen, because window.notch is too short for so many notches */
    band->notches[band->n_notches].centre = centre;
    band->notches[band->n_notches++].reach = reach;
}

/* Reads one entry f_hz+-width_hz of a list. Returns the text after the entry, or NULL if the text
 * is no such entry. */
static const char *read_notch(const char *text, double *centre_hz, double *width_hz)
{
    char *end;

    *centre_hz = strtod(text, &end);
    if (end == text || strncmp(end, "+-", 2) != 0)
        return NULL;
    text = end + 2;
    *width_hz = strtod(text, &end);
    if (end == text || !isfinite(*centre_hz) || !(*width_hz >= 0 && isfinite(*width_hz)))
        return NULL;
    while (*end == ' ')
        end++;
    return end;
}

static int read_notches(pnr_band *band, const char *list, double rate, pnr_error *error)
{
    const char *at = list;

    while (*at != '\0') {
        double centre, width;

        at = read_notch(at, &centre, &width);
        if (at == NULL || (*at != '\0' && *at != ',') || (*at == ',' && at[1] == '\0'))
            return pnr_refuse(error,
                              "window.notch = \"%s\": must be a list of f_hz+-width_hz, as "
                              "50e3+-200,-125e3+-1e3",
                              list);
        if (fabs(centre) > rate / 2)
            return pnr_refuse(error,
                              "window.notch: %.10g Hz is beyond half of source.rate_hz = %.10g",
                              centre, rate);
        add_notch(band, centre / rate, width / rate);
        at += *at == ',';
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
    if ((rc = read_notches(band, config->window.notch, rate, error)) != PNR_OK)
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
