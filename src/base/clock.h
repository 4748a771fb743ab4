/* SPDX-License-Identifier: MIT */
/* Monotonic time and UTC. Converts UTC to text and back. */
#ifndef PNR_CLOCK_H
#define PNR_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PNR_NS_PER_S INT64_C(1000000000)
enum { PNR_TIME_LEN = 40 }; /* bytes of "2026-11-21T02:40:12.000041943Z" and its NUL */

uint64_t pnr_clock_ns(void);    /* CLOCK_MONOTONIC, ns */
int64_t pnr_clock_utc_ns(void); /* ns since 1970-01-01T00:00:00Z, no leap seconds */

/* Sleeps until CLOCK_MONOTONIC is time_ns, and returns true. Returns false within 50 ms after *stop
 * becomes true. stop may be NULL. */
bool pnr_clock_sleep_until(uint64_t time_ns, const volatile int *stop);

/* Reads "2026-11-21T02:40:12[.fraction]Z" with 1 to 9 digits of fraction, in the years 1970 to
 * 2261. Returns PNR_OK, or PNR_ECONFIG for any other text. */
int pnr_time_parse(const char *text, int64_t *utc_ns);
/* Writes a time in the form that pnr_time_parse reads, with nine digits of fraction. Returns
 * out. */
char *pnr_time_format(int64_t utc_ns, char out[PNR_TIME_LEN]);

#endif
