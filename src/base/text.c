/* SPDX-License-Identifier: MIT */
/* Writes text, JSON strings and numbers to fixed memory, without allocation or locale. */
#include "base/text.h"

#include <math.h>
#include <string.h>

enum { DIGITS = 12, DIGIT_MEMORY = 2 * DIGITS, PLAIN_BELOW = 12, PLAIN_FROM = -5 };

/* 10^0 .. 10^22, which double precision represents exactly. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MAX_POWER = sizeof powers / sizeof powers[0] - 1 };

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

void pnr_text_u64(pnr_text *text, uint64_t value)
{
    char digits[20];
    size_t n = 0;

    do {
        digits[sizeof digits - ++n] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    pnr_text_bytes(text, digits + sizeof digits - n, n);
}

void pnr_text_i64(pnr_text *text, int64_t value)
{
    if (value < 0)
        pnr_text_add(text, "-");
    pnr_text_u64(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Returns value * 10^power. Every factor is exact, so each product or quotient adds an error of at
 * most half a unit in the last place. */
static double scale_by_power(double value, int power)
{
    for (; power > MAX_POWER; power -= MAX_POWER)
        value *= powers[MAX_POWER];
    for (; power < -MAX_POWER; power += MAX_POWER)
        value /= powers[MAX_POWER];
    return power >= 0 ? value * powers[power] : value / powers[-power];
}

/* Rounds 0 <= x < 2^52 to an integer, half to even: the sum x + 2^52 has no fraction bits. */
static double round_integer(double x)
{
    return (x + 0x1p52) - 0x1p52;
}

/* Returns floor(log10(x)) or one less, for x > 0. */
static int log10_below(double x)
{
    uint64_t bits;
    int binary;

    memcpy(&bits, &x, sizeof bits);
    binary = (int)(bits >> 52) - 1022;
    if (binary == -1022) /* x is subnormal */
        frexp(x, &binary);
    /* 2^(binary-1) <= x; 78913 / 2^18 approximates log10(2) well enough for all exponents */
    return (binary - 1) * 78913 >> 18;
}

/* Returns the mantissa of magnitude = mantissa * 10^(exponent - 11), 10^11 <= mantissa < 10^12. */
static uint64_t split_decimal(double magnitude, int *exponent)
{
    int e = log10_below(magnitude);
    double mantissa = round_integer(scale_by_power(magnitude, DIGITS - 1 - e));

    if (mantissa >= powers[DIGITS])
        mantissa = round_integer(scale_by_power(magnitude, DIGITS - 1 - ++e));
    *exponent = e;
    return (uint64_t)mantissa;
}

/* Writes the DIGITS digits of the mantissa, two at a time. Returns the number of digits without the
 * zeros at the end, at least 1. */
static size_t write_digits(uint64_t mantissa, char *digits)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    uint32_t half[2] = {(uint32_t)(mantissa / 1000000), (uint32_t)(mantissa % 1000000)};
    size_t n = DIGITS;

    for (size_t h = 0; h < 2; h++)
        for (size_t at = DIGITS / 2; at > 0; at -= 2, half[h] /= 100)
            memcpy(digits + h * DIGITS / 2 + at - 2, pairs + half[h] % 100 * 2, 2);
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return n;
}

/* Writes the digits in a form such as 1.234e-7. Returns the length. */
static size_t write_scientific(char *out, const char *digits, size_t n, int exponent)
{
    size_t length = 0;
    unsigned size = (unsigned)(exponent < 0 ? -exponent : exponent);

    out[length++] = digits[0];
    if (n > 1) {
        out[length++] = '.';
        memcpy(out + length, digits + 1, n - 1);
        length += n - 1;
    }
    out[length++] = 'e';
    if (exponent < 0)
        out[length++] = '-';
    for (unsigned place = size >= 100 ? 100 : size >= 10 ? 10 : 1; place > 0; place /= 10)
        out[length++] = (char)('0' + size / place % 10);
    return length;
}

/* Writes the digits as a decimal number such as 0.00123 or 1230, -5 <= exponent < 12. Adds zeros
 * before or after the digits if necessary. Returns the length. All copies have a constant size,
 * because a call of memcpy takes longer than a copy of a few unused bytes. */
