/* SPDX-License-Identifier: MIT */
/* Messages to the service manager (systemd), as sd_notify(3) describes them. */
#ifndef PNR_NOTIFY_H
#define PNR_NOTIFY_H

#include <stdint.h>

typedef struct pnr_notify {
    int socket;           /* -1: there is no service manager */
    uint64_t watchdog_ns; /* longest time between two messages, ns; 0: no limit */
} pnr_notify;

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment. Never fails. If there
 * is no service manager or its socket cannot be reached, the other functions do nothing. */
void pnr_notify_open(pnr_notify *notify);
void pnr_notify_close(pnr_notify *notify);
/* Sends a message such as "READY=1". Never waits. Does nothing if notify is NULL. */
void pnr_notify_send(const pnr_notify *notify, const char *message);

#endif
