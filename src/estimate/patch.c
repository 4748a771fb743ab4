/* SPDX-License-Identifier: MIT */
/* Patches of a map: reads them, subtracts or adds an echo, and measures the residual. */
#include "engine/plan.h"
#include "estimate/echo_model.h"
#include "estimate/matrix.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

typedef double value[2]; /* re, im */

/* out += factor model */
static void add_model(const pnr_echo_columns *m, const pnr_echo_rows *rows, const value factor,
                      double (*patch)[J][2])
{
    for (int t = 0; t < m->echo.n; t++)
        for (int i = rows->first; i < rows->end; i++) {
            value x;

            pnr_echo_multiply(m->x[m->echo.x[t]][i], factor, x);
            for (int j = 0; j < J; j++) {
                const double *y = m->y[m->echo.y[t]][j];

                patch[i][j][0] += x[0] * y[0] - x[1] * y[1];
                patch[i][j][1] += x[0] * y[1] + x[1] * y[0];
            }
        }
}

void pnr_fit_patch_subtract(pnr_fit_patch *map, const pnr_patch_place *place,
                            const pnr_patch_echo *echo, double cell, pnr_vector *patch)
{
    const value factor = {-echo->peak[0], -echo->peak[1]};
    pnr_echo_rows rows;
    pnr_echo_columns m;

    pnr_echo_model_rows(map->model, place->row, false, &rows);
    if (pnr_echo_model_mark_exact(map->model, &rows, echo, place->code, cell))
        pnr_echo_model_exact(map->model, &rows, echo, place, false, &m);
    else if (place->code == echo->code)
        pnr_echo_model_smooth(map->model, &rows, echo, place->lag, false, &m);
    else
        return;
    add_model(&m, &rows, factor, patch);
}

double pnr_fit_patch_power(pnr_fit_patch *map, const pnr_patch_place *place,
                           const pnr_patch_echo *echo, double cell, int n_lags)
{
    pnr_patch patch = {{{0}}};
    double power = 0;

    pnr_fit_patch_subtract(map, place, echo, cell, patch);
    for (int j = MIDDLE; j < MIDDLE + n_lags; j++)
        power +=
            patch[MIDDLE][j][0] * patch[MIDDLE][j][0] + patch[MIDDLE][j][1] * patch[MIDDLE][j][1];
    return power;
}

void pnr_fit_patch_overlap(const pnr_fit_patch *map, const pnr_patch_echo *x,
                           const pnr_patch_echo *y, double out[2])
{
    /* sum_n a(n - x) conj(a(n - y)) exp(2 pi i (v_x - v_y) (n - m) / N) */
    const double n = (double)map->plan->n_samples, k = (double)map->plan->n_periods;
    const double e = x->bins - y->bins, below = k * sin(M_PI * e);
    const double slow = fabs(below) > 1e-9 ? sin(M_PI * e * k) / below : 1;
    const double share = slow * pnr_echo_model_tone(map->model, e);
    double apart = y->lag - x->lag;

    out[0] = out[1] = 0;
    if (x->code != y->code)
        return;
    apart -= n * floor(apart / n + 0.5);
    pnr_waveform_at(pnr_echo_model_lags(map->model, x->code)->autocorrelation, apart, out);
    out[0] *= share;
    out[1] *= share;
}

double pnr_fit_patch_noise(pnr_fit_patch *map, const pnr_patch_place *place,
                           const pnr_vector *patch, const pnr_patch_fitted *fitted, double *cells)
{
    const pnr_patch_echo echo = {place->code,
                                 (double)place->lag + fitted->at.delay,
                                 fitted->bins,
                                 {fitted->at.peak[0], fitted->at.peak[1]}};
    const pnr_echo_lags *code = pnr_echo_model_lags(map->model, place->code);
    pnr_patch rest;
    pnr_echo_rows rows;
    double energy = 0;

    memcpy(rest, patch, sizeof rest);
    pnr_fit_patch_subtract(map, place, &echo, 0, rest);
    pnr_echo_model_rows(map->model, place->row, false, &rows);
    for (int i = rows.first; i < rows.end; i++) {
        value weighted[J], z, g;

        pnr_matrix_apply((const value(*)[J])code->w, (const value *)rest[i], weighted);
        pnr_echo_product((const value *)rest[i], (const value *)weighted, z);
        pnr_slow_time_noise(map->slow, rows.row[i].bins, rows.row[i].bins, g);
        energy += z[0] / fmax(g[0], 1e-3);
    }
    /* The echo takes four real degrees of freedom: complex peak, delay and frequency. */
    *cells = fmax(code->cells * (rows.end - rows.first) - 2, 0.5);
    return energy / *cells;
}

