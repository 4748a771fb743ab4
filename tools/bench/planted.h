/* SPDX-License-Identifier: MIT */
/* Dwells with echoes at random places, and their truth: the samples of stream, scene, latency, soak
 * and publish. */
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
    bool found; /* set by the code that compares echoes with the truth */
    double delay_samples, velocity_mps, amplitude;
} planted_echo;

/* What is planted. A zeroed struct has no memory. */
typedef struct planted {
    size_t n_echoes; /* 1 .. PLANTED_MAX; planted_fill lowers it to what the code has room for */
    /* dB; level of the strongest echo above the weakest, whose SNR is 20 dB in a look */
    double span_db;
    double max_doppler_hz; /* greatest Doppler of the search, Hz; 0: no Doppler */
    bool leaks; /* the first of several echoes is a direct path, 10 dB above the others */

    const pnr_engine_ops *ops; /* owner of the samples */
    void *samples;             /* [n_dwells] dwells, and the other samples that a view reads */
    planted_echo *truths;      /* [n_dwells][n_echoes] */
    size_t n_dwells;
} planted;

/* Returns the scene of a benchmark without cases of its own. In config, sets ci16 and a
 * detector.max_echoes of at least n_echoes. */
planted planted_begin(size_t n_echoes, pnr_config *config);
/* Fills the samples of n_dwells dwells. Each dwell belongs to one of 16 scenes, and has the samples
 * of its position in the stream. The scenes use the codes of config in turn. Their noise is 1e-3 of
 * full scale, or less if the strongest echo would clip, and has the bandwidth
 * echo.noise_bandwidth_hz. setup: that of config. The caller clears *p, also after an error.
 * Errors: PNR_ENOMEMORY, and those of pnr_scene_create. */
int planted_fill(planted *p, const pnr_config *config, const pnr_setup *setup,
                 const pnr_engine_ops *ops, size_t n_dwells, pnr_error *error);
/* Returns a number of dwells: `wanted`, but at most as many as 2^22 samples hold, and at least
 * one. */
size_t planted_dwells(const pnr_plan *plan, size_t wanted);
/* Copies the dwells in turn, as often as needed to fill memory, [n_samples]. */
void planted_copy(const planted *p, const pnr_plan *plan, void *memory, size_t n_samples);
void planted_clear(planted *p);

#endif
