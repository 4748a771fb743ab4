/* SPDX-License-Identifier: MIT */
/* From a configuration to the plan: code, waveform, thresholds, batch. */
#include "setup.h"

#include "threshold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_LOOKS = 16, MAX_BATCH = 4096 };
static const size_t samples_a_submit = (size_t)1 << 23; /* its upload hides its launches */

/* The engine's threshold for `used` of the dwell's windows, and the cell's false-alarm probability.
 */
static double threshold_for(const pnr_config *config, const pnr_setup *setup, size_t used,
                            double *pfa_cell)
{
    const pnr_plan *plan = &setup->plan;
    const bool is_sum = plan->dwell == PNR_DWELL_INCOHERENT;
    const size_t n_looks = is_sum ? used : 1;
    const double n_samples = (double)plan->n_samples * (double)(is_sum ? 1 : used);
    const double step = 1.0 / (double)plan->oversample;
    double rho[2];

    pnr_waveform_at(setup->codes[0].autocorrelation, step, rho);

    const double rho2 = rho[0] * rho[0] + rho[1] * rho[1];
    const double n_cells = (double)(plan->gate_count * plan->oversample);

    *pfa_cell = pnr_threshold_cell_pfa(config->detector.pfa, n_cells, rho2, n_looks);
    return pnr_threshold_ratio(*pfa_cell, n_looks, n_samples);
}

/* Exact for 1..16 windows, for every power of two and for the whole dwell; between those linear in
 * 1/sqrt(windows), right within 1 %: they serve only dwells that lost windows. */
static void fill_thresholds(const pnr_config *config, pnr_setup *setup)
{
    const size_t n_periods = setup->plan.n_periods;
    size_t below = 1;
    double pfa_cell = 0;

    for (size_t used = 1; used <= n_periods; used++) {
        const bool is_power = (used & (used - 1)) == 0;

        if (used > EXACT_LOOKS && !is_power && used != n_periods)
            continue;
        setup->threshold[used - 1] = threshold_for(config, setup, used, &pfa_cell);

        const double from = 1 / sqrt((double)below), to = 1 / sqrt((double)used);

        for (size_t i = below + 1; i < used; i++) {
            const double share = (1 / sqrt((double)i) - from) / (to - from);

            setup->threshold[i - 1] =
                setup->threshold[below - 1] * (1 - share) + setup->threshold[used - 1] * share;
        }
        below = used;
    }
    setup->pfa_cell = pfa_cell;
}

