/* SPDX-License-Identifier: MIT */
/* The state of the reference engine, and the steps from samples to values. */
#ifndef PNR_REFERENCE_STATE_H
#define PNR_REFERENCE_STATE_H

#include "base/complex.h"
#include "engine/engine.h"
#include "engine/stretch.h"

typedef struct pnr_reference_slot {
    pnr_windows windows;
    uint32_t *lost; /* [batch * windows] */
    bool *is_lost;  /* [samples of a view]; NULL without remove_mean */
    uint64_t tag;
} pnr_reference_slot;

/* One dwell: its samples, and the memory of its results. */
typedef struct pnr_reference_task {
    const pnr_windows *windows;
    size_t dwell;        /* of windows */
    const bool *is_lost; /* from the dwell's first sample on; NULL: not needed */
    const pnr_removal *removals;
    size_t n_removals;
    pnr_dwell *sums;
    pnr_candidate *candidates; /* [max_candidates] */
    uint32_t *nonfinite;       /* [windows] */
    float *profile, *patches;  /* NULL: not wanted */
} pnr_reference_task;

/* The scratch memory of one dwell. */
typedef struct pnr_reference_work {
    size_t n_window, n_look; /* samples of a window and of a look, for linear lags with the tail */
    double complex *look;    /* [n_look], as converted */
    unsigned char *flags;    /* [n_look] */
    double complex *mean;    /* [n_window]; zeros without remove_mean */
    double complex *own;     /* [n_look]: without the mean of the window that owns the sample */
    double complex *stretched; /* [n_look]: of one hypothesis; NULL without a stretch */
    float (*kernel)[PNR_STRETCH_TAPS];
    bool *is_used;            /* [n_periods] */
    double complex *sum;      /* [2 n_samples or n_window]: the sum of the windows of a row */
    double complex *filtered; /* [gate_count] */
    double complex *value; /* [n_looks][n_codes][n_rows][oversample][n_lags]: c of the used looks */
    float *power;          /* [n_codes][n_rows][n_lags * oversample] */
} pnr_reference_work;

struct pnr_engine {
    pnr_plan *plan;
    double energy_of_code;
    const double complex *code; /* [n_codes][oversample][n_samples] */
    pnr_reference_work work;
    pnr_reference_slot slots[PNR_MAX_DEPTH];
    size_t first, in_flight;
    bool *is_lost; /* [samples of a dwell]: of the dwell that search_without searches */
    /* [batch + 1]: the results of a submit, then the result of search_without */
    pnr_dwell *dwells;
    pnr_candidate *candidates;
    uint32_t *nonfinite;
    float *profile, *patches; /* NULL: not wanted */
};

/* --- samples.c --- */

/* A flag besides those of format.h. */
enum { PNR_REFERENCE_LOST = 4 };

/* Reads samples of a dwell from `first` on, all of one look or of the samples after it: full scale,
 * conjugated, tuned, without the echoes to remove. flags: [n_samples]. */
void pnr_reference_read(const pnr_engine *engine, const pnr_reference_task *task, size_t first,
                        size_t n_samples, double complex *x, unsigned char *flags);

/* c[k] = sum_n x[n + k] conj(a[n]), k = 0 .. n_lags - 1 */
void pnr_reference_correlate(const double complex *x, const double complex *a, size_t n_samples,
                             size_t n_lags, double complex *c);

/* --- dwell.c --- */

/* PNR_OK, PNR_ENOMEMORY; destroy in either case. */
int pnr_reference_work_create(pnr_engine *engine);
void pnr_reference_work_destroy(pnr_engine *engine);
void pnr_reference_process(pnr_engine *engine, const pnr_reference_task *task);

#endif
