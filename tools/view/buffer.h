/* SPDX-License-Identifier: MIT */
/* Builds text of any length from numbers, JSON strings and base64. */
#ifndef VIEW_BUFFER_H
#define VIEW_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A zeroed buffer is empty. free(data) frees the memory. After a failed allocation, the buffer
 * ignores all further text. */
typedef struct view_buffer {
    char *data;
    size_t n, capacity;
    bool is_failed;
} view_buffer;

void view_add(view_buffer *buffer, const char *text);
void view_addf(view_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a number with `digits` significant digits, or null for NaN and infinities. */
void view_add_number(view_buffer *buffer, double value, int digits);
void view_add_string(view_buffer *buffer, const char *string); /* a JSON string with its quotes */
void view_add_base64(view_buffer *buffer, const uint8_t *bytes, size_t n); /* without quotes */

#endif
