/* SPDX-License-Identifier: MIT */
/* The detection threads claim pieces of a result: an atomic counter has the number of the next
 * piece. Each piece stores its detections one after the other, so that the caller reads them as one
 * stream. */
#include "pipeline/team.h"

#include "base/clock.h"
#include "base/pause.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    MAP_PIECES = PNR_TEAM_DWELLS, /* pieces in the queue, if the plan has several rows; a piece has
                                   * one dwell */
    PIECES = 64,                  /* pieces in the queue, if the plan has one row */
    PIECE_DWELLS = 64,            /* greatest number of dwells of a piece */
    PIECE_BYTES = 1 << 17,        /* greatest memory of a piece of several dwells, in bytes */
    PIECES_EACH = 2,              /* least number of pieces of a result for each thread */
    PIECE_NS = 40000,             /* approximate work of a piece */
    NAP_NS = 50000,               /* sleep of a caller with a real-time priority between two
                                   * polls */
    SPINS = 4000,                 /* polls before a thread sleeps or yields */
    YIELDS = 1000,                /* yields before a caller with a real-time priority sleeps */
    WORTH_NS = 40000,             /* least work that is worth a wake-up */
    EACH_NS = 250,                /* least work of a dwell that is worth sending to another core */
    ROW_NS = 500,                 /* approximate time of a candidate without a patch */
    PATCH_NS = 30000,             /* approximate time of a candidate with a patch */
    CACHE_LINE = 64,
    DWELLS_AHEAD = 4
};

/* Dwells of one result. One thread detects their echoes. */
typedef struct piece {
    _Alignas(CACHE_LINE) atomic_uint_fast64_t done; /* 1 + number of the piece, once all its dwells
                                                     * are detected */
    pnr_team_view *view;
    const void *context;
    size_t first, n;  /* dwells first .. first + n - 1 of the result */
    char *detections; /* one after the other, each as pnr_detection_copy copies it */
} piece;

typedef struct member {
    pnr_team *team;
    pnr_detector *detector; /* shares the tables of the team's detector */
    pnr_detection detection;
    pthread_t thread;
} member;

/*
 * Pieces are numbered over all results. The queue has the pieces front .. end - 1. Pieces before
 * `next` are claimed. Pieces from `next` to limit - 1 may be claimed. A piece stays in the queue
 * until its last dwell is taken. If the caller detects alone, `limit` is at most `front`.
 */
struct pnr_team {
    const pnr_detector *detector; /* detector of the caller */
    bool has_patches;
    uint64_t dwell_ns;
    atomic_bool is_hurried;
    size_t n_members;
    member *members;          /* [n_members], the threads besides the caller */
    pnr_detection *detection; /* memory for the caller, when it detects a piece */

    /* the last result */
    pnr_team_view *view;
    const void *context;
    size_t n_dwells, next_dwell; /* next_dwell: the first dwell that is in no piece */
    size_t piece_dwells;
    bool is_shared; /* the threads detect the waiting dwells */

    size_t n_pieces, most_dwells; /* pieces in the queue; dwells for which each piece has memory */
    piece *pieces;                /* [n_pieces] */
    char *memory;
    uint64_t front, end;
    size_t n_taken;     /* dwells taken from the piece `front` */
    const char *unread; /* next detection to read from the piece `front` */
    _Alignas(CACHE_LINE) atomic_uint_fast64_t next;
    atomic_uint_fast64_t limit;

    /* A thread without work first polls, then sleeps. */
    _Alignas(CACHE_LINE) atomic_uint n_polling;
    atomic_uint n_asleep; /* number of sleeping threads, without those for which `work` is posted */
    sem_t work;
    atomic_bool quits;
};

static bool has_work(pnr_team *team)
{
    return atomic_load(&team->next) < atomic_load(&team->limit);
}

static void prefetch(const void *memory, size_t n_bytes)
{
    for (size_t at = 0; at < n_bytes; at += CACHE_LINE)
        __builtin_prefetch((const char *)memory + at);
    __builtin_prefetch((const char *)memory + n_bytes - 1);
}

/* Prefetches dwell d + DWELLS_AHEAD and the candidates of dwell d + 1. The GPU has written this
 * memory, so it is in no cache. */
static void look_ahead(pnr_team_view *view, const void *context, size_t d, size_t end)
{
    pnr_observed observed;

    if (d + DWELLS_AHEAD < end) {
        view(context, d + DWELLS_AHEAD, &observed);
        prefetch(observed.dwell, sizeof *observed.dwell);
        prefetch(observed.candidates, sizeof *observed.candidates);
    }
    if (d + 1 < end) {
        view(context, d + 1, &observed);
        if (observed.dwell->n_candidates > 1)
            prefetch(observed.candidates + 1,
                     (observed.dwell->n_candidates - 1) * sizeof *observed.candidates);
    }
}

