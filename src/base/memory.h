/* SPDX-License-Identifier: MIT */
/* Memory for tables and samples, in large pages if it is large enough. */
#ifndef PNR_MEMORY_H
#define PNR_MEMORY_H

#include <stddef.h>

/* Allocates memory that is aligned to a cache line. Memory of at least two large pages is aligned
 * to a large page. The system maps a page when the page is first written. Free the memory with
 * free(). Returns NULL if there is no memory. */
void *pnr_memory_large(size_t bytes);
/* Like pnr_memory_large, but the memory is zeroed and all its pages are present. */
void *pnr_memory_zeroed(size_t bytes);

#endif
