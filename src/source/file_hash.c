/* SPDX-License-Identifier: MIT */
/* libsodium, on which libzmq depends, computes the hash. A separate thread reads the file again,
 * because samples in memory are converted and may be overwritten. It reads from the page cache if
 * it is not far behind the thread that reads samples. */
#include "source/file_hash.h"

#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STEP = 1 << 18 }; /* bytes of a read */

struct pnr_file_hash {
    int fd;
    uint64_t first_byte, n_bytes;
    pthread_t thread;
    atomic_uint_fast64_t done;
    atomic_bool quits;

    pthread_mutex_t lock;
    pthread_cond_t is_over;
    int code; /* PNR_EAGAIN while the thread works */
    unsigned char digest[crypto_hash_sha512_BYTES];
    unsigned char bytes[STEP];
};

static char *write_hash(const unsigned char digest[crypto_hash_sha512_BYTES],
                        char out[PNR_HASH_LEN])
{
    return sodium_bin2hex(out, PNR_HASH_LEN, digest, crypto_hash_sha512_BYTES);
}

/* Hashes n_bytes bytes of the file, from first_byte on. PNR_OK; PNR_EIO; PNR_EAGAIN: `quits` was
 * set. */
static int hash_part(pnr_file_hash *h)
{
    crypto_hash_sha512_state state;
    uint64_t done = 0;

    crypto_hash_sha512_init(&state);
    while (done < h->n_bytes) {
        const uint64_t left = h->n_bytes - done;
        const ssize_t n = pread(h->fd, h->bytes, left < STEP ? (size_t)left : STEP,
                                (off_t)(h->first_byte + done));

        if (atomic_load(&h->quits))
            return PNR_EAGAIN;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return PNR_EIO;
        crypto_hash_sha512_update(&state, h->bytes, (size_t)n);
        atomic_store(&h->done, done += (uint64_t)n);
    }
    crypto_hash_sha512_final(&state, h->digest);
    return PNR_OK;
}

static void *run_hash(void *argument)
{
    pnr_file_hash *h = argument;
    const int code = hash_part(h);

    pthread_mutex_lock(&h->lock);
    h->code = code;
    pthread_cond_signal(&h->is_over);
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

int pnr_file_hash_create(int fd, uint64_t first_byte, uint64_t n_bytes, pnr_file_hash **out)
{
    pnr_file_hash *h = calloc(1, sizeof *h);
    pthread_condattr_t monotonic;

    *out = NULL;
    if (h == NULL)
        return PNR_ENOMEMORY;
    h->fd = fd;
    h->first_byte = first_byte;
    h->n_bytes = n_bytes;
    h->code = PNR_EAGAIN;
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&h->is_over, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&h->thread, NULL, run_hash, h) == 0) {
        *out = h;
        return PNR_OK;
    }
    pthread_cond_destroy(&h->is_over);
    pthread_mutex_destroy(&h->lock);
    free(h);
    return PNR_ENOMEMORY;
}

void pnr_file_hash_destroy(pnr_file_hash *h)
{
    if (h == NULL)
        return;
    atomic_store(&h->quits, true);
    pthread_join(h->thread, NULL);
    pthread_cond_destroy(&h->is_over);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

int pnr_file_hash_wait(pnr_file_hash *h, uint64_t patience_ns, char out[PNR_HASH_LEN])
{
    const uint64_t until_ns = pnr_clock_ns() + patience_ns;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / PNR_NS_PER_S),
                                   .tv_nsec = (long)(until_ns % PNR_NS_PER_S)};
    int code;

    pthread_mutex_lock(&h->lock);
    while (h->code == PNR_EAGAIN &&
           pthread_cond_timedwait(&h->is_over, &h->lock, &until) != ETIMEDOUT)
        ;
    code = h->code;
    pthread_mutex_unlock(&h->lock);
    if (code == PNR_OK)
        write_hash(h->digest, out);
    return code;
}

uint64_t pnr_file_hash_done(const pnr_file_hash *h)
{
    return atomic_load(&h->done);
}

char *pnr_hash_bytes(const void *bytes, size_t n_bytes, char out[PNR_HASH_LEN])
{
    unsigned char digest[crypto_hash_sha512_BYTES];

    crypto_hash_sha512(digest, bytes, n_bytes);
    return write_hash(digest, out);
}

bool pnr_hash_is(const char *text)
{
    size_t n = 0;

    while (isxdigit((unsigned char)text[n]))
        n++;
    return text[n] == '\0' && n == PNR_HASH_LEN - 1;
}
