/* SPDX-License-Identifier: MIT */
/* The reference engine's inside: what its plain dwells and its maps share. */
#ifndef PNR_ENGINE_REFERENCE_PARTS_H
#define PNR_ENGINE_REFERENCE_PARTS_H

#include "engine/engine.h"
#include "engine/stretch.h"

/* Planar complex numbers, so that the compiler sees plain loops. */
typedef struct pnr_planar {
    double *re, *im;
} pnr_planar;

typedef struct pnr_reference_slot {
    pnr_windows windows;
    uint32_t *lost; /* [batch * windows] */
    bool *is_lost;  /* [samples of a view]; NULL: nobody asks */
    uint64_t tag;
} pnr_reference_slot;

/* One dwell: what it is made of, and where its results go. */
typedef struct pnr_reference_task {
    const pnr_windows *windows;
    size_t dwell;        /* of windows */
    const bool *is_lost; /* from the dwell's first sample on; NULL: nobody asks */
    const pnr_removal *removals;
    size_t n_removals;
    pnr_dwell *sums;
    pnr_candidate *candidates; /* [max_candidates] */
    uint32_t *nonfinite;       /* [windows] */
    float *profile, *patches;  /* NULL: not wanted */
} pnr_reference_task;

/* What a plain dwell is worked out in. */
typedef struct pnr_reference_plain {
    pnr_planar window;    /* [2 n_samples]: one window twice, so that n + k needs no modulo */
    pnr_planar sum;       /* [n_samples]: the coherent sum of a dwell */
    pnr_planar *profile;  /* [n_rows][oversample] of [n_samples] */
    size_t n_rows;        /* profiles kept: n_periods for incoherent dwells, else 1 */
    float *power[2];      /* [n_samples] */
    unsigned char *flags; /* [n_samples]: of the window */
} pnr_reference_plain;

/* What a map is worked out in. n_window: samples of a window, n_look: of a look, tail included. */
typedef struct pnr_reference_map {
    size_t n_window, n_look;
    pnr_planar look;      /* [n_look], as converted */
    unsigned char *flags; /* [n_look] */
    pnr_planar mean;      /* [n_window]; zeros where it is not removed */
    pnr_planar own;       /* [n_look]: without the mean, each sample in its own window */
    pnr_planar stretched; /* [n_look]: of one hypothesis */
    float (*kernel)[PNR_STRETCH_TAPS];
    bool *is_used;       /* [n_periods] */
    pnr_planar sum;      /* [2 n_samples or n_window]: the windows of a row together */
    pnr_planar filtered; /* [gate_count] */
    pnr_planar value;    /* [n_looks][n_codes][n_rows][oversample][n_lags]: c of the looks used */
    float *power;        /* [n_codes][n_rows][n_lags * oversample] */
} pnr_reference_map;

struct pnr_engine {
    pnr_plan *plan;
    double energy_of_code;
    pnr_planar code; /* [n_codes][oversample][n_samples] */
    pnr_reference_plain plain;
    pnr_reference_map map;
    pnr_reference_slot slots[PNR_MAX_DEPTH];
    size_t first, in_flight;
    bool *is_lost; /* [samples of a dwell]: of one that is asked for again */
    /* results of a submit, and behind them those of a dwell again: [batch + 1] */
    pnr_dwell *dwells;
    pnr_candidate *candidates;
    uint32_t *nonfinite;
    float *profile, *patches; /* NULL: not wanted */
};

/* --- engine_reference_samples.c --- */

/* PNR_OK, PNR_ENOMEMORY; destroy in either case. */
int pnr_planar_create(pnr_planar *p, size_t n);
void pnr_planar_destroy(pnr_planar *p);
pnr_planar pnr_planar_at(pnr_planar p, size_t i);

/* Beside those of format.h. */
enum { PNR_REFERENCE_LOST = 4 };

/* Samples of a dwell, from `first` on, all of one look (or what is behind it): full scale,
 * conjugated, tuned, without the echoes to remove. flags: [n_samples]. Returns their energy. */
double pnr_reference_read(const pnr_engine *engine, const pnr_reference_task *task, size_t first,
                          size_t n_samples, pnr_planar x, unsigned char *flags);

/* c[k] = sum_n x[n + k] conj(a[n]), k = 0 .. n_lags - 1 */
void pnr_reference_correlate(pnr_planar x, pnr_planar a, size_t n_samples, size_t n_lags,
                             pnr_planar c);

/* --- engine_reference_dwell.c, engine_reference_map.c --- */

int pnr_reference_plain_create(pnr_engine *engine);
void pnr_reference_plain_destroy(pnr_engine *engine);
void pnr_reference_plain_process(pnr_engine *engine, const pnr_reference_task *task);

int pnr_reference_map_create(pnr_engine *engine);
void pnr_reference_map_destroy(pnr_engine *engine);
void pnr_reference_map_process(pnr_engine *engine, const pnr_reference_task *task);

#endif
