/* SPDX-License-Identifier: MIT */
/* libFuzzer: what the listener draws on a terminal. The input is the terminal's size, then the text
 * of a message, a line feed, and the cells of a profile or map. */
#include "memory_file.h"
#include "tools/listen/live.h"

#include <math.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static int master;

/* Reads what is drawn. */
static void *drain(void *argument)
{
    char bytes[65536];

    (void)argument;
    while (read(master, bytes, sizeof bytes) > 0)
        ;
    return NULL;
}

static void begin_terminal(void)
{
    pthread_t reader;
    int slave;

    setenv("TERM", "xterm-256color", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    if (openpty(&master, &slave, NULL, NULL, NULL) != 0 || dup2(slave, STDIN_FILENO) < 0 ||
        dup2(slave, STDOUT_FILENO) < 0 || pthread_create(&reader, NULL, drain, NULL) != 0)
        abort();
}

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGSEGV,
                             SIGBUS, SIGABRT, SIGFPE, SIGILL};
enum { N_CAUGHT = sizeof caught / sizeof *caught };

/* Opens the view, and leaves libFuzzer its signals. */
static listen_live *open_view(FILE **log)
{
    struct sigaction before[N_CAUGHT];
    listen_live *live;
    pnr_error error;

    for (size_t i = 0; i < N_CAUGHT; i++)
        sigaction(caught[i], NULL, &before[i]);
    if (listen_live_open("ipc://fuzz", &live, log, &error) != PNR_OK)
        abort();
    for (size_t i = 0; i < N_CAUGHT; i++)
        sigaction(caught[i], &before[i], NULL);
    return live;
}

/* Shows the cells of a profile or a map, if the message is one of these. */
static void show_cells(listen_live *live, const char *text, size_t length, const uint8_t *bytes,
                       size_t n_bytes)
{
    static pnr_map map;
    float *cells = malloc(n_bytes + sizeof *cells);
    pnr_error error;

    memcpy(cells, bytes, n_bytes);
    map.cells = cells;
    if (pnr_message_read_map(text, length, n_bytes, &map.head, &map.info, &error) == PNR_OK) {
        listen_live_profile(live, &map);
    } else {
        map.info = (pnr_map_info){.n_codes = 1, .n_rows = 1, .n_runs = 1, .mps_per_hz = NAN};
        map.info.runs[0].n_rows = 1;
        if (pnr_message_read_profile(text, length, n_bytes, &map.head, &map.info.row, &error) ==
            PNR_OK)
            listen_live_profile(live, &map);
    }
    free(cells);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static pnr_report report;
    static listen_counts counts;
    static bool has_begun;
    pnr_error error;
    FILE *log;

    if (n_bytes < 2)
        return 0;
    if (!has_begun)
        begin_terminal();
    has_begun = true;

    const struct winsize size = {.ws_col = data[0] * 2, .ws_row = data[1]};
    const char *text = (const char *)data + 2;
    const char *end = memchr(text, '\n', n_bytes - 2);
    const size_t length = end != NULL ? (size_t)(end - text) + 1 : n_bytes - 2;

    if (ioctl(STDOUT_FILENO, TIOCSWINSZ, &size) != 0)
        abort();

    listen_live *live = open_view(&log);

    if (pnr_message_read_range(text, length, &report, &error) == PNR_OK)
        listen_live_result(live, &report);
    else
        listen_live_notice(live, error.text);
    show_cells(live, text, length, data + 2 + length, n_bytes - 2 - length);
    if (listen_live_draw(live, &counts) == PNR_EIO)
        abort();
    listen_live_close(live, &counts, &log);
    return 0;
}
