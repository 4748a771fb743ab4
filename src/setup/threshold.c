/* SPDX-License-Identifier: MIT */
/* Computes thresholds from incomplete gamma and beta functions and from the correlation of cells.
 * Inverts these functions by bisection and by false position. */
#include "setup/threshold.h"

#include <float.h>
#include <math.h>

enum { MAX_TERMS = 100000 };

/* Returns log(x^a exp(-x) / Gamma(a)). For large a uses Stirling's series (6.1.41), because the
 * terms with lgamma would cancel. Numbers in parentheses are formulas of Abramowitz and Stegun
 * (1964). */
static double log_gamma_front(double a, double x)
{
    const double a2 = a * a, from_mean = (x - a) / a;

    if (a < 16)
        return a * log(x) - x - lgamma(a);
    return a * ((x < a / 2 ? log(x / a) : log1p(from_mean)) - from_mean) + log(a / (2 * M_PI)) / 2 -
           (1 - (1 - (2 - 1.5 / a2) / (7 * a2)) / (30 * a2)) / (12 * a);
}

/* Returns P(a, x) divided by x^a exp(-x) / Gamma(a), from the series (6.5.29). Best for x < a +
 * 1. */
static double gamma_series(double a, double x)
{
    double term = 1 / a, sum = term;

    for (int i = 1; i < MAX_TERMS && term > sum * DBL_EPSILON / 8; i++)
        sum += term *= x / (a + i);
    return sum;
}

/* Returns Q(a, x) divided by x^a exp(-x) / Gamma(a), from the continued fraction (6.5.31) by
 * Lentz's method. Best for x >= a + 1. */
static double gamma_fraction(double a, double x)
{
    double b = x + 1 - a, c = 1 / DBL_MIN, d = 1 / b, h = d;

    for (int i = 1; i < MAX_TERMS; i++) {
        const double an = -i * (i - a);

        b += 2;
        d = 1 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (fabs(d * c - 1) < DBL_EPSILON)
            break;
    }
    return h;
}

pnr_gamma_logs pnr_gamma_log(double a, double x)
{
    pnr_gamma_logs log_of = {.density = log_gamma_front(a, x)};

    if (x < a + 1) {
        log_of.p = log_of.density + log(gamma_series(a, x));
        log_of.q = log1p(-exp(log_of.p));
    } else {
        log_of.q = log_of.density + log(gamma_fraction(a, x));
        log_of.p = log1p(-exp(log_of.q));
    }
    return log_of;
}

double pnr_gamma_q(double a, double x)
{
    if (x <= 0)
        return 1;
    return x < a + 1 ? 1 - exp(log_gamma_front(a, x)) * gamma_series(a, x)
                     : exp(log_gamma_front(a, x)) * gamma_fraction(a, x);
}

/* Returns the continued fraction of I_x(a, b) (26.5.8) by Lentz's method, for x < (a + 1)/(a + b +
 * 2). */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), h = d;

    for (int m = 1; m < MAX_TERMS; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

        d = 1 / (1 + even * d);
        c = 1 + even / c;
        h *= d * c;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        h *= d * c;
        if (fabs(d * c - 1) < DBL_EPSILON)
            break;
    }
    return h;
}

/* Returns x^a (1-x)^b / (a B(a, b)) times the continued fraction. The logarithms prevent an
 * underflow of the factors. */
static double beta_tail(double a, double b, double x, double log_x, double log_1_x)
{
    const double log_front =
        lgamma(a + b) - lgamma(a) - lgamma(b) + a * log_x + b * log_1_x - log(a);

    return exp(log_front) * beta_fraction(a, b, x);
}

double pnr_beta_i(double a, double b, double x)
{
    if (x <= 0)
        return 0;
    if (x >= 1)
        return 1;
    return x < (a + 1) / (a + b + 2) ? beta_tail(a, b, x, log(x), log1p(-x))
                                     : 1 - beta_tail(b, a, 1 - x, log1p(-x), log(x));
}

/* Returns the probability that a variable of the distribution Beta(a, b) exceeds x. The result is
 * accurate in the far tail, where 1 - I_x(a, b) is not. */
