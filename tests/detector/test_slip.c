/* SPDX-License-Identifier: MIT */
/* A slip is one jump of all echoes by whole samples. Movers, echoes that come and go, noise and
 * counted gaps are none. */
#include "detector/slip.h"

#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

enum { PERIOD = 1000, DWELLS = 40, MOST = 8 };

static const pnr_radar radar = {.n_samples = PERIOD, .rate_hz = {1000000, 1}};
static pnr_slip_tracker slip;

/* A true echo: its lag in dwell k is lag + k drift + k^2 bend; it is there from dwell `from` to
 * `end`. */
typedef struct truth {
    double lag, sigma, amplitude, drift, bend;
    size_t from, end;
    uint32_t code;
} truth;

/* One dwell of these echoes, `vanished` samples after the start. */
static pnr_detection dwell_of(const truth *echoes, size_t n, size_t k, double vanished)
{
    pnr_detection d = {0};

    for (const truth *e = echoes; e < echoes + n; e++) {
        const double t = (double)k, relative = e->sigma;
        const double lag = e->lag + t * (e->drift + t * e->bend) - vanished + e->sigma * gaussian();

        if (k < e->from || (e->end > 0 && k >= e->end))
            continue;
        d.echoes[d.n_echoes++] = (pnr_echo){.code = e->code,
                                            .lag = lag - PERIOD * floor(lag / PERIOD),
                                            .delay_sigma_s = e->sigma * 1e-6,
                                            .amplitude = e->amplitude * (1 + relative * gaussian()),
                                            .amplitude_sigma = relative * e->amplitude};
    }
    return d;
}

/* Runs the dwells; n_vanished samples vanish in dwell `at`, whose echoes are split. Returns the sum
 * of the slips, and the dwell of the last. */
static uint32_t run(const truth *echoes, size_t n, size_t at, double n_vanished, size_t *seen)
{
    uint32_t sum = 0;

    pnr_slip_begin(&slip, &radar);
    for (size_t k = 0; k < DWELLS; k++) {
        pnr_detection d = dwell_of(echoes, n, k, k > at ? n_vanished : 0);

        if (k == at) {
            const pnr_detection later = dwell_of(echoes, n, k, n_vanished);

            for (size_t e = 0; e < later.n_echoes; e++)
                d.echoes[d.n_echoes++] = later.echoes[e];
        }

        const uint32_t found = pnr_slip_track(&slip, k * PERIOD, false, &d);

        sum += found;
        if (found > 0 && seen != NULL)
            *seen = k;
    }
    return sum;
}

TEST(a_slip_of_every_size_is_found_once)
{
    static const truth steady[] = {{300.3, 0.01, 0.1, 0, 0, 0, 0, 0},
                                   {410.9, 0.05, 0.03, -0.02, 0, 0, 0, 0},
                                   {650.1, 0.1, 0.02, 0.5, 0, 0, 0, 0}};

    for (size_t n = 1; n <= 3; n++)
        for (uint32_t size = 1; size < PERIOD; size += size < 8 || size > 980 ? 1 : 47) {
            size_t seen = 0;
            const uint32_t found = run(steady, n, 20, size, &seen);

            if (found != size || slip.n_slips != 1 || seen != 23)
                fail_msg("%zu echoes, %u samples vanished: %u found in %lu slips, in dwell %zu", n,
                         size, found, (unsigned long)slip.n_slips, seen);
            assert_true(slip.at_sample == 20 * (uint64_t)PERIOD);
        }
    assert_int_equal(run(steady, 3, 20, 5 * PERIOD + 965, NULL), 965);
    assert_int_equal(run(steady, 3, 20, PERIOD, NULL), 0); /* a whole period is not seen */
}

/* The strongest steady echo is enough when the others are not steady. */
TEST(a_steady_echo_among_movers)
{
    static const truth echoes[] = {{100, 0.01, 1, 7.7, 0, 0, 0, 0}, /* too fast to be steady */
                                   {300.3, 0.02, 0.1, 0, 0, 0, 0, 0},
                                   {600, 0.01, 0.05, 0, 0.3, 0, 0, 0}};

    assert_int_equal(run(echoes, 3, 17, 42, NULL), 42);
}

/* Dwells of a scene that has no slip, with echoes at random places. */
static void never(const char *what, const truth *echoes, size_t n)
{
    truth moved[MOST];

    for (int trial = 0; trial < 3000; trial++) {
        for (size_t e = 0; e < n; e++) {
            moved[e] = echoes[e];
            moved[e].lag += 150 * (double)e + 100 * uniform(); /* apart */
        }
        if (run(moved, n, DWELLS, 0, NULL) != 0)
            fail_msg("%s, trial %d: a slip of %u samples", what, trial, slip.vanished);
    }
}

