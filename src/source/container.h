/* SPDX-License-Identifier: MIT */
/* Recognises by its first bytes an input that is a container and not raw samples. Says what the
 * user can do. */
#ifndef PNR_CONTAINER_H
#define PNR_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

enum { PNR_CONTAINER_BYTES = 264 }; /* number of first bytes that identify every container */

typedef struct pnr_container {
    const char *name;    /* "WAV", "gzip" */
    const char *way_out; /* what the user can do, a sentence without its full stop */
} pnr_container;

/* Finds the container that the first n bytes of an input announce. False: none, or more bytes are
 * needed. */
bool pnr_container_find(const void *bytes, size_t n, pnr_container *out);

#endif
