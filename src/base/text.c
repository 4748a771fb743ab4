/* SPDX-License-Identifier: MIT */
/* Writes text, JSON strings and numbers to fixed memory, without allocation or locale. */
#include "base/text.h"

#include <math.h>
#include <string.h>

enum { DIGITS = 12, PLAIN_BELOW = 12, PLAIN_FROM = -5 };

/* 10^0 .. 10^22: exact in double precision. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MAX_POWER = sizeof powers / sizeof powers[0] - 1 };

static void add_bytes(pnr_text *text, const char *bytes, size_t n)
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
    add_bytes(text, bytes, strlen(bytes));
}

void pnr_text_u64(pnr_text *text, uint64_t value)
{
    char digits[20];
    size_t n = 0;

    do {
        digits[sizeof digits - ++n] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    add_bytes(text, digits + sizeof digits - n, n);
}

void pnr_text_i64(pnr_text *text, int64_t value)
{
    if (value < 0)
        pnr_text_add(text, "-");
    pnr_text_u64(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Returns value * 10^power. Every factor is exact, so each product adds an error of at most half a
 * unit in the last place. */
static double scale_by_power(double value, int power)
{
    for (; power > MAX_POWER; power -= MAX_POWER)
        value *= powers[MAX_POWER];
    for (; power < -MAX_POWER; power += MAX_POWER)
        value /= powers[MAX_POWER];
    return power >= 0 ? value * powers[power] : value / powers[-power];
}

/* Returns the mantissa of magnitude = mantissa * 10^(exponent - 11). 10^11 <= mantissa < 10^12. */
static uint64_t split_decimal(double magnitude, int *exponent)
{
    int binary, e;
    double mantissa;

    frexp(magnitude, &binary);
    /* 2^(binary-1) <= magnitude, so e is right or one too small. */
    e = (int)floor((binary - 1) * 0.30102999566398120);
    mantissa = nearbyint(scale_by_power(magnitude, DIGITS - 1 - e));
    if (mantissa >= powers[DIGITS])
        mantissa = nearbyint(scale_by_power(magnitude, DIGITS - 1 - ++e));
    *exponent = e;
    return (uint64_t)mantissa;
}

/* Writes the digits in the form of 1.234e-7. */
static void add_scientific(pnr_text *text, const char *digits, size_t n, int exponent)
{
    add_bytes(text, digits, 1);
    if (n > 1) {
        add_bytes(text, ".", 1);
        add_bytes(text, digits + 1, n - 1);
    }
    add_bytes(text, "e", 1);
    pnr_text_i64(text, exponent);
}

/* Writes the digits with the point in its place, and zeros on either side where they are needed. */
static void add_plain(pnr_text *text, const char *digits, size_t n, int exponent)
{
    char out[PNR_NUMBER_LEN];
    size_t length = 0;

    for (int place = exponent < 0 ? 0 : exponent; place >= 0 || exponent - place < (int)n;
         place--) {
        const int i = exponent - place;

        if (place == -1)
            out[length++] = '.';
        out[length++] = i >= 0 && i < (int)n ? digits[i] : '0';
    }
    add_bytes(text, out, length);
}

void pnr_text_double(pnr_text *text, double value, const char *missing)
{
    char digits[DIGITS];
    size_t n = DIGITS;
    uint64_t mantissa;
    int exponent;

    if (!isfinite(value)) {
        pnr_text_add(text, missing);
        return;
    }
    if (value == 0) {
        pnr_text_add(text, "0");
        return;
    }
    mantissa = split_decimal(fabs(value), &exponent);
    for (int i = DIGITS - 1; i >= 0; i--, mantissa /= 10)
        digits[i] = (char)('0' + mantissa % 10);
    while (n > 1 && digits[n - 1] == '0')
        n--;

    if (value < 0)
        add_bytes(text, "-", 1);
    if (exponent >= PLAIN_BELOW || exponent < PLAIN_FROM)
        add_scientific(text, digits, n, exponent);
    else
        add_plain(text, digits, n, exponent);
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

/* Returns the length in bytes of the control character at s; 0: none. n: readable bytes at s, n >
 * 0. */
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

void pnr_text_string(pnr_text *text, const char *string)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *s = (const unsigned char *)string;

    pnr_text_add(text, "\"");
    while (*s) {
        const size_t n = pnr_text_character((const char *)s);

        if (*s == '"' || *s == '\\') {
            add_bytes(text, (const char[]){'\\', (char)*s}, 2);
        } else if (n > 0 && control_length(s, n) > 0) {
            const unsigned char code = s[n - 1];

            add_bytes(text, (const char[]){'\\', 'u', '0', '0', hex[code >> 4], hex[code & 15]}, 6);
        } else if (n == 0) {
            pnr_text_add(text, "\\ufffd");
        } else {
            add_bytes(text, (const char *)s, n);
        }
        s += n > 0 ? n : 1;
    }
    pnr_text_add(text, "\"");
}
