/* SPDX-License-Identifier: MIT */
/* Tracks after a least-squares filter. The fits need values of the correlation, so these values are
 * restored from the filtered values. At the lags of another track an echo appears with the response
 * of the filter, without the sidelobes of the code. */
#include "detector/state.h"

#include <math.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };
static const double faint = 1e-3; /* a response of an echo is negligible if its amplitude is below
                                   * this share of the candidate's amplitude */

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

double pnr_track_gates(const pnr_detector *detector, const pnr_track *from, double lag)
{
    return remainder(lag - (double)from->centre, (double)detector->plan->n_samples);
}

/* Fills the amplitude of an echo in each row of a track. The amplitude is taken at the lag nearest
 * to the echo. */
static void find_rows(const pnr_detector *detector, const pnr_track *t, const pnr_patch_echo *echo,
                      double cell, double complex *out)
{
    const pnr_patch_place place = {
        .code = echo->code, .row = t->candidate->row, .lag = lrint(echo->lag)};
    const double complex rho =
        pnr_waveform_at(detector->codes[echo->code].autocorrelation, (double)place.lag - echo->lag);
    pnr_patch patch = {{0}};

    if (!detector->has_rows) {
        out[0] = echo->peak;
        return;
    }
    pnr_fit_patch_change(detector->map, &place, NULL, echo, cell, patch);
    for (int row = 0; row < J; row++)
        out[row] = -(patch[row][MIDDLE] * conj(rho)) / pnr_power(rho);
}

static void add_rows(const pnr_track *t, double factor, const double complex *rows,
                     const double complex *x, pnr_vector *values)
{
    for (int row = 0; row < t->n_rows; row++)
        for (int j = 0; j < J; j++)
            values[row][j] += factor * rows[row] * x[j];
}

void pnr_track_add_filtered(const pnr_detector *detector, const pnr_track *t,
                            const pnr_patch_echo *echo, double factor, double cell,
                            pnr_vector *values)
{
    const double distance = pnr_track_gates(detector, t, echo->lag);
    const double reach = fmax(M_PI * (fabs(distance) - J), 1);
    pnr_vector response, rows;

    if (pnr_power(echo->peak) < pow(faint * reach, 2) * (double)t->candidate->power)
        return;
    pnr_least_squares_echo(detector->least_squares, gate_of(detector, t), distance, response);
    find_rows(detector, t, echo, cell, rows);
    add_rows(t, factor, rows, response, values);
}

void pnr_track_add_missing(const pnr_detector *detector, const pnr_track *t, double cell,
                           pnr_vector *values)
{
    const pnr_patch_echo own = pnr_track_echo(detector, t);
    pnr_vector echo, missing, rows;

    pnr_least_squares_echo(detector->least_squares, gate_of(detector, t), t->fit.delay, echo);
    for (int j = 0; j < J; j++)
        missing[j] = pnr_waveform_at(t->code->autocorrelation, j - MIDDLE - t->fit.delay) - echo[j];
    find_rows(detector, t, &own, cell, rows);
    add_rows(t, 1, rows, missing, values);
}
