/* SPDX-License-Identifier: MIT */
/* Tests of format.c: the table of formats is consistent, and every code of the integer formats is
 * read and written. */
#include "base/format.h"
#include "tests/fixture/test.h"

#include <ctype.h>
#include <float.h>

TEST(sizes_and_scales)
{
    static const struct {
        pnr_format format;
        const char *name;
        unsigned bytes;
        bool is_complex, is_float;
        double scale, offset;
    } expected[] = {
        {PNR_FORMAT_NONE, "none", 0, false, false, 1, 0},
        {PNR_FORMAT_CI4, "ci4", 1, true, false, 1.0 / 8, 0},
        {PNR_FORMAT_CI8, "ci8", 2, true, false, 1.0 / 128, 0},
        {PNR_FORMAT_CU8, "cu8", 2, true, false, 1.0 / 128, -127.5},
        {PNR_FORMAT_CI16, "ci16", 4, true, false, 1.0 / 32768, 0},
        {PNR_FORMAT_CF32, "cf32", 8, true, true, 1, 0},
        {PNR_FORMAT_CF64, "cf64", 16, true, true, 1, 0},
        {PNR_FORMAT_I8, "i8", 1, false, false, 1.0 / 128, 0},
        {PNR_FORMAT_U8, "u8", 1, false, false, 1.0 / 128, -127.5},
        {PNR_FORMAT_I16, "i16", 2, false, false, 1.0 / 32768, 0},
        {PNR_FORMAT_F32, "f32", 4, false, true, 1, 0},
        {PNR_FORMAT_F64, "f64", 8, false, true, 1, 0},
    };

    assert_int_equal(sizeof expected / sizeof expected[0], PNR_FORMAT_COUNT);
    for (size_t i = 0; i < PNR_FORMAT_COUNT; i++) {
        const pnr_format_info *info = pnr_format_get(expected[i].format);
        assert_string_equal(info->name, expected[i].name);
        assert_int_equal(info->bytes, expected[i].bytes);
        assert_int_equal(info->is_complex, expected[i].is_complex);
        assert_int_equal(info->is_float, expected[i].is_float);
        assert_true(info->scale == expected[i].scale && info->offset == expected[i].offset);
    }
    assert_ptr_equal(pnr_format_get(PNR_FORMAT_COUNT), pnr_format_get(PNR_FORMAT_NONE));
    assert_ptr_equal(pnr_format_get((pnr_format)-1), pnr_format_get(PNR_FORMAT_NONE));
}

static void check_name(const char *name, pnr_format format)
{
    char upper[64], path[64];

    assert_int_equal(pnr_format_find(name), format);
    for (size_t i = 0; i <= strlen(name); i++)
        upper[i] = (char)toupper((unsigned char)name[i]);
    assert_int_equal(pnr_format_find(upper), format);
    snprintf(path, sizeof path, "/data.cf64/echo.2026.%s", name);
    assert_int_equal(pnr_format_of_path(path), format);
}

/* pnr_format_find returns the first entry with a name, so this test finds names in two entries. */
TEST(every_name_and_alias_is_one_format)
{
    int n_aliases = 0;

    for (int i = PNR_FORMAT_NONE + 1; i < PNR_FORMAT_COUNT; i++) {
        const pnr_format_info *info = pnr_format_get((pnr_format)i);
        char aliases[256], *rest = NULL;
        check_name(info->name, (pnr_format)i);
        snprintf(aliases, sizeof aliases, "%s", info->aliases);
        for (char *a = strtok_r(aliases, " ", &rest); a; a = strtok_r(NULL, " ", &rest)) {
            check_name(a, (pnr_format)i);
            n_aliases++;
        }
    }
    assert_true(n_aliases > 20);
}

TEST(names_of_the_field)
{
    assert_int_equal(pnr_format_find("cs16"), PNR_FORMAT_CI16);
    assert_int_equal(pnr_format_find("sc16"), PNR_FORMAT_CI16);
    assert_int_equal(pnr_format_find("ci16_le"), PNR_FORMAT_CI16);
    assert_int_equal(pnr_format_find("ishort"), PNR_FORMAT_CI16);
    assert_int_equal(pnr_format_find("cs8"), PNR_FORMAT_CI8);
    assert_int_equal(pnr_format_find("sc8"), PNR_FORMAT_CI8);
    assert_int_equal(pnr_format_find("ibyte"), PNR_FORMAT_CI8);
    assert_int_equal(pnr_format_find("cfile"), PNR_FORMAT_CF32);
    assert_int_equal(pnr_format_find("fc32"), PNR_FORMAT_CF32);
    assert_int_equal(pnr_format_find("gr_complex"), PNR_FORMAT_CF32);
    assert_int_equal(pnr_format_find("fc64"), PNR_FORMAT_CF64);
    assert_int_equal(pnr_format_find("s16"), PNR_FORMAT_I16);
    assert_int_equal(pnr_format_find("s8"), PNR_FORMAT_I8);
    assert_int_equal(pnr_format_find("float32"), PNR_FORMAT_F32);
}

