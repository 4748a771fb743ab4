/* SPDX-License-Identifier: MIT */
/* Computes the Doppler section of pnradar-plan: the searched rows, their losses, and the velocities
 * that stretch the code too much. */
#include "tools/plan/sheet.h"

#include "base/complex.h"
#include "engine/plan.h"
#include "setup/hypothesis.h"
#include "setup/taper.h"

#include <math.h>

/* The first and the last Doppler row that a plan searches. */
typedef struct rows {
    double first_hz, last_hz;
    double off_bins; /* greatest difference between a searched Doppler and the Doppler of its
                      * rotation, in 1 / period */
} rows;

static rows rows_of(const pnr_config *config, const pnr_setup *setup)
{
    static const double bins_of[] = {
        [PNR_STEP_WHOLE] = 1, [PNR_STEP_HALF] = 0.5, [PNR_STEP_QUARTER] = 0.25};
    const pnr_plan *plan = &setup->plan;
    const double period_s = setup->radar.period_s, k = (double)plan->n_periods;
    const bool is_doppler = config->dwell.combine == PNR_COMBINE_DOPPLER;
    rows r = {.off_bins =
                  !is_doppler && plan->n_hypotheses > 1 ? bins_of[config->doppler.step] / 2 : 0};

    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const pnr_hypothesis *p = &plan->hypotheses[h];
        const double low = p->quarters / 4.0 + p->first_bin / k;
        const double high = low + (p->n_rows - 1) / k;

        if (h == 0)
            r.first_hz = low / period_s;
        r.last_hz = high / period_s;
        if (is_doppler)
            r.off_bins = fmax(r.off_bins,
                              fmax(fabs(low - p->quarters / 4.0), fabs(high - p->quarters / 4.0)));
    }
    return r;
}

/* Returns the loss in dB within a period if a Doppler of `bins` / period remains after the
 * rotation. */
static double within_db(double bins)
{
    return bins == 0 ? 0 : -20 * log10(sin(M_PI * bins) / (M_PI * bins));
}

/* Returns the loss in dB of an echo that is half-way between two rows of a Doppler dwell. If codes
 * are resampled, two neighbouring rows also differ in stretch, by rate / carrier samples a look.
 * The stretch of the echo differs from the stretch of each row by half of this. So the lag of the
 * echo changes during the look, and the loss is greater. */
static double between_db(const pnr_config *config, const pnr_setup *setup, bool is_stretched)
{
    const pnr_plan *plan = &setup->plan;
    const double k = (double)plan->n_periods;
    const double walk =
        is_stretched ? pnr_rational_double(setup->radar.rate_hz) / config->radar.carrier_hz : 0;
    double complex seen = 0;
    double sum = 0;

    for (size_t p = 0; p < plan->n_periods; p++) {
        const double w = plan->taper != NULL ? plan->taper[p] : 1;
        const double at = ((double)p + 0.5) / k - 0.5;

        seen += w * (pnr_waveform_at(setup->codes[0].autocorrelation, walk / 2 * at) *
                     pnr_cis(M_PI * at));
        sum += w;
    }
    return -20 * log10(cabs(seen) / sum);
}

static bool is_resampled(const pnr_plan *plan)
{
    for (size_t h = 0; h < plan->n_hypotheses; h++)
        if (plan->hypotheses[h].stretch != 0)
            return true;
    return false;
}

static void search_lines(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup,
                         rows r)
{
    const pnr_plan *plan = &setup->plan;
    const bool is_doppler = config->dwell.combine == PNR_COMBINE_DOPPLER;

    plan_sheet_number(sheet, "first_row_hz", "searched from", r.first_hz, "Hz");
    plan_sheet_number(sheet, "last_row_hz", "searched to", r.last_hz, "Hz");
    plan_sheet_count(sheet, "n_rows", "rows", pnr_plan_rows(plan));
    plan_sheet_count(sheet, "n_hypotheses", "rotations and time scales", plan->n_hypotheses);
    plan_sheet_number(sheet, "rotation_loss_db", "loss farthest from a rotation",
                      within_db(r.off_bins), "dB");
    if (is_doppler) {
        plan_sheet_number(sheet, "row_loss_db", "loss half-way between two rows",
                          between_db(config, setup, is_resampled(plan)), "dB");
        plan_sheet_number(sheet, "taper_loss_db", "loss by the taper",
                          pnr_taper_loss_db(plan->taper, plan->n_periods), "dB");
    }
}

/* Adds the velocity that changes the length of the code by half a sample in a look, and the
 * greatest range walk. A Doppler shift F changes the length by the fraction F / carrier. A look has
 * n_periods periods of n_samples samples. */
static void stretch_lines(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup,
                          rows r)
{
    const pnr_plan *plan = &setup->plan;
    const double ways = config->radar.path == PNR_PATH_TWO_WAY ? 2 : 1;
    const double look = (double)(plan->n_periods * plan->n_samples);

    plan_sheet_number(sheet, "half_sample_mps", "stretched by half a sample at",
                      config->radar.speed_mps / (2 * ways * look), "m/s");
    if (config->radar.carrier_hz > 0) {
        plan_sheet_number(sheet, "walk_samples", "range walk in a look, at most",
                          fmax(fabs(r.first_hz), fabs(r.last_hz)) / config->radar.carrier_hz * look,
                          "samples");
        plan_sheet_text(sheet, "resampled", "code resampled for it",
                        is_resampled(plan) ? "yes" : "no");
    }
}

void plan_doppler(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup)
{
    const pnr_radar *radar = &setup->radar;
    /* The length of a two-way path changes twice as fast as the range. */
    const double metres_per_cycle =
        radar->wavelength_m / (config->radar.path == PNR_PATH_TWO_WAY ? 2.0 : 1.0);
    const rows r = rows_of(config, setup);
    const bool is_searched = pnr_plan_rows(&setup->plan) > 1;

    plan_sheet_section(sheet, "doppler", "Doppler");
    plan_sheet_number(sheet, "span_hz", "span, each side", radar->doppler_span_hz, "Hz");
    plan_sheet_number(sheet, "resolution_hz", "resolution", radar->doppler_step_hz, "Hz");
    if (is_searched)
        search_lines(sheet, config, setup, r);
    if (radar->wavelength_m > 0) {
        plan_sheet_number(sheet, "wavelength_m", "wavelength", radar->wavelength_m, "m");
        plan_sheet_number(sheet, "span_mps", "radial velocity, each side",
                          radar->doppler_span_hz * metres_per_cycle, "m/s");
        plan_sheet_number(sheet, "resolution_mps", "resolution of velocity",
                          radar->doppler_step_hz * metres_per_cycle, "m/s");
    }
    if (is_searched && radar->wavelength_m > 0) {
        plan_sheet_number(sheet, "first_row_mps", "velocity searched from",
                          r.first_hz * metres_per_cycle, "m/s");
        plan_sheet_number(sheet, "last_row_mps", "velocity searched to",
                          r.last_hz * metres_per_cycle, "m/s");
    }
    stretch_lines(sheet, config, setup, r);
    if (setup->plan.remove_mean) {
        plan_sheet_number(sheet, "blind_hz", "blind by clutter removal every",
                          2 * radar->doppler_span_hz, "Hz");
        if (radar->wavelength_m > 0)
            plan_sheet_number(sheet, "blind_mps", "that is every",
                              2 * radar->doppler_span_hz * metres_per_cycle, "m/s");
    }
}
