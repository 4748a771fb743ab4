/* SPDX-License-Identifier: MIT */
/* A stream. Its writes wait in poll, at most grace_s after the stop flag is set. */
#include "terminal/output.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

enum { POLL_MS = 50 };

static bool is_stopped(const pnr_output *output)
{
    return output->stop != NULL && __atomic_load_n(output->stop, __ATOMIC_RELAXED) != 0;
}

/* Waits until PIPE_BUF bytes can be written without blocking. Returns false if *stop has been set
 * for grace_s seconds. */
static bool wait_for_reader(const pnr_output *output)
{
    struct pollfd fd = {.fd = output->fd, .events = POLLOUT};
    uint64_t stopped_ns = 0;

    while (poll(&fd, 1, POLL_MS) <= 0) {
        const uint64_t now = pnr_clock_ns();

        if (!is_stopped(output))
            continue;
        if (stopped_ns == 0)
            stopped_ns = now;
        if ((double)(now - stopped_ns) * 1e-9 >= output->grace_s)
            return false;
    }
    return true;
}

/* Writes the bytes. Returns their number, or 0 after a failure, as fopencookie requires. */
static ssize_t write_all(void *cookie, const char *data, size_t n_bytes)
{
    pnr_output *output = cookie;
    size_t done = 0;

    while (done < n_bytes && output->failure == 0) {
        const size_t left = n_bytes - done;
        const ssize_t n = wait_for_reader(output)
                              ? write(output->fd, data + done, left < PIPE_BUF ? left : PIPE_BUF)
                              : (errno = ETIMEDOUT, -1);

        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR && errno != EAGAIN)
            output->failure = errno;
    }
    return output->failure == 0 ? (ssize_t)done : 0;
}

FILE *pnr_output_open(pnr_output *output)
{
    FILE *stream = fopencookie(output, "w", (cookie_io_functions_t){.write = write_all});

    output->failure = 0;
    if (stream != NULL)
        (void)setvbuf(stream, output->buffer, _IOFBF, sizeof output->buffer);
    return stream;
}