TEST(unknown_and_ambiguous_names_are_refused)
{
    static const char *const bad[] = {"",    " ",     "none",  "c16",   "c8",    "complex16s",
                                      "raw", "iq",    "bin",   "dat",   "wav",   "ci16 cs16",
                                      "ci1", "ci160", "cs16 ", " cs16", "s16be", ".cs16",
                                      "16",  "int8",  "uint8", "int16"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (pnr_format_find(bad[i]) != PNR_FORMAT_NONE)
            fail_msg("taken: '%s'", bad[i]);
}

TEST(extensions_of_paths)
{
    assert_int_equal(pnr_format_of_path("echo.sc16"), PNR_FORMAT_CI16);
    assert_int_equal(pnr_format_of_path("a/b.c/echo.CU8"), PNR_FORMAT_CU8);
    assert_int_equal(pnr_format_of_path("../echo.am.s16"), PNR_FORMAT_I16);
    assert_int_equal(pnr_format_of_path(""), PNR_FORMAT_NONE);
    assert_int_equal(pnr_format_of_path("-"), PNR_FORMAT_NONE);
    assert_int_equal(pnr_format_of_path("echo"), PNR_FORMAT_NONE);
    assert_int_equal(pnr_format_of_path("cf32"), PNR_FORMAT_NONE);
    assert_int_equal(pnr_format_of_path("echo."), PNR_FORMAT_NONE);
    assert_int_equal(pnr_format_of_path("echo.txt"), PNR_FORMAT_NONE);
    assert_int_equal(pnr_format_of_path("data.cf32/echo"), PNR_FORMAT_NONE);
    assert_int_equal(pnr_format_of_path("echo.cf32/"), PNR_FORMAT_NONE);
}

TEST(names_lists_all)
{
    assert_string_equal(pnr_format_names(), "ci4 ci8 cu8 ci16 cf32 cf64 i8 u8 i16 f32 f64");
}

/* Reads every code of an integer format, compares its value with the formula, and writes the code
 * back. */
static void check_all_codes(pnr_format format, long low, long high)
{
    const pnr_format_info *info = pnr_format_get(format);
    const unsigned n = info->is_complex ? info->bytes / 2 : info->bytes;

    for (long code = low; code <= high; code++) {
        unsigned char raw[8] = {0}, *at = raw + 1, back[8] = {0};
        double iq[2] = {9, 9};
        long other = low + high - code; /* Q decreases while I increases */
        bool is_end = code == low || code == high;
        for (unsigned i = 0; i < n; i++) {
            at[i] = (unsigned char)((unsigned long)code >> 8 * i);
            if (info->is_complex)
                at[n + i] = (unsigned char)((unsigned long)other >> 8 * i);
        }
        assert_int_equal(pnr_format_read(format, at, iq), is_end ? PNR_SAMPLE_CLIPPED : 0);
        assert_true(iq[0] == ((double)code + info->offset) * info->scale);
        assert_true(iq[1] == (info->is_complex ? ((double)other + info->offset) * info->scale : 0));
        assert_int_equal(pnr_format_write(format, iq, back + 3), 0);
        assert_memory_equal(back + 3, at, info->bytes);
        assert_int_equal(back[2], 0);
        assert_int_equal(back[3 + info->bytes], 0);
    }
}

TEST(every_code_of_every_integer_format)
{
    check_all_codes(PNR_FORMAT_CI8, -128, 127);
    check_all_codes(PNR_FORMAT_I8, -128, 127);
    check_all_codes(PNR_FORMAT_CU8, 0, 255);
    check_all_codes(PNR_FORMAT_U8, 0, 255);
    check_all_codes(PNR_FORMAT_CI16, -32768, 32767);
    check_all_codes(PNR_FORMAT_I16, -32768, 32767);
}

TEST(every_byte_of_packed_samples)
{
    for (int byte = 0; byte < 256; byte++) {
        const int i = (byte >> 4) - (byte & 0x80 ? 16 : 0), q = (byte & 15) - (byte & 8 ? 16 : 0);
        const bool is_end = i == -8 || i == 7 || q == -8 || q == 7;
        const unsigned char raw = (unsigned char)byte;
        unsigned char back[3] = {9, 9, 9};
        double iq[2];

        assert_int_equal(pnr_format_read(PNR_FORMAT_CI4, &raw, iq),
                         is_end ? PNR_SAMPLE_CLIPPED : 0);
        assert_true(iq[0] == i / 8.0 && iq[1] == q / 8.0);
        assert_int_equal(pnr_format_write(PNR_FORMAT_CI4, iq, back + 1), 0);
        assert_int_equal(back[1], byte);
        assert_true(back[0] == 9 && back[2] == 9);
    }
    assert_int_equal(pnr_format_in_memory(PNR_FORMAT_CI4), PNR_FORMAT_CI8);
    assert_int_equal(pnr_format_in_memory(PNR_FORMAT_CF32), PNR_FORMAT_CF32);
}

TEST(one_component_at_its_end_is_enough)
{
    static const unsigned char i_low[] = {0x00, 0x80, 1, 0}, q_high[] = {1, 0, 0xff, 0x7f},
                               inside[] = {0x01, 0x80, 0xfe, 0x7f};
    double iq[2];

    assert_int_equal(pnr_format_read(PNR_FORMAT_CI16, i_low, iq), PNR_SAMPLE_CLIPPED);
    assert_true(iq[0] == -1 && iq[1] == 1.0 / 32768);
    assert_int_equal(pnr_format_read(PNR_FORMAT_CI16, q_high, iq), PNR_SAMPLE_CLIPPED);
    assert_int_equal(pnr_format_read(PNR_FORMAT_CI16, inside, iq), 0);
}

TEST(bytes_are_little_endian)
{
    static const unsigned char one_and_minus_two[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0};
    static const unsigned char doubles[] = {0, 0, 0, 0, 0, 0, 0xf0, 0x3f,
                                            0, 0, 0, 0, 0, 0, 0,    0xc0};
    unsigned char raw[16];
    double iq[2];

    assert_int_equal(pnr_format_read(PNR_FORMAT_CF32, one_and_minus_two, iq), 0);
    assert_true(iq[0] == 1 && iq[1] == -2);
    assert_int_equal(pnr_format_write(PNR_FORMAT_CF32, iq, raw), 0);
    assert_memory_equal(raw, one_and_minus_two, 8);
    assert_int_equal(pnr_format_read(PNR_FORMAT_CF64, doubles, iq), 0);
    assert_true(iq[0] == 1 && iq[1] == -2);
    assert_int_equal(pnr_format_write(PNR_FORMAT_CF64, iq, raw), 0);
    assert_memory_equal(raw, doubles, 16);
}

TEST(floats_come_back_as_they_were)
{
    static const double values[] = {0, 1, -1, 1.0f / 3, -3e38, 1e-40, 0.1f, 12345.678f};

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        for (int f = PNR_FORMAT_NONE + 1; f < PNR_FORMAT_COUNT; f++) {
            const pnr_format_info *info = pnr_format_get((pnr_format)f);
            double in[2] = {values[i], -values[i]}, out[2];
            unsigned char raw[16];
            if (!info->is_float)
                continue;
            double expected =
                info->bytes / (info->is_complex ? 2 : 1) == 4 ? (float)values[i] : values[i];
            assert_int_equal(pnr_format_write((pnr_format)f, in, raw), 0);
            assert_int_equal(pnr_format_read((pnr_format)f, raw, out), 0);
            assert_true(out[0] == expected && out[1] == (info->is_complex ? -expected : 0));
        }
    }
}

