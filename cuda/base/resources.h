/* SPDX-License-Identifier: MIT */
/* Resources that methods use: tables and spectra on the device, transforms, matrix products, a
 * second stream, and the limits of the device. Host only. */
#ifndef PNR_CUDA_RESOURCES_H
#define PNR_CUDA_RESOURCES_H

#include "cuda/base/check.h"

/* --- tables --- */

/* Copies a table of `bytes` bytes (0: copies nothing) to device memory. The caller can free `from`
 * after the call. The copy can end later, so the caller synchronises with the device before a
 * kernel in another stream reads the table. PNR_OK, or as pnr_cuda_check. */
int pnr_cuda_upload(void *to, const void *from, size_t bytes, pnr_error *error);

/* Returns the index of bin k in a spectrum of n_transform values. */
typedef size_t (*pnr_cuda_place)(size_t n_transform, size_t k);

/*
 * Fills the spectra with scale / L * conj(DFT of a reference), for all of plan->references. L is
 * n_transform; zeros extend a reference to L samples. The values are computed in double precision
 * and rounded once.
 * spectra: [n_codes][oversample][L] on the device, allocated. Bin k is at index place(L, k), or at
 * index k if `place` is NULL. PNR_OK, PNR_ENOMEMORY, or as pnr_cuda_check.
 */
int pnr_cuda_upload_spectra(const pnr_plan *plan, size_t n_transform, pnr_cuda_place place,
                            double scale, float2 *spectra, pnr_error *error);

/* --- cuFFT --- */

/* The transforms of rows, in place. Each call of cuFFT transforms the same number of rows, so that
 * the bits of a row do not depend on the number of other rows. */
typedef struct pnr_cuda_transforms {
    cufftHandle handles[2]; /* forward, inverse; one handle for both if n_handles is 1 */
    int n_handles;
    size_t n_rows[2]; /* rows of a call: forward, inverse */
    size_t stride;    /* distance between two rows, in values */
    void *memory;     /* the work area, so that no call allocates memory */
} pnr_cuda_transforms;

/* Creates the cuFFT handles and their work area. transforms: zeroed before the call. On failure
 * call pnr_cuda_transforms_destroy. PNR_OK, or as pnr_cuda_check. */
int pnr_cuda_transforms_create(pnr_cuda_transforms *transforms, size_t n_points, size_t stride,
                               size_t n_forward, size_t n_inverse, cudaStream_t stream,
                               pnr_error *error);
void pnr_cuda_transforms_destroy(pnr_cuda_transforms *transforms);
/* Enqueues the transforms of n rows. All calls of cuFFT have the same number of rows, so the last
 * call may transform more rows than are left. `rows` needs memory for all these rows. direction:
 * CUFFT_FORWARD or CUFFT_INVERSE. */
int pnr_cuda_transforms_run(const pnr_cuda_transforms *transforms, float2 *rows, size_t n,
                            int direction, pnr_error *error);

/* --- a second stream --- */

/* The second stream of a slot. It has work only between the fork and the join of a job. */
typedef struct pnr_cuda_side {
    cudaStream_t stream;
    cudaEvent_t fork, join;
} pnr_cuda_side;

/* Creates the stream and its events. side: zeroed before the call. On failure call
 * pnr_cuda_side_destroy. */
int pnr_cuda_side_create(pnr_cuda_side *side, pnr_error *error);
void pnr_cuda_side_destroy(pnr_cuda_side *side);
/* Makes the side stream wait for all work that is in `main` now. */
int pnr_cuda_side_fork(const pnr_cuda_side *side, cudaStream_t main, pnr_error *error);
/* Makes `main` wait for the side stream, even if the work between fork and join failed. code: the
 * result of that work. Returns code, or the result of the join if code is PNR_OK. */
int pnr_cuda_side_join(const pnr_cuda_side *side, cudaStream_t main, int code, pnr_error *error);

/* --- kernels and the device --- */

/* Lets a kernel use shared_bytes of dynamic shared memory. */
int pnr_cuda_allow_shared(const void *kernel, size_t shared_bytes, pnr_error *error);
/* Calls pnr_cuda_allow_shared and counts blocks. *n_blocks: blocks of n_threads that the current
 * device runs at one time; 0: a block does not fit. */
int pnr_cuda_fit_blocks(const void *kernel, size_t n_threads, size_t shared_bytes,
                        uint32_t *n_blocks, pnr_error *error);

/* pnr_cuda_block_bytes returns the bytes of shared memory that a block can have.
 * pnr_cuda_processors returns the number of multiprocessors. Without a device both return the value
 * of an H200. */
size_t pnr_cuda_block_bytes(size_t device);
size_t pnr_cuda_processors(size_t device);

#endif
