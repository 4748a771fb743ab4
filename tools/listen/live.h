/* SPDX-License-Identifier: MIT */
/* Draws the profile or map and its echoes on the terminal. Each frame replaces the previous one. */
#ifndef LISTEN_LIVE_H
#define LISTEN_LIVE_H

#include "base/error.h"
#include "publisher/message.h"
#include "tools/listen/count.h"
#include "tools/listen/profiles.h"

#include <stdio.h>

typedef struct listen_live listen_live;

/* Switches the terminal to the live display, see screen.h. endpoint must outlive *out. Text written
 * to *log waits until the terminal is restored. */
int listen_live_open(const char *endpoint, listen_live **out, FILE **log, pnr_error *error);
/* Restores the terminal, and prints the last frame on it. *log is standard error again. */
void listen_live_close(listen_live *live, const listen_counts *counts, FILE **log);

void listen_live_result(listen_live *live, const pnr_report *report);
void listen_live_profile(listen_live *live, const pnr_map *profile);
void listen_live_notice(listen_live *live, const char *text); /* a text for the last rows of the
                                                               * screen */
/* Draws at most ten times a second, and only if the contents have changed. PNR_OK; PNR_EEND: q was
 * pressed; PNR_EIO. */
int listen_live_draw(listen_live *live, const listen_counts *counts);

#endif
