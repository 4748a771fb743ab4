/* SPDX-License-Identifier: MIT */
/* Profiles and maps for a GNU Radio flow graph: vectors with stream tags, for its ZMQ SUB
 * source. */
#ifndef PNR_GNURADIO_H
#define PNR_GNURADIO_H

#include "base/error.h"
#include "base/event.h"
#include "config/config.h"
#include "publisher/message.h"

typedef struct pnr_gnuradio pnr_gnuradio;

/*
 * Binds to publisher.gnuradio for profiles or maps like *info; the errors are those of
 * pnr_endpoint_bind and pnr_guard_create. Borrows config and events. Posts each refused subscriber
 * to events, which may be NULL. patience_s: how long a send may wait for a slow subscriber; 0: it
 * never waits, and each slow subscriber loses messages. *stop (may be NULL) also ends a wait.
 */
int pnr_gnuradio_open(const pnr_config *config, const pnr_map_info *info, double patience_s,
                      const volatile int *stop, pnr_events *events, pnr_gnuradio **out,
                      pnr_error *error);
/* Waits at most publisher.linger_s for the last messages. */
void pnr_gnuradio_close(pnr_gnuradio *gnuradio);
/* Waits for the first subscriber. PNR_OK, or PNR_EAGAIN after patience_s or once *stop is set. */
int pnr_gnuradio_wait(pnr_gnuradio *gnuradio, double patience_s, const volatile int *stop);
/*
 * Sends one message: a vector of n_cells powers, or (I, Q) pairs, for each row of each code. Tags
 * at the first vector: dwell (a number that rises by one), sample, lost, step_s, and rx_time if the
 * time is known; at each vector of a map: code (from 1) and doppler_hz. cells as those of
 * pnr_publisher_send_cells. PNR_OK, or PNR_EAGAIN: not sent; the vectors are counted.
 */
int pnr_gnuradio_send(pnr_gnuradio *gnuradio, const pnr_report *report, const pnr_map_info *info,
                      const float *cells);

#endif
