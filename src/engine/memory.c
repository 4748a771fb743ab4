/* SPDX-License-Identifier: MIT */
/* Memory of engines on the host: aligned, zeroed, and with all its pages present. */
#include "engine/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE_PAGE = 1 << 21 };

void *pnr_memory_zeroed(size_t bytes)
{
    const bool is_large = bytes >= 2 * LARGE_PAGE;
    void *memory = NULL;

    if (posix_memalign(&memory, is_large ? LARGE_PAGE : 64, bytes) != 0)
        return NULL;
    if (is_large) /* a hint: large pages need fewer address translations */
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memset(memory, 0, bytes); /* so that no page fault delays the first dwell */
}
