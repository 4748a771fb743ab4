/* SPDX-License-Identifier: MIT */
/* Tests of hypothesis.c. Every row occurs once, at its nearest rotation. The stretch is that of a
 * moving target in the synthetic scene. */
#include "setup/hypothesis.h"

#include "base/transform.h"
#include "code/code.h"
#include "engine/engine.h"
#include "engine/stretch.h"
#include "scene/scene.h"
#include "tests/fixture/config_fixture.h"

#include <math.h>

typedef struct rows {
    pnr_config config;
    pnr_radar radar;
    pnr_hypothesis *items;
    size_t n;
    pnr_error error;
    int code;
} rows;

/* Makes the rows for 1 Msample/s and N = 1000 chips of a random code, so that Tr = 1 ms. */
static rows make(const char *text)
{
    static const char base[] = "[source]\nrate_hz = 1e6\n[code]\ntype = random\nlength = 1000\n";
    char all[1024];
    rows r = {0};

    snprintf(all, sizeof all, "%s%s", base, text);
    accept_text(&r.config, all);
    assert_int_equal(pnr_radar_derive(&r.config, 1000, &r.radar, &r.error), PNR_OK);
    r.code = pnr_hypotheses_create(&r.config, &r.radar, &r.items, &r.n, &r.error);
    return r;
}

static void drop(rows *r)
{
    free(r->items);
    pnr_config_clear(&r->config);
}

static void refused(const char *text, const char *word)
{
    rows r = make(text);

    assert_int_equal(r.code, PNR_ECONFIG);
    assert_null(r.items);
    if (!strstr(r.error.text, word))
        fail_msg("'%s' is not in '%s'", word, r.error.text);
    drop(&r);
}

/* Without a search there is one hypothesis, the default of a plan. */
TEST(nothing_is_searched_by_default)
{
    static const char *const texts[] = {
        "", "[dwell]\nperiods = 4\ncombine = coherent\n",
        "[dwell]\nperiods = 4\ncombine = incoherent\n[radar]\ncarrier_hz = 1e3\n"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        rows r = make(texts[i]);

        assert_int_equal(r.code, PNR_OK);
        assert_int_equal(r.n, 1);
        assert_true(r.items[0].quarters == 0 && r.items[0].first_bin == 0 &&
                    r.items[0].n_rows == 1 && r.items[0].stretch == 0);
        drop(&r);
    }
}

