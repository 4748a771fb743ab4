/* SPDX-License-Identifier: MIT */
/* Reads parts of a file with several threads. A single thread copies from the page cache more
 * slowly than a GPU correlates. */
#ifndef PNR_READER_H
#define PNR_READER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct pnr_reader pnr_reader;

/* A part of a file and its place in memory. */
typedef struct pnr_reader_part {
    int fd;
    uint64_t first_byte; /* offset in the file */
    size_t n_bytes;      /* number of bytes to read */
    size_t growth;       /* bytes in memory for each byte of the file, >= 1 */
    void *data;          /* [n_bytes * growth] */
    /* Converts in place n_bytes bytes of the file, at the start of `data`, to n_bytes * growth
     * bytes. n_bytes is a multiple of 8, except at the end of the part and before bytes that cannot
     * be read. Several threads call it. NULL: no conversion. */
    void (*convert)(const void *context, void *data, size_t n_bytes);
    const void *context;
} pnr_reader_part;

/* Creates a reader with n_threads threads, including the caller. n_threads 0: three quarters of the
 * processors that this thread may use, at most 12. The first read that needs the other threads
 * starts them. If some cannot start, the reader works without them. PNR_OK, PNR_ENOMEMORY. */
int pnr_reader_create(size_t n_threads, pnr_reader **out);
void pnr_reader_destroy(pnr_reader *reader);

/* Returns the least number of bytes in a read that keeps all threads busy. */
size_t pnr_reader_best_bytes(const pnr_reader *reader);

/* Reads a part. Returns the number of bytes of the file that are read and converted, from
 * first_byte on. The number is less than n_bytes at the end of the file and before an error. 0: the
 * end of the file; -errno: an error, and nothing is read. */
ssize_t pnr_reader_read(pnr_reader *reader, const pnr_reader_part *part);

#endif
