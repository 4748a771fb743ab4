/* SPDX-License-Identifier: MIT */
/* The edges of the gate. Noise may move an estimated delay across an edge. */
#ifndef PNR_DETECTOR_GATE_H
#define PNR_DETECTOR_GATE_H

#include "setup/radar.h"

#include <math.h>
#include <stdbool.h>

/* True if the gate holds all delays of a circular correlation. Such a gate has no edges. */
static inline bool pnr_gate_is_whole(const pnr_radar *radar)
{
    return !radar->is_linear && radar->max_delay_s - radar->min_delay_s >
                                    radar->period_s - 0.5 / pnr_rational_double(radar->rate_hz);
}

/* Returns the delay, modulo the period Tr, that is nearest to the middle of the gate. So an echo
 * just before the first range is not shown behind the last range. If the gate holds all delays, the
 * function uses a point half a sample before the middle. In a linear correlation the delay is
 * returned unchanged. */
static inline double pnr_gate_wrap(const pnr_radar *radar, double delay_s)
{
    const double half_s = 0.5 / pnr_rational_double(radar->rate_hz);
    const double middle = pnr_gate_is_whole(radar)
                              ? radar->min_delay_s + radar->period_s / 2 - half_s
                              : (radar->min_delay_s + radar->max_delay_s) / 2;

    return radar->is_linear
               ? delay_s
               : delay_s - radar->period_s * round((delay_s - middle) / radar->period_s);
}

/* True if the delay is in the gate, or outside the gate by at most 5 sigmas and not more than one
 * sample. So an echo at the edge is reported in every dwell. */
static inline bool pnr_gate_holds(const pnr_radar *radar, double delay_s, double sigma_s)
{
    const double sample_s = 1 / pnr_rational_double(radar->rate_hz);
    const double margin = fmin(fmax(5 * sigma_s, 1e-3 * sample_s), sample_s);

    return pnr_gate_is_whole(radar) ||
           (delay_s >= radar->min_delay_s - margin && delay_s <= radar->max_delay_s + margin);
}

#endif
