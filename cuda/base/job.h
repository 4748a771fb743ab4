/* SPDX-License-Identifier: MIT */
/* Copies the header of a submit and the headers of its windows to the device. */
#ifndef PNR_CUDA_JOB_H
#define PNR_CUDA_JOB_H

#include "cuda/base/state.h"

#include <cuda_runtime.h>

/* Enqueues a kernel that copies the job and the headers of its n_windows windows to the device.
 * from: pinned, mapped host memory, where the headers follow the job. A copy of less than 64 KiB by
 * the driver would be slower, and would delay the samples of the next submit. PNR_OK, or as
 * pnr_cuda_check. */
int pnr_cuda_fetch_job(const pnr_cuda_job *from, pnr_cuda_job *to, size_t n_windows,
                       cudaStream_t stream, pnr_error *error);

/* Returns a kernel of this module. The engine uses the kernel to test whether a device can run the
 * module. */
const void *pnr_cuda_a_kernel(void);

#endif
