/* SPDX-License-Identifier: MIT */
/* Asks the operating system for locked memory, processors and priorities for the threads of a run.
 * A refusal is never fatal. */
#include "pipeline/realtime.h"

#include "base/log.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024 };

static void note_refusal(char words[PNR_REALTIME_LEN], const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void note_refusal(char words[PNR_REALTIME_LEN], const char *key, const char *format, ...)
{
    static const char refused[] = "refused: ";
    const size_t length = sizeof refused - 1;
    va_list arguments;

    memcpy(words, refused, sizeof refused);
    va_start(arguments, format);
    vsnprintf(words + length, PNR_REALTIME_LEN - length, format, arguments);
    va_end(arguments);
    pnr_log(PNR_LOG_WARN, "realtime.%s: %s", key, words);
}

static bool is_capable(unsigned capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};

    return syscall(SYS_capget, &header, sets) == 0 &&
           (sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

static void lock_memory(pnr_realtime *r)
{
    struct rlimit limit = {0};

    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur != RLIM_INFINITY && !is_capable(CAP_IPC_LOCK)) {
        note_refusal(r->outcome.lock_memory, "lock_memory",
                     "RLIMIT_MEMLOCK is %llu bytes; it takes unlimited, or CAP_IPC_LOCK",
                     (unsigned long long)limit.rlim_cur);
    } else if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        note_refusal(r->outcome.lock_memory, "lock_memory", "%s", strerror(errno));
    } else {
        r->is_locked = true;
        strcpy(r->outcome.lock_memory, "yes");
    }
}

static void set_processor(const pnr_realtime *r, pthread_t thread, int cpu, const char *key,
                          char words[PNR_REALTIME_LEN])
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET((size_t)cpu, &cpus);

    const int code = pthread_setaffinity_np(thread, sizeof cpus, &cpus);

    if (code != 0)
        note_refusal(words, key, "%s; of %ld processors this program may use %d, processor %d %s",
                     strerror(code), sysconf(_SC_NPROCESSORS_CONF), CPU_COUNT(&r->cpus), cpu,
                     CPU_ISSET((size_t)cpu, &r->cpus) ? "too" : "not");
    else
        snprintf(words, PNR_REALTIME_LEN, "%d", cpu);
}

/* Requests `priority` for the first thread, and a priority lower by 1 for each next thread, but at
 * least 1. */
static void set_priorities(pnr_realtime *r, size_t n, const pthread_t *threads, int priority)
{
    struct rlimit limit = {0};
    int code = 0;

    for (size_t i = 0; i < n && code == 0; i++) {
        const int wanted = priority - (int)i;
        const struct sched_param param = {.sched_priority = wanted > 1 ? wanted : 1};

        code = pthread_setschedparam(threads[i], SCHED_FIFO, &param);
    }
    (void)getrlimit(RLIMIT_RTPRIO, &limit);
    if (code != 0)
        note_refusal(r->outcome.priority, "priority",
                     "%s; it takes RLIMIT_RTPRIO from %d (it is %llu), or CAP_SYS_NICE",
                     strerror(code), priority, (unsigned long long)limit.rlim_cur);
    else
        snprintf(r->outcome.priority, sizeof r->outcome.priority, "%d", priority);
}

void pnr_realtime_begin(pnr_realtime *r, const pnr_config *config)
{
    const pthread_t self = pthread_self();

    *r = (pnr_realtime){.outcome = {.lock_memory = "no",
                                    .acquisition_cpu = "any",
                                    .processing_cpu = "any",
                                    .priority = "none"}};
    (void)pthread_getaffinity_np(self, sizeof r->cpus, &r->cpus);
    (void)pthread_getschedparam(self, &r->policy, &r->param);
    if (config->realtime.lock_memory)
        lock_memory(r);
}

static void set_processing(pnr_realtime *r, const pnr_config *config)
{
    if (config->realtime.processing_cpu >= 0)
        set_processor(r, pthread_self(), config->realtime.processing_cpu, "processing_cpu",
                      r->outcome.processing_cpu);
}

void pnr_realtime_enter(pnr_realtime *r, const pnr_config *config, pthread_t acquisition,
                        pthread_t publishing, bool has_worker)
{
    /* The first thread has the highest priority: late acquisition loses samples, and a late result
     * loses nothing. */
    const pthread_t threads[] = {acquisition, pthread_self(), publishing};

    if (config->realtime.acquisition_cpu >= 0)
        set_processor(r, acquisition, config->realtime.acquisition_cpu, "acquisition_cpu",
                      r->outcome.acquisition_cpu);
    if (!has_worker)
        set_processing(r, config);
    if (config->realtime.priority > 0)
        set_priorities(r, sizeof threads / sizeof threads[0], threads,
                       (int)config->realtime.priority);
}

void pnr_realtime_enter_worker(pnr_realtime *r, const pnr_config *config)
{
    const pthread_t self = pthread_self();

    set_processing(r, config);
    if (config->realtime.priority > 0)
        set_priorities(r, 1, &self, (int)config->realtime.priority - 1);
}

void pnr_realtime_end(pnr_realtime *r)
{
    (void)pthread_setschedparam(pthread_self(), r->policy, &r->param);
    (void)pthread_setaffinity_np(pthread_self(), sizeof r->cpus, &r->cpus);
    if (r->is_locked)
        (void)munlockall();
    r->is_locked = false;
}

void pnr_realtime_touch_stack(void)
{
    enum { PAGE = 4096 };
    volatile char stack[STACK_BYTES];

    for (size_t i = 0; i < sizeof stack; i += PAGE)
        stack[i] = 0;
}
