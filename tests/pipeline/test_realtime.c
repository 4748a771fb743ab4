/* SPDX-License-Identifier: MIT */
/* Requests to the operating system: granted, refused with the reason, and given back. */
#include "pipeline/realtime.h"
#include "tests/fixture/test.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pnr_config config;

static void set(const char *assignment)
{
    pnr_error error;

    if (pnr_config_set(&config, assignment, &error) != PNR_OK)
        fail_msg("%s", error.text);
}

static int start(void **state)
{
    (void)state;
    setenv("PNR_LOG", "quiet", 1);
    pnr_config_init(&config);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    pnr_config_clear(&config);
    return 0;
}

static void *other(void *argument)
{
    pthread_barrier_t *over = argument;

    pnr_realtime_touch_stack();
    pthread_barrier_wait(over);
    return NULL;
}

/* The thread of this test is the processing thread; others are acquisition and publishing. */
typedef struct threads {
    pnr_realtime realtime;
    pthread_t acquisition, publishing;
    pthread_barrier_t over;
} threads;

static void enter(threads *t)
{
    assert_int_equal(pthread_barrier_init(&t->over, NULL, 3), 0);
    pnr_realtime_begin(&t->realtime, &config);
    assert_int_equal(pthread_create(&t->acquisition, NULL, other, &t->over), 0);
    assert_int_equal(pthread_create(&t->publishing, NULL, other, &t->over), 0);
    pnr_realtime_enter(&t->realtime, &config, t->acquisition, t->publishing, false);
}

static void leave(threads *t)
{
    pthread_barrier_wait(&t->over);
    pthread_join(t->acquisition, NULL);
    pthread_join(t->publishing, NULL);
    pthread_barrier_destroy(&t->over);
    pnr_realtime_end(&t->realtime);
}

static bool is_refused(const char *words)
{
    return strncmp(words, "refused: ", 9) == 0;
}

static cpu_set_t cpus_of(pthread_t thread)
{
    cpu_set_t cpus;

    assert_int_equal(pthread_getaffinity_np(thread, sizeof cpus, &cpus), 0);
    return cpus;
}

TEST_BETWEEN(test_nothing_asked, start, stop)
{
    const cpu_set_t before = cpus_of(pthread_self());
    threads t;

    enter(&t);
    assert_string_equal(t.realtime.outcome.lock_memory, "no");
    assert_string_equal(t.realtime.outcome.acquisition_cpu, "any");
    assert_string_equal(t.realtime.outcome.processing_cpu, "any");
    assert_string_equal(t.realtime.outcome.priority, "none");

    const cpu_set_t during = cpus_of(pthread_self());

    assert_true(CPU_EQUAL(&before, &during));
    leave(&t);
}

TEST_BETWEEN(test_cpus, start, stop)
{
    const cpu_set_t before = cpus_of(pthread_self());
    char wanted[2][40], number[2][8];
    int cpus[2] = {-1, -1};
    threads t;

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, &before))
            cpus[cpus[0] < 0 ? 0 : 1] = cpu;
    if (cpus[1] < 0)
        cpus[1] = cpus[0];
    for (int i = 0; i < 2; i++) {
        snprintf(number[i], sizeof number[i], "%d", cpus[i]);
        snprintf(wanted[i], sizeof wanted[i], "realtime.%s_cpu=%d",
                 i == 0 ? "acquisition" : "processing", cpus[i]);
        set(wanted[i]);
    }
    enter(&t);
    assert_string_equal(t.realtime.outcome.acquisition_cpu, number[0]);
    assert_string_equal(t.realtime.outcome.processing_cpu, number[1]);

    const cpu_set_t first = cpus_of(t.acquisition), second = cpus_of(pthread_self());

    assert_true(CPU_COUNT(&first) == 1 && CPU_ISSET((size_t)cpus[0], &first));
    assert_true(CPU_COUNT(&second) == 1 && CPU_ISSET((size_t)cpus[1], &second));
    leave(&t);

    const cpu_set_t after = cpus_of(pthread_self());

    assert_true(CPU_EQUAL(&before, &after));
}

TEST_BETWEEN(test_no_such_cpu, start, stop)
{
    const cpu_set_t before = cpus_of(pthread_self());
    threads t;

    if (CPU_ISSET(1023, &before))
        skip();
    set("realtime.acquisition_cpu=1023");
    set("realtime.processing_cpu=1023");
    enter(&t);
    assert_true(is_refused(t.realtime.outcome.acquisition_cpu) &&
                is_refused(t.realtime.outcome.processing_cpu));
    assert_non_null(strstr(t.realtime.outcome.processing_cpu, "processor 1023 not"));
    leave(&t);
}

/* The report is true whether the request is granted here or not. */
TEST_BETWEEN(test_priority, start, stop)
{
    struct sched_param param;
    threads t;
    int policy;

    set("realtime.priority=50");
    enter(&t);
    pthread_getschedparam(t.acquisition, &policy, &param);
    if (is_refused(t.realtime.outcome.priority)) {
        assert_int_equal(policy, SCHED_OTHER);
        print_message("skipped: %s\n", t.realtime.outcome.priority);
    } else {
        assert_string_equal(t.realtime.outcome.priority, "50");
        assert_int_equal(policy, SCHED_FIFO);
        assert_int_equal(param.sched_priority, 50);
        pthread_getschedparam(pthread_self(), &policy, &param);
        assert_int_equal(policy, SCHED_FIFO);
        assert_int_equal(param.sched_priority, 49);
    }
    leave(&t);
    pthread_getschedparam(pthread_self(), &policy, &param);
    assert_int_equal(policy, SCHED_OTHER);
}

/* A process without any privilege, and with limits that are too low, reports what it lacks. */
static int run_unprivileged(void)
{
    const struct rlimit low = {.rlim_cur = 65536, .rlim_max = 65536}, none = {0};
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct nothing[_LINUX_CAPABILITY_U32S_3] = {{0}};
    threads t;

    set("realtime.lock_memory=yes");
    set("realtime.priority=7");
    if (setrlimit(RLIMIT_MEMLOCK, &low) != 0 || setrlimit(RLIMIT_RTPRIO, &none) != 0 ||
        syscall(SYS_capset, &header, nothing) != 0)
        return 77;
    enter(&t);
    leave(&t);
    return strcmp(t.realtime.outcome.lock_memory,
                  "refused: RLIMIT_MEMLOCK is 65536 bytes; it takes "
                  "unlimited, or CAP_IPC_LOCK") != 0 ||
           !is_refused(t.realtime.outcome.priority) ||
           strstr(t.realtime.outcome.priority, "RLIMIT_RTPRIO from 7 (it is 0), or CAP_SYS_NICE") ==
               NULL;
}

TEST_BETWEEN(test_unprivileged, start, stop)
{
    const pid_t child = fork();
    int status;

    if (child == 0)
        _exit(run_unprivileged());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static unsigned long locked_kib(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long kib = 0;
    char line[256];

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmLck: %lu", &kib) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kib;
}

TEST_BETWEEN(test_memory, start, stop)
{
    threads t;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* their shadow is larger than any memory */
#endif
    set("realtime.lock_memory=yes");
    enter(&t);
    if (is_refused(t.realtime.outcome.lock_memory)) {
        print_message("skipped: %s\n", t.realtime.outcome.lock_memory);
    } else {
        assert_string_equal(t.realtime.outcome.lock_memory, "yes");
        assert_true(locked_kib() > 1000);
    }
    leave(&t);
    assert_int_equal(locked_kib(), 0);
}
