/* SPDX-License-Identifier: MIT */
#include "tasks.h"

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20, MOST_WORDS = 4096, PATIENCE_S = 60 };

/* Bytes of stdin: a line, its line feed, and what came after it. */
typedef struct request {
    char *text; /* [MOST_BYTES] */
    size_t n_bytes;
    size_t line; /* bytes of the line with its line feed; 0: not complete */
} request;

/* Waits at most a second for more bytes. PNR_OK, PNR_EAGAIN: there are none; PNR_EEND, PNR_EIO. */
static int read_more(request *r)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    const int n_ready = poll(&in, 1, 1000);
    ssize_t n;

    if (n_ready == 0)
        return PNR_EAGAIN;
    if (n_ready < 0 || (n = read(STDIN_FILENO, r->text + r->n_bytes, MOST_BYTES - r->n_bytes)) < 0)
        return errno == EINTR ? PNR_OK : PNR_EIO;
    r->n_bytes += (size_t)n;
    return n > 0 ? PNR_OK : PNR_EEND;
}

/* Drops the line before, and reads the next one. PNR_EEND: stdin has ended, no byte has come for
 * PATIENCE_S, or the process must stop. PNR_EUSAGE: the line is too long or has no end. */
static int read_request(request *r)
{
    const char *end;
    int waited_s = 0;

    r->n_bytes -= r->line;
    memmove(r->text, r->text + r->line, r->n_bytes);
    r->line = 0;
    while ((end = memchr(r->text, '\n', r->n_bytes)) == NULL) {
        int code;

        if (pnr_stop || waited_s == PATIENCE_S)
            return PNR_EEND;
        if (r->n_bytes == MOST_BYTES)
            return PNR_EUSAGE;
        if ((code = read_more(r)) == PNR_EEND && r->n_bytes > 0)
            return PNR_EUSAGE;
        if (code != PNR_OK && code != PNR_EAGAIN)
            return code;
        waited_s = code == PNR_OK ? 0 : waited_s + 1;
    }
    r->line = (size_t)(end - r->text) + 1;
    return pnr_stop ? PNR_EEND : PNR_OK;
}

typedef struct task {
    char **words; /* [n_words + 1], the program first, NULL last */
    int n_words;
    const char *out, *err;
} task;

static void free_words(task *t)
{
    for (int i = 1; i < t->n_words; i++)
        free(t->words[i]);
    free(t->words);
}

/* Fills *t. The caller calls free_words and keeps `line` until then. PNR_OK, PNR_EUSAGE,
 * PNR_ENOMEMORY. */
static int read_task(json_t *line, char *program, task *t)
{
    json_t *words = json_object_get(line, "words");
    const size_t n = json_array_size(words);

    t->out = json_string_value(json_object_get(line, "out"));
    t->err = json_string_value(json_object_get(line, "err"));
    if (t->out == NULL || t->err == NULL || n < 1 || n > MOST_WORDS)
        return PNR_EUSAGE;
    if ((t->words = calloc(n + 2, sizeof *t->words)) == NULL)
        return PNR_ENOMEMORY;
    t->words[0] = program;
    for (t->n_words = 1; t->n_words <= (int)n; t->n_words++) {
        const char *word = json_string_value(json_array_get(words, (size_t)t->n_words - 1));

        if (word == NULL)
            return PNR_EUSAGE;
        if ((t->words[t->n_words] = strdup(word)) == NULL)
            return PNR_ENOMEMORY;
    }
    return PNR_OK;
}

/* Makes the descriptor `to` a new file at this path. */
static bool redirect(const char *path, int to)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const bool is_done = fd >= 0 && dup2(fd, to) == to;

    if (fd >= 0)
        close(fd);
    return is_done;
}

/* Runs a task with its files as stdout and stderr. Then restores both. */
static int run_task(const task *t, const int saved[2], int (*run)(int argc, char **argv))
{
    int status;

    if (!redirect(t->err, STDERR_FILENO) || !redirect(t->out, STDOUT_FILENO)) {
        pnr_log(PNR_LOG_ERROR, "%s, %s: %s", t->out, t->err, strerror(errno));
        status = pnr_error_exit(PNR_EIO);
    } else {
        status = run(t->n_words, t->words);
    }
    if (fflush(stdout) != 0 && status == 0)
        status = pnr_error_exit(PNR_EIO);
    (void)dup2(saved[0], STDOUT_FILENO);
    (void)dup2(saved[1], STDERR_FILENO);
    return status;
}

/* Reads, runs and answers one task. *status: its exit status. */
static int serve(request *r, char *program, const int saved[2], int (*run)(int argc, char **argv),
                 int *status)
{
    task t = {0};
    json_t *line = NULL;
    int code = read_request(r);

    if (code == PNR_OK && ((line = pnr_json_read(r->text, r->line, NULL)) == NULL))
        code = PNR_EUSAGE;
    if (code == PNR_OK && (code = read_task(line, program, &t)) == PNR_OK) {
        *status = run_task(&t, saved, run);
        printf("{\"exit_status\": %d}\n", *status);
        code = fflush(stdout) == 0 ? PNR_OK : PNR_EIO;
    }
    free_words(&t);
    json_decref(line);
    return code;
}

int pnr_tasks_run(char *program, int (*run)(int argc, char **argv))
{
    const int saved[2] = {fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3),
                          fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)};
    request r = {.text = malloc(MOST_BYTES)};
    int status = 0, code = PNR_OK;

    if (r.text == NULL || saved[0] < 0 || saved[1] < 0)
        code = PNR_ENOMEMORY;
    pnr_cli_catch_signals();
    while (code == PNR_OK && status == 0)
        code = serve(&r, program, saved, run, &status);
    if (code == PNR_EUSAGE)
        pnr_log(PNR_LOG_ERROR, "%s is for pnradar-archive, which writes tasks to stdin",
                PNR_TASKS_OPTION);
    free(r.text);
    return status != 0 ? status : code == PNR_EEND ? 0 : pnr_error_exit(code);
}
