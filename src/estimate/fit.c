/* SPDX-License-Identifier: MIT */
/* The fit: weighted least squares on a table of delays, and the variance of each estimate. */
#include "estimate/fit.h"

#include "base/error.h"
#include "base/multiversion.h"
#include "estimate/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    STEPS = 64,              /* delays of the table in one lag */
    N_STEPS = 2 * STEPS + 1, /* from -1 to +1 lag */
    N_REACH = 5,             /* delays -1, -1/2, 0, 1/2, 1 */
    LANES = 4,               /* values in one vector */
    N_LANES = (J + LANES - 1) / LANES
};

typedef double value[2]; /* re, im */

/* J values, planar, padded with zeros. */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(8)));
typedef struct planar {
    lanes re[N_LANES], im[N_LANES];
} planar;

/*
 * W is the inverse of R(i - j)/R(0), r_j(d) = R(j - d)/R(0). The likeliest d maximises
 * J(d) = |r^H W c|^2 / (r^H W r), and then A g R(0) = r^H W c / (r^H W r). With
 * v = W r / sqrt(r^H W r), J(d) = |v^H c|^2.
 */
typedef struct step {
    planar v;
    double quality; /* r^H W r: the share of the echo's energy in the 17 values */
    double whole;   /* 1 / (the share of the echo's energy in the span of `basis`) */
    double delay_variance, amplitude_variance, phase_variance; /* multiplied by S */
} step;

struct pnr_fit {
    step steps[N_STEPS];
    /* W e, e orthonormal (e^H W e = 1) in the span of r(-1), r(-1/2), .. r(1). */
    planar basis[N_REACH];
    size_t n_basis;
    double cells; /* E(sum |basis^H c|^2) of noise, in cells */
    value w[J][J];
    double all_cells; /* E(c^H W c) of noise, in cells */
};

/* --- the table --- */

/* The memory that filling the table needs. */
typedef struct workshop {
    const pnr_waveform *autocorrelation;
    value p[J][J]; /* R(i - j)/R(0) */
    value w[J][J];
    value basis[N_REACH][J];
} workshop;

static void lay_out(const value *x, planar *out)
{
    *out = (planar){{{0}}, {{0}}};
    for (int j = 0; j < J; j++) {
        out->re[j / LANES][j % LANES] = x[j][0];
        out->im[j / LANES][j % LANES] = x[j][1];
    }
}

/* out = a^H b; returns |out|^2. */
static double inner_product(const value *a, const value *b, value out)
{
    double re = 0, im = 0;

    for (int j = 0; j < J; j++) {
        re += a[j][0] * b[j][0] + a[j][1] * b[j][1];
        im += a[j][0] * b[j][1] - a[j][1] * b[j][0];
    }
    out[0] = re;
    out[1] = im;
    return re * re + im * im;
}

/* a^H P a: twice the variance of Re(a^H n), n noise of sigma = 1. */
static double noise_through(const workshop *shop, const value *a)
{
    value pa[J], out;

    pnr_matrix_apply((const value(*)[J])shop->p, a, pa);
    inner_product(a, (const value *)pa, out);
    return out[0];
}

/* x -= (re + i im) y */
static void take_out(value *x, double re, double im, const value *y)
{
    for (int j = 0; j < J; j++) {
        x[j][0] -= re * y[j][0] - im * y[j][1];
        x[j][1] -= re * y[j][1] + im * y[j][0];
    }
}

static void scale_vector(value *x, double factor)
{
    for (int j = 0; j < J; j++) {
        x[j][0] *= factor;
        x[j][1] *= factor;
    }
}

/* Fills r(d), and its derivative with respect to d unless that is NULL. */
static void echo_at(const workshop *shop, double d, value *r, value *slope)
{
    const double h = 1e-3;

    for (int j = 0; j < J; j++) {
        value before, after;

        pnr_waveform_at(shop->autocorrelation, j - MIDDLE - d, r[j]);
        if (slope == NULL)
            continue;
        pnr_waveform_at(shop->autocorrelation, j - MIDDLE - d + h, before);
        pnr_waveform_at(shop->autocorrelation, j - MIDDLE - d - h, after);
        for (int i = 0; i < 2; i++)
            slope[j][i] = (after[i] - before[i]) / (2 * h);
    }
}

/*
 * The variances at A g R(0) = 1 and S = 1 of d and of the real and imaginary part of the peak, which
 * are its relative amplitude and its phase. Least squares with the columns r, i r and r' gives each
 * error as Re(h^H n), linear in the noise n.
 */
