/* SPDX-License-Identifier: MIT */
/* The transform against the defining sum, and by linearity, impulse, shift and Parseval. */
#include "base/transform.h"

#include "base/error.h"
#include "tests/fixture/test.h"

typedef double sample[2];

/* Even, odd, prime, powers of two (of either parity of the exponent), one off a power of two. */
static const size_t lengths[] = {1,   2,   3,   4,   5,   6,   7,   8,   9,    12,   15,   16,  17,
                                 30,  31,  32,  33,  60,  61,  63,  64,  100,  101,  127,  128, 129,
                                 210, 251, 255, 256, 257, 500, 509, 512, 1000, 1021, 1023, 1024};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

static sample *new_samples(size_t n)
{
    sample *data = calloc(n, sizeof *data);

    assert_non_null(data);
    return data;
}

/* Repeatable values in -1..1 (a 64-bit linear congruence, upper bits). */
static sample *random_samples(size_t n, uint64_t seed)
{
    sample *data = new_samples(n);
    uint64_t state = seed;

    for (size_t k = 0; k < n; k++) {
        for (int part = 0; part < 2; part++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            data[k][part] = (double)(int64_t)state / 9223372036854775808.0;
        }
    }
    return data;
}

static double norm(const sample *data, size_t n)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += data[k][0] * data[k][0] + data[k][1] * data[k][1];
    return sqrt(sum);
}

static double distance(const sample *a, const sample *b, size_t n)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += pow(a[k][0] - b[k][0], 2) + pow(a[k][1] - b[k][1], 2);
    return sqrt(sum);
}

/* The error that the header promises, relative L2; one part more for the plain sum that is compared
 * with. */
static double tolerance(size_t n)
{
    return 1e-14 * (log2((double)n) + 1);
}

static void plain_sum(const sample *data, size_t n, double sign, sample *out)
{
    for (size_t m = 0; m < n; m++) {
        long double re = 0, im = 0;

        for (size_t k = 0; k < n; k++) {
            long double phase = 2 * acosl(-1.0L) * (long double)(m * k % n) / (long double)n;
            long double c = cosl(phase), s = (long double)sign * sinl(phase);

            re += data[k][0] * c - data[k][1] * s;
            im += data[k][0] * s + data[k][1] * c;
        }
        out[m][0] = (double)re;
        out[m][1] = (double)im;
    }
}

TEST(forward_and_inverse_are_the_defining_sums)
{
    for (size_t i = 0; i < N_LENGTHS && lengths[i] <= 512; i++) {
        size_t n = lengths[i];
        sample *data = random_samples(n, n);
        sample *plain = new_samples(n);

        for (int sign = -1; sign <= 1; sign += 2) {
            sample *fast = random_samples(n, n);

            plain_sum((const sample *)data, n, sign, plain);
            assert_int_equal(
                sign < 0 ? pnr_transform_forward(fast, n) : pnr_transform_inverse(fast, n), PNR_OK);
            assert_true(distance((const sample *)fast, (const sample *)plain, n) <=
                        tolerance(n) * norm((const sample *)plain, n));
            free(fast);
        }
        free(data);
        free(plain);
    }
}

/* Long transforms are split: two smooth factors, two that need a chirp, one of each kind, a prime,
 * twice a prime, and a factor that is no multiple of a block. */
