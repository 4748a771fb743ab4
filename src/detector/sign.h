/* SPDX-License-Identifier: MIT */
/* Sign changes inside a look, as data bits and secondary codes make them. */
#ifndef PNR_DETECTOR_SIGN_H
#define PNR_DETECTOR_SIGN_H

#include "detector/detector.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * A change of sign in the middle of a look of K periods splits an echo into two lobes, 0.75 rows
 * above and below its Doppler, each with half of the power: two candidates, or one at the wrong
 * Doppler. The periods of a bit (pnr_code.bits) say how far apart changes lie, not where the first
 * is. The echo's own code begins at sample d of each window, d its lag, so the window of a change
 * has the sign s (2 d / N - 1), s the sign before; in linear windows the sign changes between
 * windows.
 *
 * The rows of the patch are transformed to slow time, and every pattern of signs is tried at
 * Dopplers around the candidate. The echo is then fitted anew with the best pattern in its model
 * (estimate/slow_time.h). The fit is kept if it explains as much as all echoes of this code at this
 * delay together, or more than noise alone explains; these echoes are then one.
 */
enum {
    PNR_SIGN_BITS = 8,      /* shorter bits look like a Doppler shift; nothing is corrected */
    PNR_SIGN_CHANGES = 2,   /* bits may begin so often in a look; else nothing is corrected */
    PNR_SIGN_PERIODS = 256, /* most periods of a look */
};

/* The signs of the periods of a look. */
typedef struct pnr_signs {
    size_t first;     /* the window in which a bit first begins */
    unsigned changes; /* bit i: the sign changes i bits later; 0: it never does */
} pnr_signs;

struct pnr_detector;
struct pnr_track;

/* True if the detector can find sign changes of a code. */
bool pnr_sign_is_corrected(const struct pnr_detector *detector, size_t code);
/* Corrects the tracks of codes with data, and removes those that are lobes of others. Returns the
 * number of tracks. cell: the noise power of one cell. */
size_t pnr_sign_correct(const struct pnr_detector *detector, struct pnr_track *tracks, size_t n,
                        double cell);
/* Puts the signs of a track into the model of the map, until pnr_sign_end. */
void pnr_sign_begin(const struct pnr_detector *detector, const struct pnr_track *t);
void pnr_sign_end(const struct pnr_detector *detector);

#endif
