/* SPDX-License-Identifier: MIT */
/* Maps on the cpu engine: codes, Doppler rows and looks of a dwell, from samples to candidates. */
#ifndef PNR_ENGINE_CPU_MAP_H
#define PNR_ENGINE_CPU_MAP_H

#include "engine/cpu/axes.h"
#include "engine/cpu/dwell.h"
#include "engine/cpu/line.h"
#include "engine/cpu/ops.h"
#include "engine/cpu/team.h"
#include "engine/engine.h"
#include "engine/search.h"
#include "engine/stretch.h"

#include <fftw3.h>

/*
 * A dwell in steps, the tasks of each shared by the team:
 *
 *   read      windows of some looks to x[look][p][i]; the mean over the used ones taken out
 *   slow      y[look][spectrum][i], and its forward transform in its place: kept for all looks
 *   rows      of a row and code: product, inverse and |.|^2 of one look after the other, added up
 *   search
 *   gather    the rows around the candidates once more from the spectra, for their complex values:
 *             less work than to store every one, and no memory
 */
/* Each thread's own. */
typedef struct pnr_cpu_map_bench {
    pnr_cpu_map_room room;
    pnr_cpu_value *slow[2]; /* [slow_columns][slow_pitch] */
    pnr_cpu_value *line;    /* [line] of a look, from which a window is stretched */
    pnr_cpu_value *filter;  /* [gate_count][4] what it takes, then [filter_pitch] what it gives */
} pnr_cpu_map_bench;

/* What does not change after create. */
typedef struct pnr_cpu_map {
    const pnr_plan *plan;
    pnr_cpu_map_axes axes;
    pnr_cpu_map_transform transform;
    size_t window;  /* samples of one */
    size_t x_pitch; /* values from window to window */
    size_t slow_columns, slow_pitch;
    size_t looks_at_once;
    size_t line;   /* 0: nothing is stretched */
    bool is_fused; /* a spectrum is of one row and code: made when that is */
    double energy_of_code;
    pnr_cpu_value *codes;      /* [n_codes][oversample][n_variants][spectrum_pitch]: conj(spectrum)
                                      / n_transform */
    pnr_cpu_value **rotations; /* [n_rotations] of [window]; NULL: of 0 */
    pnr_cpu_value **weights;   /* [n_sets]: summed: [count / 4][K][4]; else [K], NULL: 1 */
    pnr_cpu_value *filter;     /* [gate_count j][filter_pitch k] */
    size_t filter_pitch;
    float (*kernel)[PNR_STRETCH_TAPS]; /* the table of stretch.h, where it is needed */
    pnr_rotation turns;
    fftwf_plan slow;
    pnr_cpu_map_bench bench[PNR_CPU_MAX_THREADS];
} pnr_cpu_map;

/* What was found in one window. */
typedef struct pnr_cpu_map_window {
    pnr_converted converted; /* energy: after the mean is taken out */
    size_t n_lost;
    bool is_used;
} pnr_cpu_map_window;

/* A row to do once more: it lies around a candidate. */
typedef struct pnr_cpu_map_around {
    uint32_t code, row;
} pnr_cpu_map_around;

/* What one dwell passes through. */
typedef struct pnr_cpu_map_memory {
    pnr_cpu_value *x, *stretched; /* [looks_at_once][K][x_pitch] */
    pnr_cpu_value *spectra;       /* [n_looks][n_spectra][spectrum_pitch]; first y */
    float *power;                 /* [n_codes][n_rows][n_lags * oversample] */
    pnr_search_line *lines;       /* [n_codes][n_rows] */
    uint64_t *above;              /* to which these point */
    pnr_cpu_map_window *windows;  /* [n_looks][K] */
    double *energies;             /* [looks_at_once][blocks of columns][K] */
    size_t *looks;                /* [n_looks] those with a used window */
    pnr_cpu_value *centres;       /* [max_candidates][n_looks] c at each candidate */
    pnr_cpu_map_around *around;   /* [max_candidates * 17] rows to do once more */
} pnr_cpu_map_memory;

/* What describe answers: PNR_OK, PNR_EUNSUPPORTED (with the bytes that it would take),
 * PNR_ENOMEMORY. */
int pnr_cpu_map_describe(const pnr_plan *plan, size_t n_threads, pnr_engine_choice *choice,
                         pnr_error *error);
/* Sizes alone; destroy in either case. PNR_OK, PNR_ENOMEMORY. */
int pnr_cpu_map_shape(const pnr_plan *plan, pnr_cpu_map *map);
/* Dwells worked on at once: fewer than threads, when these share the steps of each. */
size_t pnr_cpu_map_leaders(const pnr_cpu_map *map, size_t n_threads);
/* After shape: tables, transforms, and the benches of n_threads. PNR_OK, PNR_ENOMEMORY. */
int pnr_cpu_map_create(pnr_cpu_map *map, size_t n_threads);
void pnr_cpu_map_destroy(pnr_cpu_map *map);
/* Of one leader; destroy in either case. PNR_OK, PNR_ENOMEMORY. */
int pnr_cpu_map_memory_create(const pnr_cpu_map *map, pnr_cpu_map_memory *memory);
void pnr_cpu_map_memory_destroy(pnr_cpu_map_memory *memory);

/* By thread `worker`, with the help of the team, if there is one. The same bits whoever helps. */
void pnr_cpu_map_process(const pnr_cpu_map *map, const pnr_cpu_map_memory *memory,
                         const pnr_cpu_dwell *dwell, pnr_cpu_team *team, size_t worker);

#endif
