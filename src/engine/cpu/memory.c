/* SPDX-License-Identifier: MIT */
/* Memory of the cpu engine: aligned, touched, and laid out for the caches. */
#include "engine/cpu/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 1 << 21 };

void *pnr_cpu_zeroed(size_t bytes)
{
    const bool is_huge = bytes >= 2 * HUGE_PAGE;
    void *memory = NULL;

    if (posix_memalign(&memory, is_huge ? HUGE_PAGE : 64, bytes) != 0)
        return NULL;
    if (is_huge) /* fewer address translations; a hint */
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memset(memory, 0, bytes); /* so that no page fault delays the first dwell */
}

size_t pnr_cpu_pitch(size_t n_values)
{
    return ((n_values + 7) / 8 | 1) * 8;
}
