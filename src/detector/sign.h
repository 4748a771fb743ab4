/* SPDX-License-Identifier: MIT */
/* Sign changes inside a look. Data bits and secondary codes cause them. */
#ifndef PNR_DETECTOR_SIGN_H
#define PNR_DETECTOR_SIGN_H

#include "detector/detector.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * A change of sign in the middle of a look of K periods splits an echo into two lobes, 0.75 rows
 * above and below its Doppler, each with half of the power. So two candidates appear, or one
 * candidate at the wrong Doppler. The number of periods of a bit (pnr_code.bits) is the distance
 * between possible changes. The time of the first change is unknown. The code of an echo at lag d
 * begins at sample d of each window. So a window with a change has the mean sign s (2 d / N - 1),
 * where s is the sign before the change. In linear windows the sign changes between windows. An
 * echo is not corrected if its code or the look is outside the limits below.
 *
 * The rows of the patch are transformed to slow time, and every pattern of signs is tried at
 * Dopplers around the candidate. The echo is then fitted anew with the best pattern in its model
 * (estimate/slow_time.h). If other echoes of this code are near this delay, the fit must explain
 * nearly as much power as all of them together. The fit then replaces them. Without such echoes the
 * fit must explain more power than noise alone does.
 */
enum {
    PNR_SIGN_BITS = 8,      /* fewest periods of a bit: shorter bits look like a Doppler shift */
    PNR_SIGN_CHANGES = 2,   /* greatest number of bits that may begin in a look */
    PNR_SIGN_PERIODS = 256, /* greatest number of periods of a look */
};

/* The signs of the periods of a look. */
typedef struct pnr_signs {
    size_t first;     /* the first window in which a bit begins */
    unsigned changes; /* bit i is set: the sign changes i data bits after `first`; 0: no change */
} pnr_signs;

struct pnr_detector;
struct pnr_track;

/* True if the detector can find sign changes of a code. */
bool pnr_sign_is_corrected(const struct pnr_detector *detector, size_t code);
/* Corrects the tracks of codes with data, and removes tracks that are lobes of other tracks.
 * Returns the number of tracks left. cell: the noise power of one cell. */
size_t pnr_sign_correct(const struct pnr_detector *detector, struct pnr_track *tracks, size_t n,
                        double cell);
/* Sets the signs of a track, if it has any, in the model of the map. pnr_sign_end clears them. */
void pnr_sign_begin(const struct pnr_detector *detector, const struct pnr_track *t);
void pnr_sign_end(const struct pnr_detector *detector, const struct pnr_track *t);

#endif
