/* SPDX-License-Identifier: MIT */
/* The fit: weighted least squares on a table of delays, and the variance of each estimate. */
#include "estimate/fit.h"

#include "base/complex.h"
#include "base/error.h"
#include "base/multiversion.h"
#include "estimate/matrix.h"
#include "estimate/quartic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    STEPS = 64,              /* steps of the table from one lag to the next */
    N_STEPS = 2 * STEPS + 1, /* steps from -1 to +1 lag */
    N_REACH = 5,             /* delays of the basis: -1, -1/2, 0, 1/2, 1 */
    NEAR = 5,                /* steps that are climbed one by one */
    FAR = STEPS / 4,         /* greatest jump, steps */
    LANES = 4,               /* values in one vector */
    N_LANES = (J + LANES - 1) / LANES
};

/* 17 values, with real and imaginary parts in separate arrays, padded with zeros. */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(8)));
typedef struct planar {
    lanes re[N_LANES], im[N_LANES];
} planar;

/* W is the inverse of the matrix R(i - j)/R(0), r_j(d) = R(j - d)/R(0), and c has the 17 values.
 * The likeliest d maximises L(d) = |r^H W c|^2 / (r^H W r). Then A g R(0) = r^H W c / (r^H W r).
 * With v = W r / sqrt(r^H W r), L(d) = |v^H c|^2. */
typedef struct step {
    planar v, r;
    double quality; /* r^H W r: the fraction of the echo's energy that the 17 values contain */
    double whole;   /* 1 / (the fraction of the echo's energy in the span of `basis`) */
    double delay_variance, amplitude_variance, phase_variance; /* multiplied by S */
    double skew; /* the error of the interpolated maximum of an echo at x steps from here, divided
                  * by pnr_quartic_missing_slope(x) */
} step;

struct pnr_fit {
    step steps[N_STEPS];
    /* The vectors W e. The vectors e lie in the span of r(-1), r(-1/2), .. r(1), and are
     * orthonormal with the weight W: e_i^H W e_k is 1 if i = k, else 0. */
    planar basis[N_REACH];
    size_t n_basis;
    double cells;      /* E(sum |basis^H n|^2) / sigma^2 for noise n */
    pnr_residual rest; /* of noise of sigma = 1 */
};

/* The functions of a multiversion function must be inlined: on their own they have one version. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Returns v^H c. */
static ALWAYS_INLINE double complex project_values(const planar *v, const planar *c)
{
    lanes re = {0}, im = {0};

    for (int i = 0; i < N_LANES; i++) {
        re += v->re[i] * c->re[i] + v->im[i] * c->im[i];
        im += v->re[i] * c->im[i] - v->im[i] * c->re[i];
    }
    return CMPLX((re[0] + re[1]) + (re[2] + re[3]), (im[0] + im[1]) + (im[2] + im[3]));
}

/* --- the table --- */

/* Working memory for filling the table. */
typedef struct workshop {
    const pnr_waveform *autocorrelation;
    pnr_vector p[J]; /* R(i - j)/R(0) */
    pnr_vector w[J];
    pnr_vector basis[N_REACH];
} workshop;

static void lay_out(const double complex *x, planar *out)
{
    *out = (planar){{{0}}, {{0}}};
    for (int j = 0; j < J; j++) {
        out->re[j / LANES][j % LANES] = creal(x[j]);
        out->im[j / LANES][j % LANES] = cimag(x[j]);
    }
}

/* Returns a^H P a. This is twice the variance of Re(a^H n) for noise n of sigma = 1. */
static double noise_through(const workshop *shop, const double complex *a)
{
    pnr_vector pa;

    pnr_matrix_apply(shop->p, a, pa);
    return creal(pnr_inner(a, pa));
}

/* x -= factor y */
static void take_out(double complex *x, double complex factor, const double complex *y)
{
    for (int j = 0; j < J; j++)
        x[j] -= factor * y[j];
}

