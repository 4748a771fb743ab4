/* SPDX-License-Identifier: MIT */
/* Tests CFAR factors against closed forms, against another method of integration, and against
 * random noise. */
#include "setup/cfar_factor.h"

#include "setup/threshold.h"

#include "tests/fixture/random.h"
#include "tests/fixture/test.h"
#include "tests/golden/cfar.h"

static const double pfas[] = {0.5, 0.1, 1e-3, 1e-6, 1e-9, 1e-12};
enum { N_PFAS = sizeof pfas / sizeof pfas[0] };

static void near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("%.17g, not %.17g", got, want);
}

/* With one look and the mean of m cells, Pfa = (1 + f / m)^-m. */
TEST(test_mean_of_one_look)
{
    for (size_t p = 0; p < N_PFAS; p++)
        for (size_t m = 1; m <= 512; m = 2 * m + m / 3) {
            const double f = pnr_cfar_factor(PNR_CFAR_CA, pfas[p], 1, m / 3, m - m / 3);

            near(pow(1 + f / (double)m, -(double)m), pfas[p], 1e-9);
        }
}

/* With any number of looks, the ratio of two gamma variables gives a Beta variable. */
TEST(test_mean_of_looks)
{
    static const size_t looks[] = {1, 2, 7, 31, 1000, 65535};

    for (size_t p = 0; p < N_PFAS; p++)
        for (size_t l = 0; l < sizeof looks / sizeof looks[0]; l++)
            for (size_t m = 1; m <= 128; m *= 4) {
                const double f = pnr_cfar_factor(PNR_CFAR_CA, pfas[p], looks[l], m, 0);
                const double k = (double)looks[l], share = 1 / (1 + f / (double)m);

                /* lgamma in pnr_beta_i has the greater rounding error */
                near(pnr_beta_i((double)m * k, k, share), pfas[p],
                     fmax(1e-9, 1e-13 * k * (double)m));
            }
}

/* With one look and rank k of m cells, Pfa is the product over i < k of (m - i) / (m - i + f) (H.
 * Rohling 1983). */
TEST(test_rank_of_one_look)
{
    for (size_t p = 0; p < N_PFAS; p++)
        for (size_t m = 1; m <= 512; m = m * 2 + 1) {
            const double f = pnr_cfar_factor(PNR_CFAR_OS, pfas[p], 1, m, 0);
            const size_t rank = (3 * m + 3) / 4;
            double pfa = 1;

            for (size_t i = 0; i < rank; i++)
                pfa *= (double)(m - i) / ((double)(m - i) + f);
            near(pfa, pfas[p], 1e-9);
        }
}

/* Returns sum over k < n of C(n - 1 + k, k) (2 + f/n)^-(n + k). This is half of the Pfa of SO for
 * one look and n cells on each side (M. Weiss 1982). The Pfa of GO is 2 (1 + f/n)^-n minus that of
 * SO (V. G. Hansen and J. H. Sawyers 1980). */
static double half_of_lesser(double n, double f)
{
    double sum = 0;

    for (double k = 0; k < n; k++)
        sum += exp(lgamma(n + k) - lgamma(k + 1) - lgamma(n) - (n + k) * log(2 + f / n));
    return sum;
}

TEST(test_sides_of_one_look)
{
    for (size_t p = 0; p < N_PFAS; p++)
        for (size_t n = 1; n <= 256; n *= 2) {
            const double so = pnr_cfar_factor(PNR_CFAR_SO, pfas[p], 1, n, n);
            const double go = pnr_cfar_factor(PNR_CFAR_GO, pfas[p], 1, n, n);
            const double side = pow(1 + go / (double)n, -(double)n);

            near(2 * half_of_lesser((double)n, so), pfas[p], 1e-9);
            /* the difference loses digits if both terms are nearly equal */
            near(2 * side - 2 * half_of_lesser((double)n, go), pfas[p],
                 1e-9 + 1e-13 * side / pfas[p]);
        }
}

/* Factors for many looks, and for different numbers of cells on the two sides; see
 * golden/cfar.py. */
