/* SPDX-License-Identifier: MIT */
/* The steps of a map's dwell on the cpu engine, see engine_cpu_map.h. */
#ifndef PNR_ENGINE_CPU_MAP_STEPS_H
#define PNR_ENGINE_CPU_MAP_STEPS_H

#include "engine/cpu/map.h"

/* Eight complex values. */
typedef float pnr_cpu_map_wide __attribute__((vector_size(64), aligned(4), may_alias));

/* What the tasks of one step work on. */
typedef struct pnr_cpu_map_step {
    const pnr_cpu_map *map;
    const pnr_cpu_map_memory *my;
    const pnr_cpu_dwell *dwell;
    pnr_cpu_team *team;
    size_t worker;              /* the leader */
    size_t first_look, n_looks; /* those read at once */
    const pnr_cpu_value *x;     /* their samples for the slow-time transform of `set` */
    size_t set;
    double stretch;
    size_t n_used;  /* looks with a used window so far */
    float *power;   /* the map */
    uint64_t since; /* the stopwatch */
} pnr_cpu_map_step;

void pnr_cpu_map_do(const pnr_cpu_map_step *step, pnr_cpu_task *task, size_t n_tasks);
/* A stopwatch that costs nothing when nobody measures; one thread works then. stage
 * PNR_STAGE_COUNT: begins anew. */
void pnr_cpu_map_lap(const pnr_cpu_dwell *dwell, int stage, uint64_t *since);

/* Columns whose mean is taken at once. */
enum { PNR_CPU_MAP_BLOCK = 128 };
/* Blocks of columns of a window's own samples, and of those behind them. */
size_t pnr_cpu_map_own_blocks(const pnr_cpu_map *map);
size_t pnr_cpu_map_blocks(const pnr_cpu_map *map);

/* The step's looks to memory->x, and what engine.h counts of them; lists the looks used. */
void pnr_cpu_map_read(pnr_cpu_map_step *step);
/* From there to y in each spectrum's place, and to the spectra themselves unless fused. */
void pnr_cpu_map_slow(pnr_cpu_map_step *step);
/* The step's looks at another time scale, to memory->stretched; unused windows are 0. */
void pnr_cpu_map_stretch(pnr_cpu_map_step *step, double stretch);
/* The power of every row and code, and what the search wants to know of each. */
void pnr_cpu_map_rows(pnr_cpu_map_step *step);
/* The values around the candidates. */
void pnr_cpu_map_gather(pnr_cpu_map_step *step);
/* A look without a used window is not there. */
bool pnr_cpu_map_is_there(const pnr_cpu_map_step *step, size_t look);
/* One spectrum from y in its place. */
void pnr_cpu_map_forward(const pnr_cpu_map *map, size_t spectrum, pnr_cpu_value *y, size_t worker);

static inline pnr_cpu_value *pnr_cpu_map_spectrum_at(const pnr_cpu_map *map,
                                                     const pnr_cpu_map_memory *my, size_t look,
                                                     size_t spectrum)
{
    return my->spectra + (look * map->axes.n_spectra + spectrum) * map->transform.spectrum_pitch;
}

/* out[u][i] = sum_p w[u / 4][p][u mod 4] x[p][i], u < n_out; i < n, and on to the next multiple of
 * 8: rows of x and out are that long. */
void pnr_cpu_map_sums(size_t n_periods, size_t n, const float (*x)[2], size_t x_pitch,
                      const float (*w)[4][2], size_t n_out, float (*out)[2], size_t out_pitch);

#endif
