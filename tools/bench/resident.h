/* SPDX-License-Identifier: MIT */
/* One method of an engine with several sets of samples where it computes: on the device, or in the
 * engine's own host memory. */
#ifndef PNR_TOOLS_BENCH_RESIDENT_H
#define PNR_TOOLS_BENCH_RESIDENT_H

#include "base/error.h"
#include "engine/bench.h"

#include <stdint.h>

/* In rotation: together larger than any cache when a submit is large. */
enum { RESIDENT_SETS = 4 };

typedef struct resident resident;

/* plan's pointers must outlive it. device: the engine's resident operations; NULL: host memory,
 * submit and collect. Errors as the engine's create. */
int resident_create(const pnr_engine_ops *ops, const pnr_resident_ops *device, const pnr_plan *plan,
                    resident **out, pnr_error *error);
void resident_destroy(resident *r);
/* As pnr_resident_ops. */
int resident_fill(resident *r, size_t set, uint64_t seed, const uint32_t *lags, pnr_error *error);
int resident_run(resident *r, size_t set, pnr_result *result, pnr_error *error);
int resident_time(resident *r, double ns[RESIDENT_SETS], pnr_error *error);
size_t resident_kernels(const resident *r, pnr_kernel_note *notes, size_t capacity);

#endif
