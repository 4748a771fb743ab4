/* SPDX-License-Identifier: MIT */
/* Samples of a view as the cpu engine's maps, and a dwell done once more, want them: marks where
 * they are bad, echoes taken out. */
#ifndef PNR_ENGINE_CPU_READ_H
#define PNR_ENGINE_CPU_READ_H

#include "engine/cpu/ops.h"
#include "engine/engine.h"

enum { PNR_CPU_READ_MOST = 2048 }; /* samples a call */

typedef struct pnr_cpu_reading {
    const pnr_plan *plan;
    const pnr_windows *windows;
    const pnr_rotation *rotation;
    const pnr_removal *removals;
    size_t n_removals;
    size_t look; /* of the view's samples: the first of the look, from which removals count */
    bool keeps_marks;
} pnr_cpu_reading;

/* Samples first .. + n - 1 of the view: full scale = 1, conjugated, tuned, without the echoes.
 * Those lost or not finite are 0, or, kept as marks, NaN. Counts go to *counts, its energy does
 * not. */
void pnr_cpu_read(const pnr_cpu_reading *reading, size_t first, size_t n, float (*out)[2],
                  pnr_converted *counts);

#endif
