/* SPDX-License-Identifier: MIT */
/* Starts, watches and kills a worker. Run and worker use the same executable file, so they are the
 * same build. */
#include "pipeline/worker_process.h"

#include "base/clock.h"
#include "config/config.h"
#include "engine/plan.h"
#include "pipeline/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    LINE = 64,
    LEAST_RESULT_BYTES = 1 << 20,
    MOST_RESULT_BYTES = 16 << 20,
    USUAL_ECHOES = 8,
    MORE_VIEWS = 2,
    POLL_MS = 50
};

static const uint64_t end_patience_ns = PNR_NS_PER_S, nap_ns = 1000 * 1000;

static size_t round_up(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* --- memory --- */

/* Returns the size of the queue of views in bytes. It has space for all views that may be lent, and
 * for MORE_VIEWS parts. */
static size_t views_capacity(const pnr_isolation_parts *parts, size_t most_view_bytes)
{
    return (pnr_isolation_views(parts->setup) + MORE_VIEWS) * most_view_bytes;
}

/* Returns the size of the queue of results in bytes. It has space for the usual results of a
 * submit, up to MOST_RESULT_BYTES, so that usually neither side waits within a submit. One result
 * with cells always fits. */
static size_t results_capacity(const pnr_shared_order *order)
{
    const size_t usual = offsetof(pnr_made, detection.echoes) + USUAL_ECHOES * sizeof(pnr_echo);
    const size_t wanted = order->max_dwells * usual;
    const size_t most = wanted < MOST_RESULT_BYTES ? wanted : MOST_RESULT_BYTES;

    return (most > LEAST_RESULT_BYTES ? most : LEAST_RESULT_BYTES) + order->cells_bytes;
}

/* Fills the members of *order that are the same for all workers. Returns the size in bytes of the
 * memory shared with the worker. */
static size_t fill_order(pnr_shared_order *order, const pnr_isolation_parts *parts, int samples_fd,
                         size_t config_bytes)
{
    const pnr_plan *plan = &parts->setup->plan;

    *order = (pnr_shared_order){
        .bytes = {sizeof(pnr_shared), sizeof(pnr_made)},
        .parent = getpid(),
        .samples_fd = samples_fd,
        .capacity = parts->capacity,
        .sample_bytes = pnr_plan_sample_bytes(plan),
        .format = parts->info->format,
        .n_channels = parts->info->n_channels,
        .devices = parts->setup->devices,
        .is_live = parts->is_live,
        .wants_power = plan->want_profile == PNR_WANT_POWER,
        .max_dwells = parts->max_dwells,
        .most_view_bytes = pnr_shared_view_bytes(parts->max_dwells, pnr_plan_windows(plan)),
        .cells_bytes = pnr_plan_profile_bytes(plan),
        .config_bytes = config_bytes,
    };
    order->config_at = round_up(sizeof(pnr_shared));
    order->views_at = order->config_at + round_up(config_bytes);
    order->results_at =
        order->views_at + round_up(pnr_queue_bytes(views_capacity(parts, order->most_view_bytes),
                                                   order->most_view_bytes));
    return order->results_at + round_up(pnr_queue_bytes(results_capacity(order),
                                                        pnr_made_most_bytes(order->cells_bytes)));
}

int pnr_worker_open(pnr_worker_process *w, const pnr_isolation_parts *parts, int samples_fd,
                    pnr_error *error)
{
    pnr_shared_order order;
    char *text = NULL;
    size_t n_text = 0;
    FILE *stream = open_memstream(&text, &n_text);

    w->fd = -1;
    w->hang_ns = (uint64_t)(parts->config->engine.deadline_hang * (double)PNR_NS_PER_S);
    if (stream != NULL) {
        pnr_config_print(parts->config, stream);
        (void)fclose(stream);
    }
    w->bytes = fill_order(&order, parts, samples_fd, n_text);
    w->views_capacity = views_capacity(parts, order.most_view_bytes);
    w->fd = memfd_create("pnradar worker", MFD_CLOEXEC);
    if (text == NULL || w->fd < 0 || ftruncate(w->fd, (off_t)w->bytes) != 0 ||
        (w->shared = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, w->fd,
                          0)) == MAP_FAILED) {
        w->shared = NULL;
        free(text);
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a worker's queues of %zu bytes",
                             w->bytes);
    }
    w->shared->order = order;
    memcpy((char *)w->shared + order.config_at, text, n_text);
    free(text);
    return PNR_OK;
}

