/* SPDX-License-Identifier: MIT */
/* cuBLAS, loaded when a plan first needs it. */
#ifndef PNR_CUDA_BLAS_H
#define PNR_CUDA_BLAS_H

#include "cuda/base/pnr.h"

#include <cublas_v2.h>

enum { PNR_CUDA_PRODUCT_BYTES = 4 << 20 }; /* bytes of the work area of a handle */

/* The functions of cuBLAS that the engine calls. Only the least-squares filter needs them. The
 * library has 600 MB, and the dynamic linker takes 50 to 70 ms to load it, so it is not linked. */
typedef struct pnr_cuda_blas {
    decltype(&cublasCreate_v2) create;
    decltype(&cublasDestroy_v2) destroy;
    decltype(&cublasSetStream_v2) set_stream;
    decltype(&cublasSetWorkspace_v2) set_workspace;
    decltype(&cublasCgemm_v2) cgemm;
    decltype(&cublasGetStatusString) status_text;
} pnr_cuda_blas;

/* Loads the library once in a process; any thread. *blas: never freed. PNR_OK, or PNR_EUNAVAILABLE
 * with a text that names the library. */
int pnr_cuda_blas_load(const pnr_cuda_blas **blas, pnr_error *error);
/* As pnr_cuda_check (check.h), for a status of cuBLAS. */
int pnr_cuda_check_blas(const pnr_cuda_blas *blas, cublasStatus_t status, const char *what,
                        pnr_error *error);

/* Creates a cuBLAS handle for a stream. memory: PNR_CUDA_PRODUCT_BYTES on the device. *handle is
 * NULL before the call. After a failure the caller destroys *handle if it is not NULL. */
int pnr_cuda_product_create(const pnr_cuda_blas *blas, cublasHandle_t *handle, void *memory,
                            cudaStream_t stream, pnr_error *error);

#endif
