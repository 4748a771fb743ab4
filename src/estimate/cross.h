/* SPDX-License-Identifier: MIT */
/* The correlations of all pairs of codes: C_ab is the response of the correlator of code b to an
 * echo of code a. */
#ifndef PNR_CROSS_H
#define PNR_CROSS_H

#include "setup/setup.h"

#include <complex.h>

/*
 * An echo of code a with delay d and peak A R(0) has the value A R(0) C_ab(j - d) at lag j of the
 * correlation with code b, where
 *     C_ab(u) = sum_n a(n + u) conj(b(n)) / R(0).
 * C_aa is the autocorrelation, and C_ba(u) = conj(C_ab(-u)). All codes have the energy R(0).
 */
typedef struct pnr_cross pnr_cross;

/* Keeps pointers to the autocorrelations of setup. A table takes 64 N bytes while it is filled.
 * Pairs of different codes have no tables if these would take more than 44 MiB together, or if the
 * plan has several rows: the fit in a map has its own model. The caller owns *out. PNR_OK,
 * PNR_ENOMEMORY. */
int pnr_cross_create(const pnr_setup *setup, pnr_cross **out);
void pnr_cross_destroy(pnr_cross *cross);

/* True if the codes `of` and `in` have a table. */
bool pnr_cross_is_known(const pnr_cross *cross, size_t of, size_t in);
/* Fills values[i] = C_ab(from + i), i = 0 .. PNR_NEIGHBOURS - 1, where a is code `of` and b is code
 * `in`. Fills slopes[i] = C_ab'(from + i) unless slopes is NULL. The pair must have a table. */
void pnr_cross_run(const pnr_cross *cross, size_t of, size_t in, double from,
                   double complex *values, double complex *slopes);
/* Adds factor C_ab(t + lag + i) to values[i], i = 0 .. PNR_NEIGHBOURS - 1, where t is the time of
 * the point. The pair must have a table. */
void pnr_cross_add(const pnr_cross *cross, size_t of, size_t in, const pnr_waveform_point *point,
                   long lag, double complex factor, double complex *values);
/* Returns C_ab(u), where a is code `of` and b is code `in`. The pair must have a table. */
double complex pnr_cross_at(const pnr_cross *cross, size_t of, size_t in, double u);
/* Returns an upper bound of |C_ab(u)| for all |u| >= distance. The pair must have a table. */
double pnr_cross_most(const pnr_cross *cross, size_t of, size_t in, double distance);
/* Returns the sum of |C_ab(u)|^2 over one period of u. Without a table returns 1, the sum for two
 * different codes with the same flat spectrum. */
double pnr_cross_total(const pnr_cross *cross, size_t of, size_t in);
/* True if the overlap is known: there is one code and one row, and the table takes less than 44
 * MiB. */
bool pnr_cross_has_overlap(const pnr_cross *cross);
/* Fills *value with C_aa(u), and *overlap with the sum of C_aa(k + u) conj(C_aa(k)) over all lags
 * k, where a is the only code. The overlap must be known. */
void pnr_cross_overlap(const pnr_cross *cross, double u, double complex *value,
                       double complex *overlap);
/* Returns an upper bound of |*overlap| for all |u| >= distance. The overlap must be known. */
double pnr_cross_most_overlap(const pnr_cross *cross, double distance);

#endif