static void scale_vector(double complex *x, double factor)
{
    for (int j = 0; j < J; j++)
        x[j] *= factor;
}

/* Fills r(d), and its derivative with respect to d unless slope is NULL. */
static void echo_at(const workshop *shop, double d, double complex *r, double complex *slope)
{
    const double h = 1e-3;

    for (int j = 0; j < J; j++) {
        const double u = j - MIDDLE - d;

        r[j] = pnr_waveform_at(shop->autocorrelation, u);
        if (slope != NULL)
            slope[j] = (pnr_waveform_at(shop->autocorrelation, u - h) -
                        pnr_waveform_at(shop->autocorrelation, u + h)) /
                       (2 * h);
    }
}

/*
 * Fills the variances of d, of the relative amplitude and of the phase, for A g R(0) = 1 and S = 1.
 * The variances of amplitude and phase are those of the real and imaginary parts of the peak. Each
 * error is Re(h^H n), linear in the noise n. Least squares with the columns r, i r and r' gives the
 * vectors h.
 */
static void fill_variances(const workshop *shop, const double complex *r,
                           const double complex *slope, const double complex *wr, step *s,
                           pnr_vector h[3])
{
    double complex *delay = h[0], *re = h[1], *im = h[2];

    pnr_matrix_apply(shop->w, slope, delay);

    const double complex coupling = pnr_inner(r, delay);     /* r^H W r' */
    const double curvature = creal(pnr_inner(slope, delay)); /* r'^H W r' */
    const double q = s->quality;

    take_out(delay, coupling / q, wr);
    scale_vector(delay, 1 / (curvature - pnr_power(coupling) / q));
    for (int j = 0; j < J; j++) {
        re[j] = wr[j] - creal(coupling) * delay[j];
        im[j] = CMPLX(-cimag(wr[j]), creal(wr[j])) - cimag(coupling) * delay[j];
    }
    s->delay_variance = noise_through(shop, delay) / 2;
    s->amplitude_variance = noise_through(shop, re) / (2 * q * q);
    s->phase_variance = noise_through(shop, im) / (2 * q * q);
}

/* Fills the basis by the method of Gram and Schmidt. A direction with less than a hundredth of an
 * echo's energy is omitted, because it would add more noise than signal. */
static void fill_basis(workshop *shop, pnr_fit *fit)
{
    pnr_vector e[N_REACH];

    for (int i = 0; i < N_REACH; i++) {
        const size_t n = fit->n_basis;
        double complex *we = shop->basis[n];

        echo_at(shop, (i - N_REACH / 2) * 0.5, e[n], NULL);
        for (size_t k = 0; k < n; k++)
            take_out(e[n], pnr_inner(shop->basis[k], e[n]), e[k]);
        pnr_matrix_apply(shop->w, e[n], we);

        const double energy = creal(pnr_inner(e[n], we));

        if (energy < 0.01)
            continue;
        scale_vector(e[n], 1 / sqrt(energy));
        scale_vector(we, 1 / sqrt(energy));
        lay_out(we, &fit->basis[n]);
        fit->cells += noise_through(shop, we);
        fit->n_basis++;
    }
}

/* Returns the residual c - echo for noise of sigma = 1. The fitted echo differs from the true echo
 * by sum_m x_m Re(h_m^H n), where x_m is the column of parameter m. */
static pnr_residual rest_of(const workshop *shop, const double complex *r,
                            const double complex *slope, const pnr_vector h[3])
{
    pnr_vector x[3];

    for (int j = 0; j < J; j++) {
        x[0][j] = slope[j];
        x[1][j] = r[j];
        x[2][j] = CMPLX(-cimag(r[j]), creal(r[j]));
    }
    return pnr_residual_of(shop->p, (const pnr_vector *)x, h, 3);
}

