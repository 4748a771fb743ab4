/* SPDX-License-Identifier: MIT */
/* The measurements of pnradar-bench on the device, see engine/bench.h. */
#ifndef PNR_CUDA_BENCH_RESIDENT_H
#define PNR_CUDA_BENCH_RESIDENT_H

#include "cuda/base/pnr.h"

extern "C" {
#include "engine/bench.h"
}

#include <cuda_runtime.h>

/* Generates the samples of pnr_resident_ops.fill. raw: [samples of all windows][n_channels] in the
 * plan's format; all channels get the same samples. codes: [n_codes][N]; lags: [batch]; bins: the
 * frequencies of n_rows rows. All these arrays are in device memory. The pointers in *plan are not
 * read. */
int pnr_cuda_bench_fill(const pnr_plan *plan, void *raw, const float2 *codes, const uint32_t *lags,
                        const double *bins, size_t n_rows, uint64_t seed, cudaStream_t stream,
                        pnr_error *error);

/* These functions are described in pnr_engine_bench and pnr_resident_ops. */
double pnr_cuda_bench_link_rate(const pnr_devices *devices, size_t bytes);
double pnr_cuda_bench_copy_rate(size_t device, size_t bytes);
int pnr_cuda_bench_describe(size_t device, char *text, size_t text_size);
uint64_t pnr_cuda_bench_memory_used(size_t device);

#endif
