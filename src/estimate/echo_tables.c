/* SPDX-License-Identifier: MIT */
/* Makes and destroys the model of an echo in a map: its tables over lags. */
#include "estimate/echo_model.h"

#include "base/complex.h"
#include "engine/plan.h"
#include "estimate/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

static const double loading = 1e-4; /* diagonal loading: oversampled lags are nearly dependent */

/* Compares chi at e = 1/8 bin with the smooth product. Fills code->roughness and code->ridge. Tries
 * several delays, since chi also depends on where the code wraps around. */
static void fill_roughness(pnr_echo_model *model, size_t c)
{
    enum { SEAMS = 4 };
    const double e = 0.125, tone = pnr_echo_model_tone(model, e);
    const size_t n = model->setup->plan.n_samples;
    pnr_echo_lags *code = &model->codes[c];
    double worst = 0, rough = 0, smooth_power = 0;

    if (model->setup->plan.filter != NULL)
        return; /* chi does not describe the output of the least-squares filter */
    for (size_t s = 0; s < SEAMS; s++) {
        const long lag = (long)(s * n / SEAMS + n / 7);
        pnr_vector smooth, chi;

        pnr_echo_model_lags(code, 0, smooth, NULL);
        pnr_ambiguity_set(model->ambiguity, c, (double)lag);
        pnr_ambiguity_at(model->ambiguity, c, e, lag - MIDDLE, J, chi, NULL, NULL);
        for (int j = 0; j < J; j++) {
            const double power = pnr_power(chi[j] - tone * smooth[j]);

            worst = fmax(worst, power);
            rough += power;
            smooth_power += pnr_power(smooth[j]);
        }
    }
    code->roughness = sqrt(worst) / e;
    code->ridge = fmin(rough / ((1 - tone * tone) * smooth_power), 1);
}

static void fill_code(pnr_echo_model *model, size_t c)
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
    fill_roughness(model, c);
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
    model->first_row = calloc(plan->n_hypotheses, sizeof *model->first_row);
    model->codes = calloc(setup->n_codes, sizeof *model->codes);
    model->windows = malloc(2 * plan->n_periods * sizeof *model->windows);
    if (model->first_row == NULL || model->codes == NULL || model->windows == NULL ||
        pnr_slow_time_create(plan, &model->slow) != PNR_OK ||
        pnr_ambiguity_create(setup, &model->ambiguity) != PNR_OK) {
        pnr_echo_model_destroy(model);
        return PNR_ENOMEMORY;
    }
    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        model->first_row[h] = model->n_rows;
        model->n_rows += pnr_plan_hypothesis(plan, h).n_rows;
    }
    for (size_t c = 0; c < setup->n_codes; c++)
        fill_code(model, c);
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
        free(model->first_row);
        free(model->codes);
    }
    free(model);
}
