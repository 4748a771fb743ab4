/* SPDX-License-Identifier: MIT */
/* Draws pictures with gnuplot, a program on the PATH that reads commands from a pipe. */
#include "tools/common/gnuplot.h"

#include <stdlib.h>
#include <unistd.h>

int pnr_gnuplot_check(pnr_error *error)
{
    return system("command -v gnuplot >/dev/null 2>&1") == 0
               ? PNR_OK
               : pnr_error_set(
                     error, PNR_EUNAVAILABLE,
                     "--plot needs gnuplot, which is not on the PATH (Debian: gnuplot-nox)");
}

void pnr_gnuplot_quote(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text != '\0'; text++)
        fputs(*text == '\'' ? "''" : (char[2]){*text, '\0'}, to);
    fputc('\'', to);
}

int pnr_gnuplot_open(const char *path, const char *title, int width, int height, FILE **to,
                     pnr_error *error)
{
    *to = popen("exec gnuplot", "we");
    if (*to == NULL)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "--plot %s: gnuplot cannot be started", path);
    fprintf(*to, "set terminal pngcairo size %d,%d\nset output ", width, height);
    pnr_gnuplot_quote(*to, path);
    fputs("\nset title ", *to);
    pnr_gnuplot_quote(*to, title);
    fputs(" noenhanced\n", *to);
    return PNR_OK;
}

int pnr_gnuplot_close(FILE *to, const char *path, pnr_error *error)
{
    const int status = pclose(to);

    if (status != 0 || access(path, R_OK) != 0)
        return pnr_error_set(error, PNR_EIO, "--plot %s: gnuplot failed (status %d)", path, status);
    return PNR_OK;
}
