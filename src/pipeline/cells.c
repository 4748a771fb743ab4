/* SPDX-License-Identifier: MIT */
/* Describes profiles and maps: the constants of a run, and the levels and the gate of each
 * result. */
#include "pipeline/publishing_state.h"

#include "engine/plan.h"

#include <math.h>
#include <stdlib.h>

/* Fills map->runs: groups of rows with equal steps of Doppler. K is plan.n_periods, and Tr is the
 * period. In units of 1 / (4 K Tr) the Doppler of each row is an integer. */
static int fill_doppler(const pnr_publishing *p, pnr_map_info *map, pnr_error *error)
{
    const pnr_plan *plan = &p->parts.setup->plan;
    const double unit_hz = 1 / (4 * (double)plan->n_periods * p->parts.setup->radar.period_s);
    int64_t first = 0, step = 0;
    pnr_doppler_run *run = NULL;

    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const pnr_hypothesis hypothesis = pnr_plan_hypothesis(plan, h);

        for (size_t i = 0; i < hypothesis.n_rows; i++) {
            const int64_t bin = hypothesis.first_bin + (int64_t)i;
            const int64_t at = hypothesis.quarters * (int64_t)plan->n_periods + 4 * bin;

            if (run != NULL && run->n_rows == 1)
                step = at - first;
            if (run == NULL || at != first + step * (int64_t)run->n_rows) {
                if (map->n_runs == PNR_MAX_DOPPLER_RUNS)
                    return pnr_refuse(error,
                                      "publisher.profile: this map's Doppler rows lie at more than "
                                      "%d uneven steps; doppler.step = whole makes them even",
                                      PNR_MAX_DOPPLER_RUNS);
                run = &map->runs[map->n_runs++];
                *run = (pnr_doppler_run){.first_hz = (double)at * unit_hz};
                first = at;
            } else {
                run->step_hz = (double)step * unit_hz;
            }
            run->n_rows++;
        }
    }
    return PNR_OK;
}

int pnr_publishing_fill_map(pnr_publishing *p, pnr_error *error)
{
    const pnr_radar *radar = &p->parts.setup->radar;
    const pnr_plan *plan = &p->parts.setup->plan;
    const double ways = p->parts.config->radar.path == PNR_PATH_TWO_WAY ? 2 : 1;
    pnr_map_info *map = &p->map;

    *map = (pnr_map_info){
        .row = {.is_complex = plan->want_profile == PNR_WANT_COMPLEX,
                .n_cells = plan->n_lags * plan->oversample,
                .oversample = plan->oversample,
                .step_s = 1 / (pnr_rational_double(radar->rate_hz) * (double)plan->oversample),
                .metres_per_second = radar->metres_per_second,
                .dwell_samples = pnr_plan_dwell_samples(plan)},
        .n_codes = plan->n_codes,
        .n_rows = pnr_plan_rows(plan),
        .mps_per_hz = radar->wavelength_m > 0 ? radar->wavelength_m / ways : (double)NAN,
    };
    map->row.delay_s = pnr_radar_cells(radar, p->parts.config, plan->oversample,
                                       &map->row.first_cell, &map->row.n_gate);
    p->gate_delay_s = map->row.delay_s;
    p->gate_first_cell = map->row.first_cell;
    if ((p->code_names = calloc(plan->n_codes, sizeof *p->code_names)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu codes", plan->n_codes);
    for (size_t c = 0; c < plan->n_codes; c++)
        p->code_names[c] = p->parts.setup->codes[c].code->name;
    map->code_names = p->code_names;
    if (plan->n_codes == 1)
        snprintf(map->row.code, sizeof map->row.code, "%s", p->code_names[0]);
    return plan->want_profile != PNR_WANT_NONE ? fill_doppler(p, map, error) : PNR_OK;
}

/* Fills floor and threshold of the cells. If a dwell has several looks, complex values are those of
 * the last look. These values have the noise of one look, and no threshold. */
static void fill_levels(const pnr_publishing *p, const pnr_dwell *dwell, pnr_profile_info *info)
{
    const pnr_plan *plan = &p->parts.setup->plan;
    const size_t n_looks = (dwell->n_periods + plan->n_periods - 1) / plan->n_periods;

    info->floor = dwell->floor;
    info->threshold = plan->threshold[dwell->n_periods - 1] * dwell->floor;
    if (plan->cfar.kind != PNR_CFAR_OFF)
        info->threshold = NAN; /* CFAR has a threshold for each cell */
    if (info->is_complex && n_looks > 1) {
        info->floor /= (double)n_looks;
        info->threshold = NAN;
    }
}

/* Moves the gate together with the direct path by whole cells, at most by zero_search_s. */
static void place_gate(const pnr_publishing *p, pnr_profile_info *info)
{
    const double moved_s = p->zero.last.delay_s - p->parts.config->radar.zero_delay_s;
    const double most = floor(p->parts.setup->radar.zero_search_s / info->step_s);
    double cells;

    if (!p->zero.last.is_tracked)
        return;
    cells = round(moved_s / info->step_s);
    if (info->n_gate < info->n_cells) /* a gate of all lags moves without this limit */
        cells = fmin(fmax(cells, -most), most);
    info->first_cell = (size_t)fmod(
        fmod((double)p->gate_first_cell + cells, (double)info->n_cells) + (double)info->n_cells,
        (double)info->n_cells);
    info->delay_s = p->gate_delay_s + cells * info->step_s - moved_s;
}

void pnr_publishing_give_cells(pnr_publishing *p, const pnr_dwell *dwell, const float *cells)
{
    pnr_map_info *map = &p->map;

    fill_levels(p, dwell, &map->row);
    place_gate(p, &map->row);
    /* A profile or map that the publisher refuses is only counted. The result is already sent. */
    if (p->parts.config->publisher.profile != PNR_PROFILE_OFF)
        p->account.unsent_maps +=
            pnr_publisher_send_cells(p->publisher, &p->report, map, cells) != PNR_OK;
    if (p->parts.options->tap_cells != NULL)
        p->parts.options->tap_cells(p->parts.options->tap_context, &p->report, map, cells);
}
