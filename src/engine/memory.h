/* SPDX-License-Identifier: MIT */
/* Memory of engines on the host: aligned and touched. */
#ifndef PNR_ENGINE_MEMORY_H
#define PNR_ENGINE_MEMORY_H

#include <stddef.h>

/* Allocates zeroed and touched memory. It begins on a cache line, or on a large page if it fills at
 * least two. Free it with free(). NULL: out of memory. */
void *pnr_memory_zeroed(size_t bytes);

#endif