static void fill_step(const workshop *shop, pnr_fit *fit, double d, step *s)
{
    pnr_vector r, slope, v, h[3];
    double reach = 0;

    echo_at(shop, d, r, slope);
    pnr_matrix_apply(shop->w, r, v);
    s->quality = creal(pnr_inner(r, v));
    fill_variances(shop, r, slope, v, s, h);
    if (d == 0)
        fit->rest = rest_of(shop, r, slope, (const pnr_vector *)h);
    scale_vector(v, 1 / sqrt(s->quality));
    lay_out(v, &s->v);
    lay_out(r, &s->r);
    for (size_t k = 0; k < fit->n_basis; k++)
        reach += pnr_power(pnr_inner(shop->basis[k], r));
    s->whole = 1 / reach;
}

/* Fills the skew of all steps but three at each end. With the fifth derivative f5 of f, the
 * polynomial through f(-2) .. f(2) lacks f5 / 5! x (x^2 - 1) (x^2 - 4). Here f is v^H c for an echo
 * at the step. Its f5 is not small: the norm of v follows the share of an echo that the 17 values
 * contain, which has a period of one lag. The slope that |f|^2 lacks, divided by its second
 * derivative, is the error of the maximum. The fifth difference of seven values gives f5. */
static void fill_skew(pnr_fit *fit)
{
    for (int s = 3; s < N_STEPS - 3; s++) {
        double complex f[7];

        for (int k = 0; k < 7; k++)
            f[k] = project_values(&fit->steps[s + k - 3].v, &fit->steps[s].r);

        const double complex fifth =
            ((f[6] - f[0]) - 4 * (f[5] - f[1]) + 5 * (f[4] - f[2])) * (1.0 / 2);
        const double bend = pnr_power(f[4]) - 2 * pnr_power(f[3]) + pnr_power(f[2]);

        fit->steps[s].skew = bend < 0 ? creal(conj(f[3]) * fifth) / (60 * bend) : 0;
    }
}

int pnr_fit_create(const pnr_waveform *autocorrelation, pnr_fit **out)
{
    workshop shop = {.autocorrelation = autocorrelation};
    pnr_fit *fit = calloc(1, sizeof *fit);

    *out = fit;
    if (fit == NULL)
        return PNR_ENOMEMORY;
    pnr_matrix_weigh(autocorrelation, shop.p, shop.w);
    fill_basis(&shop, fit);
    for (int s = 0; s < N_STEPS; s++)
        fill_step(&shop, fit, (double)(s - STEPS) / STEPS, &fit->steps[s]);
    fill_skew(fit);
    return PNR_OK;
}

void pnr_fit_destroy(pnr_fit *fit)
{
    free(fit);
}

/* --- one echo --- */

/* Returns the nearest step that has two steps on each side. */
static inline int step_within(int s)
{
    return s < 2 ? 2 : s > N_STEPS - 3 ? N_STEPS - 3 : s;
}

/* Returns the distance from the middle of z to the maximum of L, in steps, by Newton's method from
 * z[0], z[2] and z[4]; at most FAR steps. */
static inline int guess_maximum(const double complex z[5])
{
    const double before = pnr_power(z[0]), at = pnr_power(z[2]), after = pnr_power(z[4]);
    const double bend = before - 2 * at + after, rise = after - before;
    const double x = bend < 0 ? -rise / bend : rise > 0 ? FAR : -FAR;

    return (int)lrint(fmin(fmax(x, -FAR), FAR));
}

static ALWAYS_INLINE void project_around(const pnr_fit *fit, const planar *c, int s,
                                         double complex z[5])
{
    for (int i = 0; i < 5; i++)
        z[i] = project_values(&fit->steps[s - 2 + i].v, c);
}

/* Climbs L(d) = |z|^2 in the table from step s to a local maximum, or to two steps from an end of
 * the table. Returns this last step. Fills z = v^H c at this step and at the two steps on each side
 * of it. Jumps while the maximum is more than NEAR steps away, since a jump takes five
 * projections. */
