/* SPDX-License-Identifier: MIT */
/* Builds text of any length from numbers, JSON strings and base64. */
#include "tools/view/buffer.h"

#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns space for n bytes at the end of the text. NULL: an allocation has failed. */
static char *room_for(view_buffer *b, size_t n)
{
    if (b->is_failed)
        return NULL;
    if (b->data == NULL || b->capacity - b->n < n) {
        const size_t capacity = 2 * b->capacity + n + 1024;
        char *data = realloc(b->data, capacity);

        if (data == NULL) {
            b->is_failed = true;
            return NULL;
        }
        b->data = data;
        b->capacity = capacity;
    }
    return b->data + b->n;
}

void view_add(view_buffer *b, const char *text)
{
    const size_t n = strlen(text);
    char *at = room_for(b, n);

    if (at == NULL)
        return;
    memcpy(at, text, n);
    b->n += n;
}

void view_addf(view_buffer *b, const char *format, ...)
{
    va_list list;
    char *at;
    int n;

    va_start(list, format);
    n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if ((at = room_for(b, (size_t)n + 1)) == NULL)
        return;
    va_start(list, format);
    vsnprintf(at, (size_t)n + 1, format, list);
    va_end(list);
    b->n += (size_t)n;
}

void view_add_number(view_buffer *b, double value, int digits)
{
    if (isfinite(value))
        view_addf(b, "%.*g", digits, value);
    else
        view_add(b, "null");
}

void view_add_string(view_buffer *b, const char *string)
{
    const size_t size = 6 * strlen(string) + 3; /* each byte of the string needs at most six
                                                 * bytes */
    char *at = room_for(b, size);
    pnr_text text;

    if (at == NULL)
        return;
    pnr_text_begin(&text, at, size);
    pnr_text_string(&text, string);
    b->n += pnr_text_end(&text);
}

void view_add_base64(view_buffer *b, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *at = room_for(b, (n + 2) / 3 * 4);

    if (at == NULL)
        return;
    for (size_t i = 0; i < n; i += 3) {
        const unsigned left = n - i > 2 ? 3 : (unsigned)(n - i);
        const unsigned group = (unsigned)bytes[i] << 16 |
                               (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                               (left > 2 ? bytes[i + 2] : 0);

        *at++ = digits[group >> 18];
        *at++ = digits[group >> 12 & 63];
        *at++ = left > 1 ? digits[group >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[group & 63] : '=';
    }
    b->n += (n + 2) / 3 * 4;
}
