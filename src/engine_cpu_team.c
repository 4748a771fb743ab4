/* SPDX-License-Identifier: MIT */
/* The threads of the cpu engine: each leads dwells of its own, or helps with the tasks of
 * another's. */
#include "engine_cpu_team.h"

#include "error.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The tasks of one step of one dwell; lives on its leader's stack, so the leader waits for its
 * helpers. */
struct pnr_cpu_job {
    pnr_cpu_task *task;
    void *context;
    size_t n_tasks;
    atomic_size_t next;
    size_t n_helpers; /* under the team's lock */
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
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
    do_tasks(&job, number);
    pthread_mutex_lock(&team->lock);
    for (link = &team->jobs; *link != &job;)
        link = &(*link)->newer;
    *link = job.newer;
    while (job.n_helpers > 0)
        pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

/* All of these run under the lock. */
static pnr_cpu_job *open_job(const pnr_cpu_team *team)
{
    pnr_cpu_job *job = team->jobs;

    while (job != NULL && atomic_load_explicit(&job->next, memory_order_relaxed) >= job->n_tasks)
        job = job->newer;
    return job;
}

static bool help(pnr_cpu_team *team, size_t number)
{
    pnr_cpu_job *job = open_job(team);

    if (job == NULL)
        return false;
    job->n_helpers++;
    pthread_mutex_unlock(&team->lock);
    do_tasks(job, number);
    pthread_mutex_lock(&team->lock);
    if (--job->n_helpers == 0)
        pthread_cond_broadcast(&team->done);
    return true;
}

static bool lead(pnr_cpu_team *team, size_t number)
{
    pnr_cpu_turn turn;
    size_t leader = 0;

    while (leader < team->n_leaders && team->is_leading[leader])
        leader++;
    if (leader == team->n_leaders || !team->owner.take(team->owner.owner, &turn))
        return false;
    team->is_leading[leader] = true;
    pthread_mutex_unlock(&team->lock);
    team->owner.lead(team->owner.owner, &turn, leader, number);
    pthread_mutex_lock(&team->lock);
    team->is_leading[leader] = false;
    if (team->owner.finish(team->owner.owner, &turn))
        pthread_cond_broadcast(&team->done);
    return true;
}

static void *work(void *argument)
{
    const worker me = *(worker *)argument;
    pnr_cpu_team *team = me.team;

    free(argument);
    pthread_mutex_lock(&team->lock);
    while (true) {
        if (team->help_first && help(team, me.number))
            continue;
        if (lead(team, me.number))
            continue;
        if (!team->help_first && help(team, me.number))
            continue;
        if (team->quit)
            break;
        pthread_cond_wait(&team->work, &team->lock);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

void pnr_cpu_team_init(pnr_cpu_team *team, const pnr_cpu_owner *owner)
{
    *team = (pnr_cpu_team){.owner = *owner};
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->work, NULL);
    pthread_cond_init(&team->done, NULL);
}

/* A thread for every core that we may use: each keeps to one, else a submit's wake-ups put several
 * on the core that sleeps while the submitter's falls idle, for milliseconds. Fewer or more threads
 * are the kernel's to place. */
static void place_threads(const pnr_cpu_team *team)
{
    cpu_set_t allowed;
    size_t i = 0;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || team->n_threads < 2 ||
        (size_t)CPU_COUNT(&allowed) != team->n_threads)
        return;
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &allowed)) {
            cpu_set_t one;

            CPU_ZERO(&one);
            CPU_SET(core, &one);
            (void)pthread_setaffinity_np(team->threads[i++], sizeof one, &one); /* a wish */
        }
}

int pnr_cpu_team_start(pnr_cpu_team *team, size_t n_threads)
{
    int code = PNR_OK;

    /* Under the lock: no thread sees n_threads before all are counted. */
    pthread_mutex_lock(&team->lock);
    while (code == PNR_OK && team->n_threads < n_threads) {
        worker *me = malloc(sizeof *me);

        if (me != NULL)
            *me = (worker){team, team->n_threads};
        if (me != NULL && pthread_create(&team->threads[team->n_threads], NULL, work, me) == 0) {
            team->n_threads++;
        } else {
            free(me);
            code = PNR_ENOMEMORY;
        }
    }
    if (code == PNR_OK)
        place_threads(team);
    pthread_mutex_unlock(&team->lock);
    return code;
}

void pnr_cpu_team_stop(pnr_cpu_team *team)
{
    pthread_mutex_lock(&team->lock);
    team->quit = true;
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
    for (size_t i = 0; i < team->n_threads; i++)
        pthread_join(team->threads[i], NULL);
    pthread_cond_destroy(&team->work);
    pthread_cond_destroy(&team->done);
    pthread_mutex_destroy(&team->lock);
}