TEST(non_finite_is_zero_and_told)
{
    static const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};

    for (size_t i = 0; i < 3; i++) {
        for (int f = PNR_FORMAT_NONE + 1; f < PNR_FORMAT_COUNT; f++) {
            const pnr_format_info *info = pnr_format_get((pnr_format)f);
            unsigned char raw[16];
            double out[2];
            if (!info->is_float)
                continue;
            for (int part = 0; part < (info->is_complex ? 2 : 1); part++) {
                double in[2] = {0.5, 0.5};
                in[part] = bad[i];
                assert_int_equal(pnr_format_write((pnr_format)f, in, raw), 0);
                assert_int_equal(pnr_format_read((pnr_format)f, raw, out), PNR_SAMPLE_NONFINITE);
                assert_true(out[0] == 0 && out[1] == 0);
            }
        }
    }
}

static int write_one(pnr_format format, double value, unsigned *flags)
{
    unsigned char raw[16] = {0};
    double iq[2] = {value, 0};

    *flags = pnr_format_write(format, iq, raw);
    int code = raw[0] | (format == PNR_FORMAT_I16 ? raw[1] << 8 : 0);
    if (format == PNR_FORMAT_I8 && code > 127)
        code -= 256;
    if (format == PNR_FORMAT_I16 && code > 32767)
        code -= 65536;
    return code;
}