TEST(test_golden)
{
    for (size_t i = 0; i < sizeof golden_cfar / sizeof golden_cfar[0]; i++) {
        const double pfa = golden_cfar[i].pfa, step = 1e-4;
        const double f = pnr_cfar_factor(golden_cfar[i].kind, pfa, golden_cfar[i].looks,
                                         golden_cfar[i].before, golden_cfar[i].after);
        const double further =
            pnr_cfar_factor(golden_cfar[i].kind, pfa * (1 + step), golden_cfar[i].looks,
                            golden_cfar[i].before, golden_cfar[i].after);
        const double off = (f - golden_cfar[i].factor) / (further - f) * step;

        if (!(fabs(off) < 1e-9))
            fail_msg("case %zu: %.15g, not %.15g: %.2g of Pfa", i, f, golden_cfar[i].factor, off);
        assert_true(f == pnr_cfar_factor(golden_cfar[i].kind, pfa, golden_cfar[i].looks,
                                         golden_cfar[i].before, golden_cfar[i].after));
    }
}

TEST(test_mirror_and_no_cells)
{
    for (int kind = PNR_CFAR_CA; kind <= PNR_CFAR_OS; kind++) {
        near(pnr_cfar_factor(kind, 1e-5, 3, 4, 11), pnr_cfar_factor(kind, 1e-5, 3, 11, 4), 1e-13);
        near(pnr_cfar_factor(kind, 1e-5, 3, 0, 11), pnr_cfar_factor(kind, 1e-5, 3, 11, 0), 1e-13);
        assert_true(isinf(pnr_cfar_factor(kind, 1e-5, 3, 0, 0)));
    }
    near(pnr_cfar_factor(PNR_CFAR_GO, 1e-5, 3, 0, 11), pnr_cfar_factor(PNR_CFAR_CA, 1e-5, 3, 5, 6),
         1e-13);
}

/* The table has a factor for exactly those pairs of numbers that the cells of a line have. The test
 * counts them cell by cell. */
TEST(test_table)
{
    enum { TRAINING = 5, SIDE = TRAINING + 1, LOOKS = 3 };

    for (size_t n_cells = 0; n_cells < 40; n_cells++) {
        const pnr_hypothesis rows = {.n_rows = (uint32_t)n_cells};
        const bool is_gate = n_cells % 5 == 1, is_linear = n_cells % 5 == 2;
        const pnr_plan plan = {
            .n_looks = LOOKS,
            .n_lags = is_linear ? n_cells : 100,
            .gate_count = is_gate ? n_cells : 100,
            .linear = is_linear,
            .filter = is_gate ? &(const double[2]){0} : NULL,
            .n_hypotheses = 1,
            .hypotheses = &rows,
            .cfar = {.kind = PNR_CFAR_GO,
                     .axis = n_cells == 0 || is_gate || is_linear ? PNR_CFAR_ALONG_LAGS
                                                                  : PNR_CFAR_ALONG_ROWS,
                     .guard = n_cells % 3,
                     .training = TRAINING,
                     .stride = 1 + n_cells % 2},
        };
        double factor[LOOKS][SIDE][SIDE];
        bool is_there[SIDE][SIDE] = {{false}};

        pnr_cfar_factors(&plan, 1e-4, &factor[0][0][0]);
        is_there[TRAINING][TRAINING] = n_cells == 0;
        for (size_t p = 0; p < n_cells; p++) {
            size_t before = 0, after = 0;

            for (size_t i = 0; i < TRAINING; i++) {
                const size_t away = plan.cfar.guard + 1 + i * plan.cfar.stride;

                before += away <= p;
                after += p + away < n_cells;
            }
            is_there[before][after] = before + after > 0;
        }
        for (size_t looks = 1; looks <= LOOKS; looks++)
            for (size_t b = 0; b < SIDE; b++)
                for (size_t a = 0; a < SIDE; a++) {
                    assert_true(isinf(factor[looks - 1][b][a]) == !is_there[b][a]);
                    if (is_there[b][a])
                        near(factor[looks - 1][b][a],
                             pnr_cfar_factor(PNR_CFAR_GO, 1e-4, looks, b, a), 1e-11);
                }
    }
}

