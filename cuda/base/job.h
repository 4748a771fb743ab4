/* SPDX-License-Identifier: MIT */
/* The header of a submit and of its windows: its way to the device. */
#ifndef PNR_CUDA_JOB_H
#define PNR_CUDA_JOB_H

#include "cuda/base/state.h"

#include <cuda_runtime.h>

/* Enqueues the copy of the job and n_windows windows behind it, from pinned mapped host memory.
 * A kernel and no copy of the driver's: of less than 64 KiB that one goes through the command
 * buffer, slower than the link, and the samples of the next submit wait for it. PNR_OK, or as
 * pnr_cuda_check. */
int pnr_cuda_fetch_job(const pnr_cuda_job *from, pnr_cuda_job *to, size_t n_windows,
                       cudaStream_t stream, pnr_error *error);

#endif