/* n_threads: number of threads that detect at the same time. */
static void detect_one(const pnr_team *team, const pnr_detector *detector, pnr_observed *observed,
                       size_t n_threads, pnr_detection *out)
{
    if (atomic_load(&team->is_hurried))
        observed->until_ns = pnr_clock_ns() + n_threads * team->dwell_ns;
    pnr_detector_detect(detector, observed, out);
}

static void detect_piece(const pnr_team *team, const pnr_detector *detector, const piece *p,
                         pnr_detection *detection)
{
    const size_t end = p->first + p->n;
    char *out = p->detections;

    for (size_t d = p->first; d < end; d++) {
        pnr_observed observed;

        look_ahead(p->view, p->context, d, end);
        p->view(p->context, d, &observed);
        detect_one(team, detector, &observed, team->n_members + 1, detection);
        pnr_detection_copy((pnr_detection *)(void *)out, detection);
        out += pnr_detection_bytes(detection->n_echoes + detection->n_outside);
    }
}

/* Wakes one thread, if there is work and no thread polls for it. */
static void call_help(pnr_team *team)
{
    unsigned n = atomic_load(&team->n_asleep);

    if (n == 0 || atomic_load(&team->n_polling) > 0 || !has_work(team))
        return;
    while (n > 0)
        if (atomic_compare_exchange_weak(&team->n_asleep, &n, n - 1)) {
            sem_post(&team->work);
            return;
        }
}

/* Claims a piece and detects its dwells. Returns false if no piece is left. If more pieces are
 * left, first wakes another thread. Each thread wakes the next one in this way, and the caller of
 * pnr_team_take wakes only one. */
static bool detect_some(pnr_team *team, const pnr_detector *detector, pnr_detection *detection)
{
    uint64_t number = atomic_load(&team->next);

    do {
        if (number >= atomic_load(&team->limit))
            return false;
    } while (!atomic_compare_exchange_weak(&team->next, &number, number + 1));

    piece *p = &team->pieces[number % team->n_pieces];

    call_help(team);
    detect_piece(team, detector, p, detection);
    atomic_store_explicit(&p->done, number + 1, memory_order_release);
    return true;
}

/* Polls for work, then sleeps. The caller of pnr_team_take adds work: it first sets `limit`, and
 * then reads the numbers of polling and sleeping threads. This function first increases these
 * numbers, and then checks for work. So a wake-up is never lost. */
static void wait_for_work(pnr_team *team)
{
    unsigned n;

    atomic_fetch_add(&team->n_polling, 1);
    for (int i = 0; i < SPINS && !has_work(team) && !atomic_load(&team->quits); i++)
        pnr_pause();
    atomic_fetch_sub(&team->n_polling, 1);
    n = atomic_fetch_add(&team->n_asleep, 1) + 1;
    while (n > 0 && (has_work(team) || atomic_load(&team->quits)))
        if (atomic_compare_exchange_weak(&team->n_asleep, &n, n - 1))
            return;
    while (sem_wait(&team->work) != 0)
        ; /* a signal interrupts sem_wait (EINTR) */
}

static void *run_member(void *argument)
{
    member *m = argument;

    while (!atomic_load(&m->team->quits))
        if (!detect_some(m->team, m->detector, &m->detection))
            wait_for_work(m->team);
    return NULL;
}

/* Cuts pieces from the last result while the queue has room, and lets the threads claim them. */
static void cut_pieces(pnr_team *team)
{
    const uint64_t limit = atomic_load(&team->limit);

    for (; team->next_dwell < team->n_dwells && team->end < team->front + team->n_pieces;
         team->end++) {
        const size_t left = team->n_dwells - team->next_dwell;
        piece *p = &team->pieces[team->end % team->n_pieces];

        p->view = team->view;
        p->context = team->context;
        p->first = team->next_dwell;
        p->n = left < team->piece_dwells ? left : team->piece_dwells;
        team->next_dwell += p->n;
    }
    if (!team->is_shared || team->end == limit)
        return;
    atomic_store(&team->limit, team->end);
    call_help(team);
}

/* Returns the number of dwells of a piece. A piece takes about PIECE_NS, or less if the threads
 * would otherwise get fewer than PIECES_EACH pieces each. */
static size_t choose_piece(const pnr_team *team, size_t work_ns, size_t n_dwells)
{
    const size_t worth = work_ns > 0 ? PIECE_NS * n_dwells / work_ns : n_dwells;
    const size_t share = n_dwells / (PIECES_EACH * (team->n_members + 1));
    const size_t n = worth < share ? worth : share;

    return n < 1 ? 1 : n < team->most_dwells ? n : team->most_dwells;
}

void pnr_team_add(pnr_team *team, pnr_team_view *view, const void *context, size_t n_dwells,
                  size_t n_candidates)
{
    const size_t work_ns = n_candidates * (team->has_patches ? PATCH_NS : ROW_NS);
    const bool is_worth =
        team->n_members > 0 && work_ns >= WORTH_NS && work_ns >= n_dwells * EACH_NS;

    team->is_shared = is_worth || (team->is_shared && team->front < team->end);
    team->view = view;
    team->context = context;
    team->n_dwells = n_dwells;
    team->next_dwell = 0;
    team->piece_dwells = choose_piece(team, work_ns, n_dwells);
    cut_pieces(team);
}

