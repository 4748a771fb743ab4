/* SPDX-License-Identifier: MIT */
/* Finds the files in a tar archive. */
#include "source/tar.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 512, NAME = 100, SIZE_AT = 124, SIZE_LEN = 12, SUM_AT = 148, SUM_LEN = 8 };
enum { TYPE_AT = 156, MAGIC_AT = 257, PREFIX_AT = 345, PREFIX = 155 };

static uint64_t read_octal(const unsigned char *text, size_t n)
{
    uint64_t value = 0;

    for (size_t i = 0; i < n; i++)
        if (text[i] >= '0' && text[i] <= '7')
            value = value * 8 + (uint64_t)(text[i] - '0');
    return value;
}

/* GNU tar writes a size of 8 GiB and more as a binary number after a byte 0x80. */
static uint64_t read_size(const unsigned char *header)
{
    uint64_t value = 0;

    if (header[SIZE_AT] != 0x80)
        return read_octal(header + SIZE_AT, SIZE_LEN);
    for (size_t i = SIZE_LEN - 8; i < SIZE_LEN; i++)
        value = value << 8 | header[SIZE_AT + i];
    return value;
}

/* True if the checksum in the header is the sum of all its bytes. For this sum, the bytes of the
 * checksum itself count as spaces. */
static bool is_sum_right(const unsigned char *header)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= SUM_AT && i < SUM_AT + SUM_LEN ? ' ' : header[i];
    return sum == read_octal(header + SUM_AT, SUM_LEN);
}

/* True if a pax header states the size of the next member. The size in the header of that member is
 * then wrong. */
static bool states_size(int fd, const pnr_tar_member *member)
{
    char text[4096];
    const size_t wanted = member->n_bytes < sizeof text ? (size_t)member->n_bytes : sizeof text;
    const ssize_t got = pread(fd, text, wanted, (off_t)member->first_byte);

    return got > 0 && memmem(text, (size_t)got, " size=", 6) != NULL;
}

int pnr_tar_next(int fd, uint64_t file_bytes, pnr_tar_member *member, pnr_error *error)
{
    unsigned char header[BLOCK];

    for (;;) {
        const uint64_t at = member->next_byte;

        if (at + BLOCK > file_bytes)
            return PNR_EEND;
        if (pread(fd, header, BLOCK, (off_t)at) != BLOCK)
            return pnr_error_set(error, PNR_EIO, "tar: the header at byte %" PRIu64, at);
        if (header[0] == '\0')
            return PNR_EEND;
        if (!is_sum_right(header))
            return pnr_error_set(error, PNR_EDATA, "tar: no header at byte %" PRIu64, at);
        member->first_byte = at + BLOCK;
        member->n_bytes = read_size(header);
        if (member->n_bytes > file_bytes - member->first_byte)
            return pnr_error_set(error, PNR_EDATA,
                                 "tar: the member at byte %" PRIu64 " has %" PRIu64
                                 " bytes, the archive has %" PRIu64,
                                 at, member->n_bytes, file_bytes);
        member->next_byte = member->first_byte + (member->n_bytes + BLOCK - 1) / BLOCK * BLOCK;
        if (header[TYPE_AT] == 'x' && states_size(fd, member))
            return pnr_error_set(
                error, PNR_EDATA,
                "tar: the pax header at byte %" PRIu64 " states a size: extract the archive", at);
        if (header[TYPE_AT] != '0' && header[TYPE_AT] != '\0')
            continue;

        const bool has_prefix = memcmp(header + MAGIC_AT, "ustar\0", 6) == 0 && header[PREFIX_AT];

        snprintf(member->name, sizeof member->name, "%.*s%s%.*s", has_prefix ? (int)PREFIX : 0,
                 (const char *)header + PREFIX_AT, has_prefix ? "/" : "", (int)NAME,
                 (const char *)header);
        return PNR_OK;
    }
}
