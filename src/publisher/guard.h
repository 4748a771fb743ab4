/* SPDX-License-Identifier: MIT */
/* The guard of the publisher: a thread that bounds how many peers connect and how much they send,
 * and that asks publisher.curve_clients whether a key is allowed. */
#ifndef PNR_GUARD_H
#define PNR_GUARD_H

#include "base/error.h"
#include "base/event.h"
#include "config/config.h"

#include <stddef.h>

typedef struct pnr_guard pnr_guard;

/* Limits of a peer. libzmq limits neither the bytes nor the subscriptions: it reads subscriptions
 * as long as more arrive, and keeps all of them. The guard therefore counts the bytes that the
 * kernel receives on each TCP connection, before libzmq has read all of them. */
enum {
    PNR_GUARD_BYTES = 16384,         /* that a peer may send at once */
    PNR_GUARD_BYTES_PER_S = 1024,    /* that it may send in the long run */
    PNR_GUARD_SUBSCRIPTIONS = 64,    /* that it may have at a time */
    PNR_GUARD_SUBSCRIPTION_LEN = 256 /* bytes of a subscription message */
};

/* Starts the guard of an XPUB socket that is not bound yet, one for each context. Sets the options
 * that bound what a peer may send; the socket then reports each subscription, even a repeated one.
 * clients: the folder of the keys that may subscribe; "": the socket has no keys. config, clients
 * and events (may be NULL) are borrowed. PNR_OK; PNR_ENOMEMORY; PNR_EUNAVAILABLE: no socket, thread
 * or descriptor; errors of pnr_keys_open. */
int pnr_guard_create(void *context, void *socket, const pnr_config *config, const char *clients,
                     pnr_events *events, pnr_guard **out, pnr_error *error);
/* Ends the guard. Call it before the socket is closed, from the socket's thread. NULL is fine. */
void pnr_guard_destroy(pnr_guard *guard);
/* Receives one message of a peer: a byte, 1 to subscribe or 0 to unsubscribe, then the prefix of
 * the topics. Never waits. Disconnects a peer that sends anything else, or too many subscriptions.
 * PNR_OK; PNR_EAGAIN: there is none; PNR_EDATA: the message is to be ignored. */
int pnr_guard_receive(pnr_guard *guard, unsigned char data[PNR_GUARD_SUBSCRIPTION_LEN],
                      size_t *size);

#endif
