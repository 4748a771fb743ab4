/* SPDX-License-Identifier: MIT */
/* The fit in a map: Gauss and Newton on products of rows and lags. */
#include "estimate/fit_patch.h"

#include "engine/plan.h"
#include "estimate/echo_model.h"
#include "estimate/matrix.h"
#include "estimate/patch_noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2, MAX_STEPS = 20 };

typedef double value[2]; /* re, im */

/* --- products --- */

/* What is the same for all columns of a model. */
typedef struct products {
    value mx[PNR_MAP_VECTORS][J], wy[PNR_MAP_VECTORS][J]; /* weights times the probes' x, y */
    value x[PNR_MAP_VECTORS][PNR_MAP_VECTORS];            /* of probe and model: x^H m x */
    value y[PNR_MAP_VECTORS][PNR_MAP_VECTORS];            /* y^H w y */
} products;

static void weigh(const pnr_fit_map *map, const pnr_map_rows *rows, size_t code,
                  const pnr_map_columns *probes, const pnr_map_columns *m, products *out)
{
    const value(*w)[J] = (const value(*)[J])pnr_map_model_lags(map->model, code)->w;

    for (int i = 0; i < probes->n_x; i++)
        if (rows->has_weights)
            pnr_matrix_apply((const value(*)[J])rows->m, probes->x[i], out->mx[i]);
        else
            memcpy(out->mx[i], probes->x[i], sizeof probes->x[i]);
    for (int i = 0; i < probes->n_y; i++)
        pnr_matrix_apply(w, probes->y[i], out->wy[i]);
    for (int i = 0; i < probes->n_x; i++)
        for (int j = 0; j < m->n_x; j++)
            pnr_map_product((const value *)out->mx[i], m->x[j], out->x[i][j]);
    for (int i = 0; i < probes->n_y; i++)
        for (int j = 0; j < m->n_y; j++)
            pnr_map_product((const value *)out->wy[i], m->y[j], out->y[i][j]);
}

/* In the place of x and y: what noise makes of the weighted ones, (m x)^H g (m x). */
static void weigh_noise(const pnr_fit_map *map, const pnr_map_rows *rows, size_t code,
                        const pnr_map_columns *m, products *p)
{
    value z[PNR_MAP_VECTORS][J];

    for (int i = 0; i < m->n_x; i++)
        if (rows->is_white)
            memcpy(z[i], p->mx[i], sizeof z[i]);
        else
            pnr_matrix_apply((const value(*)[J])rows->g, (const value *)p->mx[i], z[i]);
    for (int i = 0; i < m->n_x; i++)
        for (int j = 0; j < m->n_x; j++)
            pnr_map_product((const value *)p->mx[i], (const value *)z[j], p->x[i][j]);
    for (int i = 0; i < m->n_y; i++)
        pnr_matrix_apply((const value(*)[J])pnr_map_model_lags(map->model, code)->p,
                         (const value *)p->wy[i], z[i]);
    for (int i = 0; i < m->n_y; i++)
        for (int j = 0; j < m->n_y; j++)
            pnr_map_product((const value *)p->wy[i], (const value *)z[j], p->y[i][j]);
}

/* <a, b> */
static void inner(const products *p, const pnr_map_column *a, const pnr_map_column *b, value out)
{
    out[0] = out[1] = 0;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            const double *x = p->x[a->x[i]][b->x[j]], *y = p->y[a->y[i]][b->y[j]];

            out[0] += x[0] * y[0] - x[1] * y[1];
            out[1] += x[0] * y[1] + x[1] * y[0];
        }
}

/* <a, patch> */
static void onto(const products *p, const pnr_map_column *a, const pnr_map_rows *rows,
                 const double (*patch)[J][2], value out)
{
    out[0] = out[1] = 0;
    for (int t = 0; t < a->n; t++)
        for (int i = rows->first; i < rows->end; i++) {
            const double *x = p->mx[a->x[t]][i];
            value z;

            pnr_map_product((const value *)p->wy[a->y[t]], patch[i], z);
            out[0] += x[0] * z[0] + x[1] * z[1];
            out[1] += x[0] * z[1] - x[1] * z[0];
        }
}

/* --- one echo --- */

/*
 * A model where the climb stands, and what follows from it. Columns c: echo, by delay, by bins.
 * Probes h, which the patch is seen through, are the model's own columns, but where rows share
 * their noise those of the smooth chi: weighted, these are the echo's samples put together from
 * cells, while of the exact chi's ends the weights, which know rows and lags apart, make noise.
 */
