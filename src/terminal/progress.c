/* SPDX-License-Identifier: MIT */
#include "terminal/progress.h"

#include "base/log.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void format_time(double seconds, char out[32])
{
    const unsigned long s = (unsigned long)ceil(seconds);

    if (s < 60)
        snprintf(out, 32, "%lu s", s);
    else if (s < 3600)
        snprintf(out, 32, "%lu min %02lu s", s / 60, s % 60);
    else
        snprintf(out, 32, "%lu h %02lu min", s / 3600, s % 3600 / 60);
}

void pnr_progress_format(const pnr_progress *progress, char out[PNR_PROGRESS_LEN])
{
    static const char *const prefixes[] = {"", "k", "M", "G"};
    const double share = (double)progress->n_done / (double)progress->n_samples;
    double rate_hz = progress->elapsed_s > 0 ? (double)progress->n_done / progress->elapsed_s : 0;
    const double left_s = (double)(progress->n_samples - progress->n_done) / rate_hz;
    char left[32] = "?";
    size_t i = 0;

    if (left_s < 1e9)
        format_time(left_s, left);
    for (; rate_hz >= 999.5 && i + 1 < sizeof prefixes / sizeof prefixes[0]; i++)
        rate_hz /= 1000;
    snprintf(out, PNR_PROGRESS_LEN, "%.0f %%, %.3g %ssamples/s, %s left, %" PRIu64 " echo%s",
             floor(100 * share), rate_hz, prefixes[i], left, progress->n_echoes,
             progress->n_echoes == 1 ? "" : "es");
}

void pnr_progress_begin(pnr_progress_line *line)
{
    const char *log = getenv("PNR_LOG"), *terminal = getenv("TERM");

    *line = (pnr_progress_line){.is_on = isatty(STDERR_FILENO) && terminal != NULL &&
                                         strcmp(terminal, "dumb") != 0 &&
                                         (log == NULL || strcmp(log, "quiet") != 0)};
}

void pnr_progress_hide(pnr_progress_line *line)
{
    if (line->is_shown)
        fputs("\r\033[K", stderr);
    line->is_shown = false;
}

/* Cuts the line to the width of the terminal, because a wrapped line could not be cleared. Writes
 * nothing to a stopped terminal, because the write would wait. */
void pnr_progress_show(pnr_progress_line *line)
{
    struct winsize size = {0};

    if (!line->is_on || line->text[0] == '\0' || !pnr_log_is_ready())
        return;
    pnr_progress_hide(line);
    (void)ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
    fprintf(stderr, "%.*s", size.ws_col > 0 ? size.ws_col - 1 : 79, line->text);
    line->is_shown = true;
}

void pnr_progress_watch(void *context, const pnr_progress *progress)
{
    pnr_progress_line *line = context;

    if (!line->is_on)
        return;
    if (progress == NULL) {
        pnr_progress_hide(line);
        return;
    }
    pnr_progress_format(progress, line->text);
    pnr_progress_show(line);
}
