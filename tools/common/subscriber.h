/* SPDX-License-Identifier: MIT */
/* A subscription to a publisher, and its messages part by part. */
#ifndef PNR_SUBSCRIBER_H
#define PNR_SUBSCRIBER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <zmq.h>

enum { PNR_SUBSCRIBER_PARTS = 3 };

/* A publisher and one of its streams. The strings must outlive their use. */
typedef struct pnr_subscriber_source {
    const char *endpoint;
    const char *stream;      /* NULL: all streams */
    const char *curve_key;   /* the publisher's public key; NULL: no encryption */
    const char *secret_path; /* file of the own secret key; NULL: a new key */
} pnr_subscriber_source;

/* Creates a socket that subscribes to "<topic>/<stream>" but is not connected. topics: ends with
 * NULL; a topic with a slash at its end is that of all streams. high_water: greatest number of
 * messages that may wait in the socket. PNR_OK, PNR_EUSAGE (key), PNR_EUNSUPPORTED,
 * PNR_EUNAVAILABLE. */
int pnr_subscriber_create(void *context, const pnr_subscriber_source *source,
                          const char *const *topics, int high_water, void **out, pnr_error *error);
/* PNR_OK; PNR_EUSAGE: the text is no endpoint; PNR_EUNAVAILABLE: the host has no address. */
int pnr_subscriber_connect(void *socket, const pnr_subscriber_source *source, pnr_error *error);
/* Ends the connection. What has arrived and was not received may be lost. */
void pnr_subscriber_disconnect(void *socket, const pnr_subscriber_source *source);

/* Watches a socket that is not connected yet. name: the inproc address of the watch, which no other
 * socket has. *monitor becomes readable when the publisher is reached, refuses the socket, or is
 * lost. PNR_OK, PNR_EUNAVAILABLE. */
int pnr_subscriber_watch(void *context, void *socket, const char *name, void **monitor,
                         pnr_error *error);
typedef enum {
    PNR_CONTACT_NONE,
    PNR_CONTACT_REACHED,
    PNR_CONTACT_LOST,     /* the connection was lost or refused; libzmq tries again */
    PNR_CONTACT_KEY,      /* authentication refused: our key is not allowed */
    PNR_CONTACT_SECURITY, /* only one of publisher and subscriber has keys */
    PNR_CONTACT_FAILED    /* the handshake failed, as with another publisher's key */
} pnr_contact;
/* Returns the next news of a watch, or PNR_CONTACT_NONE if there is no more, or no watch (NULL). */
pnr_contact pnr_subscriber_contact(void *monitor);
/* True once the publisher has been reached; the watch then ends. */
bool pnr_subscriber_reached(void *socket, void **monitor);
void pnr_subscriber_unwatch(void *socket, void **monitor); /* call before pnr_subscriber_destroy */
void pnr_subscriber_destroy(void *socket);                 /* may be NULL */
/* Returns why no program can be reached at an endpoint, as "Connection refused". Takes a second
 * at most, and the time of a name server. NULL: a program can be reached, or the reason is not
 * known. */
const char *pnr_subscriber_refusal(const char *endpoint);

typedef struct pnr_subscriber_message {
    zmq_msg_t parts[PNR_SUBSCRIBER_PARTS];
    int n_parts; /* number of received parts, even beyond PNR_SUBSCRIBER_PARTS */
} pnr_subscriber_message;

/* Receives a message and never waits. PNR_EAGAIN: no message has arrived. The caller releases a
 * received message. */
int pnr_subscriber_receive(void *socket, pnr_subscriber_message *m);
void pnr_subscriber_release(pnr_subscriber_message *m);
/* Returns one part. *bytes: the length of the part. A missing part gives "" and length 0. */
const char *pnr_subscriber_part(pnr_subscriber_message *m, int part, size_t *bytes);
/* Tells whether a message has a topic. topic: with its slash, as "range/". */
int pnr_subscriber_has_topic(pnr_subscriber_message *m, const char *topic);

#endif
