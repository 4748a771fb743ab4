/* SPDX-License-Identifier: MIT */
/* Runs independent tasks on all processors, before the processing starts. */
#ifndef PNR_PARALLEL_H
#define PNR_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>

/* Runs the task with the number `task`. thread: 0 .. n_threads - 1; the tasks of one thread run one
 * after the other. */
typedef void pnr_parallel_work(void *context, size_t task, size_t thread);

/* Returns the number of processors that this thread may use, at least 1. taskset, a container or
 * Slurm can limit this number. */
size_t pnr_parallel_processors(void);
/* Returns the number of threads for n_tasks tasks. It is at most the number of processors that this
 * thread may use, and at most 16. */
size_t pnr_parallel_threads(size_t n_tasks);
/* Runs the tasks 0 .. n_tasks - 1 in any order on n_threads threads, and waits for them. The caller
 * is one of the threads. If a thread cannot be started, the other threads run its tasks. */
void pnr_parallel_run(size_t n_tasks, size_t n_threads, pnr_parallel_work *work, void *context);

/* From this call on, pnr_parallel_run in this thread starts no further task when *stop is not 0.
 * NULL, the initial value: it runs all tasks. After a stop the work is incomplete, and the
 * functions that call pnr_parallel_run return PNR_EEND or another error. */
void pnr_parallel_stop_at(const volatile int *stop);
/* True if *stop of this thread is not 0. */
bool pnr_parallel_is_stopped(void);

#endif
