/* SPDX-License-Identifier: MIT */
/* The rate of the link to the device, and the table that pnradar-bench loads. */
#include "cuda/base/check.h"
#include "cuda/bench/resident.h"

#include <algorithm>
#include <cstring>

enum { LINK_RUNS = 20 };

/* Median of LINK_RUNS copies after one that is discarded, each timed by events around it. */
static int time_link(void *to, const void *from, size_t bytes, cudaEvent_t marks[2], double *rate)
{
    double rates[LINK_RUNS];

    for (int run = -1; run < LINK_RUNS; run++) {
        float ms = 0;

        if (cudaEventRecord(marks[0], 0) != cudaSuccess ||
            cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, 0) != cudaSuccess ||
            cudaEventRecord(marks[1], 0) != cudaSuccess ||
            cudaEventSynchronize(marks[1]) != cudaSuccess ||
            cudaEventElapsedTime(&ms, marks[0], marks[1]) != cudaSuccess || !(ms > 0))
            return PNR_EENGINE;
        if (run >= 0)
            rates[run] = (double)bytes / (ms * 1e-3);
    }
    std::sort(rates, rates + LINK_RUNS);
    *rate = (rates[LINK_RUNS / 2 - 1] + rates[LINK_RUNS / 2]) / 2;
    return PNR_OK;
}

static double link_rate(size_t device, size_t bytes)
{
    cudaEvent_t marks[2] = {NULL, NULL};
    void *to = NULL, *from = NULL;
    double rate = 0;

    if (bytes > 0 && cudaSetDevice((int)device) == cudaSuccess &&
        cudaEventCreate(&marks[0]) == cudaSuccess && cudaEventCreate(&marks[1]) == cudaSuccess &&
        cudaMalloc(&to, bytes) == cudaSuccess &&
        cudaHostAlloc(&from, bytes, cudaHostAllocDefault) == cudaSuccess) {
        memset(from, 0x5a, bytes);
        if (time_link(to, from, bytes, marks, &rate) != PNR_OK)
            rate = 0;
    }
    if (from != NULL)
        (void)cudaFreeHost(from);
    if (to != NULL)
        (void)cudaFree(to);
    for (cudaEvent_t mark : marks)
        if (mark != NULL)
            (void)cudaEventDestroy(mark);
    (void)cudaGetLastError();
    return rate;
}

/* The type has the symbol's name already, so the object gets it by its label. */
extern const struct pnr_engine_bench pnr_cuda_bench __asm__(PNR_ENGINE_BENCH_SYMBOL)
    __attribute__((visibility("default")));
const struct pnr_engine_bench pnr_cuda_bench = {PNR_ENGINE_ABI, link_rate, &pnr_cuda_resident};
