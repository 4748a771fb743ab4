/* SPDX-License-Identifier: MIT */
/* The interpolation that reads a look with another time scale. Every engine uses the same table.
 *
 * A sinc of a few samples attenuates the frequencies near half of the sample rate, but a code may
 * use these frequencies. So the sample rate is first doubled, exactly. The look has K N samples,
 * and n_tail samples of linear lags after these. M = pnr_stretch_margin samples are added on each
 * side. Added sample n is a copy of x[n + j N], the same place in the nearest period, because the
 * code is periodic. The added samples fade out within the outer PNR_STRETCH_FADE samples. Zeros
 * extend the result to L = pnr_transform_fast_length(K N + n_tail + 2 M) samples. X is the DFT of
 * these L samples. Then
 *     d[2 n] = x[n],    d[2 n + 1] = 1 / L sum_v X[v] exp(2 pi i v (n + M + 1/2) / L), |v| < L / 2.
 * If the plan has a band, v runs only over the bins in the band, and
 *     d[2 n] = 1 / L sum_v X[v] exp(2 pi i v (n + M) / L).
 * The interpolation reads d, the doubled look. */
#ifndef PNR_STRETCH_H
#define PNR_STRETCH_H

#include "engine/plan.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { PNR_STRETCH_TAPS = 16, PNR_STRETCH_STEPS = 512, PNR_STRETCH_FADE = 64 };

/* The place at which one sample of a stretched look is read. T is the table:
 *     y[n] = sum_i d[first + i] (T[row][i] + part (T[row + 1][i] - T[row][i])), i = 0 .. 15. */
typedef struct pnr_stretch_place {
    int64_t first; /* the first of 16 values of d, counted from sample 0 of the look */
    uint32_t row;  /* row of T, 0 .. PNR_STRETCH_STEPS - 1 */
    float part;    /* weight of row + 1, from 0 to 1 */
} pnr_stretch_place;

/* Returns the place of sample n of a look of n_look = K N samples. The place is at the time
 * m + (n - m) (1 + stretch), m = (n_look - 1) / 2. n may be n_look or more, at the end of a linear
 * window. The function is inline, because it runs once for each sample. */
static inline pnr_stretch_place pnr_stretch_at(double stretch, size_t n_look, size_t n)
{
    /* in half samples; n is added as an integer, without rounding */
    const double moved = (2 * (double)n - ((double)n_look - 1)) * stretch, whole = floor(moved);
    const double step = (moved - whole) * PNR_STRETCH_STEPS;
    pnr_stretch_place place;

    place.first = 2 * (int64_t)n + (int64_t)whole - (PNR_STRETCH_TAPS / 2 - 1);
    place.row = step < PNR_STRETCH_STEPS ? (uint32_t)step : PNR_STRETCH_STEPS - 1;
    place.part = (float)(step - place.row);
    return place;
}

/* Returns M, which suffices for all hypotheses of the plan; 0: no hypothesis has a stretch. */
size_t pnr_stretch_margin(const pnr_plan *plan);

/* Returns n if sample n is in the look, 0 <= n < n_look. Here n_look includes the tail of linear
 * lags. If sample n is in a margin, returns the index of the same place in the nearest period. */
static inline size_t pnr_stretch_inside(int64_t n, size_t n_look, size_t n_samples)
{
    const int64_t period = (int64_t)n_samples, end = (int64_t)n_look;

    if (n < 0)
        return (size_t)(period - 1 - (-n - 1) % period);
    return (size_t)(n < end ? n : end - period + (n - end) % period);
}

/* Returns the weight of a sample of a margin. beyond: the distance of this sample from the look,
 * 1 .. M. */
static inline float pnr_stretch_fade(size_t beyond, size_t margin)
{
    const double left = (double)(margin + 1 - beyond) / (PNR_STRETCH_FADE + 1);
    const double sine = sin(M_PI / 2 * left);

    return left < 1 ? (float)(sine * sine) : 1;
}

static inline bool pnr_stretch_has_band(const double band[2])
{
    return band[1] > band[0];
}

/* True if the sums over v include bin v of X: v is not L / 2, and v is in the band if the plan has
 * one. */
static inline bool pnr_stretch_keeps(const double band[2], size_t v, size_t length)
{
    const double at = (double)v / (double)length, above = at - band[0] - floor(at - band[0]);

    return 2 * v != length &&
           (!pnr_stretch_has_band(band) || (above > 0 && above < band[1] - band[0]));
}

/* Fills the weight of bin v of X for the half samples d[2 n + 1]: exp(pi i u / L) / L, where u is
 * v, or v - L for v > L / 2. The weight is 0 for v = L / 2 and outside of the band. */
static inline void pnr_stretch_half(const double band[2], size_t v, size_t length, double weight[2])
{
    const double at = 2 * v < length ? (double)v : (double)v - (double)length;
    const double scale = pnr_stretch_keeps(band, v, length) ? 1 / (double)length : 0;

    weight[0] = cos(M_PI * at / (double)length) * scale;
    weight[1] = sin(M_PI * at / (double)length) * scale;
}

/* Fills table[j][i], the weight of value i - 7 of d at the time j / PNR_STRETCH_STEPS. Times are in
 * half samples. The weights are a sinc multiplied by a Kaiser window of 16 values. d contains
 * frequencies up to a quarter of its rate. For these the error is below 1e-5. The sum of the
 * weights of a row is 1. Linear interpolation between two rows adds an error of 1.2e-6 at most. */
void pnr_stretch_table(float (*table)[PNR_STRETCH_TAPS]); /* [PNR_STRETCH_STEPS + 1] */

#endif
