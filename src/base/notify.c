/* SPDX-License-Identifier: MIT */
/* Messages to the service manager (systemd): datagrams to the socket in NOTIFY_SOCKET. */
#include "base/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Returns WATCHDOG_USEC in ns. Returns 0 if this variable is not set, or if WATCHDOG_PID names
 * another process. */
static uint64_t watchdog_ns(void)
{
    const char *period = getenv("WATCHDOG_USEC"), *process = getenv("WATCHDOG_PID");

    if (period == NULL || (process != NULL && strtoull(process, NULL, 10) != (uint64_t)getpid()))
        return 0;
    return strtoull(period, NULL, 10) * 1000;
}

void pnr_notify_open(pnr_notify *notify)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size;

    *notify = (pnr_notify){.socket = -1};
    if (path == NULL || (path[0] != '/' && path[0] != '@') ||
        strlen(path) >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* an abstract address */
    size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    notify->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->socket >= 0 &&
        connect(notify->socket, (const struct sockaddr *)&address, size) != 0)
        pnr_notify_close(notify);
    if (notify->socket >= 0)
        notify->watchdog_ns = watchdog_ns();
}

void pnr_notify_close(pnr_notify *notify)
{
    if (notify->socket >= 0)
        close(notify->socket);
    *notify = (pnr_notify){.socket = -1};
}

void pnr_notify_send(const pnr_notify *notify, const char *message)
{
    if (notify != NULL && notify->socket >= 0)
        (void)send(notify->socket, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}
