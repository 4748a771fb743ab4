/* SPDX-License-Identifier: MIT */
/* Computes CFAR factors. The statistic of the training cells has a density, and Pfa is an integral
 * over this density. Newton's method inverts Pfa. */
#include "setup/cfar_factor.h"

#include "engine/plan.h"
#include "setup/threshold.h"

#include <math.h>
#include <stdlib.h>

enum { HALF = 4096, EXACT_LOOKS = 32, MAX_STEPS = 100 };

/* The statistic Z of the training cells of one cell. Its density is computed at the nodes z =
 * n_looks exp(i step), for each node at its first use. */
typedef struct statistic {
    pnr_cfar_kind kind;
    double n_looks; /* looks in a cell; also the mean power of a cell of noise */
    double before, after;
    double step;
    double log_density[2 * HALF + 1]; /* log of the density of log Z at the nodes; NAN: not computed
                                       * yet */
} statistic;

/* Returns the log of the density of log Z at Z = z, for GO and SO: the mean of one side is z, and
 * the mean of the other side is at most (GO) or at least (SO) z. */
static double log_density_of_sides(const statistic *s, double z)
{
    const pnr_gamma_logs b = pnr_gamma_log(s->before * s->n_looks, s->before * z);
    const pnr_gamma_logs a = pnr_gamma_log(s->after * s->n_looks, s->after * z);
    const bool is_greater = s->kind == PNR_CFAR_GO;
    const double log_before = b.density + (is_greater ? a.p : a.q);
    const double log_after = a.density + (is_greater ? b.p : b.q);

    return fmax(log_before, log_after) + log1p(exp(-fabs(log_before - log_after)));
}

/* Returns the log of the density of log Z at Z = z, for OS: one of m cells is z, rank - 1 cells are
 * below z, and m - rank cells are above z. */
static double log_density_of_rank(const statistic *s, double z)
{
    const double m = s->before + s->after, rank = ceil(3 * m / 4);
    const pnr_gamma_logs cell = pnr_gamma_log(s->n_looks, z);

    return lgamma(m + 1) - lgamma(rank) - lgamma(m - rank + 1) + (rank - 1) * cell.p +
           (m == rank ? 0 : (m - rank) * cell.q) + cell.density;
}

static double log_density(const statistic *s, double z)
{
    const double m = s->before + s->after;

    if (s->kind == PNR_CFAR_OS)
        return log_density_of_rank(s, z);
    if (s->kind == PNR_CFAR_CA || s->before == 0 || s->after == 0)
        return pnr_gamma_log(m * s->n_looks, m * z).density;
    return log_density_of_sides(s, z);
}

/* Sets the step. K is the gamma shape of the sum of all cells. The integrand is at least 1 /
 * sqrt(K) wide in log z. The relative error of the trapezoidal rule is then |Gamma(K + 2 pi i /
 * step) / Gamma(K)|, which is below 1e-12. */
static void start_statistic(statistic *s, pnr_cfar_kind kind, size_t n_looks, size_t before,
                            size_t after)
{
    const double shape = (double)(before + after + 1) * (double)n_looks;

    *s = (statistic){.kind = kind,
                     .n_looks = (double)n_looks,
                     .before = (double)before,
                     .after = (double)after,
                     .step = 0.6 / sqrt(shape + 2.5)};
    for (int i = 0; i <= 2 * HALF; i++)
        s->log_density[i] = NAN;
}

/* The logarithms of two integrands over log z at one node. log_value is for Pfa, and log_slope is
 * for -d Pfa / d log f. */
typedef struct node {
    double log_value, log_slope;
} node;

static node node_at(statistic *s, double log_factor, int i)
{
    const double z = s->n_looks * exp(i * s->step);
    const pnr_gamma_logs cell = pnr_gamma_log(s->n_looks, exp(log_factor) * z);

    if (isnan(s->log_density[HALF + i]))
        s->log_density[HALF + i] = log_density(s, z);
    return (node){.log_value = s->log_density[HALF + i] + cell.q,
                  .log_slope = s->log_density[HALF + i] + cell.density};
}

/* Returns log Pfa. *slope: the derivative of log Pfa with respect to log f. Adds terms from the
 * peak of the integrand outwards, until a term is below the rounding error. */
static double log_pfa(statistic *s, double log_factor, double *slope)
{
    int peak = 0;
    node highest = node_at(s, log_factor, 0);
    double sum, slopes;

    for (int way = -1; way <= 1; way += 2)
        while (abs(peak + way) <= HALF) {
            const node next = node_at(s, log_factor, peak + way);

            if (!(next.log_value > highest.log_value))
                break;
            highest = next;
            peak += way;
        }
    sum = 1;
    slopes = exp(highest.log_slope - highest.log_value);
    for (int way = -1; way <= 1; way += 2)
        for (int i = peak + way; abs(i) <= HALF; i += way) {
            const node next = node_at(s, log_factor, i);
            const double value = exp(next.log_value - highest.log_value);

            sum += value;
            slopes += exp(next.log_slope - highest.log_value);
            if (value < 1e-17 * sum)
                break;
        }
    *slope = -slopes / sum;
    return highest.log_value + log(sum * s->step);
}

