/* SPDX-License-Identifier: MIT */
/* The second table of a module whose device has separate memory: the measurements of
 * pnradar-bench. */
#ifndef PNR_ENGINE_BENCH_H
#define PNR_ENGINE_BENCH_H

#include "engine/engine.h"

#define PNR_ENGINE_BENCH_SYMBOL "pnr_engine_bench"

/* A kernel that a method launches for one submit. */
typedef struct pnr_kernel_note {
    char name[120];
    size_t n_blocks, n_threads; /* of the launch; threads of a block */
    size_t n_registers;         /* for each thread */
    size_t local_bytes;         /* of a thread: spills, and arrays outside registers */
    size_t shared_bytes;        /* of a block, static and dynamic */
    size_t blocks_a_processor;  /* that run at the same time; 0: unknown */
    double occupancy;           /* share of the threads that a processor can hold */
} pnr_kernel_note;

/*
 * One method of an engine. Its samples are already on the device, in several sets, and its results
 * stay there. `pnradar-bench methods` measures it. Functions return PNR_OK, or a code and text as
 * the engine's create and submit do.
 */
typedef struct pnr_resident pnr_resident; /* defined by the engine */
typedef struct pnr_resident_ops {
    /* Bytes a second, read and written, of a copy within the device: median of >= 10; 0: failed. */
    double (*copy_rate)(size_t device, size_t bytes);
    /* One line: processors, clocks now (measured) and at most, cache. */
    int (*describe)(size_t device, char *text, size_t text_size);
    /* A submit has plan->batch dwells; plan->depth and want_profile are ignored. */
    int (*create)(const pnr_plan *plan, size_t n_sets, pnr_resident **out, pnr_error *error);
    void (*destroy)(pnr_resident *resident);
    /* Fills a set on the device as pnr_measure_scatter does: noise of 0.2 of full scale (rms), and
     * in dwell d the code, 0.2 of full scale, at lags[d]. The same plan, seed and lags give the
     * same samples. */
    int (*fill)(pnr_resident *resident, size_t set, uint64_t seed, const uint32_t *lags,
                pnr_error *error);
    /* Overwrites the memory of the results with a pattern, correlates one set, and copies the
     * results to the host, where they are valid until the next call. Fills only dwells, candidates
     * and nonfinite. */
    int (*run)(pnr_resident *resident, size_t set, pnr_result *result, pnr_error *error);
    /* Measures the sets in turn. ns: [n_sets]: the time between samples and results, for each
     * set. */
    int (*time)(pnr_resident *resident, double *ns, pnr_error *error);
    /* Lists the launches of one submit in order. Returns their number; writes at most
     * `capacity`. */
    size_t (*kernels)(const pnr_resident *resident, pnr_kernel_note *notes, size_t capacity);
    /* Bytes of device memory in use by all programs; 0: unknown. */
    uint64_t (*memory_used)(size_t device);
} pnr_resident_ops;

typedef struct pnr_engine_bench {
    int abi;
    /* Host to device with pinned memory, bytes a second, median of >= 10 copies of `bytes`; 0:
     * failed. */
    double (*link_rate)(size_t device, size_t bytes);
    const pnr_resident_ops *resident;
} pnr_engine_bench;

#endif
