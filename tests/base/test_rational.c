/* SPDX-License-Identifier: MIT */
/* Tests of rational.c: exactness against long division bit by bit. */
#include "base/rational.h"

#include "base/error.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

typedef __int128 i128;
typedef unsigned __int128 u128;

/* 1 .. 2^63-1, all sizes alike. */
static int64_t random_positive(void)
{
    uint64_t bits = random_bits() % 63;

    return (int64_t)((random_bits() & INT64_MAX) >> bits | 1);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

TEST(doubles_have_their_shortest_decimals)
{
    pnr_rational r;

    assert_int_equal(pnr_rational_from_double(1023000.25, &r), PNR_OK);
    assert_true(r.num == 4092001 && r.den == 4);
    assert_int_equal(pnr_rational_from_double(0.1, &r), PNR_OK);
    assert_true(r.num == 1 && r.den == 10);
    assert_int_equal(pnr_rational_from_double(-25e6, &r), PNR_OK);
    assert_true(r.num == -25000000 && r.den == 1);
    assert_int_equal(pnr_rational_from_double(INFINITY, &r), PNR_ECONFIG);
    assert_int_equal(pnr_rational_from_double(NAN, &r), PNR_ECONFIG);
    assert_int_equal(pnr_rational_from_double(1e300, &r), PNR_ECONFIG);
}

TEST(parses_exactly)
{
    static const struct {
        const char *text;
        int64_t num, den;
    } cases[] = {
        {"0", 0, 1},
        {"-0", 0, 1},
        {"0.000e99999999999", 0, 1},
        {"1", 1, 1},
        {"+7", 7, 1},
        {"007", 7, 1},
        {"-1680", -1680, 1},
        {"1.023e6", 1023000, 1},
        {"1.023E+6", 1023000, 1},
        {"4e6", 4000000, 1},
        {"0.5", 1, 2},
        {".5", 1, 2},
        {"5.", 5, 1},
        {"-0.1", -1, 10},
        {"12.5e-3", 1, 80},
        {"1000e-3", 1, 1},
        {"40000000/3", 40000000, 3},
        {"6/4", 3, 2},
        {"-6/4", -3, 2},
        {"1.5/0.25", 6, 1},
        {"1e6/3e6", 1, 3},
        {"0/5", 0, 1},
        {"9223372036854775807", INT64_MAX, 1},
        {"-9223372036854775807", -INT64_MAX, 1},
        {"1/9223372036854775807", 1, INT64_MAX},
        {"9223372036854775807/9223372036854775806", INT64_MAX, INT64_MAX - 1},
        {"9223372036854775807.000000000000000000000000000000000000000000000000", INT64_MAX, 1},
        {"0.000000000000000001", 1, INT64_C(1000000000000000000)},
        {"9000000000000000000000000000000000000000000000000000000000000e-42",
         INT64_C(9000000000000000000), 1},
        {"0.0000000000000000000000000000000000000000000000000001e52", 1, 1},
        /* 2^-62 has 62 places, 44 digits of 144 bits, and still fits. */
        {"2.1684043449710088680149056017398834228515625e-19", 1, INT64_C(1) << 62},
        /* 5^-27 = 2^27 10^-27 */
        {"134217728e-27", 1, INT64_C(7450580596923828125)},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pnr_rational r = {99, 99};
        if (pnr_rational_parse(cases[i].text, &r) != PNR_OK || r.num != cases[i].num ||
            r.den != cases[i].den)
            fail_msg("'%s' gives %lld/%lld", cases[i].text, (long long)r.num, (long long)r.den);
    }
}

TEST(refuses_what_is_no_number)
{
    static const char *const bad[] = {
        "",
        "-",
        "+",
        ".",
        "e5",
        "-.",
        ".e1",
        " 1",
        "1 ",
        "1 /2",
        "1/",
        "/2",
        "1/2/3",
        "1/-2",
        "1/+2",
        "1/0",
        "1/0.0",
        "--1",
        "+-1",
        "0x10",
        "inf",
        "nan",
        "1e",
        "1e+",
        "1e-",
        "1e1.5",
        "1.2.3",
        "1,5",
        "1_000",
        "1k",
        "0b1",
        "1d3",
        "1e5e5",
        "\t1",
        "1\n",
        "infinity",
        "9223372036854775808",
        "-9223372036854775808",
        "1e19",
        "1e400",
        "1e99999999999999999999",
        "1e-27",
        "0.1e-18",
        "1/9223372036854775808",
        "123456789012345678901234567890",
        "0.3333333333333333333333333333333333",
        "1e18/1e-3",
    };
    char many[4000];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pnr_rational r = {5, 7};
        if (pnr_rational_parse(bad[i], &r) != PNR_ECONFIG)
            fail_msg("taken: '%s'", bad[i]);
        assert_true(r.num == 5 && r.den == 7);
    }
    memset(many, '9', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    pnr_rational r;
    assert_int_equal(pnr_rational_parse(many, &r), PNR_ECONFIG);
    memset(many, '0', sizeof many - 1);
    assert_int_equal(pnr_rational_parse(many, &r), PNR_OK);
    assert_true(r.num == 0 && r.den == 1);
}

TEST(format_reads_back)
{

    for (int i = 0; i < 20000; i++) {
        int64_t num = random_positive(), den = random_positive(), g = gcd(num, den);
        pnr_rational r = {(i & 1 ? -num : num) / g, den / g}, back;
        char text[48];
        assert_int_equal(pnr_rational_parse(pnr_rational_format(r, text), &back), PNR_OK);
        assert_true(back.num == r.num && back.den == r.den);
    }
    char text[48];
    assert_string_equal(pnr_rational_format((pnr_rational){-1680, 1}, text), "-1680");
    assert_string_equal(pnr_rational_format((pnr_rational){40000000, 3}, text), "40000000/3");
    assert_string_equal(pnr_rational_format((pnr_rational){0, 0}, text), "0");
    assert_string_equal(pnr_rational_format((pnr_rational){-INT64_MAX, INT64_MAX - 1}, text),
                        "-9223372036854775807/9223372036854775806");
}

TEST(decimals_agree_with_the_library)
{

    for (int i = 0; i < 20000; i++) {
        char text[64];
        pnr_rational r;
        snprintf(text, sizeof text, "%s%u.%0*ue%d", i & 1 ? "-" : "",
                 (unsigned)(random_bits() % 100000), 1 + i % 9, (unsigned)(random_bits() % 10),
                 (int)(random_bits() % 15) - 7);
        assert_int_equal(pnr_rational_parse(text, &r), PNR_OK);
        double expected;
        assert_int_equal(sscanf(text, "%lf", &expected), 1);
        assert_true(fabs(pnr_rational_double(r) - expected) <= 2.3e-16 * fabs(expected));
        assert_true(r.den >= 1 && (r.num == 0 || gcd(r.num, r.den) == 1));
    }
}

TEST(double_of_it)
{
    assert_true(pnr_rational_double((pnr_rational){0, 0}) == 0);
    assert_true(pnr_rational_double((pnr_rational){-1, 2}) == -0.5);
    assert_true(pnr_rational_double((pnr_rational){INT64_MAX, 1}) == 0x1p63);
    assert_true(pnr_rational_double((pnr_rational){1, 3}) == 1.0 / 3);
}

TEST(products_and_quotients)
{
    int fitted = 0;

    for (int i = 0; i < 40000; i++) {
        int64_t n[4];
        for (int j = 0; j < 4; j++)
            n[j] = random_positive() >> (i & 1 ? 32 : 0) | 1;
        int64_t g = gcd(n[0], n[1]), h = gcd(n[2], n[3]);
        pnr_rational a = {(i & 2 ? -n[0] : n[0]) / g, n[1] / g};
        pnr_rational b = {(i & 4 ? -n[2] : n[2]) / h, n[3] / h};
        pnr_rational product, back;
        if (pnr_rational_mul(a, b, &product) != PNR_OK)
            continue;
        fitted++;
        assert_true(product.den > 0 && gcd(product.num, product.den) == 1);
        /* p/q = a b exactly: p (a.den b.den) = q (a.num b.num),
         * with the common factor divided out. */
        i128 left = (i128)a.num * b.num, right = (i128)a.den * b.den;
        assert_true(left % product.num == 0 && right % product.den == 0 &&
                    left / product.num == right / product.den);
        assert_int_equal(pnr_rational_div(product, b, &back), PNR_OK);
        assert_true(back.num == a.num && back.den == a.den);
    }
    assert_true(fitted > 20000);
}

TEST(what_does_not_fit_leaves_out_untouched)
{
    const pnr_rational big = {INT64_MAX, 1}, small = {1, INT64_MAX}, two = {2, 1}, none = {0, 0};
    pnr_rational out = {11, 13};

    assert_int_equal(pnr_rational_mul(big, two, &out), PNR_EDATA);
    assert_int_equal(pnr_rational_div(small, two, &out), PNR_EDATA);
    assert_int_equal(pnr_rational_div(two, small, &out), PNR_EDATA);
    assert_int_equal(pnr_rational_div(two, (pnr_rational){0, 1}, &out), PNR_EDATA);
    assert_int_equal(pnr_rational_mul(two, none, &out), PNR_EDATA);
    assert_int_equal(pnr_rational_div(none, two, &out), PNR_EDATA);
    assert_int_equal(pnr_rational_div(two, none, &out), PNR_EDATA);
    assert_true(out.num == 11 && out.den == 13);

    assert_int_equal(pnr_rational_mul(big, small, &out), PNR_OK);
    assert_true(out.num == 1 && out.den == 1);
    assert_int_equal(pnr_rational_div(big, big, &out), PNR_OK);
    assert_true(out.num == 1 && out.den == 1);
    assert_int_equal(pnr_rational_div(two, (pnr_rational){-4, 3}, &out), PNR_OK);
    assert_true(out.num == -3 && out.den == 2);
    assert_int_equal(pnr_rational_mul((pnr_rational){0, 1}, big, &out), PNR_OK);
    assert_true(out.num == 0 && out.den == 1);
}

/* frac(num n / den) 2^64, rounded, by doubling and subtracting only. */
static uint64_t slow_phase(pnr_rational r, uint64_t n)
{
    u128 den = (u128)r.den, step = 0, rest = 0;
    i128 mod = (i128)r.num % r.den;
    uint64_t phase = 0;

    step = (u128)(mod < 0 ? mod + r.den : mod);
    for (int bit = 63; bit >= 0; bit--) {
        rest = 2 * rest % den;
        if (n >> bit & 1)
            rest = (rest + step) % den;
    }
    for (int bit = 0; bit < 64; bit++) {
        rest *= 2;
        phase = phase << 1 | (rest >= den);
        if (rest >= den)
            rest -= den;
    }
    return phase + (2 * rest >= den);
}

TEST(phase_is_exact)
{

    for (int i = 0; i < 20000; i++) {
        int64_t num = random_positive(), den = random_positive(), g = gcd(num, den);
        pnr_rational r = {(i & 1 ? -num : num) / g, den / g};
        uint64_t n = random_bits() >> random_bits() % 64;
        assert_true(pnr_rational_phase(r, n) == slow_phase(r, n));
    }
    const pnr_rational extreme[] = {{INT64_MAX, INT64_MAX - 1},
                                    {-INT64_MAX, INT64_MAX - 1},
                                    {INT64_MAX - 1, INT64_MAX},
                                    {1, INT64_MAX},
                                    {INT64_MIN, 3}};
    for (size_t i = 0; i < sizeof extreme / sizeof extreme[0]; i++)
        for (uint64_t n = UINT64_MAX; n; n >>= 7)
            assert_true(pnr_rational_phase(extreme[i], n) == slow_phase(extreme[i], n));
}

TEST(phase_of_simple_turns)
{
    const uint64_t quarter = UINT64_C(1) << 62;

    assert_true(pnr_rational_phase((pnr_rational){1, 4}, 1) == quarter);
    assert_true(pnr_rational_phase((pnr_rational){-1, 4}, 1) == 3 * quarter);
    assert_true(pnr_rational_phase((pnr_rational){1, 4}, UINT64_MAX) == 3 * quarter);
    assert_true(pnr_rational_phase((pnr_rational){5, 1}, 12345) == 0);
    assert_true(pnr_rational_phase((pnr_rational){0, 0}, 12345) == 0);
    assert_true(pnr_rational_phase((pnr_rational){1, 3}, 0) == 0);
    /* 1680 Hz at 4 Msample/s has the same phase after 50000 samples, and after any multiple of
     * that. */
    const pnr_rational tune = {21, 50000};
    assert_true(pnr_rational_phase(tune, UINT64_C(50000) * 368934881474191) == 0);
    assert_true(pnr_rational_phase(tune, UINT64_C(50000) * 368934881474191 + 7) ==
                pnr_rational_phase(tune, 7));
}

TEST(negative_is_the_other_way_round)
{

    for (int i = 0; i < 5000; i++) {
        /* An odd denominator has no tie to round. */
        int64_t num = random_positive(), den = random_positive() | 1;
        uint64_t n = random_bits();
        uint64_t there = pnr_rational_phase((pnr_rational){num, den}, n);
        assert_true(there + pnr_rational_phase((pnr_rational){-num, den}, n) == 0);
    }
}

TEST(time_of_a_sample)
{
    assert_true(pnr_rational_time_ns((pnr_rational){1000000, 1}, 41943) == 41943000);
    assert_true(pnr_rational_time_ns((pnr_rational){40000000, 3}, 1) == 75);
    assert_true(pnr_rational_time_ns((pnr_rational){3, 1}, 1) == 333333333);
    assert_true(pnr_rational_time_ns((pnr_rational){3, 1}, 3) == 1000000000);
    assert_true(pnr_rational_time_ns((pnr_rational){1, 3}, 2) == INT64_C(6000000000));
    assert_true(pnr_rational_time_ns((pnr_rational){INT64_MAX, 1}, UINT64_MAX) == 2000000000);
    assert_true(pnr_rational_time_ns((pnr_rational){1000000000, 1}, INT64_MAX) == INT64_MAX);
    assert_true(pnr_rational_time_ns((pnr_rational){1000000000, 1}, UINT64_MAX) == INT64_MAX);
    assert_true(pnr_rational_time_ns((pnr_rational){1, INT64_MAX}, UINT64_MAX) == INT64_MAX);
    /* 2^119 s: their ns are a multiple of 2^128. */
    const pnr_rational slow = {1, INT64_C(1) << 62};
    assert_true(pnr_rational_time_ns(slow, UINT64_C(1) << 57) == INT64_MAX);
    assert_true(pnr_rational_time_ns((pnr_rational){5, 1}, 0) == 0);
    assert_true(pnr_rational_time_ns((pnr_rational){0, 0}, 5) == 0);
}

TEST(time_is_the_floor)
{

    for (int i = 0; i < 20000; i++) {
        pnr_rational rate = {random_positive() >> 20 | 1, random_positive() >> 40 | 1};
        uint64_t n = random_bits() >> 30;
        u128 exact = (u128)n * (u128)rate.den * 1000000000u; /* times num: 34 + 23 + 30 bits */
        u128 time_ns = (u128)pnr_rational_time_ns(rate, n);
        if (time_ns == INT64_MAX)
            assert_true(exact / (u128)rate.num >= INT64_MAX);
        else
            assert_true(time_ns * (u128)rate.num <= exact &&
                        exact < (time_ns + 1) * (u128)rate.num);
    }
}