/* Returns log f, solved from Pfa = pfa_cell by Newton's method. log Pfa is concave in log f, so
 * after the first step f is never below the solution. */
static double log_factor_from(double guess, statistic *s, double pfa_cell)
{
    double x = guess;

    for (int i = 0; i < MAX_STEPS; i++) {
        double slope;
        const double step = (log(pfa_cell) - log_pfa(s, x, &slope)) / slope;

        x += step;
        if (fabs(step * slope) < 1e-11)
            break;
    }
    return x;
}

double pnr_cfar_factor(pnr_cfar_kind kind, double pfa_cell, size_t n_looks, size_t before,
                       size_t after)
{
    statistic s;

    if (before + after == 0)
        return INFINITY;
    start_statistic(&s, kind, n_looks, before, after);
    return exp(log_factor_from(0, &s, pfa_cell));
}

/* Returns the number of training cells on one side of a cell. beyond: the number of cells between
 * this cell and the end of the CFAR axis. */
static size_t cells_within(const pnr_cfar *cfar, size_t beyond)
{
    const size_t fitting = beyond > cfar->guard ? (beyond - cfar->guard - 1) / cfar->stride + 1 : 0;

    return fitting < cfar->training ? fitting : cfar->training;
}

/* Fills the table for one number of looks. Computes the factors of the pairs (before, after) in
 * their order along the CFAR axis, so that each factor is the initial guess of the next factor. The
 * second half of the axis mirrors the first half. */
static void fill_looks(const pnr_cfar *cfar, double pfa_cell, size_t n_looks, size_t n_cells,
                       double *factor)
{
    const size_t full = cfar->training, side = full + 1;
    double x = 0;
    statistic s;

    for (size_t i = 0; i < side * side; i++)
        factor[i] = INFINITY;
    for (size_t p = 0; p < n_cells - n_cells / 2 || n_cells == 0; p++) {
        const size_t before = n_cells == 0 ? full : cells_within(cfar, p);
        const size_t after = n_cells == 0 ? full : cells_within(cfar, n_cells - 1 - p);
        double *const here = &factor[before * side + after];

        if (before + after > 0 && isinf(*here)) {
            start_statistic(&s, cfar->kind, n_looks, before, after);
            x = log_factor_from(x, &s, pfa_cell);
            *here = factor[after * side + before] = exp(x);
        }
        if (before == full && after == full)
            break;
    }
}

/* Returns the next number of looks whose factors are computed exactly. It is at most `last`. */
static size_t next_exact(size_t n_looks, size_t last)
{
    const size_t next = n_looks + (n_looks < EXACT_LOOKS ? 1 : n_looks / 8);

    return next < last ? next : last;
}

/* Returns the number of cells along the CFAR axis, lags or rows; 0 if the axis is cyclic. */
static size_t line_cells(const pnr_plan *plan)
{
    if (plan->cfar.axis == PNR_CFAR_ALONG_ROWS)
        return pnr_plan_rows(plan);
    if (plan->filter != NULL && plan->gate_count < plan->n_lags)
        return plan->gate_count;
    return plan->linear ? plan->n_lags : 0;
}

void pnr_cfar_factors(const pnr_plan *plan, double pfa_cell, double *factor)
{
    const pnr_cfar *const cfar = &plan->cfar;
    const size_t n_looks = plan->n_looks, n_cells = line_cells(plan);
    const size_t size = (cfar->training + 1) * (cfar->training + 1);

    fill_looks(cfar, pfa_cell, 1, n_cells, factor);
    for (size_t from = 1; from < n_looks;) {
        const size_t to = next_exact(from, n_looks);
        const double *const low = factor + (from - 1) * size, *const high =
                                                                  factor + (to - 1) * size;

        fill_looks(cfar, pfa_cell, to, n_cells, factor + (to - 1) * size);
        for (size_t looks = from + 1; looks < to; looks++) {
            const double share = (1 / sqrt((double)looks) - 1 / sqrt((double)from)) /
                                 (1 / sqrt((double)to) - 1 / sqrt((double)from));

            for (size_t i = 0; i < size; i++)
                factor[(looks - 1) * size + i] =
                    isinf(low[i]) ? INFINITY : low[i] * (1 - share) + high[i] * share;
        }
        from = to;
    }
}

double pnr_cfar_loss_db(pnr_cfar_kind kind, double pfa_cell, size_t n_looks, size_t training)
{
    /* With this number of training cells on each side, the noise is known. */
    static const size_t endless = (size_t)1 << 20;
    const double snr = pnr_cfar_factor(kind, pfa_cell, n_looks, training, training) /
                           pnr_cfar_factor(kind, 0.5, n_looks, training, training) -
                       1;
    const double known = pnr_cfar_factor(PNR_CFAR_CA, pfa_cell, n_looks, endless, endless) /
                             pnr_cfar_factor(PNR_CFAR_CA, 0.5, n_looks, endless, endless) -
                         1;

    return 10 * log10(snr / known);
}
