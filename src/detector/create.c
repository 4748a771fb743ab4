/* SPDX-License-Identifier: MIT */
/* Creates and destroys detectors. The detectors of several threads share their tables, and each
 * detector has its own patches. */
#include "detector/state.h"

#include "engine/plan.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { J = PNR_NEIGHBOURS };

static int fill_code(const pnr_setup *setup, const pnr_setup_code *from, pnr_detector_code *code)
{
    const bool is_split =
        !pnr_format_get(setup->plan.format)->is_complex && setup->plan.tune.num != 0;

    code->autocorrelation = from->autocorrelation;
    code->amplitude_scale = (is_split ? 2 : 1) / sqrt(from->share);
    code->energy_scale = is_split ? 2 / (1 - from->removed) : 1 / from->share;
    code->curvature_noise = (pnr_waveform_kurtosis(from->waveform) - 1) / 2;
    code->bandwidth = pnr_waveform_bandwidth(from->waveform);
    code->sidelobe_shape =
        pnr_waveform_bandwidth(code->autocorrelation) / fmax(code->bandwidth, DBL_MIN);
    code->nyquist = pnr_waveform_nyquist(from->waveform);
    for (int u = -J; u < J; u++)
        code->rho[J + u] = pnr_waveform_at(code->autocorrelation, u);
    pnr_lobe_fill(code->autocorrelation, setup->plan.n_samples,
                  (double)setup->radar.n_samples / (double)setup->radar.n_chips, &code->lobe);
    int rc = pnr_fit_create(code->autocorrelation, &code->fit);

    if (rc == PNR_OK && setup->n_codes == 1 && pnr_plan_rows(&setup->plan) == 1)
        rc = pnr_fit_pair_create(code->autocorrelation, &code->pair);
    if (rc == PNR_OK && setup->plan.n_looks > 1 && pnr_plan_rows(&setup->plan) == 1)
        rc = pnr_fit_among_create(code->autocorrelation, &code->among);
    return rc;
}

/* True if the fit needs slow time: the plan has several rows, a taper, a removed mean, a rotation,
 * a stretch, or several looks of several periods. Else the windows of a dwell are added without
 * weights. */
static bool needs_patch_fit(const pnr_plan *plan)
{
    const pnr_hypothesis first = pnr_plan_hypothesis(plan, 0);

    return pnr_plan_rows(plan) > 1 || plan->taper != NULL || plan->remove_mean ||
           first.quarters != 0 || first.first_bin != 0 || first.stretch != 0 ||
           (plan->n_looks > 1 && plan->n_periods > 1);
}

static int allocate_patches(pnr_detector *detector)
{
    if (detector->has_rows)
        detector->patches = calloc((size_t)2 * PNR_MAX_CANDIDATES, sizeof *detector->patches);
    return detector->has_rows && detector->patches == NULL ? PNR_ENOMEMORY : PNR_OK;
}

int pnr_detector_create(const pnr_config *config, const pnr_setup *setup, pnr_detector **out,
                        pnr_error *error)
{
    const pnr_plan *plan = &setup->plan;
    pnr_detector *detector = calloc(1, sizeof *detector);
    int code = detector == NULL ? PNR_ENOMEMORY : PNR_OK;

    *out = NULL;
    if (code != PNR_OK)
        goto fail;
    detector->config = config;
    detector->radar = &setup->radar;
    detector->plan = plan;
    detector->waveforms = setup->codes;
    detector->least_squares = setup->least_squares;
    detector->is_sum = plan->n_looks > 1;
    detector->max_echoes = setup->max_echoes;
    detector->has_rows = pnr_plan_rows(plan) > 1;
    detector->energy_of_code = pnr_waveform_energy(setup->codes[0].waveform);
    detector->n_codes = setup->n_codes;
    detector->codes = calloc(setup->n_codes, sizeof *detector->codes);
    if (detector->codes == NULL)
        code = PNR_ENOMEMORY;
    for (size_t c = 0; c < setup->n_codes && code == PNR_OK; c++)
        code = fill_code(setup, &setup->codes[c], &detector->codes[c]);
    if (code == PNR_OK)
        code = pnr_cross_create(setup, &detector->cross);
    for (size_t c = 0; c < setup->n_codes && code == PNR_OK; c++)
        pnr_lobe_mix(detector->cross, detector->codes[c].autocorrelation, plan->n_samples,
                     &detector->codes[c].lobe);
    if (code == PNR_OK && needs_patch_fit(plan))
        code = pnr_fit_patch_create(setup, config->radar.carrier_hz, &detector->map);
    if (code == PNR_OK)
        code = allocate_patches(detector);
    if (code != PNR_OK)
        goto fail;
    pnr_cells_fill(detector, setup->pfa_cell, &detector->cells);
    pnr_noise_bands_fill(setup->codes[0].waveform, !pnr_format_get(plan->format)->is_complex,
                         &detector->bands);
    *out = detector;
    return PNR_OK;
fail:
    pnr_detector_destroy(detector);
    return pnr_error_set(error, code, "detector: out of memory");
}

int pnr_detector_share(const pnr_detector *from, pnr_detector **out)
{
    pnr_detector *detector = malloc(sizeof *detector);

    *out = NULL;
    if (detector == NULL)
        return PNR_ENOMEMORY;
    *detector = *from;
    detector->is_shared = true;
    detector->map = NULL;
    detector->patches = NULL;
    if ((from->map != NULL && pnr_fit_patch_share(from->map, &detector->map) != PNR_OK) ||
        allocate_patches(detector) != PNR_OK) {
        pnr_detector_destroy(detector);
        return PNR_ENOMEMORY;
    }
    *out = detector;
    return PNR_OK;
}

static void destroy_code(pnr_detector_code *code)
{
    pnr_fit_destroy(code->fit);
    pnr_fit_pair_destroy(code->pair);
    pnr_fit_among_destroy(code->among);
}

void pnr_detector_destroy(pnr_detector *detector)
{
    if (detector == NULL)
        return;
    pnr_fit_patch_destroy(detector->map);
    free(detector->patches);
    for (size_t c = 0; !detector->is_shared && detector->codes != NULL && c < detector->n_codes;
         c++)
        destroy_code(&detector->codes[c]);
    if (!detector->is_shared) {
        pnr_cross_destroy(detector->cross);
        free(detector->codes);
    }
    free(detector);
}
