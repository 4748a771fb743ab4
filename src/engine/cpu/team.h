/* SPDX-License-Identifier: MIT */
/* The threads of the cpu engine. Each thread leads dwells, or helps with the tasks of a dwell that
 * another thread leads. A thread that waits for a result works too, because its core is already
 * awake. */
#ifndef PNR_ENGINE_CPU_TEAM_H
#define PNR_ENGINE_CPU_TEAM_H

#include "engine/slot.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { PNR_CPU_MAX_THREADS = 64 };

/* Runs task number `task` of a job on thread `worker`, 0 .. n_threads - 1. The results depend on
 * neither the thread nor the time, because the tasks of one job share no output. */
typedef void pnr_cpu_task(void *context, size_t task, size_t worker);

/* Leads the computation of a dwell; called without the lock. leader: 0 .. n_leaders - 1. */
typedef void pnr_cpu_lead(void *owner, pnr_slot *slot, size_t dwell, size_t leader, size_t worker);

typedef struct pnr_cpu_job pnr_cpu_job;

typedef struct pnr_cpu_team {
    pnr_cpu_lead *lead;
    void *owner;
    size_t n_threads; /* worker threads, including the thread that waits in collect */
    size_t n_started;
    int waiter_cpu;    /* the core that only the waiting thread uses; -1: no core yet */
    cpu_set_t allowed; /* cores that the process may use */
    size_t n_leaders;  /* the most dwells that threads lead at the same time */
    bool help_first;   /* a thread leads another dwell only if no dwell in progress has open
                        * tasks */
    pthread_t threads[PNR_CPU_MAX_THREADS];
    pthread_mutex_t lock;   /* guards all fields below */
    pthread_cond_t changed; /* a submit or a job has arrived, or the last helper of a job or the
                             * last dwell of a submit has finished */
    pnr_slots slots;        /* the submits whose dwells the threads compute */
    pnr_cpu_job *jobs;      /* the open jobs, oldest first */
    bool is_leading[PNR_CPU_MAX_THREADS];
    bool quit;
} pnr_cpu_team;

/* Call before start. n_leaders and help_first may be set between init and start. */
void pnr_cpu_team_init(pnr_cpu_team *team, pnr_cpu_lead *lead, void *owner);
/* Starts threads 1 .. n_threads - 1; the thread that waits is number 0. With n_threads = 1, starts
 * thread 0. PNR_OK; PNR_ENOMEMORY: fewer threads run, and stop must still be called. */
int pnr_cpu_team_start(pnr_cpu_team *team, size_t n_threads);
/* A thread that waits for a dwell calls this under the lock. Works, or sleeps until `changed` is
 * signalled. */
void pnr_cpu_team_wait(pnr_cpu_team *team);
/* Ends the threads after they have finished all submitted dwells, then destroys `lock` and
 * `changed`. */
void pnr_cpu_team_stop(pnr_cpu_team *team);

/* Runs tasks 0 .. n_tasks - 1. The caller is thread `worker`, which leads a dwell. The caller
 * computes the tasks together with idle threads. Returns when all tasks have finished. */
void pnr_cpu_team_do(pnr_cpu_team *team, size_t worker, pnr_cpu_task *task, void *context,
                     size_t n_tasks);

#endif