typedef struct stand {
    pnr_map_columns model, smooth;
    const pnr_map_columns *probes; /* model or smooth */
    products products;
    value gram[3][3], on[3]; /* <h_i, c_j>, <h_i, patch> */
    value alpha[3];          /* <h_0, c_i> / <h_0, c_0>, i = 1, 2 */
    value beta[3];           /* such that <q_i, c_0> = 0, q_i = h_i - beta_i h_0 */
    double n[2][2];          /* the inverse of Re <q_i, c_j> */
    double gain;             /* |<h_0, patch>|^2 / <h_0, c_0> */
} stand;

static const pnr_map_column *column_of(const pnr_map_columns *m, int i)
{
    return i == 0 ? &m->echo : i == 1 ? &m->by_delay : &m->by_bins;
}

/* a / b */
static void divide(const value a, const value b, value out)
{
    const double power = b[0] * b[0] + b[1] * b[1];

    out[0] = (a[0] * b[0] + a[1] * b[1]) / power;
    out[1] = (a[1] * b[0] - a[0] * b[1]) / power;
}

static void judge(const pnr_fit_map *map, const pnr_map_rows *rows, size_t code,
                  const double (*patch)[J][2], stand *s)
{
    double n[2][2];

    weigh(map, rows, code, s->probes, &s->model, &s->products);
    for (int i = 0; i < 3; i++) {
        onto(&s->products, column_of(s->probes, i), rows, patch, s->on[i]);
        for (int j = 0; j < 3; j++)
            inner(&s->products, column_of(s->probes, i), column_of(&s->model, j), s->gram[i][j]);
    }
    for (int i = 1; i < 3; i++) {
        divide(s->gram[0][i], s->gram[0][0], s->alpha[i]);
        divide(s->gram[i][0], s->gram[0][0], s->beta[i]);
        s->beta[i][1] = -s->beta[i][1];
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const double *a = s->beta[i + 1], *b = s->gram[0][j + 1];

            n[i][j] = s->gram[i + 1][j + 1][0] - (a[0] * b[0] + a[1] * b[1]);
        }

    const double det = n[0][0] * n[1][1] - n[0][1] * n[1][0];

    s->n[0][0] = n[1][1] / det;
    s->n[1][1] = n[0][0] / det;
    s->n[0][1] = -n[0][1] / det;
    s->n[1][0] = -n[1][0] / det;
    s->gain = (s->on[0][0] * s->on[0][0] + s->on[0][1] * s->on[0][1]) / s->gram[0][0][0];
}

/* The step of Gauss and Newton: n Re conj(A) <q_i, patch> / |A|^2. */
static void step_from(const stand *s, const value peak, double step[2])
{
    const double power = peak[0] * peak[0] + peak[1] * peak[1];
    double along[2];

    for (int i = 0; i < 2; i++) {
        const double *a = s->beta[i + 1];
        const value q = {s->on[i + 1][0] - (a[0] * s->on[0][0] + a[1] * s->on[0][1]),
                         s->on[i + 1][1] - (a[0] * s->on[0][1] - a[1] * s->on[0][0])};

        along[i] = (peak[0] * q[0] + peak[1] * q[1]) / power;
    }
    for (int i = 0; i < 2; i++)
        step[i] = s->n[i][0] * along[0] + s->n[i][1] * along[1];
}

/* Re h^H noise h / 2, h = sum_i weight_i c_i: the variance of Re <h, noise>. */
static double variance_of(value (*noise)[PNR_MAP_SUMS], const value *weight)
{
    double sum = 0;

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            value z;

            pnr_map_multiply(weight[j], noise[i][j], z);
            sum += weight[i][0] * z[0] + weight[i][1] * z[1];
        }
    return sum / 2;
}

/* <h_i, noise>: what two of them have in common, with the weights of the cells in it. */
static void find_noise(const pnr_fit_map *map, const pnr_map_rows *rows,
                       const pnr_patch_place *place, stand *s, value (*noise)[PNR_MAP_SUMS])
{
    if (map->noise == NULL || !rows->has_weights) {
        weigh_noise(map, rows, place->code, s->probes, &s->products);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                inner(&s->products, column_of(s->probes, i), column_of(s->probes, j), noise[i][j]);
        return;
    }

    pnr_patch h[PNR_MAP_SUMS];

    memset(h, 0, sizeof h);
    for (int i = 0; i < 3; i++) {
        const pnr_map_column *column = column_of(s->probes, i);

        for (int t = 0; t < column->n; t++)
            for (int r = rows->first; r < rows->end; r++)
                for (int j = 0; j < J; j++) {
                    value z;

                    pnr_map_multiply(s->products.mx[column->x[t]][r],
                                     s->products.wy[column->y[t]][j], z);
                    h[i][r][j][0] += z[0];
                    h[i][r][j][1] += z[1];
                }
    }
    pnr_map_noise_of(map->noise, map->slow, rows, place, (const pnr_patch *)h, 3, noise);
}

/* Variances times S. The errors of delay and frequency are n Re <q, noise/A>; that of the peak is
 * <h_0, noise/A> / <h_0, c_0> - sum_i alpha_i times them. */
