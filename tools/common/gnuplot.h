/* SPDX-License-Identifier: MIT */
/* Pictures through gnuplot: a program on the PATH that reads its commands from a pipe. */
#ifndef PNR_GNUPLOT_H
#define PNR_GNUPLOT_H

#include "base/error.h"

#include <stdio.h>

/* PNR_OK, or PNR_EUNAVAILABLE when gnuplot is not on the PATH. Call it before measuring. */
int pnr_gnuplot_check(pnr_error *error);

/* Starts a gnuplot that draws the PNG at path, width x height pixels, with a title. The caller then
 * writes commands to *to. PNR_OK or PNR_EUNAVAILABLE. */
int pnr_gnuplot_open(const char *path, const char *title, int width, int height, FILE **to,
                     pnr_error *error);
/* Writes text between single quotes, as gnuplot reads it. */
void pnr_gnuplot_quote(FILE *to, const char *text);
/* Waits until the picture is drawn. PNR_OK or PNR_EIO. */
int pnr_gnuplot_close(FILE *to, const char *path, pnr_error *error);

#endif