static ALWAYS_INLINE int climb_table(const pnr_fit *fit, const planar *c, int s,
                                     double complex z[5])
{
    s = step_within(s);
    project_around(fit, c, s, z);
    for (int jump = guess_maximum(z); abs(jump) > NEAR; jump = guess_maximum(z)) {
        const int to = step_within(s + jump);
        double complex there[5];

        project_around(fit, c, to, there);
        if (!(pnr_power(there[2]) > pnr_power(z[2])))
            break;
        memcpy(z, there, sizeof there);
        s = to;
    }
    while (pnr_power(z[3]) > pnr_power(z[2]) && s < N_STEPS - 3) {
        s++;
        memmove(z, z + 1, 4 * sizeof *z);
        z[4] = project_values(&fit->steps[s + 2].v, c);
    }
    while (pnr_power(z[1]) > pnr_power(z[2]) && s > 2) {
        s--;
        memmove(z + 1, z, 4 * sizeof *z);
        z[0] = project_values(&fit->steps[s - 2].v, c);
    }
    return s;
}

PNR_MULTIVERSION void pnr_fit_find(const pnr_fit *fit, const double complex *c, double start,
                                   pnr_fitted *out)
{
    planar values;
    double complex z[5];

    lay_out(c, &values);

    const int s = climb_table(fit, &values, (int)lrint((start + 1) * STEPS), z);
    const step *here = &fit->steps[s];
    const pnr_quartic re =
        pnr_quartic_through(creal(z[0]), creal(z[1]), creal(z[2]), creal(z[3]), creal(z[4]));
    const pnr_quartic im =
        pnr_quartic_through(cimag(z[0]), cimag(z[1]), cimag(z[2]), cimag(z[3]), cimag(z[4]));
    const pnr_quartic quality = pnr_quartic_through(
        here[-2].quality, here[-1].quality, here[0].quality, here[1].quality, here[2].quality);
    const double displaced = pnr_quartic_maximum(&re, &im);
    const double x = displaced - here->skew * pnr_quartic_missing_slope(displaced);
    double energy = 0;

    out->delay = (s - STEPS + x) / STEPS;

    const double complex along = CMPLX(pnr_quartic_value(&re, x), pnr_quartic_value(&im, x));
    const step *nearest = &fit->steps[(int)lrint((out->delay + 1) * STEPS)];

    out->peak = along * (1 / sqrt(pnr_quartic_value(&quality, x)));
    out->gain = pnr_power(along);
    for (size_t k = 0; k < fit->n_basis; k++)
        energy += pnr_power(project_values(&fit->basis[k], &values));
    out->power = energy * nearest->whole;
    out->cells = fit->cells * nearest->whole;
    out->delay_variance = nearest->delay_variance;
    out->amplitude_variance = nearest->amplitude_variance;
    out->phase_variance = nearest->phase_variance;
}

PNR_MULTIVERSION pnr_residual pnr_fit_noise(const pnr_fit *fit, const double complex *c,
                                            const pnr_fitted *fitted)
{
    const double at = (fitted->delay + 1) * STEPS, re = creal(fitted->peak),
                 im = cimag(fitted->peak);
    const int nearest = (int)lrint(at), s = nearest < 2             ? 2
                                            : nearest > N_STEPS - 3 ? N_STEPS - 3
                                                                    : nearest;
    lanes energy = {0};
    planar values;
    double w[5];

    pnr_quartic_weights(at - s, w);
    lay_out(c, &values);
    for (int i = 0; i < N_LANES; i++) {
        lanes x = {0}, y = {0};

        for (int k = 0; k < 5; k++) {
            x += w[k] * fit->steps[s - 2 + k].r.re[i];
            y += w[k] * fit->steps[s - 2 + k].r.im[i];
        }

        const lanes left_re = values.re[i] - (re * x - im * y);
        const lanes left_im = values.im[i] - (re * y + im * x);

        energy += left_re * left_re + left_im * left_im;
    }

    pnr_residual rest = fit->rest;

    rest.noise = ((energy[0] + energy[1]) + (energy[2] + energy[3])) / fit->rest.noise;
    return rest;
}
