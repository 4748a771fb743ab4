/* SPDX-License-Identifier: MIT */
/* Tasks on several threads: each is done once, by a thread that has no other task at that time. The
 * memory that is available is less than that of the machine. */
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
