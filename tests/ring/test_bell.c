/* SPDX-License-Identifier: MIT */
/* The bell: no sleeper misses a ring, in one process or in several. */
#include "base/clock.h"
#include "ring/bell.h"
#include "tests/fixture/test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLEEPERS = 3, TURNS = 3000 };

static const uint64_t minute_ns = 60 * (uint64_t)PNR_NS_PER_S;

/* Number `turn` is given out when all sleepers have taken the one before it. */
typedef struct game {
    pnr_bell turns, answers; /* of the sleepers, and of the giver */
    _Atomic uint32_t turn;
    _Atomic uint32_t taken[SLEEPERS];
} game;

typedef struct sleeper {
    game *of;
    size_t number;
    uint64_t linger_ns;
} sleeper;

static bool has_turn(void *of)
{
    const sleeper *s = of;

    return s->of->turn > s->of->taken[s->number];
}

static void *take_turns(void *argument)
{
    sleeper *s = argument;
    game *g = s->of;

    while (g->taken[s->number] < TURNS)
        if (pnr_bell_wait(&g->turns, has_turn, s, s->linger_ns, minute_ns)) {
            g->taken[s->number]++;
            pnr_bell_ring(&g->answers);
        }
    return NULL;
}

static bool are_all_taken(void *of)
{
    const game *g = of;

    for (size_t i = 0; i < SLEEPERS; i++)
        if (g->taken[i] < g->turn)
            return false;
    return true;
}

/* Gives out all turns. A missed ring takes a minute. */
static void give_turns(game *g)
{
    const uint64_t begin_ns = pnr_clock_ns();

    while (g->turn < TURNS) {
        g->turn++;
        pnr_bell_ring(&g->turns);
        while (!are_all_taken(g))
            (void)pnr_bell_wait(&g->answers, are_all_taken, g, 0, minute_ns);
    }
    assert_true(pnr_clock_ns() - begin_ns < minute_ns);
}

TEST(test_threads)
{
    game g = {.turn = 0};
    sleeper sleepers[SLEEPERS];
    pthread_t threads[SLEEPERS];

    for (size_t i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (sleeper){&g, i, i * 5000};
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &sleepers[i]), 0);
    }
    give_turns(&g);
    for (size_t i = 0; i < SLEEPERS; i++)
        pthread_join(threads[i], NULL);
}

TEST(test_processes)
{
    game *g = mmap(NULL, sizeof *g, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t processes[SLEEPERS];

    assert_true(g != MAP_FAILED);
    for (size_t i = 0; i < SLEEPERS; i++)
        if ((processes[i] = fork()) == 0) {
            sleeper s = {g, i, 0};

            (void)take_turns(&s);
            _exit(0);
        }
    give_turns(g);
    for (size_t i = 0; i < SLEEPERS; i++) {
        int status;

        assert_int_equal(waitpid(processes[i], &status, 0), processes[i]);
        assert_int_equal(status, 0);
    }
    munmap(g, sizeof *g);
}

static bool is_never(void *of)
{
    ++*(int *)of;
    return false;
}

/* A sleeper that dies leaves no trace but one ring that wakes nobody. */
TEST(test_killed_sleeper)
{
    pnr_bell *bell =
        mmap(NULL, sizeof *bell, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int looks = 0;
    pid_t process;

    assert_true(bell != MAP_FAILED);
    if ((process = fork()) == 0)
        for (;;)
            (void)pnr_bell_wait(bell, is_never, &looks, 0, minute_ns);
    while (bell->is_set == 0)
        (void)pnr_clock_sleep_until(pnr_clock_ns() + 1000000, NULL);
    assert_int_equal(kill(process, SIGKILL), 0);
    assert_int_equal(waitpid(process, NULL, 0), process);
    pnr_bell_ring(bell);
    pnr_bell_ring(bell);
    assert_int_equal(bell->rings, 1);
    munmap(bell, sizeof *bell);
}

/* The patience and the time after it in which the sleeper polls both end. */
TEST(test_patience)
{
    const uint64_t begin_ns = pnr_clock_ns(), wait_ns = 2000000, linger_ns = 1000000;
    pnr_bell bell = {0};
    int looks = 0;

    assert_false(pnr_bell_wait(&bell, is_never, &looks, linger_ns, wait_ns));
    assert_true(pnr_clock_ns() - begin_ns >= wait_ns + linger_ns);
    assert_true(looks > 2); /* before, after, and between */
}
