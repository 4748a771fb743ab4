/* SPDX-License-Identifier: MIT */
/* Runs tasks on several threads. Each thread takes the number of its next task from a counter. */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_THREADS = 16 };

static _Thread_local const volatile int *stop_flag;

typedef struct job {
    const volatile int *stop;
    pnr_parallel_work *work;
    void *context;
    size_t n_tasks;
    atomic_size_t next;
} job;

typedef struct worker {
    job *of;
    size_t number;
    pthread_t thread;
} worker;

static void *run_worker(void *argument)
{
    const worker *w = argument;
    size_t task;

    stop_flag = w->of->stop;
    while (!pnr_parallel_is_stopped() &&
           (task = atomic_fetch_add(&w->of->next, 1)) < w->of->n_tasks)
        w->of->work(w->of->context, task, w->number);
    return NULL;
}

void pnr_parallel_stop_at(const volatile int *stop)
{
    stop_flag = stop;
}

bool pnr_parallel_is_stopped(void)
{
    return stop_flag != NULL && __atomic_load_n(stop_flag, __ATOMIC_RELAXED) != 0;
}

size_t pnr_parallel_processors(void)
{
    cpu_set_t allowed; /* a set of 1024 processors; sched_getaffinity fails on a machine with
                        * more */
    const long online = sysconf(_SC_NPROCESSORS_ONLN);

    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        return (size_t)CPU_COUNT(&allowed);
    return online > 0 ? (size_t)online : 1;
}

size_t pnr_parallel_threads(size_t n_tasks)
{
    size_t n = pnr_parallel_processors();

    n = n < MOST_THREADS ? n : MOST_THREADS;
    return n_tasks < n ? n_tasks : n;
}

void pnr_parallel_run(size_t n_tasks, size_t n_threads, pnr_parallel_work *work, void *context)
{
    job all = {stop_flag, work, context, n_tasks, 0};
    worker workers[MOST_THREADS] = {{.of = &all}};
    size_t n = 1;

    for (; n < n_threads && n < MOST_THREADS; n++) {
        workers[n].of = &all;
        workers[n].number = n;
        if (pthread_create(&workers[n].thread, NULL, run_worker, &workers[n]) != 0)
            break;
    }
    run_worker(&workers[0]);
    while (--n > 0)
        pthread_join(workers[n].thread, NULL);
}
