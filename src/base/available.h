/* SPDX-License-Identifier: MIT */
/* The memory that this program may still allocate. */
#ifndef PNR_AVAILABLE_H
#define PNR_AVAILABLE_H

/* Returns the bytes that programs can allocate without swapping: MemAvailable of /proc/meminfo, or
 * less if the control group, or a group that contains it, has a limit. Returns infinity if the
 * system gives no number. */
double pnr_memory_available(void);

#endif
