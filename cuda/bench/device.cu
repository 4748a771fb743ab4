/* SPDX-License-Identifier: MIT */
/* Measures the device itself: its clocks under load, and how fast it copies within its memory and
 * from the host. */
#include "cuda/bench/resident.h"

#include "cuda/base/check.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

enum { COPY_RUNS = 20 };
static const unsigned long long ramp_ns = 50 * 1000 * 1000; /* idle clocks need this time to rise */
static const unsigned long long clock_ns = 5 * 1000 * 1000;

static __device__ unsigned long long now_ns()
{
    unsigned long long ns;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* Measures the clock rate of a multiprocessor during about for_ns nanoseconds. */
__global__ void count_cycles(unsigned long long for_ns, double *hz)
{
    const unsigned long long start_ns = now_ns();
    const long long start = clock64();

    while (now_ns() - start_ns < for_ns)
        ;
    *hz = (double)(clock64() - start) * 1e9 / (double)(now_ns() - start_ns);
}

static double measure_clock()
{
    double *hz = NULL, out = 0;

    if (cudaHostAlloc((void **)&hz, sizeof *hz, cudaHostAllocMapped) != cudaSuccess)
        return 0;
    count_cycles<<<1, 1>>>(ramp_ns, hz);
    count_cycles<<<1, 1>>>(clock_ns, hz);
    if (cudaStreamSynchronize(0) == cudaSuccess)
        out = *hz;
    (void)cudaFreeHost(hz);
    return out;
}

int pnr_cuda_bench_describe(size_t device, char *text, size_t text_size)
{
    static const cudaDeviceAttr wanted[] = {
        cudaDevAttrMultiProcessorCount,    cudaDevAttrClockRate,
        cudaDevAttrMemoryClockRate,        cudaDevAttrL2CacheSize,
        cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor};
    int got[sizeof wanted / sizeof *wanted], runtime = 0;
    size_t i = 0;

    for (const cudaDeviceAttr attribute : wanted)
        if (cudaDeviceGetAttribute(&got[i++], attribute, (int)device) != cudaSuccess)
            return PNR_EUNAVAILABLE;
    if (cudaRuntimeGetVersion(&runtime) != cudaSuccess || cudaSetDevice((int)device) != cudaSuccess)
        return PNR_EUNAVAILABLE;
    snprintf(text, text_size,
             "sm_%d%d, %d processors, clock %.0f MHz under load of %.0f at most, memory %.0f MHz, "
             "L2 %.0f MiB, CUDA runtime %d.%d",
             got[4], got[5], got[0], measure_clock() * 1e-6, got[1] * 1e-3, got[2] * 1e-3,
             got[3] / 0x1p20, runtime / 1000, runtime % 1000 / 10);
    return PNR_OK;
}

/* Returns the median rate of COPY_RUNS copies in bytes a second, or 0 on failure. Events time each
 * copy. One copy before these is not timed. */
static double time_copies(void *to, const void *from, size_t bytes, cudaEvent_t marks[2])
{
    double rates[COPY_RUNS];

    count_cycles<<<1, 1>>>(ramp_ns, (double *)to);
    for (int run = -1; run < COPY_RUNS; run++) {
        float ms = 0;

        if (cudaEventRecord(marks[0], 0) != cudaSuccess ||
            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, 0) != cudaSuccess ||
            cudaEventRecord(marks[1], 0) != cudaSuccess ||
            cudaEventSynchronize(marks[1]) != cudaSuccess ||
            cudaEventElapsedTime(&ms, marks[0], marks[1]) != cudaSuccess || !(ms > 0))
            return 0;
        if (run >= 0)
            rates[run] = (double)bytes / (ms * 1e-3);
    }
    std::sort(rates, rates + COPY_RUNS);
    return (rates[COPY_RUNS / 2 - 1] + rates[COPY_RUNS / 2]) / 2;
}

/* Times copies to device memory, from pinned host memory or from other device memory. */
static double rate_from(bool is_host, size_t device, size_t bytes)
{
    cudaEvent_t marks[2] = {NULL, NULL};
    void *to = NULL, *from = NULL;
    double rate = 0;

    if (bytes >= sizeof rate && cudaSetDevice((int)device) == cudaSuccess &&
        cudaEventCreate(&marks[0]) == cudaSuccess && cudaEventCreate(&marks[1]) == cudaSuccess &&
        cudaMalloc(&to, bytes) == cudaSuccess &&
        (is_host ? cudaHostAlloc(&from, bytes, cudaHostAllocDefault) : cudaMalloc(&from, bytes)) ==
            cudaSuccess) {
        if (is_host)
            memset(from, 0x5a, bytes);
        if (is_host || cudaMemset(from, 0x5a, bytes) == cudaSuccess)
            rate = time_copies(to, from, bytes, marks);
    }
    (void)cudaFree(to); /* cudaFree ignores NULL */
    (void)(is_host ? cudaFreeHost(from) : cudaFree(from));
    for (cudaEvent_t mark : marks)
        if (mark != NULL)
            (void)cudaEventDestroy(mark);
    (void)cudaGetLastError();
    return rate;
}

double pnr_cuda_bench_link_rate(size_t device, size_t bytes)
{
    return rate_from(true, device, bytes);
}

double pnr_cuda_bench_copy_rate(size_t device, size_t bytes)
{
    return 2 * rate_from(false, device, bytes); /* a copy reads and writes each byte */
}

uint64_t pnr_cuda_bench_memory_used(size_t device)
{
    size_t free_bytes = 0, total_bytes = 0;

    if (cudaSetDevice((int)device) != cudaSuccess ||
        cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return total_bytes - free_bytes;
}
