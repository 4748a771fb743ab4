/* SPDX-License-Identifier: MIT */
/* The cross-ambiguity of a code: the exact response at a lag to an echo with a Doppler. */
#ifndef PNR_AMBIGUITY_H
#define PNR_AMBIGUITY_H

#include "setup/setup.h"

#include <complex.h>

/*
 * An echo of the code a with delay d and frequency v (in bins of 1/Tr) is a(n - d) exp(2 pi i v n /
 * N). The samples are rotated by f (engine/plan.h) and correlated with a code b. R is the
 * autocorrelation of a. With e = v - f and the time counted from the middle of the window, the
 * response at lag k is
 *     chi(k) = 1/R(0) sum_i a(i - d) exp(2 pi i e (i - (N - 1)/2) / N) conj(b[i - k]),
 * i = 0 .. N - 1 with i - k taken mod N; a linear correlation has i = k .. k + N - 1. In both cases
 * chi assumes that the code repeats. For a single pulse chi is wrong, but only in the sidelobes. If
 * e = 0 and b = a, chi(k) is R(k - d)/R(0).
 */
typedef struct pnr_ambiguity pnr_ambiguity;

enum { PNR_AMBIGUITY_LAGS = PNR_NEIGHBOURS }; /* the most lags in one call */

/* Keeps a pointer to setup and prepares the waveforms of its codes. PNR_OK, PNR_ENOMEMORY. */
int pnr_ambiguity_create(const pnr_setup *setup, pnr_ambiguity **out);
void pnr_ambiguity_destroy(pnr_ambiguity *ambiguity);

/* Sets the echo: its code, and its delay in samples from the first sample of the window. */
void pnr_ambiguity_set(pnr_ambiguity *ambiguity, size_t code, double delay);

/* Sets an echo whose delay changes from window to window. In row `row` of a map it is the sum of
 * all windows with the weights of this row. bins: the frequency of the echo. Returns true if this
 * echo is not stored yet. Then the caller adds all windows with pnr_ambiguity_add. */
bool pnr_ambiguity_set_sum(pnr_ambiguity *ambiguity, size_t code, double delay, size_t row,
                           double bins);
/* Adds two terms to the echo that is set: `sum` times a(n - delay), and `by_delay` times the
 * derivative of a(n - delay) with respect to delay. walk: the growth of the delay within a window,
 * in samples. A linear correlation ignores it: its lags also read samples after the window, where
 * the stored echo, which repeats after N samples, would begin the walk again. */
void pnr_ambiguity_add(pnr_ambiguity *ambiguity, double delay, double complex sum,
                       double complex by_delay, double walk);

/* Fills chi of the echo that is set, at the lags first .. first + n_lags - 1 of code `code`. Fills
 * the derivatives of chi with respect to the delay and to e, unless these are NULL. by_delay must
 * be NULL for a sum of windows. Takes O(N) steps for each lag. */
void pnr_ambiguity_at(pnr_ambiguity *ambiguity, size_t code, double e, long first, size_t n_lags,
                      double complex *chi, double complex *by_delay, double complex *by_e);

#endif
