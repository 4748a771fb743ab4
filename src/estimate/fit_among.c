/* SPDX-License-Identifier: MIT */
/* The fit of one echo among others. It solves for the factors of the others, subtracts the others,
 * fits the echo alone, and repeats this at the new delay. */
#include "estimate/fit_among.h"

#include "base/complex.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    OWN = 2, /* columns of the echo: r and r' */
    COLUMNS = OWN + PNR_AMONG_MOST,
    TURNS = 10, /* greatest number of fits */
    STEPS = 64, /* steps of the table of pulls from one lag to the next */
    N_STEPS = 2 * STEPS + 1
};

struct pnr_fit_among {
    const pnr_waveform *autocorrelation;
    pnr_vector w[J];
    pnr_fit_pull pulls[N_STEPS]; /* at the delays -1 .. 1 */
};

/* The normal equations. x: the columns; weighed: W x; gram: X^H W X + cell D, or its inverse. */
typedef struct equations {
    size_t n;
    pnr_vector x[COLUMNS], weighed[COLUMNS];
    double complex gram[COLUMNS][COLUMNS];
} equations;

/* Fills r and its derivative with respect to d, and W r and W r'. */
static void put_echo(const pnr_fit_among *among, double d, equations *q)
{
    pnr_waveform_run(among->autocorrelation, -MIDDLE - d, J, q->x[0], q->x[1]);
    for (int j = 0; j < J; j++)
        q->x[1][j] = -q->x[1][j];
    for (int i = 0; i < OWN; i++)
        pnr_matrix_apply(among->w, q->x[i], q->weighed[i]);
}

/* Fills the other echoes e_k, and W e_k. */
static void put_others(const pnr_fit_among *among, const pnr_vector *e, size_t n, equations *q)
{
    for (size_t k = 0; k < n; k++) {
        memcpy(q->x[OWN + k], e[k], sizeof q->x[OWN + k]);
        pnr_matrix_apply(among->w, e[k], q->weighed[OWN + k]);
    }
}

static void fill_pull(const pnr_fit_among *among, double d, pnr_fit_pull *out)
{
    equations q = {.n = OWN};

    put_echo(among, d, &q);

    const double energy = creal(pnr_inner(q.x[0], q.weighed[0]));
    const double complex coupling = pnr_inner(q.x[0], q.weighed[1]); /* r^H W r' */
    const double curvature = creal(pnr_inner(q.x[1], q.weighed[1])) - pnr_power(coupling) / energy;

    for (int j = 0; j < J; j++) {
        out->delay[j] = (q.weighed[1][j] - coupling / energy * q.weighed[0][j]) / curvature;
        out->amplitude[j] = (q.weighed[0][j] - creal(coupling) * out->delay[j]) / energy;
    }
}

int pnr_fit_among_create(const pnr_waveform *autocorrelation, pnr_fit_among **out)
{
    pnr_fit_among *among = malloc(sizeof *among);
    pnr_vector p[J];

    *out = among;
    if (among == NULL)
        return PNR_ENOMEMORY;
    among->autocorrelation = autocorrelation;
    pnr_matrix_weigh(autocorrelation, p, among->w);
    for (int s = 0; s < N_STEPS; s++)
        fill_pull(among, (double)(s - STEPS) / STEPS, &among->pulls[s]);
    return PNR_OK;
}

void pnr_fit_among_destroy(pnr_fit_among *among)
{
    free(among);
}

const pnr_fit_pull *pnr_fit_among_pull(const pnr_fit_among *among, double d)
{
    return &among->pulls[lrint((d + 1) * STEPS)];
}

