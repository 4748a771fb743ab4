/* SPDX-License-Identifier: MIT */
/* Where the publisher binds: what an address may be, who may reach it, and under which key. */
#ifndef PNR_ENDPOINT_H
#define PNR_ENDPOINT_H

#include "base/error.h"
#include "config/config.h"

enum { PNR_ENDPOINT_LEN = 512 };

typedef enum {
    PNR_REACH_LOOPBACK, /* this machine only: 127/8, [::1], ipc, inproc */
    PNR_REACH_WIDER     /* an interface, a name, or every address */
} pnr_reach;

/*
 * bind: what ZeroMQ is told: the endpoint, with localhost written as 127.0.0.1 (a name does not
 * bind). PNR_OK, or PNR_ECONFIG: no transport of tcp, ipc, inproc; no host or port.
 */
int pnr_endpoint_read(const char *endpoint, char bind[PNR_ENDPOINT_LEN], pnr_reach *reach,
                      pnr_error *error);

/*
 * Binds a ZeroMQ socket to publisher.endpoint, with CURVE when publisher.curve_secret_path is
 * given; bound: as it was bound ("*" replaced). PNR_ECONFIG: no endpoint, or beyond this machine
 * without CURVE and without publisher.expose; PNR_EUNAVAILABLE: in use, or not an address of this
 * machine; PNR_EPERMISSION; PNR_ENOINPUT or PNR_EDATA: the key file.
 */
int pnr_endpoint_bind(void *socket, const pnr_config *config, char bound[PNR_ENDPOINT_LEN],
                      pnr_error *error);

/* libzmq aborts the process when descriptors run out while it opens a socket: PNR_EUNAVAILABLE when
 * so few are left. */
int pnr_endpoint_enough_files(pnr_error *error);

#endif
