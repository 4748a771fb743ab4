/* SPDX-License-Identifier: MIT */
/* A buffered stream for results. A reader that has stopped delays the end of the program by at most
 * grace_s. */
#ifndef PNR_OUTPUT_H
#define PNR_OUTPUT_H

#include <stdio.h>

typedef struct pnr_output {
    int fd;                   /* a file, pipe or terminal; the caller owns it */
    const volatile int *stop; /* if *stop is not 0, a write waits at most grace_s */
    double grace_s;
    int failure; /* errno of the first failed write; 0: none; ETIMEDOUT: waited for grace_s */
    char buffer[1 << 16];
} pnr_output;

/* Returns a stream that writes to output->fd. It uses *output until fclose. After a failure it
 * writes nothing. NULL: out of memory. */
FILE *pnr_output_open(pnr_output *output);

#endif
