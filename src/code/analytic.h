/* SPDX-License-Identifier: MIT */
/* The part of a code that real samples show once. */
#ifndef PNR_ANALYTIC_H
#define PNR_ANALYTIC_H

#include <complex.h>
#include <stddef.h>

/*
 * Real samples x = Re z show z at positive frequencies and its image at negative ones. This keeps
 * the frequencies of the code a that lie above 0 and below half of the rate in the samples, before
 * `tune` (cycles a sample) mixes them down; 0 and half of the rate, where both meet, are left out.
 * Correlating x with the result is the same as correlating the analytic signal of x with a (D.
 * Gabor, Theory of communication, 1946). a: [n], in place. *share: of the energy that is kept.
 * PNR_OK, PNR_ENOMEMORY.
 */
int pnr_analytic_keep(double complex *a, size_t n, double tune, double *share);

#endif