TEST(writing_rounds_half_away_and_clips)
{
    static const struct {
        pnr_format format;
        double value;
        int code;
        unsigned flags;
    } cases[] = {
        {PNR_FORMAT_I8, 0.49 / 128, 0, 0},
        {PNR_FORMAT_I8, 0.5 / 128, 1, 0},
        {PNR_FORMAT_I8, -0.5 / 128, -1, 0},
        {PNR_FORMAT_I8, -0.49 / 128, 0, 0},
        {PNR_FORMAT_I8, 127.0 / 128, 127, 0},
        {PNR_FORMAT_I8, 127.49 / 128, 127, 0},
        {PNR_FORMAT_I8, 127.5 / 128, 127, PNR_SAMPLE_CLIPPED},
        {PNR_FORMAT_I8, -1, -128, 0},
        {PNR_FORMAT_I8, -128.5 / 128, -128, PNR_SAMPLE_CLIPPED},
        {PNR_FORMAT_I16, 1, 32767, PNR_SAMPLE_CLIPPED},
        {PNR_FORMAT_I16, -1, -32768, 0},
        {PNR_FORMAT_I16, 1e300, 32767, PNR_SAMPLE_CLIPPED},
        {PNR_FORMAT_I16, -(double)INFINITY, -32768, PNR_SAMPLE_CLIPPED},
        {PNR_FORMAT_I16, (double)INFINITY, 32767, PNR_SAMPLE_CLIPPED},
        {PNR_FORMAT_I16, (double)NAN, 0, PNR_SAMPLE_CLIPPED},
        {PNR_FORMAT_U8, 0, 128, 0},
        {PNR_FORMAT_U8, -0.01 / 128, 127, 0},
        {PNR_FORMAT_U8, 1, 255, PNR_SAMPLE_CLIPPED},
        {PNR_FORMAT_U8, 127.5 / 128, 255, 0},
        {PNR_FORMAT_U8, -127.5 / 128, 0, 0},
        {PNR_FORMAT_U8, -128.1 / 128, 0, PNR_SAMPLE_CLIPPED},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned flags;
        int code = write_one(cases[i].format, cases[i].value, &flags);
        if (code != cases[i].code || flags != cases[i].flags)
            fail_msg("case %zu: code %d, flags %u", i, code, flags);
    }
}

TEST(clipping_of_q_is_told_too)
{
    unsigned char raw[4];
    double iq[2] = {0.25, 2};

    assert_int_equal(pnr_format_write(PNR_FORMAT_CI16, iq, raw), PNR_SAMPLE_CLIPPED);
    assert_memory_equal(raw, ((unsigned char[]){0x00, 0x20, 0xff, 0x7f}), 4);
    /* A real format stores no Q, so no Q is clipped. */
    assert_int_equal(pnr_format_write(PNR_FORMAT_I16, iq, raw), 0);
}

TEST(a_double_beyond_float_stays_finite)
{
    unsigned char raw[8];
    double iq[2] = {1e300, -1e300};

    assert_int_equal(pnr_format_write(PNR_FORMAT_CF32, iq, raw), PNR_SAMPLE_CLIPPED);
    assert_int_equal(pnr_format_read(PNR_FORMAT_CF32, raw, iq), 0);
    assert_true(iq[0] == (double)FLT_MAX && iq[1] == -(double)FLT_MAX);
}

TEST(none_reads_nothing)
{
    double iq[2] = {3, 3};
    unsigned char raw[1] = {7};

    assert_int_equal(pnr_format_read(PNR_FORMAT_NONE, raw, iq), 0);
    assert_true(iq[0] == 0 && iq[1] == 0);
    assert_int_equal(pnr_format_write(PNR_FORMAT_NONE, iq, raw), 0);
    assert_int_equal(raw[0], 7);
}
