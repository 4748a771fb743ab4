/* SPDX-License-Identifier: MIT */
/* A subscription to a publisher, and its messages part by part. */
#ifndef LISTEN_SOCKET_H
#define LISTEN_SOCKET_H

#include "base/error.h"

#include <stddef.h>
#include <zmq.h>

enum { LISTEN_MAX_PARTS = 3 };

/* Who is listened to. The strings stay the caller's. */
typedef struct listen_source {
    const char *endpoint;
    const char *stream;    /* NULL: all */
    const char *curve_key; /* the publisher's public key; NULL: none */
} listen_source;

/* A socket that subscribes to "<topic>/<stream>", not connected yet. topics end with NULL;
 * high_water: messages kept. PNR_OK, PNR_EUSAGE (the key), PNR_EUNSUPPORTED, PNR_EUNAVAILABLE. */
int listen_socket_create(void *context, const listen_source *source, const char *const *topics,
                         int high_water, void **out, pnr_error *error);
int listen_socket_connect(void *socket, const listen_source *source, pnr_error *error);
void listen_socket_destroy(void *socket); /* NULL is fine */

typedef struct listen_message {
    zmq_msg_t parts[LISTEN_MAX_PARTS];
    int n_parts; /* those received, also beyond LISTEN_MAX_PARTS */
} listen_message;

/* Never waits: PNR_EAGAIN when there is none. One that came is released by the caller. */
int listen_message_receive(void *socket, listen_message *m);
void listen_message_release(listen_message *m);
/* The bytes of one part and their number; "" and 0 when there is none. */
const char *listen_message_part(listen_message *m, int part, size_t *bytes);
/* topic: "range/", with its slash. */
int listen_message_is(listen_message *m, const char *topic);

#endif
