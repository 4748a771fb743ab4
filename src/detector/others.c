/* SPDX-License-Identifier: MIT */
/* Subtracts the other echoes of a dwell from the values of a track. Skips echoes that are
 * negligible against the noise. */
#include "detector/state.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

void pnr_others_note(const pnr_detector *detector, pnr_track *t)
{
    t->told.echo = pnr_track_echo(detector, t);
    t->is_told = true;
    if (!detector->has_rows)
        pnr_waveform_locate(t->code->autocorrelation, -t->told.echo.lag, &t->told.at);
}

void pnr_others_add(const pnr_detector *detector, const pnr_track *t, const pnr_told *echo,
                    double factor, pnr_vector *values)
{
    pnr_cross_add(detector->cross, echo->echo.code, (size_t)(t->code - detector->codes), &echo->at,
                  (long)t->centre - MIDDLE, factor * echo->echo.peak, *values);
}

/* Adds the echo `before` to `rest` of a track, and subtracts the echo `after` from `rest`. before:
 * NULL if no echo was subtracted yet. If the plan has one row, both echoes have the frequency of
 * that row. */
static void move_echo(const pnr_detector *detector, const pnr_track *from, const pnr_told *before,
                      const pnr_told *after, double cell, int reach)
{
    pnr_patch_place place = pnr_track_place(detector, from);

    place.reach = reach;
    if (detector->has_rows && detector->least_squares == NULL) {
        pnr_fit_patch_change(detector->map, &place, before != NULL ? &before->echo : NULL,
                             &after->echo, cell, from->rest);
        return;
    }
    for (int i = 0; i < 2; i++) {
        const pnr_told *echo = i == 0 ? before : after;
        const double sign = i == 0 ? 1 : -1;

        if (echo != NULL && detector->least_squares != NULL)
            pnr_track_add_filtered(detector, from, &echo->echo, sign, cell, from->rest);
        else if (echo != NULL)
            pnr_others_add(detector, from, echo, sign, from->rest);
    }
}

/* Returns the change of an echo's delay over a look of K periods, in samples. The row of the track
 * determines the stretch. */
static double walk_of(const pnr_detector *detector, const pnr_track *from,
                      const pnr_patch_echo *echo)
{
    const double stretch = pnr_fit_patch_stretch(detector->map, from->candidate->row);

    return (double)detector->plan->n_periods *
           fabs(pnr_fit_patch_walk(detector->map, echo->bins, stretch));
}

/* Returns an upper bound of the power of an echo in the values of a track, divided by the power of
 * the echo's peak, in a plan with one row. */
static double reach_in_row(const pnr_detector *detector, const pnr_track *from,
                           const pnr_patch_echo *echo)
{
    const size_t in = (size_t)(from->code - detector->codes);
    const double lags = fabs(pnr_track_distance(detector, (double)from->centre, echo->lag));

    if (!pnr_cross_is_known(detector->cross, echo->code, in))
        return 0;

    const double most =
        pnr_cross_most(detector->cross, echo->code, in, echo->code == in ? lags - MIDDLE : 0);

    return most * most;
}

/* Returns the same in a map. Far lags contain the code's sidelobes or the tail of the pulse. They
 * also contain the self-noise of the ambiguity function, about 8/N. At far rows the sidelobes of
 * slow time reduce the power by the factor 1 / (pi rows)^2. */
static double reach_in_map(const pnr_detector *detector, const pnr_track *from,
                           const pnr_patch_echo *echo)
{
    enum { NEAR = 3 * MIDDLE };
    const pnr_detector_code *code = &detector->codes[echo->code];
    const double k = (double)detector->plan->n_periods, n = (double)detector->plan->n_samples;
    const double lags = fabs(pnr_track_distance(detector, (double)from->centre, echo->lag)) -
                        MIDDLE - walk_of(detector, from, echo) / 2;
    const double tail = 0.35 / (lags > 1 ? lags : 1);
    const double most = tail > code->lobe.greatest ? tail : code->lobe.greatest;
    const double far = fmin(fmax(most * most, 8 / n), 1);
    const double rows = k * fabs(remainder(from->bins - echo->bins, 1)) - MIDDLE - 2;

    if (from->code != code)
        return far;
    return (lags > NEAR ? far : 1) * (rows > 1 ? 1 / (M_PI * M_PI * rows * rows) : 1);
}

