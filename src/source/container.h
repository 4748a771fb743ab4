/* SPDX-License-Identifier: MIT */
/* Recognises a container (a file with a header) by its first bytes, and tells the user how to get
 * raw samples from it. */
#ifndef PNR_CONTAINER_H
#define PNR_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

/* Every container is identified by at most this number of bytes at the start of an input. */
enum { PNR_CONTAINER_BYTES = 264 };

typedef struct pnr_container {
    const char *name;    /* "WAV", "gzip" */
    const char *way_out; /* how the user gets raw samples: a sentence without full stop */
} pnr_container;

/* Identifies the container from the first n bytes of an input. False: the input is no container, or
 * more bytes are needed. */
bool pnr_container_find(const void *bytes, size_t n, pnr_container *out);

#endif
