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

/* Finds the maximum of |re + i im|^2 near 0 by Newton's method, within |x| <= 2. After two
 * iterations the error is below 1e-5. */
static inline double pnr_quartic_maximum(const pnr_quartic *re, const pnr_quartic *im)
{
    double x = 0;

    for (int i = 0; i < 2; i++) {
        const double u = pnr_quartic_value(re, x), v = pnr_quartic_value(im, x),
                     du = pnr_quartic_slope(re, x), dv = pnr_quartic_slope(im, x);
        const double slope = u * du + v * dv;
        const double bend =
            du * du + dv * dv + u * pnr_quartic_bend(re, x) + v * pnr_quartic_bend(im, x);

        if (!(bend < 0))
            return x;
        x -= slope / bend;
        x = x < -2 ? -2 : x > 2 ? 2 : x;
    }
    return x;
}

#endif
