/* SPDX-License-Identifier: MIT */
/* Memory of engines on the host: aligned and touched. */
#ifndef PNR_ENGINE_MEMORY_H
#define PNR_ENGINE_MEMORY_H

#include <stddef.h>

/* Allocates bytes that begin on a cache line, or on a large page when they fill two of these;
 * zeroed and touched. Free them with free(). NULL: out of memory. */
void *pnr_memory_zeroed(size_t bytes);

#endif
