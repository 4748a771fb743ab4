/* SPDX-License-Identifier: MIT */
/* The code's cross-ambiguity: what an echo with a Doppler puts at a lag, summed over all samples */
#ifndef PNR_AMBIGUITY_H
#define PNR_AMBIGUITY_H

#include "setup/setup.h"

/*
 * An echo a(n - d) exp(2 pi i v n / N), correlated with a code b after a rotation of the samples by
 * f (engine.h's map), has at lag k, with e = v - f and time counted from the window's middle,
 *     chi(k) = 1/R(0) sum_i a(i - d) exp(2 pi i e (i - (N - 1)/2) / N) conj(b[i - k]),
 * i = 0 .. N - 1 (the code goes round: i - k mod N); of a linear correlation i = k .. k + N - 1.
 * Linear or not, the code is taken to repeat: a pulse that stands alone differs by its sidelobes
 * only, and N samples later nothing of it is left. At e = 0 chi(k) is R(k - d)/R(0).
 */
typedef struct pnr_ambiguity pnr_ambiguity;

enum { PNR_AMBIGUITY_LAGS = PNR_NEIGHBOURS }; /* at most, at one time */

/* Keeps a pointer to setup; its waveforms are prepared. PNR_OK, PNR_ENOMEMORY. */
int pnr_ambiguity_create(const pnr_setup *setup, pnr_ambiguity **out);
void pnr_ambiguity_destroy(pnr_ambiguity *ambiguity);

/* The echo, until the next call: its code and its delay, from the window's first sample. */
void pnr_ambiguity_set(pnr_ambiguity *ambiguity, size_t code, double delay);

/* chi at the lags first .. first + n_lags - 1 of code `code`, and unless they are NULL its
 * derivatives by the echo's delay and by e. O(N) each. */
void pnr_ambiguity_at(pnr_ambiguity *ambiguity, size_t code, double e, long first, size_t n_lags,
                      double (*chi)[2], double (*by_delay)[2], double (*by_e)[2]);

#endif
