/* SPDX-License-Identifier: MIT */
/* The steps of a dwell on the cpu engine, see cpu.h. */
#ifndef PNR_ENGINE_CPU_STEPS_H
#define PNR_ENGINE_CPU_STEPS_H

#include "engine/cpu/cpu.h"
#include "engine/cpu/stopwatch.h"

enum {
    PNR_CPU_REACH = PNR_NEIGHBOURS / 2,
    PNR_CPU_MEAN_BLOCK = 128 /* columns of a block in remove_mean */
};

/* Eight complex values. */
typedef float pnr_cpu_wide __attribute__((vector_size(64), aligned(4), may_alias));

/* The state of a dwell. The tasks of one step share a copy of this state. */
typedef struct pnr_cpu_step {
    const pnr_cpu *cpu;
    const pnr_cpu_memory *my;
    const pnr_slot_dwell *dwell;
    pnr_cpu_team *team;         /* NULL: the leader computes all tasks */
    size_t worker;              /* number of the leading thread */
    size_t first_look, n_looks; /* the looks that are read together */
    size_t n_used;              /* used looks so far */
    /* powers of all lines in the order of lags; NULL: the powers are in the order of method
     * walsh */
    float *power;
    uint64_t since;    /* time in ns at which the lap of the stopwatch began */
    size_t number;     /* index in the dwell of the first window that is read now */
    pnr_cpu_value *to; /* memory for window `number`; NULL: its samples are only counted */

    /* members of the way `fused` */
    pnr_cpu_walsh_input input; /* method walsh reads the samples from here */
    size_t h;

    /* members of the way `kept` */
    const pnr_cpu_value *x; /* samples for the slow-time transform of `set` */
    size_t set;
    double stretch;
    size_t look;          /* the look that is doubled, counted from first_look */
    pnr_cpu_value *shift; /* the weights of the bins of this look */
} pnr_cpu_step;

/* Runs all tasks. The team computes them, or only the leader if there is no team. Returns when all
 * tasks have finished. */
void pnr_cpu_do(const pnr_cpu_step *step, pnr_cpu_task *task, size_t n_tasks);

/* Returns the number of blocks in which a window is read. */
size_t pnr_cpu_read_blocks(const pnr_cpu *cpu);
/* Returns the number of blocks of columns in the first N samples of a window. The mean is also
 * removed from the samples after these, in further blocks. */
size_t pnr_cpu_mean_blocks(const pnr_cpu *cpu);

/* Way `fused`: reads one look and counts its samples. Writes the sum of its used windows to
 * memory->y, unless `correlate` gathers the window from the ring. Returns false if no window is
 * used. */
bool pnr_cpu_read_fused(pnr_cpu_step *step);
/* Way `kept`: reads the looks of the step to memory->x, counts their samples, removes their mean
 * and lists the used looks. */
void pnr_cpu_read_kept(pnr_cpu_step *step);
/* Way `kept`: sums memory->x over the periods to y, and transforms y to spectra unless
 * is_transformed_late. */
void pnr_cpu_slow_time(pnr_cpu_step *step);
/* Way `kept`: doubles the rate of the looks of the step, from memory->x to memory->doubled. */
void pnr_cpu_double(pnr_cpu_step *step);
/* Way `kept`: resamples the doubled looks of the step to memory->stretched. The unused windows
 * become 0. */
void pnr_cpu_stretch(pnr_cpu_step *step, double stretch);
/* Way `kept`: transforms y to its spectrum in place. */
void pnr_cpu_forward(const pnr_cpu *cpu, size_t spectrum, pnr_cpu_value *y, size_t worker);
/* Way `kept`: computes the powers of every line, and scans every line for the search. */
void pnr_cpu_rows(pnr_cpu_step *step);
/* Way `kept`: sets the values around the candidates. */
void pnr_cpu_gather(pnr_cpu_step *step);

bool pnr_cpu_is_used(const pnr_cpu_step *step, size_t look);
static inline pnr_cpu_value *pnr_cpu_spectrum_at(const pnr_cpu *cpu, const pnr_cpu_memory *my,
                                                 size_t look, size_t spectrum)
{
    return my->spectra + (look * cpu->axes.n_spectra + spectrum) * cpu->transform.spectrum_pitch;
}

/* out[u][i] = sum_p w[u / 4][p][u mod 4] x[p][i] for u < n_out and i < n. Rows of x and out have
 * room for n rounded up to a multiple of 8, and the sums fill this room. */
void pnr_cpu_sums(size_t n_periods, size_t n, const float (*x)[2], size_t x_pitch,
                  const float (*w)[4][2], size_t n_out, float (*out)[2], size_t out_pitch);

#endif
