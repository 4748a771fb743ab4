/* SPDX-License-Identifier: MIT */
/* The publisher: ZeroMQ PUB side; never blocks the pipeline; counts what it could not send. */
#ifndef PNR_PUBLISHER_H
#define PNR_PUBLISHER_H

#include "base/error.h"
#include "config/config.h"
#include "publisher/message.h"

typedef struct pnr_publisher pnr_publisher;

/* Binds. PNR_EUNAVAILABLE: address in use or not ours; PNR_ECONFIG: beyond loopback without CURVE
 * or publisher.expose; an empty endpoint gives a publisher that sends nowhere (results count as
 * sent to nobody... see the account). */
int pnr_publisher_create(const pnr_config *config, pnr_publisher **out, pnr_error *error);
void pnr_publisher_destroy(pnr_publisher *publisher); /* lets messages leave for at most linger_s */
/* Waits for the first subscriber, at most patience_s, or until *stop. PNR_OK or PNR_EAGAIN. */
int pnr_publisher_wait(pnr_publisher *publisher, double patience_s, const volatile int *stop);
/* Each sets run, stream and seq (status: subscribers too) itself. PNR_OK, or PNR_EAGAIN: refused by
 * the socket (counted by the caller as unsent; its seq is used up, so a subscriber sees the gap).
 * With publisher.pack > 1 PNR_OK means taken: it leaves with its pack, and a pack that is refused
 * is kept for the next call. */
int pnr_publisher_send_range(pnr_publisher *publisher, pnr_report *report);
/* profile: info->n_cells powers, or (I, Q) pairs. */
int pnr_publisher_send_profile(pnr_publisher *publisher, const pnr_report *report,
                               const pnr_profile_info *info, const float *profile);
/* cells: [n_codes][n_rows][n_cells] powers, or (I, Q) pairs. */
int pnr_publisher_send_map(pnr_publisher *publisher, const pnr_report *report,
                           const pnr_map_info *info, const float *cells);
int pnr_publisher_send_status(pnr_publisher *publisher, pnr_status *status, bool is_end);
/* Packed results that wait for a full pack leave now. PNR_EAGAIN: refused, and
 * pnr_publisher_waiting() results that were counted as sent are still here: at the end the caller
 * counts them as unsent. */
int pnr_publisher_flush(pnr_publisher *publisher);
size_t pnr_publisher_waiting(const pnr_publisher *publisher);
/* Of range/<stream> or of a prefix of it. */
size_t pnr_publisher_subscribers(pnr_publisher *publisher);
const char *pnr_publisher_endpoint(const pnr_publisher *publisher); /* as bound */
const char *pnr_publisher_run(const pnr_publisher *publisher);      /* this run's 16 hex digits */

#endif
