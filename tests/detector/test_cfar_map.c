/* SPDX-License-Identifier: MIT */
/* CFAR by statistics, on maps of drawn noise through the search that the engines share. */
#include "tests/fixture/detection_fixture.h"

#include "engine/plan.h"
#include "engine/search.h"
#include "setup/cfar_factor.h"

static const char *const kinds[] = {
    [PNR_CFAR_CA] = "CA", [PNR_CFAR_GO] = "GO", [PNR_CFAR_SO] = "SO", [PNR_CFAR_OS] = "OS"};

/* A map of n_looks looks, [n_rows][n_lags], and what searches it. */
typedef struct field {
    pnr_hypothesis rows;
    pnr_plan plan;
    double threshold;
    double *factor;
    float *power;
} field;

static void open_field(field *f, size_t n_rows, size_t n_lags, size_t n_looks, pnr_cfar cfar)
{
    const size_t side = cfar.training + 1;

    *f = (field){.rows = {.n_rows = (uint32_t)n_rows}, .threshold = 1};
    f->plan = (pnr_plan){
        .n_samples = n_lags,
        .n_codes = 1,
        .n_hypotheses = 1,
        .hypotheses = &f->rows,
        .n_periods = 1,
        .n_looks = n_looks,
        .n_lags = n_lags,
        .oversample = 1,
        .gate_count = n_lags,
        .cfar = cfar,
        .exclusion_cells = 1,
        .exclusion_rows = 1,
        .threshold = &f->threshold,
        .max_candidates = 1,
    };
    f->factor = calloc(n_looks * side * side, sizeof *f->factor);
    f->power = malloc(n_rows * n_lags * sizeof *f->power);
    assert_true(f->factor != NULL && f->power != NULL);
    f->plan.cfar.factor = f->factor;
}

static void close_field(field *f)
{
    free(f->factor);
    free(f->power);
}

static float draw(size_t n_looks)
{
    double product = 1;

    for (size_t l = 0; l < n_looks; l++)
        product *= uniform();
    return (float)-log(product);
}

/* Cells above. */
static size_t count(const field *f)
{
    pnr_dwell dwell = {.n_periods = 1, .floor = 1};
    pnr_candidate candidate;

    pnr_search_dwell(&f->plan, 1, f->power, f->plan.n_looks, NULL, NULL, &dwell, &candidate);
    return dwell.n_above;
}

/*
 * The cell's Pfa of all four kinds, ends of lines included. False alarms that share training cells
 * come in company: the variance of their number is 1.0 to 1.15 times its mean (600 runs of each).
 * So 1.2 * 36 / share^2 of them make `share` 6 standard deviations: less than one failure in 10^7
 * runs of the program.
 */
static void false_alarms(pnr_cfar cfar, size_t n_looks, double pfa, double share)
{
    enum { ROWS = 48, LAGS = 4096 };
    const double expected = 1.2 * 36 / (share * share) / SHARE;
    const size_t n_maps = (size_t)ceil(expected / (pfa * ROWS * LAGS));
    size_t n_above[PNR_CFAR_OS + 1] = {0};
    field f;

    open_field(&f, ROWS, LAGS, n_looks, cfar);
    for (size_t m = 0; m < n_maps; m++) {
        for (size_t i = 0; i < (size_t)ROWS * LAGS; i++)
            f.power[i] = draw(n_looks);
        for (int kind = PNR_CFAR_CA; kind <= PNR_CFAR_OS; kind++) {
            f.plan.cfar.kind = (pnr_cfar_kind)kind;
            pnr_cfar_factors(&f.plan, pfa, f.factor);
            n_above[kind] += count(&f);
        }
    }
    for (int kind = PNR_CFAR_CA; kind <= PNR_CFAR_OS; kind++) {
        const double measured = (double)n_above[kind] / ((double)n_maps * ROWS * LAGS);

        print_message("%s along %s, %zu looks: %.4g, asked %.4g (%+.1f %%)\n", kinds[kind],
                      cfar.axis == PNR_CFAR_ALONG_LAGS ? "lags" : "rows", n_looks, measured, pfa,
                      100 * (measured / pfa - 1));
        assert_on_average(fabs(measured / pfa - 1) < share);
    }
    close_field(&f);
}

TEST(test_false_alarms_permille)
{
    const pnr_cfar lags = {.guard = 2, .training = 16, .stride = 1};
    const pnr_cfar rows = {.axis = PNR_CFAR_ALONG_ROWS, .guard = 1, .training = 8, .stride = 2};

    false_alarms(lags, 1, 1e-3, 0.1);
    false_alarms(lags, 5, 1e-3, 0.1);
    false_alarms(rows, 1, 1e-3, 0.1);
    false_alarms(rows, 5, 1e-3, 0.1);
}

TEST(test_false_alarms_rare)
{
    const pnr_cfar lags = {.guard = 2, .training = 16, .stride = 1};

    false_alarms(lags, 1, 1e-5, 0.2);
}

/* At an edge where clutter 20 dB stronger begins, at each distance from it. */
TEST(test_clutter_edge)
{
    enum { LAGS = 4096, EDGE = 2000, REACH = 24, TRIALS = 60000 / SHARE };
    const double pfa = 1e-3;
    const pnr_cfar cfar = {.guard = 2, .training = 16, .stride = 1};
    double worst[PNR_CFAR_OS + 1] = {0};
    field f;

    open_field(&f, 1, LAGS, 1, cfar);
    for (int kind = PNR_CFAR_CA; kind <= PNR_CFAR_OS; kind++) {
        f.plan.cfar.kind = (pnr_cfar_kind)kind;
        pnr_cfar_factors(&f.plan, pfa, f.factor);
        for (size_t at = EDGE - REACH; at < EDGE + REACH;
             at += at < EDGE || at >= EDGE + 4 ? 4 : 1) {
            size_t n_above = 0;

            f.plan.gate_first = at;
            f.plan.gate_count = 1;
            for (size_t t = 0; t < TRIALS; t++) {
                for (size_t i = EDGE - 2 * REACH; i < EDGE + 2 * REACH; i++)
                    f.power[i] = draw(1) * (i < EDGE ? 1 : 100);
                n_above += count(&f);
            }
            worst[kind] = fmax(worst[kind], (double)n_above / TRIALS);
        }
        print_message("%s at an edge of 20 dB: at most %.2g of 1e-3\n", kinds[kind], worst[kind]);
    }
    close_field(&f);
    /* In clutter alone a cell passes GO's factor with (1 + f/n)^-n: 3.2 times 1e-3 for n = 16, 9.4
     * times 1e-5, and with n = 32 7.1 times 1e-6. */
    assert_on_average(worst[PNR_CFAR_GO] < 10 * pfa);
    assert_on_average(worst[PNR_CFAR_CA] > 10 * pfa && worst[PNR_CFAR_SO] > 100 * pfa);
}
