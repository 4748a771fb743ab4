/* SPDX-License-Identifier: MIT */
/* The fit of two paths. A table of delays gives the start of the Gauss-Newton steps. */
#include "estimate/fit_pair.h"

#include "base/complex.h"
#include "base/error.h"
#include "estimate/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    GRID = 2, /* delays of the table for each lag */
    N_GRID = 2 * PNR_PAIR_REACH * GRID + 1,
    N = 6, /* real parameters */
    STEPS = 40
};

struct pnr_fit_pair {
    const pnr_waveform *autocorrelation;
    pnr_vector p[J], w[J];                  /* R(i - j)/R(0); the inverse of p with a loaded
                                             * diagonal */
    pnr_vector weighed[N_GRID];             /* W r(d) */
    double energy[N_GRID];                  /* r^H W r */
    double complex overlap[N_GRID][N_GRID]; /* r_i^H W r_k */
    double crowd;                           /* lags that count as one because their noise is
                                             * correlated */
};

/* Fills r(d) and its derivative with respect to d. */
static void echo_at(const pnr_fit_pair *pair, double d, double complex *r, double complex *slope)
{
    pnr_waveform_run(pair->autocorrelation, -MIDDLE - d, J, r, slope);
    for (int j = 0; j < J && slope != NULL; j++)
        slope[j] = -slope[j];
}

int pnr_fit_pair_create(const pnr_waveform *autocorrelation, pnr_fit_pair **out)
{
    pnr_fit_pair *pair = calloc(1, sizeof *pair);
    pnr_vector r[N_GRID];

    *out = pair;
    if (pair == NULL)
        return PNR_ENOMEMORY;
    pair->autocorrelation = autocorrelation;
    pnr_matrix_weigh(autocorrelation, pair->p, pair->w);
    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++)
            pair->crowd += pnr_power(pair->p[i][j]) / J;
    for (int g = 0; g < N_GRID; g++) {
        echo_at(pair, (double)g / GRID - PNR_PAIR_REACH, r[g], NULL);
        pnr_matrix_apply(pair->w, r[g], pair->weighed[g]);
        pair->energy[g] = creal(pnr_inner(r[g], pair->weighed[g]));
    }
    for (int g = 0; g < N_GRID; g++)
        for (int h = 0; h < N_GRID; h++)
            pair->overlap[g][h] = pnr_inner(r[g], pair->weighed[h]);
    return PNR_OK;
}

void pnr_fit_pair_destroy(pnr_fit_pair *pair)
{
    free(pair);
}

/* Finds the pair of delays in the table that explains the greatest part of c. The two delays are at
 * least one lag apart. */
static void search_table(const pnr_fit_pair *pair, const double complex *c, double d[2])
{
    double complex on[N_GRID];
    double best = -1;

    for (int g = 0; g < N_GRID; g++)
        on[g] = pnr_inner(pair->weighed[g], c);
    for (int g = 0; g < N_GRID; g++)
        for (int h = 0; h < g - GRID / 2; h++) {
            const double complex cross = pair->overlap[g][h];
            const double det = pair->energy[g] * pair->energy[h] - pnr_power(cross);
            const double gain =
                (pnr_power(on[g]) * pair->energy[h] + pnr_power(on[h]) * pair->energy[g] -
                 2 * creal(conj(on[g]) * cross * on[h])) /
                det;

            if (det > 1e-6 && gain > best) {
                best = gain;
                d[0] = (double)g / GRID - PNR_PAIR_REACH;
                d[1] = (double)h / GRID - PNR_PAIR_REACH;
            }
        }
}

/* Replaces the symmetric positive matrix a by its inverse (Gauss and Jordan). Returns false if the
 * matrix is singular. */
static bool invert(double a[N][N])
{
    for (int p = 0; p < N; p++) {
        const double pivot = a[p][p];

        if (!(pivot > 1e-12))
            return false;
        a[p][p] = 1;
        for (int j = 0; j < N; j++)
            a[p][j] /= pivot;
        for (int i = 0; i < N; i++) {
            const double factor = a[i][p];

            if (i == p)
                continue;
            a[i][p] = 0;
            for (int j = 0; j < N; j++)
                a[i][j] -= factor * a[p][j];
        }
    }
    return true;
}

/* The two echoes of a step, and their columns: [0..2] of the first echo, [3..5] of the second
 * echo. */
typedef struct state {
    double d[2];
    double complex a[2];
    pnr_vector column[N], rest;
    double inverse[N][N], along[N]; /* F^-1; Re J^H W rest */
    double energy;                  /* rest^H W rest */
} state;

