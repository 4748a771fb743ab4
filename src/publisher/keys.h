/* SPDX-License-Identifier: MIT */
/* CURVE keys: files of secret keys, and the folder of the public keys that may subscribe. */
#ifndef PNR_KEYS_H
#define PNR_KEYS_H

#include "base/error.h"
#include "base/event.h"

#include <stdbool.h>

enum {
    PNR_KEY_LEN = 40,         /* Z85 characters of a key */
    PNR_KEYS_ADDRESS_LEN = 64 /* greatest length of the address of a peer, with the final zero */
};

/* Reads a secret key, one line. what: the words before the path in error messages, such as
 * "publisher.curve_secret_path =". Returns PNR_OK; PNR_EPERMISSION: others than the owner may open
 * the file; PNR_ENOINPUT; PNR_EDATA. The caller clears the key. */
int pnr_keys_read_secret(const char *what, const char *path, char key[PNR_KEY_LEN + 1],
                         pnr_error *error);

/* A folder has one file for each client. The file has one line, the public key of the client. The
 * name of the file must not begin with a dot. The folder is read at each handshake, so a key is
 * admitted as soon as its file exists, and refused as soon as the file is removed. Connections that
 * already exist are kept. */

/* Opens the socket on which libzmq asks whether a key is allowed, and checks all files of the
 * folder. Returns PNR_OK; PNR_ENOINPUT or PNR_EDATA: the folder or one of its files cannot be used;
 * PNR_EUNAVAILABLE. */
int pnr_keys_open(void *context, const char *folder, void **out, pnr_error *error);
/* Answers one question of libzmq. If no file of the folder has the key, refuses the key, posts an
 * event and returns false. *address: the address of the peer, without the port. */
bool pnr_keys_answer(void *socket, const char *folder, pnr_events *events,
                     char address[PNR_KEYS_ADDRESS_LEN]);

#endif
