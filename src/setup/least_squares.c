/* SPDX-License-Identifier: MIT */
/* The inverse of a Hermitian Toeplitz matrix by N. Levinson's and W. F. Trench's recursions, its
 * condition, and rows of equal noise. */
#include "setup/least_squares.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REACH = PNR_NEIGHBOURS / 2, POWER_STEPS = 24 };

/* Engines compute in single precision: their errors grow with the root of the condition, here to
 * 1e-4 of the strongest echo. */
static const double worst_condition = 1e6;

typedef double value[2]; /* re, im */

/* out += a b */
static void add_product(const value a, const value b, value out)
{
    out[0] += a[0] * b[0] - a[1] * b[1];
    out[1] += a[0] * b[1] + a[1] * b[0];
}

/*
 * Levinson: finds a with a[0] = 1 and T a = (E, 0, .. 0), T[k][j] = r[k - j]; a / E is the first
 * column of T^-1. Returns E, the least error of a gate's column predicted from the columns after
 * it; 0 or less when T is not positive definite within rounding.
 */
static double predict_columns(const value *r, size_t n, value *a)
{
    double error = r[0][0];

    memset(a, 0, n * sizeof *a);
    a[0][0] = 1;
    for (size_t m = 1; m < n && error > 0; m++) {
        value delta = {0};

        for (size_t j = 0; j < m; j++)
            add_product(r[m - j], a[j], delta);

        const value k = {-delta[0] / error, -delta[1] / error};

        for (size_t j = 0; 2 * j <= m; j++) { /* a[j] += k conj(a[m - j]), both ends at once */
            const value low = {a[j][0], -a[j][1]}, high = {a[m - j][0], -a[m - j][1]};

            add_product(k, high, a[j]);
            if (2 * j < m)
                add_product(k, low, a[m - j]);
        }
        error *= 1 - (k[0] * k[0] + k[1] * k[1]);
    }
    return error;
}

/* Trench: fills T^-1 from its first column x = a / E along the diagonals:
 *     B[i + 1][j + 1] = B[i][j] + E (x[i + 1] conj(x[j + 1]) - conj(x[n - 1 - i]) x[n - 1 - j]). */
static void invert_toeplitz(const value *a, double error, size_t n, value *b)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) {
            value *at = &b[i * n + j];

            if (i == 0) {
                (*at)[0] = a[j][0] / error;
                (*at)[1] = -a[j][1] / error;
            } else {
                const double *p = a[i], *q = a[j], *s = a[n - i], *t = a[n - j];
                const double *before = b[(i - 1) * n + j - 1];

                (*at)[0] =
                    before[0] + (p[0] * q[0] + p[1] * q[1] - s[0] * t[0] - s[1] * t[1]) / error;
                (*at)[1] =
                    before[1] + (p[1] * q[0] - p[0] * q[1] - s[0] * t[1] + s[1] * t[0]) / error;
            }
            b[j * n + i][0] = (*at)[0];
            b[j * n + i][1] = -(*at)[1];
        }
}

/* y = T x with T[k][j] = r[k - j]; y = B x when b is not NULL. */
static void multiply_matrix(const value *r, const value *b, size_t n, const value *x, value *y)
{
    for (size_t k = 0; k < n; k++) {
        value sum = {0};

        if (b != NULL) {
            for (size_t j = 0; j < n; j++)
                add_product(b[k * n + j], x[j], sum);
        } else {
            for (size_t j = 0; j <= k; j++)
                add_product(r[k - j], x[j], sum);
            for (size_t j = k + 1; j < n; j++)
                add_product((const value){r[j - k][0], -r[j - k][1]}, x[j], sum);
        }
        memcpy(y[k], sum, sizeof sum);
    }
}

/* The greatest eigenvalue by power iteration, which approaches it from below. x, y: [n]. */
static double greatest_eigenvalue(const value *r, const value *b, size_t n, value *x, value *y)
{
    double length = 0;

    for (size_t k = 0; k < n; k++) { /* a chirp holds every frequency */
        const double phase = M_PI * (double)(k * k % (2 * n)) / (double)n;

        x[k][0] = cos(phase) / sqrt((double)n);
        x[k][1] = sin(phase) / sqrt((double)n);
    }
    for (int step = 0; step < POWER_STEPS; step++) {
        multiply_matrix(r, b, n, (const value *)x, y);
        length = 0;
        for (size_t k = 0; k < n; k++)
            length += y[k][0] * y[k][0] + y[k][1] * y[k][1];
        length = sqrt(length);
        for (size_t k = 0; k < n; k++) {
            x[k][0] = y[k][0] / length;
            x[k][1] = y[k][1] / length;
        }
    }
    return length;
}

/* R(0) is 1, so the loss is the diagonal. */
static void scale_rows(pnr_least_squares *ls)
{
    const size_t n = ls->n_gates;
    double sum = 0, worst = ls->filter[0][0];

    for (size_t k = 0; k < n; k++) {
        const double loss = ls->filter[k * n + k][0], scale = 1 / sqrt(loss);

        for (size_t j = 0; j < n; j++) {
            ls->filter[k * n + j][0] *= scale;
            ls->filter[k * n + j][1] *= scale;
        }
        ls->loss[k] = loss;
        sum += loss;
        worst = fmax(worst, loss);
    }
    ls->mean_loss_db = 10 * log10(sum / (double)n);
    ls->worst_loss_db = 10 * log10(worst);
}

