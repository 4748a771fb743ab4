/* SPDX-License-Identifier: MIT */
/* A second table of a module, in addition to pnr_engine_ops. Only modules for devices with their
 * own memory export this table. pnradar-bench uses it for measurements. */
#ifndef PNR_ENGINE_BENCH_H
#define PNR_ENGINE_BENCH_H

#include "engine/devices.h"
#include "engine/engine.h"

#define PNR_ENGINE_BENCH_SYMBOL "pnr_engine_bench"

/* A kernel that a method launches for one submit. */
typedef struct pnr_kernel_note {
    char name[120];
    size_t n_blocks, n_threads; /* blocks of the launch; threads of a block */
    size_t n_registers;         /* registers of each thread */
    size_t local_bytes;         /* local memory of a thread: spills and arrays */
    size_t shared_bytes;        /* shared memory of a block, static and dynamic */
    size_t blocks_a_processor;  /* blocks that run on one processor at a time; 0: unknown */
    double occupancy;           /* running threads of a processor / greatest possible number */
} pnr_kernel_note;

/* One method of an engine, which `pnradar-bench methods` measures. The samples are already on the
 * device, in several sets. The results stay on the device. Functions of type int return PNR_OK, or
 * an error with its text. */
typedef struct pnr_resident pnr_resident; /* defined by the engine */
typedef struct pnr_resident_ops {
    /* Copies `bytes` bytes within the memory of the device at least 10 times. Returns the median
     * rate of reads and writes together, in bytes per second. Returns 0 on failure. */
    double (*copy_rate)(size_t device, size_t bytes);
    /* Writes one line about the device: number of processors, clocks (present and highest),
     * cache. */
    int (*describe)(size_t device, char *text, size_t text_size);
    /* A submit has plan->batch dwells; plan->depth and want_profile are ignored. */
    int (*create)(const pnr_plan *plan, size_t n_sets, pnr_resident **out, pnr_error *error);
    void (*destroy)(pnr_resident *resident);
    /* Fills a set on the device as pnr_measure_scatter does. The samples are noise with an rms of
     * 0.2 of full scale. Dwell d also has an echo with the same rms at lag lags[d]. Equal plan,
     * seed and lags give equal samples. */
    int (*fill)(pnr_resident *resident, size_t set, uint64_t seed, const uint32_t *lags,
                pnr_error *error);
    /* Overwrites the memory of the results with a pattern, correlates one set, and copies the
     * results to the host. The copies are valid until the next call. Sets only these members of
     * *result: dwells, candidates, nonfinite. */
    int (*run)(pnr_resident *resident, size_t set, pnr_result *result, pnr_error *error);
    /* Measures one set after another. ns: [n_sets], the time of each set from its samples to its
     * results. */
    int (*time)(pnr_resident *resident, double *ns, pnr_error *error);
    /* Lists the launches of one submit in order. Returns the number of launches. Writes at most
     * `capacity` of them. */
    size_t (*kernels)(const pnr_resident *resident, pnr_kernel_note *notes, size_t capacity);
    /* Bytes of device memory in use by all programs; 0: unknown. */
    uint64_t (*memory_used)(size_t device);
} pnr_resident_ops;

typedef struct pnr_engine_bench {
    int abi;
    /* Copies `bytes` bytes at least 10 times from pinned memory of the host to each device, on all
     * devices at the same time. Returns the sum of their median rates, in bytes per second. Returns
     * 0 on failure. */
    double (*link_rate)(const pnr_devices *devices, size_t bytes);
    const pnr_resident_ops *resident;
} pnr_engine_bench;

#endif
