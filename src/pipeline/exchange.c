/* SPDX-License-Identifier: MIT */
/* The layout of a result and its cells in a queue. */
#include "pipeline/exchange.h"

#include <string.h>

enum { ALIGNMENT = 16 };

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t pnr_made_most_bytes(size_t cells_bytes)
{
    return round_up(sizeof(pnr_made)) + cells_bytes;
}

size_t pnr_made_bytes(const pnr_made *made)
{
    return offsetof(pnr_made, detection.echoes) +
           made->detection.n_echoes * sizeof made->detection.echoes[0];
}

size_t pnr_made_finish(pnr_made *made, const float *cells, size_t cells_bytes)
{
    made->cells_at = 0;
    if (cells == NULL)
        return pnr_made_bytes(made);
    made->cells_at = round_up(pnr_made_bytes(made));
    memcpy((char *)made + made->cells_at, cells, cells_bytes);
    return made->cells_at + cells_bytes;
}

const float *pnr_made_cells(const pnr_made *made)
{
    return made->cells_at > 0 ? (const float *)((const char *)made + made->cells_at) : NULL;
}
