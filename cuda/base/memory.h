/* SPDX-License-Identifier: MIT */
/* Counts the bytes of a list of buffers in advance, and allocates or frees the whole list. */
#ifndef PNR_CUDA_MEMORY_H
#define PNR_CUDA_MEMORY_H

#include "cuda/base/pnr.h"

#include <cuda_runtime.h>

/* One buffer. *memory points to it, and must be NULL before the allocation. */
typedef struct pnr_cuda_buffer {
    void **memory;
    size_t bytes; /* 0: the buffer is not needed */
    bool is_host; /* true: pinned and mapped host memory; false: device memory */
} pnr_cuda_buffer;

enum { PNR_CUDA_MAX_BUFFERS = 48 }; /* greatest number of buffers in a list */

/* Adds the bytes of the buffers of a list to *device_bytes and *host_bytes. */
void pnr_cuda_buffers_count(const pnr_cuda_buffer *list, size_t n, uint64_t *device_bytes,
                            uint64_t *host_bytes);
/* Allocates all buffers of the list and fills them with zeros. Device buffers are filled
 * asynchronously, in `stream`. PNR_OK, or as pnr_cuda_check. On failure some buffers may be
 * allocated: free the list. */
int pnr_cuda_buffers_allocate(const pnr_cuda_buffer *list, size_t n, cudaStream_t stream,
                              pnr_error *error);
/* Frees all buffers of the list that are not NULL. */
void pnr_cuda_buffers_free(const pnr_cuda_buffer *list, size_t n);

#endif
