/* SPDX-License-Identifier: MIT */
/* Reads parts of a file with several threads, because a single thread copies from the page cache
 * more slowly than a GPU correlates. */
#ifndef PNR_READER_H
#define PNR_READER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct pnr_reader pnr_reader;

/* A part of a file and its place in memory. */
typedef struct pnr_reader_part {
    int fd;
    uint64_t first_byte; /* of the file */
    size_t n_bytes;      /* of the file */
    size_t growth;       /* bytes of memory for each byte of the file, >= 1 */
    void *data;          /* [n_bytes * growth] */
    /* Converts n_bytes bytes of the file, at the start of `data`, in place to n_bytes * growth
     * bytes. Each call has a multiple of 8 bytes, except at the end of the part and before bytes
     * that cannot be read. Several threads call it. NULL: no conversion. */
    void (*convert)(const void *context, void *data, size_t n_bytes);
    const void *context;
} pnr_reader_part;

/* Creates a reader of n_threads threads, including the caller. n_threads 0: half of the processors
 * that this thread may use, at most 8. The other threads start with the first read that needs them;
 * threads that cannot be started are left out. PNR_OK, PNR_ENOMEMORY. */
int pnr_reader_create(size_t n_threads, pnr_reader **out);
void pnr_reader_destroy(pnr_reader *reader);

/* Returns the least number of bytes in a read that keeps all threads busy. */
size_t pnr_reader_best_bytes(const pnr_reader *reader);

/* Reads a part. Returns the number of bytes of the file, from the first one on, that are read and
 * converted; fewer than n_bytes at the end of the file, and before an error. If this number is 0:
 * returns 0 at the end of the file, or a negative errno. */
ssize_t pnr_reader_read(pnr_reader *reader, const pnr_reader_part *part);

#endif
