/* SPDX-License-Identifier: MIT */
/* Functions for the complex numbers of C11. nvcc does not know these numbers, so the code in cuda/
 * does not include this file. */
#ifndef PNR_COMPLEX_H
#define PNR_COMPLEX_H

#include "base/transform.h"

#include <complex.h>
#include <math.h>
#include <stdint.h>

#ifndef CMPLX /* clang 14 with glibc has no CMPLX */
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#endif

/* Returns |z|^2. */
static inline double pnr_power(double complex z)
{
    return creal(z) * creal(z) + cimag(z) * cimag(z);
}

/* Returns exp(i angle), angle in rad. */
static inline double complex pnr_cis(double angle)
{
    return CMPLX(cos(angle), sin(angle));
}

/* Returns exp(2 pi i j / n) for any j, with the accuracy of pnr_transform_root. */
static inline double complex pnr_root(int64_t j, size_t n)
{
    const int64_t rest = j % (int64_t)n;
    double root[2];

    pnr_transform_root((size_t)(rest < 0 ? rest + (int64_t)n : rest), n, root);
    return CMPLX(root[0], root[1]);
}

#endif
