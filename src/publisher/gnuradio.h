/* SPDX-License-Identifier: MIT */
/* Sends profiles and maps to a GNU Radio flow graph, as vectors with stream tags for the block ZMQ
 * SUB Source. */
#ifndef PNR_GNURADIO_H
#define PNR_GNURADIO_H

#include "base/error.h"
#include "base/event.h"
#include "config/config.h"
#include "publisher/message.h"

typedef struct pnr_gnuradio pnr_gnuradio;

/*
 * Binds to publisher.gnuradio. *info: the shape of the profiles or maps. Borrows config and events.
 * Posts each refused subscriber to events, which may be NULL. patience_s: how long a send may wait
 * for a slow subscriber; 0: a send never waits, and a slow subscriber loses messages. *stop (may be
 * NULL) also ends a wait. Returns PNR_OK, or an error of pnr_endpoint_bind or pnr_guard_create.
 */
int pnr_gnuradio_open(const pnr_config *config, const pnr_map_info *info, double patience_s,
                      const volatile int *stop, pnr_events *events, pnr_gnuradio **out,
                      pnr_error *error);
/* Waits at most publisher.linger_s for the last messages. */
void pnr_gnuradio_close(pnr_gnuradio *gnuradio);
/* Waits for the first subscriber. PNR_OK, or PNR_EAGAIN after patience_s or once *stop is set. */
int pnr_gnuradio_wait(pnr_gnuradio *gnuradio, double patience_s, const volatile int *stop);
/* Sends one message: a vector of n_cells powers, or (I, Q) pairs, for each row of each code. The
 * tags of the first vector are "dwell" (rises by one with each dwell), "sample", "lost", "step_s",
 * and "rx_time" if the time is known. The tags of each vector of a map are "code" (from 1) and
 * "doppler_hz". cells: as for pnr_publisher_send_cells. Returns PNR_OK, or PNR_EAGAIN: the message
 * was not sent, and the next message shows a gap in the numbers of the vectors. */
int pnr_gnuradio_send(pnr_gnuradio *gnuradio, const pnr_report *report, const pnr_map_info *info,
                      const float *cells);

#endif