/* Most factors above 32 looks are interpolated, with an error of at most 2e-4. */
TEST(test_many_looks)
{
    enum { TRAINING = 8, SIDE = TRAINING + 1, LOOKS = 2000 };
    const pnr_plan plan = {
        .n_looks = LOOKS,
        .n_lags = 100,
        .gate_count = 100,
        .cfar = {.kind = PNR_CFAR_OS, .guard = 1, .training = TRAINING, .stride = 1},
    };
    double(*factor)[SIDE][SIDE] = malloc(LOOKS * sizeof *factor);

    assert_non_null(factor);
    pnr_cfar_factors(&plan, 1e-6, &factor[0][0][0]);
    for (size_t looks = 1; looks <= LOOKS; looks += 1 + looks / 20)
        near(factor[looks - 1][TRAINING][TRAINING],
             pnr_cfar_factor(PNR_CFAR_OS, 1e-6, looks, TRAINING, TRAINING),
             looks <= 32 ? 1e-11 : 2e-4);
    near(factor[LOOKS - 1][TRAINING][TRAINING],
         pnr_cfar_factor(PNR_CFAR_OS, 1e-6, LOOKS, TRAINING, TRAINING), 1e-11);
    free(factor);
}

/* With one look and the mean of m cells, the required SNR is S = (pfa^(-1/m) - 2^(1/m)) / (2^(1/m)
 * - 1). At known noise it is log(pfa) / log(1/2) - 1. */
TEST(test_loss)
{
    for (double m = 8; m <= 128; m *= 2) {
        const double half = exp2(1 / m), snr = (pow(1e-6, -1 / m) - half) / (half - 1);

        near(pnr_cfar_loss_db(PNR_CFAR_CA, 1e-6, 1, (size_t)m / 2),
             10 * log10(snr / (log(1e-6) / log(0.5) - 1)), 1e-4);
    }
    /* The kinds have the order of the textbook, and more looks reduce the loss. */
    const double ca = pnr_cfar_loss_db(PNR_CFAR_CA, 1e-6, 1, 16);
    const double go = pnr_cfar_loss_db(PNR_CFAR_GO, 1e-6, 1, 16);
    const double os = pnr_cfar_loss_db(PNR_CFAR_OS, 1e-6, 1, 16);
    const double so = pnr_cfar_loss_db(PNR_CFAR_SO, 1e-6, 1, 16);

    print_message("loss at 1e-6, 16 cells a side: CA %.3f, GO %.3f, OS %.3f, SO %.3f dB\n", ca, go,
                  os, so);
    assert_true(0 < ca && ca < go && go < os && os < so);
    assert_true(pnr_cfar_loss_db(PNR_CFAR_SO, 1e-6, 8, 16) < so / 2);
}

static double cell(size_t looks)
{
    double product = 1;

    for (size_t l = 0; l < looks; l++)
        product *= uniform();
    return -log(product);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double statistic(pnr_cfar_kind kind, size_t looks, size_t before, size_t after)
{
    double cells[32], sum_before = 0, sum_after = 0;
    const size_t m = before + after;

    for (size_t i = 0; i < m; i++)
        *(i < before ? &sum_before : &sum_after) += cells[i] = cell(looks);
    if (kind == PNR_CFAR_OS) {
        qsort(cells, m, sizeof *cells, ascending);
        return cells[(3 * m + 3) / 4 - 1];
    }
    if (kind == PNR_CFAR_CA)
        return (sum_before + sum_after) / (double)m;
    return kind == PNR_CFAR_GO ? fmax(sum_before / (double)before, sum_after / (double)after)
                               : fmin(sum_before / (double)before, sum_after / (double)after);
}

/* Each case expects 200 false alarms. With a limit of 5.5 standard deviations, the 12 cases fail
 * once in two million runs. */
TEST(test_drawn)
{
    enum { TRIALS = 20000 };
    const double pfa = 0.01, expected = TRIALS * pfa;

    for (int kind = PNR_CFAR_CA; kind <= PNR_CFAR_OS; kind++)
        for (size_t c = 0; c < 3; c++) {
            static const size_t cases[3][3] = {{1, 4, 4}, {3, 6, 2}, {5, 1, 9}};
            const size_t looks = cases[c][0], before = cases[c][1], after = cases[c][2];
            const double f = pnr_cfar_factor(kind, pfa, looks, before, after);
            size_t n_above = 0;

            for (size_t i = 0; i < TRIALS; i++)
                n_above += cell(looks) > f * statistic(kind, looks, before, after);
            if (fabs((double)n_above - expected) > 5.5 * sqrt(expected))
                fail_msg("kind %d, %zu looks: %zu of %d, %g expected", kind, looks, n_above, TRIALS,
                         expected);
        }
}
