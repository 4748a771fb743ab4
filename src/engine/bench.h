/* SPDX-License-Identifier: MIT */
/* The optional second table of an engine's module: what pnradar-bench and pnradar-plan measure. */
#ifndef PNR_ENGINE_BENCH_H
#define PNR_ENGINE_BENCH_H

#include "engine/engine.h"

#define PNR_ENGINE_BENCH_SYMBOL "pnr_engine_bench"
typedef enum {
    PNR_MANNER_ANEW,     /* everything anew per call, double precision, pageable memory */
    PNR_MANNER_REUSED,   /* plan and memory reused, double, pageable */
    PNR_MANNER_PINNED,   /* single precision, pinned memory */
    PNR_MANNER_RESIDENT, /* single precision, samples already on the device */
    PNR_MANNER_COUNT
} pnr_manner;
/* A kernel that a method launches for one submit. */
typedef struct pnr_kernel_note {
    char name[120];
    size_t n_blocks, n_threads; /* of the launch; threads a block */
    size_t n_registers;         /* a thread */
    size_t local_bytes;         /* a thread: spills, and arrays that are no registers */
    size_t shared_bytes;        /* a block, static and dynamic */
    size_t blocks_a_processor;  /* that run at one time; 0: not known */
    double occupancy;           /* share of the threads that a processor can hold */
} pnr_kernel_note;

/*
 * One method of an engine, its samples already on the device in several sets, its results left
 * there: what `pnradar-bench methods` times. Functions return PNR_OK or as the engine's create and
 * submit do, in words.
 */
typedef struct pnr_resident pnr_resident; /* each engine's own */
typedef struct pnr_resident_ops {
    /* Bytes a second, read and written, of a copy within the device: median of >= 10; 0: failed. */
    double (*copy_rate)(size_t device, size_t bytes);
    /* One line: processors, clocks now (measured) and at most, cache. */
    int (*describe)(size_t device, char *text, size_t text_size);
    /* plan->batch dwells a submit; plan->depth and want_profile are of no matter. */
    int (*create)(const pnr_plan *plan, size_t n_sets, pnr_resident **out, pnr_error *error);
    void (*destroy)(pnr_resident *resident);
    /* Fills a set, on the device: noise of 0.2 of full scale (rms) and in every window of dwell d
     * the code, 0.2 of full scale, at lags[d] and a random phase, in a real format a random sign;
     * of a map as pnr_measure_scatter. The same samples for the same plan, seed and lags. */
    int (*fill)(pnr_resident *resident, size_t set, uint64_t seed, const uint32_t *lags,
                pnr_error *error);
    /* Poisons the results' memory, correlates one set, and brings the results to the host; they are
     * valid until the next call. Only dwells, candidates and nonfinite are given. */
    int (*run)(pnr_resident *resident, size_t set, pnr_result *result, pnr_error *error);
    /* ns: [n_sets]: everything between samples and results, once for each set, one after the
     * other. */
    int (*time)(pnr_resident *resident, double *ns, pnr_error *error);
    /* What one submit launches, in order; returns how many there are, at most `capacity` are
     * written. */
    size_t (*kernels)(const pnr_resident *resident, pnr_kernel_note *notes, size_t capacity);
    /* Bytes of the device's memory that are taken, by whomever; 0: not known. */
    uint64_t (*memory_used)(size_t device);
} pnr_resident_ops;

typedef struct pnr_engine_bench {
    int abi;
    /* Host to device with pinned memory, bytes a second, median of >= 10 copies of `bytes`; 0 on a
     * CPU. */
    double (*link_rate)(size_t device, size_t bytes);
    /* Median and 99th percentile ns of one whole correlation of n complex samples in one manner
     * (forward, product with a stored spectrum, inverse, |.|^2, maximum), `runs` counted after one
     * discarded; index must come out as `delay`. PNR_OK, PNR_EUNSUPPORTED, PNR_ENOMEMORY,
     * PNR_EENGINE. */
    int (*seed)(size_t device, size_t n, pnr_manner manner, int runs, double *median_ns,
                double *p99_ns, pnr_error *error);
    /* Of a device with memory of its own; all NULL on a CPU. */
    const pnr_resident_ops *resident;
} pnr_engine_bench;

#endif
