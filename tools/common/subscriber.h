/* SPDX-License-Identifier: MIT */
/* Subscribes to a publisher, and receives its messages part by part. */
#ifndef PNR_SUBSCRIBER_H
#define PNR_SUBSCRIBER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <zmq.h>

enum { PNR_SUBSCRIBER_PARTS = 3 };

/* A publisher and one of its streams. The strings must exist as long as the socket. */
typedef struct pnr_subscriber_source {
    const char *endpoint;
    const char *stream;      /* NULL: all streams */
    const char *curve_key;   /* the publisher's public key; NULL: no encryption */
    const char *secret_path; /* file of the subscriber's secret key; NULL: a new key */
} pnr_subscriber_source;

/* Creates a socket that subscribes to "<topic>/<stream>" and is not connected yet. topics: a list
 * that ends with NULL; a topic that ends with a slash means all streams. high_water: greatest
 * number of messages that may wait in the socket. PNR_OK, PNR_EUSAGE (wrong key), PNR_EUNSUPPORTED,
 * PNR_EUNAVAILABLE. */
int pnr_subscriber_create(void *context, const pnr_subscriber_source *source,
                          const char *const *topics, int high_water, void **out, pnr_error *error);
/* Connects the socket. PNR_OK; PNR_EUSAGE: the text is no endpoint; PNR_EUNAVAILABLE: the host has
 * no address. */
int pnr_subscriber_connect(void *socket, const pnr_subscriber_source *source, pnr_error *error);
/* Ends the connection. Messages that still wait in the socket can be lost. */
void pnr_subscriber_disconnect(void *socket, const pnr_subscriber_source *source);

/* Watches a socket that is not connected yet. name: an inproc address that no other socket has.
 * *monitor becomes readable when the socket reaches the publisher, when the publisher refuses the
 * socket, and when the connection is lost. PNR_OK, PNR_EUNAVAILABLE. */
int pnr_subscriber_watch(void *context, void *socket, const char *name, void **monitor,
                         pnr_error *error);
typedef enum {
    PNR_CONTACT_NONE,
    PNR_CONTACT_REACHED,
    PNR_CONTACT_LOST,     /* the connection was lost or refused; libzmq tries again */
    PNR_CONTACT_KEY,      /* the publisher does not allow the subscriber's key */
    PNR_CONTACT_SECURITY, /* only one of publisher and subscriber has keys */
    PNR_CONTACT_FAILED    /* the handshake failed, for example with another publisher's key */
} pnr_contact;
/* Returns the next event of the monitor. PNR_CONTACT_NONE: there is no further event, or monitor is
 * NULL. */
pnr_contact pnr_subscriber_contact(void *monitor);
/* True if the socket has reached the publisher. Then also closes the monitor, and sets *monitor to
 * NULL. */
bool pnr_subscriber_reached(void *socket, void **monitor);
void pnr_subscriber_unwatch(void *socket, void **monitor); /* call before pnr_subscriber_destroy */
void pnr_subscriber_destroy(void *socket);                 /* may be NULL */
/* Returns the reason why no program can be reached at an endpoint, as "Connection refused".
 * Resolves the host name, then waits at most one second for the connection. NULL: a program can be
 * reached, or the reason is not known. */
const char *pnr_subscriber_refusal(const char *endpoint);

typedef struct pnr_subscriber_message {
    zmq_msg_t parts[PNR_SUBSCRIBER_PARTS];
    int n_parts; /* number of received parts; may be greater than PNR_SUBSCRIBER_PARTS */
} pnr_subscriber_message;

/* Receives a message without waiting. PNR_EAGAIN: no message has arrived. The caller releases a
 * received message. */
int pnr_subscriber_receive(void *socket, pnr_subscriber_message *m);
void pnr_subscriber_release(pnr_subscriber_message *m);
/* Returns one part, and its length in *bytes. For a missing part returns "" with length 0. */
const char *pnr_subscriber_part(pnr_subscriber_message *m, int part, size_t *bytes);
/* Returns 1 if the message has this topic, else 0. topic: with a slash at its end, as "range/". */
int pnr_subscriber_has_topic(pnr_subscriber_message *m, const char *topic);

#endif
