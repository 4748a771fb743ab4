/* SPDX-License-Identifier: MIT */
/* Computes the sections of pnradar-plan about code, range, Doppler and detection, and about the
 * losses of CFAR and of the least-squares filter. Measures nothing. */
#include "tools/plan/sheet.h"

#include "code/waveform.h"
#include "engine/plan.h"
#include "setup/cfar_factor.h"
#include "setup/least_squares.h"
#include "setup/taper.h"
#include "setup/threshold.h"

#include <math.h>

/*
 * Returns the probability Pd that an echo of constant amplitude passes the threshold. The power is
 * the sum of K = `looks` looks. snr: S, the SNR of one look; ratio: threshold / mean of this sum in
 * noise alone. The sum, divided by the mean noise power of one look, is a mixture of gamma
 * distributions with Poisson(K S) weights. Q is pnr_gamma_q:
 *  Pd = sum_j Q(K + j, K ratio) exp(-K S) (K S)^j / j!
 */
static double detection_probability(double snr, double ratio, double looks)
{
    const double mean = looks * snr;
    const double spread = 12.0 * sqrt(mean) + 30.0;
    const double first = mean > spread ? floor(mean - spread) : 0.0;
    double sum = 0;

    for (double j = first; j <= mean + spread; j++) {
        const double weight =
            mean > 0 ? exp(j * log(mean) - mean - lgamma(j + 1.0)) : (j == 0 ? 1.0 : 0.0);

        sum += weight * pnr_gamma_q(looks + j, looks * ratio);
    }
    return sum;
}

/* Returns the SNR of one look, in dB, at which an echo is detected with probability pd. */
static double detection_snr_db(double pd, double ratio, double looks)
{
    double low_db = -40.0, high_db = 60.0;

    for (int i = 0; i < 60; i++) {
        const double db = 0.5 * (low_db + high_db);

        if (detection_probability(pow(10.0, db / 10.0), ratio, looks) < pd)
            low_db = db;
        else
            high_db = db;
    }
    return high_db;
}

static void code_section(plan_sheet *sheet, const pnr_setup *setup)
{
    const pnr_radar *radar = &setup->radar;
    const pnr_plan *plan = &setup->plan;
    const double dwell_s = radar->period_s * (double)pnr_plan_windows(plan);
    const double n = (double)radar->n_samples;

    plan_sheet_section(sheet, "code", "code");
    plan_sheet_text(sheet, "name", "code", setup->codes[0].code->name);
    if (setup->n_codes > 1)
        plan_sheet_count(sheet, "n_codes", "codes in all, the first is shown", setup->n_codes);
    plan_sheet_count(sheet, "n_chips", "chips a period", radar->n_chips);
    plan_sheet_count(sheet, "n_samples", "samples a period N", radar->n_samples);
    plan_sheet_number(sheet, "rate_hz", "sample rate", pnr_rational_double(radar->rate_hz), "Hz");
    plan_sheet_number(sheet, "chip_rate_hz", "chip rate", pnr_rational_double(radar->chip_rate_hz),
                      "Hz");
    plan_sheet_number(sheet, "period_s", "repetition period Tr", radar->period_s, "s");
    plan_sheet_count(sheet, "dwell_periods", "periods a dwell K", plan->n_periods);
    if (plan->n_looks > 1)
        plan_sheet_count(sheet, "dwell_looks", "looks added incoherently", plan->n_looks);
    plan_sheet_number(sheet, "dwell_s", plan->n_looks > 1 ? "result, all looks" : "dwell K Tr",
                      dwell_s, "s");
    plan_sheet_number(sheet, "period_gain_db", "processing gain of a period", 10.0 * log10(n),
                      "dB");
    plan_sheet_number(sheet, "gain_db", "coherent gain of a dwell", radar->gain_db, "dB");
}

static void range_section(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup)
{
    const pnr_radar *radar = &setup->radar;
    const double rate_hz = pnr_rational_double(radar->rate_hz);
    const double metres_per_sample = radar->metres_per_second / rate_hz;
    const double bandwidth = pnr_waveform_bandwidth(setup->codes[0].waveform);

    plan_sheet_section(sheet, "range", "range");
    plan_sheet_text(sheet, "path", "path",
                    config->radar.path == PNR_PATH_TWO_WAY ? "two-way" : "one-way");
    plan_sheet_number(sheet, "resolution_m", "resolution", radar->resolution_m, "m");
    plan_sheet_number(sheet, "unambiguous_m", "unambiguous", radar->unambiguous_m, "m");
    plan_sheet_number(sheet, "spacing_m", "spacing of samples", metres_per_sample, "m");
    plan_sheet_number(sheet, "min_m", "searched from",
                      radar->min_delay_s * radar->metres_per_second, "m");
    plan_sheet_number(sheet, "max_m", "searched to", radar->max_delay_s * radar->metres_per_second,
                      "m");
    /* The sigma of the delay is 1 / sqrt(2 S B) samples, with the SNR S and the mean square
     * bandwidth B (code/waveform.h). */
    plan_sheet_number(sheet, "sigma_15db_m", "sigma at 15 dB SNR after correlation",
                      metres_per_sample / sqrt(2.0 * pow(10.0, 1.5) * bandwidth), "m");
    plan_sheet_number(sheet, "sigma_30db_m", "sigma at 30 dB SNR after correlation",
                      metres_per_sample / sqrt(2.0 * pow(10.0, 3.0) * bandwidth), "m");
}

