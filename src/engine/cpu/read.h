/* SPDX-License-Identifier: MIT */
/* Reads samples of a view: converts them, mixes them down by plan->tune, and subtracts echoes. */
#ifndef PNR_ENGINE_CPU_READ_H
#define PNR_ENGINE_CPU_READ_H

#include "engine/cpu/ops.h"
#include "engine/engine.h"

enum { PNR_CPU_READ_MOST = 2048 }; /* most samples of one call */

typedef struct pnr_cpu_reading {
    const pnr_plan *plan;
    const pnr_windows *windows;
    const pnr_rotation *rotation;
    const pnr_removal *removals;
    size_t n_removals;
    /* index, in the view, of the first sample of the look. n of pnr_removal is 0 at this sample */
    size_t look;
    bool keeps_marks;
} pnr_cpu_reading;

/* Reads n samples of the view from `first` on. Converts them to full scale = 1, conjugates them if
 * plan->conjugate, mixes them down by plan->tune, and subtracts the echoes in `removals`. Lost and
 * non-finite samples become 0, or NaN if keeps_marks. Adds the numbers of clipped and of non-finite
 * samples to *counts, whose energy does not change. */
void pnr_cpu_read(const pnr_cpu_reading *reading, size_t first, size_t n, float (*out)[2],
                  pnr_converted *counts);
/* The first two steps of pnr_cpu_read: pnr_cpu_convert_view converts the samples, then pnr_cpu_tune
 * mixes them down. Other callers may call these two functions only if they need neither marks nor
 * removals. */
void pnr_cpu_convert_view(const pnr_cpu_reading *reading, size_t first, size_t n, float (*out)[2],
                          pnr_converted *counts);
void pnr_cpu_tune(const pnr_cpu_reading *reading, size_t first, size_t n, float (*x)[2]);

#endif
