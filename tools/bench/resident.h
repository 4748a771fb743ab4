/* SPDX-License-Identifier: MIT */
/* Runs one method of an engine on several sets of samples. The sets are in the memory where the
 * engine computes: on the device, or in host memory of the engine. */
#ifndef PNR_TOOLS_BENCH_RESIDENT_H
#define PNR_TOOLS_BENCH_RESIDENT_H

#include "base/error.h"
#include "engine/bench.h"

#include <stddef.h>
#include <stdint.h>

/* The runs use one set after another. If a submit is large, all sets together are larger than any
 * cache. */
enum { RESIDENT_SETS = 4 };

typedef struct resident resident;

/* Returns the operations of the engine's device. NULL: the engine computes in host memory. */
const pnr_resident_ops *resident_device(const pnr_engine_ops *ops);
/* Returns the copy bandwidth of the device memory: bytes read plus bytes written, a second. NAN: no
 * device. */
double resident_copy_rate(const pnr_resident_ops *device, size_t index);

/* n_sets: number of sets, 1..RESIDENT_SETS; resident_time needs RESIDENT_SETS. The memory that plan
 * points to must outlive *out. The errors are those of the engine's create. */
int resident_create(const pnr_engine_ops *ops, const pnr_plan *plan, size_t n_sets, resident **out,
                    pnr_error *error);
void resident_destroy(resident *r);
/* These functions are those of pnr_resident_ops. They also work with an engine on the host. */
int resident_fill(resident *r, size_t set, uint64_t seed, const uint32_t *lags, pnr_error *error);
int resident_run(resident *r, size_t set, pnr_result *result, pnr_error *error);
size_t resident_kernels(const resident *r, pnr_kernel_note *notes, size_t capacity);

/* Times one round, which runs each set once. ns: [RESIDENT_SETS] the time of each run. */
int resident_time(resident *r, double *ns, pnr_error *error);

#endif
