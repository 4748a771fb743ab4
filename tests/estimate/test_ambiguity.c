/* SPDX-License-Identifier: MIT */
/* The cross-ambiguity against its sum term by term, cyclic and linear, and its derivatives. */
#include "estimate/ambiguity.h"

#include "base/complex.h"
#include "tests/fixture/fit_patch_fixture.h"

enum { LAGS = PNR_AMBIGUITY_LAGS };

/* chi(k) with the echo's samples given. */
static double complex direct(const pnr_plan *plan, const double complex *echo, double e, long k)
{
    const long n = (long)plan->n_samples;
    double complex sum = 0;
    double energy = 0;

    for (long m = 0; m < n; m++) {
        const long i = plan->linear ? m + k : ((m + k) % n + n) % n;
        const double angle = 2 * M_PI * e * ((double)i - (double)(n - 1) / 2) / (double)n;
        const double complex a = CMPLX(plan->references[m][0], plan->references[m][1]);

        sum += echo[(i % n + n) % n] * pnr_cis(angle) * conj(a);
        energy += pnr_power(a);
    }
    return sum / energy;
}

static void is_near(double complex x, double complex y, double limit)
{
    assert_true(fabs(creal(x - y)) < limit && fabs(cimag(x - y)) < limit);
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
    double complex *echo = malloc(3 * n * sizeof *echo), *before = echo + n, *after = echo + 2 * n;

    for (int trial = 0; trial < 20; trial++) {
        const double delay = uniform() * (double)n, e = 20 * (uniform() - 0.5);
        const long first = (long)(uniform() * (double)n) - (plan->linear ? 0 : 9);
        double complex chi[LAGS], by_delay[LAGS], by_e[LAGS];

        assert_int_equal(pnr_waveform_shift(b.setup->codes[0].waveform, delay, echo), PNR_OK);
        pnr_ambiguity_set(ambiguity, 0, delay);
        pnr_ambiguity_at(ambiguity, 0, e, first, LAGS, chi, by_delay, by_e);
        for (long l = 0; l < LAGS; l++)
            assert_true(cabs(chi[l] - direct(plan, echo, e, first + l)) < 1e-7);
        for (long l = 0; l < LAGS; l++)
            is_near(by_e[l],
                    (direct(plan, echo, e + h, first + l) - direct(plan, echo, e - h, first + l)) /
                        (2 * h),
                    1e-5);
        assert_int_equal(pnr_waveform_shift(b.setup->codes[0].waveform, delay - h, before), PNR_OK);
        assert_int_equal(pnr_waveform_shift(b.setup->codes[0].waveform, delay + h, after), PNR_OK);
        for (long l = 0; l < LAGS; l++)
            is_near(by_delay[l],
                    (direct(plan, after, e, first + l) - direct(plan, before, e, first + l)) /
                        (2 * h),
                    1e-4);

        double complex again[LAGS];

        pnr_ambiguity_at(ambiguity, 0, e, first, LAGS, again, NULL, NULL); /* the stored answer */
        assert_memory_equal(again, chi, sizeof chi);
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
