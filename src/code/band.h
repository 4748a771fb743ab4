/* SPDX-License-Identifier: MIT */
/* The part of a code's spectrum that is correlated. The frequencies of the notches, DC for example,
 * are removed. For real samples the negative frequencies are removed too. */
#ifndef PNR_BAND_H
#define PNR_BAND_H

#include "base/error.h"
#include "config/config.h"

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>

/* One notch of window.dc and those of window.notch. With real samples each notch is added twice. */
enum { PNR_MAX_NOTCHES = 2 * (1 + PNR_CONFIG_NOTCHES) };

/* Frequencies are in cycles per sample. They are frequencies of the samples before the mix, which
 * subtracts `tune`. */
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
 * The keys give frequencies of the recording. With source.spectrum = inverted each frequency
 * changes its sign. With real samples a notch at f is also added at -f. Returns PNR_OK, or
 * PNR_ECONFIG: the message has the refused value.
 */
int pnr_band_add_notches(pnr_band *band, const pnr_config *config, bool is_real, double lowest,
                         double highest, pnr_error *error);

/*
 * Keeps the harmonics of the code a, [n], that are in the band. A notch removes at least the
 * harmonic nearest to it. A correlation of the samples with the filtered code equals a correlation
 * of the filtered samples with a.
 *
 * Real samples x = Re z contain z at positive frequencies and its image at negative frequencies.
 * is_half keeps only the frequencies between 0 and half of the rate. 0 and half of the rate are
 * removed too, because z and its image overlap there. So only the analytic signal of x contributes
 * to the correlation (D. Gabor, Theory of communication, 1946).
 *
 * *share: the kept energy divided by the energy of a. *removed: the energy that the notches remove,
 * divided by the energy that would be kept without notches. Returns PNR_OK; PNR_ENOMEMORY;
 * PNR_EEND: stopped as pnr_parallel_stop_at describes.
 */
int pnr_band_keep(const pnr_band *band, double complex *a, size_t n, double *share,
                  double *removed);

#endif
