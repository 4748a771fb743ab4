/* SPDX-License-Identifier: MIT */
/* The log on stderr. Each line is formatted completely and then written in one call. */
#include "base/log.h"

#include "base/text.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const prefixes[] = {
    [PNR_LOG_ERROR] = "error: ",
    [PNR_LOG_WARN] = "warning: ",
    [PNR_LOG_INFO] = "",
    [PNR_LOG_DEBUG] = "",
};

/* The words that PNR_LOG may have. level: messages up to this level are printed. */
static const struct {
    const char *word;
    pnr_log_level level;
} choices[] = {
    {"quiet", PNR_LOG_ERROR}, {"info", PNR_LOG_INFO}, {"debug", PNR_LOG_DEBUG}, {"", PNR_LOG_INFO}};
enum { N_CHOICES = sizeof choices / sizeof choices[0], DEFAULT = N_CHOICES - 1 };

/* Returns the index in `choices` of the word of PNR_LOG. N_CHOICES: the word is unknown. */
static size_t find_choice(void)
{
    const char *wanted = getenv("PNR_LOG");
    size_t i = 0;

    if (wanted == NULL)
        return DEFAULT;
    while (i < N_CHOICES && strcmp(wanted, choices[i].word) != 0)
        i++;
    return i;
}

static pnr_log_level most_talkative(void)
{
    const size_t i = find_choice();

    return choices[i < N_CHOICES ? i : DEFAULT].level;
}

int pnr_log_check(pnr_error *error)
{
    if (find_choice() < N_CHOICES)
        return PNR_OK;
    return pnr_error_set(error, PNR_EUSAGE,
                         "PNR_LOG=%s in the environment: want quiet, info or debug",
                         getenv("PNR_LOG"));
}

/* Repeats write(): one call may accept only a part of the data, and a signal may interrupt it. */
static void write_all(const char *data, size_t n_bytes)
{
    while (n_bytes > 0) {
        ssize_t n = write(STDERR_FILENO, data, n_bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        data += n;
        n_bytes -= (size_t)n;
    }
}

void pnr_log(pnr_log_level level, const char *format, ...)
{
    char line[2048];
    const size_t last = sizeof line - 2; /* space for the newline and the NUL */
    int saved_errno = errno;
    va_list arguments;

    if (level > most_talkative())
        return;
    int n = snprintf(line, last + 1, "%s: %s", program_invocation_short_name, prefixes[level]);
    size_t length = n < 0 ? 0 : (size_t)n;
    if (length > last)
        length = last;

    va_start(arguments, format);
    n = vsnprintf(line + length, last + 1 - length, format, arguments);
    va_end(arguments);
    if (n > 0)
        length = (size_t)n > last - length ? last : length + (size_t)n;

    while (length > 0 && line[length - 1] == '\n')
        length--;
    line[length] = '\0';
    pnr_text_hide_controls(line);
    line[length++] = '\n';
    write_all(line, length);
    errno = saved_errno;
}

bool pnr_log_is_ready(void)
{
    struct pollfd standard_error = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&standard_error, 1, 0) == 1 && (standard_error.revents & POLLOUT) != 0;
}
