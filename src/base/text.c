/* SPDX-License-Identifier: MIT */
/* A text that grows in fixed memory: JSON strings and numbers, without allocation or locale. */
#include "base/text.h"

#include <math.h>
#include <string.h>

enum { DIGITS = 12, PLAIN_BELOW = 12, PLAIN_FROM = -5 };

/* 10^0 .. 10^22: exact in double precision. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MAX_POWER = sizeof powers / sizeof powers[0] - 1 };

static void add(pnr_text *text, const char *bytes, size_t n)
{
    if (text->full || (size_t)(text->end - text->at) < n) {
        text->full = true;
        return;
    }
    memcpy(text->at, bytes, n);
    text->at += n;
}

void pnr_text_begin(pnr_text *text, char *memory, size_t capacity)
{
    *text = (pnr_text){.at = memory, .start = memory, .end = memory};
    if (capacity == 0)
        text->full = true;
    else
        text->end = memory + capacity - 1;
}

size_t pnr_text_end(pnr_text *text)
{
    if (text->full)
        return 0;
    *text->at = '\0';
    return (size_t)(text->at - text->start);
}

void pnr_text_add(pnr_text *text, const char *bytes)
{
    add(text, bytes, strlen(bytes));
}

void pnr_text_u64(pnr_text *text, uint64_t value)
{
    char digits[20];
    size_t n = 0;

    do {
        digits[sizeof digits - ++n] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    add(text, digits + sizeof digits - n, n);
}

void pnr_text_i64(pnr_text *text, int64_t value)
{
    if (value < 0)
        pnr_text_add(text, "-");
    pnr_text_u64(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* value * 10^power: every factor is exact, so each costs half a unit in the last place. */
static double scale(double value, int power)
{
    for (; power > MAX_POWER; power -= MAX_POWER)
        value *= powers[MAX_POWER];
    for (; power < -MAX_POWER; power += MAX_POWER)
        value /= powers[MAX_POWER];
    return power >= 0 ? value * powers[power] : value / powers[-power];
}

/* magnitude = mantissa * 10^(exponent - 11), mantissa in [10^11, 10^12). */
static uint64_t decimal(double magnitude, int *exponent)
{
    int binary, e;
    double mantissa;

    frexp(magnitude, &binary);
    /* 2^(binary-1) <= magnitude: e is right, or one too small. */
    e = (int)floor((binary - 1) * 0.30102999566398120);
    mantissa = nearbyint(scale(magnitude, DIGITS - 1 - e));
    if (mantissa >= powers[DIGITS])
        mantissa = nearbyint(scale(magnitude, DIGITS - 1 - ++e));
    *exponent = e;
    return (uint64_t)mantissa;
}

void pnr_text_double(pnr_text *text, double value, const char *missing)
{
    char digits[DIGITS], out[PNR_NUMBER_LEN];
    size_t n = DIGITS, length = 0;
    uint64_t mantissa;
    int exponent, i;

    if (!isfinite(value)) {
        pnr_text_add(text, missing);
        return;
    }
    if (value == 0) {
        pnr_text_add(text, "0");
        return;
    }
    mantissa = decimal(fabs(value), &exponent);
    for (i = DIGITS - 1; i >= 0; i--, mantissa /= 10)
        digits[i] = (char)('0' + mantissa % 10);
    while (n > 1 && digits[n - 1] == '0')
        n--;

    if (value < 0)
        out[length++] = '-';
    if (exponent >= PLAIN_BELOW || exponent < PLAIN_FROM) {
        out[length++] = digits[0];
        if (n > 1) {
            out[length++] = '.';
            memcpy(out + length, digits + 1, n - 1);
            length += n - 1;
        }
        out[length++] = 'e';
        add(text, out, length);
        pnr_text_i64(text, exponent);
        return;
    }
    if (exponent < 0) {
        out[length++] = '0';
        out[length++] = '.';
        for (i = -1; i > exponent; i--)
            out[length++] = '0';
    }
    for (i = 0; (size_t)i < n || i <= exponent; i++) {
        if (exponent >= 0 && i == exponent + 1)
            out[length++] = '.';
        out[length++] = (size_t)i < n ? digits[i] : '0';
    }
    add(text, out, length);
}

/* Bytes of the well-formed UTF-8 sequence at s (RFC 3629), 0 when there is none. */
static size_t utf8_length(const unsigned char *s)
{
    const size_t n = s[0] < 0x80   ? 1
                     : s[0] < 0xc2 ? 0
                     : s[0] < 0xe0 ? 2
                     : s[0] < 0xf0 ? 3
                     : s[0] < 0xf5 ? 4
                                   : 0;
    size_t i;

    for (i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

void pnr_text_string(pnr_text *text, const char *string)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *s = (const unsigned char *)string;

    pnr_text_add(text, "\"");
    while (*s) {
        const size_t n = utf8_length(s);

        if (*s == '"' || *s == '\\') {
            add(text, (const char[]){'\\', (char)*s}, 2);
        } else if (*s < 0x20 || *s == 0x7f) {
            add(text, (const char[]){'\\', 'u', '0', '0', hex[*s >> 4], hex[*s & 15]}, 6);
        } else if (n == 0) {
            pnr_text_add(text, "\\ufffd");
        } else {
            add(text, (const char *)s, n);
        }
        s += n > 0 ? n : 1;
    }
    pnr_text_add(text, "\"");
}
