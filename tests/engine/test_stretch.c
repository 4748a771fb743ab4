/* SPDX-License-Identifier: MIT */
/* Tests a look at another time scale: tones keep their frequency, and shifts by whole samples are
 * exact. */
#include "engine/stretch.h"
#include "tests/fixture/test.h"

static float table[PNR_STRETCH_STEPS + 1][PNR_STRETCH_TAPS];

/* Interpolates a tone of `f` cycles a sample, at twice its rate. out: real part, imaginary part. */
static void read_tone(pnr_stretch_place p, double f, double out[2])
{
    out[0] = out[1] = 0;
    for (int i = 0; i < PNR_STRETCH_TAPS; i++) {
        const double low = (double)table[p.row][i], high = (double)table[p.row + 1][i];
        const double w = low + (double)p.part * (high - low);

        out[0] += w * cos(M_PI * f * (double)(p.first + i));
        out[1] += w * sin(M_PI * f * (double)(p.first + i));
    }
}

TEST(test_tones)
{
    enum { LOOK = 100000 };
    static const double stretches[] = {1e-3, -7.1e-5, 0.0999};
    static const double frequencies[] = {0, 0.1, -0.25, 0.44, -0.5};
    const double middle = (LOOK - 1) / 2.0;

    for (size_t s = 0; s < 3; s++)
        for (size_t n = 0; n < LOOK + 500; n += 97)
            for (size_t i = 0; i < 5; i++) {
                const double t = middle + ((double)n - middle) * (1 + stretches[s]);
                const double f = frequencies[i];
                double value[2];

                read_tone(pnr_stretch_at(stretches[s], LOOK, n), f, value);
                assert_true(hypot(value[0] - cos(2 * M_PI * f * t),
                                  value[1] - sin(2 * M_PI * f * t)) < 1.2e-5);
            }
}

/* The interpolated tone has no jump between neighbouring times, also where `first` changes. */
TEST(test_joins)
{
    double last[2] = {1, 0};

    for (size_t n = 0; n < 5000; n++) { /* shifts from 0 to -3 samples, in steps of 6e-4 */
        const pnr_stretch_place p = pnr_stretch_at(-0.0006, 1, n);
        const pnr_stretch_place here = {p.first - 2 * (int64_t)n, p.row, p.part};
        double value[2];

        assert_true(p.row < PNR_STRETCH_STEPS && p.part >= 0 && p.part <= 1);
        read_tone(here, 0.3, value);
        assert_true(hypot(value[0] - last[0], value[1] - last[1]) < 2 * M_PI * 0.3 * 6e-4 + 1e-4);
        last[0] = value[0];
        last[1] = value[1];
    }
}

TEST(test_whole_shifts)
{
    for (int i = 0; i < PNR_STRETCH_TAPS; i++) {
        assert_true(table[0][i] == (i == 7 ? 1 : 0));
        assert_true(table[PNR_STRETCH_STEPS][i] == (i == 8 ? 1 : 0));
    }

    const pnr_stretch_place none = pnr_stretch_at(0, 1000, 123);

    assert_int_equal(none.first, 2 * 123 - 7);
    assert_int_equal(none.row, 0);
    assert_true(none.part == 0);

    /* the middle sample stays in place, and samples before it are read earlier */
    const pnr_stretch_place far = pnr_stretch_at(0.01, 2001, 0);

    assert_int_equal(far.first, -20 - 7);
    assert_true(far.row == 0 && far.part == 0);
    assert_int_equal(pnr_stretch_at(0.01, 2001, 1000).first, 2 * 1000 - 7);
}

static int make_table(void **state)
{
    (void)state;
    pnr_stretch_table(table);
    return 0;
}
TESTS_BETWEEN(make_table, NULL)
