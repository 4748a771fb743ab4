/* SPDX-License-Identifier: MIT */
/* The model of an echo in a map: fills its vectors over rows and over lags. */
#include "estimate/echo_model.h"

#include "base/complex.h"
#include "engine/plan.h"
#include "estimate/matrix.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

static void add_term(pnr_echo_column *c, int x, int y)
{
    c->x[c->n] = x;
    c->y[c->n] = y;
    c->n++;
}

/* Fills g(v - F) of fit_patch.h for each row, and its derivative with respect to v unless slope is
 * NULL. with_tone: g times pnr_echo_model_tone instead. */
static void fill_rows(const pnr_echo_model *model, const pnr_echo_rows *rows, double bins,
                      bool with_tone, double complex *x, double complex *slope)
{
    for (int i = rows->first, next; i < rows->end; i = next) {
        const pnr_echo_row *row = &rows->row[i];
        const double v = bins * (1 + row->stretch);
        double tone, rise;

        for (next = i + 1; next < rows->end && rows->row[next].hypothesis == row->hypothesis;)
            next++;
        pnr_slow_time_echo(model->slow, v, row->bins, next - i, &x[i],
                           slope != NULL ? &slope[i] : NULL);
        if (!with_tone)
            continue;
        tone = pnr_echo_model_tone(model, v - row->rotation, &rise);
        for (int k = i; k < next; k++) {
            if (slope != NULL)
                slope[k] = slope[k] * tone + x[k] * rise;
            x[k] *= tone;
        }
    }
}

void pnr_echo_model_lags(const pnr_echo_lags *code, double distance, int first, double complex *y,
                         double complex *slope)
{
    pnr_waveform_run(code->autocorrelation, distance - MIDDLE + first, (size_t)(J - 2 * first),
                     y + first, slope != NULL ? slope + first : NULL);
    for (int j = first; j < J - first && slope != NULL; j++)
        slope[j] = -slope[j];
}

/* Fills walk[k] = slope[k] w / (2 pi i), where w is the growth of the delay in one period in row k.
 * slope[k] / (2 pi i) is the sum of row k with the additional factor p, the number of the period
 * counted from the middle of the look. The model is linear in w, so w is limited to a walk
 * of 1/2 sample in a look. Returns false when w is zero in all rows. */
static bool fill_walk(const pnr_echo_model *model, const pnr_echo_rows *rows, double bins,
                      const double complex *slope, double complex *walk)
{
    const pnr_plan *plan = &model->setup->plan;
    const double most = 0.5 / (double)plan->n_periods;
    bool is_walking = false;

    for (int i = rows->first; i < rows->end; i++) {
        const double here = pnr_echo_model_walk(model, bins, rows->row[i].stretch);
        const double samples = fmin(fmax(here, -most), most);

        walk[i] = CMPLX(cimag(slope[i]), -creal(slope[i])) * samples / (2 * M_PI);
        is_walking = is_walking || samples != 0;
    }
    return is_walking;
}

/* Returns the first lag within place->reach. */
static int first_of(const pnr_patch_place *place)
{
    return place->reach > 0 ? MIDDLE - place->reach : 0;
}

/* Models the echo as one product, plus one product if the echo walks. R times pnr_echo_model_tone
 * replaces chi. */
void pnr_echo_model_smooth(const pnr_echo_model *model, const pnr_echo_rows *rows,
                           const pnr_patch_echo *echo, const pnr_patch_place *place,
                           bool with_slopes, pnr_echo_columns *out)
{
    const bool is_walking = model->rate_over_carrier != 0;
    const bool is_wide = with_slopes || is_walking;

    memset(out->x, 0, 3 * sizeof *out->x);
    fill_rows(model, rows, echo->bins, true, out->x[0], is_wide ? out->x[1] : NULL);
    pnr_echo_model_lags(&model->codes[echo->code], (double)place->lag - echo->lag, first_of(place),
                        out->y[0], is_wide ? out->y[1] : NULL);
    out->n_x = out->n_y = is_wide ? 2 : 1;
    out->echo.n = out->by_delay.n = out->by_bins.n = 0;
    add_term(&out->echo, 0, 0);
    if (is_walking && fill_walk(model, rows, echo->bins, out->x[1], out->x[2])) {
        add_term(&out->echo, 2, 1);
        out->n_x = 3;
    }
    if (with_slopes) {
        add_term(&out->by_delay, 0, 1);
        add_term(&out->by_bins, 1, 0);
    }
}

/* Fills the smooth chi (R times pnr_echo_model_tone) and its derivatives with respect to delay and
 * e, at the lags within place->reach. */