/* exp(2 pi i (F (K - 1)/2 + f (N - 1)/(2 N))): the phase from the first sample of the look to its
 * middle. */
static void turn_of(const pnr_fit_patch *map, double bins, double rotation, value out)
{
    const double n = (double)map->plan->n_samples;
    const double periods = ((double)map->plan->n_periods - 1) / 2, samples = (n - 1) / (2 * n);
    const double angle =
        2 * M_PI * (remainder(bins * periods, 1) + remainder(rotation * samples, 1));

    out[0] = cos(angle);
    out[1] = sin(angle);
}

void pnr_fit_patch_load(const pnr_fit_patch *map, const pnr_patch_place *place, const float *values,
                        double floor, pnr_vector *out)
{
    const pnr_waveform *autocorrelation =
        pnr_echo_model_lags(map->model, place->code)->autocorrelation;
    const bool is_sum = map->plan->n_looks > 1;
    pnr_echo_rows rows;

    pnr_echo_model_rows(map->model, place->row, false, &rows);
    memset(out, 0, sizeof(pnr_patch));

    const pnr_echo_row middle = rows.row[MIDDLE];
    const float *centre = values + (size_t)2 * (MIDDLE * J + MIDDLE);
    const double share = is_sum && centre[0] > 0 ? floor / (double)centre[0] : 0;

    for (int i = rows.first; i < rows.end; i++) {
        const pnr_echo_row *row = &rows.row[i];
        /* A sum of several looks is relative to the phase of the middle cell. */
        const double rotation = row->rotation - (is_sum ? middle.rotation : 0);
        value turn, g = {0, 0};

        turn_of(map, row->bins - (is_sum ? middle.bins : 0), rotation, turn);
        if (is_sum)
            pnr_slow_time_noise(map->slow, row->bins, middle.bins, g);
        for (int j = 0; j < J; j++) {
            const float *c = values + (size_t)2 * (size_t)(i * J + j);
            value noise, rho;

            pnr_echo_multiply((const value){(double)c[0], (double)c[1]}, turn, out[i][j]);
            if (!is_sum)
                continue;
            pnr_waveform_at(autocorrelation, j - MIDDLE, rho);
            pnr_echo_multiply(g, rho, noise);
            for (int a = 0; a < 2; a++)
                out[i][j][a] -= share * pnr_echo_model_tone(map->model, rotation) * noise[a];
        }
    }
}

void pnr_fit_patch_add(pnr_fit_patch *map, const pnr_patch_place *place, const pnr_patch_echo *echo,
                       double cell, float *values)
{
    pnr_patch_echo negative = *echo;
    pnr_patch patch = {{{0}}};
    pnr_echo_rows rows;

    negative.peak[0] = -echo->peak[0];
    negative.peak[1] = -echo->peak[1];
    pnr_fit_patch_subtract(map, place, &negative, cell, patch);
    pnr_echo_model_rows(map->model, place->row, false, &rows);
    for (int i = rows.first; i < rows.end; i++) {
        value turn;

        turn_of(map, -rows.row[i].bins, -rows.row[i].rotation, turn);
        for (int j = 0; j < J; j++) {
            float *c = values + (size_t)2 * (size_t)(i * J + j);
            value z;

            pnr_echo_multiply(patch[i][j], turn, z);
            c[0] += (float)z[0];
            c[1] += (float)z[1];
        }
    }
}
