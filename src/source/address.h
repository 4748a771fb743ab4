/* SPDX-License-Identifier: MIT */
/* The address of a source on a network. */
#ifndef PNR_SOURCE_ADDRESS_H
#define PNR_SOURCE_ADDRESS_H

#include "base/error.h"

enum { PNR_HOST_LEN = 256 };

typedef struct pnr_address {
    char host[PNR_HOST_LEN]; /* an IPv6 address has no brackets here */
    char port[8];            /* decimal number, 1 .. 65535 */
} pnr_address;

/* Reads source.input = <prefix>HOST:PORT. Brackets enclose an IPv6 address. PNR_OK or
 * PNR_ECONFIG. */
int pnr_address_read(const char *prefix, const char *input, pnr_address *out, pnr_error *error);

#endif
