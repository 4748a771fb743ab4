/* SPDX-License-Identifier: MIT */
/* Reads samples of a view: converts them, tunes them, and subtracts echoes. */
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
    /* index in the view of the first sample of the look; removals count from this sample */
    size_t look;
    bool keeps_marks;
} pnr_cpu_reading;

/* Reads n samples of the view from `first` on. They have full scale = 1, are conjugated if
 * plan->conjugate, then tuned, and the echoes in `removals` are subtracted. Lost and non-finite
 * samples are 0, or NaN if keeps_marks. Adds to all members of *counts except energy. */
void pnr_cpu_read(const pnr_cpu_reading *reading, size_t first, size_t n, float (*out)[2],
                  pnr_converted *counts);
/* The first two steps of pnr_cpu_read: convert the samples, then tune them. Other callers may use
 * them only if they need neither marks nor removals. */
void pnr_cpu_convert_view(const pnr_cpu_reading *reading, size_t first, size_t n, float (*out)[2],
                          pnr_converted *counts);
void pnr_cpu_tune(const pnr_cpu_reading *reading, size_t first, size_t n, float (*x)[2]);

#endif
