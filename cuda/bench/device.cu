/* SPDX-License-Identifier: MIT */
/* Measures a device: its clock rate under load, and the rates of copies within its memory and from
 * the host. */
#include "cuda/bench/resident.h"

#include "cuda/base/check.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

enum { COPY_RUNS = 20 };
static const unsigned long long ramp_ns = 50 * 1000 * 1000; /* the clock rate of an idle device
                                                             * rises during this time */
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

/* The state of the copies to one device. They read pinned host memory, or other memory of the
 * device. */
typedef struct copies {
    size_t device;
    bool is_host;
    void *to, *from;
    cudaEvent_t marks[COPY_RUNS + 1]; /* the end of each copy; the first copy is not timed */
} copies;

static bool open_copies(copies *c, size_t bytes)
{
    if (cudaSetDevice((int)c->device) != cudaSuccess || cudaMalloc(&c->to, bytes) != cudaSuccess ||
        (c->is_host ? cudaHostAlloc(&c->from, bytes, cudaHostAllocPortable)
                    : cudaMalloc(&c->from, bytes)) != cudaSuccess)
        return false;
    for (cudaEvent_t &mark : c->marks)
        if (cudaEventCreate(&mark) != cudaSuccess)
            return false;
    if (c->is_host)
        memset(c->from, 0x5a, bytes);
    else if (cudaMemset(c->from, 0x5a, bytes) != cudaSuccess)
        return false;
    count_cycles<<<1, 1>>>(ramp_ns, (double *)c->to);
    return true;
}

static void close_copies(const copies *c)
{
    (void)cudaSetDevice((int)c->device);
    (void)cudaFree(c->to); /* cudaFree ignores NULL */
    (void)(c->is_host ? cudaFreeHost(c->from) : cudaFree(c->from));
    for (cudaEvent_t mark : c->marks)
        if (mark != NULL)
            (void)cudaEventDestroy(mark);
}

/* Enqueues one copy to each device. */
static bool copy_once(copies *all, size_t n, size_t bytes, int run)
{
    for (copies *c = all; c < all + n; c++)
        if (cudaSetDevice((int)c->device) != cudaSuccess ||
            cudaMemcpyAsync(c->to, c->from, bytes, cudaMemcpyDefault, 0) != cudaSuccess ||
            cudaEventRecord(c->marks[run], 0) != cudaSuccess)
            return false;
    return true;
}

/* Returns the median rate of the copies in bytes a second, or 0 on failure. */
static double median_rate(const copies *c, size_t bytes)
{
    double rates[COPY_RUNS];

    if (cudaEventSynchronize(c->marks[COPY_RUNS]) != cudaSuccess)
        return 0;
    for (int run = 0; run < COPY_RUNS; run++) {
        float ms = 0;

        if (cudaEventElapsedTime(&ms, c->marks[run], c->marks[run + 1]) != cudaSuccess || !(ms > 0))
            return 0;
        rates[run] = (double)bytes / (ms * 1e-3);
    }
    std::sort(rates, rates + COPY_RUNS);
    return (rates[COPY_RUNS / 2 - 1] + rates[COPY_RUNS / 2]) / 2;
}

/* Copies to n devices at one time. Returns the sum of their rates, or 0 on failure. */
static double rate_of(copies *all, size_t n, size_t bytes)
{
    bool is_open = n > 0 && bytes >= sizeof(double);
    double sum = 0;

    for (size_t i = 0; is_open && i < n; i++)
        is_open = open_copies(&all[i], bytes);
    for (int run = 0; is_open && run <= COPY_RUNS; run++)
        is_open = copy_once(all, n, bytes, run);
    for (size_t i = 0; is_open && i < n; i++) {
        const double rate = median_rate(&all[i], bytes);

        is_open = rate > 0;
        sum += rate;
    }
    for (size_t i = 0; i < n; i++)
        close_copies(&all[i]);
    (void)cudaGetLastError();
    return is_open ? sum : 0;
}

double pnr_cuda_bench_link_rate(const pnr_devices *devices, size_t bytes)
{
    copies all[PNR_MAX_DEVICES] = {};

    for (size_t i = 0; i < devices->n; i++) {
        all[i].device = devices->index[i];
        all[i].is_host = true;
    }
    return rate_of(all, devices->n, bytes);
}

double pnr_cuda_bench_copy_rate(size_t device, size_t bytes)
{
    copies own = {};

    own.device = device;
    return 2 * rate_of(&own, 1, bytes); /* a copy reads and writes each byte */
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
