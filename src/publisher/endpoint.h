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

/* Reads an endpoint. bind: the endpoint for ZeroMQ, with 127.0.0.1 for localhost, because ZeroMQ
 * cannot bind a host name, and for lo, the loopback interface. place: the words before the endpoint
 * in error messages, such as "publisher.endpoint = ". Returns PNR_OK, or PNR_ECONFIG: the transport
 * is not tcp, ipc or inproc, host or port is missing, or an IPv6 address has no brackets. */
int pnr_endpoint_read(const char *place, const char *endpoint, char bind[PNR_ENDPOINT_LEN],
                      pnr_reach *reach, pnr_error *error);

/* Finds the address to which a subscriber connects. If the publisher binds every address, this is
 * the loopback address. place: as for pnr_endpoint_read. Returns PNR_OK; PNR_ECONFIG: the endpoint
 * is malformed, or the publisher chooses the port; PNR_EUNAVAILABLE: no address is known for the
 * host. */
int pnr_endpoint_find(const char *place, const char *endpoint, char address[PNR_ENDPOINT_LEN],
                      pnr_error *error);

typedef enum {
    PNR_BIND_RESULTS, /* publisher.endpoint */
    PNR_BIND_GNURADIO /* publisher.gnuradio: without CURVE, which GNU Radio does not have */
} pnr_bind;
/* Returns a word for the peers that may subscribe: "nobody" (no endpoint), "local" (programs of
 * this machine), "keys" (peers with a key in publisher.curve_clients) or "everyone". If
 * publisher.endpoint and publisher.gnuradio admit different peers, returns the word for the
 * endpoint that admits more of them. */
const char *pnr_endpoint_access(const pnr_config *config);

/* Binds a ZeroMQ socket to the endpoint that `what` names. The socket of results uses CURVE if
 * publisher.curve_secret_path is set. bound: the endpoint, with the port that was chosen in place
 * of "*". An ipc socket has mode 0600; the function changes the umask of the process for a moment.
 * Returns PNR_OK; PNR_ECONFIG: the endpoint is malformed, or other machines can reach it without
 * permission (publisher.expose, or for results publisher.curve_secret_path together with
 * publisher.curve_clients); PNR_EUNAVAILABLE: the address is in use, or is not an address of this
 * machine; PNR_EPERMISSION: the process has no right to bind the address, or other users can open
 * the key file; PNR_EUNSUPPORTED: libzmq has no CURVE; PNR_ENOINPUT or PNR_EDATA: the key file is
 * missing or bad. */
int pnr_endpoint_bind(void *socket, const pnr_config *config, pnr_bind what,
                      char bound[PNR_ENDPOINT_LEN], pnr_error *error);

/* Checks that n file descriptors are free. If not, raises the limit of the process by n, as far as
 * the system permits, and checks again. Returns PNR_OK, or PNR_EUNAVAILABLE: fewer are free even
 * then. libzmq aborts the process if it finds no free descriptor when it opens a socket. */
int pnr_endpoint_enough_files(size_t n, pnr_error *error);

/* Descriptors that ZeroMQ and the publisher need in addition to the descriptors of connections. */
enum { PNR_ENDPOINT_FILES = 64 };

#endif
