/* SPDX-License-Identifier: MIT */
/* The receiver of the scene between antenna and ADC: phase of the oscillator, noise, IQ imbalance,
 * offset. */
#ifndef PNR_FRONT_END_H
#define PNR_FRONT_END_H

#include "config/config.h"
#include "scene/noise.h"

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pnr_front_end {
    uint64_t seed;
    double noise_rms;
    bool is_coloured;
    double taps[PNR_NOISE_TAPS][2]; /* coefficients of the noise filter */
    double walk_rad;                /* rms change of the oscillator's phase in one sample, rad */
    double complex direct, image;   /* output of the front end: direct * x + image * conj(x) +
                                     * offset */
    double complex offset;
} pnr_front_end;

/* Initialises *out. rate_hz: the sample rate; centre: the centre of the noise filter, in cycles per
 * sample. */
void pnr_front_end_init(const pnr_config *config, double rate_hz, double centre,
                        pnr_front_end *out);

/* Rotates the samples block + from .. block + to - 1 by the phase of the oscillator. block: a
 * multiple of PNR_NOISE_WALK; to: at most PNR_NOISE_WALK. */
void pnr_front_end_turn(const pnr_front_end *end, uint64_t block, size_t from, size_t to,
                        double complex *x);
/* Adds noise, IQ imbalance and the offset to x, samples first .. first + n_samples - 1. n_samples:
 * at most PNR_NOISE_WALK. */
void pnr_front_end_receive(const pnr_front_end *end, size_t channel, uint64_t first,
                           size_t n_samples, double (*x)[2]);

#endif