/* Returns the same in any plan. After a least-squares filter no bound below 1 is known. */
static double reach_of(const pnr_detector *detector, const pnr_track *from,
                       const pnr_patch_echo *echo)
{
    if (detector->least_squares != NULL)
        return 1;
    return detector->has_rows ? reach_in_map(detector, from, echo)
                              : reach_in_row(detector, from, echo);
}

bool pnr_others_reach(const pnr_detector *detector, const pnr_track *t, const pnr_patch_echo *echo,
                      double cell)
{
    return pnr_power(echo->peak) * reach_of(detector, t, echo) >
           (detector->has_rows ? 1e-2 : 1e-5) * cell;
}

void pnr_others_tell(const pnr_detector *detector, pnr_track *tracks, size_t n, size_t i,
                     double cell)
{
    pnr_track *t = &tracks[i];
    const bool was_told = t->is_told;
    const pnr_told before = t->told;

    pnr_others_note(detector, t);

    const double change = pnr_patch_echo_change(was_told ? &before.echo : NULL, &t->told.echo,
                                                (double)detector->plan->n_periods);
    const double least = (detector->has_rows ? 1e-3 : 1e-6) * cell;

    /* In one row the changes of ten echoes with 1e-5 of the noise, of random phases, move no
     * estimate by more than 0.01 sigma. They are subtracted because of the noise estimate, which
     * multiplies them by the amplitude of this track (noise_sum.c). */
    for (size_t k = 0; k < n; k++) {
        const double reach = k != i ? reach_of(detector, &tracks[k], &t->told.echo) : 0;

        if (pnr_power(t->told.echo.peak) * reach <= 10 * least || change * reach <= least)
            continue;
        move_echo(detector, &tracks[k], was_told ? &before : NULL, &t->told, cell, 0);
        tracks[k].is_dirty |= detector->has_rows || change * reach > 10 * least;
    }
}

void pnr_others_subtract(const pnr_detector *detector, const pnr_track *t, const pnr_track *others,
                         size_t n, double cell)
{
    memcpy(t->rest, t->c, (size_t)t->n_rows * sizeof *t->c);
    for (size_t i = 0; i < n; i++) {
        const pnr_told *told = &others[i].told;

        if (&others[i] == t || !pnr_others_reach(detector, t, &told->echo, cell))
            continue;
        pnr_sign_begin(detector, &others[i]);
        move_echo(detector, t, NULL, told, cell, 0);
        pnr_sign_end(detector, &others[i]);
    }
}

/* Returns the amplitude of the values in the 3 x 3 cells around a candidate, or in 3 x 4 cells. */
static double amplitude_near(const pnr_track *t, int n_lags)
{
    double power = 0;

    for (int r = MIDDLE - 1; r <= MIDDLE + 1; r++)
        for (int j = MIDDLE - 1; j <= MIDDLE + n_lags; j++)
            power += pnr_power(t->rest[r][j]);
    return sqrt(power);
}

bool pnr_others_explain(const pnr_detector *detector, const pnr_track *t, const pnr_track *others,
                        size_t n, double cell, int n_lags, double least)
{
    const double negligible = 0.05;
    double most[PNR_MAX_CANDIDATES], left = 0;

    for (size_t i = 0; i < n; i++) {
        const pnr_patch_echo *echo = &others[i].told.echo;
        const double power = pnr_power(echo->peak);

        most[i] = pnr_others_reach(detector, t, echo, cell)
                      ? sqrt(power * reach_of(detector, t, echo) * 3 * (2 + n_lags))
                      : 0;
        left += most[i];
    }
    memcpy(t->rest, t->c, (size_t)t->n_rows * sizeof *t->c);
    for (size_t tried = 0; tried < n; tried++) {
        const double now = amplitude_near(t, n_lags);
        size_t i = 0;

        if (now + left < sqrt(least) || left < negligible * sqrt(least))
            break;
        for (size_t k = 1; k < n; k++)
            i = most[k] > most[i] ? k : i;
        left -= most[i];
        most[i] = 0;
        pnr_sign_begin(detector, &others[i]);
        move_echo(detector, t, NULL, &others[i].told, cell, n_lags);
        pnr_sign_end(detector, &others[i]);
    }
    return amplitude_near(t, n_lags) + left < sqrt(least);
}
