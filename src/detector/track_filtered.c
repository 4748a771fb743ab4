/* SPDX-License-Identifier: MIT */
/* Tracks after a least-squares filter. The values are restored to those of the correlation, which
 * the fits expect. The response of one echo at the lags of another is that of the filter and not the
 * sidelobes of the code. */
#include "detector/state.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };
static const double faint = 1e-3; /* a negligible response, relative to the amplitude */

typedef double value[2]; /* re, im */

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
        value filtered[J], restored[J];

        for (size_t i = 0; i < 2 * J; i++)
            filtered[i / 2][i % 2] = (double)values[2 * J * row + i];
        pnr_least_squares_restore(detector->least_squares, gate_of(detector, t),
                                  (const value *)filtered, restored);
        for (size_t i = 0; i < 2 * J; i++)
            out[2 * J * row + i] = (float)restored[i / 2][i % 2];
    }
}

double pnr_track_gates(const pnr_detector *detector, const pnr_track *from, const pnr_track *other)
{
    return remainder((double)other->centre + other->fit.delay - (double)from->centre,
                     (double)detector->plan->n_samples);
}

bool pnr_track_response(const pnr_detector *detector, const pnr_track *from, const pnr_track *other,
                        value *out)
{
    const double distance = pnr_track_gates(detector, from, other);
    const double reach = fmax(M_PI * (fabs(distance) - J), 1);

    if (pnr_squared(other->fit.peak) < pow(faint * reach, 2) * (double)from->candidate->power)
        return false;
    pnr_least_squares_echo(detector->least_squares, gate_of(detector, from), distance, out);
    for (int j = 0; j < J; j++) {
        out[j][0] = -out[j][0];
        out[j][1] = -out[j][1];
    }
    return true;
}

void pnr_track_missing(const pnr_detector *detector, const pnr_track *t, value *out)
{
    value echo[J];

    pnr_least_squares_echo(detector->least_squares, gate_of(detector, t), t->fit.delay, echo);
    for (int j = 0; j < J; j++) {
        pnr_waveform_at(t->code->autocorrelation, j - MIDDLE - t->fit.delay, out[j]);
        out[j][0] -= echo[j][0];
        out[j][1] -= echo[j][1];
    }
}

void pnr_track_add(const value a, const value *x, value *c)
{
    for (int j = 0; j < J; j++) {
        c[j][0] += a[0] * x[j][0] - a[1] * x[j][1];
        c[j][1] += a[0] * x[j][1] + a[1] * x[j][0];
    }
}

void pnr_track_rows(const pnr_detector *detector, const pnr_track *t, const pnr_track *other,
                    double cell, value *out)
{
    const pnr_patch_echo echo = pnr_track_echo(detector, other);
    const pnr_patch_place place = {echo.code, t->candidate->row, lrint(echo.lag)};
    pnr_patch patch;
    value rho;

    memset(patch, 0, sizeof patch);
    pnr_fit_patch_subtract(detector->map, &place, &echo, cell, patch);
    pnr_waveform_at(other->code->autocorrelation, (double)place.lag - echo.lag, rho);
    for (int row = 0; row < J; row++) {
        const double *c = patch[row][MIDDLE];

        out[row][0] = -(c[0] * rho[0] + c[1] * rho[1]) / pnr_squared(rho);
        out[row][1] = -(c[1] * rho[0] - c[0] * rho[1]) / pnr_squared(rho);
    }
}

void pnr_track_add_rows(const value *rows, const value *x, pnr_vector *patch)
{
    for (int row = 0; row < J; row++)
        pnr_track_add(rows[row], x, patch[row]);
}