static void fill_chi(const pnr_echo_model *model, const pnr_patch_echo *echo, double e,
                     const pnr_patch_place *place, pnr_vector *chi)
{
    double slope;
    const double share = pnr_echo_model_tone(model, e, &slope);
    const int first = first_of(place);

    pnr_echo_model_lags(&model->codes[echo->code], (double)place->lag - echo->lag, first, chi[0],
                        chi[1]);
    for (int j = first; j < J - first; j++) {
        chi[2][j] = chi[0][j] * slope;
        chi[0][j] *= share;
        chi[1][j] *= share;
    }
}

/* Copies row i and the next rows of the same hypothesis to three vectors. Other rows are zero. A
 * row for which `bends` is set is copied alone. Returns the index of the row after the copied rows.
 * *is_marked: a copied row needs the exact sums. */
static int copy_rotation(const pnr_echo_rows *rows, int i, const double complex *const from[3],
                         pnr_vector *to, bool *is_marked)
{
    const size_t hypothesis = rows->row[i].hypothesis;

    *is_marked = false;
    memset(to, 0, 3 * sizeof *to);
    do {
        *is_marked = *is_marked || rows->needs_exact[i];
        for (int k = 0; k < 3; k++)
            to[k][i] = from[k][i];
        i++;
    } while (i < rows->end && rows->row[i].hypothesis == hypothesis && !rows->bends[i - 1] &&
             !rows->bends[i]);
    return i;
}

/* Adds the terms of one rotation. In `out` its vectors over rows begin at index n_x, and its
 * vectors over lags at index n_y. with_turn: the derivative of chi with respect to e counts. */
static void add_rotation(pnr_echo_columns *out, int n_x, int n_y, bool is_walking, bool with_slopes,
                         bool with_turn)
{
    add_term(&out->echo, n_x, n_y);
    if (is_walking)
        add_term(&out->echo, n_x + 2, n_y + 1);
    if (with_slopes) {
        add_term(&out->by_delay, n_x, n_y + 1);
        add_term(&out->by_bins, n_x + 1, n_y);
        if (with_turn)
            add_term(&out->by_bins, n_x, n_y + 2);
    }
}

/* Returns the greatest power of the difference between the exact and the smooth chi. It is about
 * the power of the cross-correlation of two different codes. */
static double unlike(const pnr_echo_model *model, size_t code)
{
    return fmax(pow(model->codes[code].roughness, 2), 8 / (double)model->setup->plan.n_samples);
}

/* True if the derivative of chi with respect to e is needed. It is negligible in a map of many
 * rows, where the response of slow time changes 100 times as fast with the frequency. */
static bool needs_turn(const pnr_echo_model *model, size_t code)
{
    return unlike(model, code) > pow(0.01 * (double)model->setup->plan.n_periods, 2);
}

/* With a flat spectrum a shift of one sample changes chi by pi / sqrt(3) of its amplitude, and half
 * of the second derivative is pi^2 / 6 of it. Both are taken as 2, also for a change of the
 * frequency by one bin. */
bool pnr_echo_model_is_far(const pnr_echo_model *model, const pnr_patch_echo *echo, double cell)
{
    const double shift = echo->lag - echo->anchor.lag, turn = echo->bins - echo->anchor.bins;
    const double error = 2 * (shift * shift + turn * turn);
    const double power = pnr_power(echo->peak) * unlike(model, echo->code);

    return power * error * error > 1e-3 * cell ||
           (!needs_turn(model, echo->code) && power * 4 * turn * turn > 1e-5 * cell);
}

/* Fills chi and its derivatives near the anchor of the echo: the smooth values plus the vectors of
 * `rough`. If is_filled is not set, first fills `rough` with the difference of the exact and the
 * smooth chi at the anchor, and with its derivatives with respect to delay and, if it is needed,
 * to e. */
static void fill_near(const pnr_echo_model *model, const pnr_echo_row *row,
                      const pnr_patch_echo *echo, const pnr_patch_place *place, bool is_filled,
                      pnr_vector *rough, pnr_vector *chi)
{
    const int n = 2 + needs_turn(model, echo->code);
    const double moved[3] = {1, echo->lag - echo->anchor.lag, echo->bins - echo->anchor.bins};
    pnr_patch_echo at = *echo;

    at.lag = echo->anchor.lag;
    at.bins = echo->anchor.bins;
    if (!is_filled) {
        const double e = at.bins * (1 + row->stretch) - row->rotation;

        fill_chi(model, &at, e, place, chi);
        pnr_ambiguity_set(model->ambiguity, at.code, at.lag);
        pnr_ambiguity_at(model->ambiguity, at.code, e, place->lag - MIDDLE, J, rough[0], rough[1],
                         n > 2 ? rough[2] : NULL);
        for (int k = 0; k < n; k++)
            for (int j = 0; j < J; j++)
                rough[k][j] -= chi[k][j];
    }
    fill_chi(model, echo, echo->bins * (1 + row->stretch) - row->rotation, place, chi);
    for (int k = 0; k < n; k++)
        for (int j = 0; j < J; j++) {
            chi[0][j] += moved[k] * rough[k][j];
            if (k > 0)
                chi[k][j] += rough[k][j];
        }
}

