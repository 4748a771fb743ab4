/* SPDX-License-Identifier: MIT */
/* Tracks after a least-squares filter. The values are restored to those of the correlation, which
 * the fits expect. The response of one echo at the lags of another is that of the filter and not
 * the sidelobes of the code. */
#include "detector/state.h"

#include <math.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };
static const double faint = 1e-3; /* a negligible response, relative to the amplitude */

static size_t gate_of(const pnr_detector *detector, const pnr_track *t)
{
    const pnr_plan *plan = detector->plan;

    return (t->centre + plan->n_lags - plan->gate_first) % plan->n_lags;
}

double pnr_track_loss(const pnr_detector *detector, const pnr_track *t)
{
    return detector->least_squares != NULL ? detector->least_squares->loss[gate_of(detector, t)]
                                           : 1;
}

void pnr_track_restore(const pnr_detector *detector, const pnr_track *t, const float *values,
                       size_t n_rows, float *out)
{
    for (size_t row = 0; row < n_rows; row++) {
        const float complex *from = (const float complex *)values + J * row;
        float complex *to = (float complex *)out + J * row;
        pnr_vector filtered, restored;

        for (int j = 0; j < J; j++)
            filtered[j] = (double complex)from[j];
        pnr_least_squares_restore(detector->least_squares, gate_of(detector, t), filtered,
                                  restored);
        for (int j = 0; j < J; j++)
            to[j] = (float complex)restored[j];
    }
}

double pnr_track_gates(const pnr_detector *detector, const pnr_track *from, const pnr_track *other)
{
    return remainder((double)other->centre + other->fit.delay - (double)from->centre,
                     (double)detector->plan->n_samples);
}

bool pnr_track_response(const pnr_detector *detector, const pnr_track *from, const pnr_track *other,
                        double complex *out)
{
    const double distance = pnr_track_gates(detector, from, other);
    const double reach = fmax(M_PI * (fabs(distance) - J), 1);

    if (pnr_power(other->fit.peak) < pow(faint * reach, 2) * (double)from->candidate->power)
        return false;
    pnr_least_squares_echo(detector->least_squares, gate_of(detector, from), distance, out);
    for (int j = 0; j < J; j++)
        out[j] = -out[j];
    return true;
}

void pnr_track_missing(const pnr_detector *detector, const pnr_track *t, double complex *out)
{
    pnr_vector echo;

    pnr_least_squares_echo(detector->least_squares, gate_of(detector, t), t->fit.delay, echo);
    for (int j = 0; j < J; j++)
        out[j] = pnr_waveform_at(t->code->autocorrelation, j - MIDDLE - t->fit.delay) - echo[j];
}

void pnr_track_add(double complex a, const double complex *x, double complex *c)
{
    for (int j = 0; j < J; j++)
        c[j] += a * x[j];
}

void pnr_track_rows(const pnr_detector *detector, const pnr_track *t, const pnr_track *other,
                    double cell, double complex *out)
{
    const pnr_patch_echo echo = pnr_track_echo(detector, other);
    const pnr_patch_place place = {echo.code, t->candidate->row, lrint(echo.lag)};
    pnr_patch patch = {{0}};

    pnr_fit_patch_subtract(detector->map, &place, &echo, cell, patch);

    const double complex rho =
        pnr_waveform_at(other->code->autocorrelation, (double)place.lag - echo.lag);

    for (int row = 0; row < J; row++)
        out[row] = -(patch[row][MIDDLE] * conj(rho)) / pnr_power(rho);
}

void pnr_track_add_rows(const double complex *rows, const double complex *x, pnr_vector *patch)
{
    for (int row = 0; row < J; row++)
        pnr_track_add(rows[row], x, patch[row]);
}
