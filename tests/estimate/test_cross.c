/* SPDX-License-Identifier: MIT */
/* The correlations of codes at 17 lags against their values one by one, in both orders of a pair of
 * complex codes, and the overlap of the correlation of one code. */
#include "estimate/cross.h"

#include "base/complex.h"
#include "tests/fixture/fit_patch_fixture.h"

enum { J = PNR_NEIGHBOURS };

static const char *const two[] = {"code.1.type=random",
                                  "code.1.length=57",
                                  "code.1.seed=1",
                                  "code.2.type=random",
                                  "code.2.length=57",
                                  "code.2.seed=2",
                                  NULL};
static const char *const one[] = {"code.type=zadoff-chu", "code.length=57", NULL};

TEST(a_point_of_the_table_serves_all_lags_and_both_orders)
{
    pnr_cross *cross;
    map_bench b;

    open_map_bench(&b, two);
    assert_int_equal(pnr_cross_create(b.setup, &cross), PNR_OK);
    for (int trial = 0; trial < 200; trial++) {
        const double t = trial % 4 == 0 ? trial - 100 : 300 * (uniform() - 0.5);
        const long lag = (long)(300 * (uniform() - 0.5));
        const size_t of = (size_t)trial % 2, in = (size_t)(trial / 2) % 2;
        const double complex factor = CMPLX(uniform(), uniform());
        double complex run[J], sum[J] = {0};
        pnr_waveform_point point;

        pnr_waveform_locate(b.setup->codes[0].autocorrelation, t, &point);
        pnr_cross_add(cross, of, in, &point, lag, factor, sum);
        pnr_cross_run(cross, of, in, t + (double)lag, run, NULL);
        for (int i = 0; i < J; i++) {
            const double complex at = pnr_cross_at(cross, of, in, t + (double)(lag + i));

            assert_true(cabs(sum[i] - factor * at) < 1e-11);
            assert_true(cabs(run[i] - at) < 1e-11);
        }
    }
    pnr_cross_destroy(cross);
    close_map_bench(&b);
}

TEST(the_overlap_is_the_sum_over_all_lags)
{
    double complex value, overlap;
    pnr_cross *cross;
    map_bench b;

    open_map_bench(&b, one);
    assert_int_equal(pnr_cross_create(b.setup, &cross), PNR_OK);
    assert_true(pnr_cross_has_overlap(cross));

    const double n = (double)b.setup->plan.n_samples;

    for (int trial = 0; trial < 20; trial++) {
        const double u = 300 * (uniform() - 0.5);
        double complex sum = 0;

        for (size_t k = 0; k < b.setup->plan.n_samples; k++)
            sum += pnr_cross_at(cross, 0, 0, (double)k + u) *
                   conj(pnr_cross_at(cross, 0, 0, (double)k));
        pnr_cross_overlap(cross, u, &value, &overlap);
        assert_true(cabs(value) <= pnr_cross_most(cross, 0, 0, fabs(remainder(u, n))));
        assert_true(cabs(overlap) <= pnr_cross_most_overlap(cross, fabs(remainder(u, n))));
        assert_true(cabs(value - pnr_cross_at(cross, 0, 0, u)) < 1e-11);
        assert_true(cabs(overlap - sum) < 1e-7);
    }
    pnr_cross_destroy(cross);
    close_map_bench(&b);

    open_map_bench(&b, two);
    assert_int_equal(pnr_cross_create(b.setup, &cross), PNR_OK);
    assert_false(pnr_cross_has_overlap(cross));
    pnr_cross_destroy(cross);
    close_map_bench(&b);
}
