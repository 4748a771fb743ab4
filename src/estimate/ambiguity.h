/* SPDX-License-Identifier: MIT */
/* The cross-ambiguity of a code: the exact response at a lag to an echo with a Doppler. */
#ifndef PNR_AMBIGUITY_H
#define PNR_AMBIGUITY_H

#include "setup/setup.h"

#include <complex.h>

/*
 * An echo of the code a with delay d and frequency v (in bins of 1/Tr) is a(n - d) exp(2 pi i v n /
 * N). The samples are rotated by f (engine/plan.h) and correlated with a code b. R is the
 * autocorrelation of the code. With e = v - f and the time counted from the middle of the window,
 * lag k has
 *     chi(k) = 1/R(0) sum_i a(i - d) exp(2 pi i e (i - (N - 1)/2) / N) conj(b[i - k]),
 * i = 0 .. N - 1 with i - k taken mod N; a linear correlation has i = k .. k + N - 1. In both cases
 * the code is assumed to repeat; a single pulse differs in its sidelobes only. At e = 0, chi(k) is
 * R(k - d)/R(0).
 */
typedef struct pnr_ambiguity pnr_ambiguity;

enum { PNR_AMBIGUITY_LAGS = PNR_NEIGHBOURS }; /* the most lags in one call */

/* Keeps a pointer to setup and prepares the waveforms of its codes. PNR_OK, PNR_ENOMEMORY. */
int pnr_ambiguity_create(const pnr_setup *setup, pnr_ambiguity **out);
void pnr_ambiguity_destroy(pnr_ambiguity *ambiguity);

/* Sets the echo: its code, and its delay from the first sample of the window. */
void pnr_ambiguity_set(pnr_ambiguity *ambiguity, size_t code, double delay);

/* Sets an echo with a delay that changes from window to window, as row `row` of a map has it. This
 * is the sum of the windows, each with its weight in this row. Returns true if this echo is not
 * stored yet. The caller then adds the parts of all windows with pnr_ambiguity_add. */
bool pnr_ambiguity_set_sum(pnr_ambiguity *ambiguity, size_t code, double delay, size_t row,
                           double bins);
/* Adds two parts to the echo that is set: a(n - delay) times `sum`, and its derivative with respect
 * to the delay times `by_delay`. walk: the growth of the delay within a window, samples. Linear
 * correlations ignore it, because they read beyond the window. */
void pnr_ambiguity_add(pnr_ambiguity *ambiguity, double delay, double complex sum,
                       double complex by_delay, double walk);

/* Fills chi of the echo that is set, at the lags first .. first + n_lags - 1 of code `code`. Fills
 * the derivatives of chi with respect to the delay and to e, unless these are NULL. by_delay must
 * be NULL for a sum of windows. Takes O(N) steps for each lag. */
void pnr_ambiguity_at(pnr_ambiguity *ambiguity, size_t code, double e, long first, size_t n_lags,
                      double complex *chi, double complex *by_delay, double complex *by_e);

#endif
