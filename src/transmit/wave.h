/* SPDX-License-Identifier: MIT */
/* The waveform of the transmitter: the first code, repeated without end, at the frequency
 * source.tune_hz. */
#ifndef PNR_WAVE_H
#define PNR_WAVE_H

#include "base/error.h"
#include "config/config.h"
#include "setup/radar.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sample n is a[n mod N] exp(+2 pi i tune_hz n / rate), where a are the samples of the code. If
 * source.spectrum is inverted, the sample is the conjugate of this value. If all chips are +1 or
 * -1, the real part is BPSK on a carrier. For real samples on a carrier, the waveform has only
 * frequencies between 0 and half of the rate, as in the receiver, so that no frequency is aliased.
 * The phase of the carrier is exact for every n.
 */
typedef struct pnr_wave pnr_wave;

/* Creates the waveform. is_real: the samples are real, and only the real part is transmitted.
 * PNR_OK; PNR_ECONFIG: an error of radar.h or code.h; PNR_ENOMEMORY. Borrows nothing. The caller
 * owns *out. */
int pnr_wave_create(const pnr_config *config, bool is_real, pnr_wave **out, pnr_error *error);
void pnr_wave_destroy(pnr_wave *wave);

/* Computes out[n_samples][2], I and Q of the samples first .. first + n_samples - 1. The code has
 * mean power 1, or less for real samples on a carrier, because its band is limited. Sample n has
 * the same bits in every call that contains it. Allocates nothing. */
void pnr_wave_generate(const pnr_wave *wave, uint64_t first, size_t n_samples, double (*out)[2]);

const pnr_radar *pnr_wave_radar(const pnr_wave *wave);
/* Returns the largest magnitude of a sample. */
double pnr_wave_peak(const pnr_wave *wave);

#endif
