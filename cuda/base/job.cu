/* SPDX-License-Identifier: MIT */
/* Copies the header of a submit and the headers of its windows to the device. */
#include "cuda/base/job.h"

#include "cuda/base/check.h"
#include "cuda/base/shape.h"

enum { MAX_BLOCKS = 16, PIECE = sizeof(uint4) };
static_assert(sizeof(pnr_cuda_job) == PIECE && sizeof(pnr_cuda_window) == PIECE, "whole pieces");

__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    fetch_job(const volatile uint4 *from, uint4 *to, uint32_t n_pieces)
{
    for (uint32_t i = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x; i < n_pieces;
         i += gridDim.x * PNR_CUDA_THREADS) {
        uint4 piece;

        /* This load bypasses every cache, because the host writes the memory before each submit. */
        asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(piece.x), "=r"(piece.y), "=r"(piece.z), "=r"(piece.w)
                     : "l"(from + i));
        to[i] = piece;
    }
}

/* --- the launcher --- */

const void *pnr_cuda_a_kernel(void)
{
    return (const void *)fetch_job;
}

int pnr_cuda_fetch_job(const pnr_cuda_job *from, pnr_cuda_job *to, size_t n_windows,
                       cudaStream_t stream, pnr_error *error)
{
    const size_t n_pieces = 1 + n_windows;
    const size_t n_blocks = (n_pieces + PNR_CUDA_THREADS - 1) / PNR_CUDA_THREADS;

    fetch_job<<<(unsigned)(n_blocks < (size_t)MAX_BLOCKS ? n_blocks : (size_t)MAX_BLOCKS),
                PNR_CUDA_THREADS, 0, stream>>>((const volatile uint4 *)from, (uint4 *)to,
                                               (uint32_t)n_pieces);
    return pnr_cuda_check_launch("fetch_job", error);
}
