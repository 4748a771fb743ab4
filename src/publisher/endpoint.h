/* SPDX-License-Identifier: MIT */
/* The address of the publisher: its syntax, its reach and its encryption. */
#ifndef PNR_ENDPOINT_H
#define PNR_ENDPOINT_H

#include "base/error.h"
#include "config/config.h"

enum { PNR_ENDPOINT_LEN = 512 };

typedef enum {
    PNR_REACH_LOOPBACK, /* this machine only: 127/8, [::1], ipc, inproc */
    PNR_REACH_WIDER     /* an interface, a name, or every address */
} pnr_reach;

/* name: the key or option with the endpoint, for the error. bind: the endpoint for ZeroMQ, with
 * 127.0.0.1 for localhost (ZeroMQ binds no names). PNR_OK, or PNR_ECONFIG: the transport is not tcp,
 * ipc or inproc; host or port is missing. */
int pnr_endpoint_read(const char *name, const char *endpoint, char bind[PNR_ENDPOINT_LEN],
                      pnr_reach *reach, pnr_error *error);

/*
 * Binds a ZeroMQ socket to publisher.endpoint, with CURVE when publisher.curve_secret_path is set.
 * bound: the endpoint with the port instead of "*". PNR_OK; PNR_ECONFIG: the endpoint is malformed,
 * or other machines can reach it although neither publisher.curve_secret_path nor publisher.expose
 * is set; PNR_EUNAVAILABLE: the address is in use, or is not one of this machine; PNR_EPERMISSION;
 * PNR_ENOINPUT or PNR_EDATA: the key file is missing or bad.
 */
int pnr_endpoint_bind(void *socket, const pnr_config *config, char bound[PNR_ENDPOINT_LEN],
                      pnr_error *error);

/* PNR_OK, or PNR_EUNAVAILABLE: too few file descriptors are free. libzmq aborts the process if it
 * has none left while it opens a socket. */
int pnr_endpoint_enough_files(pnr_error *error);

#endif
