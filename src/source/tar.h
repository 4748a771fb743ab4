/* SPDX-License-Identifier: MIT */
/* The members of a tar archive (POSIX ustar and pax, GNU). */
#ifndef PNR_TAR_H
#define PNR_TAR_H

#include "base/error.h"

#include <stdint.h>

/* A file in the archive. The caller zeroes it before the first call. */
typedef struct pnr_tar_member {
    char name[257];
    uint64_t first_byte, n_bytes; /* place of the contents in the archive */
    uint64_t next_byte;           /* offset of the next header */
} pnr_tar_member;

/* Finds the next regular file of the archive. file_bytes: size of the archive. PNR_OK; PNR_EEND:
 * there is no further file; PNR_EDATA: the checksum of a header is wrong, a member reaches beyond
 * the archive, or a pax header states the size of a member; PNR_EIO. */
int pnr_tar_next(int fd, uint64_t file_bytes, pnr_tar_member *member, pnr_error *error);

#endif
