/* SPDX-License-Identifier: MIT */
/* The publisher: sends results to subscribers over ZeroMQ and never blocks a live pipeline. */
#ifndef PNR_PUBLISHER_H
#define PNR_PUBLISHER_H

#include "base/error.h"
#include "config/config.h"
#include "publisher/message.h"

typedef struct pnr_publisher pnr_publisher;

/* Binds to publisher.endpoint. If the endpoint is empty, the publisher sends nothing, and every
 * send succeeds. Borrows config and events. Posts each refused subscriber to events, which may be
 * NULL. Returns PNR_OK, or an error of pnr_endpoint_bind or pnr_guard_create. */
int pnr_publisher_create(const pnr_config *config, pnr_events *events, pnr_publisher **out,
                         pnr_error *error);
/* Waits at most publisher.linger_s for the last messages. */
void pnr_publisher_destroy(pnr_publisher *publisher);
/* Waits for the first subscriber of publisher.gnuradio, and for the first subscriber of results or
 * events at publisher.endpoint. Does not wait for an endpoint that is not set. PNR_OK, or
 * PNR_EAGAIN: one of the two is still missing after patience_s, or *stop is set. */
int pnr_publisher_wait(pnr_publisher *publisher, double patience_s, const volatile int *stop);
/* pnr_publisher_send_range and pnr_publisher_send_status set run, stream and seq of the message;
 * the second also sets subscribers and access. Each send returns PNR_OK, or PNR_EAGAIN: the socket
 * refused the message. The caller counts a refused message as unsent, and subscribers see a gap in
 * seq. With publisher.pack > 1, PNR_OK means that the result is kept until its pack is full; a
 * refused pack is kept for the next call. */
int pnr_publisher_send_range(pnr_publisher *publisher, pnr_report *report);
/* Begins another run: the next messages have a new run, and seq begins at 0 again. Drops the
 * results that are kept for a pack, so the caller first calls pnr_publisher_flush. */
void pnr_publisher_begin_run(pnr_publisher *publisher);
/* Skips the numbers of n results that are never sent: subscribers see a gap in seq. */
void pnr_publisher_skip_ranges(pnr_publisher *publisher, uint64_t n);
/* Reserves memory for profiles or maps that wait for slow subscribers: pnr_plan_maps(), or half of
 * them if patience_s is not 0. *info has their shape. Binds to publisher.gnuradio if it is set.
 * Call it once, before the first pnr_publisher_send_cells. patience_s: how long a send may wait for
 * free memory, 0 for a live stream. *stop (may be NULL) also ends this wait. Returns PNR_OK,
 * PNR_ENOMEMORY, or an error of pnr_gnuradio_open. */
int pnr_publisher_reserve_cells(pnr_publisher *publisher, const pnr_map_info *info,
                                double patience_s, const volatile int *stop, pnr_error *error);
/* Sends a profile or a map. report: pnr_publisher_send_range has set its run and stream. cells:
 * [n_codes][n_rows][n_cells] powers, or (I, Q) pairs. Returns PNR_EAGAIN also if all reserved
 * memory is in use. */
int pnr_publisher_send_cells(pnr_publisher *publisher, const pnr_report *report,
                             const pnr_map_info *info, const float *cells);
int pnr_publisher_send_status(pnr_publisher *publisher, pnr_status *status, bool is_end);
/* Sends an event. If the socket refuses the event, subscribers see a gap in seq. The next status
 * also counts a refused event. */
int pnr_publisher_send_event(pnr_publisher *publisher, const pnr_event *event);
/* Sends the results that are kept for a pack. PNR_OK, or PNR_EAGAIN: the socket refused them. If
 * the last flush fails, the caller counts pnr_publisher_waiting() results as unsent. */
int pnr_publisher_flush(pnr_publisher *publisher);
size_t pnr_publisher_waiting(const pnr_publisher *publisher);
/* Returns the number of subscriptions to range/<stream> or to a prefix of it. */
size_t pnr_publisher_subscribers(pnr_publisher *publisher);
/* Returns true if a call of pnr_publisher_subscribers or pnr_publisher_send_status has seen a
 * subscription to any topic, even if it had ended by then. */
bool pnr_publisher_was_heard(const pnr_publisher *publisher);
/* Returns the bound endpoint, with the real port instead of "*". */
const char *pnr_publisher_endpoint(const pnr_publisher *publisher);

#endif
