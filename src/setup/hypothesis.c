/* SPDX-License-Identifier: MIT */
/* Assigns each Doppler row to a rotation, with integer arithmetic. If echoes move far in range
 * during a look, also assigns a stretch of the time scale to the rows. */
#include "setup/hypothesis.h"

#include "config/keys.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_ROWS = 1 << 20 };

static const double edge_rows = 1e-6; /* rows; a frequency that is nearer than this to a row counts
                                       * as this row */
/* samples; largest difference of range walk between two rows of a hypothesis */
static const double walk_samples = 0.5;
static const double most_stretch = 0.1; /* engines refuse a stretch of at least this size */

/* The rows first <= j <= last. A bin is 1 / Tr. In a Doppler dwell the Doppler of row j is j / K
 * bins. In other dwells row j is rotation j. */
typedef struct grid {
    int64_t first, last;
    int64_t n_periods; /* K, the periods of a look */
    int64_t quarters;  /* quarter bins between two rotations */
    bool is_doppler;
    double rows_a_hertz;    /* rows per Hz */
    double samples_a_hertz; /* range walk per Hz during a look, samples; 0 without a carrier */
} grid;

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int lay_grid(const pnr_config *config, const pnr_radar *radar, grid *g, pnr_error *error)
{
    const double min_hz = config->doppler.min_hz, max_hz = config->doppler.max_hz;
    const double carrier_hz = config->radar.carrier_hz;

    g->is_doppler = config->dwell.combine == PNR_COMBINE_DOPPLER;
    g->n_periods = config->dwell.combine == PNR_COMBINE_DOPPLER ||
                           config->dwell.combine == PNR_COMBINE_COHERENT
                       ? (int64_t)config->dwell.periods
                       : 1;
    g->quarters = 4 >> config->doppler.step; /* 4, 2 or 1 for whole, half and quarter bins */
    g->rows_a_hertz =
        radar->period_s * (g->is_doppler ? (double)g->n_periods : 4.0 / (double)g->quarters);
    if (carrier_hz > 0)
        g->samples_a_hertz = (double)g->n_periods * (double)radar->n_samples / carrier_hz;

    const double low = min_hz * g->rows_a_hertz, high = max_hz * g->rows_a_hertz;

    if (!(high - low < MAX_ROWS && fabs(low) < 0x1p40 && fabs(high) < 0x1p40))
        return pnr_refuse(error, "doppler.min_hz %.10g to max_hz %.10g: %.3g rows; %d are possible",
                          min_hz, max_hz, high - low + 1, MAX_ROWS);
    if (!g->is_doppler) {
        g->first = (int64_t)floor(low + edge_rows);
        g->last = (int64_t)ceil(high - edge_rows);
    } else if (min_hz == 0 && max_hz == 0) {
        g->first = -(g->n_periods / 2);
        g->last = g->first + g->n_periods - 1;
    } else {
        g->first = (int64_t)ceil(low - edge_rows);
        g->last = (int64_t)floor(high + edge_rows);
        if (g->first > g->last)
            g->first = g->last = (int64_t)llround((low + high) / 2);
    }
    return PNR_OK;
}

/* Returns the rotation of row j, in quarter bins. */
static int64_t rotation_of(const grid *g, int64_t j)
{
    /* 4 times the number of rows between two rotations */
    const int64_t step = g->n_periods * g->quarters;

    return g->is_doppler ? floor_div(8 * j + step, 2 * step) * g->quarters : j * g->quarters;
}

/* Returns the number of rows from j on that belong to one hypothesis, at most `most`. */
static int64_t count_rows(const grid *g, int64_t j, int64_t most)
{
    const int64_t quarters = rotation_of(g, j);
    int64_t n = 1;

    while (n < most && j + n <= g->last && rotation_of(g, j + n) == quarters)
        n++;
    return n;
}

int pnr_hypotheses_rotations(const pnr_config *config, const pnr_radar *radar, double *lowest,
                             double *highest, pnr_error *error)
{
    const double quarters_a_cycle = 4 * (double)radar->n_samples;
    grid g = {0};
    int code = lay_grid(config, radar, &g, error);

    if (code != PNR_OK)
        return code;
    *lowest = (double)rotation_of(&g, g.first) / quarters_a_cycle;
    *highest = (double)rotation_of(&g, g.last) / quarters_a_cycle;
    return PNR_OK;
}

int pnr_hypotheses_create(const pnr_config *config, const pnr_radar *radar, pnr_hypothesis **out,
                          size_t *n, pnr_error *error)
{
    grid g = {0};
    int code;

    *out = NULL;
    *n = 0;
    if ((code = lay_grid(config, radar, &g, error)) != PNR_OK)
        return code;

    const double farthest_hz = (double)(-g.first > g.last ? -g.first : g.last) / g.rows_a_hertz;
    const double row_walk = g.samples_a_hertz / g.rows_a_hertz; /* difference of range walk between
                                                                 * two adjacent rows */
    const bool is_stretched = farthest_hz * g.samples_a_hertz >= walk_samples;
    const bool is_split = is_stretched && row_walk * (double)(g.last - g.first) > walk_samples;
    const int64_t most = is_split ? 1 + (int64_t)(walk_samples / row_walk) : MAX_ROWS;

    if (is_stretched && farthest_hz >= most_stretch * config->radar.carrier_hz)
        return pnr_refuse(error,
                          "a Doppler shift of %.6g Hz stretches the code by more than a tenth at "
                          "radar.carrier_hz = %.10g",
                          farthest_hz, config->radar.carrier_hz);
    if ((*out = malloc((size_t)(g.last - g.first + 1) * sizeof **out)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %" PRId64 " Doppler rows",
                             g.last - g.first + 1);
    for (int64_t j = g.first, rows; j <= g.last; j += rows) {
        const int64_t quarters = rotation_of(&g, j);
        pnr_hypothesis *h = &(*out)[(*n)++];

        rows = g.is_doppler ? count_rows(&g, j, most) : 1;
        if (g.is_doppler && quarters * g.n_periods % 4 != 0) {
            free(*out);
            *out = NULL;
            return pnr_refuse(error,
                              "doppler.step = %s with dwell.periods = %" PRId64
                              ": the rows of neighbouring rotations would not meet; take a "
                              "multiple of %d periods, or whole steps",
                              pnr_config_word(config, "doppler", "step"), g.n_periods,
                              config->doppler.step == PNR_STEP_HALF ? 2 : 4);
        }
        *h = (pnr_hypothesis){
            .quarters = (int32_t)quarters,
            .first_bin = g.is_doppler ? (int32_t)(j - quarters * g.n_periods / 4) : 0,
            .n_rows = (uint32_t)rows,
        };
        if (is_stretched)
            h->stretch =
                -((double)j + (double)(rows - 1) / 2) / (g.rows_a_hertz * config->radar.carrier_hz);
    }
    return PNR_OK;
}
