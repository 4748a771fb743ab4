/* SPDX-License-Identifier: MIT */
/* The detection threads claim dwells from a counter, and store the detections in a ring of slots.
 * */
#include "pipeline/team.h"

#include "base/clock.h"
#include "base/pause.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    SLOTS = PNR_TEAM_DWELLS,
    CLAIM = 8,        /* dwells in one claim, at most */
    SPINS = 4000,     /* polls before a thread sleeps or yields */
    WORTH_NS = 40000, /* least work that is worth a wake-up */
    EACH_NS = 1500,   /* least work of a dwell that is worth sending to another core */
    ROW_NS = 500,     /* approximate time of a candidate without a patch */
    PATCH_NS = 30000  /* approximate time of a candidate with a patch */
};

typedef struct member {
    pnr_team *team;
    pnr_detector *detector; /* shares the tables of the team's detector */
    pthread_t thread;
} member;

/*
 * Dwells are counted over all results. Dwells below `next` are claimed; those below `limit` may be
 * claimed, and `observed` has them. A dwell stays in its slot until it is taken.
 */
struct pnr_team {
    const pnr_detector *detector; /* detector of the caller */
    bool has_patches;
    uint64_t dwell_ns;
    atomic_bool is_hurried;
    size_t n_members;
    member *members; /* [n_members], the threads besides the caller */
    pnr_team_view *view;
    const void *context;
    uint64_t base;        /* number of the first dwell of the last result */
    uint64_t filled;      /* number of the first dwell that is not yet in a slot */
    uint64_t taken, last; /* number of the next dwell to take; end of the last result */
    bool is_shared;       /* the threads detect the waiting dwells */
    atomic_uint_fast64_t next, limit;
    atomic_uint_fast64_t done[SLOTS]; /* the number of the detected dwell plus 1 */
    pnr_observed observed[SLOTS];
    pnr_detection *slots; /* [SLOTS] */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_uint n_asleep;
    atomic_bool quits;
};

static bool has_work(pnr_team *team)
{
    return atomic_load(&team->next) < atomic_load(&team->limit);
}

/* n_threads: number of threads that detect at the same time. */
static void detect_one(const pnr_team *team, const pnr_detector *detector, uint64_t d,
                       size_t n_threads, pnr_detection *out)
{
    pnr_observed observed = team->observed[d % SLOTS];

    if (atomic_load(&team->is_hurried))
        observed.until_ns = pnr_clock_ns() + n_threads * team->dwell_ns;
    pnr_detector_detect(detector, &observed, out);
}

/* Claims some dwells and detects them. Returns false if no dwell is left. */
static bool detect_some(pnr_team *team, const pnr_detector *detector)
{
    uint64_t first = atomic_load(&team->next), end;

    do {
        const uint64_t limit = atomic_load(&team->limit);

        if (first >= limit)
            return false;
        end = limit - first < CLAIM ? limit : first + CLAIM;
        if (team->has_patches)
            end = first + 1;
    } while (!atomic_compare_exchange_weak(&team->next, &first, end));
    for (uint64_t d = first; d < end; d++) {
        detect_one(team, detector, d, team->n_members + 1, &team->slots[d % SLOTS]);
        atomic_store_explicit(&team->done[d % SLOTS], d + 1, memory_order_release);
    }
    return true;
}

static void sleep_until_work(pnr_team *team)
{
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(&team->n_asleep, 1);
    while (!has_work(team) && !atomic_load(&team->quits))
        pthread_cond_wait(&team->changed, &team->lock);
    atomic_fetch_sub(&team->n_asleep, 1);
    pthread_mutex_unlock(&team->lock);
}

static void *run_member(void *argument)
{
    const member *m = argument;
    int polls = 0;

    while (!atomic_load(&m->team->quits)) {
        if (detect_some(m->team, m->detector)) {
            polls = 0;
        } else if (polls++ < SPINS) {
            pnr_pause();
        } else {
            sleep_until_work(m->team);
            polls = 0;
        }
    }
    return NULL;
}