static void find_variances(const pnr_fit_map *map, const pnr_map_rows *rows,
                           const pnr_patch_place *place, stand *s, pnr_map_fitted *out)
{
    value noise[PNR_MAP_SUMS][PNR_MAP_SUMS], error[2][3] = {{{0}}}, re[3] = {{0}}, im[3] = {{0}};
    const double *g = s->gram[0][0], power = g[0] * g[0] + g[1] * g[1];

    re[0][0] = im[0][1] = g[0] / power; /* 1 / conj(g), and i times it */
    re[0][1] = g[1] / power;
    im[0][0] = -g[1] / power;
    find_noise(map, rows, place, s, noise);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            error[i][j + 1][0] = s->n[i][j];
            error[i][0][0] -= s->n[i][j] * s->beta[j + 1][0];
            error[i][0][1] -= s->n[i][j] * s->beta[j + 1][1];
        }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int c = 0; c < 2; c++) {
                re[j][c] -= s->alpha[i + 1][0] * error[i][j][c];
                im[j][c] -= s->alpha[i + 1][1] * error[i][j][c];
            }
    out->at.delay_variance = variance_of(noise, (const value *)error[0]);
    out->bins_variance = variance_of(noise, (const value *)error[1]);
    out->at.amplitude_variance = variance_of(noise, (const value *)re);
    out->at.phase_variance = variance_of(noise, (const value *)im);
    /* No more than the peak, than what it explains, and than its power over that of noise in the
     * same sum: beside the rows a peak may be great, and all of it noise. */
    out->at.gain = (s->on[0][0] * s->on[0][0] + s->on[0][1] * s->on[0][1]) / noise[0][0][0];
    out->at.gain = fmin(fmin(out->at.gain, s->gain), out->at.power);
    /* A peak that was sought has half a cell more for each of delay and frequency. */
    out->at.cells = 2 * noise[0][0][0] / power;
}

/* The vertex of the parabola through (-1, a), (0, b), (1, c), b the greatest: within -1/2..1/2. */
static double vertex(double a, double b, double c)
{
    const double curvature = a - 2 * b + c;

    return curvature < 0 && b >= a && b >= c ? 0.5 * (a - c) / curvature : 0;
}

/* Where the climb starts in frequency: the vertex over the middle row and those beside it. */
static double first_bins(const pnr_map_rows *rows, const double (*patch)[J][2], int lag)
{
    double p[3] = {0};

    if (rows->first > MIDDLE - 1 || rows->end < MIDDLE + 2)
        return rows->row[MIDDLE].bins;
    for (int i = 0; i < 3; i++)
        p[i] = hypot(patch[MIDDLE - 1 + i][lag][0], patch[MIDDLE - 1 + i][lag][1]);

    const double x = vertex(p[0], p[1], p[2]);

    return rows->row[MIDDLE].bins + x * (x > 0
                                             ? rows->row[MIDDLE + 1].bins - rows->row[MIDDLE].bins
                                             : rows->row[MIDDLE].bins - rows->row[MIDDLE - 1].bins);
}

/* An echo that leaves so little of itself in the patch, against where the climb started, is none of
 * it: beyond the first or last row, or where the mean that was taken out was it. Any noise would be
 * an echo as strong as one likes there. */
static const double least_share = 0.1;

static double clamp(double x, double limit)
{
    return x < -limit ? -limit : x > limit ? limit : x;
}

/* Climbs from *echo; s: where it stopped. *least:
 * <echo, echo> at least, 0 before the first climb. */
static void climb(pnr_fit_map *map, const pnr_patch_place *place, const pnr_map_rows *rows,
                  const double (*patch)[J][2], bool is_exact, double cell, pnr_map_echo *echo,
                  double *least, stand *s)
{
    const double middle = rows->row[MIDDLE].bins, lag = (double)place->lag;
    double step[2] = {0}, best = -1;
    pnr_map_echo at = *echo;
    /* Seen through probes of its own the likeliest echo is no maximum but where all steps end. */
    const bool is_probed = is_exact && map->noise != NULL && rows->has_weights;

    s->probes = is_probed ? &s->smooth : &s->model;

    for (int i = 0; i < MAX_STEPS; i++) {
        if (is_exact)
            pnr_map_model_exact(map->model, rows, &at, place, true, &s->model);
        else
            pnr_map_model_smooth(map->model, rows, &at, place->lag, true, &s->model);
        if (is_probed)
            pnr_map_model_smooth(map->model, rows, &at, place->lag, true, &s->smooth);
        judge(map, rows, place->code, patch, s);
        divide(s->on[0], s->gram[0][0], at.peak);
        if (*least == 0)
            *least = least_share * s->gram[0][0][0];
        if ((s->gain < best * (1 - 1e-12) && !is_probed) ||
            s->gram[0][0][0] < *least) { /* too far */
            step[0] /= 2;
            step[1] /= 2;
        } else {
            best = s->gain;
            *echo = at;
            step_from(s, at.peak, step);
            step[0] = clamp(step[0], 0.3);
            step[1] = clamp(step[1], 0.3 * rows->spacing);
            step[0] = clamp(at.lag + step[0] - lag, 1) + lag - at.lag;
            step[1] = clamp(at.bins + step[1] - middle, rows->spacing) + middle - at.bins;
        }

        /* In units of both sigmas: what is left is a thousandth. */
        const double power = at.peak[0] * at.peak[0] + at.peak[1] * at.peak[1];
        const double size = step[0] * step[0] / s->n[0][0] + step[1] * step[1] / s->n[1][1];

        if (size * power < 1e-6 * cell || (fabs(step[0]) < 1e-9 && fabs(step[1]) < 1e-9))
            return;
        at.lag = echo->lag + step[0];
        at.bins = echo->bins + step[1];
    }
}

