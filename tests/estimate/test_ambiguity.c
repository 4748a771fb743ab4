/* SPDX-License-Identifier: MIT */
/* The cross-ambiguity against its sum term by term, cyclic and linear, and its derivatives. */
#include "estimate/ambiguity.h"

#include "tests/fixture/fit_patch_fixture.h"

enum { LAGS = PNR_AMBIGUITY_LAGS };

/* chi(k) with the echo's samples given. */
static void direct(const pnr_plan *plan, const double (*echo)[2], double e, long k, double out[2])
{
    const long n = (long)plan->n_samples;
    double energy = 0;

    out[0] = out[1] = 0;
    for (long m = 0; m < n; m++) {
        const long i = plan->linear ? m + k : ((m + k) % n + n) % n;
        const double angle = 2 * M_PI * e * ((double)i - (double)(n - 1) / 2) / (double)n;
        const double *x = echo[(i % n + n) % n], *a = plan->references[m];
        const double re = x[0] * cos(angle) - x[1] * sin(angle);
        const double im = x[0] * sin(angle) + x[1] * cos(angle);

        out[0] += re * a[0] + im * a[1];
        out[1] += im * a[0] - re * a[1];
        energy += a[0] * a[0] + a[1] * a[1];
    }
    out[0] /= energy;
    out[1] /= energy;
}

static void one_code(const char *const *settings)
{
    const double h = 1e-4;
    pnr_ambiguity *ambiguity;
    map_bench b;

    open_map_bench(&b, settings);
    assert_int_equal(pnr_ambiguity_create(b.setup, &ambiguity), PNR_OK);

    const pnr_plan *plan = &b.setup->plan;
    const size_t n = plan->n_samples;
    double(*echo)[2] = malloc(n * sizeof *echo);

    for (int trial = 0; trial < 20; trial++) {
        const double delay = uniform() * (double)n, e = 20 * (uniform() - 0.5);
        const long first = (long)(uniform() * (double)n) - (plan->linear ? 0 : 9);
        double chi[LAGS][2], by_delay[LAGS][2], by_e[LAGS][2], want[2];
        double before[LAGS][2], after[LAGS][2];

        assert_int_equal(pnr_waveform_shift(b.setup->codes[0].waveform, delay, echo), PNR_OK);
        pnr_ambiguity_set(ambiguity, 0, delay);
        pnr_ambiguity_at(ambiguity, 0, e, first, LAGS, chi, by_delay, by_e);
        for (long l = 0; l < LAGS; l++) {
            direct(plan, (const double(*)[2])echo, e, first + l, want);
            assert_true(hypot(chi[l][0] - want[0], chi[l][1] - want[1]) < 1e-7);
        }
        pnr_ambiguity_at(ambiguity, 0, e - h, first, LAGS, before, NULL, NULL);
        pnr_ambiguity_at(ambiguity, 0, e + h, first, LAGS, after, NULL, NULL);
        for (long l = 0; l < LAGS; l++)
            for (int c = 0; c < 2; c++)
                assert_true(fabs(by_e[l][c] - (after[l][c] - before[l][c]) / (2 * h)) < 1e-5);
        pnr_ambiguity_set(ambiguity, 0, delay - h);
        pnr_ambiguity_at(ambiguity, 0, e, first, LAGS, before, NULL, NULL);
        pnr_ambiguity_set(ambiguity, 0, delay + h);
        pnr_ambiguity_at(ambiguity, 0, e, first, LAGS, after, NULL, NULL);
        for (long l = 0; l < LAGS; l++)
            for (int c = 0; c < 2; c++)
                assert_true(fabs(by_delay[l][c] - (after[l][c] - before[l][c]) / (2 * h)) < 1e-4);
    }
    free(echo);
    pnr_ambiguity_destroy(ambiguity);
    close_map_bench(&b);
}

TEST(it_is_its_sum)
{
    static const char *const even[] = {"code.type=random", "code.length=128", NULL};

    one_code(map_random);
    one_code(map_chu);
    one_code(map_linear);
    one_code(even);
}

TEST(nothing_is_destroyed)
{
    pnr_ambiguity_destroy(NULL);
}
