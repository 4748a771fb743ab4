/* SPDX-License-Identifier: MIT */
/* The threads of the cpu engine. A thread leads the computation of a dwell, or helps another thread
 * with its tasks. */
#include "engine/cpu/team.h"

#include "base/error.h"

#include <stdatomic.h>
#include <stdlib.h>

/* The tasks of one step of a dwell. The job is on the stack of the leader, so the leader waits
 * until all helpers have finished. */
struct pnr_cpu_job {
    pnr_cpu_task *task;
    void *context;
    size_t n_tasks;
    atomic_size_t next;
    size_t n_helpers; /* guarded by the lock */
    pnr_cpu_job *newer;
};

typedef struct worker {
    pnr_cpu_team *team;
    size_t number;
} worker;

static void do_tasks(pnr_cpu_job *job, size_t number)
{
    size_t task;

    while ((task = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->n_tasks)
        job->task(job->context, task, number);
}

void pnr_cpu_team_do(pnr_cpu_team *team, size_t number, pnr_cpu_task *task, void *context,
                     size_t n_tasks)
{
    pnr_cpu_job job = {.task = task, .context = context, .n_tasks = n_tasks};
    pnr_cpu_job **link = &team->jobs;

    if (team->n_threads <= 1 || n_tasks <= 1) {
        do_tasks(&job, number);
        return;
    }
    pthread_mutex_lock(&team->lock);
    while (*link != NULL)
        link = &(*link)->newer;
    *link = &job;
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
    do_tasks(&job, number);
    pthread_mutex_lock(&team->lock);
    for (link = &team->jobs; *link != &job;)
        link = &(*link)->newer;
    *link = job.newer;
    while (job.n_helpers > 0)
        pthread_cond_wait(&team->changed, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

/* The functions from here to do_work are called under the lock. */
static pnr_cpu_job *open_job(const pnr_cpu_team *team)
{
    pnr_cpu_job *job = team->jobs;

    while (job != NULL && atomic_load_explicit(&job->next, memory_order_relaxed) >= job->n_tasks)
        job = job->newer;
    return job;
}

static bool help_with_job(pnr_cpu_team *team, size_t number)
{
    pnr_cpu_job *job = open_job(team);

    if (job == NULL)
        return false;
    job->n_helpers++;
    pthread_mutex_unlock(&team->lock);
    do_tasks(job, number);
    pthread_mutex_lock(&team->lock);
    if (--job->n_helpers == 0)
        pthread_cond_broadcast(&team->changed);
    return true;
}

static bool lead_dwell(pnr_cpu_team *team, size_t number)
{
    pnr_slot *slot;
    size_t dwell, leader = 0;

    while (leader < team->n_leaders && team->is_leading[leader])
        leader++;
    if (leader == team->n_leaders || !pnr_slots_take(&team->slots, &slot, &dwell))
        return false;
    team->is_leading[leader] = true;
    pthread_mutex_unlock(&team->lock);
    team->lead(team->owner, slot, dwell, leader, number);
    pthread_mutex_lock(&team->lock);
    team->is_leading[leader] = false;
    slot->n_done++;
    if (pnr_slot_is_done(slot)) /* only after the last dwell of a submit, because waking threads is
                                 * expensive */
        pthread_cond_broadcast(&team->changed);
    return true;
}

/* Leads a dwell, or helps with a dwell. Returns false if there is no work. */
static bool do_work(pnr_cpu_team *team, size_t number)
{
    return (team->help_first && help_with_job(team, number)) || lead_dwell(team, number) ||
           (!team->help_first && help_with_job(team, number));
}

static void *run_thread(void *argument)
{
    const worker me = *(worker *)argument;
    pnr_cpu_team *team = me.team;

    free(argument);
    pthread_mutex_lock(&team->lock);
    while (true) {
        if (do_work(team, me.number))
            continue;
        if (team->quit)
            break;
        pthread_cond_wait(&team->changed, &team->lock);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

/* A submit wakes a thread on the core of the submitting thread. There the woken thread may wait for
 * milliseconds while other cores are idle. So the threads of the team use all cores except this
 * core. The submitting thread also collects and helps; it keeps this core for itself. When the
 * kernel moves the submitting thread to another core, the team avoids that core. */
static void leave_core(pnr_cpu_team *team, int cpu)
{
    cpu_set_t rest = team->allowed;

    if (cpu == team->waiter_cpu || cpu < 0 || (size_t)CPU_COUNT(&rest) < team->n_threads)
        return;
    CPU_CLR((size_t)cpu, &rest);
    for (size_t i = 0; i < team->n_started; i++)
        /* only a hint, so that a failure is ignored */
        (void)pthread_setaffinity_np(team->threads[i], sizeof rest, &rest);
    team->waiter_cpu = cpu;
}

/* With n_threads = 1 the team itself starts thread 0, which also works while the caller polls. Then
 * the caller does no work here. */
void pnr_cpu_team_wait(pnr_cpu_team *team)
{
    if (team->n_threads > 1)
        leave_core(team, sched_getcpu());
    if (team->n_threads < 2 || !do_work(team, 0))
        pthread_cond_wait(&team->changed, &team->lock);
}

void pnr_cpu_team_init(pnr_cpu_team *team, pnr_cpu_lead *lead, void *owner)
{
    *team = (pnr_cpu_team){.lead = lead, .owner = owner};
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
}

int pnr_cpu_team_start(pnr_cpu_team *team, size_t n_threads)
{
    const size_t n_own = n_threads > 1 ? n_threads - 1 : 1;
    int code = PNR_OK;

    /* the threads wait for the lock until all of them are started */
    pthread_mutex_lock(&team->lock);
    team->n_threads = n_threads;
    team->waiter_cpu = -1;
    if (sched_getaffinity(0, sizeof team->allowed, &team->allowed) != 0)
        CPU_ZERO(&team->allowed);
    while (code == PNR_OK && team->n_started < n_own) {
        worker *me = malloc(sizeof *me);

        if (me != NULL)
            *me = (worker){team, n_threads > 1 ? team->n_started + 1 : 0};
        if (me != NULL &&
            pthread_create(&team->threads[team->n_started], NULL, run_thread, me) == 0) {
            team->n_started++;
        } else {
            free(me);
            code = PNR_ENOMEMORY;
        }
    }
    pthread_mutex_unlock(&team->lock);
    return code;
}

void pnr_cpu_team_stop(pnr_cpu_team *team)
{
    pthread_mutex_lock(&team->lock);
    team->quit = true;
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
    for (size_t i = 0; i < team->n_started; i++)
        pthread_join(team->threads[i], NULL);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
}
