/* SPDX-License-Identifier: MIT */
/* Converts a status of CUDA or cuFFT to an error code of pnradar, and reports the error. */
#ifndef PNR_CUDA_CHECK_H
#define PNR_CUDA_CHECK_H

#include "cuda/base/pnr.h"

#include <cuda_runtime.h>
#include <cufft.h>

/* Return PNR_OK, PNR_ENOMEMORY, PNR_ELOST or, for any other failure, PNR_EENGINE. After PNR_ELOST
 * (illegal address, launch failure, ECC, lost device) every later call in this process fails too.
 * error (may be NULL) gets one line: `what` and the text of the library. On failure these
 * functions clear the last error of the CUDA runtime. */
int pnr_cuda_check(cudaError_t status, const char *what, pnr_error *error);
int pnr_cuda_check_fft(cufftResult status, const char *what, pnr_error *error);
/* Reports a failure of cuFFT or cuBLAS. text: what the library says. Returns code, or PNR_ELOST if
 * the device is lost. */
int pnr_cuda_library_failed(int code, const char *library, const char *what, const char *text,
                            pnr_error *error);

/* Checks the last launch of a kernel. Also reports an error of an earlier launch. */
int pnr_cuda_check_launch(const char *kernel, pnr_error *error);

#endif
