/* SPDX-License-Identifier: MIT */
/* Computes the SHA-512 of a part of a file in a separate thread, at about 0.7 GB/s, while the
 * recording is processed. */
#ifndef PNR_FILE_HASH_H
#define PNR_FILE_HASH_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PNR_HASH_LEN = 129 }; /* a hash as text: 128 hexadecimal digits and the final zero */

typedef struct pnr_file_hash pnr_file_hash;

/* Starts to hash n_bytes of an open file from first_byte on. The caller closes the descriptor only
 * after destroy. PNR_OK; PNR_ENOMEMORY: no memory or no thread. */
int pnr_file_hash_create(int fd, uint64_t first_byte, uint64_t n_bytes, pnr_file_hash **out);
/* Ends the thread, even if the hash is not ready. */
void pnr_file_hash_destroy(pnr_file_hash *hash);
/* Waits for the hash, at most patience_ns. PNR_OK: out has it, in lower case; PNR_EAGAIN: it is not
 * ready; PNR_EIO: the file could not be read to the end. */
int pnr_file_hash_wait(pnr_file_hash *hash, uint64_t patience_ns, char out[PNR_HASH_LEN]);
/* Returns the number of bytes that are hashed so far. Any thread may call it. */
uint64_t pnr_file_hash_done(const pnr_file_hash *hash);

/* Hashes bytes in memory. Returns out. */
char *pnr_hash_bytes(const void *bytes, size_t n_bytes, char out[PNR_HASH_LEN]);
/* True if the text is a hash: 128 hexadecimal digits in either case. */
bool pnr_hash_is(const char *text);

#endif
