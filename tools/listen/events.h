/* SPDX-License-Identifier: MIT */
/* Prints events as lines on stdout. */
#ifndef LISTEN_EVENTS_H
#define LISTEN_EVENTS_H

#include "base/error.h"
#include "publisher/message.h"
#include "publisher/report.h"

/* Prints one event: as a line of text, as a row of CSV, or as the received message. The header of
 * CSV precedes the first row. raw: the message, `length` bytes. PNR_OK; PNR_EDATA: the message has
 * control characters; PNR_EIO: the stream accepts no more text. */
int listen_event_print(pnr_printer *printer, const pnr_event_summary *event, const char *raw,
                       size_t length, pnr_error *error);
/* Writes the header of CSV if no event was printed, and flushes the stream. PNR_OK or PNR_EIO. */
int listen_event_finish(pnr_printer *printer);

#endif
