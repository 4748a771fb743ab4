/* SPDX-License-Identifier: MIT */
/* What gnuplot's pictures of power share: cells in dB over the noise floor as colours, and echoes
 * over them. */
#include "tools/listen/image.h"

#include <math.h>

enum {
    NOTHING = -999,   /* no such power is, and no warning of gnuplot's comes of it */
    MANY_ECHOES = 400 /* more of them are dots, so that the map stays visible */
};

void listen_image_cell(FILE *to, double power, double *greatest_db)
{
    const double db = power > 0 ? 10 * log10(power) : (double)NAN;

    *greatest_db = fmax(*greatest_db, db);
    if (isnan(db))
        fprintf(to, "%d ", NOTHING);
    else
        fprintf(to, "%.1f ", db);
}

void listen_image_palette(FILE *to)
{
    fputs("set palette defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n",
          to);
}

void listen_image_colours(FILE *to, double greatest_db)
{
    listen_image_palette(to);
    fputs("set cblabel 'power over the noise floor, dB'\n"
          "set object rectangle from graph 0,0 to graph 1,1 behind fillcolor rgb 'gray'\n",
          to);
    fprintf(to, "set cbrange [0:%g]\n", fmax(20, 5 * ceil(greatest_db / 5)));
}

void listen_image_plot(FILE *to, double x0, double dx, double y0, double dy)
{
    fprintf(to,
            "plot $map matrix using (%.9g+%.9g*$1):(%.9g+%.9g*$2):($3>%d?$3:NaN) with image "
            "notitle",
            x0, dx, y0, dy, NOTHING);
}

void listen_image_echoes(FILE *to, size_t n)
{
    if (n > 0)
        fprintf(to, ", $echoes using 1:2 with points %s lc rgb 'red' notitle",
                n > MANY_ECHOES ? "pt 7 ps 0.15" : "pt 6 ps 1");
    fputc('\n', to);
}
