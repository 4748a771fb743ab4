/* SPDX-License-Identifier: MIT */
/* A fixed number of buffers of equal size. They hold profiles and maps until every subscriber has
 * received them. */
#include "publisher/buffers.h"

#include "base/error.h"

#include <stdint.h>
#include <stdlib.h>

int pnr_buffers_create(size_t n, size_t bytes, pnr_buffers *out)
{
    *out = (pnr_buffers){.n = n, .buffers = calloc(n, sizeof *out->buffers)};
    if (bytes <= SIZE_MAX / n)
        out->memory = malloc(n * bytes);
    if (out->buffers == NULL || out->memory == NULL) {
        pnr_buffers_destroy(out);
        return PNR_ENOMEMORY;
    }
    for (size_t i = 0; i < n; i++)
        out->buffers[i].data = out->memory + i * bytes;
    return PNR_OK;
}

void pnr_buffers_destroy(pnr_buffers *buffers)
{
    free(buffers->buffers);
    free(buffers->memory);
    *buffers = (pnr_buffers){0};
}

pnr_buffer *pnr_buffers_acquire(pnr_buffers *buffers)
{
    for (size_t i = 0; i < buffers->n; i++) {
        pnr_buffer *b = &buffers->buffers[i];

        if (!atomic_load_explicit(&b->is_taken, memory_order_acquire)) {
            atomic_store_explicit(&b->is_taken, true,
                                  memory_order_relaxed); /* only one thread acquires buffers */
            return b;
        }
    }
    return NULL;
}

void pnr_buffers_release(void *data, void *buffer)
{
    pnr_buffer *b = buffer;

    (void)data;
    atomic_store_explicit(&b->is_taken, false, memory_order_release);
}
