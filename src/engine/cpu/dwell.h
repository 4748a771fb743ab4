/* SPDX-License-Identifier: MIT */
/* One dwell of the cpu engine, from samples to candidates. */
#ifndef PNR_ENGINE_CPU_DWELL_H
#define PNR_ENGINE_CPU_DWELL_H

#include "engine/cpu/ops.h"
#include "engine/cpu/split.h"
#include "engine/cpu/team.h"
#include "engine/cpu/walsh.h"
#include "engine/engine.h"

/* What does not change after create. */
typedef struct pnr_cpu {
    pnr_plan *plan;
    size_t n_transform;
    bool is_split; /* long: in three passes, which a team shares; else one dwell a thread */
    pnr_cpu_split split;
    fftwf_plan forward, inverse; /* else */
    bool is_walsh;               /* no transform of these */
    pnr_cpu_walsh walsh;
    bool by_team;           /* the steps of a dwell are the team's */
    size_t spectrum_values; /* of a stored or a computed spectrum */
    size_t profile_values;  /* of c, from one profile to the next */
    size_t n_rows; /* profiles kept of a dwell: its windows when they are summed in power, else 1 */
    double energy_of_code;
    pnr_cpu_value *reference[2]; /* conj(spectrum of the code) / n_transform */
    pnr_rotation rotation;
    pnr_cpu_value *tile[PNR_CPU_MAX_THREADS]; /* is_split: each thread's */
    pnr_cpu_team *team;
} pnr_cpu;

/* What one dwell passes through. */
typedef struct pnr_cpu_memory {
    pnr_cpu_value *in; /* a window or a sum of windows; not split: [n_transform], then a product */
    pnr_cpu_value *spectrum[2]; /* split: one for each reference */
    pnr_cpu_value *window;      /* [n_samples], of a coherent dwell */
    pnr_cpu_value *profile;     /* [n_rows][oversample][profile_values] */
    float *power[2];            /* [n_samples] */
    float *grid;                /* oversample 2: [n_samples * 2], for the search */
    float *walsh_power;         /* where W lies, at one sample a chip; else */
    pnr_cpu_value *walsh_parts; /* [n_parts][values]: X, then W */
    pnr_converted *converted;   /* of each block of a window */
} pnr_cpu_memory;

/* Where a dwell's results go. */
typedef struct pnr_cpu_dwell {
    const pnr_windows *windows;
    size_t number;        /* of the dwell in windows */
    const uint32_t *lost; /* [n_looks][n_periods] */
    pnr_dwell *sums;
    pnr_candidate *candidates;
    uint32_t *nonfinite; /* [n_looks][n_periods] */
    float *profile;      /* NULL: not wanted */
    float *patches;      /* NULL: one row */
    const pnr_removal *removals;
    size_t n_removals;
    uint64_t *stage_ns; /* NULL: not measured */
} pnr_cpu_dwell;

/* Bytes of one pnr_cpu_memory; needs plan, n_transform, is_split, the sizes and n_rows. */
size_t pnr_cpu_memory_bytes(const pnr_cpu *cpu);
/* PNR_OK, PNR_ENOMEMORY; destroy in either case. */
int pnr_cpu_memory_create(const pnr_cpu *cpu, pnr_cpu_memory *memory);
void pnr_cpu_memory_destroy(pnr_cpu_memory *memory);
/* By thread `worker`, with the help of others where the transform is split. The same bits whoever
 * helps. */
void pnr_cpu_process(const pnr_cpu *cpu, const pnr_cpu_memory *memory, const pnr_cpu_dwell *dwell,
                     size_t worker);

#endif
