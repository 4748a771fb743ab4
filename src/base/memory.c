/* SPDX-License-Identifier: MIT */
/* Memory for tables and samples: aligned, and in large pages if it is large enough. */
#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE_PAGE = 1 << 21 };

void *pnr_memory_large(size_t bytes)
{
    const bool is_large = bytes >= 2 * LARGE_PAGE;
    void *memory = NULL;

    if (posix_memalign(&memory, is_large ? LARGE_PAGE : 64, bytes) != 0)
        return NULL;
    if (is_large) /* a hint: large pages need fewer page faults and address translations */
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

void *pnr_memory_zeroed(size_t bytes)
{
    void *memory = pnr_memory_large(bytes);

    return memory != NULL ? memset(memory, 0, bytes)
                          : NULL; /* memset touches all pages, so no page fault delays the first
                                   * dwell */
}
