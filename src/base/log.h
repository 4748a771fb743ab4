/* SPDX-License-Identifier: MIT */
/* Events to stderr, one a line, with numbers and units. */
#ifndef PNR_LOG_H
#define PNR_LOG_H

#include <stdbool.h>

/* PNR_LOG=quiet (errors only) | info (default) | debug in the
 * environment chooses what is printed. */
typedef enum { PNR_LOG_ERROR, PNR_LOG_WARN, PNR_LOG_INFO, PNR_LOG_DEBUG } pnr_log_level;

/* Writes "<program>: [warning: |error: ]<text>\n" in one write. Never called by the two threads of
 * the pipeline between start and end, except for errors that end the program, and once a second at
 * most when pnr_log_is_ready. */
void pnr_log(pnr_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Standard error takes a line without waiting for its reader. */
bool pnr_log_is_ready(void);

#endif
