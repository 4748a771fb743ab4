/* SPDX-License-Identifier: MIT */
/* Gaussian noise by Philox4x32-10 and Box-Muller, in blocks that the compiler vectorises. */
#include "scene/noise.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64, ROUNDS = 10 };

static const double turn = 6.283185307179586476925;
static const double root_2 = 1.414213562373095048802;
static const double ln_2 = 0.693147180559945309417;

void pnr_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53 * c0, p1 = (uint64_t)0xCD9E8D57 * c2;
        uint32_t d1 = c1, d3 = c3;

        c0 = (uint32_t)(p1 >> 32) ^ d1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ d3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/*
 * Returns ln u for u = m 2^e with 1/sqrt 2 <= m < sqrt 2. u > 0 is not subnormal. With s = (m - 1)
 * / (m + 1), ln u = e ln 2 + 2 atanh s. The series of atanh s ends at s^21. Because |s| < 0.172,
 * the next term is below 2e-17 of the sum.
 */
static double log_uniform(double u)
{
    uint64_t bits;
    double m;

    memcpy(&bits, &u, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000;
    memcpy(&m, &bits, sizeof m);
    if (m > root_2) {
        m *= 0.5;
        e += 1;
    }
    double s = (m - 1) / (m + 1), z = s * s;
    double sum = 1.0 / 21;
#pragma GCC unroll 9
    for (int k = 19; k >= 3; k -= 2)
        sum = sum * z + 1.0 / k;
    return e * ln_2 + (2 * s + 2 * s * (sum * z));
}

/* Computes exp(2 pi i f) for 0 <= f < 1. Splits f into quadrant / 4 + r with |r| <= 1/8, and uses
 * Taylor's series at x = 2 pi r. */
static void unit_vector(double f, double value[2])
{
    static const double sine[] = {
        1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
        1.0 / 362880,          -1.0 / 5040,          1.0 / 120,        -1.0 / 6};
    static const double cosine[] = {
        1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800,
        1.0 / 40320,          -1.0 / 720,         1.0 / 24,        -0.5};
    int quadrant = (int)(4 * f + 0.5);
    double x = turn * (f - 0.25 * quadrant), z = x * x;
    double s = 0, c = 0;

#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        s = s * z + sine[k];
        c = c * z + cosine[k];
    }
    s = x + x * (s * z);
    c = 1 + c * z;

    double re = quadrant & 1 ? s : c, im = quadrant & 1 ? c : s;
    value[0] = (quadrant + 1) & 2 ? -re : re;
    value[1] = quadrant & 2 ? -im : im;
}

/* Computes out[i] = sqrt(-ln u) exp(2 pi i f). |out[i]|^2 is exponential with mean 1, and f is
 * uniform. */
static void fill_block(const uint32_t key[2], uint32_t channel, uint64_t first, size_t n_samples,
                       double (*out)[2])
{
    double u[BLOCK], f[BLOCK];

    for (size_t i = 0; i < n_samples; i++) {
        uint64_t n = first + i;
        const uint32_t counter[4] = {(uint32_t)n, (uint32_t)(n >> 32), channel, 0};
        uint32_t word[4];

        pnr_philox(key, counter, word);
        u[i] = (double)(((uint64_t)word[1] << 21 | word[0] >> 11) + 1) * 0x1p-53;
        f[i] = (double)((uint64_t)word[3] << 21 | word[2] >> 11) * 0x1p-53;
    }
    for (size_t i = 0; i < n_samples; i++) {
        double radius = sqrt(-log_uniform(u[i])), direction[2];

        unit_vector(f[i], direction);
        out[i][0] = radius * direction[0];
        out[i][1] = radius * direction[1];
    }
}

void pnr_noise_gaussian(uint64_t seed, uint32_t channel, uint64_t first, size_t n_samples,
                        double (*out)[2])
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

    for (size_t i = 0; i < n_samples; i += BLOCK)
        fill_block(key, channel, first + i, n_samples - i < BLOCK ? n_samples - i : BLOCK, out + i);
}

