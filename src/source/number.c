/* SPDX-License-Identifier: MIT */
/* The types of numbers, and their conversion in place. */
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

/* The first type of a format needs no conversion. */
const pnr_number_form *pnr_number_form_of(pnr_format format)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].complex_format == format || forms[i].real_format == format)
            return &forms[i];
    return NULL;
}

static void convert_2(const pnr_number *c, unsigned char *data, size_t n)
{
    const uint16_t flip = c->is_unsigned ? 0x8000 : 0;

    for (size_t i = 0; i < n; i++) {
        uint16_t v;

        memcpy(&v, data + 2 * i, sizeof v);
        v = (uint16_t)((c->is_big_endian ? __builtin_bswap16(v) : v) ^ flip);
        memcpy(data + 2 * i, &v, sizeof v);
    }
}

static void convert_4(const pnr_number *c, unsigned char *data, size_t n)
{
    const uint32_t flip = c->is_unsigned ? UINT32_C(0x80000000) : 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t v;

        memcpy(&v, data + 4 * i, sizeof v);
        v = (c->is_big_endian ? __builtin_bswap32(v) : v) ^ flip;
        if (c->is_wide) {
            int32_t whole;
            float value;

            memcpy(&whole, &v, sizeof whole);
            value = (float)whole * 0x1p-31F;
            memcpy(&v, &value, sizeof v);
        }
        memcpy(data + 4 * i, &v, sizeof v);
    }
}

static void convert_8(const pnr_number *c, unsigned char *data, size_t n)
{
    const uint64_t flip = c->is_unsigned ? UINT64_C(1) << 63 : 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t v;

        memcpy(&v, data + 8 * i, sizeof v);
        v = (c->is_big_endian ? __builtin_bswap64(v) : v) ^ flip;
        if (c->is_wide) {
            int64_t whole;
            double value;

            memcpy(&whole, &v, sizeof whole);
            value = (double)whole * 0x1p-63;
            memcpy(&v, &value, sizeof v);
        }
        memcpy(data + 8 * i, &v, sizeof v);
    }
}

void pnr_number_convert(const pnr_number *number, void *data, size_t n)
{
    if (number->bytes == 1 || (!number->is_big_endian && !number->is_unsigned && !number->is_wide))
        return;
    if (number->bytes == 2)
        convert_2(number, data, n);
    else if (number->bytes == 4)
        convert_4(number, data, n);
    else
        convert_8(number, data, n);
}
