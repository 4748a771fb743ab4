/* SPDX-License-Identifier: MIT */
/* Complex numbers of C11, for files that nvcc does not compile. */
#ifndef PNR_COMPLEX_H
#define PNR_COMPLEX_H

#include <complex.h>
#include <math.h>

#ifndef CMPLX /* clang 14 with glibc */
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#endif

/* |z|^2 */
static inline double pnr_power(double complex z)
{
    return creal(z) * creal(z) + cimag(z) * cimag(z);
}

/* exp(i angle), angle in rad. */
static inline double complex pnr_cis(double angle)
{
    return CMPLX(cos(angle), sin(angle));
}

#endif
