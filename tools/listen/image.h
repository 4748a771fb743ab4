/* SPDX-License-Identifier: MIT */
/* What gnuplot's pictures of power share: cells in dB over the noise floor as colours, and echoes
 * over them. */
#ifndef LISTEN_IMAGE_H
#define LISTEN_IMAGE_H

#include <stddef.h>
#include <stdio.h>

/* One cell of the block $map: power over the floor; NAN or 0: nothing came. *greatest_db grows. */
void listen_image_cell(FILE *to, double power, double *greatest_db);
void listen_image_palette(FILE *to); /* from weak to strong */
/* The colours, from 0 dB to what the greatest needs; where nothing came it is grey. */
void listen_image_colours(FILE *to, double greatest_db);
/* "plot $map": column c of row r is centred at x0 + c dx, y0 + r dy. gnuplot's images have two rows
 * and columns at least. */
void listen_image_plot(FILE *to, double x0, double dx, double y0, double dy);
/* Behind it: n points of the block $echoes; ends the command. */
void listen_image_echoes(FILE *to, size_t n);

#endif