/* Fills columns, rest and F^-1 at s->d and s->a. Returns false if F is singular. */
static bool evaluate(const pnr_fit_pair *pair, const double complex *c, state *s)
{
    pnr_vector weighed[N], weighed_rest, slope;

    memcpy(s->rest, c, sizeof s->rest);
    for (int e = 0; e < 2; e++) {
        double complex *r = s->column[3 * e];

        echo_at(pair, s->d[e], r, slope);
        for (int j = 0; j < J; j++) {
            s->column[3 * e + 1][j] = CMPLX(-cimag(r[j]), creal(r[j]));
            s->column[3 * e + 2][j] = s->a[e] * slope[j];
            s->rest[j] -= s->a[e] * r[j];
        }
    }
    pnr_matrix_apply(pair->w, s->rest, weighed_rest);
    s->energy = creal(pnr_inner(s->rest, weighed_rest));
    for (int i = 0; i < N; i++) {
        pnr_matrix_apply(pair->w, s->column[i], weighed[i]);
        s->along[i] = creal(pnr_inner(weighed[i], s->rest));
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            s->inverse[i][k] = creal(pnr_inner(s->column[i], weighed[k]));
    return invert(s->inverse);
}

/* Solves for the amplitudes at the delays of s. */
static void solve_amplitudes(const pnr_fit_pair *pair, const double complex *c, state *s)
{
    pnr_vector r[2], w[2];
    double complex on[2];

    for (int e = 0; e < 2; e++) {
        echo_at(pair, s->d[e], r[e], NULL);
        pnr_matrix_apply(pair->w, r[e], w[e]);
        on[e] = pnr_inner(w[e], c);
    }

    const double complex cross = pnr_inner(r[0], w[1]);
    const double first = creal(pnr_inner(r[0], w[0])), second = creal(pnr_inner(r[1], w[1]));
    const double det = first * second - pnr_power(cross);

    s->a[0] = (second * on[0] - cross * on[1]) / det;
    s->a[1] = (first * on[1] - conj(cross) * on[0]) / det;
}

/* Fills one echo: delay, peak, gain, power, cells and the variances. The variances are for noise of
 * power 1 in a cell, multiplied by S = |a|^2. */
static void describe(const state *s, int e, pnr_fitted *out)
{
    const double(*v)[N] = (const double(*)[N])s->inverse;
    const int at = 3 * e;
    const double power = pnr_power(s->a[e]), re = creal(s->a[e]), im = cimag(s->a[e]);
    const double cross = re * im * v[at][at + 1];

    *out = (pnr_fitted){
        .delay = s->d[e],
        .peak = s->a[e],
        .gain = power,
        .power = power,
        .cells = (v[at][at] + v[at + 1][at + 1]) / 2,
        .delay_variance = v[at + 2][at + 2] / 2 * power,
        .amplitude_variance =
            (re * re * v[at][at] + im * im * v[at + 1][at + 1] + 2 * cross) / (2 * power),
        .phase_variance =
            (im * im * v[at][at] + re * re * v[at + 1][at + 1] - 2 * cross) / (2 * power),
    };
}

/* Fills the noise power of a cell: the power of the residual, divided by the mean power of the
 * residual for noise of power 1. */
static void find_noise(const pnr_fit_pair *pair, const state *s, pnr_fitted_pair *out)
{
    double left = J, energy = 0;

    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            left -= creal(pnr_inner(s->column[i], s->column[k])) * s->inverse[i][k] / 2;
    left = fmax(left, 0.1);
    for (int j = 0; j < J; j++)
        energy += pnr_power(s->rest[j]);
    out->noise = energy / left;
    out->cells = fmin(fmax((left - 1) / pair->crowd + 1, 0.5), J - 3);
}

bool pnr_fit_pair_find(const pnr_fit_pair *pair, const double complex *c, pnr_fitted_pair *out)
{
    state s = {.d = {0}}, next;

    search_table(pair, c, s.d);
    solve_amplitudes(pair, c, &s);
    if (!evaluate(pair, c, &s))
        return false;

    double size = 1, scale = 1;

    for (int i = 0; i < STEPS && size > 1e-6; i++) {
        next = s;
        for (int e = 0; e < 2; e++) {
            double step = 0;

            for (int k = 0; k < N; k++)
                step += s.inverse[3 * e + 2][k] * s.along[k];
            next.d[e] += fmin(fmax(step, -0.3), 0.3) * scale;
        }
        size = fmax(fabs(next.d[0] - s.d[0]), fabs(next.d[1] - s.d[1]));
        solve_amplitudes(pair, c, &next);
        if (evaluate(pair, c, &next) && next.energy < s.energy) {
            s = next;
            scale = 1;
        } else {
            scale /= 2;
        }
    }
    if (!(fmax(fabs(s.d[0]), fabs(s.d[1])) <= PNR_PAIR_REACH))
        return false;

    pnr_vector weighed;
    const int first = pnr_power(s.a[0]) < pnr_power(s.a[1]);

    describe(&s, first, &out->echo[0]);
    describe(&s, 1 - first, &out->echo[1]);
    find_noise(pair, &s, out);
    pnr_matrix_apply(pair->w, c, weighed);
    out->gain = creal(pnr_inner(c, weighed)) - s.energy;
    return true;
}
