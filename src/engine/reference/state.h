/* SPDX-License-Identifier: MIT */
/* The state of the reference engine, and the steps from samples to values. */
#ifndef PNR_REFERENCE_STATE_H
#define PNR_REFERENCE_STATE_H

#include "base/complex.h"
#include "engine/slot.h"
#include "engine/stretch.h"

/* The scratch memory of one dwell. */
typedef struct pnr_reference_work {
    size_t n_window, n_look; /* samples of a window and a look, each with the tail of linear lags */
    double complex *look;    /* [n_look] the converted samples */
    unsigned char *flags;    /* [n_look] flags of each sample */
    double complex *mean;    /* [n_window] mean of the used windows; zeros without remove_mean */
    double complex *own;     /* [n_look] the samples, minus the mean if remove_mean is set */
    /* members that a stretch needs; NULL: no stretch */
    size_t margin, n_extended; /* M; n_look + 2 M */
    double complex *extended;  /* [n_extended] the samples, with M more on each side */
    double complex *doubled;   /* [2 n_extended] d of stretch.h; d[0] has the index 2 M */
    double complex *stretched; /* [n_look] the samples at the time scale of one hypothesis */
    /* [2 n_extended] A value of d is a weighted sum of samples. between[i] is the weight of the
     * sample that lies i half samples before the value. The conjugate is the weight of the sample
     * that lies i half samples after the value */
    double complex *between;
    float (*kernel)[PNR_STRETCH_TAPS];
    bool *is_used;            /* [n_periods] */
    double complex *sum;      /* [2 n_samples]; linear: [n_window]. The weighted sum of the windows
                               * of a look, for one row */
    double complex *filtered; /* [gate_count] */
    size_t n_cells;           /* cells of a look: [n_codes][n_rows][n_lags][oversample] */
    double complex *value;    /* [n_looks][n_cells]: c of the used looks */
    float *power;             /* [n_cells] */
} pnr_reference_work;

struct pnr_engine {
    pnr_plan *plan;
    double energy_of_code;
    const double complex *code; /* [n_codes][oversample][n_samples] */
    pnr_reference_work work;
    pnr_slots slots;
};

/* --- samples.c --- */

/* A flag in addition to the flags of format.h. */
enum { PNR_REFERENCE_LOST = 4 };

/* Reads a look, which begins at sample `first` of a dwell and includes the tail of linear lags.
 * Converts the samples to full scale = 1, conjugates them if plan->conjugate, mixes them down by
 * plan->tune, and subtracts task->removals. flags: [n_samples]. */
void pnr_reference_read(const pnr_engine *engine, const pnr_slot_dwell *task, size_t first,
                        size_t n_samples, double complex *x, unsigned char *flags);

/* c[step k] = sum_n x[n + k] conj(a[n]), k = 0 .. n_lags - 1 */
void pnr_reference_correlate(const double complex *x, const double complex *a, size_t n_samples,
                             size_t n_lags, size_t step, double complex *c);

/* --- dwell.c --- */

/* PNR_OK, PNR_ENOMEMORY; call destroy in either case. */
int pnr_reference_work_create(pnr_engine *engine);
void pnr_reference_work_destroy(pnr_engine *engine);
void pnr_reference_process(pnr_engine *engine, const pnr_slot_dwell *task);

#endif
