/* SPDX-License-Identifier: MIT */
/* The part of a code's spectrum that is correlated: without notches, without DC, and for real
 * samples without the image at negative frequencies. */
#ifndef PNR_BAND_H
#define PNR_BAND_H

#include "base/error.h"
#include "config/config.h"

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>

/* The 128 bytes of window.notch can list 25 notches. With real samples each notch is added
 * twice. */
enum { PNR_MAX_NOTCHES = 64 };

/* Frequencies are in cycles per sample, before `tune` mixes the samples down. */
typedef struct pnr_band {
    bool is_half; /* only frequencies between 0 and half of the rate are kept */
    double tune;
    size_t n_notches;
    struct {
        double centre, reach; /* the notch removes centre - reach .. centre + reach */
    } notches[PNR_MAX_NOTCHES];
} pnr_band;

/*
 * Adds the notches of window.dc and window.notch. A row that rotates the samples by f correlates
 * the frequency g of the samples with the frequency g - f of the code. So each notch is widened by
 * all rotations from `lowest` to `highest` (cycles per sample), and one code is valid for all rows.
 * The keys give frequencies of the recording. With real samples each notch is added at both signs.
 * With source.spectrum = inverted its sign changes. Returns PNR_OK, or PNR_ECONFIG: the message has
 * the refused value.
 */
int pnr_band_add_notches(pnr_band *band, const pnr_config *config, bool is_real, double lowest,
                         double highest, pnr_error *error);

/*
 * Keeps the harmonics of the code a, [n], that are in the band. A notch removes at least the
 * harmonic nearest to it. Samples correlated with the result equal filtered samples correlated
 * with a.
 *
 * Real samples x = Re z contain z at positive frequencies and its image at negative frequencies.
 * is_half keeps only the frequencies between 0 and half of the rate. 0 and half of the rate are
 * removed too, because z and its image overlap there. The result therefore correlates with the
 * analytic signal of x (D. Gabor, Theory of communication, 1946).
 *
 * *share: the kept energy divided by the energy of a. *removed: the energy that the notches remove,
 * divided by the energy that would be kept without notches. Returns PNR_OK, PNR_ENOMEMORY or
 * PNR_EEND.
 */
int pnr_band_keep(const pnr_band *band, double complex *a, size_t n, double *share,
                  double *removed);

#endif
