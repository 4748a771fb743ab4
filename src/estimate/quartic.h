/* SPDX-License-Identifier: MIT */
/* The polynomial of degree 4 through the five values of a function at x = -2, -1, 0, 1, 2. */
#ifndef PNR_QUARTIC_H
#define PNR_QUARTIC_H

typedef struct pnr_quartic {
    double c[5]; /* f(x) = sum_k c[k] x^k */
} pnr_quartic;

static inline pnr_quartic pnr_quartic_through(double a, double b, double c, double d, double e)
{
    const double near = b + d, far = a + e, rise = d - b, climb = e - a;

    return (pnr_quartic){{c, (8 * rise - climb) * (1.0 / 12),
                          (16 * near - far - 30 * c) * (1.0 / 24), (climb - 2 * rise) * (1.0 / 12),
                          (far - 4 * near + 6 * c) * (1.0 / 24)}};
}

static inline double pnr_quartic_value(const pnr_quartic *q, double x)
{
    return q->c[0] + x * (q->c[1] + x * (q->c[2] + x * (q->c[3] + x * q->c[4])));
}

static inline double pnr_quartic_slope(const pnr_quartic *q, double x)
{
    return q->c[1] + x * (2 * q->c[2] + x * (3 * q->c[3] + x * 4 * q->c[4]));
}

static inline double pnr_quartic_bend(const pnr_quartic *q, double x)
{
    return 2 * q->c[2] + x * (6 * q->c[3] + x * 12 * q->c[4]);
}

/* Returns the slope that the polynomial lacks if the fifth derivative of f is 5!. It lacks x (x^2 -
 * 1) (x^2 - 4), which is 0 at the five values. */
static inline double pnr_quartic_missing_slope(double x)
{
    return 4 + x * x * (5 * x * x - 15);
}

/* Fills w with the weights of the five values: f(x) = sum_k w[k] f(k - 2). */
static inline void pnr_quartic_weights(double x, double w[5])
{
    const double far = x * x - 4, near = x * x - 1;

    w[0] = x * near * (x - 2) * (1.0 / 24);
    w[1] = -x * far * (x - 1) * (1.0 / 6);
    w[2] = far * near * (1.0 / 4);
    w[3] = -x * far * (x + 1) * (1.0 / 6);
    w[4] = x * near * (x + 2) * (1.0 / 24);
}

#endif
