/* SPDX-License-Identifier: MIT */
/* Tests of the noise: the published values of the generator, Gaussian moments, whiteness, and equal
 * samples in any blocks. */
#include "scene/noise.h"
#include "tests/fixture/test.h"

enum { N = 1 << 18 };

/* The values of kat_vectors in Random123, which the authors published. */
TEST(gives_the_published_answers)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];

        pnr_philox(known[i].key, known[i].counter, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

/* Computes the same samples by log, sin and cos of the C library. */
TEST(is_box_muller)
{
    double(*z)[2] = malloc(4096 * sizeof *z);
    const uint32_t key[2] = {7, 9};

    pnr_noise_gaussian(UINT64_C(9) << 32 | 7, 3, 1000, 4096, z);
    for (uint32_t i = 0; i < 4096; i++) {
        const uint32_t counter[4] = {1000 + i, 0, 3, 0};
        uint32_t w[4];

        pnr_philox(key, counter, w);
        double u = ldexp((double)(((uint64_t)w[1] << 32 | w[0]) >> 11) + 1, -53);
        double f = ldexp((double)(((uint64_t)w[3] << 32 | w[2]) >> 11), -53);
        double r = sqrt(-log(u)), angle = 2 * acos(-1) * f;

        assert_true(fabs(z[i][0] - r * cos(angle)) < 4e-15);
        assert_true(fabs(z[i][1] - r * sin(angle)) < 4e-15);
    }
    free(z);
}

/* Each bound is five standard deviations of its statistic. */
TEST(has_gaussian_moments)
{
    double(*z)[2] = malloc(N * sizeof *z);
    double mean[2] = {0}, power = 0, fourth = 0, cross = 0, difference = 0;
    size_t beyond = 0;

    pnr_noise_gaussian(20261121, 0, 0, N, z);
    for (size_t i = 0; i < N; i++) {
        double i2 = z[i][0] * z[i][0], q2 = z[i][1] * z[i][1];

        mean[0] += z[i][0];
        mean[1] += z[i][1];
        power += i2 + q2;
        fourth += i2 * i2 + q2 * q2;
        cross += z[i][0] * z[i][1];
        difference += i2 - q2;
        beyond += i2 > 4.5; /* beyond three sigma */
    }
    double s = 5 / sqrt(N), rare = 0.0026998;
    assert_true(fabs(mean[0] / N) < s * sqrt(0.5));
    assert_true(fabs(mean[1] / N) < s * sqrt(0.5));
    assert_true(fabs(power / N - 1) < s);
    assert_true(fabs(fourth / N - 1.5) < s * sqrt(12)); /* the variance is 2 (105 - 9) / 16 = 12 */
    assert_true(fabs(cross / N) < s * 0.5);
    assert_true(fabs(difference / N) < s);
    assert_true(fabs((double)beyond / N - rare) < s * sqrt(rare));
    free(z);
}

static double correlation(const double (*a)[2], const double (*b)[2], size_t n)
{
    double re = 0, im = 0;

    for (size_t i = 0; i < n; i++) {
        re += a[i][0] * b[i][0] + a[i][1] * b[i][1];
        im += a[i][1] * b[i][0] - a[i][0] * b[i][1];
    }
    return hypot(re, im) / (double)n;
}

/* |correlation|^2 N is exponential with mean 1, and exceeds 25 once in 7e10 trials. */
TEST(is_white_and_independent)
{
    const double bound = 5 / sqrt(N - 64);
    double(*z)[2] = malloc(N * sizeof *z), (*other)[2] = malloc(N * sizeof *other);

    pnr_noise_gaussian(1, 0, 0, N, z);
    for (size_t lag = 1; lag <= 64; lag++)
        assert_true(correlation((const double(*)[2])z, (const double(*)[2])z + lag, N - 64) <
                    bound);
    pnr_noise_gaussian(2, 0, 0, N, other);
    assert_true(correlation((const double(*)[2])z, (const double(*)[2])other, N - 64) < bound);
    pnr_noise_gaussian(1, 1, 0, N, other);
    assert_true(correlation((const double(*)[2])z, (const double(*)[2])other, N - 64) < bound);
    pnr_noise_gaussian(UINT64_C(1) << 32 | 1, 0, 0, N, other);
    assert_true(correlation((const double(*)[2])z, (const double(*)[2])other, N - 64) < bound);
    pnr_noise_gaussian(1, 0, UINT64_C(1) << 32, N, other);
    assert_true(correlation((const double(*)[2])z, (const double(*)[2])other, N - 64) < bound);
    free(z);
    free(other);
}

TEST(is_the_same_in_any_blocks)
{
    const uint64_t first = (UINT64_C(1) << 32) - 500;
    double whole[1000][2], part[1000][2];

    pnr_noise_gaussian(5, 2, first, 1000, whole);
    for (size_t i = 0, n = 1; i < 1000; i += n, n = n * 3 % 101 + 1) {
        n = n < 1000 - i ? n : 1000 - i;
        pnr_noise_gaussian(5, 2, first + i, n, part + i);
    }
    assert_memory_equal(whole, part, sizeof whole);
}
