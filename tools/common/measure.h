/* SPDX-License-Identifier: MIT */
/* Measures the time of an engine, on samples with a known echo. */
#ifndef PNR_MEASURE_H
#define PNR_MEASURE_H

#include "base/error.h"
#include "config/config.h"
#include "detector/detector.h"
#include "engine/engine.h"
#include "setup/setup.h"

#include <stddef.h>
#include <stdint.h>

/* An engine whose input has no lost samples. A zeroed struct is closed. */
typedef struct pnr_trial {
    const pnr_engine_ops *ops;
    const pnr_plan *plan;
    pnr_engine *engine; /* NULL: closed */
    void *zeros;        /* zeros, for `lost` and `ready_ns` of pnr_windows */
    uint64_t tag;
} pnr_trial;

/* Creates an engine. plan must outlive *out. Errors are those of the engine's create. The caller
 * closes *out, also after an error. */
int pnr_trial_open(const pnr_engine_ops *ops, const pnr_plan *plan, pnr_trial *out,
                   pnr_error *error);
void pnr_trial_close(pnr_trial *trial);
/* Submits n_dwells dwells and collects the result. samples: the samples of plan.batch dwells,
 * [pnr_plan_view_samples][n_channels]. n_dwells: 1 .. plan.batch. */
int pnr_trial_run(pnr_trial *trial, const void *samples, size_t n_dwells, pnr_result *result,
                  pnr_error *error);

/* Returns dwell d of a result in the form that the detector needs. */
pnr_observed pnr_trial_observed(const pnr_plan *plan, const pnr_result *result, size_t d);

/* An engine with one batch of samples. */
typedef struct pnr_measure pnr_measure;

/* The time of one submit, from the call of submit to the collected result. In mode PNR_MEASURE_ANEW
 * it includes the creation and the destruction of the engine. */
typedef struct pnr_measurement {
    uint64_t total_ns;
    uint64_t stage_ns[PNR_STAGE_COUNT]; /* 0 if plan.measure is false */
} pnr_measurement;

/* Statistics of the times of many submits, in ns. Each submit has plan.batch dwells. The first
 * submit is not included. */
typedef struct pnr_timing {
    double median_ns, p99_ns;
    double stage_median_ns[PNR_STAGE_COUNT], stage_p99_ns[PNR_STAGE_COUNT];
    double explained; /* median of (sum of the stages) / total, 0..1; 0 if plan.measure is false */
} pnr_timing;

enum { PNR_MEASURE_MIN_RUNS = 10 };

/* The memory of the samples, and the lifetime of the engine. */
typedef enum {
    PNR_MEASURE_ANEW,     /* pageable samples; each timed run creates and destroys the engine */
    PNR_MEASURE_PAGEABLE, /* samples in memory of the C library; one engine for all runs */
    PNR_MEASURE_PINNED    /* samples in memory of the engine (alloc); one engine for all runs */
} pnr_measure_mode;

/*
 * Derives a configuration for N = n_samples from `base`. The code is an m-sequence if N = 2^k - 1
 * (k = 2..24), or if N = q (2^k - 1), where `base` has a whole number q of samples a chip. Else it
 * is a random-phase code. The gate is the whole period. The tuned frequency is 0. If `base` has no
 * format, the format is ci16. If `base` has no rate, the rate is 1 MHz. *out borrows the arrays of
 * `base`: do not clear *out.
 */
void pnr_measure_configure(const pnr_config *base, size_t n_samples, pnr_config *out);

/*
 * Fills memory, [n_samples][n_channels] in the plan's format, with white noise and with the code
 * delayed by pnr_measure_lag. Noise and code each have an rms of 0.2 of full scale, so the SNR of a
 * sample is 0 dB. memory[0] has sample index 0. The same plan gives the same samples.
 */
void pnr_measure_fill(const pnr_setup *setup, void *memory, size_t n_samples);
/* Returns the lag of this echo, in samples: the first lag of the gate plus one third of the
 * gate. */
size_t pnr_measure_lag(const pnr_setup *setup);

/*
 * Fills memory, [batch][windows * N][n_channels] in the plan's format, with noise and with one echo
 * in each dwell. Noise and echo each have an rms of 0.2 of full scale. The echo of dwell d has lag
 * lags[d], code lags[d] mod n_codes, and the frequency of row lags[d] mod n_rows. In each look the
 * echo begins with a random phase (in a real format with a random sign). All channels have the same
 * samples. The tuned frequency is 0. The same plan, seed and lags give the same samples.
 */
void pnr_measure_scatter(const pnr_plan *plan, uint64_t seed, const uint32_t *lags, void *memory);

/* Fills the samples of a batch. Creates the engine too, unless mode is PNR_MEASURE_ANEW. Uses
 * setup->plan unchanged (batch, measure, ...). setup must outlive *out. Errors are those of the
 * engine's create, and PNR_ENOMEMORY. */
int pnr_measure_create(const pnr_engine_ops *ops, const pnr_setup *setup, pnr_measure_mode mode,
                       pnr_measure **out, pnr_error *error);
void pnr_measure_destroy(pnr_measure *measure);
/* Submits the batch once and collects the result. lags: [batch] lag of each dwell's strongest
 * candidate; may be NULL. PNR_EENGINE: a dwell has no echo at the right lag, so the time is not
 * valid. */
int pnr_measure_run(pnr_measure *measure, pnr_measurement *out, size_t *lags, pnr_error *error);
/* Returns the samples of the batch, [pnr_plan_view_samples][n_channels]. *measure owns them. */
const void *pnr_measure_samples(const pnr_measure *measure, size_t *bytes);

/* Creates a pnr_measure, discards one run, times n_runs runs (at least PNR_MEASURE_MIN_RUNS), and
 * destroys the pnr_measure. */
int pnr_measure_time(const pnr_engine_ops *ops, const pnr_setup *setup, pnr_measure_mode mode,
                     size_t n_runs, pnr_timing *out, pnr_error *error);

/* Writes the CPU and its number of usable cores, as "AMD EPYC 9575F, 2 cores usable". Returns
 * `text`. */
char *pnr_measure_machine(char *text, size_t size);

#endif
