/* SPDX-License-Identifier: MIT */
/* Sample formats: the table, and the conversion of one sample. The tests compare every engine with
 * this conversion. */
#include "base/format.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/*
 * Each row is X(id, name, aliases, bytes, complex, float, scale, offset). The aliases are names of
 * UHD and SoapySDR (sc16, cs16), SigMF (ci16_le), GNU Radio (cfile), GNSS-SDR (ishort, gr_complex),
 * rtl_433 and inspectrum (cu8, uc8), ffmpeg (s16le) and numpy (complex64). A name with different
 * meanings in different programs is not listed, and is therefore refused: c8 and c16 (numpy counts
 * bytes, inspectrum counts the bits of I), complex16s (bits of I, or bits of I and Q together),
 * int8, uint8 and int16 (real in numpy, I and Q in many recorders), raw, iq, bin, dat.
 */
#define FORMATS(X)                                                                                 \
    X(CI4, "ci4", "", 1, true, false, 1.0 / 8, 0)                                                  \
    X(CI8, "ci8", "cs8 sc8 ibyte", 2, true, false, 1.0 / 128, 0)                                   \
    X(CU8, "cu8", "uc8", 2, true, false, 1.0 / 128, -127.5)                                        \
    X(CI16, "ci16", "cs16 sc16 ci16_le ishort", 4, true, false, 1.0 / 32768, 0)                    \
    X(CF32, "cf32", "fc32 cf32_le cfile gr_complex complex64", 8, true, true, 1, 0)                \
    X(CF64, "cf64", "fc64 cf64_le complex128", 16, true, true, 1, 0)                               \
    X(I8, "i8", "s8 ri8", 1, false, false, 1.0 / 128, 0)                                           \
    X(U8, "u8", "ru8", 1, false, false, 1.0 / 128, -127.5)                                         \
    X(I16, "i16", "s16 ri16_le s16le", 2, false, false, 1.0 / 32768, 0)                            \
    X(F32, "f32", "rf32_le f32le float32", 4, false, true, 1, 0)                                   \
    X(F64, "f64", "rf64_le f64le float64", 8, false, true, 1, 0)

static const pnr_format_info table[PNR_FORMAT_COUNT] = {
    [PNR_FORMAT_NONE] = {"none", "", 0, false, false, 1, 0},
#define ENTRY(id, name, aliases, bytes, complex, real, scale, offset)                              \
    [PNR_FORMAT_##id] = {name, aliases, bytes, complex, real, scale, offset},
    FORMATS(ENTRY)
#undef ENTRY
};

static const char names[] =
#define NAME(id, name, ...) " " name
    FORMATS(NAME)
#undef NAME
    ;

const pnr_format_info *pnr_format_get(pnr_format format)
{
    return &table[(unsigned)format < PNR_FORMAT_COUNT ? format : PNR_FORMAT_NONE];
}

pnr_format pnr_format_in_memory(pnr_format format)
{
    return format == PNR_FORMAT_CI4 ? PNR_FORMAT_CI8 : format;
}

const char *pnr_format_names(void)
{
    return names + 1;
}

static bool in_list(const char *list, const char *name, size_t length)
{
    while (*list) {
        size_t word = strcspn(list, " ");

        if (word == length && strncasecmp(list, name, length) == 0)
            return true;
        list += word;
        list += strspn(list, " ");
    }
    return false;
}

pnr_format pnr_format_find(const char *name)
{
    size_t length = strlen(name);

    for (int i = PNR_FORMAT_NONE + 1; length > 0 && i < PNR_FORMAT_COUNT; i++)
        if (in_list(table[i].name, name, length) || in_list(table[i].aliases, name, length))
            return (pnr_format)i;
    return PNR_FORMAT_NONE;
}

pnr_format pnr_format_of_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');

    return dot ? pnr_format_find(dot + 1) : PNR_FORMAT_NONE;
}

/* Reads n bytes at `raw` as one integer. The least significant byte comes first. */
static uint64_t get_bytes(const unsigned char *raw, unsigned n)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < n; i++)
        bits |= (uint64_t)raw[i] << 8 * i;
    return bits;
}

static void put_bytes(unsigned char *raw, unsigned n, uint64_t bits)
{
    for (unsigned i = 0; i < n; i++)
        raw[i] = (unsigned char)(bits >> 8 * i);
}

static double get_float(const unsigned char *raw, unsigned n)
{
    uint64_t bits = get_bytes(raw, n);

    if (n == sizeof(double)) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    uint32_t bits32 = (uint32_t)bits;
    float value;
    memcpy(&value, &bits32, sizeof value);
    return (double)value;
}

