/* SPDX-License-Identifier: MIT */
/* Memory for tables and samples, in large pages where it fills them. */
#ifndef PNR_MEMORY_H
#define PNR_MEMORY_H

#include <stddef.h>

/* Allocates memory that begins on a cache line, or on a large page if it fills at least two large
 * pages. Its pages appear when they are first written. Free it with free(). NULL: out of memory. */
void *pnr_memory_large(size_t bytes);
/* As pnr_memory_large, zeroed and with all its pages present. */
void *pnr_memory_zeroed(size_t bytes);

#endif
