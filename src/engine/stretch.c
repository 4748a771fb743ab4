/* SPDX-License-Identifier: MIT */
/* Computes the interpolation table: sinc functions multiplied by a Kaiser window. */
#include "engine/stretch.h"

#include <math.h>

/* The tap of the last value at or before the wanted time. */
enum { BEFORE = PNR_STRETCH_TAPS / 2 - 1 };

/* The shape of the Kaiser window: the pass band ends at a quarter of the doubled rate, and the stop
 * band begins at three quarters. */
static const double kaiser_beta = 12;

/* Returns the modified Bessel function of order 0, by its power series. */
static double bessel_i0(double x)
{
    double sum = 1, term = 1;

    for (int k = 1; term > 1e-17 * sum; k++) {
        term *= x * x / (4.0 * k * k);
        sum += term;
    }
    return sum;
}

static double weight_of(double t)
{
    const double half = PNR_STRETCH_TAPS / 2;
    const double inside = 1 - (t / half) * (t / half);
    const double window =
        inside > 0 ? bessel_i0(kaiser_beta * sqrt(inside)) / bessel_i0(kaiser_beta) : 0;

    return t == 0 ? 1 : sin(M_PI * t) / (M_PI * t) * window;
}

/* A sample moves by |stretch| times its distance from the middle of the look. Engines compute up to
 * AT_ONCE samples more than a window has. */
size_t pnr_stretch_margin(const pnr_plan *plan)
{
    enum { AT_ONCE = 8 };
    const double half = 0.5 * (double)(plan->n_periods * plan->n_samples);
    const double n_tail = (double)(pnr_plan_window_samples(plan) - plan->n_samples);
    double most = 0;

    for (size_t h = 0; h < plan->n_hypotheses; h++)
        most = fmax(most, fabs(pnr_plan_hypothesis(plan, h).stretch));
    return most > 0 ? (size_t)ceil(most * (half + n_tail + AT_ONCE)) + AT_ONCE + PNR_STRETCH_TAPS +
                          PNR_STRETCH_FADE
                    : 0;
}

void pnr_stretch_table(float (*table)[PNR_STRETCH_TAPS])
{
    for (int j = 0; j <= PNR_STRETCH_STEPS; j++) {
        double weight[PNR_STRETCH_TAPS], sum = 0;

        for (int i = 0; i < PNR_STRETCH_TAPS; i++) {
            const double t = (double)j / PNR_STRETCH_STEPS - (i - BEFORE);

            /* exactly 0 at the other integers, where the rounded sin(pi t) is not 0 */
            weight[i] = t != 0 && t == floor(t) ? 0 : weight_of(t);
            sum += weight[i];
        }
        for (int i = 0; i < PNR_STRETCH_TAPS; i++)
            table[j][i] = (float)(weight[i] / sum);
    }
}