void pnr_worker_close(pnr_worker_process *w)
{
    const uint64_t until = pnr_clock_ns() + end_patience_ns;

    while (w->is_started && w->is_ending && pnr_clock_ns() < until) {
        if (waitpid(w->pid, NULL, WNOHANG) != 0)
            w->is_started = false;
        else
            (void)pnr_clock_sleep_until(pnr_clock_ns() + nap_ns, NULL);
    }
    pnr_worker_kill(w);
    if (w->shared != NULL)
        munmap(w->shared, w->bytes);
    if (w->shared != NULL || w->fd > 0)
        close(w->fd);
}

/* --- the process --- */

/* Clears the state and the queues of an earlier worker. Keeps the configuration. Changes only these
 * members of pnr_shared_order: engine, may_lack_devices, left_out, unreported. */
static void reset_memory(pnr_worker_process *w, const char *engine, const pnr_devices *left_out,
                         uint64_t unreported)
{
    pnr_shared_order *order = &w->shared->order;
    char *begin = (char *)w->shared;

    memset((char *)order + sizeof *order, 0, sizeof *w->shared - sizeof *order);
    memset(begin + order->views_at, 0, w->bytes - order->views_at);
    snprintf(order->engine, sizeof order->engine, "%s", engine);
    order->may_lack_devices = left_out != NULL;
    order->left_out = left_out != NULL ? *left_out : (pnr_devices){.n = 0};
    order->unreported = unreported;
    w->views = pnr_queue_init(begin + order->views_at, w->views_capacity, order->most_view_bytes);
    w->results = pnr_queue_init(begin + order->results_at, results_capacity(order),
                                pnr_made_most_bytes(order->cells_bytes));
}

/* Starts this program again with normal priority: the new process asks for its own priority. The
 * new process inherits standard error and the descriptors that `files` duplicates. `files` is
 * destroyed. */
static int spawn_self(pid_t *pid, posix_spawn_file_actions_t *files, char *const arguments[])
{
    const struct sched_param plain = {.sched_priority = 0};
    posix_spawnattr_t attributes;
    int code;

    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSCHEDULER);
    posix_spawnattr_setschedpolicy(&attributes, SCHED_OTHER);
    posix_spawnattr_setschedparam(&attributes, &plain);
    posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    code = posix_spawn(pid, "/proc/self/exe", files, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(files);
    return code;
}

static int spawn_worker(pnr_worker_process *w)
{
    const int samples_fd = w->shared->order.samples_fd;
    posix_spawn_file_actions_t files;
    char number[16];
    char *const arguments[] = {program_invocation_name, (char[]){PNR_WORKER_OPTION}, number, NULL};

    snprintf(number, sizeof number, "%d", w->fd);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    /* A descriptor that is duplicated to itself stays open. */
    posix_spawn_file_actions_adddup2(&files, w->fd, w->fd);
    posix_spawn_file_actions_adddup2(&files, samples_fd, samples_fd);
    return spawn_self(&w->pid, &files, arguments);
}

/* Reads the list of devices that another process writes. PNR_OK; PNR_EUNAVAILABLE: the process has
 * ended without a list; PNR_EEND: *stop was set. */
static int read_devices(int fd, const volatile int *stop, pnr_devices *out)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};

    while (stop == NULL || __atomic_load_n(stop, __ATOMIC_RELAXED) == 0)
        if (poll(&item, 1, POLL_MS) > 0)
            return read(fd, out, sizeof *out) == (ssize_t)sizeof *out && out->n >= 1 &&
                           out->n <= PNR_MAX_DEVICES
                       ? PNR_OK
                       : PNR_EUNAVAILABLE;
    return PNR_EEND;
}

