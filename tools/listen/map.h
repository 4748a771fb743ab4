/* SPDX-License-Identifier: MIT */
/* The range-Doppler picture: the maps of a run, gathered on a grid of bounded size, and drawn. */
#ifndef LISTEN_MAP_H
#define LISTEN_MAP_H

#include "base/error.h"
#include "tools/listen/profiles.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How maps are drawn: the mean of all, the last one, or range over time, with the greatest power of
 * all rows: the last is no range-Doppler picture. */
typedef enum { LISTEN_MAP_MEAN, LISTEN_MAP_LAST, LISTEN_MAP_TIME } listen_map_kind;

/* Finds "mean", "last" or "time". PNR_OK, or PNR_EUSAGE with the three names. */
int listen_map_find(const char *name, listen_map_kind *out, pnr_error *error);

typedef struct listen_map listen_map;

int listen_map_create(listen_map_kind kind, listen_map **out, pnr_error *error);
void listen_map_destroy(listen_map *map);

void listen_map_clear(listen_map *map); /* begins a new run */
/* Adds a map of several rows; ignores a profile, and a map of another shape. PNR_OK,
 * PNR_ENOMEMORY. */
int listen_map_add(listen_map *map, const listen_profile *profile, pnr_error *error);
uint64_t listen_map_count(const listen_map *map); /* 0: nothing to draw */
/* True when the picture shows the dwell of this sample: its echoes are drawn. */
bool listen_map_shows(const listen_map *map, uint64_t sample);

/* The place of an echo on the picture. */
double listen_map_x(const listen_map *map, double doppler_hz);
double listen_map_y(const listen_map *map, double range_m);
/* Writes gnuplot's commands from the labels to the plot of $map, which is the last. */
void listen_map_draw(const listen_map *map, FILE *to);
/* Writes "mean of 12 maps". */
void listen_map_title(const listen_map *map, char *out, size_t size);

/* --- gnuplot's commands that every picture of power shares --- */

/* One cell of the block $map: power over the floor; NAN or 0: nothing came. Raises *greatest_db. */
void listen_image_cell(FILE *to, double power, double *greatest_db);
void listen_image_palette(FILE *to); /* from weak to strong */
/* The colours, from 0 dB to what the greatest power needs; grey where nothing came. */
void listen_image_colours(FILE *to, double greatest_db);
/* "plot $map": column c of row r is centred at x0 + c dx, y0 + r dy. gnuplot's images have two rows
 * and columns at least. */
void listen_image_plot(FILE *to, double x0, double dx, double y0, double dy);
/* Adds n points of the block $echoes to that plot, and ends the command. */
void listen_image_echoes(FILE *to, size_t n);

#endif
