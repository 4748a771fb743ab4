/* SPDX-License-Identifier: MIT */
/* The axes of a dwell in the cpu engine: which transforms belong to which rows. */
#ifndef PNR_ENGINE_CPU_AXES_H
#define PNR_ENGINE_CPU_AXES_H

#include "engine/engine.h"

/*
 * c is linear in the samples. So the engine first sums over the periods, and correlates last.
 * F = f + s/K of plan.h, f = q/4, q = quarters = 4 m + r, r = 0 .. 3. t is the index i of plan.h:
 * t = (n + k) mod N, or n + k in a linear window. Then
 *
 *     y[t] = sum_p w_p exp(-2 pi i (r/4 + s/K) p) x_p[t]        exp(-2 pi i m p) = 1
 *     c[k] = sum_n y[t] exp(-2 pi i (m + r/4) t / N) conj(a[n])
 *
 * - y is bin s of the slow-time transform of the samples, or bin s + r K/4 when 4 divides K. All y
 *   of one stretch are a set. When 4 does not divide K, each r has its own set. One slow-time
 *   transform for each t computes all bins of a set. If a set has few bins, each bin is computed as
 *   a sum over p.
 * - Y, the transform of y[t] exp(-2 pi i r t / (4 N)), is one spectrum. It is used for all codes,
 *   and for all rows of this bin with the same r. So each row and code needs one inverse transform
 *   instead of K.
 * - When the transform has length N, c has the spectrum C[j] = Y[(j + m) mod N] conj(A[j]). The
 *   index of Y is rotated.
 * - The transform of an extended period or of a linear window is longer than N. A bin of 1/N is not
 *   a bin of this transform. So the code is rotated instead: a[n] exp(2 pi i m n / N). This is
 *   possible because
 *   exp(-2 pi i m t / N) = exp(-2 pi i m k / N) exp(-2 pi i m n / N) for t = n + k, also in the
 *   periodic extension. The stored spectrum of each m is a variant. c then lacks the factor
 *   exp(-2 pi i m k / N), which does not change |c|^2. Only values of c that are read get the
 *   factor.
 * - With such a longer transform and four or more codes, variants would save at most a fifth of all
 *   transforms, and each inverse transform would load a variant from memory. So the samples are
 *   rotated by q/4 instead of r/4, and each q has its own spectra.
 */

/* A spectrum. Each look has one forward transform for each spectrum. */
typedef struct pnr_cpu_spectrum {
    uint32_t bin;      /* bin of the slow-time transform of its set, 0 .. K-1 */
    uint32_t rotation; /* index into axes.rotations */
} pnr_cpu_spectrum;

/* The spectra of one slow-time transform. */
typedef struct pnr_cpu_set {
    double stretch;
    unsigned quarters;   /* r when 4 does not divide K; else 0 */
    size_t first, count; /* the spectra of the set: first .. first + count - 1 */
    bool is_summed;      /* each bin is a sum, because the set has few bins */
} pnr_cpu_set;

typedef struct pnr_cpu_row {
    uint32_t spectrum;
    uint32_t shift;   /* m mod N if the index is rotated, else 0 */
    uint32_t variant; /* index into axes.variants */
    uint32_t phase;   /* m mod N: c lacks the factor exp(-2 pi i m k / N); 0: c is complete */
} pnr_cpu_row;

typedef struct pnr_cpu_axes {
    size_t n_transform; /* length of the transforms */
    size_t n_rows, n_sets, n_spectra, n_rotations, n_variants;
    pnr_cpu_row *rows;
    uint32_t *order; /* [n_rows] row numbers; the rows of one spectrum are next to each other */
    pnr_cpu_set *sets;
    pnr_cpu_spectrum *spectra; /* the spectra of a set are next to each other */
    /* quarters of a bin; sample x[n] is multiplied by exp(-2 pi i rotation n / (4 N)) */
    int32_t *rotations;
    int32_t *variants; /* m of each variant */
} pnr_cpu_axes;

/* PNR_OK, PNR_ENOMEMORY; call destroy in either case. */
int pnr_cpu_axes_create(const pnr_plan *plan, pnr_cpu_axes *axes);
void pnr_cpu_axes_destroy(pnr_cpu_axes *axes);

#endif
