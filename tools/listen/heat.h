/* SPDX-License-Identifier: MIT */
/* A range-Doppler map on the terminal: range to the right, Doppler upwards, colours by dB. */
#ifndef LISTEN_HEAT_H
#define LISTEN_HEAT_H

#include "tools/listen/profiles.h"
#include "tools/listen/screen.h"

#include <stddef.h>

enum { LISTEN_HEAT_COLUMNS = 400, LISTEN_HEAT_ROWS = 120 };

/* The greatest power over the floor at each place of the screen; NAN: no cell. */
typedef struct listen_heat {
    listen_doppler doppler; /* a bin is a row, or several; n_bins 0: there is no map */
    double mps_per_hz;      /* NAN: no carrier */
    size_t n_columns;
    float power[LISTEN_HEAT_ROWS][LISTEN_HEAT_COLUMNS]; /* [doppler.n_bins][n_columns] */
} listen_heat;

/* Takes a map, at most so many columns and rows. A profile leaves it without bins. */
void listen_heat_fill(listen_heat *heat, const listen_profile *profile, size_t columns,
                      size_t rows);
float listen_heat_greatest(const listen_heat *heat); /* 0: there is no map */

/* A place on the screen: columns to the right from left, rows upwards from bottom. */
typedef struct listen_place {
    int left, columns, bottom, rows;
} listen_place;

/* Draws the map, its scale from 0 to top_db, and its Doppler or velocity to the left. */
void listen_heat_draw(const listen_heat *heat, listen_screen *screen, const listen_place *at,
                      int top_db);
/* The row of a Doppler, -1: outside the map. */
int listen_heat_row(const listen_heat *heat, const listen_place *at, double doppler_hz);

#endif
