/* SPDX-License-Identifier: MIT */
/* Measures the times of the stages of a submit, if plan.measure is set. */
#ifndef PNR_ENGINE_CPU_STOPWATCH_H
#define PNR_ENGINE_CPU_STOPWATCH_H

#include "base/clock.h"
#include "engine/engine.h"

/* Begins a lap: returns the present time in ns, or 0 if stage_ns is NULL. */
static inline uint64_t pnr_cpu_start(const uint64_t *stage_ns)
{
    return stage_ns != NULL ? pnr_clock_ns() : 0;
}

/* Adds the time since *since to a stage, and sets *since to now. PNR_STAGE_COUNT: adds to no stage.
 * stage_ns: [PNR_STAGE_COUNT]; NULL: nothing is measured. */
static inline void pnr_cpu_lap(uint64_t *stage_ns, int stage, uint64_t *since)
{
    if (stage_ns != NULL) {
        const uint64_t now = pnr_clock_ns();

        if (stage < PNR_STAGE_COUNT)
            stage_ns[stage] += now - *since;
        *since = now;
    }
}

#endif
