/* SPDX-License-Identifier: MIT */
/* Gaussian noise, white or filtered, and random walks. Sample n is a function of the seed, the
 * channel and n, so it is the same in every call. */
#ifndef PNR_NOISE_H
#define PNR_NOISE_H

#include <stddef.h>
#include <stdint.h>

/* Philox4x32-10 (J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11). */
void pnr_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

/*
 * Computes out[i], sample first + i of channel `channel`: complex, circular, Gaussian, E|z|^2 = 1
 * (variance 1/2 in each part), by Box-Muller from 2 x 53 bits. The function only adds, multiplies,
 * divides and takes square roots. Every compiler and C library that follows IEEE 754 therefore
 * gives the same bits.
 */
void pnr_noise_gaussian(uint64_t seed, uint32_t channel, uint64_t first, size_t n_samples,
                        double (*out)[2]);

/* Channels from PNR_NOISE_FIRST_INNER on are for random walks and data bits. */
enum { PNR_NOISE_FIRST_INNER = 0x10000, PNR_NOISE_TAPS = 101 };

/* Computes taps[PNR_NOISE_TAPS], a low-pass filter of linear phase around the frequency `centre`: a
 * sinc in a Hamming window. centre and bandwidth (0 .. 1) are in cycles per sample. The filter does
 * not change the power of white noise: sum |taps|^2 = 1. */
void pnr_noise_filter(double bandwidth, double centre, double (*taps)[2]);
/* Computes the noise of pnr_noise_gaussian after the filter `taps`. */
void pnr_noise_filtered(const double (*taps)[2], uint64_t seed, uint32_t channel, uint64_t first,
                        size_t n_samples, double (*out)[2]);

/* Computes a part of a Wiener process: walk[j] = W(block + j), W(0) = 0, E(W(n) - W(m))^2 = |n -
 * m|. The function inserts midpoints (P. Levy, 1948), so the cost is the same for every block.
 * block: a multiple of PNR_NOISE_WALK. */
enum { PNR_NOISE_WALK = 256 };
void pnr_noise_walk(uint64_t seed, uint64_t block, double walk[PNR_NOISE_WALK]);

#endif