void pnr_fit_map_find(pnr_fit_map *map, const pnr_patch_place *place, const pnr_vector *patch,
                      double start, double cell, pnr_map_fitted *out)
{
    pnr_map_echo echo = {.code = place->code, .lag = (double)place->lag + start};
    double least = 0;
    pnr_map_rows rows;
    stand s;

    pnr_map_model_rows(map->model, place->row, true, &rows);
    echo.bins = first_bins(&rows, patch, MIDDLE + (start > 0.25));
    climb(map, place, &rows, patch, false, cell, &echo, &least, &s);

    const bool is_exact = pnr_map_model_is_rough(map->model, &rows, &echo, place->code, cell);

    if (is_exact)
        climb(map, place, &rows, patch, true, cell, &echo, &least, &s);

    value centre = {0, 0};

    for (int t = 0; t < s.model.echo.n; t++) {
        value z;

        pnr_map_multiply(s.model.x[s.model.echo.x[t]][MIDDLE], s.model.y[s.model.echo.y[t]][MIDDLE],
                         z);
        centre[0] += z[0];
        centre[1] += z[1];
    }
    out->at.delay = echo.lag - (double)place->lag;
    out->bins = echo.bins;
    memcpy(out->at.peak, echo.peak, sizeof echo.peak);
    out->at.power = echo.peak[0] * echo.peak[0] + echo.peak[1] * echo.peak[1];
    out->centre = hypot(centre[0], centre[1]);
    find_variances(map, &rows, place, &s, out);
}

/* --- the whole --- */

double pnr_fit_map_walk(const pnr_fit_map *map, double bins, double stretch)
{
    return pnr_map_model_walk(map->model, bins, stretch);
}

double pnr_fit_map_bins(const pnr_fit_map *map, size_t row)
{
    return pnr_map_model_row(map->model, row).bins;
}

double pnr_fit_map_stretch(const pnr_fit_map *map, size_t row)
{
    return pnr_plan_hypothesis(map->plan, pnr_map_model_row(map->model, row).hypothesis).stretch;
}

void pnr_fit_map_begin(pnr_fit_map *map, const uint32_t *lost, const uint32_t *nonfinite)
{
    pnr_slow_time_begin(map->slow, lost, nonfinite);
}

double pnr_fit_map_gain(const pnr_fit_map *map)
{
    return pnr_slow_time_gain(map->slow);
}

double pnr_fit_map_noise_gain(const pnr_fit_map *map)
{
    return pnr_slow_time_noise_gain(map->slow);
}

double pnr_fit_map_looks(const pnr_fit_map *map)
{
    return pnr_slow_time_looks(map->slow);
}

double pnr_fit_map_energy(const pnr_fit_map *map, double bins)
{
    return pnr_slow_time_energy(map->slow, bins);
}

int pnr_fit_map_create(const pnr_setup *setup, double carrier_hz, pnr_fit_map **out)
{
    pnr_fit_map *map = calloc(1, sizeof *map);

    *out = NULL;
    if (map == NULL)
        return PNR_ENOMEMORY;
    map->plan = &setup->plan;
    if (pnr_map_model_create(setup, carrier_hz, &map->model) != PNR_OK) {
        pnr_fit_map_destroy(map);
        return PNR_ENOMEMORY;
    }
    map->slow = pnr_map_model_slow(map->model);
    if (pnr_map_model_is_close(map->model) && pnr_map_noise_create(setup, &map->noise) != PNR_OK) {
        pnr_fit_map_destroy(map);
        return PNR_ENOMEMORY;
    }
    *out = map;
    return PNR_OK;
}

void pnr_fit_map_destroy(pnr_fit_map *map)
{
    if (map == NULL)
        return;
    pnr_map_model_destroy(map->model);
    pnr_map_noise_destroy(map->noise);
    free(map);
}