void pnr_team_hurry(pnr_team *team, bool is_hurried)
{
    atomic_store(&team->is_hurried, is_hurried);
}

bool pnr_team_is_ready(const pnr_team *team)
{
    const piece *p = &team->pieces[team->front % team->n_pieces];

    return atomic_load_explicit(&p->done, memory_order_acquire) == team->front + 1;
}

/* Detects the next dwell of the oldest piece in this thread. */
static void take_alone(pnr_team *team, const piece *p, pnr_detection *out)
{
    const size_t d = p->first + team->n_taken;
    pnr_observed observed;

    look_ahead(p->view, p->context, d, p->first + p->n);
    p->view(p->context, d, &observed);
    detect_one(team, team->detector, &observed, 1, out);
}

/* Waits a little for a piece of another thread. That thread may need this processor, but a caller
 * with a real-time priority yields only to threads of the same priority. Such a caller therefore
 * sleeps after some yields. */
static void wait_a_little(int *polls)
{
    *polls += *polls < SPINS + YIELDS;
    if (*polls < SPINS)
        pnr_pause();
    else if (*polls < SPINS + YIELDS || sched_getscheduler(0) == SCHED_OTHER)
        (void)sched_yield();
    else
        (void)pnr_clock_sleep_until(pnr_clock_ns() + NAP_NS, NULL);
}

/* Waits for the oldest piece, and reads its next detection. */
static void take_shared(pnr_team *team, const piece *p, pnr_detection *out)
{
    int polls = 0;

    while (!pnr_team_is_ready(team)) {
        if (detect_some(team, team->detector, team->detection))
            polls = 0;
        else
            wait_a_little(&polls);
    }
    if (team->n_taken == 0)
        team->unread = p->detections;
    pnr_detection_copy(out, (const pnr_detection *)(const void *)team->unread);

    const size_t n_bytes = pnr_detection_bytes(out->n_echoes + out->n_outside);

    team->unread += n_bytes;
    prefetch(team->unread, n_bytes); /* the next detection, from the cache of another core */
}

void pnr_team_take(pnr_team *team, pnr_detection *out)
{
    const piece *p = &team->pieces[team->front % team->n_pieces];

    if (team->is_shared)
        take_shared(team, p, out);
    else
        take_alone(team, p, out);
    if (++team->n_taken < p->n)
        return;
    team->n_taken = 0;
    team->front++;
    if (!team->is_shared)
        atomic_store(&team->next, team->front);
    cut_pieces(team);
}

/* Allocates the queue of pieces. */
static int allocate_pieces(pnr_team *team, size_t max_echoes)
{
    const size_t each = pnr_detection_bytes(max_echoes + PNR_MAX_OUTSIDE),
                 most = PIECE_BYTES / each;

    team->n_pieces = team->has_patches ? MAP_PIECES : PIECES;
    team->most_dwells = team->has_patches || most < 1 ? 1 : most;
    if (team->most_dwells > PIECE_DWELLS)
        team->most_dwells = PIECE_DWELLS;
    team->detection = malloc(sizeof *team->detection);
    team->memory = malloc(team->n_pieces * team->most_dwells * each);
    team->pieces = aligned_alloc(CACHE_LINE, team->n_pieces * sizeof *team->pieces);
    if (team->detection == NULL || team->memory == NULL || team->pieces == NULL)
        return PNR_ENOMEMORY;
    memset(team->pieces, 0, team->n_pieces * sizeof *team->pieces);
    for (size_t i = 0; i < team->n_pieces; i++)
        team->pieces[i].detections = team->memory + i * team->most_dwells * each;
    return PNR_OK;
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

int pnr_team_create(const pnr_detector *detector, size_t max_echoes, size_t n_threads,
                    uint64_t dwell_ns, pnr_team **out)
{
    pnr_team *team = aligned_alloc(CACHE_LINE, sizeof *team);

    *out = NULL;
    if (team == NULL)
        return PNR_ENOMEMORY;
    memset(team, 0, sizeof *team);
    team->detector = detector;
    team->dwell_ns = dwell_ns;
    team->has_patches = pnr_detector_has_rows(detector);
    sem_init(&team->work, 0, 0);
    if (allocate_pieces(team, max_echoes) != PNR_OK ||
        (n_threads > 1 && start_members(team, n_threads - 1) != PNR_OK)) {
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
    for (size_t i = 0; i < team->n_members; i++)
        sem_post(&team->work);
    for (size_t i = 0; i < team->n_members; i++) {
        pthread_join(team->members[i].thread, NULL);
        pnr_detector_destroy(team->members[i].detector);
    }
    sem_destroy(&team->work);
    free(team->members);
    free(team->pieces);
    free(team->memory);
    free(team->detection);
    free(team);
}
