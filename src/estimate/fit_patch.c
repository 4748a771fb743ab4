/* SPDX-License-Identifier: MIT */
/* The fit in a map: climbs to the likeliest echo by the Gauss-Newton method. */
#include "estimate/fit_patch.h"

#include "base/complex.h"
#include "engine/plan.h"
#include "estimate/echo_model.h"
#include "estimate/fit_state.h"

#include <math.h>

enum { MIDDLE = PNR_NEIGHBOURS / 2, MAX_STEPS = 40 };

static double complex divide(double complex a, double complex b)
{
    return a * conj(b) / pnr_power(b);
}

static double clamp(double x, double limit)
{
    return x < -limit ? -limit : x > limit ? limit : x;
}

/* Fills the Gauss-Newton step, n Re conj(A) <q_i, patch> / |A|^2. A is the peak, n is s->n. The
 * step is limited, and ends at most a lag from `lag` and a row from the frequency `middle`. */
static void find_step(const pnr_echo_rows *rows, const pnr_fit_state *s, const pnr_patch_echo *at,
                      double middle, double lag, double step[2])
{
    double along[2];

    for (int i = 0; i < 2; i++) {
        const double complex q = s->on[i + 1] - conj(s->beta[i + 1]) * s->on[0];

        along[i] = creal(conj(at->peak) * q) / pnr_power(at->peak);
    }
    for (int i = 0; i < 2; i++)
        step[i] = s->n[i][0] * along[0] + s->n[i][1] * along[1];
    step[0] = clamp(step[0], 0.3);
    step[1] = clamp(step[1], 0.3 * rows->spacing);
    step[0] = clamp(at->lag + step[0] - lag, 1) + lag - at->lag;
    step[1] = clamp(at->bins + step[1] - middle, rows->spacing) + middle - at->bins;
}

/* Returns the Doppler at which the climb starts: the vertex of the parabola through the amplitudes
 * of the middle row and its two neighbours. */
static double first_bins(const pnr_echo_rows *rows, const pnr_vector *patch, int lag)
{
    const double scale = 1 + rows->row[MIDDLE].stretch;
    double p[3] = {0};

    if (rows->first > MIDDLE - 1 || rows->end < MIDDLE + 2)
        return rows->row[MIDDLE].bins / scale;
    for (int i = 0; i < 3; i++)
        p[i] = cabs(patch[MIDDLE - 1 + i][lag]);

    const double x = pnr_parabola_vertex(p[0], p[1], p[2]);

    const double above = rows->row[MIDDLE + 1].bins - rows->row[MIDDLE].bins;
    const double below = rows->row[MIDDLE].bins - rows->row[MIDDLE - 1].bins;

    return (rows->row[MIDDLE].bins + x * (x > 0 ? above : below)) / scale;
}

/* Moves the anchor of an echo to the echo, if the echo has none, or if the climb is near its end
 * but far from the anchor. Returns true if it has moved. */
static bool move_anchor(const pnr_fit_patch *map, const pnr_patch_place *place, bool is_near,
                        double cell, pnr_patch_echo *at, pnr_fit_state *s)
{
    if (at->anchor.is_set && !(is_near && pnr_echo_model_is_far(map->model, at, cell)))
        return false;
    at->anchor = (pnr_patch_anchor){true, place->lag, at->lag, at->bins};
    s->rough.is_filled = false;
    return true;
}

/* True if a step of this power is below `least`, or lost in rounding. */
static bool is_small(const double step[2], double power, double least)
{
    return power < least || (fabs(step[0]) < 1e-9 && fabs(step[1]) < 1e-9);
}

/* Returns the Doppler around which a climb stays. */
static double middle_of(const pnr_fit_patch *map, const pnr_echo_rows *rows,
                        const pnr_patch_echo *echo)
{
    return map->has_signs ? echo->bins : rows->row[MIDDLE].bins / (1 + rows->row[MIDDLE].stretch);
}

/* Climbs from *echo to the maximum of the gain, at most a row from the middle row, or with signs
 * from the start: their Doppler is known, and several rows contain lobes of the echo. s: the state
 * at *echo in the end. The climb ends when the next step is less than `sigmas`. cell: the noise
 * power of a cell. least: the least energy <echo, echo> that is allowed. */
