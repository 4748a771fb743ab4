/* SPDX-License-Identifier: MIT */
/* Draws pictures with gnuplot, a program on the PATH that reads commands from a pipe. */
#ifndef PNR_GNUPLOT_H
#define PNR_GNUPLOT_H

#include "base/error.h"

#include <stdio.h>

/* PNR_OK, or PNR_EUNAVAILABLE when gnuplot is not on the PATH. Call it before measuring. */
int pnr_gnuplot_check(pnr_error *error);

/* Starts gnuplot. It draws a PNG of width x height pixels with a title to the file `path`. The
 * caller then writes commands to *to. PNR_OK or PNR_EUNAVAILABLE. */
int pnr_gnuplot_open(const char *path, const char *title, int width, int height, FILE **to,
                     pnr_error *error);
/* Writes `text` in single quotes. Doubles the single quotes inside it, as gnuplot requires. */
void pnr_gnuplot_quote(FILE *to, const char *text);
/* Waits until the picture is drawn. PNR_OK or PNR_EIO. */
int pnr_gnuplot_close(FILE *to, const char *path, pnr_error *error);

#endif
