/* SPDX-License-Identifier: MIT */
/* The memory that this program may still allocate. */
#ifndef PNR_AVAILABLE_H
#define PNR_AVAILABLE_H

/* Returns the bytes that the system can give without swapping: MemAvailable of /proc/meminfo, or
 * less if the control group or one above it has a limit. Returns infinity if the system states
 * neither. */
double pnr_memory_available(void);

#endif
