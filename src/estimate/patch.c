/* SPDX-License-Identifier: MIT */
/* Patches of a map: reads a patch, subtracts or adds an echo, and measures the residual. */
#include "base/complex.h"
#include "engine/plan.h"
#include "estimate/echo_model.h"
#include "estimate/matrix.h"
#include "estimate/patch_noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

/* patch += factor echo at the lags within place->reach, exact in the marked rows. */
static void add_echo(pnr_fit_patch *map, const pnr_patch_place *place, const pnr_patch_echo *echo,
                     const pnr_echo_rows *rows, bool is_exact, double factor, pnr_vector *patch)
{
    const int first = place->reach > 0 ? MIDDLE - place->reach : 0;
    pnr_echo_columns m;

    if (is_exact)
        pnr_echo_model_exact(map->model, rows, echo, place, NULL, &m);
    else if (place->code == echo->code)
        pnr_echo_model_smooth(map->model, rows, echo, place, false, &m);
    else
        return;
    for (int t = 0; t < m.echo.n; t++)
        for (int i = rows->first; i < rows->end; i++) {
            const double complex x = m.x[m.echo.x[t]][i] * factor * echo->peak;

            for (int j = first; j < J - first; j++)
                patch[i][j] += x * m.y[m.echo.y[t]][j];
        }
}

void pnr_fit_patch_change(pnr_fit_patch *map, const pnr_patch_place *place,
                          const pnr_patch_echo *before, const pnr_patch_echo *after, double cell,
                          pnr_vector *patch)
{
    pnr_patch_echo change = *after;
    pnr_echo_rows rows;

    pnr_echo_model_rows(map->model, place->row, false, &rows);
    if (place->reach > 0) {
        rows.first = rows.first > MIDDLE - place->reach ? rows.first : MIDDLE - place->reach;
        rows.end = rows.end < MIDDLE + place->reach + 1 ? rows.end : MIDDLE + place->reach + 1;
    }
    change.peak = sqrt(pnr_patch_echo_change(before, after, (double)map->plan->n_periods));

    const bool is_exact = pnr_echo_model_mark_exact(map->model, &rows, &change, place->code,
                                                    before != NULL ? 0.1 * cell : cell, false);

    if (before != NULL)
        add_echo(map, place, before, &rows, is_exact, 1, patch);
    add_echo(map, place, after, &rows, is_exact, -1, patch);
}

double pnr_fit_patch_power(pnr_fit_patch *map, const pnr_patch_place *place,
                           const pnr_patch_echo *echo, double cell, int n_lags)
{
    const pnr_patch_place near = {
        .code = place->code, .row = place->row, .lag = place->lag, .reach = 1};
    pnr_patch patch = {{0}};
    double power = 0;

    pnr_fit_patch_change(map, &near, NULL, echo, cell, patch);
    for (int j = MIDDLE; j < MIDDLE + n_lags; j++)
        power += pnr_power(patch[MIDDLE][j]);
    return power;
}

double pnr_fit_patch_inside(pnr_fit_patch *map, const pnr_patch_place *place,
                            const pnr_patch_echo *echo, double cell, int reach)
{
    pnr_patch patch = {{0}};
    double power = 0;

    pnr_fit_patch_change(map, place, NULL, echo, cell, patch);
    for (int i = 0; i < J; i++)
        for (int j = MIDDLE - reach; j <= MIDDLE + reach; j++)
            power += pnr_power(patch[i][j]);
    return power;
}

double pnr_fit_patch_unknown(const pnr_fit_patch *map, const pnr_patch_place *place,
                             const pnr_patch_echo *echo)
{
    const pnr_echo_row row = map->model->rows[place->row];

    return pnr_power(echo->peak) * pnr_echo_model_unknown(map->model, &row, echo);
}

double pnr_fit_patch_noise(pnr_fit_patch *map, const pnr_patch_place *place,
                           const pnr_vector *patch, const pnr_patch_fitted *fitted, double cell,
                           double *cells)
{
    const pnr_patch_echo echo = {place->code, (double)place->lag + fitted->at.delay, fitted->bins,
                                 fitted->at.peak, fitted->anchor};
    const pnr_echo_lags *code = &map->model->codes[place->code];
    pnr_patch rest;
    pnr_echo_rows rows;
    double energy = 0, n_rows = 0;

    memcpy(rest, patch, sizeof rest);
    pnr_fit_patch_change(map, place, NULL, &echo, cell, rest);
    pnr_echo_model_rows(map->model, place->row, false, &rows);
    for (int i = rows.first; i < rows.end; i++) {
        const double g = creal(pnr_slow_time_noise(map->slow, rows.row[i].bins, rows.row[i].bins));

        if (g < 0.1) /* the removed mean contained nearly all noise of this row */
            continue;
        for (int j = 0; j < J; j++)
            energy += pnr_power(rest[i][j]) / g;
        n_rows++;
    }
    /* The fit has four real parameters: the complex peak, the delay and the frequency. They reduce
     * the number of complex cells by 2. */
    *cells = fmax(J * n_rows / code->crowd - 2, 0.5);
    return energy / (*cells * code->crowd);
}

/* Returns exp(2 pi i (F (K - 1)/2 + f (N - 1)/(2 N))). This is the rotation of the phase from the
 * first sample of the look to the middle of the look. */