/* One code's references: itself and, with oversample 2, half a sample later. */
static int fill_references(pnr_setup *setup, const pnr_config *config, pnr_error *error)
{
    const size_t n = setup->radar.n_samples, oversample = config->detector.oversample;
    pnr_setup_code *first = &setup->codes[0];
    int code;

    setup->references = calloc(oversample * n, sizeof *setup->references);
    if (setup->references == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code of %zu samples", n);
    if ((code = pnr_code_sample(first->code, config, n, setup->references, error)) != PNR_OK)
        return code;
    if (pnr_waveform_create((const double(*)[2])setup->references, n, &first->waveform) != PNR_OK ||
        (oversample == 2 &&
         pnr_waveform_shift(first->waveform, 0.5, setup->references + n) != PNR_OK) ||
        pnr_waveform_autocorrelation(first->waveform, &first->autocorrelation) != PNR_OK)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a waveform of %zu samples", n);
    return PNR_OK;
}

static size_t batch_of(const pnr_config *config, size_t dwell)
{
    const size_t fitting = samples_a_submit / dwell;

    if (config->engine.batch > 0)
        return config->engine.batch;
    return fitting < 1 ? 1 : fitting > MAX_BATCH ? MAX_BATCH : fitting;
}

int pnr_setup_create(const pnr_config *config, pnr_format format, size_t n_channels,
                     pnr_setup **out, pnr_error *error)
{
    static const pnr_dwell_kind dwell_of[] = {[PNR_COMBINE_NONE] = PNR_DWELL_SINGLE,
                                              [PNR_COMBINE_COHERENT] = PNR_DWELL_COHERENT,
                                              [PNR_COMBINE_INCOHERENT] = PNR_DWELL_INCOHERENT,
                                              [PNR_COMBINE_DOPPLER] = PNR_DWELL_DOPPLER};
    static const pnr_want want_of[] = {[PNR_PROFILE_OFF] = PNR_WANT_NONE,
                                       [PNR_PROFILE_POWER] = PNR_WANT_POWER,
                                       [PNR_PROFILE_COMPLEX] = PNR_WANT_COMPLEX};
    const size_t candidates = 2 * config->detector.max_echoes + 8; /* sidelobes take places too */
    pnr_setup *setup = calloc(1, sizeof *setup);
    pnr_rational tune = {0, 1};
    int code;

    *out = NULL;
    if (setup == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "setup: out of memory");
    setup->n_codes = 1;
    if ((setup->codes = calloc(setup->n_codes, sizeof *setup->codes)) == NULL) {
        code = pnr_error_set(error, PNR_ENOMEMORY, "setup: out of memory");
        goto fail;
    }
    if ((code = pnr_code_create(config, &setup->codes[0].code, error)) != PNR_OK ||
        (code = pnr_radar_derive(config, setup->codes[0].code->n_chips, &setup->radar, error)) !=
            PNR_OK ||
        (code = fill_references(setup, config, error)) != PNR_OK)
        goto fail;
    code = PNR_ENOMEMORY;
    if ((setup->threshold = calloc(config->dwell.periods, sizeof *setup->threshold)) == NULL) {
        pnr_error_set(error, code, "no memory for %zu periods a dwell", config->dwell.periods);
        goto fail;
    }
    if (config->source.tune_hz.num != 0 &&
        (code = pnr_rational_div(config->source.tune_hz, setup->radar.rate_hz, &tune)) != PNR_OK) {
        pnr_error_set(error, PNR_ECONFIG,
                      "source.tune_hz: its ratio to source.rate_hz does not fit "
                      "64 bits");
        code = PNR_ECONFIG;
        goto fail;
    }

    /* Held for whole samples: sample n carries chip floor(n / q), see pnr_code_sample. */
    const pnr_code *first = setup->codes[0].code;
    const bool is_m_sequence = first->is_m_sequence &&
                               setup->radar.n_samples % first->n_chips == 0 &&
                               config->code.pulse != PNR_PULSE_FILE;

    setup->plan = (pnr_plan){
        .n_samples = setup->radar.n_samples,
        .format = format,
        .n_channels = n_channels,
        .first_channel = config->source.channel,
        .n_used_channels = 1,
        .n_codes = setup->n_codes,
        .n_hypotheses = 1,
        .n_looks = 1,
        .n_lags = setup->radar.n_samples,
        .exclusion_cells = 1,
        .exclusion_rows = 1,
        .n_periods = config->dwell.periods,
        .dwell = dwell_of[config->dwell.combine],
        .reference = PNR_REFERENCE_STORED,
        .oversample = config->detector.oversample,
        .references = (const double(*)[2])setup->references,
        .m_degree = is_m_sequence ? first->degree : 0,
        .m_taps = is_m_sequence ? first->taps : 0,
        .m_samples = is_m_sequence ? setup->radar.n_samples / first->n_chips : 0,
        .tune = tune,
        .conjugate = config->source.spectrum == PNR_SPECTRUM_INVERTED,
        .gate_first = setup->radar.gate_first,
        .gate_count = setup->radar.gate_count,
        .threshold = setup->threshold,
        .max_candidates = candidates < PNR_MAX_CANDIDATES ? candidates : PNR_MAX_CANDIDATES,
        .batch = batch_of(config, setup->radar.n_samples * config->dwell.periods),
        .depth = config->engine.depth,
        .want_profile = want_of[config->publisher.profile],
        .spin = config->engine.wait == PNR_WAIT_SPIN,
        .device = config->engine.device,
        .threads = config->engine.threads,
        .method = config->engine.method,
    };
    fill_thresholds(config, setup);
    *out = setup;
    return PNR_OK;
fail:
    pnr_setup_destroy(setup);
    return code;
}

void pnr_setup_destroy(pnr_setup *setup)
{
    if (setup == NULL)
        return;
    for (size_t c = 0; setup->codes != NULL && c < setup->n_codes; c++) {
        pnr_code_destroy(setup->codes[c].code);
        pnr_waveform_destroy(setup->codes[c].waveform);
        pnr_waveform_destroy(setup->codes[c].autocorrelation);
    }
    free(setup->codes);
    free(setup->references);
    free(setup->threshold);
    free(setup);
}
