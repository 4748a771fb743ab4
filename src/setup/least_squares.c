/* SPDX-License-Identifier: MIT */
/* Inverts a Hermitian Toeplitz matrix by the recursions of N. Levinson and W. F. Trench. Estimates
 * its condition number. Scales the rows of the inverse so that all filtered values have the same
 * noise. */
#include "setup/least_squares.h"

#include "base/complex.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REACH = PNR_NEIGHBOURS / 2, POWER_STEPS = 24 };

/* Engines compute in single precision. Their errors grow with the square root of the condition
 * number. At this condition number they are 1e-4 of the strongest echo. */
static const double worst_condition = 1e6;

/*
 * Levinson's recursion: computes `a` with a[0] = 1 and T a = (E, 0, .. 0), T[k][j] = r[k - j]. a /
 * E is the first column of T^-1. Returns E, the least squared error of a prediction of one column
 * by the columns after it. E is 0 or less if T is not positive definite within rounding.
 */
static double predict_columns(const double complex *r, size_t n, double complex *a)
{
    double error = creal(r[0]);

    memset(a, 0, n * sizeof *a);
    a[0] = 1;
    for (size_t m = 1; m < n && error > 0; m++) {
        double complex delta = 0;

        for (size_t j = 0; j < m; j++)
            delta += r[m - j] * a[j];

        const double complex k = -delta / error;

        for (size_t j = 0; 2 * j <= m; j++) { /* a[j] += k conj(a[m - j]), for both ends at once */
            const double complex low = conj(a[j]), high = conj(a[m - j]);

            a[j] += k * high;
            if (2 * j < m)
                a[m - j] += k * low;
        }
        error *= 1 - pnr_power(k);
    }
    return error;
}

/* Trench's recursion: computes B = T^-1 from its first column x = a / E along the diagonals:
 *     B[i + 1][j + 1] = B[i][j] + E (x[i + 1] conj(x[j + 1]) - conj(x[n - 1 - i]) x[n - 1 - j]). */
static void invert_toeplitz(const double complex *a, double error, size_t n, double complex *b)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) {
            double complex *at = &b[i * n + j];

            if (i == 0) {
                *at = conj(a[j]) / error;
            } else { /* the product is written out, so that the order of the additions is fixed */
                const double complex pq = a[i] * conj(a[j]), s = a[n - i], t = a[n - j];

                *at = b[(i - 1) * n + j - 1] +
                      CMPLX(creal(pq) - creal(s) * creal(t) - cimag(s) * cimag(t),
                            cimag(pq) - creal(s) * cimag(t) + cimag(s) * creal(t)) /
                          error;
            }
            b[j * n + i] = conj(*at);
        }
}

/* Computes y = T x with T[k][j] = r[k - j], or y = B x if b is not NULL. */
static void multiply_matrix(const double complex *r, const double complex *b, size_t n,
                            const double complex *x, double complex *y)
{
    for (size_t k = 0; k < n; k++) {
        double complex sum = 0;

        if (b != NULL) {
            for (size_t j = 0; j < n; j++)
                sum += b[k * n + j] * x[j];
        } else {
            for (size_t j = 0; j <= k; j++)
                sum += r[k - j] * x[j];
            for (size_t j = k + 1; j < n; j++)
                sum += conj(r[j - k]) * x[j];
        }
        y[k] = sum;
    }
}

/* Returns the greatest eigenvalue of T, or of B if b is not NULL. Power iteration approaches the
 * eigenvalue from below. x, y: [n] memory for vectors. */
static double greatest_eigenvalue(const double complex *r, const double complex *b, size_t n,
                                  double complex *x, double complex *y)
{
    double length = 0;

    for (size_t k = 0; k < n; k++) { /* starts from a chirp, which has power at every frequency */
        const double phase = M_PI * (double)(k * k % (2 * n)) / (double)n;

        x[k] = pnr_cis(phase) / sqrt((double)n);
    }
    for (int step = 0; step < POWER_STEPS; step++) {
        multiply_matrix(r, b, n, x, y);
        length = 0;
        for (size_t k = 0; k < n; k++)
            length += pnr_power(y[k]);
        length = sqrt(length);
        for (size_t k = 0; k < n; k++)
            x[k] = y[k] / length;
    }
    return length;
}

/* Divides each row of T^-1 by the square root of its diagonal element. The diagonal element is the
 * loss of the gate, because R(0) is 1. */
