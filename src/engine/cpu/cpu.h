/* SPDX-License-Identifier: MIT */
/* The types of the cpu engine: the engine itself and the memory of one dwell. */
#ifndef PNR_ENGINE_CPU_H
#define PNR_ENGINE_CPU_H

#include "engine/cpu/axes.h"
#include "engine/cpu/ops.h"
#include "engine/cpu/team.h"
#include "engine/cpu/transform.h"
#include "engine/cpu/walsh.h"
#include "engine/engine.h"
#include "engine/search.h"
#include "engine/slot.h"
#include "engine/stretch.h"

/*
 * A dwell passes through these steps. The team shares the tasks of each step.
 *
 *   read      converts the windows of some looks to x[look][p][t] and removes their mean
 *   slow      sums over the periods: y[look][spectrum][t]
 *   lines     correlates y with each code and adds |c|^2 of the looks
 *   search    finds the candidates
 *   gather    stores the complex values around each candidate
 *
 * A line is one row of one code. There are two ways to compute lines:
 *   fused     The plan has one line. Windows are added as they are read, and the team computes the
 *             line of each look (see fused.h). c of every look is kept for gather.
 *   kept      The plan has several lines. The spectra of all looks are kept, and each thread
 *             computes separate lines. gather computes the lines around the candidates again:
 *             this takes less time and memory than to store every c.
 */

typedef struct pnr_cpu_fused pnr_cpu_fused;

/* The scratch memory of one thread. */
typedef struct pnr_cpu_scratch {
    pnr_cpu_transform_scratch transform;
    pnr_cpu_value *slow[2]; /* [slow_columns][slow_pitch] */
    pnr_cpu_value *filter;  /* [gate_count][4] input, then [filter_pitch] output */
} pnr_cpu_scratch;

/* Doubles the sampling rate of the looks that are stretched, see stretch.h. */
typedef struct pnr_cpu_doubling {
    size_t margin; /* M, in samples; 0: nothing is stretched */
    size_t n_look; /* samples of a look, plus n_lags - 1 in linear windows, plus M on each side */
    size_t pitch;  /* distance from one doubled look to the next, in values */
    pnr_cpu_transform transform; /* the transform of L points */
    pnr_cpu_value *half;         /* [spectrum_pitch] the weights of pnr_stretch_half */
    pnr_cpu_value *whole; /* [spectrum_pitch] 1 / L in the band; NULL: the plan has no band */
    float *fade;          /* [M] the weights of samples 1 .. M beyond the look */
} pnr_cpu_doubling;

/* The state of the engine that does not change after create. */
typedef struct pnr_cpu {
    const pnr_plan *plan;
    double energy_of_code;
    bool is_plain; /* see pnr_plan_is_plain. true: energy is summed before the samples are mixed to
                    * frequency 0, and floor follows from the sum of the energies */
    size_t window; /* samples of a window */
    const pnr_cpu_fused *fused; /* NULL: lines are computed in the way `kept` */
    bool is_shaped;             /* pnr_cpu_shape has set the sizes */
    bool is_shared;             /* the team shares the steps of a dwell */
    bool finishes_first;        /* threads help with a dwell in progress before they begin
                                 * another */
    size_t n_leaders;           /* dwells that are computed at the same time */

    pnr_cpu_axes axes;
    pnr_cpu_transform transform;
    pnr_cpu_value *codes; /* [n_codes][oversample][n_variants][spectrum_pitch]: the conjugate
                           * spectra, divided by n_transform */
    pnr_rotation rotation;
    pnr_cpu_scratch scratch[PNR_CPU_MAX_THREADS];

    /* members of the way `fused` */
    pnr_cpu_walsh walsh;  /* tables of method walsh; degree 0: the engine uses another method */
    size_t in_values;     /* number of values of y; 0: y is in the memory of the profile */
    size_t profile_pitch; /* distance from one profile to the next, in values */
    size_t n_spectra;     /* number of arrays that `fused` of pnr_cpu_memory has */
    /* number of powers in the order of method walsh; 0: powers are in the order of lags */
    size_t n_places;
    /* the powers of method walsh are sorted by lag before the search */
    bool is_ordered;

    /* members of the way `kept` */
    size_t x_pitch; /* distance from one window to the next, in values */
    size_t looks_at_once;
    size_t slow_columns, slow_pitch;
    pnr_cpu_doubling doubling;
    bool is_transformed_late;  /* each spectrum belongs to one line, and the thread of this line
                                * transforms it */
    pnr_cpu_value **rotations; /* [n_rotations][window]; NULL: no rotation */
    /* [n_sets] weights of each set: [ceil(count / 4)][K][4] if the set is summed, else [K]; NULL:
     * all are 1 */
    pnr_cpu_value **weights;
    pnr_cpu_value *filter; /* the plan's filter[k][j] is at [j][k]; row j has filter_pitch values */
    size_t filter_pitch;
    float (*kernel)[PNR_STRETCH_TAPS]; /* the table of stretch.h; NULL: nothing is stretched */
    fftwf_plan slow;
} pnr_cpu;