TEST(what_is_no_slip)
{
    static const truth mover[] = {{0, 0.05, 1, 0.8, 0, 0, 0, 0}};
    static const truth turning[] = {{0, 0.05, 1, -2, 0.05, 0, 0, 0}};
    static const truth hasty[] = {{0, 0.15, 1, -3, 0.3, 0, 0, 0}};
    /* Two points of one object. The curve of their lags is told from a slip by chi^2 alone. */
    static const truth body[] = {{0, 0.045, 1, -1, 0.04, 0, 0, 0},
                                 {5, 0.045, 0.9, -1, 0.04, 0, 0, 0}};
    /* One sets, another rises elsewhere: of half the amplitude, which is 8 sigmas beyond the limit,
     * beside a third one, or dwells apart. */
    static const truth relay[] = {{0, 0.02, 1, 0, 0, 0, 20, 0}, {50, 0.02, 0.5, 0, 0, 20, 0, 0}};
    static const truth third[] = {
        {0, 0.02, 1, 0, 0, 0, 20, 0}, {50, 0.02, 1, 0, 0, 20, 0, 0}, {0, 0.02, 0.5, 0, 0, 0, 0, 0}};
    static const truth pause[] = {{0, 0.02, 1, 0, 0, 0, 18, 0}, {50, 0.02, 1, 0, 0, 20, 0, 0}};
    static const truth overlap[] = {{0, 0.02, 1, 0, 0, 0, 22, 0}, {50, 0.02, 1, 0, 0, 20, 0, 0}};
    static const truth codes[] = {{0, 0.02, 1, 0, 0, 0, 20, 0}, {50, 0.02, 1, 0, 0, 20, 0, 1}};

    never("a mover", mover, 1);
    never("a mover that turns", turning, 1);
    never("a mover in a hurry", hasty, 1);
    never("two points of a body", body, 2);
    never("another echo", relay, 2);
    never("another echo beside a third", third, 3);
    never("a pause", pause, 2);
    never("an overlap", overlap, 2);
    never("another code", codes, 2);
}

/* Strong false echoes at random places, up to five a dwell, without and with a steady one. */
TEST(noise_is_no_slip)
{
    static const truth steady = {500, 0.1, 1, 0, 0, 0, 0, 0};
    unsigned long n_false = 0;

    pnr_slip_begin(&slip, &radar);
    for (size_t k = 0; k < 200000; k++) {
        pnr_detection d = dwell_of(&steady, k / 1000 % 2, k, 0);

        for (size_t n = (size_t)(6 * uniform()); n > 0; n--)
            d.echoes[d.n_echoes++] = (pnr_echo){.lag = PERIOD * uniform(),
                                                .delay_sigma_s = 0.12e-6,
                                                .amplitude = 0.9 + 0.2 * uniform(),
                                                .amplitude_sigma = 0.2};
        n_false += pnr_slip_track(&slip, k * PERIOD, false, &d) > 0;
    }
    print_message("%lu false slips in 200000 dwells of false echoes\n", n_false);
    assert_true(n_false <= 3); /* 0.1 on average */
}

/* A jump across a counted gap is none: the gap says why. */
TEST(a_counted_gap_begins_anew)
{
    static const truth echo = {300.3, 0.01, 0.1, 0, 0, 0, 0, 0};

    for (size_t gap = 17; gap <= 22; gap++) {
        pnr_slip_begin(&slip, &radar);
        for (size_t k = 0; k < DWELLS; k++) {
            const pnr_detection d = dwell_of(&echo, 1, k, k >= 20 ? 57 : 0);
            const uint32_t found = pnr_slip_track(&slip, k * PERIOD, k == gap, &d);

            if (found > 0)
                fail_msg("a gap in dwell %zu: a slip in dwell %zu", gap, k);
        }
    }
}

/* Slips a few dwells apart are each found. */
TEST(slips_follow_each_other)
{
    static const truth echo = {300.3, 0.01, 0.1, 0, 0, 0, 0, 0};
    uint32_t sum = 0;

    pnr_slip_begin(&slip, &radar);
    for (size_t k = 0; k < 200; k++) {
        const pnr_detection d = dwell_of(&echo, 1, k, 3 * (double)(k / 10));

        sum += pnr_slip_track(&slip, k * PERIOD, false, &d);
    }
    assert_int_equal(sum, 3 * 19);
    assert_int_equal(slip.n_slips, 19);
}
