/* SPDX-License-Identifier: MIT */
/* Tests that each task is done once, by a thread that does no other task at that time. Tests also
 * that the available memory is less than the memory of the machine. */
#include "base/available.h"
#include "base/parallel.h"
#include "tests/fixture/test.h"

#include <stdatomic.h>
#include <unistd.h>

enum { TASKS = 1000, THREADS = 5 };

typedef struct tally {
    atomic_int done[TASKS], busy[THREADS];
    atomic_int n_overlaps;
} tally;

static void count_task(void *context, size_t task, size_t thread)
{
    tally *t = context;

    t->n_overlaps += atomic_fetch_add(&t->busy[thread], 1);
    t->done[task]++;
    t->busy[thread]--;
}

TEST(test_each_task_once)
{
    for (size_t n_threads = 1; n_threads <= THREADS; n_threads++) {
        static tally t;

        memset(&t, 0, sizeof t);
        pnr_parallel_run(TASKS, n_threads, count_task, &t);
        for (size_t i = 0; i < TASKS; i++)
            assert_int_equal(t.done[i], 1);
        assert_int_equal(t.n_overlaps, 0);
    }
}

typedef struct stopping {
    atomic_int n_done;
    int stop;
} stopping;

static void stop_at_tenth(void *context, size_t task, size_t thread)
{
    stopping *s = context;

    (void)task, (void)thread;
    if (atomic_fetch_add(&s->n_done, 1) == 9)
        __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
}

TEST(test_a_stop_leaves_tasks_out)
{
    for (size_t n_threads = 1; n_threads <= THREADS; n_threads++) {
        stopping s = {0};

        pnr_parallel_stop_at(&s.stop);
        pnr_parallel_run(TASKS, n_threads, stop_at_tenth, &s);
        assert_true(pnr_parallel_is_stopped());
        assert_true(s.n_done >= 10 && s.n_done < 10 + (int)n_threads);
        pnr_parallel_stop_at(NULL);
        assert_false(pnr_parallel_is_stopped());
        pnr_parallel_run(TASKS, n_threads, stop_at_tenth, &s);
        assert_true(s.n_done >= TASKS + 10);
    }
}

TEST(test_number_of_threads)
{
    assert_int_equal(pnr_parallel_threads(1), 1);
    assert_true(pnr_parallel_threads(1000) >= 1);
    assert_true(pnr_parallel_threads(1000) <= (size_t)sysconf(_SC_NPROCESSORS_ONLN));
}

TEST(test_memory_available)
{
    const double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);

    assert_true(pnr_memory_available() > 0);
    assert_true(pnr_memory_available() < machine);
}
