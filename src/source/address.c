/* SPDX-License-Identifier: MIT */
/* Parses network addresses, for example rtl_tcp:HOST:PORT. */
#include "source/address.h"

#include <stdlib.h>
#include <string.h>

int pnr_address_read(const char *prefix, const char *input, pnr_address *out, pnr_error *error)
{
    const char *address = input + strlen(prefix), *colon = strrchr(address, ':');
    size_t length = colon != NULL ? (size_t)(colon - address) : 0;

    *out = (pnr_address){0};
    if (length > 2 && address[0] == '[' && colon[-1] == ']') {
        address++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof out->host || strspn(colon + 1, "0123456789") > 5 ||
        colon[1 + strspn(colon + 1, "0123456789")] != '\0' || atoi(colon + 1) < 1 ||
        atoi(colon + 1) > 65535)
        return pnr_refuse(error, "source.input = %.200s: want %sHOST:PORT, PORT 1..65535", input,
                          prefix);
    memcpy(out->host, address, length);
    strcpy(out->port, colon + 1);
    return PNR_OK;
}
