/* SPDX-License-Identifier: MIT */
/* Draws the power of a profile or map on the terminal. Range increases to the right. A profile is
 * drawn as bars. In a map, Doppler increases upwards, and colours show the power. */
#ifndef LISTEN_GRAPH_H
#define LISTEN_GRAPH_H

#include "tools/listen/profiles.h"
#include "tools/listen/screen.h"

#include <stddef.h>

enum { LISTEN_GRAPH_COLUMNS = 400, LISTEN_GRAPH_ROWS = 120 };

/* A rectangle of the screen. `left` is its first column, and `bottom` is its lowest row. The colour
 * scale of a map is at the right end of row `scale`. */
typedef struct listen_place {
    int left, columns, bottom, rows, scale;
} listen_place;

/* The last profile or map, reduced to the screen. power: the greatest power / floor for each
 * Doppler bin and column; NAN: no cell. A struct of zeros: no profile has arrived. */
typedef struct listen_graph {
    pnr_map_info info;        /* header of the last profile or map */
    pnr_doppler_bins doppler; /* a bin has one or more rows; a profile has one bin */
    size_t n_columns;
    float power[LISTEN_GRAPH_ROWS][LISTEN_GRAPH_COLUMNS]; /* [doppler.n_bins][n_columns] */
    int top_db;                                           /* top of the scale, in dB */
} listen_graph;

/* Reduces a profile or map to the rows and columns of a place. The place has at least one row and
 * one column. */
void listen_graph_fill(listen_graph *graph, const pnr_map *profile, const listen_place *at);
/* Draws the power, its axes, and the marks of the echoes. */
void listen_graph_draw(listen_graph *graph, listen_screen *screen, const listen_place *at,
                       const pnr_detection *detection);
/* Returns the mark of an echo: a digit for the first nine echoes, then a letter, then `many` for
 * all others. */
char listen_graph_mark(size_t echo, char many);

#endif
