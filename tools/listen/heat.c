/* SPDX-License-Identifier: MIT */
/* A range-Doppler map on the terminal: range to the right, Doppler upwards, colours by dB. */
#include "tools/listen/heat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEVELS = LISTEN_HEAT_LEVELS, AXIS_EVERY = 3 /* rows */ };

/* From the noise to the strongest power: they tell the levels without colours, and without
 * UTF-8. */
static const char *const glyphs[LEVELS] = {" ", "·", "░", "░", "▒", "▒", "▓", "█"};
static const char ascii[] = " .:-=+%#";

void listen_heat_fill(listen_heat *h, const listen_profile *profile, size_t columns, size_t rows)
{
    const double n_gate = (double)profile->map.row.n_gate;
    size_t b, first_row;

    h->doppler.n_bins = 0;
    if (profile->map.n_rows < 2 || rows < 1 || columns < 1)
        return;
    h->doppler =
        listen_doppler_of(&profile->map, rows < LISTEN_HEAT_ROWS ? rows : LISTEN_HEAT_ROWS);
    h->mps_per_hz = profile->map.mps_per_hz;
    h->n_columns = columns < LISTEN_HEAT_COLUMNS ? columns : LISTEN_HEAT_COLUMNS;
    for (b = 0; b < h->doppler.n_bins; b++) {
        const size_t n_rows = listen_doppler_rows(&h->doppler, &profile->map, b, &first_row);

        listen_profile_reduce(profile, first_row, n_rows, n_gate / (double)h->n_columns,
                              h->n_columns, h->power[b]);
    }
}

float listen_heat_greatest(const listen_heat *h)
{
    float greatest = 0;
    size_t b, c;

    for (b = 0; b < h->doppler.n_bins; b++)
        for (c = 0; c < h->n_columns; c++)
            greatest = fmaxf(greatest, h->power[b][c]);
    return greatest;
}

/* The noise at a place is the greatest of several cells, some dB above the floor: it is level 0. */
static int level_of(double db, int top_db)
{
    const double level = floor(db / top_db * LEVELS);

    return !(level > 0) ? 0 : level < LEVELS - 1 ? (int)level : LEVELS - 1;
}

static size_t bin_of(const listen_heat *h, const listen_place *at, int up)
{
    return (size_t)up * h->doppler.n_bins / (size_t)at->rows;
}

static void draw_scale(listen_screen *screen, const listen_place *at, int top_db)
{
    char text[16];
    int x = at->left + at->columns - LEVELS - 16, level;

    if (x <= at->left)
        return;
    listen_screen_text(screen, x, at->bottom - at->rows + 1, LISTEN_PLAIN, " 0 ");
    for (x += 3, level = 0; level < LEVELS; level++)
        listen_screen_put(screen, x++, at->bottom - at->rows + 1, LISTEN_HEAT + level,
                          glyphs[level], ascii[level]);
    snprintf(text, sizeof text, " %d dB ", top_db);
    listen_screen_text(screen, x, at->bottom - at->rows + 1, LISTEN_PLAIN, "%s", text);
}

static void draw_axis(const listen_heat *h, listen_screen *screen, const listen_place *at)
{
    const double scale = isfinite(h->mps_per_hz) ? h->mps_per_hz : 1;
    char text[32];

    for (int up = 0; up < at->rows; up += AXIS_EVERY) {
        const double row = ((double)up + 0.5) / at->rows * (double)h->doppler.n_bins - 0.5;
        const double value = (h->doppler.first_hz + row * h->doppler.step_hz) * scale;

        snprintf(text, sizeof text, "%*.*g", at->left - 1, 4, value);
        listen_screen_text(screen, 0, at->bottom - up, LISTEN_PLAIN, "%.*s", at->left - 1, text);
        listen_screen_put(screen, at->left - 1, at->bottom - up, LISTEN_PLAIN, "┤", '+');
    }
    listen_screen_text(screen, 0, at->bottom + 1, LISTEN_PLAIN, "%s",
                       isfinite(h->mps_per_hz) ? "m/s" : "Hz");
}

void listen_heat_draw(const listen_heat *h, listen_screen *screen, const listen_place *at,
                      int top_db)
{
    for (int up = 0; up < at->rows; up++) {
        const float *row = h->power[bin_of(h, at, up)];

        for (int x = 0; x < at->columns; x++) {
            const float power = row[(size_t)x * h->n_columns / (size_t)at->columns];
            const int level = level_of(power > 0 ? 10 * log10((double)power) : 0, top_db);

            listen_screen_put(screen, at->left + x, at->bottom - up, LISTEN_HEAT + level,
                              glyphs[level], ascii[level]);
        }
    }
    draw_axis(h, screen, at);
    draw_scale(screen, at, top_db);
}

int listen_heat_row(const listen_heat *h, const listen_place *at, double doppler_hz)
{
    const double bin = (doppler_hz - h->doppler.first_hz) / h->doppler.step_hz + 0.5;
    const double up = floor(bin / (double)h->doppler.n_bins * at->rows);

    return up >= 0 && up < at->rows ? at->bottom - (int)up : -1;
}
