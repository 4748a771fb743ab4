/* SPDX-License-Identifier: MIT */
/* Exact rates: decimal text, products, phases and times without rounding errors, in 128 bits. */
#include "base/rational.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

typedef __int128 i128;
typedef unsigned __int128 u128;

/*
 * Digits of a decimal number as an integer of 256 bits. That is enough for every number that fits:
 * m 10^-k with m not divisible by 10 keeps 2^k or 5^k whole in its denominator, so k <= 62, and
 * then m <= 2^63 * 5^62 < 2^208.
 */
enum { N_LIMBS = 8 };
typedef struct wide {
    uint32_t limb[N_LIMBS]; /* least significant first */
} wide;

/* value = value * factor + digit; false when it does not fit. */
static bool wide_push(wide *value, uint32_t factor, uint32_t digit)
{
    uint64_t carry = digit;

    for (int i = 0; i < N_LIMBS; i++) {
        carry += (uint64_t)value->limb[i] * factor;
        value->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return carry == 0;
}

/* Divides by a small divisor if there is no remainder. */
static bool wide_divide(wide *value, uint32_t divisor)
{
    wide quotient;
    uint64_t rest = 0;

    for (int i = N_LIMBS - 1; i >= 0; i--) {
        rest = rest << 32 | value->limb[i];
        quotient.limb[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    if (rest == 0)
        *value = quotient;
    return rest == 0;
}

static bool wide_to_int64(const wide *value, int64_t *out)
{
    for (int i = 2; i < N_LIMBS; i++)
        if (value->limb[i])
            return false;
    uint64_t low = (uint64_t)value->limb[1] << 32 | value->limb[0];
    *out = (int64_t)low;
    return low <= INT64_MAX;
}

/* Multiplies by base^power; false when the result does not fit. */
static bool scale_up(int64_t *value, int64_t base, long power)
{
    for (; power > 0; power--)
        if (__builtin_mul_overflow(*value, base, value))
            return false;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits with a point: "12.340" gives m = 1234 and exponent -2 (without zeros at the end). */
static bool parse_digits(const char **text, wide *m, long *exponent)
{
    const char *p = *text;
    bool point = false, any = false, nonzero = false;
    long zeros = 0; /* pending zeros: counted only when another digit follows */

    *m = (wide){{0}};
    *exponent = 0;
    for (; is_digit(*p) || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        any = true;
        *exponent -= point;
        if (*p == '0') {
            zeros++;
            continue;
        }
        for (; zeros > 0; zeros--)
            if (!wide_push(m, 10, 0))
                return false;
        if (!wide_push(m, 10, (uint32_t)(*p - '0')))
            return false;
        nonzero = true;
    }
    *exponent = nonzero ? *exponent + zeros : 0;
    *text = p;
    return any;
}

/* Adds an exponent such as "e-6" to *exponent; the sum saturates far beyond any valid number. */
static bool parse_exponent(const char **text, long *exponent)
{
    const char *p = *text;
    long value = 0;

    if (*p != 'e' && *p != 'E')
        return true;
    p++;
    bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (!is_digit(*p))
        return false;
    for (; is_digit(*p); p++)
        if (value < 1000000)
            value = value * 10 + (*p - '0');
    *exponent += negative ? -value : value;
    *text = p;
    return true;
}

/* A decimal number without a sign. */
static bool parse_decimal(const char **text, pnr_rational *out)
{
    wide m;
    long exponent;

    if (!parse_digits(text, &m, &exponent) || !parse_exponent(text, &exponent))
        return false;
    *out = (pnr_rational){0, 1};
    if (wide_to_int64(&m, &out->num) && out->num == 0)
        return true;

    long twos = exponent, fives = exponent;
    while (twos < 0 && wide_divide(&m, 2))
        twos++;
    while (fives < 0 && wide_divide(&m, 5))
        fives++;
    return wide_to_int64(&m, &out->num) && scale_up(&out->num, 2, twos) &&
           scale_up(&out->num, 5, fives) && scale_up(&out->den, 2, -twos) &&
           scale_up(&out->den, 5, -fives);
}

int pnr_rational_parse(const char *text, pnr_rational *out)
{
    const char *p = text;
    bool negative = *p == '-';
    pnr_rational value, divisor;

    if (*p == '-' || *p == '+')
        p++;
    if (!parse_decimal(&p, &value))
        return PNR_ECONFIG;
    if (*p == '/') {
        p++;
        if (!parse_decimal(&p, &divisor) || pnr_rational_div(value, divisor, &value) != PNR_OK)
            return PNR_ECONFIG;
    }
    if (*p)
        return PNR_ECONFIG;
    if (negative)
        value.num = -value.num;
    *out = value;
    return PNR_OK;
}

double pnr_rational_double(pnr_rational r)
{
    return r.den == 0 ? 0 : (double)((long double)r.num / (long double)r.den);
}

static u128 magnitude(i128 value)
{
    return value < 0 ? -(u128)value : (u128)value;
}

/* num / den in lowest terms, den != 0. */
static int reduce(i128 num, i128 den, pnr_rational *out)
{
    u128 n = magnitude(num), d = magnitude(den), a = n, b = d;

    while (b) {
        u128 rest = a % b;
        a = b;
        b = rest;
    }
    n /= a;
    d /= a;
    if (n > INT64_MAX || d > INT64_MAX)
        return PNR_EDATA;
    *out = (pnr_rational){(num < 0) != (den < 0) ? -(int64_t)n : (int64_t)n, (int64_t)d};
    return PNR_OK;
}

int pnr_rational_mul(pnr_rational a, pnr_rational b, pnr_rational *out)
{
    if (a.den == 0 || b.den == 0)
        return PNR_EDATA;
    return reduce((i128)a.num * b.num, (i128)a.den * b.den, out);
}

int pnr_rational_div(pnr_rational a, pnr_rational b, pnr_rational *out)
{
    if (a.den == 0 || b.den == 0 || b.num == 0)
        return PNR_EDATA;
    return reduce((i128)a.num * b.den, (i128)a.den * b.num, out);
}

uint64_t pnr_rational_phase(pnr_rational r, uint64_t n)
{
    if (r.den == 0)
        return 0;
    /* frac(num n / den) = ((num mod den) n mod den) / den; a result of 2^64 is a whole turn: 0. */
    int64_t num = r.num % r.den;
    uint64_t den = (uint64_t)r.den, step = (uint64_t)(num < 0 ? num + r.den : num);
    u128 rest = (u128)step * n % den;

    return (uint64_t)(((rest << 64) + den / 2) / den);
}

int64_t pnr_rational_time_ns(pnr_rational rate, uint64_t n)
{
    const u128 ns_per_s = 1000000000;

    if (rate.den == 0 || rate.num <= 0)
        return 0;
    u128 ticks = (u128)n * (u128)rate.den, num = (u128)rate.num;
    u128 seconds = ticks / num, rest = ticks % num;
    if (seconds > INT64_MAX / ns_per_s)
        return INT64_MAX;
    u128 time_ns = seconds * ns_per_s + rest * ns_per_s / num;
    return time_ns > INT64_MAX ? INT64_MAX : (int64_t)time_ns;
}

char *pnr_rational_format(pnr_rational r, char *out)
{
    if (r.den > 1)
        snprintf(out, 48, "%" PRId64 "/%" PRId64, r.num, r.den);
    else
        snprintf(out, 48, "%" PRId64, r.num);
    return out;
}
