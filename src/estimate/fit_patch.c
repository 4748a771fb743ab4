/* SPDX-License-Identifier: MIT */
/* The fit in a map: the Gauss-Newton method on products over rows and lags. */
#include "estimate/fit_patch.h"

#include "base/complex.h"
#include "engine/plan.h"
#include "estimate/echo_model.h"
#include "estimate/matrix.h"
#include "estimate/patch_noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2, MAX_STEPS = 40 };

/* --- products --- */

/* The products that all columns of a model share. fit_state explains the model and the probes. */
typedef struct products {
    pnr_vector mx[PNR_ECHO_VECTORS], wy[PNR_ECHO_VECTORS]; /* weights times x and y of the probes */
    double complex x[PNR_ECHO_VECTORS][PNR_ECHO_VECTORS];  /* x^H m x of probe and model */
    double complex y[PNR_ECHO_VECTORS][PNR_ECHO_VECTORS];  /* y^H w y */
} products;

static void weigh(const pnr_fit_patch *map, const pnr_echo_rows *rows, size_t code,
                  const pnr_echo_columns *probes, const pnr_echo_columns *m, products *out)
{
    for (int i = 0; i < probes->n_x; i++)
        if (rows->has_weights)
            pnr_matrix_apply(rows->m, probes->x[i], out->mx[i]);
        else
            memcpy(out->mx[i], probes->x[i], sizeof probes->x[i]);
    for (int i = 0; i < probes->n_y; i++)
        pnr_matrix_apply(map->model->codes[code].w, probes->y[i], out->wy[i]);
    for (int i = 0; i < probes->n_x; i++)
        for (int j = 0; j < m->n_x; j++)
            out->x[i][j] = pnr_inner(out->mx[i], m->x[j]);
    for (int i = 0; i < probes->n_y; i++)
        for (int j = 0; j < m->n_y; j++)
            out->y[i][j] = pnr_inner(out->wy[i], m->y[j]);
}

/* Replaces p->x and p->y by the noise covariances of the weighted vectors, as (m x)^H g (m x). */
static void weigh_noise(const pnr_fit_patch *map, const pnr_echo_rows *rows, size_t code,
                        const pnr_echo_columns *m, products *p)
{
    pnr_vector z[PNR_ECHO_VECTORS];

    for (int i = 0; i < m->n_x; i++)
        if (rows->is_white)
            memcpy(z[i], p->mx[i], sizeof z[i]);
        else
            pnr_matrix_apply(rows->g, p->mx[i], z[i]);
    for (int i = 0; i < m->n_x; i++)
        for (int j = 0; j < m->n_x; j++)
            p->x[i][j] = pnr_inner(p->mx[i], z[j]);
    for (int i = 0; i < m->n_y; i++)
        pnr_matrix_apply(map->model->codes[code].p, p->wy[i], z[i]);
    for (int i = 0; i < m->n_y; i++)
        for (int j = 0; j < m->n_y; j++)
            p->y[i][j] = pnr_inner(p->wy[i], z[j]);
}

/* Returns <a, b>: the sum over all cells of conj(a) b, with the weights of the cells. */
static double complex inner(const products *p, const pnr_echo_column *a, const pnr_echo_column *b)
{
    double complex sum = 0;

    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++)
            sum += p->x[a->x[i]][b->x[j]] * p->y[a->y[i]][b->y[j]];
    return sum;
}

/* Returns <a, patch>. seen[y][i]: conj(y^H w (row i of the patch)). */
static double complex onto(const products *p, const pnr_echo_column *a, const pnr_echo_rows *rows,
                           const pnr_vector *seen)
{
    double complex sum = 0;

    for (int t = 0; t < a->n; t++)
        for (int i = rows->first; i < rows->end; i++)
            sum += conj(p->mx[a->x[t]][i] * seen[a->y[t]][i]);
    return sum;
}

/* --- one echo --- */

/*
 * The model at the present point of the climb. The columns c are the echo and its derivatives with
 * respect to delay and bins. The probes h are the vectors onto which the patch is projected. The
 * probes are the columns of the model, except when rows lie closer than 1/K. Then the probes are
 * the columns of the smooth chi, because the weights are a product over rows and lags: they would
 * amplify the small values at the ends of the exact chi.
 */