TEST(a_long_transform_is_the_defining_sum)
{
    static const size_t large[] = {32768, 65535, 40755, 99991, 2 * 20011, 55 * 599, 3 * 16381};

    for (size_t i = 0; i < COUNT(large); i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const size_t n = large[i];
            sample *data = random_samples(n, n), *fast = random_samples(n, n);
            const double all = norm((const sample *)data, n);

            assert_int_equal(
                sign < 0 ? pnr_transform_forward(fast, n) : pnr_transform_inverse(fast, n), PNR_OK);
            for (size_t k = 0; k < 5; k++) {
                const size_t m = k * (n - 1) / 4;
                long double re = 0, im = 0;

                for (size_t j = 0; j < n; j++) {
                    const long double phase = (long double)sign * 2 * acosl(-1.0L) *
                                              (long double)(m * j % n) / (long double)n;
                    const long double c = cosl(phase), s = sinl(phase);

                    re += data[j][0] * c - data[j][1] * s;
                    im += data[j][0] * s + data[j][1] * c;
                }
                if (!(fabs(fast[m][0] - (double)re) < tolerance(n) * all) ||
                    !(fabs(fast[m][1] - (double)im) < tolerance(n) * all))
                    fail_msg("length %zu, frequency %zu", n, m);
            }
            free(data);
            free(fast);
        }
}

TEST(inverse_of_forward_is_n_times_the_input)
{
    static const size_t large[] = {4000, 8191, 10000, 65535, 65536, 131072, 99991};

    for (size_t i = 0; i < N_LENGTHS + sizeof large / sizeof large[0]; i++) {
        size_t n = i < N_LENGTHS ? lengths[i] : large[i - N_LENGTHS];
        sample *data = random_samples(n, 7);
        sample *original = random_samples(n, 7);

        assert_int_equal(pnr_transform_forward(data, n), PNR_OK);
        assert_int_equal(pnr_transform_inverse(data, n), PNR_OK);
        for (size_t k = 0; k < n; k++) {
            data[k][0] /= (double)n;
            data[k][1] /= (double)n;
        }
        assert_true(distance((const sample *)data, (const sample *)original, n) <=
                    2 * tolerance(n) * norm((const sample *)original, n));
        free(data);
        free(original);
    }
}

TEST(an_impulse_gives_one_rotation)
{
    for (size_t i = 0; i < N_LENGTHS; i++) {
        size_t n = lengths[i];
        size_t where = n * 2 / 3;
        sample *data = new_samples(n);

        data[where][0] = 1;
        assert_int_equal(pnr_transform_forward(data, n), PNR_OK);
        for (size_t m = 0; m < n; m++) {
            double phase = -2 * M_PI * (double)(m * where % n) / (double)n;

            assert_true(fabs(data[m][0] - cos(phase)) < 20 * tolerance(n));
            assert_true(fabs(data[m][1] - sin(phase)) < 20 * tolerance(n));
        }
        free(data);
    }
}

TEST(the_transform_is_linear)
{
    const double alpha[2] = {0.3, -1.7};

    for (size_t i = 0; i < N_LENGTHS; i++) {
        size_t n = lengths[i];
        sample *x = random_samples(n, 1), *y = random_samples(n, 2), *sum = new_samples(n);

        for (size_t k = 0; k < n; k++) {
            sum[k][0] = alpha[0] * x[k][0] - alpha[1] * x[k][1] + y[k][0];
            sum[k][1] = alpha[0] * x[k][1] + alpha[1] * x[k][0] + y[k][1];
        }
        assert_int_equal(pnr_transform_forward(x, n), PNR_OK);
        assert_int_equal(pnr_transform_forward(y, n), PNR_OK);
        assert_int_equal(pnr_transform_forward(sum, n), PNR_OK);
        for (size_t k = 0; k < n; k++) {
            y[k][0] += alpha[0] * x[k][0] - alpha[1] * x[k][1];
            y[k][1] += alpha[0] * x[k][1] + alpha[1] * x[k][0];
        }
        assert_true(distance((const sample *)sum, (const sample *)y, n) <=
                    4 * tolerance(n) * norm((const sample *)y, n));
        free(x);
        free(y);
        free(sum);
    }
}

