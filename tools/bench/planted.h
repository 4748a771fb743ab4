/* SPDX-License-Identifier: MIT */
/* Dwells with echoes at random delays, and the true values of these echoes. bench stream, scene,
 * latency, soak and publish use these dwells. */
#ifndef PNR_TOOLS_BENCH_PLANTED_H
#define PNR_TOOLS_BENCH_PLANTED_H

#include "base/error.h"
#include "config/config.h"
#include "correlator/engines.h"
#include "setup/setup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLANTED_MAX = 32 };

/* An echo in one dwell. */
typedef struct planted_echo {
    uint32_t code;
    bool found; /* set if a detected echo matches this echo */
    double delay_samples, velocity_mps, amplitude;
} planted_echo;

/* The echoes to plant, and the samples with these echoes. A zeroed struct owns no memory. */
typedef struct planted {
    size_t n_echoes; /* 1 .. PLANTED_MAX; planted_fill limits it to one echo for every 8 chips of
                      * the code */
    /* level of the strongest echo above the weakest, in dB; the weakest has an SNR of 20 dB in a
     * look */
    double span_db;
    double max_doppler_hz; /* greatest Doppler of the search, Hz; 0: no Doppler */
    bool leaks; /* the first of several echoes is a direct path, 10 dB above the strongest of the
                 * others */

    const pnr_engine_ops *ops; /* engine that owns the memory `samples` */
    void *samples;             /* [pnr_plan_view_samples] samples of n_dwells dwells */
    planted_echo *truths;      /* [n_dwells][n_echoes] */
    size_t n_dwells;
    uint64_t first;        /* number of the first dwell in `samples` */
    uint64_t random_state; /* state of the generator of random numbers */
} planted;

/* Returns the echoes for a benchmark that has no scenes of its own. In config, sets the format to
 * ci16 and detector.max_echoes to at least n_echoes. */
planted planted_begin(size_t n_echoes, pnr_config *config);
/* Fills the samples of n_dwells consecutive dwells, which begin at sample index 0. Divides the
 * dwells into at most 16 scenes, and draws new delays of the echoes for each scene. The echoes use
 * the codes of config in turn. The rms of the noise is 1e-3 of full scale, or less, so that no echo
 * and no leak has an amplitude above 0.4 of full scale. The bandwidth of the noise is
 * echo.noise_bandwidth_hz. setup: the setup of config. The caller clears *p, also after an error.
 * Errors: PNR_ENOMEMORY, and those of pnr_scene_create. */
int planted_fill(planted *p, const pnr_config *config, const pnr_setup *setup,
                 const pnr_engine_ops *ops, size_t n_dwells, pnr_error *error);
/* Replaces the samples by those of the next n_dwells dwells: with new delays and new noise, and no
 * echo is found. config, setup: as in planted_fill. Errors: those of pnr_scene_create. */
int planted_next(planted *p, const pnr_config *config, const pnr_setup *setup, pnr_error *error);
/* Returns `wanted`, but at most the number of dwells that fits in 2^22 samples, and at least 1. */
size_t planted_dwells(const pnr_plan *plan, size_t wanted);
/* Copies the dwells in turn, and repeats them until memory, [n_samples], is full. */
void planted_copy(const planted *p, const pnr_plan *plan, void *memory, size_t n_samples);
void planted_clear(planted *p);

#endif
