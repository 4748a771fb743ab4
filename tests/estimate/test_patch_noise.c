/* SPDX-License-Identifier: MIT */
/* The noise of a patch against sums over samples, term by term. */
#include "estimate/patch_noise.h"

#include "base/complex.h"
#include "tests/fixture/fit_patch_fixture.h"

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2, N = PNR_PATCH_SUMS, TRIALS = 5 };

/* sum_r,l h[r][l] exp(2 pi i (f_r t_n / N + F_r (p - (K - 1)/2))) a(n - l) */
static double complex sample(const pnr_plan *plan, const pnr_echo_rows *rows,
                             const pnr_patch_place *place, const pnr_vector *h, size_t p, long n)
{
    const long length = (long)plan->n_samples;
    double complex sum = 0;

    for (int r = rows->first; r < rows->end; r++) {
        const map_place row = map_row(plan, place->row + (size_t)r - MIDDLE);
        const double slow = (double)p - ((double)plan->n_periods - 1) / 2;
        const double time = ((double)n - (double)(length - 1) / 2) / (double)length;
        const double angle = 2 * M_PI * (row.rotation * time + row.bins * slow);

        for (int j = 0; j < J; j++) {
            const long m = n - place->lag - (j - MIDDLE);
            const double *a = plan->references[(m % length + length) % length];

            if (!plan->linear || (m >= 0 && m < length))
                sum += pnr_cis(angle) * h[r][j] * CMPLX(a[0], a[1]);
        }
    }
    return sum;
}

/* Compares the noise of random weights at random places. limit: of the rms over all places of the
 * error of a covariance, over the root of both variances. */
static void agrees(const char *const *settings, double limit)
{
    map_bench b;
    pnr_patch_noise *noise;
    pnr_echo_model *model;
    double square = 0;

    open_map_bench(&b, settings);

    const pnr_plan *plan = &b.setup->plan;
    const long length = (long)plan->n_samples;

    assert_int_equal(pnr_echo_model_create(b.setup, 0, &model), PNR_OK);
    assert_true(pnr_echo_model_is_close(model) == (plan->n_periods == 1));
    assert_int_equal(pnr_patch_noise_create(b.setup, &noise), PNR_OK);
    for (int trial = 0; trial < TRIALS; trial++) {
        const size_t row = (size_t)(uniform() * (double)pnr_plan_rows(plan));
        const long lag = (long)plan->gate_first + (long)(uniform() * (double)plan->gate_count);
        const pnr_patch_place place = {.row = row, .lag = lag};
        const long first = plan->linear ? lag - MIDDLE : 0;
        const long end = plan->linear ? lag + MIDDLE + length : length;
        double complex got[N][N], want[N][N] = {{0}};
        double weight = 0;
        pnr_patch h[N];
        pnr_echo_rows rows;

        for (double *x = (double *)h; x < (double *)h + N * J * J * 2; x++)
            *x = uniform() - 0.5;
        pnr_echo_model_rows(model, row, true, &rows);
        pnr_patch_noise_covariance(noise, model->slow, &rows, &place, h, N, got);
        for (size_t p = 0; p < plan->n_periods; p++) {
            const double w = plan->taper != NULL ? plan->taper[p] : 1;

            weight += w * w;
            for (long n = first; n < end; n++) {
                double complex v[N];

                for (int i = 0; i < N; i++)
                    v[i] = sample(plan, &rows, &place, h[i], p, n);
                for (int i = 0; i < N; i++)
                    for (int j = 0; j < N; j++)
                        want[i][j] += w * w * (conj(v[i]) * v[j]);
            }
        }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                const double energy = pnr_waveform_energy(b.setup->codes[0].waveform);
                const double scale = sqrt(creal(got[i][i]) * creal(got[j][j]));

                square += pnr_power((got[i][j] - want[i][j] / weight / energy) / scale);
            }
    }

    const double rms = sqrt(square / (TRIALS * N * N));

    print_message("%s, %zu x %zu, %zu rows: %.1e\n", b.setup->codes[0].code->name, plan->n_periods,
                  plan->n_samples, pnr_plan_rows(plan), rms);
    pnr_patch_noise_destroy(noise);
    pnr_echo_model_destroy(model);
    close_map_bench(&b);
    assert_true(rms < limit);
}

TEST(it_is_that_of_the_samples)
{
#define WITH(...)                                                                                  \
    (const char *const[]){"doppler.min_hz=-30000", "doppler.max_hz=30000", __VA_ARGS__, NULL}
    /* Blocks of one sample: exact. */
    agrees(WITH("code.type=random", "code.length=61", "doppler.step=half"), 1e-6);
    agrees(WITH("code.degree=5", "doppler.step=quarter"), 1e-6);
    agrees(WITH("code.type=random", "code.length=63", "doppler.step=half", "dwell.combine=doppler",
                "dwell.periods=4", "dwell.taper=hann"),
           1e-4);
    /* Longer ones, and a linear correlation's ends. In 150 runs log(rms) has the mean log(0.0039)
     * and log(0.0026), and the standard deviation 0.21 and 0.12. The limits are 5 of these. */
    agrees(WITH("code.type=random", "code.length=700", "doppler.step=quarter"), 0.012);
    agrees(WITH("code.type=random", "code.length=400", "doppler.step=half",
                "window.correlation=linear", "radar.min_range_m=3000", "radar.max_range_m=9000"),
           0.005);
}

TEST(nothing_is_destroyed)
{
    pnr_patch_noise_destroy(NULL);
}