/* Finds T^-1 for R(0) = 1, and its condition. space: [4 n_gates]. false: T is nearly singular. */
static bool solve_gates(pnr_least_squares *ls, value *space)
{
    const size_t n = ls->n_gates;
    value *r = space, *a = space + n, *x = space + 2 * n, *y = space + 3 * n;

    for (size_t d = 0; d < n; d++)
        pnr_waveform_at(ls->autocorrelation, (double)d, r[d]);

    const double least = predict_columns((const value *)r, n, a);

    for (size_t d = 0; d < PNR_NEIGHBOURS; d++)
        pnr_waveform_at(ls->autocorrelation, (double)d, ls->near[d]);
    ls->condition = INFINITY;
    if (!(least > 0))
        return false;
    invert_toeplitz((const value *)a, least, n, ls->filter);
    ls->condition = greatest_eigenvalue((const value *)r, NULL, n, x, y) *
                    greatest_eigenvalue((const value *)r, (const value *)ls->filter, n, x, y);
    return ls->condition < worst_condition;
}

static int refuse_condition(const pnr_least_squares *ls, pnr_error *error)
{
    char number[32] = "without bound";

    if (isfinite(ls->condition))
        snprintf(number, sizeof number, "%.2g", ls->condition);
    return pnr_error_set(error, PNR_ECONFIG,
                         "window.filter = least-squares: the code cannot tell echoes of the %zu "
                         "range gates apart: condition number %s, at most %g is possible; it needs "
                         "fewer gates, or power at all frequencies",
                         ls->n_gates, number, worst_condition);
}

int pnr_least_squares_create(const pnr_waveform *autocorrelation, size_t n_gates, bool is_cyclic,
                             pnr_least_squares **out, pnr_error *error)
{
    pnr_least_squares *ls;
    value *space = NULL;
    int rc = PNR_OK;

    *out = NULL;
    if (n_gates < 1 || n_gates > PNR_MAX_FILTER_GATES)
        return pnr_error_set(error, PNR_ECONFIG,
                             "window.filter = least-squares: %zu range gates; at most %d are "
                             "possible: choose radar.min_range_m and radar.max_range_m",
                             n_gates, PNR_MAX_FILTER_GATES);
    if ((ls = calloc(1, sizeof *ls)) != NULL) {
        ls->n_gates = n_gates;
        ls->is_cyclic = is_cyclic;
        ls->autocorrelation = autocorrelation;
        ls->filter = malloc(n_gates * n_gates * sizeof *ls->filter);
        ls->loss = malloc(n_gates * sizeof *ls->loss);
        space = malloc(4 * n_gates * sizeof *space);
    }
    if (space == NULL || ls->filter == NULL || ls->loss == NULL) {
        rc = pnr_error_set(error, PNR_ENOMEMORY, "no memory for a filter of %zu range gates",
                           n_gates);
    } else if (!solve_gates(ls, space)) {
        rc = refuse_condition(ls, error);
    } else {
        scale_rows(ls);
        *out = ls;
        ls = NULL;
    }
    pnr_least_squares_destroy(ls);
    free(space);
    return rc;
}

void pnr_least_squares_destroy(pnr_least_squares *least_squares)
{
    if (least_squares == NULL)
        return;
    free(least_squares->filter);
    free(least_squares->loss);
    free(least_squares);
}

/* Gate `gate` + i - REACH; n_gates when there is none. */
static size_t neighbour_gate(const pnr_least_squares *ls, size_t gate, size_t i)
{
    const size_t n = ls->n_gates;

    if (ls->is_cyclic)
        return (gate + i + n - REACH % n) % n;
    return gate + i < REACH || gate + i - REACH >= n ? n : gate + i - REACH;
}

void pnr_least_squares_response(const pnr_least_squares *least_squares, size_t gate, double delay,
                                double out[PNR_NEIGHBOURS][2])
{
    const size_t n = least_squares->n_gates;
    const value *rows[PNR_NEIGHBOURS] = {NULL}; /* NULL at places without a gate */

    for (size_t i = 0; i < PNR_NEIGHBOURS; i++) {
        const size_t k = neighbour_gate(least_squares, gate, i);

        if (k < n)
            rows[i] = (const value *)least_squares->filter + k * n;
        out[i][0] = out[i][1] = 0;
    }
    for (size_t j = 0; j < n; j++) {
        value rho;

        pnr_waveform_at(least_squares->autocorrelation, (double)j - (double)gate - delay, rho);
        for (size_t i = 0; i < PNR_NEIGHBOURS; i++)
            if (rows[i] != NULL)
                add_product(rows[i][j], rho, out[i]);
    }
}

void pnr_least_squares_restore(const pnr_least_squares *least_squares, size_t gate,
                               const double filtered[PNR_NEIGHBOURS][2],
                               double out[PNR_NEIGHBOURS][2])
{
    memset(out, 0, PNR_NEIGHBOURS * sizeof *out);
    for (size_t j = 0; j < PNR_NEIGHBOURS; j++) {
        const size_t k = neighbour_gate(least_squares, gate, j);

        if (k == least_squares->n_gates)
            continue;

        const double scale = sqrt(least_squares->loss[k]);
        const value echo = {scale * filtered[j][0], scale * filtered[j][1]};

        for (size_t i = 0; i < PNR_NEIGHBOURS; i++) {
            const double *rho = least_squares->near[i > j ? i - j : j - i];

            add_product(echo, (const value){rho[0], i < j ? -rho[1] : rho[1]}, out[i]);
        }
    }
}

void pnr_least_squares_echo(const pnr_least_squares *least_squares, size_t gate, double delay,
                            double out[PNR_NEIGHBOURS][2])
{
    value filtered[PNR_NEIGHBOURS];

    pnr_least_squares_response(least_squares, gate, delay, filtered);
    pnr_least_squares_restore(least_squares, gate, (const value *)filtered, out);
}
