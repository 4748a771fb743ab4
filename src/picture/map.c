/* SPDX-License-Identifier: MIT */
/* Reduces the cells of a profile or map to the resolution of a picture. Computes the ranges and the
 * Doppler bins of the picture. */
#include "picture/map.h"

#include <math.h>
#include <string.h>

/* Returns the power of a cell. cell: its index in the whole map. */
static float power_at(const pnr_map *p, size_t cell)
{
    const char *cells = p->cells;
    float value[2] = {0, 0};

    if (!p->info.row.is_complex) {
        memcpy(value, cells + cell * sizeof *value, sizeof *value);
        return value[0];
    }
    memcpy(value, cells + cell * sizeof value, sizeof value);
    return value[0] * value[0] + value[1] * value[1];
}

/* Sets each range bin to the greatest power of its cells in `row`, if this power exceeds the
 * present value of the bin. */
static void reduce_row(const pnr_map *p, size_t row, double cells_per_bin, size_t n_bins,
                       float *bins)
{
    const pnr_profile_info *info = &p->info.row;
    size_t i, from, to;

    for (i = 0; i < n_bins; i++) {
        float greatest = bins[i];

        from = (size_t)((double)i * cells_per_bin);
        to = (size_t)((double)(i + 1) * cells_per_bin);
        to = to > from ? to : from + 1;
        for (; from < to && from < info->n_gate; from++) {
            const size_t cell = info->first_cell + from;
            const size_t at = cell < info->n_cells ? cell : cell - info->n_cells;
            const float power = power_at(p, row * info->n_cells + at);

            greatest = power > greatest ? power : greatest;
        }
        bins[i] = greatest;
    }
}

void pnr_map_reduce(const pnr_map *p, size_t code, size_t first_row, size_t n_rows,
                    double cells_per_bin, size_t n_bins, float *bins)
{
    const double floor_power = p->info.row.floor;
    const float scale = floor_power > 0 ? (float)(1 / floor_power) : NAN;
    const size_t end = code > 0 ? code : p->info.n_codes;
    size_t c, r, i;

    for (i = 0; i < n_bins; i++)
        bins[i] = -1;
    for (c = code > 0 ? code - 1 : 0; c < end; c++)
        for (r = first_row; r < first_row + n_rows; r++)
            reduce_row(p, c * p->info.n_rows + r, cells_per_bin, n_bins, bins);
    for (i = 0; i < n_bins; i++)
        bins[i] = bins[i] >= 0 && isfinite(bins[i] * scale) ? bins[i] * scale : NAN;
}

double pnr_map_range_m(const pnr_profile_info *info, double cell)
{
    return info->metres_per_second * (info->delay_s + cell * info->step_s);
}

bool pnr_map_is_km(const pnr_profile_info *info)
{
    return fmax(fabs(pnr_map_range_m(info, 0)),
                fabs(pnr_map_range_m(info, (double)info->n_gate))) >= 1e4;
}

pnr_doppler_bins pnr_doppler_bins_of(const pnr_map_info *map, size_t most_bins)
{
    const double first_hz = pnr_map_doppler_hz(map, 0);
    const double span_hz = pnr_map_doppler_hz(map, map->n_rows - 1) - first_hz;
    const size_t n = map->n_rows < most_bins ? map->n_rows : most_bins;
    const double row_hz = map->n_rows > 1 ? span_hz / (double)(map->n_rows - 1) : 1;
    const double step_hz = row_hz * (double)map->n_rows / (double)n;

    /* A row is row_hz wide, so bin 0 begins at first_hz - row_hz / 2. */
    return (pnr_doppler_bins){first_hz + (step_hz - row_hz) / 2, step_hz, n};
}

/* Returns the first row at or above doppler_hz. */
static size_t row_from(const pnr_map_info *map, double doppler_hz)
{
    size_t low = 0, high = map->n_rows;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (pnr_map_doppler_hz(map, middle) < doppler_hz)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t pnr_doppler_bins_rows(const pnr_doppler_bins *doppler, const pnr_map_info *map, size_t bin,
                             size_t *first_row)
{
    /* slack_hz is a tolerance. With it every row is in exactly one bin despite rounding. */
    const double middle_hz = doppler->first_hz + (double)bin * doppler->step_hz;
    const double slack_hz = doppler->step_hz * 1e-6;
    const size_t from = row_from(map, middle_hz - doppler->step_hz / 2 - slack_hz);
    const size_t to = row_from(map, middle_hz + doppler->step_hz / 2 - slack_hz);

    *first_row = from;
    if (to > from)
        return to - from;
    if (from == map->n_rows || (from > 0 && middle_hz - pnr_map_doppler_hz(map, from - 1) <
                                                pnr_map_doppler_hz(map, from) - middle_hz))
        *first_row = from - 1;
    return 1;
}

double pnr_round_step(double least)
{
    const double power = pow(10, floor(log10(least)));
    const double times = least / power;

    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}
