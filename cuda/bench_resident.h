/* SPDX-License-Identifier: MIT */
/* Methods timed with samples and results on the device: the bench table's resident operations. */
#ifndef PNR_CUDA_BENCH_RESIDENT_H
#define PNR_CUDA_BENCH_RESIDENT_H

#include "pnr.h"

#include <cuda_runtime.h>

extern const pnr_resident_ops pnr_cuda_resident;

/* The samples of pnr_resident_ops.fill. raw: [n_windows * N][n_channels] in the plan's format, the
 * channels all alike. code: [N], lags: [n_windows / n_periods], device. */
int pnr_cuda_bench_fill(const pnr_plan *plan, void *raw, size_t n_windows, const float2 *code,
                        const uint32_t *lags, uint64_t seed, cudaStream_t stream, pnr_error *error);

/* In bench_device.cu: as in pnr_resident_ops. */
double pnr_cuda_bench_copy_rate(size_t device, size_t bytes);
int pnr_cuda_bench_describe(size_t device, char *text, size_t text_size);
uint64_t pnr_cuda_bench_memory_used(size_t device);

#endif
