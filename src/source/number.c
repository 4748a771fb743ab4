/* SPDX-License-Identifier: MIT */
/* The table of number types, and the conversion of numbers in place. */
#include "source/number.h"

#include <stdint.h>
#include <string.h>

static const pnr_number_form forms[] = {
    {"f32", {.bytes = 4}, PNR_FORMAT_CF32, PNR_FORMAT_F32},
    {"f64", {.bytes = 8}, PNR_FORMAT_CF64, PNR_FORMAT_F64},
    {"i64", {.bytes = 8, .is_wide = true}, PNR_FORMAT_CF64, PNR_FORMAT_F64},
    {"u64", {.bytes = 8, .is_wide = true, .is_unsigned = true}, PNR_FORMAT_CF64, PNR_FORMAT_F64},
    {"i32", {.bytes = 4, .is_wide = true}, PNR_FORMAT_CF32, PNR_FORMAT_F32},
    {"u32", {.bytes = 4, .is_wide = true, .is_unsigned = true}, PNR_FORMAT_CF32, PNR_FORMAT_F32},
    {"i16", {.bytes = 2}, PNR_FORMAT_CI16, PNR_FORMAT_I16},
    {"u16", {.bytes = 2, .is_unsigned = true}, PNR_FORMAT_CI16, PNR_FORMAT_I16},
    {"i8", {.bytes = 1}, PNR_FORMAT_CI8, PNR_FORMAT_I8},
    {"u8", {.bytes = 1, .is_unsigned = true}, PNR_FORMAT_CU8, PNR_FORMAT_U8},
};

const pnr_number_form *pnr_number_form_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strlen(forms[i].name) == length && strncmp(name, forms[i].name, length) == 0)
            return &forms[i];
    return NULL;
}

/* The first entry of a format in the table is the type that needs no conversion. */
const pnr_number_form *pnr_number_form_of(pnr_format format)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].complex_format == format || forms[i].real_format == format)
            return &forms[i];
    return NULL;
}

/* The callers pass `bytes` as a constant, so that the compiler makes a separate loop for each
 * width. The loop moves each number to the highest bytes of 64 bits. There, numbers of all widths
 * have the same sign bit and the same full scale. */
static inline void convert(const pnr_number *c, size_t bytes, unsigned char *data, size_t n)
{
    const uint64_t flip = c->is_unsigned ? UINT64_C(1) << 63 : 0;
    const size_t gap = sizeof(uint64_t) - bytes;

    for (size_t i = 0; i < n; i++, data += bytes) {
        uint64_t v = 0;

        memcpy((unsigned char *)&v + gap, data, bytes);
        v = (c->is_big_endian ? __builtin_bswap64(v) << 8 * gap : v) ^ flip;
        if (!c->is_wide) {
            memcpy(data, (unsigned char *)&v + gap, bytes);
            continue;
        }

        int64_t whole;

        memcpy(&whole, &v, sizeof whole);
        if (bytes == sizeof(float))
            memcpy(data, &(float){(float)((double)whole * 0x1p-63)}, bytes);
        else
            memcpy(data, &(double){(double)whole * 0x1p-63}, bytes);
    }
}

void pnr_number_convert(const pnr_number *number, void *data, size_t n)
{
    if (number->bytes == 1 || (!number->is_big_endian && !number->is_unsigned && !number->is_wide))
        return;
    if (number->bytes == 2)
        convert(number, 2, data, n);
    else if (number->bytes == 4)
        convert(number, 4, data, n);
    else
        convert(number, 8, data, n);
}