static void fill_variances(const workshop *shop, const value *r, const value *slope,
                           const value *wr, step *s)
{
    value delay[J], re[J], im[J], coupling, curvature; /* delay, re, im: h of each estimate */

    pnr_matrix_apply((const value(*)[J])shop->w, slope, delay);
    inner_product(r, (const value *)delay, coupling);      /* r^H W r' */
    inner_product(slope, (const value *)delay, curvature); /* r'^H W r' */

    const double q = s->quality, a = coupling[0], b = coupling[1];

    take_out(delay, a / q, b / q, wr);
    scale_vector(delay, 1 / (curvature[0] - (a * a + b * b) / q));
    memcpy(re, wr, sizeof re);
    take_out(re, a, 0, (const value *)delay);
    for (int j = 0; j < J; j++) {
        im[j][0] = -wr[j][1];
        im[j][1] = wr[j][0];
    }
    take_out(im, b, 0, (const value *)delay);
    s->delay_variance = noise_through(shop, (const value *)delay) / 2;
    s->amplitude_variance = noise_through(shop, (const value *)re) / (2 * q * q);
    s->phase_variance = noise_through(shop, (const value *)im) / (2 * q * q);
}

/* Orthonormalises by Gram and Schmidt. A direction with less than a hundredth of an echo's energy is
 * left out, because it would add more noise than signal. */
static void fill_basis(workshop *shop, pnr_fit *fit)
{
    value e[N_REACH][J];

    for (int i = 0; i < N_REACH; i++) {
        const size_t n = fit->n_basis;
        value *we = shop->basis[n], along;

        echo_at(shop, (i - N_REACH / 2) * 0.5, e[n], NULL);
        for (size_t k = 0; k < n; k++) {
            inner_product((const value *)shop->basis[k], (const value *)e[n], along);
            take_out(e[n], along[0], along[1], (const value *)e[k]);
        }
        pnr_matrix_apply((const value(*)[J])shop->w, (const value *)e[n], we);
        inner_product((const value *)e[n], (const value *)we, along);
        if (along[0] < 0.01)
            continue;
        scale_vector(e[n], 1 / sqrt(along[0]));
        scale_vector(we, 1 / sqrt(along[0]));
        lay_out((const value *)we, &fit->basis[n]);
        fit->cells += noise_through(shop, (const value *)we);
        fit->n_basis++;
    }
}

static void fill_step(const workshop *shop, const pnr_fit *fit, double d, step *s)
{
    value r[J], slope[J], v[J], along;
    double reach = 0;

    echo_at(shop, d, r, slope);
    pnr_matrix_apply((const value(*)[J])shop->w, (const value *)r, v);
    inner_product((const value *)r, (const value *)v, along);
    s->quality = along[0];
    fill_variances(shop, (const value *)r, (const value *)slope, (const value *)v, s);
    scale_vector(v, 1 / sqrt(s->quality));
    lay_out((const value *)v, &s->v);
    for (size_t k = 0; k < fit->n_basis; k++)
        reach += inner_product((const value *)shop->basis[k], (const value *)r, along);
    s->whole = 1 / reach;
}

int pnr_fit_create(const pnr_waveform *autocorrelation, pnr_fit **out)
{
    workshop shop = {.autocorrelation = autocorrelation};
    pnr_fit *fit = calloc(1, sizeof *fit);

    *out = fit;
    if (fit == NULL)
        return PNR_ENOMEMORY;
    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++)
            pnr_waveform_at(autocorrelation, i - j, shop.p[i][j]);
    memcpy(shop.w, shop.p, sizeof shop.w);
    for (int i = 0; i < J; i++) /* the lags of an oversampled code are nearly dependent */
        shop.w[i][i][0] += 1e-4;
    pnr_matrix_invert(shop.w);
    memcpy(fit->w, shop.w, sizeof fit->w);
    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++)
            fit->all_cells += shop.w[i][j][0] * shop.p[j][i][0] - shop.w[i][j][1] * shop.p[j][i][1];
    fill_basis(&shop, fit);
    for (int s = 0; s < N_STEPS; s++)
        fill_step(&shop, fit, (double)(s - STEPS) / STEPS, &fit->steps[s]);
    return PNR_OK;
}

void pnr_fit_destroy(pnr_fit *fit)
{
    free(fit);
}

/* --- one echo --- */

/* The polynomial through f(-2) .. f(2). */
typedef struct quartic {
    double c[5];
} quartic;

static quartic polynomial_through(double a, double b, double c, double d, double e)
{
    const double near = b + d, far = a + e, rise = d - b, climb = e - a;

    return (quartic){{c, (8 * rise - climb) * (1.0 / 12), (16 * near - far - 30 * c) * (1.0 / 24),
                      (climb - 2 * rise) * (1.0 / 12), (far - 4 * near + 6 * c) * (1.0 / 24)}};
}

static double value_at(const quartic *q, double x)
{
    return q->c[0] + x * (q->c[1] + x * (q->c[2] + x * (q->c[3] + x * q->c[4])));
}