int pnr_worker_list_devices(const char *engine, const volatile int *stop, pnr_devices *out,
                            pnr_error *error)
{
    char name[PNR_TEXT_LEN];
    char *const arguments[] = {program_invocation_name, (char[]){PNR_WORKER_OPTION},
                               (char[]){PNR_WORKER_DEVICES}, name, NULL};
    posix_spawn_file_actions_t files;
    pid_t pid;
    int ends[2], code;

    snprintf(name, sizeof name, "%s", engine);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "no pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    code = spawn_self(&pid, &files, arguments);
    close(ends[1]);
    if (code == 0) {
        code = read_devices(ends[0], stop, out);
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    } else {
        code = PNR_EUNAVAILABLE;
    }
    close(ends[0]);
    return code == PNR_EUNAVAILABLE ? pnr_error_set(error, code,
                                                    "engine.device = all: no process could list "
                                                    "the devices of the engine %s",
                                                    engine)
                                    : code;
}

void pnr_worker_start(pnr_worker_process *w, const char *engine, const pnr_devices *left_out,
                      uint64_t unreported)
{
    int code;

    reset_memory(w, engine, left_out, unreported);
    w->is_started = true;
    w->is_ready = w->is_ending = false;
    w->turns = 0;
    w->started_ns = w->moved_ns = pnr_clock_ns();
    if ((code = spawn_worker(w)) == 0)
        return;
    w->pid = 0;
    pnr_error_set(&w->shared->error, PNR_EUNAVAILABLE, "no worker can be started: %s",
                  strerror(code));
    atomic_store(&w->shared->state, PNR_WORKER_FAILED);
}

void pnr_worker_kill(pnr_worker_process *w)
{
    if (w->is_started && w->pid > 0) {
        (void)kill(w->pid, SIGKILL);
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    w->is_started = w->is_ready = false;
}

/* Returns true if the process has ended, and sets w->pid to 0. */
static bool has_ended(pnr_worker_process *w, char *reason, size_t size)
{
    int status;

    if (w->pid == 0 || waitpid(w->pid, &status, WNOHANG) == 0)
        return false;
    w->pid = 0;
    if (WIFSIGNALED(status))
        snprintf(reason, size, "process ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(reason, size, "process ended with status %d", WEXITSTATUS(status));
    return true;
}

/* Returns true if the worker has views but has counted no turn for hang_ns. */
static bool does_hang(pnr_worker_process *w, bool has_views, uint64_t now)
{
    const uint64_t turns = atomic_load(&w->shared->turns);

    if (turns != w->turns || !has_views) {
        w->turns = turns;
        w->moved_ns = now;
    }
    return now - w->moved_ns > w->hang_ns;
}

bool pnr_worker_is_lost(pnr_worker_process *w, bool has_views, char *reason, size_t size)
{
    const uint64_t now = pnr_clock_ns();
    const int state = atomic_load(&w->shared->state);

    if (state == PNR_WORKER_FAILED) {
        snprintf(reason, size, "%.*s", (int)size - 1, w->shared->error.text);
        return true;
    }
    if (has_ended(w, reason, size))
        return true;
    if (state == PNR_WORKER_READY && !w->is_ready) {
        w->is_ready = true;
        w->moved_ns = now;
        w->limit_ns = w->hang_ns + 3 * (now - w->started_ns);
    }
    if (!w->is_ready && w->limit_ns > 0 && now - w->started_ns > w->limit_ns) {
        snprintf(reason, size, "not ready after %.3g s", (double)w->limit_ns * 1e-9);
        return true;
    }
    if (w->is_ready && does_hang(w, has_views, now)) {
        snprintf(reason, size, "no progress for %.3g s (engine.deadline_hang)",
                 (double)w->hang_ns * 1e-9);
        return true;
    }
    return false;
}

/* --- views --- */

bool pnr_worker_send(pnr_worker_process *w, int kind, const pnr_windows *windows)
{
    pnr_shared_view *view = pnr_queue_reserve(w->views, w->shared->order.most_view_bytes);

    if (view == NULL)
        return false;
    pnr_queue_commit(w->views, pnr_shared_write_view(view, kind, windows));
    return true;
}
