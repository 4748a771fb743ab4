/* SPDX-License-Identifier: MIT */
/* Computes c and |c|^2 of each look, for a plan with one code and one row (`fused` in cpu.h). */
#ifndef PNR_ENGINE_CPU_FUSED_H
#define PNR_ENGINE_CPU_FUSED_H

#include "engine/cpu/steps.h"

/* One way to compute c and |c|^2. */
struct pnr_cpu_fused {
    const char *method;
    /* Returns false if this way does not suit the plan. n_transform: length of the transforms. */
    bool (*suits)(const pnr_plan *plan, size_t n_transform);
    void (*shape)(pnr_cpu *cpu);
    /* Sets step->input: `correlate` reads window step->number from there. If choose_input is NULL,
     * every window is converted to step->to. */
    void (*choose_input)(pnr_cpu_step *step);
    /* Correlates y with the code. Writes c to the profile with the index step->n_used. Writes |c|^2
     * of the first used look to the powers, and adds |c|^2 of the later looks. */
    void (*correlate)(pnr_cpu_step *step);
    /* Reads c at an integer lag of a profile. */
    void (*value)(const pnr_cpu *cpu, const pnr_cpu_value *profile, size_t lag, pnr_cpu_value c);
};

/* Returns the fastest way that suits the plan and plan->method. Returns NULL if
 * pnr_plan_is_one_line is false. */
const pnr_cpu_fused *pnr_cpu_fused_choose(const pnr_plan *plan, size_t n_transform);
/* Sets the sizes that cpu->fused needs. Chooses whether n_threads threads share a dwell or compute
 * separate dwells. */
void pnr_cpu_fused_shape(pnr_cpu *cpu, size_t n_threads);
/* Sets choice->method and choice->why. */
void pnr_cpu_fused_describe(const pnr_cpu *cpu, pnr_engine_choice *choice);

/* Runs after the last look. Sorts the powers by lag if the search or the result needs this order.
 * Writes c of the last used look to the result if the plan wants c. */
void pnr_cpu_fused_finish(const pnr_cpu_step *step);
/* Sets the 17 values around each candidate. */
void pnr_cpu_fused_gather(const pnr_cpu_step *step);

#endif
