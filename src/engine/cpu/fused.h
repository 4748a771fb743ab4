/* SPDX-License-Identifier: MIT */
/* Way `fused` of cpu.h: computes c and |c|^2 of the only line from the samples of a look. */
#ifndef PNR_ENGINE_CPU_FUSED_H
#define PNR_ENGINE_CPU_FUSED_H

#include "engine/cpu/steps.h"

/* One way to compute the line. */
struct pnr_cpu_fused {
    const char *method;
    /* Returns false if this way does not suit the plan. Transforms have n_transform values. */
    bool (*suits)(const pnr_plan *plan, size_t n_transform);
    void (*shape)(pnr_cpu *cpu);
    /* Chooses where `correlate` reads window step->number. NULL: every window is converted to
     * step->to. */
    void (*choose_input)(pnr_cpu_step *step);
    /* Correlates y with the code. Writes c to the profile of look number n_used. Writes |c|^2 to
     * the powers or adds it to them. */
    void (*correlate)(pnr_cpu_step *step);
    /* Reads c at an integer lag of a profile. */
    void (*value)(const pnr_cpu *cpu, const pnr_cpu_value *profile, size_t lag, pnr_cpu_value c);
};

/* Chooses the fastest way for the plan and its method; NULL: the plan has several lines. */
const pnr_cpu_fused *pnr_cpu_fused_choose(const pnr_plan *plan, size_t n_transform);
/* Sets the sizes that cpu->fused needs, and how n_threads threads share the dwells. */
void pnr_cpu_fused_shape(pnr_cpu *cpu, size_t n_threads);
/* Sets choice->method and choice->why. */
void pnr_cpu_fused_describe(const pnr_cpu *cpu, pnr_engine_choice *choice);

/* Runs after the last look. Puts the powers into the order of lags if the search or the result
 * needs this order. Writes c of the last used look to the result if the plan wants c. */
void pnr_cpu_fused_finish(const pnr_cpu_step *step);
/* Sets the 17 values around each candidate. */
void pnr_cpu_fused_gather(const pnr_cpu_step *step);

#endif
