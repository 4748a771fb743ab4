/* SPDX-License-Identifier: MIT */
/* Rotates samples by a frequency, and correlates them at a few lags. */
#include "estimate/planar.h"

#include "base/complex.h"
#include "base/multiversion.h"

#include <math.h>
#include <string.h>

enum {
    LANES = PNR_PLANAR_GUARD, /* samples in one vector */
    BLOCK = 128,              /* samples whose products are added in single precision */
    STRIDE = 64,              /* samples that share one phase factor */
};

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));
typedef float half_lanes __attribute__((vector_size(LANES / 2 * sizeof(float)), aligned(4)));
typedef double wide_lanes __attribute__((vector_size(LANES / 2 * sizeof(double)), aligned(8)));

PNR_MULTIVERSION void pnr_planar_fill(const double complex *x, size_t n, const pnr_planar *out)
{
    float *restrict re = out->re, *restrict im = out->im;

    for (size_t i = 0; i < n; i++) {
        re[i] = (float)creal(x[i]);
        im[i] = (float)cimag(x[i]);
    }
}

/* Rotates n <= STRIDE samples: out[k] = x[k] begin turn[k]. begin: the phase factor of x[0].
 * turn[k]: the rotation within k samples. */
static inline void rotate_stride(const float *xr, const float *xi, const pnr_planar *turn,
                                 double complex begin, size_t n, float *restrict re,
                                 float *restrict im)
{
    const float br = (float)creal(begin), bi = (float)cimag(begin);
    const float *restrict tr = turn->re, *restrict ti = turn->im;

    for (size_t k = 0; k < n; k++) {
        const float c = br * tr[k] - bi * ti[k];
        const float s = br * ti[k] + bi * tr[k];

        re[k] = xr[k] * c - xi[k] * s;
        im[k] = xr[k] * s + xi[k] * c;
    }
}

/* x[k] *= i (first + k step) */
static inline void turn_by_e(float first, float step, size_t n, float *restrict re,
                             float *restrict im)
{
    for (size_t k = 0; k < n; k++) {
        const float factor = first + (float)(int)k * step, keep = re[k];

        re[k] = -factor * im[k];
        im[k] = factor * keep;
    }
}

PNR_MULTIVERSION void pnr_planar_rotate(const pnr_planar *x, long n, double e, long first,
                                        size_t count, bool is_linear, bool by_e,
                                        const pnr_planar *out)
{
    const double step = e / (double)n, a_sample = 2 * M_PI / (double)n;
    const double complex one = pnr_cis(2 * M_PI * step);
    float turn_re[STRIDE], turn_im[STRIDE];
    const pnr_planar turn = {turn_re, turn_im};
    double complex stride = 1, begin = 0;
    size_t at = (size_t)(first % n + (first % n < 0 ? n : 0));

    for (int k = 0; k < STRIDE; k++, stride *= one) {
        turn_re[k] = (float)creal(stride);
        turn_im[k] = (float)cimag(stride);
    }
    for (size_t j = 0, piece; j < count; j += piece, at = (at + piece) % (size_t)n) {
        const double place = is_linear ? (double)(first + (long)j) : (double)at;
        const double time = place - (double)(n - 1) / 2;
        float *re = out->re + j, *im = out->im + j;

        if (j == 0 || at == 0)
            begin = pnr_cis(2 * M_PI * (step * time - rint(step * time)));
        piece = (size_t)n - at < STRIDE ? (size_t)n - at : STRIDE;
        piece = piece < count - j ? piece : count - j;
        rotate_stride(x->re + at, x->im + at, &turn, begin, piece, re, im);
        if (by_e)
            turn_by_e((float)(a_sample * time), (float)a_sample, piece, re, im);
        begin *= stride;
    }
}

static inline double sum_lanes(const wide_lanes *x)
{
    const wide_lanes y = *x;

    return ((y[0] + y[1]) + (y[2] + y[3])) + ((y[4] + y[5]) + (y[6] + y[7]));
}

static inline __attribute__((always_inline)) void add_wide(const lanes *x, wide_lanes *sum)
{
    half_lanes half[2];

    memcpy(half, x, sizeof half);
    *sum +=
        __builtin_convertvector(half[0], wide_lanes) + __builtin_convertvector(half[1], wide_lanes);
}

enum { TOGETHER = 3 }; /* lags in one pass */

/* Adds the products of n samples at TOGETHER lags to re and im. n is a multiple of LANES and at
 * most BLOCK. The sums over these samples are in single precision. They are so short that their
 * rounding error is not greater than that of the products. */
static inline __attribute__((always_inline)) void
add_block(const float *ur, const float *ui, const float *ar, const float *ai, size_t n,
          bool is_real, wide_lanes re[TOGETHER], wide_lanes im[TOGETHER])
{
    lanes block_re[TOGETHER] = {{0}}, block_im[TOGETHER] = {{0}};

    for (size_t i = 0; i < n; i += LANES) {
        lanes xr, xi, yr, yi;

        memcpy(&yr, ar + i, sizeof yr);
        memcpy(&yi, ai + i, sizeof yi);
        for (size_t l = 0; l < TOGETHER; l++) {
            memcpy(&xr, ur + i + l, sizeof xr);
            memcpy(&xi, ui + i + l, sizeof xi);
            block_re[l] += is_real ? xr * yr : xr * yr + xi * yi;
            block_im[l] += is_real ? xi * yr : xi * yr - xr * yi;
        }
    }
    for (size_t l = 0; l < TOGETHER; l++) {
        add_wide(&block_re[l], &re[l]);
        add_wide(&block_im[l], &im[l]);
    }
}

static inline __attribute__((always_inline)) void correlate_with(const pnr_planar *u,
                                                                 const pnr_planar *a, size_t n,
                                                                 size_t n_lags, double factor,
                                                                 bool is_real, double complex *out)
{
    const size_t whole = n / LANES * LANES;

    for (size_t first = 0; first < n_lags; first += TOGETHER) {
        const float *ur = u->re + first, *ui = u->im + first;
        wide_lanes re[TOGETHER] = {{0}}, im[TOGETHER] = {{0}};

        for (size_t i = 0; i < whole; i += BLOCK) /* the sums of lags >= n_lags are not used */
            add_block(ur + i, ui + i, a->re + i, a->im + i, whole - i < BLOCK ? whole - i : BLOCK,
                      is_real, re, im);
        for (size_t l = 0; l < TOGETHER && first + l < n_lags; l++) {
            double complex sum = CMPLX(sum_lanes(&re[l]), sum_lanes(&im[l]));

            for (size_t k = whole; k < n; k++)
                sum += CMPLX(ur[k + l], ui[k + l]) * CMPLX(a->re[k], -a->im[k]);
            out[first + l] = sum * factor;
        }
    }
}

PNR_MULTIVERSION void pnr_planar_correlate(const pnr_planar *u, const pnr_planar *a, size_t n,
                                           size_t n_lags, double factor, bool is_real,
                                           double complex *out)
{
    if (is_real)
        correlate_with(u, a, n, n_lags, factor, true, out);
    else
        correlate_with(u, a, n, n_lags, factor, false, out);
}