static double complex turn_of(const pnr_fit_patch *map, double bins, double rotation)
{
    const double n = (double)map->plan->n_samples;
    const double periods = ((double)map->plan->n_periods - 1) / 2, samples = (n - 1) / (2 * n);

    const double turns = bins * periods + rotation * samples;

    return pnr_cis(2 * M_PI * (turns - rint(turns)));
}

void pnr_fit_patch_load(const pnr_fit_patch *map, const pnr_patch_place *place, const float *values,
                        double floor, pnr_vector *out)
{
    const pnr_waveform *autocorrelation = map->model->codes[place->code].autocorrelation;
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
        /* In a sum of several looks all phases are relative to the phase of the middle cell. */
        const double rotation = row->rotation - (is_sum ? middle.rotation : 0);
        const double complex turn = turn_of(map, row->bins - (is_sum ? middle.bins : 0), rotation);

        for (int j = 0; j < J; j++)
            out[i][j] = (double complex)c[i * J + j] * turn;
        if (!is_sum)
            continue;

        const double tone = share * pnr_echo_model_tone(map->model, rotation, NULL);
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
    pnr_fit_patch_change(map, place, NULL, &negative, cell, patch);
    pnr_echo_model_rows(map->model, place->row, false, &rows);
    for (int i = rows.first; i < rows.end; i++) {
        const double complex turn = turn_of(map, -rows.row[i].bins, -rows.row[i].rotation);

        for (int j = 0; j < J; j++)
            c[i * J + j] += (float complex)(patch[i][j] * turn);
    }
}

/* --- the other functions of a fit --- */

double pnr_fit_patch_walk(const pnr_fit_patch *map, double bins, double stretch)
{
    return pnr_echo_model_walk(map->model, bins, stretch);
}

double pnr_fit_patch_bins(const pnr_fit_patch *map, size_t row)
{
    const pnr_echo_row at = map->model->rows[row];

    return at.bins / (1 + at.stretch);
}

double pnr_fit_patch_stretch(const pnr_fit_patch *map, size_t row)
{
    return map->model->rows[row].stretch;
}

double pnr_fit_patch_column(const pnr_fit_patch *map, size_t code, double delay,
                            const pnr_vector *patch, double complex *out)
{
    const pnr_echo_lags *lags = &map->model->codes[code];
    pnr_vector shape, weights, noise;

    for (int j = 0; j < J; j++)
        shape[j] = pnr_waveform_at(lags->autocorrelation, j - MIDDLE - delay);
    pnr_matrix_apply(lags->w, shape, weights);
    pnr_matrix_apply(lags->p, weights, noise);

    const double gram = creal(pnr_inner(weights, shape));

    for (int i = 0; i < J; i++)
        out[i] = pnr_inner(weights, patch[i]) / gram;
    return creal(pnr_inner(weights, noise)) / (gram * gram);
}

void pnr_fit_patch_signs(pnr_fit_patch *map, const double complex *signs)
{
    map->has_signs = signs != NULL;
    pnr_slow_time_signs(map->slow, signs);
}

void pnr_fit_patch_begin(pnr_fit_patch *map, const uint32_t *lost, const uint32_t *nonfinite)
{
    pnr_slow_time_begin(map->slow, lost, nonfinite);
}

double pnr_fit_patch_gain(const pnr_fit_patch *map)
{
    return pnr_slow_time_gain(map->slow);
}

double pnr_fit_patch_noise_gain(const pnr_fit_patch *map)
{
    return pnr_slow_time_noise_gain(map->slow);
}

double pnr_fit_patch_looks(const pnr_fit_patch *map)
{
    return pnr_slow_time_looks(map->slow);
}

int pnr_fit_patch_create(const pnr_setup *setup, double carrier_hz, pnr_fit_patch **out)
{
    pnr_fit_patch *map = calloc(1, sizeof *map);

    *out = NULL;
    if (map == NULL)
        return PNR_ENOMEMORY;
    map->plan = &setup->plan;
    if (pnr_echo_model_create(setup, carrier_hz, &map->model) != PNR_OK) {
        pnr_fit_patch_destroy(map);
        return PNR_ENOMEMORY;
    }
    map->slow = map->model->slow;
    if (pnr_echo_model_is_close(map->model) &&
        pnr_patch_noise_create(setup, &map->noise) != PNR_OK) {
        pnr_fit_patch_destroy(map);
        return PNR_ENOMEMORY;
    }
    *out = map;
    return PNR_OK;
}

int pnr_fit_patch_share(const pnr_fit_patch *from, pnr_fit_patch **out)
{
    pnr_fit_patch *map = malloc(sizeof *map);

    *out = NULL;
    if (map == NULL)
        return PNR_ENOMEMORY;
    *map = *from;
    map->is_shared = true;
    if (pnr_echo_model_share(from->model, &map->model) != PNR_OK) {
        free(map);
        return PNR_ENOMEMORY;
    }
    map->slow = map->model->slow;
    *out = map;
    return PNR_OK;
}

void pnr_fit_patch_destroy(pnr_fit_patch *map)
{
    if (map == NULL)
        return;
    pnr_echo_model_destroy(map->model);
    if (!map->is_shared)
        pnr_patch_noise_destroy(map->noise);
    free(map);
}
