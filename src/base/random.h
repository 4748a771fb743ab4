/* SPDX-License-Identifier: MIT */
/* A small generator of repeatable random numbers, for tests and measurements: splitmix64 (G. L.
 * Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", 2014). */
#ifndef PNR_RANDOM_H
#define PNR_RANDOM_H

#include <stdint.h>

/* Returns the next 64 random bits. The first value of *state is the seed, any number. */
static inline uint64_t pnr_random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns a number u with 53 random bits, uniform in 0 <= u < 1. */
static inline double pnr_random_uniform(uint64_t *state)
{
    return (double)(pnr_random_next(state) >> 11) * 0x1p-53;
}

#endif