/* Fills chi[0] with the exact chi at the lags within place->reach. with_walk: also fills chi[1],
 * the derivative with respect to delay. This derivative is exact if is_exact_walk is set, else
 * smooth. The smooth derivative for a place of another code is zero. */
static void fill_exact(const pnr_echo_model *model, const pnr_patch_echo *echo, double e,
                       const pnr_patch_place *place, bool with_walk, bool is_exact_walk,
                       pnr_vector *chi)
{
    const int first = first_of(place);

    if (with_walk && !is_exact_walk && place->code == echo->code)
        fill_chi(model, echo, e, place, chi);
    else if (with_walk)
        memset(chi[1], 0, sizeof chi[1]);
    pnr_ambiguity_set(model->ambiguity, echo->code, echo->lag);
    pnr_ambiguity_at(model->ambiguity, place->code, e, place->lag - MIDDLE + first,
                     (size_t)(J - 2 * first), chi[0] + first,
                     with_walk && is_exact_walk ? chi[1] + first : NULL, NULL);
}

/* True if the walk of the echo needs the exact derivative of chi with respect to delay. */
static bool walks_far(const pnr_echo_rows *rows, const double complex *walk)
{
    for (int i = rows->first; i < rows->end; i++)
        if (pnr_power(walk[i]) > rows->most_walk * rows->most_walk)
            return true;
    return false;
}

/* How the vectors of a rotation are filled. */
typedef struct filling {
    const double complex *vectors[3]; /* over rows: the echo, its slope and its walk */
    bool with_slopes, is_walking;
    bool is_exact_walk; /* the walk needs the exact derivative of chi */
    bool is_near;       /* chi follows from the anchor of the echo */
    pnr_echo_rough *rough;
} filling;

/* Fills the vectors x over rows and the vectors y over lags, for the rotation that begins at row i.
 * Returns the index of the row after this rotation. */
static int fill_rotation(const pnr_echo_model *model, const pnr_echo_rows *rows, int i,
                         const pnr_patch_echo *echo, const pnr_patch_place *place,
                         const filling *by, pnr_vector *x, pnr_vector *y)
{
    const pnr_echo_row *row = &rows->row[i];
    const double e = echo->bins * (1 + row->stretch) - row->rotation;
    pnr_vector *rough = by->rough->chi[i];
    bool is_marked;
    const int next = copy_rotation(rows, i, by->vectors, x, &is_marked);

    if (rows->bends[i])
        pnr_echo_model_bend(model, rows, i, echo, place, by->with_slopes, by->rough->is_filled,
                            rough, x, y);
    else if (!is_marked && place->code == echo->code)
        fill_chi(model, echo, e, place, y);
    else if (by->is_near)
        fill_near(model, row, echo, place, by->rough->is_filled, rough, y);
    else
        fill_exact(model, echo, e, place, by->is_walking, by->is_exact_walk, y);
    return next;
}

/* True if chi follows from the anchor of the echo; without slopes only where rows lie 1/K apart. */
static bool is_at_anchor(const pnr_echo_model *model, const pnr_echo_rows *rows,
                         const pnr_patch_echo *echo, const pnr_patch_place *place, bool with_slopes)
{
    return echo->anchor.is_set && place->code == echo->code && place->lag == echo->anchor.middle &&
           (with_slopes || rows->spacing >= 0.99 / (double)model->setup->plan.n_periods);
}

static int count_vectors(bool with_third, bool with_second)
{
    return with_third ? 3 : with_second ? 2 : 1;
}

/* For each rotation among the rows, models the echo as one product, plus one product if the echo
 * walks. A rotation with a marked row, and an echo of another code, have the exact chi. */
