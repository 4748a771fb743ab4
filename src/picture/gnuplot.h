/* SPDX-License-Identifier: MIT */
/* Draws pictures with gnuplot, a program on the PATH. Gnuplot reads commands from memory and writes
 * the picture to a pipe. This program writes the file, so gnuplot does not know its name. */
#ifndef PNR_GNUPLOT_H
#define PNR_GNUPLOT_H

#include "base/error.h"

#include <stddef.h>
#include <stdio.h>

enum { PNR_GNUPLOT_LINES = 2 }; /* greatest number of lines of a title */

/* The sheet on which a picture is drawn. The extension of the path defines the format: .png, .svg
 * or .pdf. */
typedef struct pnr_sheet {
    const char *path;
    const char *title[PNR_GNUPLOT_LINES]; /* any text; NULL: no line; a long line is wrapped */
    int width, height;                    /* pixels; a PDF has 96 pixels per inch */
} pnr_sheet;

typedef struct pnr_gnuplot {
    FILE *to;       /* the caller writes commands here; pnr_gnuplot_close runs gnuplot */
    double scale;   /* scale of text and lines; 1 on a sheet of 1100 x 620 pixels */
    double font_px; /* height of the text, pixels */
    double point;   /* `ps` of gnuplot for points with a radius of about 3.5 * scale pixels */
    const char *path;
} pnr_gnuplot;

/* Reads a size such as "1800x1000": 400 to 10000 pixels wide, 300 to 10000 pixels high. Returns
 * PNR_OK or PNR_EUSAGE. */
int pnr_gnuplot_read_size(const char *text, int *width, int *height, pnr_error *error);

/* Checks the path and gnuplot before a long run. Returns PNR_OK; PNR_EUSAGE: the extension is not
 * .png, .svg or .pdf; an error of pnr_new_file_check: the path exists and is no picture of this
 * format, or cannot be written; PNR_EUNAVAILABLE: gnuplot is not on the PATH, or does not know the
 * format. */
int pnr_gnuplot_check(const char *path, pnr_error *error);

/* Writes the settings that all pictures share. sheet->path must outlive *out. Returns PNR_OK; an
 * error of pnr_gnuplot_check; PNR_EIO: no memory. Call pnr_gnuplot_close after PNR_OK. */
int pnr_gnuplot_open(const pnr_sheet *sheet, pnr_gnuplot *out, pnr_error *error);
/* Writes `text` as one literal of gnuplot on one line. A control character becomes '?'. */
void pnr_gnuplot_quote(FILE *to, const char *text);
/* Runs gnuplot and writes the picture. The file appears at its path only when it is complete and on
 * the disk. Returns PNR_OK; PNR_EUNAVAILABLE: gnuplot cannot be started; PNR_EIO: gnuplot failed;
 * errors of the file as for pnr_gnuplot_check. After an error the file at the path is unchanged. */
int pnr_gnuplot_close(pnr_gnuplot *gnuplot, pnr_error *error);

#endif
