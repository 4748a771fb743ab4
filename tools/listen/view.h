/* SPDX-License-Identifier: MIT */
/* The two ways to see results besides the table: the picture at the end, and the terminal. Both use
 * the profiles. */
#ifndef LISTEN_VIEW_H
#define LISTEN_VIEW_H

#include "base/error.h"
#include "publisher/message.h"
#include "tools/common/subscriber.h"
#include "tools/listen/count.h"

#include <stdbool.h>
#include <stdio.h>

/* Every function accepts NULL: nothing is shown. */
typedef struct listen_view listen_view;

/* plot: the path of the PNG, NULL: none. To be called first. PNR_OK; PNR_EUNAVAILABLE: no gnuplot;
 * PNR_EUSAGE: no terminal. */
int listen_view_check(const char *plot, bool is_live, pnr_error *error);
/* Subscribes to the profiles and maps. source and plot must outlive *out. map: how maps are drawn.
 * *out is NULL when there is nothing to show. PNR_OK, or as picture.h and profiles.h. */
int listen_view_open(void *context, const pnr_subscriber_source *source, const char *plot,
                     const char *map, bool is_live, listen_view **out, pnr_error *error);
/* Takes the terminal if the user wants it: text written to *log appears after listen_view_leave. */
int listen_view_enter(listen_view *view, FILE **log, pnr_error *error);
/* Restores the terminal; *log is standard error again. */
void listen_view_leave(listen_view *view, const listen_counts *counts, FILE **log);
void listen_view_close(listen_view *view);

/* True when the publisher has been reached. A subscription to its results that begins now misses no
 * profile. */
bool listen_view_reached(listen_view *view);
/* Adds the sockets and files to poll to items, which has space for two. Returns their number. */
int listen_view_poll(const listen_view *view, zmq_pollitem_t *items);

/* Shows a result. Returns true when it replaces the table. */
bool listen_view_result(listen_view *view, const pnr_report *report);
/* Takes the next profile. PNR_OK; PNR_EAGAIN: there is none; PNR_EDATA: it cannot be read;
 * PNR_ENOMEMORY. */
int listen_view_next(listen_view *view, pnr_error *error);
/* Called when all results have arrived. True when all profiles of this run have arrived too, or
 * none for a second. */
bool listen_view_is_done(const listen_view *view, const char *run);
/* Shows a line on the terminal. False: the terminal is not taken, and the caller logs the line. */
bool listen_view_notice(listen_view *view, const char *text);
/* Draws a frame when it is time. PNR_OK; PNR_EEND: the user leaves; PNR_EIO. */
int listen_view_draw(listen_view *view, const listen_counts *counts);
/* Prints the count of profiles, and draws the picture. code: an earlier error, which is
 * returned. */
int listen_view_finish(listen_view *view, const listen_counts *counts, FILE *log, int code,
                       pnr_error *error);

#endif
