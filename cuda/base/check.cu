/* SPDX-License-Identifier: MIT */
/* Converts a status of CUDA, cuFFT or cuBLAS to an error code of pnradar, and reports the error. */
#include "cuda/base/check.h"

/* After these errors the CUDA context is lost. Only a new process can use the device again. */
static const cudaError_t sticky[] = {
    cudaErrorCudartUnloading,
    cudaErrorDevicesUnavailable,
    cudaErrorNoDevice,
    cudaErrorECCUncorrectable,
    cudaErrorNvlinkUncorrectable,
    cudaErrorIllegalAddress,
    cudaErrorLaunchTimeout,
    cudaErrorContextIsDestroyed,
    cudaErrorAssert,
    cudaErrorHardwareStackError,
    cudaErrorIllegalInstruction,
    cudaErrorMisalignedAddress,
    cudaErrorInvalidAddressSpace,
    cudaErrorInvalidPc,
    cudaErrorLaunchFailure,
    cudaErrorSystemNotReady,
    cudaErrorMpsConnectionFailed,
    cudaErrorMpsRpcFailure,
    cudaErrorMpsServerNotReady,
    cudaErrorMpsClientTerminated,
    cudaErrorExternalDevice,
    (cudaError_t)226, /* cudaErrorContained, which older headers do not name */
    (cudaError_t)721, /* cudaErrorTensorMemoryLeak */
    cudaErrorUnknown,
};

static int code_of(cudaError_t status)
{
    if (status == cudaSuccess)
        return PNR_OK;
    if (status == cudaErrorMemoryAllocation)
        return PNR_ENOMEMORY;
    for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++)
        if (status == sticky[i])
            return PNR_ELOST;
    return PNR_EENGINE;
}

int pnr_cuda_check(cudaError_t status, const char *what, pnr_error *error)
{
    const int code = code_of(status);

    if (code == PNR_OK)
        return PNR_OK;
    (void)cudaGetLastError();
    return pnr_error_set(error, code, "cuda: %s: %s (%s)", what, cudaGetErrorString(status),
                         cudaGetErrorName(status));
}

int pnr_cuda_check_launch(const char *kernel, pnr_error *error)
{
    return pnr_cuda_check(cudaGetLastError(), kernel, error);
}

int pnr_cuda_library_failed(int code, const char *library, const char *what, const char *text,
                            pnr_error *error)
{
    const cudaError_t status = cudaGetLastError();

    if (code_of(status) == PNR_ELOST)
        return pnr_cuda_check(status, what, error);
    return pnr_error_set(error, code, "cuda: %s: %s says: %s", what, library, text);
}

static const char *fft_text(cufftResult status)
{
    static const struct {
        cufftResult status;
        const char *text;
    } texts[] = {
        {CUFFT_INVALID_PLAN, "invalid plan"},          {CUFFT_ALLOC_FAILED, "no memory"},
        {CUFFT_INVALID_TYPE, "invalid type"},          {CUFFT_INVALID_VALUE, "invalid value"},
        {CUFFT_INTERNAL_ERROR, "internal error"},      {CUFFT_EXEC_FAILED, "execution failed"},
        {CUFFT_SETUP_FAILED, "library set-up failed"}, {CUFFT_INVALID_SIZE, "invalid size"},
        {CUFFT_INVALID_DEVICE, "invalid device"},      {CUFFT_NO_WORKSPACE, "no work area"},
        {CUFFT_NOT_SUPPORTED, "not supported"},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "unknown status";
}

int pnr_cuda_check_fft(cufftResult status, const char *what, pnr_error *error)
{
    if (status == CUFFT_SUCCESS)
        return PNR_OK;
    return pnr_cuda_library_failed(status == CUFFT_ALLOC_FAILED ? PNR_ENOMEMORY : PNR_EENGINE,
                                   "cuFFT", what, fft_text(status), error);
}
