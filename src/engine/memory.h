/* SPDX-License-Identifier: MIT */
/* Memory of engines on the host: aligned, zeroed, and with all its pages present. */
#ifndef PNR_ENGINE_MEMORY_H
#define PNR_ENGINE_MEMORY_H

#include <stddef.h>

/* Allocates zeroed memory whose pages are all present. The memory begins on a cache line, or on a
 * large page if it fills at least two large pages. Free it with free(). NULL: out of memory. */
void *pnr_memory_zeroed(size_t bytes);

#endif
