/* SPDX-License-Identifier: MIT */
/* Converts the numbers of a sample (I and Q, or a real value). Their type in a file may be a type
 * that no format in memory has. */
#ifndef PNR_NUMBER_H
#define PNR_NUMBER_H

#include "base/format.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct pnr_number {
    unsigned bytes; /* 1, 2, 4 or 8 */
    bool is_big_endian;
    bool is_unsigned; /* unsigned integer; with 2 bytes or more, the middle of its range becomes
                       * 0 */
    bool is_wide;     /* integer of 4 or 8 bytes; it becomes a float of the same size with full
                       * scale 1 */
} pnr_number;

/* A type of number, without byte order. */
typedef struct pnr_number_form {
    const char *name; /* f32, f64, i8, i16, i32, i64, u8, u16, u32 or u64 */
    pnr_number number;
    pnr_format complex_format, real_format; /* formats of samples in memory */
} pnr_number_form;

/* Returns the type with this name. length: length of the name, which needs no final zero. NULL: the
 * name is not known. */
const pnr_number_form *pnr_number_form_find(const char *name, size_t length);

/* Returns the type of the numbers in samples of this format. Never NULL for a format of samples in
 * memory. */
const pnr_number_form *pnr_number_form_of(pnr_format format);

/* Converts n numbers in place from their type in the file to their type in memory. */
void pnr_number_convert(const pnr_number *number, void *data, size_t n);

#endif