TEST(rotations_cover_both_ends)
{
    static const struct {
        const char *text;
        int first, last, step; /* in quarter bins */
    } cases[] = {
        {"[doppler]\nmin_hz = -10e3\nmax_hz = 10e3\nstep = half\n", -40, 40, 2},
        {"[doppler]\nmin_hz = -14e3\nmax_hz = 14e3\n", -56, 56, 1},
        {"[doppler]\nmin_hz = -10.1e3\nmax_hz = 9.9e3\nstep = whole\n", -44, 40, 4},
        {"[doppler]\nmin_hz = 300\nmax_hz = 300\n", 1, 2, 1},
        {"[doppler]\nmin_hz = 1499\nmax_hz = 1501\n[dwell]\nperiods = 3\ncombine = incoherent\n", 5,
         7, 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rows r = make(cases[i].text);

        assert_int_equal(r.code, PNR_OK);
        assert_int_equal(r.n, (cases[i].last - cases[i].first) / cases[i].step + 1);
        for (size_t h = 0; h < r.n; h++) {
            assert_int_equal(r.items[h].quarters, cases[i].first + (int)h * cases[i].step);
            assert_int_equal(r.items[h].n_rows, 1);
            assert_int_equal(r.items[h].first_bin, 0);
        }
        drop(&r);
    }
}

/* Checks that every row j / K occurs once, in ascending order, and that its rotation is at most
 * half a step away. */
static void check_rows(const rows *r, int64_t first, int64_t last)
{
    static const double step_of[] = {1, 0.5, 0.25};
    const int64_t k = (int64_t)r->config.dwell.periods;
    int64_t j = first;

    assert_int_equal(r->code, PNR_OK);
    for (size_t h = 0; h < r->n; h++) {
        assert_true(r->items[h].n_rows >= 1 && (int64_t)r->items[h].n_rows <= k);
        for (int64_t s = r->items[h].first_bin;
             s < r->items[h].first_bin + (int64_t)r->items[h].n_rows; s++, j++) {
            assert_int_equal(r->items[h].quarters * k + 4 * s, 4 * j);
            assert_true((double)(s < 0 ? -s : s) / (double)k <=
                        step_of[r->config.doppler.step] / 2);
        }
    }
    assert_int_equal(j, last + 1);
}

TEST(rows_are_those_of_the_range)
{
    static const char *const steps[] = {"whole", "half", "quarter"};
    static const struct {
        int periods;
        const char *range;
        int first, last;
    } cases[] = {
        {16, "min_hz = 0\n", -8, 7},
        {4, "min_hz = 0\n", -2, 1},
        {512, "min_hz = -4000\nmax_hz = 4000\n", -2048, 2048},
        {16, "min_hz = 100\nmax_hz = 400\n", 2, 6}, /* rows of 62.5 Hz */
        /* no row lies in the range, and 155 / 62.5 is nearest to row 2 */
        {16, "min_hz = 130\nmax_hz = 180\n", 2, 2},
        {16, "min_hz = -500\nmax_hz = 437.5\n", -8, 7},  /* both ends of the range are rows */
        {20, "min_hz = -1234\nmax_hz = 777\n", -24, 15}, /* rows of 50 Hz */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t s = 0; s < 3; s++) {
            char text[256];

            snprintf(text, sizeof text,
                     "[dwell]\nperiods = %d\ncombine = doppler\n[doppler]\nstep = %s\n%s",
                     cases[i].periods, steps[s], cases[i].range);
            rows r = make(text);
            check_rows(&r, cases[i].first, cases[i].last);
            drop(&r);
        }
}

/* K is refused if the rows of two rotations would not coincide. If one rotation serves all rows,
 * any K is accepted. */
TEST(periods_must_fit_the_step)
{
    refused("[dwell]\nperiods = 10\ncombine = doppler\n", "multiple of 4");
    refused("[dwell]\nperiods = 15\ncombine = doppler\n[doppler]\nstep = half\n", "multiple of 2");
    rows r = make("[dwell]\nperiods = 15\ncombine = doppler\n[doppler]\nstep = whole\n");
    check_rows(&r, -7, 7);
    drop(&r);
    r = make("[dwell]\nperiods = 10\ncombine = doppler\n[doppler]\nmin_hz = -100\nmax_hz = 100\n");
    check_rows(&r, -1, 1);
    drop(&r);
    refused("[doppler]\nmin_hz = -9e11\nmax_hz = 9e11\n", "rows");
}

/* During 64 periods an echo of 10 kHz Doppler walks 0.0083 samples at a carrier of 77 GHz, and 0.64
 * samples at 1 GHz. */
TEST(the_code_is_stretched_where_it_counts)
{
    static const char dwell[] =
        "[dwell]\nperiods = 64\ncombine = doppler\n[doppler]\nmin_hz = -10e3\nmax_hz = 10e3\n";
    char text[256];

    snprintf(text, sizeof text, "%s[radar]\ncarrier_hz = 77e9\n", dwell);
    rows r = make(text);
    check_rows(&r, -640, 640);
    assert_int_equal(r.n, 81);
    for (size_t h = 0; h < r.n; h++)
        assert_true(r.items[h].stretch == 0);
    drop(&r);

    snprintf(text, sizeof text, "%s[radar]\ncarrier_hz = 1e9\n", dwell);
    r = make(text);
    check_rows(&r, -640, 640);
    assert_int_equal(r.n, 81); /* the walks of the rows of one rotation differ by 0.016 samples */
    for (size_t h = 0; h < r.n; h++) {
        const double middle_hz =
            1e3 * (r.items[h].quarters / 4.0 +
                   (r.items[h].first_bin + (r.items[h].n_rows - 1) / 2.0) / 64);

        assert_true(fabs(r.items[h].stretch + middle_hz / 1e9) < 1e-12);
    }
    drop(&r);

    /* At 1 MHz the walks of two rows differ by 1 sample, so each row has its own hypothesis. */
    snprintf(text, sizeof text, "%s[radar]\ncarrier_hz = 1e6\n", dwell);
    r = make(text);
    check_rows(&r, -640, 640);
    assert_int_equal(r.n, 1281);
    drop(&r);
    /* At 5 MHz the walks of two rows differ by 0.2 samples, so a hypothesis has at most three
     * rows. */
    snprintf(text, sizeof text, "%s[radar]\ncarrier_hz = 5e6\n", dwell);
    r = make(text);
    check_rows(&r, -640, 640);
    for (size_t h = 0; h < r.n; h++)
        assert_true(r.items[h].n_rows <= 3);
    drop(&r);
    refused("[radar]\ncarrier_hz = 50e3\n[doppler]\nmin_hz = 0\nmax_hz = 6000\n", "tenth");
}

/* --- against the scene --- */

/* Doubles the rate of n samples, see engine/stretch.h. */
static void double_rate(const double (*x)[2], size_t n, double (*d)[2])
{
    static const double all[2] = {0, 0};
    const size_t length = pnr_transform_fast_length(n);
    double(*bins)[2] = calloc(length, sizeof *bins);

    assert_non_null(bins);
    memcpy(bins, x, n * sizeof *bins);
    assert_int_equal(pnr_transform_forward(bins, length), PNR_OK);
    for (size_t v = 0; v < length; v++) {
        const double re = bins[v][0], im = bins[v][1];
        double half[2];

        pnr_stretch_half(all, v, length, half);
        bins[v][0] = re * half[0] - im * half[1];
        bins[v][1] = re * half[1] + im * half[0];
    }
    assert_int_equal(pnr_transform_inverse(bins, length), PNR_OK);
    for (size_t i = 0; i < n; i++) {
        memcpy(d[2 * i], x[i], sizeof *d);
        memcpy(d[2 * i + 1], bins[i], sizeof *d);
    }
    free(bins);
}

/* Returns the greatest power P (see plan.h) of one row over all lags, divided by the power of the
 * whole echo. */
static double strength(const pnr_scene *scene, const pnr_plan *plan, const pnr_hypothesis *h,
                       int64_t s, double stretch)
{
    const size_t n = plan->n_samples, n_look = n * plan->n_periods;
    const double f = h->quarters / 4.0, row = f + (double)s / (double)plan->n_periods;
    static float table[PNR_STRETCH_STEPS + 1][PNR_STRETCH_TAPS];
    double(*x)[2] = malloc(n_look * sizeof *x), (*z)[2] = calloc(n, sizeof *z), best = 0;
    double(*d)[2] = malloc(2 * n_look * sizeof *d);

    assert_true(x != NULL && d != NULL && z != NULL);
    pnr_stretch_table(table);
    pnr_scene_generate(scene, 0, 0, n_look, x);
    double_rate((const double(*)[2])x, n_look, d);
    for (size_t t = 0; t < n_look; t++) {
        const pnr_stretch_place at = pnr_stretch_at(stretch, n_look, t);
        const double turns = row * (double)(t / n) + f * (double)(t % n) / (double)n;
        const double c = cos(2 * M_PI * turns), sine = -sin(2 * M_PI * turns);
        double y[2] = {0, 0};

        for (int i = 0; i < PNR_STRETCH_TAPS; i++) {
            const int64_t from = at.first + i;
            const double w = table[at.row][i] + at.part * (table[at.row + 1][i] - table[at.row][i]);

            if (from >= 0 && from < 2 * (int64_t)n_look) {
                y[0] += w * d[from][0];
                y[1] += w * d[from][1];
            }
        }
        z[t % n][0] += y[0] * c - y[1] * sine;
        z[t % n][1] += y[0] * sine + y[1] * c;
    }
    for (size_t k = 0; k < n; k++) {
        double re = 0, im = 0;

        for (size_t i = 0; i < n; i++) {
            const double *a = plan->references[i], *b = z[(i + k) % n];

            re += b[0] * a[0] + b[1] * a[1];
            im += b[1] * a[0] - b[0] * a[1];
        }
        best = fmax(best, re * re + im * im);
    }
    free(x);
    free(d);
    free(z);
    return best / ((double)n_look * (double)n_look);
}

/* A sonar of 10 kHz and an approaching target: the Doppler is positive, and the code is shortened.
 * The row of the target, with the stretch of this row, contains nearly the whole echo. With the
 * opposite stretch the row contains nearly nothing. */
TEST(a_moving_target_has_the_stretch_of_its_row)
{
    enum { DEGREE = 9, SAMPLES = 2, N = ((1 << DEGREE) - 1) * SAMPLES, K = 16, J = 26 };
    const double carrier = 10e3, rate = 48e3, speed = 1500;
    const double period = N / rate;
    /* The Doppler of a row is measured in the stretched look: J / (K Tr carrier) = gain / (1 +
     * gain). */
    const double share = J / (K * period * carrier), gain = share / (1 - share);
    const double velocity = gain * speed / (2 + gain);
    char text[512];
    pnr_config config;
    pnr_error error = {0};
    pnr_scene *scene;
    pnr_hypothesis *items;
    pnr_code *code;
    size_t n, found = 0;
    static double a[N][2];

    snprintf(text, sizeof text,
             "[source]\nrate_hz = %g\n[code]\ndegree = %d\nchip_rate_hz = %g\n[radar]\nspeed_mps = "
             "%g\ncarrier_hz = %g\n[dwell]\nperiods = %d\ncombine = doppler\n[doppler]\nmin_hz = "
             "-100\nmax_hz = 100\n[echo]\nnoise_rms = 0\n[target.1]\nrange_m = 20\nvelocity_mps = "
             "%.17g\namplitude = 1\n",
             rate, DEGREE, rate / SAMPLES, speed, carrier, K, velocity);
    accept_text(&config, text);
    assert_int_equal(pnr_scene_create(&config, &scene, &error), PNR_OK);
    assert_int_equal(pnr_code_create(&config, &code, &error), PNR_OK);
    assert_int_equal(pnr_code_sample(code, &config, N, a, &error), PNR_OK);
    assert_int_equal(pnr_hypotheses_create(&config, pnr_scene_radar(scene), &items, &n, &error),
                     PNR_OK);

    const pnr_plan plan = {.n_samples = N, .n_periods = K, .references = (const double(*)[2])a};

    for (size_t h = 0; h < n; h++)
        for (int64_t s = items[h].first_bin; s < items[h].first_bin + (int64_t)items[h].n_rows; s++)
            if (items[h].quarters * K / 4 + s == J) {
                const double right = strength(scene, &plan, &items[h], s, items[h].stretch);
                const double wrong = strength(scene, &plan, &items[h], s, -items[h].stretch);

                if (!(right > 0.9 && wrong < 0.1))
                    fail_msg("%g of the echo with the row's stretch, %g with the opposite", right,
                             wrong);
                found++;
            }
    assert_int_equal(found, 1);
    free(items);
    pnr_code_destroy(code);
    pnr_scene_destroy(scene);
    pnr_config_clear(&config);
}
