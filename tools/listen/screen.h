/* SPDX-License-Identifier: MIT */
/* The terminal as a screen that is redrawn in place, and given back as it was whatever happens. */
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
    LISTEN_HEAT, /* and the LISTEN_HEAT_LEVELS - 1 behind it: from weak to strong */
    LISTEN_HEAT_LEVELS = 8
} listen_style;

typedef struct listen_screen listen_screen;

/* PNR_OK, or PNR_EUSAGE: standard output is no terminal, or one that cannot be drawn upon. */
int listen_screen_check(pnr_error *error);
/* Takes the terminal, and the signals that end the program: the first SIGINT, SIGTERM or SIGHUP
 * sets pnr_stop; with a second, with SIGQUIT or a crash the terminal is given back first. PNR_OK,
 * PNR_ENOMEMORY, or as listen_screen_check. */
int listen_screen_open(listen_screen **out, pnr_error *error);
/* Gives the terminal back, and leaves the last frame on it. */
void listen_screen_close(listen_screen *screen);

/* A new frame: asks the terminal's size (80 x 24 when it has none), and begins empty. */
void listen_screen_begin(listen_screen *screen);
bool listen_screen_resized(const listen_screen *screen); /* since the last frame */
int listen_screen_width(const listen_screen *screen);
int listen_screen_height(const listen_screen *screen);
/* One character: `glyph` where the terminal shows UTF-8, else `ascii`. Outside the screen nothing
 * is drawn. */
void listen_screen_put(listen_screen *screen, int x, int y, listen_style style, const char *glyph,
                       char ascii);
/* Text in UTF-8, cut at the right edge. What would command a terminal becomes '?'. */
void listen_screen_text(listen_screen *screen, int x, int y, listen_style style, const char *format,
                        ...) __attribute__((format(printf, 5, 6)));
/* A bar of `eighths` of a character upwards from the row `bottom`. */
void listen_screen_bar(listen_screen *screen, int x, int bottom, int eighths, listen_style style);
int listen_screen_show(listen_screen *screen); /* PNR_OK, PNR_EIO */

/* The file to be polled for keys, -1: none. */
int listen_screen_keys(const listen_screen *screen);
bool listen_screen_quits(listen_screen *screen); /* q was pressed */

#endif
