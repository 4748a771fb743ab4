/* SPDX-License-Identifier: MIT */
/* Samples read in a wrong format are doubted, and those of real receivers are not. */
#include "source/plausible.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

enum { N = 1 << 16 };
static unsigned char bytes[16 * N];

/* Fills memory with n complex samples of noise of this rms (full scale = 1), and a carrier. */
static size_t make(pnr_format format, double rms, double carrier)
{
    const size_t each = pnr_format_get(format)->bytes;

    for (size_t i = 0; i < N; i++) {
        const double noise[2] = {gaussian(), gaussian()};
        const double iq[2] = {rms * M_SQRT1_2 * noise[0] + carrier * cos(0.1 * (double)i),
                              rms * M_SQRT1_2 * noise[1] + carrier * sin(0.1 * (double)i)};

        (void)pnr_format_write(format, iq, bytes + i * each);
    }
    return N * each;
}

/* Returns the doubt about these bytes when they are read as this format. */
static const char *doubt(pnr_format format, size_t n_bytes)
{
    const pnr_format_info *info = pnr_format_get(format);
    const size_t each = info->is_complex ? info->bytes / 2 : info->bytes;
    const char *why = NULL;
    pnr_plausible p;

    pnr_plausible_begin(&p, format);
    for (size_t at = 0; at + 77 * each <= n_bytes; at += 77 * each) { /* in odd pieces */
        const char *now = pnr_plausible_add(&p, bytes + at, 77);

        assert_true(now == NULL || why == NULL); /* once */
        why = now != NULL ? now : why;
    }
    return why;
}

static const pnr_format complex_formats[] = {PNR_FORMAT_CI8, PNR_FORMAT_CU8, PNR_FORMAT_CI16,
                                             PNR_FORMAT_CF32, PNR_FORMAT_CF64};
static const pnr_format real_formats[] = {PNR_FORMAT_I8, PNR_FORMAT_U8, PNR_FORMAT_I16,
                                          PNR_FORMAT_F32, PNR_FORMAT_F64};

TEST(test_right)
{
    static const double levels[][2] = {{0.3, 0},    {0.1, 0},   {0.03, 0}, {0.003, 0}, {1e-5, 0},
                                       {0.02, 0.9}, {0.5, 0.1}, {0, 0.99}, {0, 0}};

    for (size_t l = 0; l < COUNT(levels); l++)
        for (size_t f = 0; f < COUNT(complex_formats); f++) {
            size_t n = make(complex_formats[f], levels[l][0], levels[l][1]);
            const char *why = doubt(complex_formats[f], n);

            if (why == NULL) {
                n = make(real_formats[f], levels[l][0], levels[l][1]);
                why = doubt(real_formats[f], n);
            }
            if (why != NULL)
                fail_msg("%s, rms %g, carrier %g: %s", pnr_format_get(complex_formats[f])->name,
                         levels[l][0], levels[l][1], why);
        }
}

/* An ADC of fewer bits, its values at the upper end of 16-bit integers or at the lower one. */
TEST(test_few_bits)
{
    for (unsigned bits = 1; bits <= 15; bits++)
        for (unsigned shift = 0; shift <= 16 - bits; shift += 16 - bits) {
            for (size_t i = 0; i < 2 * N; i++) {
                const double limit = ldexp(1, (int)bits - 1);
                const double value = floor(limit * 0.3 * gaussian());
                const int16_t integer =
                    (int16_t)((int)fmin(fmax(value, -limit), limit - 1) * (1 << shift));

                memcpy(bytes + 2 * i, &integer, 2);
            }
            if (doubt(PNR_FORMAT_CI16, 4 * N) != NULL)
                fail_msg("%u bits, shifted by %u: %s", bits, shift, doubt(PNR_FORMAT_CI16, 4 * N));
        }
}

TEST(test_wrong)
{
    static const struct {
        pnr_format is, read;
        double rms;
        const char *word;
    } cases[] = {
        {PNR_FORMAT_CI16, PNR_FORMAT_CI8, 0.3, "evenly"},
        {PNR_FORMAT_CI16, PNR_FORMAT_CI8, 0.02, "evenly"},
        {PNR_FORMAT_CI16, PNR_FORMAT_CI8, 0.001, "sign"},
        {PNR_FORMAT_CI16, PNR_FORMAT_CU8, 0.1, "evenly"},
        {PNR_FORMAT_CI8, PNR_FORMAT_CI16, 0.15, "two values"},
        {PNR_FORMAT_CU8, PNR_FORMAT_CI16, 0.15, "both ends"},
        {PNR_FORMAT_CU8, PNR_FORMAT_CI8, 0.15, "both ends"},
        {PNR_FORMAT_CI8, PNR_FORMAT_CU8, 0.15, "both ends"},
        {PNR_FORMAT_I16, PNR_FORMAT_I8, 0.1, "evenly"},
        {PNR_FORMAT_CF32, PNR_FORMAT_CI16, 0.1, "evenly"},
        {PNR_FORMAT_CF32, PNR_FORMAT_CI8, 0.1, "evenly"},
        {PNR_FORMAT_CI16, PNR_FORMAT_CF32, 0.1, "1e9"},
        {PNR_FORMAT_CI8, PNR_FORMAT_CF32, 0.15, "1e9"},
        {PNR_FORMAT_CF64, PNR_FORMAT_CF32, 0.1, "1e9"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const size_t n = make(cases[i].is, cases[i].rms, 0);
        const char *why = doubt(cases[i].read, n);

        if (why == NULL || strstr(why, cases[i].word) == NULL)
            fail_msg("%s as %s: %s", pnr_format_get(cases[i].is)->name,
                     pnr_format_get(cases[i].read)->name, why != NULL ? why : "no doubt");
    }
}

TEST(test_byte_order)
{
    const size_t n = make(PNR_FORMAT_CI16, 0.1, 0);

    for (size_t i = 0; i < n; i += 2) {
        const unsigned char low = bytes[i];

        bytes[i] = bytes[i + 1];
        bytes[i + 1] = low;
    }
    assert_non_null(doubt(PNR_FORMAT_CI16, n));
}

/* A short recording is not judged. */
TEST(test_short)
{
    (void)make(PNR_FORMAT_CI16, 0.1, 0);
    assert_null(doubt(PNR_FORMAT_CI8, PNR_PLAUSIBLE_VALUES - 77));
    assert_non_null(doubt(PNR_FORMAT_CI8, 2 * PNR_PLAUSIBLE_VALUES));
}
