/* SPDX-License-Identifier: MIT */
/* Containers by their first bytes: what is not raw samples, and what to do with it. */
#ifndef PNR_CONTAINER_H
#define PNR_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

enum { PNR_CONTAINER_BYTES = 264 }; /* the first bytes of an input that tell every container */

typedef struct pnr_container {
    const char *name;    /* "WAV", "gzip" */
    const char *way_out; /* what the user can do, as a sentence without its end */
} pnr_container;

/* Finds the container that the first n bytes of an input announce. False: none, or more bytes are
 * needed. */
bool pnr_container_find(const void *bytes, size_t n, pnr_container *out);

#endif
