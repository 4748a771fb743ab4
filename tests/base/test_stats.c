/* SPDX-License-Identifier: MIT */
/* Tests of stats.c. The judge of the histogram is a list of sorted values. */
#include "base/stats.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

TEST(empty_is_zero)
{
    const pnr_histogram h = {0};

    assert_true(pnr_histogram_quantile(&h, 0.5) == 0);
    assert_true(pnr_histogram_quantile(&h, 1) == 0);
}

/* Returns the median of a histogram of this value and a greater one. Without the greater value the
 * result would be the exact maximum. */
static uint64_t seen_as(uint64_t value)
{
    static pnr_histogram h;

    memset(&h, 0, sizeof h);
    pnr_histogram_add(&h, value);
    pnr_histogram_add(&h, UINT64_MAX);
    return pnr_histogram_quantile(&h, 0.5);
}

static void check_value(uint64_t value)
{
    uint64_t seen = seen_as(value), error = seen > value ? seen - value : value - seen;

    if (error > value / 64)
        fail_msg("%llu is seen as %llu", (unsigned long long)value, (unsigned long long)seen);
}

TEST(every_value_is_right_within_a_64th)
{

    for (uint64_t v = 0; v < 5000; v++)
        check_value(v);
    for (int bit = 0; bit < 64; bit++)
        for (int d = -2; d <= 2; d++)
            check_value((UINT64_C(1) << bit) + (uint64_t)(int64_t)d);
    for (int i = 0; i < 5000; i++)
        check_value(random_bits() >> random_bits() % 64);
    check_value(UINT64_MAX);
}

TEST(buckets_are_in_order)
{
    uint64_t last = 0;

    for (uint64_t v = 1; v < UINT64_MAX / 2; v += v / 100 + 1) {
        uint64_t seen = seen_as(v);
        assert_true(seen >= last);
        last = seen;
    }
}

TEST(count_and_maximum)
{
    static pnr_histogram h;

    memset(&h, 0, sizeof h);
    pnr_histogram_add(&h, 12345);
    pnr_histogram_add(&h, 7);
    assert_true(h.n == 2 && h.max == 12345);
    assert_true(pnr_histogram_quantile(&h, 1) == 12345);
    assert_true(pnr_histogram_quantile(&h, 0) == 7);
    assert_true(pnr_histogram_quantile(&h, 0.5) == 7);
}

TEST(one_value_is_every_quantile)
{
    static pnr_histogram h;

    memset(&h, 0, sizeof h);
    pnr_histogram_add(&h, 1000003);
    for (double p = -0.5; p < 2; p += 0.25)
        assert_true(pnr_histogram_quantile(&h, p) == 1000003);
    assert_true(pnr_histogram_quantile(&h, (double)NAN) == 1000003);
}

TEST(quantiles_follow_the_sorted_values)
{
    enum { N = 3001 };
    static uint64_t values[N];
    static pnr_histogram h;

    memset(&h, 0, sizeof h);
    for (int i = 0; i < N; i++) {
        values[i] = 5000 + (random_bits() >> (40 + i % 20));
        pnr_histogram_add(&h, values[i]);
    }
    qsort(values, N, sizeof values[0], compare);
    for (int i = 0; i <= 1000; i++) {
        double p = i / 1000.0;
        size_t rank = (size_t)ceil(p * N - 1e-9);
        uint64_t exact = values[rank > 0 ? rank - 1 : 0];
        uint64_t seen = pnr_histogram_quantile(&h, p);
        assert_true(llabs((long long)(seen - exact)) <= (long long)(exact / 64));
    }
}

TEST(small_values_are_exact)
{
    static pnr_histogram h;

    memset(&h, 0, sizeof h);
    for (uint64_t v = 1; v <= 25; v++)
        pnr_histogram_add(&h, v);
    for (int i = 1; i <= 25; i++)
        assert_true(pnr_histogram_quantile(&h, i / 25.0) == (uint64_t)i);
}

TEST(median_is_the_lower_one)
{
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {-7};

    assert_true(pnr_median(odd, 3) == 3);
    assert_true(odd[0] == 1 && odd[2] == 5); /* pnr_median has sorted the values in place */
    assert_true(pnr_median(even, 4) == 2);
    assert_true(pnr_median(one, 1) == -7);
}

TEST(quantile_is_the_nearest_rank)
{
    double values[100];

    /* In floating point 0.07 * 100 is 7.000000000000001. The result must still be the 7th value. */
    for (int percent = 1; percent <= 100; percent++) {
        for (int i = 0; i < 100; i++)
            values[i] = 100 - i;
        assert_true(pnr_quantile(values, 100, percent / 100.0) == percent);
    }
    assert_true(pnr_quantile(values, 100, 0.071) == 8);
    assert_true(pnr_quantile(values, 100, 0) == 1);
    assert_true(pnr_quantile(values, 100, -3) == 1);
    assert_true(pnr_quantile(values, 100, 4) == 100);
    assert_true(pnr_quantile(values, 1, 0.99) == 1);
}

TEST(median_is_the_half_quantile)
{

    for (size_t n = 1; n < 60; n++) {
        double a[60], b[60];
        for (size_t i = 0; i < n; i++)
            a[i] = b[i] = (double)(random_bits() % 50) - 25;
        assert_true(pnr_median(a, n) == pnr_quantile(b, n, 0.5));
        assert_memory_equal(a, b, n * sizeof a[0]);
        for (size_t i = 1; i < n; i++)
            assert_true(a[i - 1] <= a[i]);
    }
}

TEST(nan_comes_last)
{
    double values[] = {(double)NAN, 2, (double)NAN, (double)INFINITY, 1, -(double)INFINITY, 3};

    assert_true(pnr_median(values, 7) == 3);
    assert_true(values[0] == -(double)INFINITY && values[1] == 1 && values[2] == 2);
    assert_true(values[4] == (double)INFINITY && isnan(values[5]) && isnan(values[6]));
}
