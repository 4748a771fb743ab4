/* SPDX-License-Identifier: MIT */
/* A fixed number of buffers of equal size. They hold profiles and maps until every subscriber has
 * received them. */
#ifndef PNR_BUFFERS_H
#define PNR_BUFFERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct pnr_buffer {
    void *data; /* [bytes], see pnr_buffers_create */
    _Atomic bool is_taken;
} pnr_buffer;

typedef struct pnr_buffers {
    size_t n;
    pnr_buffer *buffers; /* [n] */
    char *memory;
} pnr_buffers;

/* Allocates n buffers of `bytes` bytes each. n and `bytes` are at least 1. Returns PNR_OK or
 * PNR_ENOMEMORY. */
int pnr_buffers_create(size_t n, size_t bytes, pnr_buffers *out);
/* Frees the buffers. None of them may be in use. A zeroed *buffers is allowed. */
void pnr_buffers_destroy(pnr_buffers *buffers);
/* Returns a free buffer, which belongs to the caller until it is released. NULL: none is free. */
pnr_buffer *pnr_buffers_acquire(pnr_buffers *buffers);
/* Releases a buffer. Any thread may call it. The function has the type zmq_free_fn of libzmq:
 * `data` is unused, and `buffer` points to a pnr_buffer. */
void pnr_buffers_release(void *data, void *buffer);

#endif
