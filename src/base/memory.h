/* SPDX-License-Identifier: MIT */
/* Memory for tables and samples, in large pages if it is large enough. */
#ifndef PNR_MEMORY_H
#define PNR_MEMORY_H

#include <stddef.h>

/* Allocates memory that begins at a cache line, or at a large page if it fills at least two large
 * pages. The system adds a page at its first write. Free the memory with free(). Returns NULL if
 * there is no memory. */
void *pnr_memory_large(size_t bytes);
/* Like pnr_memory_large, but the memory is zeroed and all its pages are present. */
void *pnr_memory_zeroed(size_t bytes);

#endif