static void climb_patch(pnr_fit_patch *map, const pnr_patch_place *place, const pnr_echo_rows *rows,
                        bool is_exact, double sigmas, double cell, pnr_patch_echo *echo,
                        double least, pnr_fit_state *s)
{
    const double middle = middle_of(map, rows, echo), lag = (double)place->lag;
    double step[2] = {0}, best = -1;
    pnr_patch_echo at = *echo;
    /* With separate probes the gain has no maximum at the likeliest echo, but the steps converge
     * there. */
    const bool is_probed = is_exact && map->noise != NULL && rows->has_weights;
    bool is_too_long = false, is_near = false;

    s->probes = is_probed ? &s->smooth : &s->model;

    for (int i = 0; i < MAX_STEPS; i++) {
        if (is_exact && move_anchor(map, place, is_near, cell, &at, s))
            best = -1;
        pnr_fit_state_evaluate(map, place, rows, is_exact, &at, s);
        at.peak = divide(s->on[0], s->gram[0][0]);
        is_too_long = (s->gain < best * (1 - 1e-12) && !is_probed) || creal(s->gram[0][0]) < least;
        if (is_too_long) {
            step[0] /= 2;
            step[1] /= 2;
        } else {
            best = s->gain;
            *echo = at;
            find_step(rows, s, &at, middle, lag, step);
        }

        const double size = step[0] * step[0] / s->n[0][0] + step[1] * step[1] / s->n[1][1];
        const double power = size * pnr_power(at.peak);
        const bool is_end = is_small(step, power, sigmas * sigmas * cell);

        if (is_end && !(is_exact && pnr_echo_model_is_far(map->model, echo, cell)))
            break;
        is_near = is_end || power < cell;
        at.lag = echo->lag + step[0];
        at.bins = echo->bins + step[1];
    }
    if (!is_too_long)
        return;
    s->rough.is_filled = false;
    pnr_fit_state_evaluate(map, place, rows, is_exact, echo, s);
}

/* Finds an echo roughly, with the smooth chi. start: only its lag is used. Noise may lead the climb
 * to a sidelobe, more than a lag or a row beside the echo, or beside it along both. So a climb that
 * ends far from the middle is repeated from the other side, and the maximum with the greater gain
 * is taken. */
static void climb_roughly(pnr_fit_patch *map, const pnr_patch_place *place,
                          const pnr_echo_rows *rows, const pnr_vector *patch,
                          const pnr_patch_echo *start, double cell, double least, pnr_fit_state *s,
                          pnr_patch_echo *echo)
{
    const double rough = 0.1; /* sigmas */
    const double far = 0.6;   /* lags, and rows */
    const double middle = rows->row[MIDDLE].bins / (1 + rows->row[MIDDLE].stretch);
    pnr_patch_echo other = *start;

    other.bins = first_bins(rows, patch, MIDDLE + (start->lag > (double)place->lag + 0.25));
    *echo = other;
    climb_patch(map, place, rows, false, rough, cell, echo, least, s);

    const double lags = echo->lag - (double)place->lag, gain = s->gain;
    const double from_row = (echo->bins - middle) / rows->spacing;
    /* Where neither part alone is far, both are changed. */
    const double least_part = fmax(fabs(lags), fabs(from_row)) > far ? far : far / 2;

    if (hypot(lags, from_row) <= far)
        return;
    if (fabs(lags) > least_part)
        other.lag = (double)place->lag - copysign(0.25, lags);
    if (fabs(from_row) > least_part)
        other.bins = middle - copysign(0.5 * rows->spacing, from_row);
    climb_patch(map, place, rows, false, rough, cell, &other, least, s);
    if (s->gain > gain)
        *echo = other;
}

void pnr_fit_patch_find(pnr_fit_patch *map, const pnr_patch_place *place, const pnr_vector *patch,
                        const pnr_patch_echo *start, double cell, pnr_patch_fitted *out)
{
    const double fine = 1e-3; /* sigmas */
    pnr_patch_echo echo = *start;
    pnr_echo_rows rows;
    pnr_fit_state s;

    pnr_echo_model_rows(map->model, place->row, true, &rows);

    const double least = pnr_fit_state_begin(map, place, &rows, patch, &s);

    if (start->peak == 0)
        climb_roughly(map, place, &rows, patch, start, cell, least, &s, &echo);

    const bool is_exact =
        pnr_echo_model_mark_exact(map->model, &rows, &echo, place->code, cell, true);

    if (!is_exact || echo.anchor.middle != place->lag)
        echo.anchor.is_set = false;
    climb_patch(map, place, &rows, is_exact, fine, cell, &echo, least, &s);

    double complex centre = 0;

    for (int t = 0; t < s.model.echo.n; t++)
        centre += s.model.x[s.model.echo.x[t]][MIDDLE] * s.model.y[s.model.echo.y[t]][MIDDLE];
    out->at.delay = echo.lag - (double)place->lag;
    out->bins = echo.bins;
    out->anchor = echo.anchor;
    out->at.peak = echo.peak;
    out->at.power = pnr_power(echo.peak);
    out->centre = cabs(centre);
    pnr_fit_state_variances(map, &rows, place, &s, out);
}