/* Returns the number of bits of I, or of Q, in one sample. */
static unsigned bits_of(const pnr_format_info *info)
{
    return 8 * info->bytes / (info->is_complex ? 2 : 1);
}

/* Reads the bits of part 0 (I) or 1 (Q) of a sample, without sign extension. Two parts of 4 bits
 * share a byte. */
static uint64_t get_part(const unsigned char *raw, unsigned bits, unsigned part)
{
    if (bits == 4)
        return raw[0] >> (part == 0 ? 4 : 0) & 15;
    return get_bytes(raw + part * bits / 8, bits / 8);
}

/* Writes part 0 (I) or 1 (Q) of a sample. Part 0 must be written first. */
static void put_part(unsigned char *raw, unsigned bits, unsigned part, uint64_t value)
{
    if (bits != 4)
        put_bytes(raw + part * bits / 8, bits / 8, value);
    else if (part == 0)
        raw[0] = (unsigned char)(value << 4);
    else
        raw[0] |= (unsigned char)(value & 15);
}

/* Returns the range of the integers of I or Q. Only cu8 and u8 are unsigned. */
static void integer_range(const pnr_format_info *info, long *low, long *high)
{
    long span = 1L << bits_of(info);

    *low = info->offset != 0 ? 0 : -span / 2;
    *high = *low + span - 1;
}

static unsigned read_component(const pnr_format_info *info, const unsigned char *raw, unsigned part,
                               double *value)
{
    const unsigned bits = bits_of(info);

    if (info->is_float) {
        *value = get_float(raw + part * bits / 8, bits / 8);
        return isfinite(*value) ? 0 : PNR_SAMPLE_NONFINITE;
    }
    long low, high, integer = (long)get_part(raw, bits, part);
    integer_range(info, &low, &high);
    if (integer > high)
        integer -= 1L << bits;
    *value = ((double)integer + info->offset) * info->scale;
    return integer == low || integer == high ? PNR_SAMPLE_CLIPPED : 0;
}

unsigned pnr_format_read(pnr_format format, const void *raw, double iq[2])
{
    const pnr_format_info *info = pnr_format_get(format);
    unsigned flags;

    iq[0] = iq[1] = 0;
    if (info->bytes == 0)
        return 0;
    flags = read_component(info, raw, 0, &iq[0]);
    if (info->is_complex)
        flags |= read_component(info, raw, 1, &iq[1]);
    if (flags & PNR_SAMPLE_NONFINITE)
        iq[0] = iq[1] = 0;
    return flags;
}

static unsigned write_float(double value, unsigned n, unsigned char *raw)
{
    uint64_t bits = 0;
    unsigned flags = 0;

    if (n == sizeof(double)) {
        memcpy(&bits, &value, sizeof value);
    } else {
        if (isfinite(value) && fabs(value) > (double)FLT_MAX) {
            value = copysign((double)FLT_MAX, value);
            flags = PNR_SAMPLE_CLIPPED;
        }
        float single = (float)value;
        uint32_t bits32;
        memcpy(&bits32, &single, sizeof single);
        bits = bits32;
    }
    put_bytes(raw, n, bits);
    return flags;
}

static unsigned write_component(const pnr_format_info *info, double value, unsigned part,
                                unsigned char *raw)
{
    const unsigned bits = bits_of(info);

    if (info->is_float)
        return write_float(value, bits / 8, raw + part * bits / 8);

    long low, high;
    unsigned flags = 0;
    integer_range(info, &low, &high);
    /* An integer format has no NaN. A NaN is stored as the value 0, with the flag for clipping. */
    if (isnan(value)) {
        value = 0;
        flags = PNR_SAMPLE_CLIPPED;
    }
    double scaled = round(value / info->scale - info->offset);
    if (scaled < (double)low || scaled > (double)high) {
        scaled = scaled < (double)low ? (double)low : (double)high;
        flags = PNR_SAMPLE_CLIPPED;
    }
    put_part(raw, bits, part, (uint64_t)(int64_t)scaled);
    return flags;
}

unsigned pnr_format_write(pnr_format format, const double iq[2], void *raw)
{
    const pnr_format_info *info = pnr_format_get(format);
    unsigned flags;

    if (info->bytes == 0)
        return 0;
    flags = write_component(info, iq[0], 0, raw);
    if (info->is_complex)
        flags |= write_component(info, iq[1], 1, raw);
    return flags;
}
