/* SPDX-License-Identifier: MIT */
/* Gaussian noise by counter, white or filtered, and random walks: sample n of a seed is always the
 * same. */
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

/* The channels from PNR_NOISE_FIRST_INNER on make random walks and data bits. */
enum { PNR_NOISE_FIRST_INNER = 0x10000, PNR_NOISE_TAPS = 101 };

/* Fills taps[PNR_NOISE_TAPS] with a low-pass filter of linear phase, a sinc in a Hamming window,
 * that is moved to the frequency `centre`. centre and bandwidth (0..1) are in cycles a sample.
 * White noise keeps its power: sum |taps|^2 = 1. */
void pnr_noise_filter(double bandwidth, double centre, double (*taps)[2]);
/* Makes the noise of pnr_noise_gaussian after it has passed the filter `taps`. */
void pnr_noise_filtered(const double (*taps)[2], uint64_t seed, uint32_t channel, uint64_t first,
                        size_t n_samples, double (*out)[2]);

/* A Wiener process: walk[j] = W(block + j), W(0) = 0, E(W(n) - W(m))^2 = |n - m|. It is refined by
 * midpoints (P. Levy, 1948), so the cost is the same for every block. block: a multiple of
 * PNR_NOISE_WALK. */
enum { PNR_NOISE_WALK = 256 };
void pnr_noise_walk(uint64_t seed, uint64_t block, double walk[PNR_NOISE_WALK]);

#endif
