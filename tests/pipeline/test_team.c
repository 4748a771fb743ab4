/* SPDX-License-Identifier: MIT */
/* The team: a caller with a real-time priority lets a thread without one finish its piece. */
#include "base/clock.h"
#include "pipeline/team.h"
#include "tests/fixture/detection_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { DWELLS = 2, CANDIDATES = 100, TURNS = 3 };

static const uint64_t nap_ns = 100 * 1000, work_ns = 10 * 1000 * 1000,
                      most_ns = PNR_NS_PER_S / 2; /* Linux leaves other threads 50 ms a second */

typedef struct job {
    pthread_t caller;
    _Atomic bool is_claimed; /* by the other thread */
    pnr_dwell dwells[DWELLS];
} job;

static uint64_t thread_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * PNR_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* In the other thread, a dwell takes work_ns of its processor. */
static void view_dwell(const void *context, size_t d, pnr_observed *out)
{
    job *j = (job *)(uintptr_t)context;

    *out = (pnr_observed){.dwell = &j->dwells[d]};
    if (pthread_equal(pthread_self(), j->caller) || atomic_exchange(&j->is_claimed, true))
        return;

    const uint64_t until_ns = thread_ns() + work_ns;

    while (thread_ns() < until_ns)
        ;
}

/* Both threads have one processor, so that the caller keeps the other one from running. */
static void share_processor(cpu_set_t *before)
{
    cpu_set_t one;
    size_t cpu = 0;

    assert_int_equal(sched_getaffinity(0, sizeof *before, before), 0);
    while (!CPU_ISSET(cpu, before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static bool set_policy(int policy)
{
    const struct sched_param param = {.sched_priority = policy == SCHED_FIFO ? 1 : 0};

    return pthread_setschedparam(pthread_self(), policy, &param) == 0;
}

static uint64_t detect_together(pnr_team *team, pnr_detection *detection)
{
    job j = {.caller = pthread_self()};

    pnr_team_add(team, view_dwell, &j, DWELLS, CANDIDATES);
    while (!atomic_load(&j.is_claimed))
        (void)pnr_clock_sleep_until(pnr_clock_ns() + nap_ns, NULL);

    const uint64_t begin_ns = pnr_clock_ns();

    for (size_t d = 0; d < DWELLS; d++)
        pnr_team_take(team, detection);
    return pnr_clock_ns() - begin_ns;
}

TEST(test_priority)
{
    static const char *const settings[] = {"code.degree=6", "dwell.periods=4",
                                           "dwell.combine=doppler", NULL};
    pnr_config config;
    pnr_setup *setup;
    pnr_detector *detector;
    pnr_team *team;
    pnr_detection detection;
    cpu_set_t before;

    if (!set_policy(SCHED_FIFO)) {
        print_message("skipped: no right to a real-time priority\n");
        skip();
    }
    assert_true(set_policy(SCHED_OTHER));
    setup = setup_of(&config, settings);
    assert_int_equal(pnr_detector_create(&config, setup, &detector, NULL), PNR_OK);
    share_processor(&before);
    assert_int_equal(pnr_team_create(detector, setup->max_echoes, 2, PNR_NS_PER_S, &team), PNR_OK);
    assert_true(set_policy(SCHED_FIFO));

    for (int turn = 0; turn < TURNS; turn++)
        assert_true(detect_together(team, &detection) < most_ns);

    assert_true(set_policy(SCHED_OTHER));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    pnr_team_destroy(team);
    pnr_detector_destroy(detector);
    pnr_setup_destroy(setup);
    pnr_config_clear(&config);
}
