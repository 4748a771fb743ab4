/* SPDX-License-Identifier: MIT */
/* White Gaussian noise by counter: sample n of a seed is always the same. */
#ifndef PNR_NOISE_H
#define PNR_NOISE_H

#include <stddef.h>
#include <stdint.h>

/* Philox4x32-10 (J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11). */
void pnr_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

/*
 * out[i] is sample first + i of channel `channel`: complex, circular, Gaussian, E|z|^2 = 1 (each
 * part has variance 1/2), by Box-Muller from 2 x 53 bits. The function only adds, multiplies,
 * divides and takes square roots: every compiler and C library that follows IEEE 754 gives the same
 * bits.
 */
void pnr_noise_gaussian(uint64_t seed, uint32_t channel, uint64_t first, size_t n_samples,
                        double (*out)[2]);

#endif
