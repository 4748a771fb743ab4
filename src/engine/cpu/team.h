/* SPDX-License-Identifier: MIT */
/* The threads of the cpu engine: each leads dwells of its own, or helps with the tasks of
 * another's. Who waits for a result is one of them meanwhile: its core is awake already. */
#ifndef PNR_ENGINE_CPU_TEAM_H
#define PNR_ENGINE_CPU_TEAM_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { PNR_CPU_MAX_THREADS = 64 };

/* Task number `task` of a job, by thread `worker`, 0 .. n_threads - 1. What it computes depends on
 * neither who does it nor when: the tasks of one job share no output. */
typedef void pnr_cpu_task(void *context, size_t task, size_t worker);

/* One dwell to lead: the owner's words for it. */
typedef struct pnr_cpu_turn {
    void *slot;
    size_t dwell;
} pnr_cpu_turn;

/* What the threads ask their owner. take and finish run under the team's lock, lead does not.
 * finish: true when somebody may wait for it (waking is dear). */
typedef struct pnr_cpu_owner {
    void *owner;
    bool (*take)(void *owner, pnr_cpu_turn *turn); /* false: no dwell waits */
    void (*lead)(void *owner, const pnr_cpu_turn *turn, size_t leader, size_t worker);
    bool (*finish)(void *owner, const pnr_cpu_turn *turn);
} pnr_cpu_owner;

typedef struct pnr_cpu_job pnr_cpu_job;

typedef struct pnr_cpu_team {
    pnr_cpu_owner owner;
    size_t n_threads; /* that work, the one who waits among them */
    size_t n_started;
    int waiter_cpu;    /* the core that the team's own threads keep off; -1: none yet */
    cpu_set_t allowed; /* cores that we may use */
    size_t n_leaders;  /* dwells worked on at once, at most; a leader's number is below it */
    bool help_first;   /* finish a dwell that is begun before another is begun */
    pthread_t threads[PNR_CPU_MAX_THREADS];
    pthread_mutex_t lock;   /* guards what follows, and what the owner keeps under it */
    pthread_cond_t changed; /* a dwell or a job is there, a helper has left, a dwell is finished */
    pnr_cpu_job *jobs;      /* open ones, oldest first */
    bool is_leading[PNR_CPU_MAX_THREADS];
    bool quit;
} pnr_cpu_team;

/* Before the first start; n_leaders and help_first may be set after it. */
void pnr_cpu_team_init(pnr_cpu_team *team, const pnr_cpu_owner *owner);
/* n_threads will work: threads 1 .. n_threads - 1 of the team's own, and number 0, who waits (of
 * one alone: the team's own number 0). PNR_OK, PNR_ENOMEMORY: fewer run, and stop is still to be
 * called. */
int pnr_cpu_team_start(pnr_cpu_team *team, size_t n_threads);
/* Under the lock, by who waits for a dwell: works on something, or sleeps until something has
 * changed. */
void pnr_cpu_team_wait(pnr_cpu_team *team);
/* Ends the threads after what is waiting, and the team. */
void pnr_cpu_team_stop(pnr_cpu_team *team);

/* Tasks 0 .. n_tasks - 1, by the caller (thread `worker`, the leader of a dwell) and whoever is
 * idle; returns when all are done. */
void pnr_cpu_team_do(pnr_cpu_team *team, size_t worker, pnr_cpu_task *task, void *context,
                     size_t n_tasks);

#endif