static size_t write_plain(char *out, const char digits[DIGIT_MEMORY], size_t n, int exponent)
{
    if (exponent < 0) {
        const size_t before = (size_t)-exponent + 1; /* number of characters before the digits: "0."
                                                      * and zeros */

        memcpy(out, "0.000000", 8);
        memcpy(out + before, digits, DIGITS);
        return before + n;
    }

    const size_t before = (size_t)exponent + 1; /* digits before the point */

    memcpy(out, digits, DIGITS);
    if (before >= n) /* the digits after the first n are zeros */
        return before;
    out[before] = '.';
    memcpy(out + before + 1, digits + before, DIGITS);
    return n + 1;
}

void pnr_text_double(pnr_text *text, double value, const char *missing)
{
    char digits[DIGIT_MEMORY] = "", out[PNR_NUMBER_LEN];
    size_t n, length = 0;
    int exponent;

    if (!isfinite(value)) {
        pnr_text_add(text, missing);
        return;
    }
    if (value == 0) {
        pnr_text_add(text, "0");
        return;
    }
    n = write_digits(split_decimal(fabs(value), &exponent), digits);
    if (value < 0)
        out[length++] = '-';
    if (exponent >= PLAIN_BELOW || exponent < PLAIN_FROM)
        length += write_scientific(out + length, digits, n, exponent);
    else
        length += write_plain(out + length, digits, n, exponent);
    pnr_text_bytes(text, out, length);
}

size_t pnr_text_character(const char *at)
{
    static const struct {
        unsigned char first, last, second_first, second_last, n;
    } forms[] = {
        {0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    const unsigned char *s = (const unsigned char *)at;
    size_t form = 0;

    while (form < sizeof forms / sizeof *forms && s[0] > forms[form].last)
        form++;
    if (form == sizeof forms / sizeof *forms || s[0] < forms[form].first)
        return 0;
    for (size_t i = 1; i < forms[form].n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if (forms[form].n > 1 && (s[1] < forms[form].second_first || s[1] > forms[form].second_last))
        return 0;
    return forms[form].n;
}

/* Returns the length in bytes of the control character at s; 0: there is none. n: readable bytes at
 * s, n > 0. */
static size_t control_length(const unsigned char *s, size_t n)
{
    if (s[0] < 0x20 || s[0] == 0x7f || (s[0] >= 0x80 && s[0] <= 0x9f))
        return 1;
    return s[0] == 0xc2 && n > 1 && s[1] >= 0x80 && s[1] <= 0x9f ? 2 : 0;
}

/* Returns the length in bytes of the character at s. n: readable bytes at s, n > 0. A byte that is
 * not UTF-8 is a character of its own. */
static size_t character_length(const unsigned char *s, size_t n)
{
    char next[4] = {0};
    size_t length;

    memcpy(next, s, n < sizeof next ? n : sizeof next);
    length = pnr_text_character(next);
    return length > 0 ? length : 1;
}

const char *pnr_text_find_control(const char *bytes, size_t n)
{
    const unsigned char *s = (const unsigned char *)bytes;

    for (size_t i = 0; i < n; i += character_length(s + i, n - i))
        if (control_length(s + i, n - i) > 0)
            return bytes + i;
    return NULL;
}

void pnr_text_hide_controls(char *string)
{
    const char *end = string + strlen(string);

    for (const char *found = string;
         (found = pnr_text_find_control(found, (size_t)(end - found)));) {
        char *at = string + (found - string);
        const size_t n = control_length((const unsigned char *)found, (size_t)(end - found));

        memset(at, *at == '\n' || *at == '\r' || *at == '\t' ? ' ' : '?', n);
    }
}

/* Returns the number of ASCII bytes at s that need no escape in JSON. */
static size_t plain_length(const unsigned char *s)
{
    size_t n = 0;

    while (s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
        n++;
    return n;
}

void pnr_text_string(pnr_text *text, const char *string)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *s = (const unsigned char *)string;

    pnr_text_add(text, "\"");
    for (;;) {
        const size_t plain = plain_length(s);

        pnr_text_bytes(text, (const char *)s, plain);
        s += plain;
        if (*s == '\0')
            break;

        const size_t n = pnr_text_character((const char *)s);

        if (*s == '"' || *s == '\\') {
            pnr_text_bytes(text, (const char[]){'\\', (char)*s}, 2);
        } else if (n > 0 && control_length(s, n) > 0) {
            const unsigned char code = s[n - 1];

            pnr_text_bytes(text,
                           (const char[]){'\\', 'u', '0', '0', hex[code >> 4], hex[code & 15]}, 6);
        } else if (n == 0) {
            pnr_text_add(text, "\\ufffd");
        } else {
            pnr_text_bytes(text, (const char *)s, n);
        }
        s += n > 0 ? n : 1;
    }
    pnr_text_add(text, "\"");
}