static void scale_rows(pnr_least_squares *ls)
{
    const size_t n = ls->n_gates;
    double sum = 0, worst = creal(ls->filter[0]);

    for (size_t k = 0; k < n; k++) {
        const double loss = creal(ls->filter[k * n + k]), scale = 1 / sqrt(loss);

        for (size_t j = 0; j < n; j++)
            ls->filter[k * n + j] *= scale;
        ls->loss[k] = loss;
        sum += loss;
        worst = fmax(worst, loss);
    }
    ls->mean_loss_db = 10 * log10(sum / (double)n);
    ls->worst_loss_db = 10 * log10(worst);
}

/* Computes T^-1 and the condition number of T for R(0) = 1. space: [4 n_gates]. Returns false if T
 * is nearly singular. */
static bool solve_gates(pnr_least_squares *ls, double complex *space)
{
    const size_t n = ls->n_gates;
    double complex *r = space, *a = space + n, *x = space + 2 * n, *y = space + 3 * n;

    for (size_t d = 0; d < n; d++)
        r[d] = pnr_waveform_at(ls->autocorrelation, (double)d);

    const double least = predict_columns(r, n, a);

    for (size_t d = 0; d < PNR_NEIGHBOURS; d++)
        ls->near[d] = pnr_waveform_at(ls->autocorrelation, (double)d);
    ls->condition = INFINITY;
    if (!(least > 0))
        return false;
    invert_toeplitz(a, least, n, ls->filter);
    ls->condition =
        greatest_eigenvalue(r, NULL, n, x, y) * greatest_eigenvalue(r, ls->filter, n, x, y);
    return ls->condition < worst_condition;
}

static int refuse_condition(const pnr_least_squares *ls, pnr_error *error)
{
    char number[32] = "without bound";

    if (isfinite(ls->condition))
        snprintf(number, sizeof number, "%.2g", ls->condition);
    return pnr_refuse(
        error,
        "window.filter = least-squares: the code cannot separate echoes of the %zu range "
        "gates: condition number %s, at most %g is possible; it needs fewer "
        "gates, or power at all frequencies",
        ls->n_gates, number, worst_condition);
}

int pnr_least_squares_create(const pnr_waveform *autocorrelation, size_t n_gates, bool is_cyclic,
                             pnr_least_squares **out, pnr_error *error)
{
    pnr_least_squares *ls;
    double complex *space = NULL;
    int rc = PNR_OK;

    *out = NULL;
    if (n_gates < 1 || n_gates > PNR_MAX_FILTER_GATES)
        return pnr_refuse(error,
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

/* Returns the index of the gate `gate` + i - REACH, or n_gates if there is no such gate. */
static size_t neighbour_gate(const pnr_least_squares *ls, size_t gate, size_t i)
{
    const size_t n = ls->n_gates;

    if (ls->is_cyclic)
        return (gate + i + n - REACH % n) % n;
    return gate + i < REACH || gate + i - REACH >= n ? n : gate + i - REACH;
}

void pnr_least_squares_response(const pnr_least_squares *least_squares, size_t gate, double delay,
                                double complex *out)
{
    const size_t n = least_squares->n_gates;
    const double complex *rows[PNR_NEIGHBOURS] = {NULL}; /* NULL: there is no such gate */

    for (size_t i = 0; i < PNR_NEIGHBOURS; i++) {
        const size_t k = neighbour_gate(least_squares, gate, i);

        if (k < n)
            rows[i] = least_squares->filter + k * n;
        out[i] = 0;
    }
    for (size_t j = 0; j < n; j++) {
        const double complex rho =
            pnr_waveform_at(least_squares->autocorrelation, (double)j - (double)gate - delay);

        for (size_t i = 0; i < PNR_NEIGHBOURS; i++)
            if (rows[i] != NULL)
                out[i] += rows[i][j] * rho;
    }
}

void pnr_least_squares_restore(const pnr_least_squares *least_squares, size_t gate,
                               const double complex *filtered, double complex *out)
{
    memset(out, 0, PNR_NEIGHBOURS * sizeof *out);
    for (size_t j = 0; j < PNR_NEIGHBOURS; j++) {
        const size_t k = neighbour_gate(least_squares, gate, j);

        if (k == least_squares->n_gates)
            continue;

        const double complex echo = sqrt(least_squares->loss[k]) * filtered[j];

        for (size_t i = 0; i < PNR_NEIGHBOURS; i++) {
            const double complex rho = least_squares->near[i > j ? i - j : j - i];

            out[i] += echo * (i < j ? conj(rho) : rho);
        }
    }
}

void pnr_least_squares_echo(const pnr_least_squares *least_squares, size_t gate, double delay,
                            double complex *out)
{
    double complex filtered[PNR_NEIGHBOURS];

    pnr_least_squares_response(least_squares, gate, delay, filtered);
    pnr_least_squares_restore(least_squares, gate, filtered, out);
}
