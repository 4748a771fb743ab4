/* SPDX-License-Identifier: MIT */
/* One point of a fit in a map: products over rows and lags, the Gauss-Newton matrix, and the
 * variances of the estimates. */
#include "estimate/fit_state.h"

#include "base/complex.h"
#include "estimate/patch_noise.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

static void weigh(const pnr_fit_patch *map, const pnr_echo_rows *rows, size_t code,
                  const pnr_echo_columns *probes, const pnr_echo_columns *m, pnr_fit_products *out)
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
                        const pnr_echo_columns *m, pnr_fit_products *p)
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
static double complex inner(const pnr_fit_products *p, const pnr_echo_column *a,
                            const pnr_echo_column *b)
{
    double complex sum = 0;

    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++)
            sum += p->x[a->x[i]][b->x[j]] * p->y[a->y[i]][b->y[j]];
    return sum;
}

/* Returns <a, patch>. seen[y][i]: conj(y^H w (row i of the patch)). */
static double complex onto(const pnr_fit_products *p, const pnr_echo_column *a,
                           const pnr_echo_rows *rows, const pnr_vector *seen)
{
    double complex sum = 0;

    for (int t = 0; t < a->n; t++)
        for (int i = rows->first; i < rows->end; i++)
            sum += conj(p->mx[a->x[t]][i] * seen[a->y[t]][i]);
    return sum;
}

static const pnr_echo_column *column_of(const pnr_echo_columns *m, int i)
{
    return i == 0 ? &m->echo : i == 1 ? &m->by_delay : &m->by_bins;
}

static double complex divide(double complex a, double complex b)
{
    return a * conj(b) / pnr_power(b);
}

static void evaluate_model(const pnr_fit_patch *map, const pnr_echo_rows *rows, size_t code,
                           pnr_fit_state *s)
{
    pnr_vector seen[PNR_ECHO_VECTORS];
    double n[2][2];

    weigh(map, rows, code, s->probes, &s->model, &s->products);
    for (int y = 0; y < s->probes->n_y; y++)
        pnr_matrix_apply(s->by_lag, s->products.wy[y], seen[y]);
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

double pnr_fit_state_begin(const pnr_fit_patch *map, const pnr_patch_place *place,
                           const pnr_echo_rows *rows, const pnr_vector *patch, pnr_fit_state *s)
{
    const pnr_echo_row *row = &rows->row[MIDDLE];
    const pnr_patch_echo middle = {
        .code = place->code, .lag = (double)place->lag, .bins = row->bins / (1 + row->stretch)};

    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++)
            s->by_lag[j][i] = patch[i][j];
    s->rough.is_filled = false;
    pnr_echo_model_smooth(map->model, rows, &middle, place, false, &s->model);
    weigh(map, rows, place->code, &s->model, &s->model, &s->products);
    return 0.1 * creal(inner(&s->products, &s->model.echo, &s->model.echo));
}

void pnr_fit_state_evaluate(const pnr_fit_patch *map, const pnr_patch_place *place,
                            const pnr_echo_rows *rows, bool is_exact, const pnr_patch_echo *at,
                            pnr_fit_state *s)
{
    if (is_exact)
        pnr_echo_model_exact(map->model, rows, at, place, &s->rough, &s->model);
    else
        pnr_echo_model_smooth(map->model, rows, at, place, true, &s->model);
    if (s->probes == &s->smooth)
        pnr_echo_model_smooth(map->model, rows, at, place, true, &s->smooth);
    evaluate_model(map, rows, place->code, s);
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
                       const pnr_patch_place *place, pnr_fit_state *s,
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
void pnr_fit_state_variances(const pnr_fit_patch *map, const pnr_echo_rows *rows,
                             const pnr_patch_place *place, pnr_fit_state *s, pnr_patch_fitted *out)
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