static double slope_at(const quartic *q, double x)
{
    return q->c[1] + x * (2 * q->c[2] + x * (3 * q->c[3] + x * 4 * q->c[4]));
}

static double bend_at(const quartic *q, double x)
{
    return 2 * q->c[2] + x * (6 * q->c[3] + x * 12 * q->c[4]);
}

/* Finds the maximum of |re + i im|^2 near 0 by Newton's method, within |x| <= 2. Two iterations leave
 * an error below 1e-5 of a step. */
static double refine_maximum(const quartic *re, const quartic *im)
{
    double x = 0;

    for (int i = 0; i < 2; i++) {
        const double u = value_at(re, x), v = value_at(im, x), du = slope_at(re, x),
                     dv = slope_at(im, x);
        const double slope = u * du + v * dv;
        const double bend = du * du + dv * dv + u * bend_at(re, x) + v * bend_at(im, x);

        if (!(bend < 0))
            return x;
        x -= slope / bend;
        x = x < -2 ? -2 : x > 2 ? 2 : x;
    }
    return x;
}

/* z = v^H c; returns |z|^2. */
static inline double project_values(const planar *v, const planar *c, value z)
{
    lanes re = {0}, im = {0};

    for (int i = 0; i < N_LANES; i++) {
        re += v->re[i] * c->re[i] + v->im[i] * c->im[i];
        im += v->re[i] * c->im[i] - v->im[i] * c->re[i];
    }
    z[0] = (re[0] + re[1]) + (re[2] + re[3]);
    z[1] = (im[0] + im[1]) + (im[2] + im[3]);
    return z[0] * z[0] + z[1] * z[1];
}

/* Climbs J on the table from step s to a maximum or an end of the table, and returns its step. Fills
 * z and J at the five steps around it. */
static inline int climb_table(const pnr_fit *fit, const planar *c, int s, value z[5])
{
    double p[5];

    s = s < 2 ? 2 : s > N_STEPS - 3 ? N_STEPS - 3 : s;
    for (int i = 0; i < 5; i++)
        p[i] = project_values(&fit->steps[s - 2 + i].v, c, z[i]);
    while (p[3] > p[2] && s < N_STEPS - 3) {
        s++;
        memmove(p, p + 1, 4 * sizeof *p);
        memmove(z, z + 1, 4 * sizeof *z);
        p[4] = project_values(&fit->steps[s + 2].v, c, z[4]);
    }
    while (p[1] > p[2] && s > 2) {
        s--;
        memmove(p + 1, p, 4 * sizeof *p);
        memmove(z + 1, z, 4 * sizeof *z);
        p[0] = project_values(&fit->steps[s - 2].v, c, z[0]);
    }
    return s;
}

PNR_MULTIVERSION void pnr_fit_find(const pnr_fit *fit, const double c[PNR_NEIGHBOURS][2],
                                   double start, pnr_fitted *out)
{
    planar values;
    value z[5];

    lay_out(c, &values);

    const int s = climb_table(fit, &values, (int)lrint((start + 1) * STEPS), z);
    const step *here = &fit->steps[s];
    const quartic re = polynomial_through(z[0][0], z[1][0], z[2][0], z[3][0], z[4][0]);
    const quartic im = polynomial_through(z[0][1], z[1][1], z[2][1], z[3][1], z[4][1]);
    const quartic quality = polynomial_through(here[-2].quality, here[-1].quality, here[0].quality,
                                               here[1].quality, here[2].quality);
    const double x = refine_maximum(&re, &im);
    double energy = 0;

    out->delay = (s - STEPS + x) / STEPS;

    const double q = value_at(&quality, x), u = value_at(&re, x), v = value_at(&im, x);
    const step *nearest = &fit->steps[(int)lrint((out->delay + 1) * STEPS)];

    const double factor = 1 / sqrt(q);

    out->peak[0] = u * factor;
    out->peak[1] = v * factor;
    out->gain = u * u + v * v;
    for (size_t k = 0; k < fit->n_basis; k++)
        energy += project_values(&fit->basis[k], &values, z[0]);
    out->power = energy * nearest->whole;
    out->cells = fit->cells * nearest->whole;
    out->delay_variance = nearest->delay_variance;
    out->amplitude_variance = nearest->amplitude_variance;
    out->phase_variance = nearest->phase_variance;
}

double pnr_fit_noise(const pnr_fit *fit, const double c[PNR_NEIGHBOURS][2],
                     const pnr_fitted *fitted, double *cells)
{
    value wc[J], energy;

    pnr_matrix_apply(fit->w, c, wc);
    inner_product(c, (const value *)wc, energy);
    *cells =
        fmax(fit->all_cells - 1.5, 0.5); /* the fit takes 3 of the 2 x cells degrees of freedom */
    return fmax(energy[0] - fitted->gain, 0) / *cells;
}
