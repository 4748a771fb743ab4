/* SPDX-License-Identifier: MIT */
/* The log on stderr: one line for each message, with numbers and units. */
#ifndef PNR_LOG_H
#define PNR_LOG_H

#include "base/error.h"

#include <stdbool.h>

/* The environment variable PNR_LOG selects the messages that are printed: quiet (errors only), info
 * (default) or debug. Any other word means info. */
typedef enum { PNR_LOG_ERROR, PNR_LOG_WARN, PNR_LOG_INFO, PNR_LOG_DEBUG } pnr_log_level;

/* Writes "<program>: [warning: |error: ]<text>\n" in one call of write. The threads of a running
 * pipeline call this function only for an error that ends the program. They report everything else
 * as events (event.h). The rate of events is limited, and events are logged only if
 * pnr_log_is_ready returns true. */
void pnr_log(pnr_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns PNR_EUSAGE if the word of PNR_LOG is unknown, else PNR_OK. Programs call it once, at
 * their start. */
int pnr_log_check(pnr_error *error);
/* True if standard error accepts a line without blocking. */
bool pnr_log_is_ready(void);

#endif