static void detection_section(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup)
{
    const pnr_plan *plan = &setup->plan;
    const double looks = (double)plan->n_looks;
    const double ratio = setup->threshold[pnr_plan_windows(plan) - 1];
    const double gain_db =
        setup->radar.gain_db -
        (plan->taper != NULL ? pnr_taper_loss_db(plan->taper, plan->n_periods) : 0);
    const double half_db = detection_snr_db(0.5, ratio, looks);
    const double most_db = detection_snr_db(0.9, ratio, looks);

    plan_sheet_section(sheet, "detection", "detection");
    plan_sheet_count(sheet, "n_cells", "cells searched",
                     plan->gate_count * plan->oversample * pnr_plan_rows(plan) * plan->n_codes);
    plan_sheet_number(sheet, "pfa_search", "false alarms a search", config->detector.pfa, "");
    plan_sheet_number(sheet, "pfa_cell", "false alarms a cell", setup->pfa_cell, "");
    plan_sheet_number(sheet, "threshold_db", "threshold over the noise floor", 10.0 * log10(ratio),
                      "dB");
    plan_sheet_count(sheet, "looks", "looks added incoherently", (uint64_t)looks);
    plan_sheet_number(sheet, "snr_50_db", "SNR of a look to find half", half_db, "dB");
    plan_sheet_number(sheet, "snr_90_db", "SNR of a look to find 9 of 10", most_db, "dB");
    plan_sheet_number(sheet, "input_snr_90_db", "the same before correlation", most_db - gain_db,
                      "dB");
}

/* Returns a ratio for CFAR of kind GO: the Pfa at the edge of clutter, divided by the Pfa in
 * uniform noise. At the edge, GO uses the training cells of only one side, but still the factor for
 * both sides. */
static double edge_ratio(const pnr_cfar *cfar, double factor, double pfa_cell, double looks)
{
    const double training = (double)cfar->training;

    return pnr_beta_i(training * looks, looks, 1 / (1 + factor / training)) / pfa_cell;
}

/* Adds the sections on CFAR and on the least-squares filter. The CFAR loss is due to the noise of
 * the CFAR threshold. */
static void loss_section(plan_sheet *sheet, const pnr_setup *setup)
{
    const pnr_cfar *cfar = &setup->plan.cfar;
    const size_t looks = setup->plan.n_looks;
    const pnr_least_squares *filter = setup->least_squares;

    if (cfar->kind != PNR_CFAR_OFF) {
        const double factor =
            pnr_cfar_factor(cfar->kind, setup->pfa_cell, looks, cfar->training, cfar->training);
        const double loss_db = pnr_cfar_loss_db(cfar->kind, setup->pfa_cell, looks, cfar->training);

        plan_sheet_section(sheet, "cfar", "CFAR");
        plan_sheet_count(sheet, "training", "training cells, each side", cfar->training);
        plan_sheet_count(sheet, "stride", "their distance in cells", cfar->stride);
        plan_sheet_number(sheet, "factor_db", "threshold over them", 10.0 * log10(factor), "dB");
        plan_sheet_number(sheet, "cfar_loss_db", "loss against known noise", loss_db, "dB");
        if (cfar->kind == PNR_CFAR_GO)
            plan_sheet_number(sheet, "edge_ratio", "false alarms at a clutter's edge, times",
                              edge_ratio(cfar, factor, setup->pfa_cell, (double)looks), "");
    }
    if (filter != NULL) {
        plan_sheet_section(sheet, "least_squares", "least squares");
        plan_sheet_count(sheet, "n_gates", "range gates solved for", filter->n_gates);
        plan_sheet_number(sheet, "filter_loss_db", "loss of SNR, mean", filter->mean_loss_db, "dB");
        plan_sheet_number(sheet, "filter_worst_loss_db", "at the worst gate", filter->worst_loss_db,
                          "dB");
        plan_sheet_number(sheet, "condition", "condition number", filter->condition, "");
    }
}

void plan_radar(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup)
{
    code_section(sheet, setup);
    range_section(sheet, config, setup);
    plan_doppler(sheet, config, setup);
    detection_section(sheet, config, setup);
    loss_section(sheet, setup);
}
