/* SPDX-License-Identifier: MIT */
/* Creates and destroys the model of an echo in a map. Fills the model's tables over lags. */
#include "estimate/echo_model.h"

#include "base/complex.h"
#include "base/transform.h"
#include "engine/plan.h"
#include "estimate/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

static const double loading = 1e-4; /* diagonal loading: oversampled lags are nearly dependent */

/* Returns the greatest difference of chi and the smooth chi at e = 1/8 bin, divided by e. Tries
 * several delays, because chi also depends on the place where the code wraps around. */
static double roughness_of(pnr_echo_model *model, size_t code)
{
    enum { SEAMS = 4 };
    const double e = 0.125;
    const size_t n = model->setup->plan.n_samples;
    double worst = 0;

    if (model->setup->plan.filter != NULL)
        return 0; /* chi does not describe the output of the least-squares filter */
    for (size_t s = 0; s < SEAMS; s++) {
        const long lag = (long)(s * n / SEAMS + n / 7);
        pnr_vector smooth, chi;

        pnr_echo_model_lags(&model->codes[code], 0, 0, smooth, NULL);
        pnr_ambiguity_set(model->ambiguity, code, (double)lag);
        pnr_ambiguity_at(model->ambiguity, code, e, lag - MIDDLE, J, chi, NULL, NULL);
        for (int j = 0; j < J; j++)
            worst = fmax(worst, cabs(chi[j] - pnr_echo_model_tone(model, e, NULL) * smooth[j]));
    }
    return worst / e;
}

/* Tabulates the sum of |chi(k, g)|^2 over all lags k, for whole bins g. This is the transform of
 * |R(k)/R(0)|^2. */
static int tabulate_spread(const pnr_setup *setup, pnr_echo_lags *code)
{
    const pnr_plan *plan = &setup->plan;
    const size_t n = plan->n_samples;
    double complex *r = malloc(n * sizeof *r);
    double first = 0, last = 0;

    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const double bins = pnr_plan_hypothesis(plan, h).quarters / 4.0;

        first = fmin(first, bins);
        last = fmax(last, bins);
    }
    code->n_spread = (size_t)fmin(last - first + 8, (double)n / 2);
    code->spread = malloc(code->n_spread * sizeof *code->spread);

    int status = r == NULL || code->spread == NULL ? PNR_ENOMEMORY : PNR_OK;

    if (status == PNR_OK)
        pnr_waveform_run(code->autocorrelation, 0, n, r, NULL);
    for (size_t k = 0; k < n && status == PNR_OK; k++)
        r[k] = pnr_power(r[k]);
    if (status == PNR_OK)
        status = pnr_transform_forward((double(*)[2])r, n);
    for (size_t g = 0; g < code->n_spread && status == PNR_OK; g++)
        code->spread[g] = creal(r[g]);
    free(r);
    return status;
}

static int fill_code(pnr_echo_model *model, size_t c)
{
    pnr_echo_lags *code = &model->codes[c];

    code->autocorrelation = model->setup->codes[c].autocorrelation;
    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++)
            code->p[i][j] = pnr_waveform_at(code->autocorrelation, i - j);
    memcpy(code->w, code->p, sizeof code->w);
    for (int i = 0; i < J; i++)
        code->w[i][i] += loading;
    pnr_matrix_invert(code->w);
    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++)
            code->crowd += pnr_power(code->p[i][j]) / J;
    code->bandwidth = pnr_waveform_bandwidth(model->setup->codes[c].waveform);
    code->roughness = roughness_of(model, c);
    return tabulate_spread(model->setup, code);
}

static void list_rows(pnr_echo_model *model)
{
    const pnr_plan *plan = &model->setup->plan;
    pnr_echo_row *row = model->rows;

    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const pnr_hypothesis at = pnr_plan_hypothesis(plan, h);
        const double f = at.quarters / 4.0;

        for (size_t i = 0; i < at.n_rows; i++) {
            const double s = at.first_bin + (double)i;

            *row++ = (pnr_echo_row){f + s / (double)plan->n_periods, f, at.stretch, h};
        }
    }
}

int pnr_echo_model_create(const pnr_setup *setup, double carrier_hz, pnr_echo_model **out)
{
    const pnr_plan *plan = &setup->plan;
    pnr_echo_model *model = calloc(1, sizeof *model);

    *out = NULL;
    if (model == NULL)
        return PNR_ENOMEMORY;
    model->setup = setup;
    if (carrier_hz > 0)
        model->rate_over_carrier = pnr_rational_double(setup->radar.rate_hz) / carrier_hz;
    model->n_rows = pnr_plan_rows(plan);
    model->rows = malloc(model->n_rows * sizeof *model->rows);
    model->codes = calloc(setup->n_codes, sizeof *model->codes);
    model->windows = malloc(2 * plan->n_periods * sizeof *model->windows);
    if (model->rows == NULL || model->codes == NULL || model->windows == NULL ||
        pnr_slow_time_create(plan, &model->slow) != PNR_OK ||
        pnr_ambiguity_create(setup, &model->ambiguity) != PNR_OK) {
        pnr_echo_model_destroy(model);
        return PNR_ENOMEMORY;
    }
    list_rows(model);
    for (size_t c = 0; c < setup->n_codes; c++)
        if (fill_code(model, c) != PNR_OK) {
            pnr_echo_model_destroy(model);
            return PNR_ENOMEMORY;
        }
    *out = model;
    return PNR_OK;
}

int pnr_echo_model_share(const pnr_echo_model *from, pnr_echo_model **out)
{
    pnr_echo_model *model = malloc(sizeof *model);

    *out = NULL;
    if (model == NULL)
        return PNR_ENOMEMORY;
    *model = *from;
    model->is_shared = true;
    model->slow = NULL;
    model->ambiguity = NULL;
    model->windows = malloc(2 * model->setup->plan.n_periods * sizeof *model->windows);
    if (model->windows == NULL || pnr_slow_time_share(from->slow, &model->slow) != PNR_OK ||
        pnr_ambiguity_create(model->setup, &model->ambiguity) != PNR_OK) {
        pnr_echo_model_destroy(model);
        return PNR_ENOMEMORY;
    }
    *out = model;
    return PNR_OK;
}

void pnr_echo_model_destroy(pnr_echo_model *model)
{
    if (model == NULL)
        return;
    pnr_slow_time_destroy(model->slow);
    pnr_ambiguity_destroy(model->ambiguity);
    free(model->windows);
    if (!model->is_shared) {
        for (size_t c = 0; model->codes != NULL && c < model->setup->n_codes; c++)
            free(model->codes[c].spread);
        free(model->rows);
        free(model->codes);
    }
    free(model);
}