void pnr_echo_model_exact(const pnr_echo_model *model, const pnr_echo_rows *rows,
                          const pnr_patch_echo *echo, const pnr_patch_place *place,
                          pnr_echo_rough *rough, pnr_echo_columns *out)
{
    const bool may_walk = model->rate_over_carrier != 0, with_slopes = rough != NULL;
    pnr_vector x = {0}, slope = {0}, walk = {0};
    pnr_echo_rough own;

    own.is_filled = false;

    filling by = {
        .vectors = {x, slope, walk},
        .with_slopes = with_slopes,
        .is_near = is_at_anchor(model, rows, echo, place, with_slopes),
        .rough = with_slopes ? rough : &own,
    };

    fill_rows(model, rows, echo->bins, false, x, with_slopes || may_walk ? slope : NULL);
    by.is_walking = may_walk && fill_walk(model, rows, echo->bins, slope, walk);
    by.is_exact_walk = by.is_walking && walks_far(rows, walk);
    out->n_x = out->n_y = out->echo.n = out->by_delay.n = out->by_bins.n = 0;
    for (int i = rows->first, next; i < rows->end; i = next) {
        const int n_x = out->n_x, n_y = out->n_y;
        const bool with_turn = with_slopes && (rows->bends[i] || needs_turn(model, echo->code));

        next = fill_rotation(model, rows, i, echo, place, &by, &out->x[n_x], &out->y[n_y]);
        add_rotation(out, n_x, n_y, by.is_walking && !rows->bends[i], with_slopes, with_turn);
        out->n_x += count_vectors(by.is_walking, with_slopes);
        out->n_y += count_vectors(with_turn, with_slopes || by.is_walking);
    }
    by.rough->is_filled = true;
}

/* Marks the rows in which the linear model of the walk is wrong by more than the fraction `least`
 * of the peak. Returns true if it marks any row. */
static bool mark_bends(const pnr_echo_model *model, pnr_echo_rows *rows, const pnr_patch_echo *echo,
                       double least)
{
    bool is_any = false;

    for (int i = rows->first; i < rows->end; i++) {
        rows->bends[i] = pnr_echo_model_bends(model, &rows->row[i], echo, least);
        is_any = is_any || rows->bends[i];
    }
    return is_any;
}

/* True if the power in row i of the difference between the exact sums and the smooth chi, relative
 * to the power of the echo's peak, exceeds `least`. The self-noise of chi grows with e. Its limit
 * is about the power of the cross-correlation of two different codes. g: the response of the row.
 * The row is assumed to contain the share least_share of the power of the echo, too. */
static bool is_rough(const pnr_echo_model *model, const pnr_echo_rows *rows, int i,
                     const pnr_patch_echo *echo, size_t code, double least_share, double complex g,
                     double least)
{
    const pnr_echo_row *row = &rows->row[i];
    const double v = echo->bins * (1 + row->stretch);
    const double rough = model->codes[echo->code].roughness * (v - row->rotation);
    const double most = unlike(model, echo->code);
    const double power = code != echo->code ? most : fmin(rough * rough, most);

    if (rows->bends[i])
        return pnr_echo_model_is_summed(model, row, echo) &&
               8 * pnr_echo_model_self_noise(model, row, echo) > least;
    return power * (pnr_power(g) + least_share) > least;
}

/* Marks the rows in which the power of the difference between the exact and the smooth chi is not
 * negligible beside the noise power of one cell. If the frequency may still change, each row is
 * assumed to contain at least 1/1000 of the power of the echo. The noise of rows closer than 1/K is
 * correlated, and the weights of these rows amplify differences between them. So either all of
 * these rows are marked, or none. */
bool pnr_echo_model_mark_exact(const pnr_echo_model *model, pnr_echo_rows *rows,
                               const pnr_patch_echo *echo, size_t code, double cell, bool may_move)
{
    const pnr_plan *plan = &model->setup->plan;
    const bool is_close = rows->spacing < 0.99 / (double)plan->n_periods;
    const double least_share = may_move ? 1e-3 : 0;
    const double tolerance = is_close ? 1e-4 : may_move ? 0.005 : 0.01;
    const double power = pnr_power(echo->peak), wrong = sqrt(tolerance * cell / power);
    const double most = unlike(model, echo->code);
    const bool is_bent = code == echo->code && mark_bends(model, rows, echo, fmin(wrong, 0.3));
    pnr_vector g;
    bool is_any = false;

    /* the slope of chi is taken as pi times chi */
    rows->most_walk = wrong / (M_PI * sqrt(most));
    memset(rows->needs_exact, 0, sizeof rows->needs_exact);
    if (power * most * (1 + least_share) <= tolerance * cell)
        return is_bent;
    fill_rows(model, rows, echo->bins, false, g, NULL);
    for (int i = rows->first; i < rows->end; i++) {
        rows->needs_exact[i] =
            is_rough(model, rows, i, echo, code, least_share, g[i], tolerance * cell / power);
        is_any = is_any || rows->needs_exact[i];
    }
    for (int i = rows->first; i < rows->end && is_close; i++)
        rows->needs_exact[i] = is_any;
    return is_any || is_bent;
}
