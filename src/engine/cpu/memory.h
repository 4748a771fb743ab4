/* SPDX-License-Identifier: MIT */
/* Memory of the cpu engine: aligned, touched, and laid out for the caches. */
#ifndef PNR_ENGINE_CPU_MEMORY_H
#define PNR_ENGINE_CPU_MEMORY_H

#include <stddef.h>

/* Allocates bytes that begin on a cache line, zeroed and touched; free them with free(). NULL: out
 * of memory. */
void *pnr_cpu_zeroed(size_t bytes);

/* The distance in values (8 bytes) from row to row for rows of n_values: an odd number of whole
 * cache lines, so that the values of one column spread over all sets of a cache. */
size_t pnr_cpu_pitch(size_t n_values);

#endif