static double beta_upper(double a, double b, double x)
{
    if (x <= 0)
        return 1;
    if (x >= 1)
        return 0;
    return x < (a + 1) / (a + b + 2) ? 1 - beta_tail(a, b, x, log(x), log1p(-x))
                                     : beta_tail(b, a, 1 - x, log1p(-x), log(x));
}

/*
 * Returns the probability that both of two neighbouring cells exceed t. The power of a cell is the
 * sum of the powers of K looks, which are exponential variables of mean 1. In each look the squared
 * correlation of the two cells is rho2. NB(j; K, rho2) is the probability of j in a negative
 * binomial distribution. The result is (Kibble 1941)
 *     sum over j of NB(j; K, rho2) Q(K + j, t / (1 - rho2))^2
 */
static double both_above(double t, double rho2, size_t n_looks)
{
    const double k = (double)n_looks;
    double log_weight = k * log1p(-rho2), sum = 0;

    if (rho2 <= 0)
        return pnr_gamma_q(k, t) * pnr_gamma_q(k, t);
    for (int j = 0; j < MAX_TERMS; j++) {
        const double q = pnr_gamma_q(k + j, t / (1 - rho2));
        const double term = exp(log_weight) * q * q;

        sum += term;
        if (j > k * rho2 / (1 - rho2) && q > 0.5 && term < sum * 1e-13)
            break;
        log_weight += log(rho2 * (k + j) / (j + 1));
    }
    return sum;
}

/* Returns ln(n / wanted). n is the expected number of false alarms above t. */
static double log_excess(double t, double n_cells, double rho2, size_t n_looks, double wanted)
{
    const double alone = pnr_gamma_q((double)n_looks, t);

    return log(n_cells * (alone - both_above(t, rho2, n_looks)) / wanted);
}

double pnr_threshold_cell_pfa(double pfa, double n_cells, double rho2, size_t n_looks)
{
    const double wanted = -log1p(-pfa); /* 1 - exp(-wanted) = pfa */
    const double k = (double)n_looks;

    /* The difference in log_excess would lose its digits if rho2 were greater than 0.9999. */
    if (rho2 > 0.9999)
        rho2 = 0.9999;
    /* Above the mean the number of upcrossings falls with t, and its logarithm is nearly linear in
     * t. False position (the Illinois variant) therefore needs few steps. Where the number is too
     * small for a double, the interval is bisected. */
    double low = k, high = k + 50 + 40 * sqrt(k), t = low, last = high;
    double above = log_excess(low, n_cells, rho2, n_looks, wanted), below;

    while ((below = log_excess(high, n_cells, rho2, n_looks, wanted)) > 0)
        high *= 2;
    for (int i = 0; i < 100 && above > 0 && fabs(t - last) > 1e-12 * high; i++) {
        const double share = isfinite(below) ? above / (above - below) : 0.5;

        last = t;
        t = low + (high - low) * share;

        const double value = log_excess(t, n_cells, rho2, n_looks, wanted);

        if (value > 0) {
            below /= low == last ? 2 : 1;
            low = t;
            above = value;
        } else {
            above /= high == last ? 2 : 1;
            high = t;
            below = value;
        }
    }
    return pnr_gamma_q(k, t);
}

/* Returns x for which a variable of the distribution Beta(a, b) exceeds x with probability p. */
static double beta_quantile(double a, double b, double p)
{
    double low = 0, high = 1;

    for (int i = 0; i < 200 && high - low > 1e-15 * high; i++) {
        const double middle = (low + high) / 2;

        if (beta_upper(a, b, middle) > p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

double pnr_threshold_ratio(double pfa_cell, size_t n_looks, double n_samples)
{
    const double k = (double)n_looks;

    if (n_samples <= 1)
        return 1; /* one cell has all the energy: no echo exceeds the threshold */
    return n_samples * beta_quantile(k, k * (n_samples - 1), pfa_cell);
}

double pnr_threshold_ratio_apart(double pfa_cell, size_t n_looks, double n_samples)
{
    const double share = beta_quantile((double)n_looks, (double)n_looks * n_samples, pfa_cell);

    return n_samples * share / (1 - share);
}