/* Replaces a Hermitian positive matrix of n rows by its inverse (Gauss and Jordan). */
static void invert(double complex (*a)[COLUMNS], size_t n)
{
    for (size_t p = 0; p < n; p++) {
        const double pivot = 1 / creal(a[p][p]);

        a[p][p] = 1;
        for (size_t j = 0; j < n; j++)
            a[p][j] *= pivot;
        for (size_t i = 0; i < n; i++) {
            const double complex factor = a[i][p];

            if (i == p)
                continue;
            a[i][p] = 0;
            for (size_t j = 0; j < n; j++)
                a[i][j] -= factor * a[p][j];
        }
    }
}

/* Fills q->gram with (X^H W X + cell D)^-1. */
static void solve_equations(double cell, equations *q)
{
    for (size_t i = 0; i < q->n; i++)
        for (size_t k = 0; k < q->n; k++)
            q->gram[i][k] = pnr_inner(q->x[i], q->weighed[k]) + (i == k && i >= OWN ? cell : 0);
    invert(q->gram, q->n);
}

/* Fills rest with c minus the other echoes. *centre: the part subtracted in the middle. */
static void subtract_others(const equations *q, const double complex *c, double complex *rest,
                            double complex *centre)
{
    double complex on[COLUMNS];

    for (size_t i = 0; i < q->n; i++)
        on[i] = pnr_inner(q->weighed[i], c);
    memcpy(rest, c, J * sizeof *rest);
    for (size_t i = OWN; i < q->n; i++) {
        double complex factor = 0;

        for (size_t k = 0; k < q->n; k++)
            factor += q->gram[i][k] * on[k];
        for (int j = 0; j < J; j++)
            rest[j] -= factor * q->x[i][j];
    }
    *centre = c[MIDDLE] - rest[MIDDLE];
}

void pnr_fit_among_pull_beside(const pnr_fit_among *among, double d, const pnr_vector *e, size_t n,
                               double cell, pnr_fit_pull *out)
{
    equations q = {.n = OWN + n};

    put_echo(among, d, &q);
    put_others(among, e, n, &q);
    solve_equations(cell, &q);
    *out = (pnr_fit_pull){0};
    for (size_t k = 0; k < q.n; k++)
        for (int j = 0; j < J; j++) {
            out->amplitude[j] += conj(q.gram[0][k]) * q.weighed[k][j];
            out->delay[j] += conj(q.gram[1][k]) * q.weighed[k][j];
        }
}

/* Adds the variances that the unknown factors of the others cause. The inverse of the equations of
 * the echo alone has the determinant det. */
static void add_variances(const equations *q, pnr_fitted *fitted)
{
    const double energy = creal(pnr_inner(q->x[0], q->weighed[0]));
    const double curvature = creal(pnr_inner(q->x[1], q->weighed[1]));
    const double det = energy * curvature - pnr_power(pnr_inner(q->x[0], q->weighed[1]));

    fitted->delay_variance += fmax(creal(q->gram[1][1]) - energy / det, 0) / 2;
    fitted->amplitude_variance += fmax(creal(q->gram[0][0]) - curvature / det, 0) / 2;
}

bool pnr_fit_among_find(const pnr_fit_among *among, const pnr_fit *fit, const double complex *c,
                        const pnr_vector *e, size_t n, double cell, pnr_fitted *fitted,
                        double complex *centre)
{
    const double enough = 1e-3, edge = 0.98; /* sigmas, lags */
    equations q = {.n = OWN + n};
    pnr_fitted at = *fitted;

    put_others(among, e, n, &q);
    for (int turn = 0; turn < TURNS; turn++) {
        const double before = at.delay;
        double complex middle;
        pnr_vector rest;

        put_echo(among, before, &q);
        solve_equations(cell, &q);
        subtract_others(&q, c, rest, &middle);
        pnr_fit_find(fit, rest, before, &at);
        if (fabs(at.delay) > edge)
            return false;
        if (pow(at.delay - before, 2) * at.gain > enough * enough * at.delay_variance * cell)
            continue;
        add_variances(&q, &at);
        *fitted = at;
        *centre = middle;
        return true;
    }
    return false;
}
