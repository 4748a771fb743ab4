/* SPDX-License-Identifier: MIT */
/* Counts the bytes of a list of buffers in advance, and allocates or frees the whole list. */
#include "cuda/base/memory.h"

#include "cuda/base/check.h"

#include <cstring>

void pnr_cuda_buffers_count(const pnr_cuda_buffer *list, size_t n, uint64_t *device_bytes,
                            uint64_t *host_bytes)
{
    for (size_t i = 0; i < n; i++)
        *(list[i].is_host ? host_bytes : device_bytes) += list[i].bytes;
}

static int allocate_buffer(const pnr_cuda_buffer *buffer, cudaStream_t stream, pnr_error *error)
{
    int code;

    if (buffer->is_host) {
        code = pnr_cuda_check(cudaHostAlloc(buffer->memory, buffer->bytes,
                                            cudaHostAllocPortable | cudaHostAllocMapped),
                              "pinned memory for results", error);
        if (code == PNR_OK)
            memset(*buffer->memory, 0, buffer->bytes);
        return code;
    }
    code = pnr_cuda_check(cudaMalloc(buffer->memory, buffer->bytes), "GPU memory", error);
    if (code != PNR_OK)
        return code;
    return pnr_cuda_check(cudaMemsetAsync(*buffer->memory, 0, buffer->bytes, stream),
                          "clearing GPU memory", error);
}

int pnr_cuda_buffers_allocate(const pnr_cuda_buffer *list, size_t n, cudaStream_t stream,
                              pnr_error *error)
{
    int code = PNR_OK;

    for (size_t i = 0; code == PNR_OK && i < n; i++)
        if (list[i].bytes > 0)
            code = allocate_buffer(&list[i], stream, error);
    return code;
}

void pnr_cuda_buffers_free(const pnr_cuda_buffer *list, size_t n)
{
    /* A failed free is ignored: nothing depends on it. */
    for (size_t i = 0; i < n; i++)
        if (*list[i].memory != NULL)
            (void)(list[i].is_host ? cudaFreeHost(*list[i].memory) : cudaFree(*list[i].memory));
}
