/* SPDX-License-Identifier: MIT */
/* The detector: pure functions from candidates to echoes (delay, range, SNR, amplitude, sigmas). */
#ifndef PNR_DETECTOR_H
#define PNR_DETECTOR_H

#include "base/error.h"
#include "config/config.h"
#include "engine/engine.h"
#include "setup/setup.h"

typedef struct pnr_echo {
    uint32_t code, channel;
    uint32_t candidate, row;       /* the candidate's index in pnr_observed, and its Doppler row */
    double delay_s, delay_samples; /* wrapped delay; samples = delay_s * rate */
    double delay_sigma_s; /* each sigma is the least that the 17 values allow when all other
                             values are unknown: at most 1.04 times the Cramer-Rao bound */
    double lag;           /* samples from the start of the window, before epoch and zero delay */
    double range_m, range_sigma_m;
    double snr;    /* S of the dwell: |c(peak)|^2 / E|noise cell|^2 minus the noise's own share;
                      unbiased, so noise alone can make it negative */
    double snr_db; /* of S, at least -30 */
    double amplitude, amplitude_sigma;   /* of the echo, full scale = 1 */
    double phase_rad, phase_sigma_rad;   /* -pi..pi, at the centre of the dwell; NAN: incoherent */
    double doppler_hz, doppler_sigma_hz; /* NAN: not estimated */
    double velocity_mps, velocity_sigma_mps; /* towards the radar; NAN: not estimated */
} pnr_echo;

typedef struct pnr_detection {
    double noise_power; /* per sample, full scale = 1: (energy - echo energy) / valid samples */
    size_t n_echoes;
    pnr_echo echoes[PNR_MAX_CANDIDATES]; /* strongest first */
} pnr_detection;

typedef struct pnr_detector pnr_detector;

/* Keeps pointers to config and setup. */
int pnr_detector_create(const pnr_config *config, const pnr_setup *setup, pnr_detector **out,
                        pnr_error *error);
void pnr_detector_destroy(pnr_detector *detector);
/* One dwell of an engine's result. */
typedef struct pnr_observed {
    const pnr_dwell *dwell;
    const pnr_candidate *candidates; /* [dwell->n_candidates] */
    const float *patches;      /* [n_candidates][17][17][2] with several Doppler rows; else NULL */
    const uint32_t *lost;      /* [windows of the dwell] samples lost; NULL: none */
    const uint32_t *nonfinite; /* [windows of the dwell] samples not finite; NULL: none */
} pnr_observed;

/* Describes how to subtract an echo from the samples: by one removal, and by two more of the code's
 * slope when the echo walks. Returns their number. replica, slope: [N], filled here and referenced
 * by the removals; work: [2 N]. The waveforms must be prepared. */
enum { PNR_MAX_REMOVALS = 3 }; /* of one echo */
size_t pnr_detector_removals(const pnr_detector *detector, const pnr_echo *echo,
                             float (*replica)[2], float (*slope)[2], double (*work)[2],
                             pnr_removal out[PNR_MAX_REMOVALS]);
/* Adds the removed echoes to the values and the patch (NULL: none) of a candidate that was found
 * after their removal. */
void pnr_detector_restore(const pnr_detector *detector, const pnr_observed *observed,
                          const pnr_detection *removed, pnr_candidate *candidate, float *patch);

/* Finds the echoes of a dwell. Deterministic, without allocation. One caller at a time. */
void pnr_detector_detect(const pnr_detector *detector, const pnr_observed *observed,
                         pnr_detection *out);

#endif
