/* SPDX-License-Identifier: MIT */
/* Files that pnradar writes. Each appears whole or not at all, and replaces no foreign file. */
#ifndef PNR_FILE_H
#define PNR_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * A mark is the text with which every file of one kind begins. An existing file is replaced only if
 * it is a regular file, may be written, and is empty or begins with the mark. Samples have no mark:
 * PNR_FILE_SAMPLES replaces any regular file that may be written, unless it is text (a
 * configuration, a table).
 */
#define PNR_FILE_SAMPLES NULL

/* A new file beside its target: in the same folder, under a random name, until it is finished. */
typedef struct pnr_new_file {
    int fd;           /* descriptor for reading and writing; -1: no file */
    int folder;       /* descriptor of the target's folder */
    const char *what; /* key or option for messages; borrowed */
    const char *path; /* path of the target; borrowed */
    const char *mark; /* mark of the target; borrowed */
    char name[32];    /* temporary name in the folder; "": no file, or already renamed */
} pnr_new_file;
#define PNR_NEW_FILE_NONE                                                                          \
    {                                                                                              \
        .fd = -1, .folder = -1                                                                     \
    }

/*
 * Creates the new file, with the permissions of the file that it will replace. Follows no symbolic
 * link at the end of the path, and never waits. Borrows what, path and mark until finish or
 * discard. what: the key or option for messages, as for pnr_error_file. Allocates nothing. PNR_OK;
 * PNR_ECONFIG: the target is a folder, a link, a FIFO, a device or a file of another program;
 * PNR_EPERMISSION; PNR_EIO: no such folder, a full disk.
 */
int pnr_new_file_create(const char *what, const char *path, const char *mark, pnr_new_file *file,
                        pnr_error *error);
/* Creates the new file and discards it, to show before a long run whether it can be written. Codes
 * as for create. */
int pnr_new_file_check(const char *what, const char *path, const char *mark, pnr_error *error);
/* Writes all bytes, in several calls if necessary. PNR_OK, PNR_EIO. */
int pnr_new_file_write(const pnr_new_file *file, const void *bytes, size_t n, pnr_error *error);
/*
 * Gives the new file the name of its target, if the target may still be replaced. After an error
 * the target is as before, or it is new but its name may not be on the disk. Closes the file in
 * either case. lasting: waits until the file is on the
 * disk, renames it, and waits until its new name is on the disk. Without `lasting` a power failure
 * may leave an empty file. Codes as for create.
 */
int pnr_new_file_finish(pnr_new_file *file, bool lasting, pnr_error *error);
/* Removes the new file; the target is as before. Does nothing if no new file is open. */
void pnr_new_file_discard(pnr_new_file *file);

/* Opens a regular file for reading, without waiting. what: the key or option for messages. The
 * caller closes *fd, which is -1 after an error. PNR_OK; PNR_ENOINPUT: the file cannot be opened,
 * or is no regular file; PNR_EPERMISSION. */
int pnr_file_open(const char *what, const char *path, int *fd, pnr_error *error);

/* True if both paths are equal, or if both name the same existing file. */
bool pnr_file_is_same(const char *a, const char *b);

#endif
