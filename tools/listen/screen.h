/* SPDX-License-Identifier: MIT */
/* Draws frames on the whole terminal. Each frame replaces the previous one. Restores the terminal
 * when the program ends, also after a signal. */
#ifndef LISTEN_SCREEN_H
#define LISTEN_SCREEN_H

#include "base/error.h"

#include <stdbool.h>

typedef enum {
    LISTEN_PLAIN,
    LISTEN_BOLD,
    LISTEN_FAINT,
    LISTEN_GREEN,
    LISTEN_YELLOW,
    LISTEN_CYAN,
    LISTEN_RED,
    LISTEN_HEAT, /* the first of LISTEN_HEAT_LEVELS styles, from weak to strong power */
    LISTEN_HEAT_LEVELS = 8
} listen_style;

typedef struct listen_size {
    int width, height; /* in characters */
} listen_size;

typedef struct listen_screen listen_screen;

/* Checks the terminal. PNR_OK, or PNR_EUSAGE: standard output is no terminal, or the terminal
 * cannot draw. */
int listen_screen_check(pnr_error *error);
/* Prepares the terminal for frames, and catches the signals that end the program. The first
 * SIGINT, SIGTERM or SIGHUP sets pnr_stop. The second one restores the terminal and ends the
 * program. SIGQUIT and a crash do this at once. PNR_OK, PNR_ENOMEMORY, or an error of
 * listen_screen_check. */
int listen_screen_open(listen_screen **out, pnr_error *error);
/* Restores the terminal, and prints the last frame on it. */
void listen_screen_close(listen_screen *screen);

/* Begins an empty frame with the present size of the terminal, or 80 x 24 if the terminal reports
 * no size. */
void listen_screen_begin(listen_screen *screen);
bool listen_screen_resized(const listen_screen *screen); /* true: the size has changed since the
                                                          * last frame */
listen_size listen_screen_size(const listen_screen *screen);
/* Draws one character: `glyph` if the terminal shows UTF-8, else `ascii`. Draws nothing outside the
 * screen. */
void listen_screen_put(listen_screen *screen, int x, int y, listen_style style, const char *glyph,
                       char ascii);
/* Draws text in UTF-8, cut at the right edge. Draws '?' for a control character. */
void listen_screen_text(listen_screen *screen, int x, int y, listen_style style, const char *format,
                        ...) __attribute__((format(printf, 5, 6)));
/* Draws text in UTF-8 from the left edge, in as many rows as its fields need. Two spaces separate
 * fields. A field that is longer than a row continues in the next row. y < 0: draws nothing.
 * Returns the number of rows. */
int listen_screen_fields(listen_screen *screen, int y, listen_style style, const char *text);
/* Draws a bar upwards from the row `bottom`. Its height is `eighths` / 8 characters. */
void listen_screen_bar(listen_screen *screen, int x, int bottom, int eighths, listen_style style);
int listen_screen_show(listen_screen *screen); /* prints the frame; PNR_OK, PNR_EIO */

bool listen_screen_quits(listen_screen *screen); /* true: q was pressed */

#endif