/* Wakes as many threads as there are new dwells. */
static void wake(pnr_team *team, uint64_t n_new)
{
    if (n_new == 0 || atomic_load(&team->n_asleep) == 0)
        return;
    pthread_mutex_lock(&team->lock);
    if (n_new >= team->n_members)
        pthread_cond_broadcast(&team->changed);
    for (; n_new > 0 && n_new < team->n_members; n_new--)
        pthread_cond_signal(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

/* Fills the free slots with the next dwells of the last result, and lets the threads claim them. */
static void fill_slots(pnr_team *team)
{
    const uint64_t most = team->taken + SLOTS, end = most < team->last ? most : team->last;
    const uint64_t limit = atomic_load(&team->limit);

    for (; team->filled < end; team->filled++)
        team->view(team->context, (size_t)(team->filled - team->base),
                   &team->observed[team->filled % SLOTS]);
    if (!team->is_shared)
        return;
    atomic_store(&team->limit, end);
    wake(team, end > limit ? end - limit : 0);
}

void pnr_team_add(pnr_team *team, pnr_team_view *view, const void *context, size_t n_dwells,
                  size_t n_candidates)
{
    const size_t work_ns = n_candidates * (team->has_patches ? PATCH_NS : ROW_NS);
    const bool is_worth =
        team->n_members > 0 && work_ns >= WORTH_NS && work_ns >= n_dwells * EACH_NS;

    team->is_shared = is_worth || (team->is_shared && team->taken < team->last);
    team->view = view;
    team->context = context;
    team->base = team->last;
    team->last += n_dwells;
    fill_slots(team);
}

void pnr_team_hurry(pnr_team *team, bool is_hurried)
{
    atomic_store(&team->is_hurried, is_hurried);
}

bool pnr_team_is_ready(const pnr_team *team)
{
    return atomic_load_explicit(&team->done[team->taken % SLOTS], memory_order_acquire) ==
           team->taken + 1;
}

void pnr_team_take(pnr_team *team, pnr_detection *out)
{
    const uint64_t d = team->taken;
    int polls = 0;

    if (!team->is_shared) {
        detect_one(team, team->detector, d, 1, out);
        team->taken++;
        atomic_store(&team->next, team->taken);
        fill_slots(team);
        return;
    }
    while (!pnr_team_is_ready(team)) {
        if (detect_some(team, team->detector))
            polls = 0;
        else if (polls++ < SPINS)
            pnr_pause();
        else
            sched_yield();
    }
    pnr_detection_copy(out, &team->slots[d % SLOTS]);
    team->taken++;
    fill_slots(team);
}

static int start_members(pnr_team *team, size_t n)
{
    team->members = calloc(n, sizeof *team->members);
    if (team->members == NULL)
        return PNR_ENOMEMORY;
    for (size_t i = 0; i < n; i++) {
        member *m = &team->members[i];

        m->team = team;
        if (pnr_detector_share(team->detector, &m->detector) != PNR_OK ||
            pthread_create(&m->thread, NULL, run_member, m) != 0) {
            pnr_detector_destroy(m->detector);
            return PNR_ENOMEMORY;
        }
        team->n_members++;
    }
    return PNR_OK;
}

int pnr_team_create(const pnr_detector *detector, size_t n_threads, uint64_t dwell_ns,
                    pnr_team **out)
{
    pnr_team *team = calloc(1, sizeof *team);

    *out = NULL;
    if (team == NULL)
        return PNR_ENOMEMORY;
    team->detector = detector;
    team->dwell_ns = dwell_ns;
    team->has_patches = pnr_detector_has_rows(detector);
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    if (n_threads > 1 && ((team->slots = calloc(SLOTS, sizeof *team->slots)) == NULL ||
                          start_members(team, n_threads - 1) != PNR_OK)) {
        pnr_team_destroy(team);
        return PNR_ENOMEMORY;
    }
    *out = team;
    return PNR_OK;
}

void pnr_team_destroy(pnr_team *team)
{
    if (team == NULL)
        return;
    atomic_store(&team->quits, true);
    pthread_mutex_lock(&team->lock);
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
    for (size_t i = 0; i < team->n_members; i++) {
        pthread_join(team->members[i].thread, NULL);
        pnr_detector_destroy(team->members[i].detector);
    }
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
    free(team->members);
    free(team->slots);
    free(team);
}
