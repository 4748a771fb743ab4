/* SPDX-License-Identifier: MIT */
/* Loads cuBLAS, and creates its handles. */
#include "cuda/base/blas.h"

#include "cuda/base/check.h"

#include <cstdio>
#include <dlfcn.h>
#include <pthread.h>

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
static const char library[] = "libcublas.so." TEXT_OF(CUBLAS_VER_MAJOR);

static pnr_cuda_blas functions;
static char failure[256]; /* empty: the library is loaded */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Fills one function. The first failure is kept. */
template <typename F> static void find(void *handle, const char *name, F *function)
{
    *function = failure[0] == 0 ? (F)dlsym(handle, name) : NULL;
    if (failure[0] == 0 && *function == NULL)
        snprintf(failure, sizeof failure, "%s has no %s", library, name);
}

static void load(void)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    if (handle == NULL)
        snprintf(failure, sizeof failure, "%s", dlerror());
    find(handle, "cublasCreate_v2", &functions.create);
    find(handle, "cublasDestroy_v2", &functions.destroy);
    find(handle, "cublasSetStream_v2", &functions.set_stream);
    find(handle, "cublasSetWorkspace_v2", &functions.set_workspace);
    find(handle, "cublasCgemm_v2", &functions.cgemm);
    find(handle, "cublasGetStatusString", &functions.status_text);
}

int pnr_cuda_blas_load(const pnr_cuda_blas **blas, pnr_error *error)
{
    (void)pthread_once(&once, load);
    if (failure[0] != 0)
        return pnr_error_set(error, PNR_EUNAVAILABLE,
                             "engine cuda: the least-squares filter needs cuBLAS: %s", failure);
    *blas = &functions;
    return PNR_OK;
}

int pnr_cuda_check_blas(const pnr_cuda_blas *blas, cublasStatus_t status, const char *what,
                        pnr_error *error)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return PNR_OK;
    return pnr_cuda_library_failed(status == CUBLAS_STATUS_ALLOC_FAILED ? PNR_ENOMEMORY
                                                                        : PNR_EENGINE,
                                   "cuBLAS", what, blas->status_text(status), error);
}

int pnr_cuda_product_create(const pnr_cuda_blas *blas, cublasHandle_t *handle, void *memory,
                            cudaStream_t stream, pnr_error *error)
{
    int code = pnr_cuda_check_blas(blas, blas->create(handle), "creating the product", error);

    if (code != PNR_OK) {
        *handle = NULL;
        return code;
    }
    /* The stream is set first, because cublasSetStream drops the workspace. */
    if ((code = pnr_cuda_check_blas(blas, blas->set_stream(*handle, stream), "product's stream",
                                    error)) != PNR_OK)
        return code;
    return pnr_cuda_check_blas(blas, blas->set_workspace(*handle, memory, PNR_CUDA_PRODUCT_BYTES),
                               "product's work area", error);
}
