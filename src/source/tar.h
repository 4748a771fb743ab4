/* SPDX-License-Identifier: MIT */
/* The members of a tar archive (POSIX ustar and pax, GNU). */
#ifndef PNR_TAR_H
#define PNR_TAR_H

#include "base/error.h"

#include <stdint.h>

/* Zeroed before the first call. */
typedef struct pnr_tar_member {
    char name[257];
    uint64_t first_byte, n_bytes; /* of the contents, in the archive */
    uint64_t next_byte;           /* where the next header is */
} pnr_tar_member;

/* Finds the next regular file of the archive; file_bytes: its size. PNR_OK; PNR_EEND: no further
 * one; PNR_EDATA: a header's checksum is wrong, a member reaches beyond the archive, or a pax
 * header states its size; PNR_EIO. */
int pnr_tar_next(int fd, uint64_t file_bytes, pnr_tar_member *member, pnr_error *error);

#endif
