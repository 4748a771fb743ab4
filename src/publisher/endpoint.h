/* SPDX-License-Identifier: MIT */
/* The address of the publisher: its syntax, its reach and its encryption. */
#ifndef PNR_ENDPOINT_H
#define PNR_ENDPOINT_H

#include "base/error.h"
#include "config/config.h"

enum { PNR_ENDPOINT_LEN = 512 };

typedef enum {
    PNR_REACH_LOOPBACK, /* this machine only: 127/8, [::1], ipc, inproc */
    PNR_REACH_WIDER     /* other machines too: an interface, a host name, or every address */
} pnr_reach;

/* bind: the endpoint for ZeroMQ, with 127.0.0.1 for localhost (ZeroMQ binds no names). place: the
 * words before the endpoint in messages, as "publisher.endpoint = ". PNR_OK, or PNR_ECONFIG: the
 * transport is not tcp, ipc or inproc; host or port is missing. */
int pnr_endpoint_read(const char *place, const char *endpoint, char bind[PNR_ENDPOINT_LEN],
                      pnr_reach *reach, pnr_error *error);

/* Finds the address for a subscriber: this machine, if the publisher binds every address. place: as
 * above. PNR_OK; PNR_ECONFIG: as above, or the publisher chooses the port; PNR_EUNAVAILABLE: no
 * address is known for the host. */
int pnr_endpoint_find(const char *place, const char *endpoint, char address[PNR_ENDPOINT_LEN],
                      pnr_error *error);

typedef enum {
    PNR_BIND_RESULTS, /* publisher.endpoint */
    PNR_BIND_GNURADIO /* publisher.gnuradio: without CURVE, which GNU Radio does not have */
} pnr_bind;
/* Returns a word for the peers that may subscribe: "nobody" (no endpoint), "local" (programs of
 * this machine), "keys" (those of publisher.curve_clients) or "everyone". If results and vectors
 * admit different peers, returns the word that admits more of them. */
const char *pnr_endpoint_access(const pnr_config *config);

/*
 * Binds a ZeroMQ socket to the endpoint of this key. The socket of results uses CURVE if
 * publisher.curve_secret_path is set. bound: the endpoint with the port instead of "*". An ipc
 * socket has mode 0600; changes the umask of the process for a moment. PNR_OK; PNR_ECONFIG: the
 * endpoint is malformed, or other machines can reach it and nothing permits this (publisher.expose,
 * or for results publisher.curve_secret_path together with publisher.curve_clients);
 * PNR_EUNAVAILABLE: the address is in use, or is not one of this machine; PNR_EPERMISSION: the
 * address is not allowed, or others may read the key file; PNR_ENOINPUT or PNR_EDATA: the key file
 * is missing or bad.
 */
int pnr_endpoint_bind(void *socket, const pnr_config *config, pnr_bind what,
                      char bound[PNR_ENDPOINT_LEN], pnr_error *error);

/* Checks that n file descriptors are free. If not, first sets the highest limit that the system
 * permits. PNR_OK, or PNR_EUNAVAILABLE: fewer are free even then. libzmq aborts the process if no
 * descriptor is left when it opens a socket. */
int pnr_endpoint_enough_files(size_t n, pnr_error *error);

/* Descriptors that ZeroMQ and its user need besides those of connections. */
enum { PNR_ENDPOINT_FILES = 64 };

#endif
