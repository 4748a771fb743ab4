/* SPDX-License-Identifier: MIT */
/* libFuzzer: what a client may send to pnradar-view. The input is what arrives at a connection of
 * its server, which has a short history; an empty line ends it. */
#include "tools/view/web.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static view_store *store;
static view_web *web;
static struct sockaddr_in address;

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void add_result(void)
{
    static pnr_report report = {.run = "3b38b7c58343c85d", .stream = "demo", .engine = "fake"};

    report.rate_hz = 1e6;
    report.detection.n_echoes = 1;
    report.detection.echoes[0].range_m = (double)(report.seq % 100);
    pthread_mutex_lock(&store->mutex);
    view_store_result(store, &report);
    pthread_mutex_unlock(&store->mutex);
    report.seq++;
    report.sample += 1000;
}

static void begin_server(void)
{
    const view_web_options options = {.listen = "127.0.0.1:0"};
    char url[512];
    unsigned port;
    pnr_error error;

    if (view_store_create(1, &store) != PNR_OK ||
        view_web_open(store, &options, &web, url, &error) != PNR_OK ||
        sscanf(url, "http://127.0.0.1:%u/", &port) != 1)
        abort();
    address = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int connect_client(void)
{
    const struct timeval patience = {.tv_usec = 30000}; /* the server waits longer for the rest */
    const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (handle < 0 ||
        setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        connect(handle, (const struct sockaddr *)&address, sizeof address) != 0)
        abort();
    return handle;
}

/* Returns the number of bytes; 0: no more will come, or none has come for a while. */
static size_t receive(int handle, char *text, size_t size)
{
    ssize_t n;

    while ((n = recv(handle, text, size, 0)) < 0 && errno == EINTR)
        ; /* libFuzzer has a timer */
    require(n >= 0 || errno == ECONNRESET || errno == EAGAIN);
    return n > 0 ? (size_t)n : 0;
}

/* Reads the answers. A stream of events has no end: its begin is enough. */
static void read_answers(int handle)
{
    static char text[1 << 16];
    size_t n = receive(handle, text, sizeof text - 1);

    if (n == 0)
        return;
    text[n] = '\0';
    require(strncmp(text, "HTTP/1.", 7) == 0);
    require(strncmp(text + 8, " 500", 4) != 0);
    if (strstr(text, "text/event-stream") != NULL)
        return;
    while (receive(handle, text, sizeof text) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    int handle;

    if (web == NULL)
        begin_server();
    add_result();
    handle = connect_client();
    /* The server may refuse a request before all of it is sent. */
    (void)send(handle, data, n_bytes, MSG_NOSIGNAL);
    (void)send(handle, "\r\n\r\n", 4, MSG_NOSIGNAL);
    (void)shutdown(handle, SHUT_WR);
    read_answers(handle);
    close(handle);
    view_web_wake(web); /* streams of events notice that their client is gone */
    return 0;
}