typedef struct fit_state {
    pnr_patch columns; /* the patch as [lag][row] */
    pnr_echo_columns model, smooth;
    pnr_echo_rough rough;
    const pnr_echo_columns *probes; /* points to model or to smooth */
    products products;
    double complex gram[3][3], on[3]; /* <h_i, c_j>, <h_i, patch> */
    double complex alpha[3];          /* <h_0, c_i> / <h_0, c_0>, i = 1, 2 */
    double complex beta[3];           /* <q_i, c_0> = 0 for q_i = h_i - beta_i h_0 */
    double n[2][2];                   /* the inverse of Re <q_i, c_j> */
    double gain;                      /* |<h_0, patch>|^2 / <h_0, c_0> */
} fit_state;

static const pnr_echo_column *column_of(const pnr_echo_columns *m, int i)
{
    return i == 0 ? &m->echo : i == 1 ? &m->by_delay : &m->by_bins;
}

static double complex divide(double complex a, double complex b)
{
    return a * conj(b) / pnr_power(b);
}

static void evaluate_model(const pnr_fit_patch *map, const pnr_echo_rows *rows, size_t code,
                           fit_state *s)
{
    pnr_vector seen[PNR_ECHO_VECTORS];
    double n[2][2];

    weigh(map, rows, code, s->probes, &s->model, &s->products);
    for (int y = 0; y < s->probes->n_y; y++)
        pnr_matrix_apply(s->columns, s->products.wy[y], seen[y]);
    for (int i = 0; i < 3; i++) {
        s->on[i] = onto(&s->products, column_of(s->probes, i), rows, (const pnr_vector *)seen);
        for (int j = 0; j < 3; j++)
            s->gram[i][j] = inner(&s->products, column_of(s->probes, i), column_of(&s->model, j));
    }
    for (int i = 1; i < 3; i++) {
        s->alpha[i] = divide(s->gram[0][i], s->gram[0][0]);
        s->beta[i] = conj(divide(s->gram[i][0], s->gram[0][0]));
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            n[i][j] = creal(s->gram[i + 1][j + 1] - conj(s->beta[i + 1]) * s->gram[0][j + 1]);

    const double det = n[0][0] * n[1][1] - n[0][1] * n[1][0];

    s->n[0][0] = n[1][1] / det;
    s->n[1][1] = n[0][0] / det;
    s->n[0][1] = -n[0][1] / det;
    s->n[1][0] = -n[1][0] / det;
    s->gain = pnr_power(s->on[0]) / creal(s->gram[0][0]);
}

static double clamp(double x, double limit)
{
    return x < -limit ? -limit : x > limit ? limit : x;
}

/* Fills the Gauss-Newton step, n Re conj(A) <q_i, patch> / |A|^2. A is the peak, n is s->n. The step
 * is limited, and ends at most a lag from `lag` and a row from the frequency `middle`. */
static void find_step(const pnr_echo_rows *rows, const fit_state *s, const pnr_patch_echo *at,
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

/* Returns the variance of Re <h, noise>, where h = sum_i weight_i h_i. noise[i][j]: the covariance
 * of <h_i, noise> and <h_j, noise>. */
static double variance_of(double complex (*noise)[PNR_PATCH_SUMS], const double complex *weight)
{
    double sum = 0;

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            sum += creal(conj(weight[i]) * (weight[j] * noise[i][j]));
    return sum / 2;
}

/* Fills the covariances of the projections <h_i, noise>, with the weights of the cells. */
static void find_noise(const pnr_fit_patch *map, const pnr_echo_rows *rows,
                       const pnr_patch_place *place, fit_state *s,
                       double complex (*noise)[PNR_PATCH_SUMS])
{
    if (map->noise == NULL || !rows->has_weights) {
        weigh_noise(map, rows, place->code, s->probes, &s->products);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                noise[i][j] = inner(&s->products, column_of(s->probes, i), column_of(s->probes, j));
        return;
    }

    pnr_patch h[PNR_PATCH_SUMS];

    memset(h, 0, sizeof h);
    for (int i = 0; i < 3; i++) {
        const pnr_echo_column *column = column_of(s->probes, i);

        for (int t = 0; t < column->n; t++)
            for (int r = rows->first; r < rows->end; r++)
                for (int j = 0; j < J; j++)
                    h[i][r][j] += s->products.mx[column->x[t]][r] * s->products.wy[column->y[t]][j];
    }
    pnr_patch_noise_covariance(map->noise, map->slow, rows, place, h, 3, noise);
}

/* Fills the variances multiplied by S. A is the peak. The errors of delay and frequency are
 * n Re <q, noise/A>. The relative error of the peak is <h_0, noise/A> / <h_0, c_0> minus alpha_1
 * times the error of the delay, minus alpha_2 times the error of the frequency. */
static void find_variances(const pnr_fit_patch *map, const pnr_echo_rows *rows,
                           const pnr_patch_place *place, fit_state *s, pnr_patch_fitted *out)
{
    const double complex g = s->gram[0][0];
    const double power = pnr_power(g);
    double complex noise[PNR_PATCH_SUMS][PNR_PATCH_SUMS], error[2][3] = {{0}};
    double complex re[3] = {g / power};                          /* 1 / conj(g) */
    double complex im[3] = {CMPLX(-cimag(g), creal(g)) / power}; /* i / conj(g) */

    find_noise(map, rows, place, s, noise);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            error[i][j + 1] = s->n[i][j];
            error[i][0] -= s->n[i][j] * s->beta[j + 1];
        }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            re[j] -= creal(s->alpha[i + 1]) * error[i][j];
            im[j] -= cimag(s->alpha[i + 1]) * error[i][j];
        }
    out->at.delay_variance = variance_of(noise, error[0]);
    out->bins_variance = variance_of(noise, error[1]);
    out->at.amplitude_variance = variance_of(noise, re);
    out->at.phase_variance = variance_of(noise, im);
    /* The gain is the least of three powers: the power of the peak, the energy that the echo
     * explains, and |<h_0, patch>|^2 divided by E|<h_0, noise>|^2 for noise of power 1 in each
     * cell. At a frequency beyond the rows of the map, noise alone may cause a large peak. */
    out->at.gain = pnr_power(s->on[0]) / creal(noise[0][0]);
    out->at.gain = fmin(fmin(out->at.gain, s->gain), out->at.power);
    /* The mean power at the peak exceeds the power of the echo by the noise power of one cell. The
     * maximisation over delay adds half of this noise power, and so does the maximisation over
     * frequency. The sum is the noise power of 2 cells. */
    out->at.cells = 2 * creal(noise[0][0]) / power;
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

/* Returns the least energy that the fit allows for a model echo in the patch: a tenth of the energy
 * of an echo in the middle cell. The patch contains little of an echo whose frequency is beyond the
 * first or the last row, or is removed with the mean. At such a frequency an echo of any strength
 * would fit the noise. */
static double least_energy(const pnr_fit_patch *map, const pnr_patch_place *place,
                           const pnr_echo_rows *rows, fit_state *s)
{
    const pnr_echo_row *row = &rows->row[MIDDLE];
    const pnr_patch_echo middle = {
        .code = place->code, .lag = (double)place->lag, .bins = row->bins / (1 + row->stretch)};

    pnr_echo_model_smooth(map->model, rows, &middle, place, false, &s->model);
    weigh(map, rows, place->code, &s->model, &s->model, &s->products);
    return 0.1 * creal(inner(&s->products, &s->model.echo, &s->model.echo));
}

static void evaluate_at(pnr_fit_patch *map, const pnr_patch_place *place, const pnr_echo_rows *rows,
                        bool is_exact, const pnr_patch_echo *at, fit_state *s)
{
    if (is_exact)
        pnr_echo_model_exact(map->model, rows, at, place, &s->rough, &s->model);
    else
        pnr_echo_model_smooth(map->model, rows, at, place, true, &s->model);
    if (s->probes == &s->smooth)
        pnr_echo_model_smooth(map->model, rows, at, place, true, &s->smooth);
    evaluate_model(map, rows, place->code, s);
}

/* Climbs from *echo to the maximum of the gain, at most a row from the middle row, or with signs
 * from the start: their Doppler is known, and several rows contain lobes of the echo. s: the state
 * at *echo in the end. The climb ends when the next step, in sigmas, is less than sqrt(enough /
 * noise power of a cell). least: the least energy <echo, echo> that is allowed. */
static void climb_patch(pnr_fit_patch *map, const pnr_patch_place *place, const pnr_echo_rows *rows,
                        bool is_exact, double enough, double cell, pnr_patch_echo *echo,
                        double least, fit_state *s)
{
    const double middle =
        map->has_signs ? echo->bins : rows->row[MIDDLE].bins / (1 + rows->row[MIDDLE].stretch);
    const double lag = (double)place->lag;
    double step[2] = {0}, best = -1;
    pnr_patch_echo at = *echo;
    /* With separate probes the gain has no maximum at the likeliest echo, but the steps converge
     * there. */
    const bool is_probed = is_exact && map->noise != NULL && rows->has_weights;
    bool is_too_long = false, is_near = false;

    s->probes = is_probed ? &s->smooth : &s->model;

    for (int i = 0; i < MAX_STEPS; i++) {
        if (is_exact &&
            (!at.anchor.is_set || (is_near && pnr_echo_model_is_far(map->model, &at, cell)))) {
            at.anchor = (pnr_patch_anchor){true, place->lag, at.lag, at.bins};
            s->rough.is_filled = false;
            best = -1;
        }
        evaluate_at(map, place, rows, is_exact, &at, s);
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
        const bool is_end =
            size * pnr_power(at.peak) < enough || (fabs(step[0]) < 1e-9 && fabs(step[1]) < 1e-9);

        if (is_end && !(is_exact && pnr_echo_model_is_far(map->model, echo, cell)))
            break;
        is_near = is_end || size * pnr_power(at.peak) < cell;
        at.lag = echo->lag + step[0];
        at.bins = echo->bins + step[1];
    }
    if (!is_too_long)
        return;
    s->rough.is_filled = false;
    evaluate_at(map, place, rows, is_exact, echo, s);
}

/* Finds an echo roughly, with the smooth chi. start: only its lag is used. Noise may lead the climb
 * to a sidelobe, more than a lag or a row beside the echo, or beside it along both. So a climb that
 * ends far from the middle is repeated from the other side, and the maximum with the greater gain
 * is taken. */
static void climb_roughly(pnr_fit_patch *map, const pnr_patch_place *place,
                          const pnr_echo_rows *rows, const pnr_vector *patch,
                          const pnr_patch_echo *start, double enough, double least, fit_state *s,
                          pnr_patch_echo *echo)
{
    const double far = 0.6; /* lags, and rows */
    const double middle = rows->row[MIDDLE].bins / (1 + rows->row[MIDDLE].stretch);
    pnr_patch_echo other = *start;

    other.bins = first_bins(rows, patch, MIDDLE + (start->lag > (double)place->lag + 0.25));
    *echo = other;
    climb_patch(map, place, rows, false, enough, 0, echo, least, s);

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
    climb_patch(map, place, rows, false, enough, 0, &other, least, s);
    if (s->gain > gain)
        *echo = other;
}

void pnr_fit_patch_find(pnr_fit_patch *map, const pnr_patch_place *place, const pnr_vector *patch,
                        const pnr_patch_echo *start, double cell, pnr_patch_fitted *out)
{
    const double rough = 0.1, fine = 1e-3; /* sigmas */
    pnr_patch_echo echo = *start;
    pnr_echo_rows rows;
    fit_state s;

    pnr_echo_model_rows(map->model, place->row, true, &rows);
    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++)
            s.columns[j][i] = patch[i][j];

    const double least = least_energy(map, place, &rows, &s);

    if (start->peak == 0)
        climb_roughly(map, place, &rows, patch, start, rough * rough * cell, least, &s, &echo);

    const bool is_exact =
        pnr_echo_model_mark_exact(map->model, &rows, &echo, place->code, cell, true);

    echo.anchor.is_set = echo.anchor.is_set && is_exact;
    s.rough.is_filled = false;
    climb_patch(map, place, &rows, is_exact, fine * fine * cell, cell, &echo, least, &s);

    double complex centre = 0;

    for (int t = 0; t < s.model.echo.n; t++)
        centre += s.model.x[s.model.echo.x[t]][MIDDLE] * s.model.y[s.model.echo.y[t]][MIDDLE];
    out->at.delay = echo.lag - (double)place->lag;
    out->bins = echo.bins;
    out->anchor = echo.anchor;
    out->at.peak = echo.peak;
    out->at.power = pnr_power(echo.peak);
    out->centre = cabs(centre);
    find_variances(map, &rows, place, &s, out);
}
