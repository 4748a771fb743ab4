/* SPDX-License-Identifier: MIT */
/* Files that pnradar writes: each appears whole or not at all, and replaces no file of others. */
#ifndef PNR_FILE_H
#define PNR_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * What a file of one kind begins with. An existing file is replaced only if it is a regular one,
 * may be written, and is empty or begins with the mark. Samples have no mark: with
 * PNR_FILE_SAMPLES any such file is replaced, except one that is text (a configuration, a table).
 */
#define PNR_FILE_SAMPLES NULL

/* A new file beside its target: in the same folder, under a random name, until it is finished. */
typedef struct pnr_new_file {
    int fd;           /* open for reading and writing; -1: none */
    int folder;       /* of the target */
    const char *what; /* borrowed */
    const char *path; /* the target; borrowed */
    const char *mark; /* borrowed */
    char name[32];    /* of the new file in the folder; "": it is finished */
} pnr_new_file;
#define PNR_NEW_FILE_NONE                                                                          \
    {                                                                                              \
        .fd = -1, .folder = -1                                                                     \
    }

/*
 * Creates the new file, with the permissions of the file that it will replace. Follows no symbolic
 * link at the end of the path, and never waits. Borrows what, path and mark until finish or discard.
 * what: the key or option for messages, as for pnr_error_file. Allocates nothing. PNR_OK;
 * PNR_ECONFIG: the target is a folder, a link, a FIFO, a device or a file of others;
 * PNR_EPERMISSION; PNR_EIO: no such folder, a full disk.
 */
int pnr_new_file_create(const char *what, const char *path, const char *mark, pnr_new_file *file,
                        pnr_error *error);
/* Creates the new file and discards it: shows before a long run whether it can be written. Codes as
 * for create. */
int pnr_new_file_check(const char *what, const char *path, const char *mark, pnr_error *error);
/* Writes all bytes, also in parts. PNR_OK, PNR_EIO. */
int pnr_new_file_write(const pnr_new_file *file, const void *bytes, size_t n, pnr_error *error);
/*
 * Gives the new file the name of its target, if the target is still one that may be replaced. After
 * an error the target is as before. Closes the file in either case. lasting: first waits until the
 * file is on the disk, and then until its name is; without it a power failure may leave an empty
 * file. Codes as for create.
 */
int pnr_new_file_finish(pnr_new_file *file, bool lasting, pnr_error *error);
/* Removes the new file; the target is as before. Does nothing if there is none. */
void pnr_new_file_discard(pnr_new_file *file);

/* Opens a regular file for reading, without waiting. what: as above. The caller closes *fd, which is
 * -1 after an error. PNR_OK; PNR_ENOINPUT: it cannot be opened, or is no regular file;
 * PNR_EPERMISSION. */
int pnr_file_open(const char *what, const char *path, int *fd, pnr_error *error);

/* True when both paths are equal, or name one existing file. */
bool pnr_file_is_same(const char *a, const char *b);

#endif