typedef struct pnr_cpu_window {
    double energy; /* E_p of plan.h */
    uint64_t n_nonfinite, n_lost;
    bool is_used;
} pnr_cpu_window;

/* A line that gather computes again because it lies around a candidate. */
typedef struct pnr_cpu_around {
    uint32_t code, row;
} pnr_cpu_around;

/* Memory of one dwell. Pointers that the plan does not need are NULL. */
typedef struct pnr_cpu_memory {
    float *power; /* [n_codes][n_rows][n_lags * oversample]; NULL: powers are in the result */
    pnr_search_line *lines;  /* [n_codes][n_rows] */
    uint64_t *above;         /* one bit for each cell of all lines */
    pnr_cpu_window *windows; /* [n_looks][K] */

    pnr_converted *converted; /* [windows that are read at once][blocks] */

    /* members of the way `fused` */
    pnr_cpu_value *y;        /* [in_values] y, later a product of spectra; in_values 0: at the
                              * address of profile */
    pnr_cpu_value *period;   /* [window] the next period, if a look has several periods */
    pnr_cpu_value *fused[2]; /* [spectrum_pitch] each: a spectrum, or Z of split.h */
    pnr_cpu_value *profile;  /* [n_looks][oversample][profile_pitch] c, or X of walsh.h */
    float *grid;             /* powers: [oversample][n_lags], or [n_places] of method walsh */
    pnr_cpu_value *parts;    /* [n_parts][values] X of method walsh, later W */

    /* members of the way `kept` */
    pnr_cpu_value *x, *stretched; /* [looks_at_once][K][x_pitch] samples */
    pnr_cpu_value *doubled;       /* [looks_at_once][doubling.pitch] d of stretch.h */
    pnr_cpu_value *look;          /* a look; also the scratch memory of the transform */
    pnr_cpu_value *halves;        /* output of shift_look: d at the samples or half-way between
                                   * them, in the order of the transform */
    pnr_cpu_value *spectrum;      /* the spectrum of the look */
    pnr_cpu_value *spectra;       /* [n_looks][n_spectra][spectrum_pitch] y, later the spectra of
                                   * y */
    double *energies;             /* [looks_at_once][blocks of columns][K] */
    size_t *looks;                /* [n_looks] the used looks, see plan.h */
    pnr_cpu_value *centres;       /* [max_candidates][n_looks] c at each candidate */
    pnr_cpu_around *around;       /* [max_candidates * 17] */
} pnr_cpu_memory;

/* Sets the sizes and *choice. Allocates the axes only; call destroy in either case. PNR_OK, or
 * PNR_EUNSUPPORTED or PNR_ENOMEMORY with the reason in *error. */
int pnr_cpu_shape(const pnr_plan *plan, size_t n_threads, pnr_cpu *cpu, pnr_engine_choice *choice,
                  pnr_error *error);
/* Call after shape. Allocates tables, transforms and scratch memory. PNR_OK, PNR_ENOMEMORY. */
int pnr_cpu_create(pnr_cpu *cpu, size_t n_threads);
void pnr_cpu_destroy(pnr_cpu *cpu);
/* Fills the tables that create has allocated. PNR_OK, PNR_ENOMEMORY. */
int pnr_cpu_fill_tables(pnr_cpu *cpu);
/* Allocates the memory of one dwell; call destroy in either case. PNR_OK, PNR_ENOMEMORY. */
int pnr_cpu_memory_create(const pnr_cpu *cpu, pnr_cpu_memory *memory);
void pnr_cpu_memory_destroy(const pnr_cpu *cpu, pnr_cpu_memory *memory);

/* Computes one dwell. Thread `worker` leads, and the team helps. The bits of the results do not
 * depend on which threads help. */
void pnr_cpu_process(const pnr_cpu *cpu, const pnr_cpu_memory *memory, const pnr_slot_dwell *dwell,
                     pnr_cpu_team *team, size_t worker);

#endif
