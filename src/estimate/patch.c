/* SPDX-License-Identifier: MIT */
/* Patches of a map: reads them, subtracts or adds an echo, and measures the residual. */
#include "base/complex.h"
#include "engine/plan.h"
#include "estimate/echo_model.h"
#include "estimate/matrix.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

/* out += factor model */
static void add_model(const pnr_echo_columns *m, const pnr_echo_rows *rows, double complex factor,
                      pnr_vector *patch)
{
    for (int t = 0; t < m->echo.n; t++)
        for (int i = rows->first; i < rows->end; i++) {
            const double complex x = m->x[m->echo.x[t]][i] * factor;

            for (int j = 0; j < J; j++)
                patch[i][j] += x * m->y[m->echo.y[t]][j];
        }
}

void pnr_fit_patch_subtract(pnr_fit_patch *map, const pnr_patch_place *place,
                            const pnr_patch_echo *echo, double cell, pnr_vector *patch)
{
    pnr_echo_rows rows;
    pnr_echo_columns m;

    pnr_echo_model_rows(map->model, place->row, false, &rows);
    if (pnr_echo_model_mark_exact(map->model, &rows, echo, place->code, cell))
        pnr_echo_model_exact(map->model, &rows, echo, place, false, &m);
    else if (place->code == echo->code)
        pnr_echo_model_smooth(map->model, &rows, echo, place->lag, false, &m);
    else
        return;
    add_model(&m, &rows, -echo->peak, patch);
}

double pnr_fit_patch_power(pnr_fit_patch *map, const pnr_patch_place *place,
                           const pnr_patch_echo *echo, double cell, int n_lags)
{
    pnr_patch patch = {{0}};
    double power = 0;

    pnr_fit_patch_subtract(map, place, echo, cell, patch);
    for (int j = MIDDLE; j < MIDDLE + n_lags; j++)
        power += pnr_power(patch[MIDDLE][j]);
    return power;
}

double complex pnr_fit_patch_overlap(const pnr_fit_patch *map, const pnr_patch_echo *x,
                                     const pnr_patch_echo *y)
{
    /* sum_n a(n - x) conj(a(n - y)) exp(2 pi i (v_x - v_y) (n - m) / N) */
    const double n = (double)map->plan->n_samples, k = (double)map->plan->n_periods;
    const double e = x->bins - y->bins, below = k * sin(M_PI * e);
    const double slow = fabs(below) > 1e-9 ? sin(M_PI * e * k) / below : 1;
    const double share = slow * pnr_echo_model_tone(map->model, e);
    double apart = y->lag - x->lag;

    if (x->code != y->code)
        return 0;
    apart -= n * floor(apart / n + 0.5);
    return share *
           pnr_waveform_at(pnr_echo_model_lags(map->model, x->code)->autocorrelation, apart);
}

double pnr_fit_patch_noise(pnr_fit_patch *map, const pnr_patch_place *place,
                           const pnr_vector *patch, const pnr_patch_fitted *fitted, double *cells)
{
    const pnr_patch_echo echo = {place->code, (double)place->lag + fitted->at.delay, fitted->bins,
                                 fitted->at.peak};
    const pnr_echo_lags *code = pnr_echo_model_lags(map->model, place->code);
    pnr_patch rest;
    pnr_echo_rows rows;
    double energy = 0;

    memcpy(rest, patch, sizeof rest);
    pnr_fit_patch_subtract(map, place, &echo, 0, rest);
    pnr_echo_model_rows(map->model, place->row, false, &rows);
    for (int i = rows.first; i < rows.end; i++) {
        const double g = creal(pnr_slow_time_noise(map->slow, rows.row[i].bins, rows.row[i].bins));
        pnr_vector weighted;

        pnr_matrix_apply(code->w, rest[i], weighted);
        energy += creal(pnr_inner(rest[i], weighted)) / fmax(g, 1e-3);
    }
    /* The echo takes four real degrees of freedom: complex peak, delay and frequency. */
    *cells = fmax(code->cells * (rows.end - rows.first) - 2, 0.5);
    return energy / *cells;
}

/* exp(2 pi i (F (K - 1)/2 + f (N - 1)/(2 N))): the phase from the first sample of the look to its
 * middle. */
static double complex turn_of(const pnr_fit_patch *map, double bins, double rotation)
{
    const double n = (double)map->plan->n_samples;
    const double periods = ((double)map->plan->n_periods - 1) / 2, samples = (n - 1) / (2 * n);

    return pnr_cis(2 * M_PI * (remainder(bins * periods, 1) + remainder(rotation * samples, 1)));
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
    const float complex *c = (const float complex *)values;
    const double centre = (double)crealf(c[MIDDLE * J + MIDDLE]);
    const double share = is_sum && centre > 0 ? floor / centre : 0;

    for (int i = rows.first; i < rows.end; i++) {
        const pnr_echo_row *row = &rows.row[i];
        /* A sum of several looks is relative to the phase of the middle cell. */
        const double rotation = row->rotation - (is_sum ? middle.rotation : 0);
        const double complex turn = turn_of(map, row->bins - (is_sum ? middle.bins : 0), rotation);

        for (int j = 0; j < J; j++)
            out[i][j] = (double complex)c[i * J + j] * turn;
        if (!is_sum)
            continue;

        const double tone = share * pnr_echo_model_tone(map->model, rotation);
        const double complex g = pnr_slow_time_noise(map->slow, row->bins, middle.bins);

        for (int j = 0; j < J; j++)
            out[i][j] -= tone * (g * pnr_waveform_at(autocorrelation, j - MIDDLE));
    }
}

void pnr_fit_patch_add(pnr_fit_patch *map, const pnr_patch_place *place, const pnr_patch_echo *echo,
                       double cell, float *values)
{
    float complex *c = (float complex *)values;
    pnr_patch_echo negative = *echo;
    pnr_patch patch = {{0}};
    pnr_echo_rows rows;

    negative.peak = -echo->peak;
    pnr_fit_patch_subtract(map, place, &negative, cell, patch);
    pnr_echo_model_rows(map->model, place->row, false, &rows);
    for (int i = rows.first; i < rows.end; i++) {
        const double complex turn = turn_of(map, -rows.row[i].bins, -rows.row[i].rotation);

        for (int j = 0; j < J; j++)
            c[i * J + j] += (float complex)(patch[i][j] * turn);
    }
}
