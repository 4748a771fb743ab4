/* SPDX-License-Identifier: MIT */
/* Exact rates. Reads decimal text, and computes products, phases and times in 128-bit integers. */
#include "base/rational.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __int128 i128;
typedef unsigned __int128 u128;

static u128 magnitude(i128 value)
{
    return value < 0 ? -(u128)value : (u128)value;
}

/* Writes num / den in lowest terms; den != 0. PNR_EDATA: 64 bits cannot hold the result. */
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

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads an exponent such as "e-6". Limits its magnitude to less than 10^7, far beyond any valid
 * exponent. */
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
    *exponent = negative ? -value : value;
    *text = p;
    return true;
}

/* The digits of a decimal number. Digit i has the weight 10^(n_whole - 1 - i). */
typedef struct decimal {
    const char *first, *point; /* point: the decimal point, or the end of the digits */
    long n_digits, n_whole;
} decimal;

/* Returns digit i, or 0 if i lies outside the digits. */
static int digit_at(const decimal *d, long i)
{
    return i < 0 || i >= d->n_digits ? 0 : d->first[i + (d->first + i >= d->point)] - '0';
}

/* Reads a decimal number without a sign. */
static bool parse_digits(const char **text, decimal *d)
{
    const char *p = *text;
    long exponent = 0;

    d->first = p;
    p += strspn(p, "0123456789");
    d->point = p;
    d->n_whole = d->n_digits = p - d->first;
    if (*p == '.') {
        const size_t n = strspn(p + 1, "0123456789");

        d->n_digits += (long)n;
        p += n + 1;
    }
    *text = p;
    if (d->n_digits == 0 || !parse_exponent(text, &exponent))
        return false;
    d->n_whole += exponent;
    return true;
}

/* Reads a decimal number exactly. Builds the whole part from its first digit on. Builds the
 * fraction in *out from its last digit on: *out = (digit + *out) / 10. Each denominator of *out
 * divides the denominator of the number, so *out always fits 64 bits if the number does. */
static bool parse_decimal(const char **text, pnr_rational *out)
{
    decimal d;
    int64_t whole = 0;

    *out = (pnr_rational){0, 1};
    if (!parse_digits(text, &d))
        return false;
    for (long i = 0; i < d.n_whole; i++)
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, digit_at(&d, i), &whole))
            return false;
    for (long i = d.n_digits; i-- > d.n_whole;)
        if (reduce((i128)digit_at(&d, i) * out->den + out->num, (i128)out->den * 10, out) != PNR_OK)
            return false;
    return reduce((i128)whole * out->den + out->num, out->den, out) == PNR_OK;
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

int pnr_rational_from_double(double value, pnr_rational *out)
{
    char text[40];

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return pnr_rational_parse(text, out);
}

double pnr_rational_double(pnr_rational r)
{
    return r.den == 0 ? 0 : (double)((long double)r.num / (long double)r.den);
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
    /* frac(num n / den) = (((num mod den) n) mod den) / den; a result of 2^64 wraps to 0. */
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
