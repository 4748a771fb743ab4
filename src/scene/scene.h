/* SPDX-License-Identifier: MIT */
/* The synthetic scene: the signal that a receiver receives from moving targets, a leak,
 * interference and noise. */
#ifndef PNR_SCENE_H
#define PNR_SCENE_H

#include "base/error.h"
#include "config/config.h"
#include "setup/radar.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Sample n is taken at t = n / (rate (1 + clock_ppm 1e-6)) of the transmitter's clock. The signal
 * of a target is A a(u) exp(i psi):
 *     u   = (t - tau(t)) rate - epoch    samples of code time
 *     psi = phase_rad - 2 pi carrier (tau(t) - tau(0))
 *     tau = k (range_m - velocity_mps t) / (v - velocity_mps) + zero_delay
 * k = 2 two-way, 1 one-way; v = radar.speed_mps. a is the waveform (waveform.h) of the target's
 * code; the leak has the first code. tau is exact for reception at t from a reflector (two-way) or
 * emitter (one-way) in uniform motion. The wave leaves the target at t - s, with s = r / v and
 * r = range_m - velocity_mps (t - s). The Doppler k velocity_mps carrier / (v - velocity_mps)
 * and the stretch of the code follow from tau. The one-way formula neglects the time dilation of
 * the emitter, (velocity / speed of light)^2 / 2.
 *
 * The signal of the scene is computed in these steps:
 * - The sum of the targets, the leak and the CW. Leak: leak_amplitude at range 0, phase 0. CW:
 *   cw_amplitude exp(2 pi i cw_hz t). An echo with snr_db and no amplitude has
 *   A = noise_rms 10^(snr_db / 20).
 * - The sum is multiplied by exp(+2 pi i frac(tune_hz n / rate)), with source.tune_hz.
 * - The phase of the oscillator rotates it by phase_noise_rad W(n) / sqrt(rate), with W of noise.h.
 * - If source.spectrum is inverted, the signal is conjugated.
 * - Noise is added: white, or low-pass noise of noise_bandwidth_hz around the tuned frequency.
 *   E|z|^2 = noise_rms^2, independent in every channel.
 * - The IQ imbalance changes I + iQ to I + i g (Q cos p + I sin p), with g of iq_gain_db and
 *   p = iq_phase_rad.
 * - The offset is added.
 *
 * A target with data changes its sign with the bits. Bit b begins at the code time
 * b * data_bit_periods * N. A slip removes samples of the scene from the recording. The recording
 * numbers its samples without a gap.
 */
typedef struct pnr_scene pnr_scene;

/* Makes a scene. Borrows config, which must have passed pnr_config_check and must not change.
 * Returns PNR_OK, PNR_ECONFIG (the reasons of radar.h and code.h) or PNR_ENOMEMORY. The caller owns
 * *out. */
int pnr_scene_create(const pnr_config *config, pnr_scene **out, pnr_error *error);
void pnr_scene_destroy(pnr_scene *scene);

/* Computes out[n_samples][2], the samples first .. first + n_samples - 1 of one channel, full scale
 * = 1, before any ADC. Channels other than source.channel contain only noise. Sample n has the same
 * bits in every call that contains it. */
void pnr_scene_generate(const pnr_scene *scene, size_t channel, uint64_t first, size_t n_samples,
                        double (*out)[2]);

const pnr_radar *pnr_scene_radar(const pnr_scene *scene);

/* The true values of a target at the centre of one period. */
typedef struct pnr_truth {
    double delay_s;       /* seconds of the receiver's clock, wrapped as in pnr_radar_delay_s */
    double delay_samples; /* delay_s * rate */
    double range_m;       /* range of the target when it reflected or sent the wave; not wrapped */
    double velocity_mps;
    double snr_db; /* per sample; INFINITY without noise, -INFINITY without an echo */
} pnr_truth;

/* Computes the truth of a target at the centre of period p. Period p is the samples first_window +
 * p N + (0 .. N - 1) of the recording. Its centre is first_window + p N + (N - 1) / 2. `target`
 * counts from 0. */
void pnr_scene_truth(const pnr_scene *scene, size_t target, uint64_t period, pnr_truth *out);

#endif
