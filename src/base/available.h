/* SPDX-License-Identifier: MIT */
/* The memory that this program can still allocate. */
#ifndef PNR_AVAILABLE_H
#define PNR_AVAILABLE_H

/* Returns the bytes that programs can allocate without swapping: MemAvailable of /proc/meminfo, or
 * less if the control group of this process, or a group that contains this group, has a limit.
 * Returns infinity if the system gives no number. */
double pnr_memory_available(void);

#endif