TEST(a_shift_turns_the_spectrum)
{
    for (size_t i = 0; i < N_LENGTHS; i++) {
        size_t n = lengths[i];
        size_t shift = (n + 1) / 3;
        sample *x = random_samples(n, 3), *later = new_samples(n);

        for (size_t k = 0; k < n; k++)
            memcpy(later[(k + shift) % n], x[k], sizeof *x);
        assert_int_equal(pnr_transform_forward(x, n), PNR_OK);
        assert_int_equal(pnr_transform_forward(later, n), PNR_OK);
        for (size_t m = 0; m < n; m++) {
            double phase = -2 * M_PI * (double)(m * shift % n) / (double)n;
            double re = x[m][0] * cos(phase) - x[m][1] * sin(phase);
            double im = x[m][0] * sin(phase) + x[m][1] * cos(phase);

            x[m][0] = re;
            x[m][1] = im;
        }
        assert_true(distance((const sample *)later, (const sample *)x, n) <=
                    3 * tolerance(n) * norm((const sample *)x, n));
        free(x);
        free(later);
    }
}

TEST(energy_is_kept_times_n)
{
    for (size_t i = 0; i < N_LENGTHS; i++) {
        size_t n = lengths[i];
        sample *x = random_samples(n, 4);
        double before = norm((const sample *)x, n);

        assert_int_equal(pnr_transform_forward(x, n), PNR_OK);
        assert_true(fabs(norm((const sample *)x, n) / (before * sqrt((double)n)) - 1) <=
                    tolerance(n));
        free(x);
    }
}

TEST(a_constant_has_only_bin_zero)
{
    const size_t n = 1 << 18;
    sample *data = new_samples(n);

    for (size_t k = 0; k < n; k++)
        data[k][1] = 1;
    assert_int_equal(pnr_transform_forward(data, n), PNR_OK);
    assert_true(fabs(data[0][1] - (double)n) == 0);
    data[0][1] = 0;
    assert_true(norm((const sample *)data, n) <= tolerance(n) * sqrt((double)n));
    free(data);
}

TEST(a_length_beyond_memory_is_told)
{
    sample one = {1, 0};

    assert_int_equal(pnr_transform_forward(&one, (size_t)1 << 60), PNR_ENOMEMORY);
    assert_int_equal(pnr_transform_forward(&one, SIZE_MAX - 1), PNR_ENOMEMORY);
    assert_int_equal(pnr_transform_inverse(&one, SIZE_MAX / 3), PNR_ENOMEMORY);
    assert_true(one[0] == 1 && one[1] == 0);
}

TEST(roots_are_exact_at_quadrants_and_near_elsewhere)
{
    static const double quadrant[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    double value[2];

    for (size_t n = 4; n <= 4096; n *= 2) {
        for (size_t quarter = 0; quarter < 4; quarter++) {
            pnr_transform_root(quarter * n / 4, n, value);
            assert_true(value[0] == quadrant[quarter][0] && value[1] == quadrant[quarter][1]);
        }
    }
    for (size_t n = 1; n < 300; n++) {
        for (size_t j = 0; j < n; j++) {
            long double phase = 2 * acosl(-1.0L) * (long double)j / (long double)n;

            pnr_transform_root(j, n, value);
            assert_true(fabsl(value[0] - cosl(phase)) < 2.3e-16L);
            assert_true(fabsl(value[1] - sinl(phase)) < 2.3e-16L);
        }
    }
}

static int is_smooth(size_t n)
{
    static const size_t primes[] = {2, 3, 5, 7};

    for (int i = 0; i < 4; i++) {
        while (n % primes[i] == 0)
            n /= primes[i];
    }
    return n == 1;
}

TEST(fast_length_is_the_next_smooth_number)
{
    size_t next = 1;

    for (size_t n = 1; n <= 20000; n++) {
        while (next < n || !is_smooth(next))
            next++;
        assert_int_equal(pnr_transform_fast_length(n), next);
    }
    assert_int_equal(pnr_transform_fast_length(0), 1);
    assert_int_equal(pnr_transform_fast_length(2 * 1048575 - 1), 2097152);
    assert_int_equal(pnr_transform_fast_length((size_t)1 << 63), (size_t)1 << 63);
    assert_int_equal(pnr_transform_fast_length(SIZE_MAX), 0);
}
