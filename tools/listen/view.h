/* SPDX-License-Identifier: MIT */
/* What shows the results beside the table: the picture at the end, the terminal, and the profiles
 * for both. */
#ifndef LISTEN_VIEW_H
#define LISTEN_VIEW_H

#include "base/error.h"
#include "publisher/message.h"
#include "tools/common/subscriber.h"
#include "tools/listen/count.h"
#include "tools/listen/map.h"

#include <stdbool.h>
#include <stdio.h>

/* Every function takes NULL: nothing is shown. */
typedef struct listen_view listen_view;

/* plot: the PNG's path, NULL: none. Asked before anything else: PNR_OK, PNR_EUNAVAILABLE: no
 * gnuplot; PNR_EUSAGE: no terminal. */
int listen_view_check(const char *plot, bool is_live, pnr_error *error);
/* Subscribes to the profiles and maps. source and plot stay the caller's. map: what is drawn of
 * maps. *out is NULL when nothing is to be
 * shown. PNR_OK, or what listen_picture.h and listen_profiles.h say. */
int listen_view_open(void *context, const pnr_subscriber_source *source, const char *plot,
                     listen_map_kind map, bool is_live, listen_view **out, pnr_error *error);
/* Takes the terminal, if it is wanted: what is written to *log comes after listen_view_leave. */
int listen_view_enter(listen_view *view, FILE **log, pnr_error *error);
/* Gives it back; *log is standard error again. */
void listen_view_leave(listen_view *view, const listen_counts *counts, FILE **log);
void listen_view_close(listen_view *view);

/* True once the publisher has been reached: who asks for its results now misses no profile. */
bool listen_view_reached(listen_view *view);
/* Adds what is to be polled to items, which has room for two. Returns how many. */
int listen_view_poll(const listen_view *view, zmq_pollitem_t *items);

/* Returns true when it takes the table's place. */
bool listen_view_result(listen_view *view, const pnr_report *report);
/* The next profile. PNR_OK; PNR_EAGAIN: there is none; PNR_EDATA: it cannot be read;
 * PNR_ENOMEMORY. */
int listen_view_next(listen_view *view, pnr_error *error);
/* Every result is in: are the profiles of this run too? Also when none came for a second. */
bool listen_view_is_done(const listen_view *view, const char *run);
/* True when the line is shown on the terminal, so that it must not be logged. */
bool listen_view_notice(listen_view *view, const char *text);
/* PNR_OK; PNR_EEND: the user leaves; PNR_EIO. */
int listen_view_draw(listen_view *view, const listen_counts *counts);
/* Counts the profiles, and draws the picture. code: of all before, it stays the first error. */
int listen_view_finish(listen_view *view, const listen_counts *counts, FILE *log, int code,
                       pnr_error *error);

#endif
