/* SPDX-License-Identifier: MIT */
/* The interpolation that reads a look with another time scale. Every engine uses the same table. */
#ifndef PNR_STRETCH_H
#define PNR_STRETCH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { PNR_STRETCH_TAPS = 32, PNR_STRETCH_STEPS = 512 };

/* The place at which one sample of a stretched look is read. x are the samples of the look, and 0
 * outside of the look. T is the table:
 *     y[n] = sum_i x[first + i] (T[row][i] + part (T[row + 1][i] - T[row][i])), i = 0 .. 31. */
typedef struct pnr_stretch_place {
    int64_t first; /* the first of 32 samples, counted in the look; may lie outside of it */
    uint32_t row;  /* row of T, 0 .. PNR_STRETCH_STEPS - 1 */
    float part;    /* weight of row + 1, from 0 to 1 */
} pnr_stretch_place;

/* Returns the place of sample n of a look of n_look = K N samples. The place is at the time
 * m + (n - m) (1 + stretch), m = (n_look - 1) / 2. n may be n_look or more, at the end of a linear
 * window. The function is inline, because it runs once for each sample. */
static inline pnr_stretch_place pnr_stretch_at(double stretch, size_t n_look, size_t n)
{
    /* n is added as an integer, without rounding */
    const double moved = ((double)n - 0.5 * ((double)n_look - 1)) * stretch, whole = floor(moved);
    const double step = (moved - whole) * PNR_STRETCH_STEPS;
    pnr_stretch_place place;

    place.first = (int64_t)n + (int64_t)whole - (PNR_STRETCH_TAPS / 2 - 1);
    place.row = step < PNR_STRETCH_STEPS ? (uint32_t)step : PNR_STRETCH_STEPS - 1;
    place.part = (float)(step - place.row);
    return place;
}

/* Fills table[j][i], the weight of sample i - 15 at the time j / PNR_STRETCH_STEPS. The weights are
 * a sinc within a Kaiser window of 32 samples. Their error is below 1e-3 for frequencies up to 0.44
 * of the sample rate (0.88 of the band of complex samples). The sum of the weights of a row is 1.
 * Linear interpolation between two rows adds an error of 5e-6 at most. */
void pnr_stretch_table(float (*table)[PNR_STRETCH_TAPS]); /* [PNR_STRETCH_STEPS + 1] */

#endif
