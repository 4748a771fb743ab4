/* SPDX-License-Identifier: MIT */
/* Files that pnradar writes. Each file appears whole or not at all, and replaces no file of another
 * program. */
#ifndef PNR_FILE_H
#define PNR_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A mark is the text with which every file of one kind begins. An existing file is replaced only if
 * it is a regular file, is writable, and is empty or begins with the mark. Samples have no mark:
 * PNR_FILE_SAMPLES replaces any writable regular file, except text such as a configuration or a
 * table. */
#define PNR_FILE_SAMPLES NULL

/* A new file in the folder of its target. It has a random name until it is finished. */
typedef struct pnr_new_file {
    int fd;           /* descriptor for reading and writing; -1: no file */
    int folder;       /* descriptor of the target's folder */
    const char *what; /* key or option for error messages; borrowed */
    const char *path; /* path of the target; borrowed */
    const char *mark; /* mark of the target; borrowed */
    char name[32];    /* temporary name in the folder; "": no file, or it is renamed already */
} pnr_new_file;
#define PNR_NEW_FILE_NONE                                                                          \
    {                                                                                              \
        .fd = -1, .folder = -1                                                                     \
    }

/*
 * Creates the new file, with the permissions of the file that it will replace. Follows no symbolic
 * link at the end of the path, and never waits. Borrows the three strings until finish or discard.
 * what: the key or option, as for pnr_error_file. Allocates nothing. Returns PNR_OK; PNR_ECONFIG:
 * the target is a folder, a link, a FIFO, a device or a file of another program; PNR_EPERMISSION;
 * PNR_EIO: no such folder, a full disk.
 */
int pnr_new_file_create(const char *what, const char *path, const char *mark, pnr_new_file *file,
                        pnr_error *error);
/* Checks before a long run that the file can be written: creates the new file and discards it.
 * Returns PNR_OK or an error of pnr_new_file_create. */
int pnr_new_file_check(const char *what, const char *path, const char *mark, pnr_error *error);
/* Writes all bytes, in several calls if necessary. Returns PNR_OK or PNR_EIO. */
int pnr_new_file_write(const pnr_new_file *file, const void *bytes, size_t n, pnr_error *error);
/* Checks the target again as pnr_new_file_create does, and renames the new file to it. Closes the
 * file. lasting: before the rename, waits until the file is on the disk. After the rename, waits
 * until the new name is on the disk. Without `lasting` a power failure can leave an empty file.
 * Returns PNR_OK or an error of pnr_new_file_create. After an error the target is unchanged, with
 * one exception: if only the last wait failed, the target is the new file, but a power failure can
 * undo the rename. */
int pnr_new_file_finish(pnr_new_file *file, bool lasting, pnr_error *error);
/* Removes the new file; the target is unchanged. Does nothing if no new file is open. */
void pnr_new_file_discard(pnr_new_file *file);

/* Opens a regular file for reading, without waiting. what: the key or option, for error messages.
 * The caller closes *fd, which is -1 after an error. Returns PNR_OK; PNR_ENOINPUT: the file cannot
 * be opened, or is no regular file; PNR_EPERMISSION. */
int pnr_file_open(const char *what, const char *path, int *fd, pnr_error *error);

/* Renames a file. Returns false with errno EEXIST if `to` exists; `to` is then unchanged. On a file
 * system without RENAME_NOREPLACE the function may replace `to`. Returns false and sets errno after
 * any error. */
bool pnr_file_rename(const char *from, const char *to);

/* True if the paths are equal or name the same existing file. */
bool pnr_file_is_same(const char *a, const char *b);

/* Returns the inode of an open descriptor; two open sockets never have the same inode. Returns 0 if
 * the descriptor is closed. */
ino_t pnr_file_inode(int fd);

#endif
