/* SPDX-License-Identifier: MIT */
/* Lists of memory blocks: counted before they are needed, allocated and freed together. */
#ifndef PNR_CUDA_MEMORY_H
#define PNR_CUDA_MEMORY_H

#include "cuda/base/pnr.h"

#include <cuda_runtime.h>

/* A block of memory and the pointer to it. */
typedef struct pnr_cuda_block {
    void **memory;
    size_t bytes; /* 0: not needed */
    bool is_host; /* pinned, and the kernels write to it */
} pnr_cuda_block;

/* Adds the bytes of the list's blocks. */
void pnr_cuda_blocks_count(const pnr_cuda_block *list, size_t n, uint64_t *device_bytes,
                           uint64_t *host_bytes);
/* All blocks of the list, zeroed in the stream's order. PNR_OK, or as pnr_cuda_check; on failure
 * some are allocated: free the list. */
int pnr_cuda_blocks_allocate(const pnr_cuda_block *list, size_t n, cudaStream_t stream,
                             pnr_error *error);
/* Frees what is not NULL; bytes are of no matter. */
void pnr_cuda_blocks_free(const pnr_cuda_block *list, size_t n);

#endif
