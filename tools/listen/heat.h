/* SPDX-License-Identifier: MIT */
/* A range-Doppler map on the terminal: range to the right, Doppler upwards, colours by dB. */
#ifndef LISTEN_HEAT_H
#define LISTEN_HEAT_H

#include "tools/listen/profiles.h"
#include "tools/listen/screen.h"

#include <stddef.h>

enum { LISTEN_HEAT_COLUMNS = 400, LISTEN_HEAT_ROWS = 120 };

/* The greatest power over the floor of what falls on each place of the screen; NAN: nothing. */
typedef struct listen_heat {
    listen_doppler doppler; /* a bin is a row, or several; n_bins 0: there is no map */
    double mps_per_hz;      /* NAN: no carrier */
    size_t n_columns;
    float power[LISTEN_HEAT_ROWS][LISTEN_HEAT_COLUMNS]; /* [doppler.n_bins][n_columns] */
} listen_heat;

/* At most so many columns and rows. A profile is no map. */
void listen_heat_fill(listen_heat *heat, const listen_profile *profile, size_t columns,
                      size_t rows);
float listen_heat_greatest(const listen_heat *heat); /* 0: nothing is there */

/* Its place on the screen: columns to the right of left, rows up from bottom. */
typedef struct listen_place {
    int left, columns, bottom, rows;
} listen_place;

/* The map, its scale from 0 to top_db, and its Doppler or velocity to the left of it. */
void listen_heat_draw(const listen_heat *heat, listen_screen *screen, const listen_place *at,
                      int top_db);
/* The row of a Doppler, -1: beyond the map. */
int listen_heat_row(const listen_heat *heat, const listen_place *at, double doppler_hz);

#endif
