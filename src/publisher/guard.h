/* SPDX-License-Identifier: MIT */
/* The guard of the publisher: a thread that limits how many peers connect and how many bytes they
 * send. It also searches publisher.curve_clients for the key of a peer. */
#ifndef PNR_GUARD_H
#define PNR_GUARD_H

#include "base/error.h"
#include "base/event.h"
#include "config/config.h"

#include <stddef.h>

typedef struct pnr_guard pnr_guard;

/* Limits of a peer. libzmq limits neither bytes nor subscriptions: it reads and keeps all
 * subscriptions that arrive. The guard therefore counts the bytes that the kernel receives on each
 * TCP connection, before libzmq has read all of them. */
enum {
    PNR_GUARD_BYTES = 16384,         /* bytes that a peer may send at once */
    PNR_GUARD_BYTES_PER_S = 1024,    /* bytes per second that a peer may send in the long run */
    PNR_GUARD_SUBSCRIPTIONS = 64,    /* subscriptions that a peer may have at a time */
    PNR_GUARD_SUBSCRIPTION_LEN = 256 /* bytes of the longest subscription message */
};

/* Starts the guard of an XPUB socket that is not bound yet. A context has at most one guard. Sets
 * the options that limit what a peer may send; the socket then reports each subscription, even a
 * repeated one. clients: the folder of the keys that may subscribe; "": the socket uses no keys.
 * config, clients and events (may be NULL) are borrowed. Returns PNR_OK; PNR_ENOMEMORY;
 * PNR_EUNAVAILABLE: no socket, thread or descriptor; an error of pnr_keys_open. */
int pnr_guard_create(void *context, void *socket, const pnr_config *config, const char *clients,
                     pnr_events *events, pnr_guard **out, pnr_error *error);
/* Ends the guard. Call it in the thread of the socket, before zmq_close. `guard` may be NULL. */
void pnr_guard_destroy(pnr_guard *guard);
/* Receives one message of a peer: a byte, 1 to subscribe or 0 to unsubscribe, then the prefix of
 * the topics. Never waits. Disconnects a peer that sends anything else, or too many subscriptions.
 * Returns PNR_OK; PNR_EAGAIN: there is no message; PNR_EDATA: the caller ignores the message. */
int pnr_guard_receive(pnr_guard *guard, unsigned char data[PNR_GUARD_SUBSCRIPTION_LEN],
                      size_t *size);

#endif
