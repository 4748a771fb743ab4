/* SPDX-License-Identifier: MIT */
/* Chains kernels in a stream: blocks of the next kernel start while the last blocks of the previous
 * kernel still run. */
#ifndef PNR_CUDA_CHAIN_H
#define PNR_CUDA_CHAIN_H

#include <cuda_runtime.h>

/*
 * The functions use programmatic dependent launch of compute capability 9.0. On older devices both
 * functions are empty. Every kernel of a chain calls pnr_chain_next() early. Every thread calls
 * pnr_chain_wait() before it reads what an earlier kernel of the chain writes, and before it
 * returns. So when a kernel is complete, all kernels before it are complete. The first kernel of a
 * chain is launched as usual and need not wait.
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
