/* SPDX-License-Identifier: MIT */
/* Kernels chained in a stream: the next one's blocks take their places while the last blocks of
 * this one still run. */
#ifndef PNR_CUDA_CHAIN_H
#define PNR_CUDA_CHAIN_H

#include <cuda_runtime.h>

/*
 * Programmatic dependent launch, compute capability 9.0 and later; elsewhere nothing. Every kernel
 * of a chain calls pnr_chain_next() early and pnr_chain_wait() in every thread before it touches
 * what an earlier kernel of the chain writes, or returns: so a kernel that is complete says that
 * all before it are. The chain's first kernel is launched as any other and need not wait.
 */
static __device__ __forceinline__ void pnr_chain_next()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static __device__ __forceinline__ void pnr_chain_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