void pnr_noise_filter(double bandwidth, double centre, double (*taps)[2])
{
    const double middle = (PNR_NOISE_TAPS - 1) / 2.0;
    double power = 0;

    for (int k = 0; k < PNR_NOISE_TAPS; k++) {
        double t = k - middle, sine[2], window[2], shift[2];
        double turns = bandwidth * t / 2;

        unit_vector(turns - floor(turns), sine);
        unit_vector(k / (2 * middle) < 1 ? k / (2 * middle) : 0, window);
        unit_vector(centre * t - floor(centre * t), shift);
        double h = (t == 0 ? bandwidth : 2 * sine[1] / (turn * t)) * (0.54 - 0.46 * window[0]);
        taps[k][0] = h * shift[0];
        taps[k][1] = h * shift[1];
        power += h * h;
    }
    for (int k = 0; k < PNR_NOISE_TAPS; k++) {
        taps[k][0] /= sqrt(power);
        taps[k][1] /= sqrt(power);
    }
}

/* Computes filtered noise. The filter also reads noise before sample 0. The indices of these
 * samples wrap to the greatest 64-bit numbers. */
void pnr_noise_filtered(const double (*taps)[2], uint64_t seed, uint32_t channel, uint64_t first,
                        size_t n_samples, double (*out)[2])
{
    double white[BLOCK + PNR_NOISE_TAPS - 1][2];

    for (size_t i = 0; i < n_samples; i += BLOCK, first += BLOCK, out += BLOCK) {
        const size_t n = n_samples - i < BLOCK ? n_samples - i : BLOCK;

        pnr_noise_gaussian(seed, channel, first - PNR_NOISE_TAPS / 2, n + PNR_NOISE_TAPS - 1,
                           white);
        memset(out, 0, n * sizeof *out);
        for (size_t k = 0; k < PNR_NOISE_TAPS; k++)
            for (size_t j = 0; j < n; j++) {
                const double *z = white[j + PNR_NOISE_TAPS - 1 - k];

                out[j][0] += taps[k][0] * z[0] - taps[k][1] * z[1];
                out[j][1] += taps[k][0] * z[1] + taps[k][1] * z[0];
            }
    }
}

void pnr_noise_walk(uint64_t seed, uint64_t block, double walk[PNR_NOISE_WALK])
{
    double z[PNR_NOISE_WALK][2], above, length = 0x1p63;
    uint64_t first = 0;

    /* Real and imaginary part of z have variance 1/2 each. The value in the middle of an interval
     * is the mean of the values at its ends plus a random step of variance length / 4. */
    pnr_noise_gaussian(seed, PNR_NOISE_FIRST_INNER, UINT64_C(1) << 63, 1, z);
    walk[0] = 0;
    above = sqrt(2 * length) * z[0][0];
    for (uint64_t half = UINT64_C(1) << 62; half >= PNR_NOISE_WALK; half /= 2, length /= 2) {
        pnr_noise_gaussian(seed, PNR_NOISE_FIRST_INNER, first + half, 1, z);
        double middle = (walk[0] + above) / 2 + sqrt(length / 2) * z[0][0];

        if (block - first >= half) {
            first += half;
            walk[0] = middle;
        } else {
            above = middle;
        }
    }
    pnr_noise_gaussian(seed, PNR_NOISE_FIRST_INNER, block, PNR_NOISE_WALK, z);
    for (size_t half = PNR_NOISE_WALK / 2; half >= 1; half /= 2, length /= 2)
        for (size_t j = half; j < PNR_NOISE_WALK; j += 2 * half) {
            double end = j + half < PNR_NOISE_WALK ? walk[j + half] : above;

            walk[j] = (walk[j - half] + end) / 2 + sqrt(length / 2) * z[j][0];
        }
}
