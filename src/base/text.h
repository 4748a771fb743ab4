/* SPDX-License-Identifier: MIT */
/* Writes text, JSON strings and numbers to fixed memory, without allocation or locale. */
#ifndef PNR_TEXT_H
#define PNR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PNR_NUMBER_LEN = 32 }; /* bytes of the longest number with the NUL */

/* A text that is being written. The caller owns the memory. A full text ignores everything that is
 * added later. */
typedef struct pnr_text {
    char *at;        /* address of the next byte */
    const char *end; /* last byte of the memory; it is reserved for the NUL of pnr_text_end */
    char *start;
    bool full;
} pnr_text;

void pnr_text_begin(pnr_text *text, char *memory, size_t capacity);
/* Adds the NUL. Returns the length without the NUL, or 0 if some of the text did not fit. */
size_t pnr_text_end(pnr_text *text);

/* Adds the bytes unchanged. Inline, so that the compiler knows the size of most copies. */
static inline void pnr_text_bytes(pnr_text *text, const char *bytes, size_t n)
{
    if (text->full || (size_t)(text->end - text->at) < n) {
        text->full = true;
        return;
    }
    memcpy(text->at, bytes, n);
    text->at += n;
}

/* Adds the bytes of the string without its NUL. */
static inline void pnr_text_add(pnr_text *text, const char *string)
{
    pnr_text_bytes(text, string, strlen(string));
}

void pnr_text_u64(pnr_text *text, uint64_t value);
void pnr_text_i64(pnr_text *text, int64_t value);
/* Adds a number with at most 12 significant digits. A magnitude below 1e-5, or from 1e12 on, has an
 * exponent, as 1.234e-7. The error is below 0.51 units of the last digit. For a NaN or an infinity
 * adds `missing` ("null" in JSON, "" in CSV). */
void pnr_text_double(pnr_text *text, double value, const char *missing);
/* Adds a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD; control characters
 * are escaped. */
void pnr_text_string(pnr_text *text, const char *string);

/* Returns the number of bytes of the UTF-8 character (RFC 3629) at `at`; 1 for a NUL; 0: it is
 * malformed. */
size_t pnr_text_character(const char *at);

/* Control characters, which a terminal may obey: U+0000 to U+001F, U+007F, U+0080 to U+009F, and
 * the bytes 0x80 to 0x9f that are not in a UTF-8 character. */
/* Returns the first control character in n bytes, or NULL if there is none. */
const char *pnr_text_find_control(const char *bytes, size_t n);
/* Replaces control characters in place: line breaks and tabs by spaces, all others by '?'. */
void pnr_text_hide_controls(char *string);

#endif
