/* SPDX-License-Identifier: MIT */
/* The part of a code's spectrum that is correlated: without the image of real samples, DC and
 * notches. */
#ifndef PNR_BAND_H
#define PNR_BAND_H

#include "base/error.h"
#include "config/config.h"

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>

/* The 128 bytes of window.notch can list 25 notches. In real samples each notch counts twice. */
enum { PNR_MAX_NOTCHES = 64 };

/* The frequencies are in cycles a sample. They are those of the samples before `tune` mixes them
 * down. */
typedef struct pnr_band {
    bool is_half; /* the band lies between 0 and half of the rate */
    double tune;
    size_t n_notches;
    struct {
        double centre, reach; /* the notch removes centre - reach to centre + reach */
    } notches[PNR_MAX_NOTCHES];
} pnr_band;

/*
 * Adds the notches of window.dc and window.notch. In a row that rotates the samples by f, the
 * frequency g of the samples meets the frequency g - f of the code. So each notch is widened by all
 * rotations from `lowest` to `highest` (cycles a sample), and one code serves all rows. The keys
 * give frequencies of the recording. In real samples each notch is made at both signs, and
 * source.spectrum = inverted changes the sign. PNR_ECONFIG: the message has the refused value.
 */
int pnr_band_add_notches(pnr_band *band, const pnr_config *config, bool is_real, double lowest,
                         double highest, pnr_error *error);

/*
 * Keeps the harmonics of the code a, [n], that lie in the band. A notch removes at least the
 * harmonic nearest to it. To correlate samples with the result is the same as to correlate the
 * filtered samples with a.
 *
 * Real samples x = Re z show z at positive frequencies and its image at negative ones. With is_half
 * only the frequencies between 0 and half of the rate are kept. 0 and half of the rate are left out
 * too, because z and its image meet there. So the result correlates with the analytic signal of x
 * (D. Gabor, Theory of communication, 1946).
 *
 * *share: the kept energy divided by the energy of a. *removed: the energy that the notches remove,
 * divided by the energy that would be kept without notches. PNR_OK, PNR_ENOMEMORY.
 */
int pnr_band_keep(const pnr_band *band, double complex *a, size_t n, double *share,
                  double *removed);

#endif
