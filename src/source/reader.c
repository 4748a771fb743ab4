/* SPDX-License-Identifier: MIT */
/* A read is divided into pieces. All threads, and the caller, take the numbers of free pieces from
 * one counter. The caller then waits until all pieces are read. */
#include "source/reader.h"

#include "base/error.h"
#include "base/parallel.h"
#include "base/pause.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PIECE = 1 << 19, /* bytes of a piece in memory */
    PIECES_EACH = 4, /* pieces for each thread in a read of pnr_reader_best_bytes */
    MOST = 16,       /* processors that count if n_threads is 0 */
    SPINS = 4000     /* polls before a thread sleeps */
};

/* The numbers of pieces continue from one read to the next. Pieces below `next` are claimed. Pieces
 * from `next` to `limit` - 1 are free; they belong to `part`. */
struct pnr_reader {
    size_t n_threads; /* including the caller */
    bool is_started;
    size_t n_helpers;
    pthread_t *helpers; /* [n_threads - 1] */
    pnr_reader_part part;
    size_t piece_bytes; /* bytes of a piece in the file */
    uint64_t base;      /* number of the first piece of the part */
    atomic_uint_fast64_t next, limit, done;

    pthread_mutex_t lock;
    pthread_cond_t has_work, is_done;
    atomic_uint n_asleep;
    atomic_bool is_waiting, quits;
    size_t end;  /* number of bytes of the part before the first unread byte */
    int failure; /* errno at `end`; 0: end of the file */
};

/* Reads and converts one piece. */
static void read_piece(pnr_reader *reader, uint64_t piece)
{
    const pnr_reader_part *part = &reader->part;
    const size_t from = (size_t)(piece - reader->base) * reader->piece_bytes;
    const size_t left = part->n_bytes - from;
    const size_t n = left < reader->piece_bytes ? left : reader->piece_bytes;
    char *data = (char *)part->data + from * part->growth;
    size_t n_read = 0;
    ssize_t got = 1;

    while (n_read < n && (got > 0 || (got < 0 && errno == EINTR))) {
        got = pread(part->fd, data + n_read, n - n_read, (off_t)(part->first_byte + from + n_read));
        n_read += got > 0 ? (size_t)got : 0;
    }

    const int failure = got < 0 ? errno : 0;

    if (part->convert != NULL && n_read > 0)
        part->convert(part->context, data, n_read);
    if (n_read == n)
        return;
    pthread_mutex_lock(&reader->lock);
    if (from + n_read < reader->end) {
        reader->end = from + n_read;
        reader->failure = failure;
    }
    pthread_mutex_unlock(&reader->lock);
}

/* Claims a piece and reads it. Returns false if no piece is left. */
static bool read_some(pnr_reader *reader)
{
    uint64_t piece = atomic_load(&reader->next);

    do {
        if (piece >= atomic_load(&reader->limit))
            return false;
    } while (!atomic_compare_exchange_weak(&reader->next, &piece, piece + 1));
    read_piece(reader, piece);
    if (atomic_fetch_add(&reader->done, 1) + 1 == atomic_load(&reader->limit) &&
        atomic_load(&reader->is_waiting)) {
        pthread_mutex_lock(&reader->lock);
        pthread_cond_signal(&reader->is_done);
        pthread_mutex_unlock(&reader->lock);
    }
    return true;
}

static void sleep_until_work(pnr_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    atomic_fetch_add(&reader->n_asleep, 1);
    while (atomic_load(&reader->next) >= atomic_load(&reader->limit) &&
           !atomic_load(&reader->quits))
        pthread_cond_wait(&reader->has_work, &reader->lock);
    atomic_fetch_sub(&reader->n_asleep, 1);
    pthread_mutex_unlock(&reader->lock);
}

static void *run_helper(void *argument)
{
    pnr_reader *reader = argument;
    int polls = 0;

    while (!atomic_load(&reader->quits)) {
        if (read_some(reader)) {
            polls = 0;
        } else if (polls++ < SPINS) {
            pnr_pause();
        } else {
            sleep_until_work(reader);
            polls = 0;
        }
    }
    return NULL;
}

static void start_helpers(pnr_reader *reader)
{
    reader->is_started = true;
    while (reader->n_helpers + 1 < reader->n_threads &&
           pthread_create(&reader->helpers[reader->n_helpers], NULL, run_helper, reader) == 0)
        reader->n_helpers++;
}

static void wait_for_helpers(pnr_reader *reader)
{
    for (int polls = 0; polls < SPINS; polls++) {
        if (atomic_load(&reader->done) == atomic_load(&reader->limit))
            return;
        pnr_pause();
    }
    pthread_mutex_lock(&reader->lock);
    atomic_store(&reader->is_waiting, true);
    while (atomic_load(&reader->done) < atomic_load(&reader->limit))
        pthread_cond_wait(&reader->is_done, &reader->lock);
    atomic_store(&reader->is_waiting, false);
    pthread_mutex_unlock(&reader->lock);
}

ssize_t pnr_reader_read(pnr_reader *reader, const pnr_reader_part *part)
{
    const uint64_t base = atomic_load(&reader->limit);

    reader->part = *part;
    reader->base = base;
    reader->piece_bytes = PIECE / part->growth / 8 * 8;
    reader->end = part->n_bytes;
    reader->failure = 0;

    const size_t n_pieces = (part->n_bytes + reader->piece_bytes - 1) / reader->piece_bytes;

    if (n_pieces > 1 && !reader->is_started)
        start_helpers(reader);
    atomic_store(&reader->limit, base + n_pieces);
    if (n_pieces > 1 && atomic_load(&reader->n_asleep) > 0) {
        pthread_mutex_lock(&reader->lock);
        pthread_cond_broadcast(&reader->has_work);
        pthread_mutex_unlock(&reader->lock);
    }
    while (read_some(reader))
        ;
    wait_for_helpers(reader);
    return reader->end > 0 ? (ssize_t)reader->end : -(ssize_t)reader->failure;
}

int pnr_reader_create(size_t n_threads, pnr_reader **out)
{
    pnr_reader *reader = calloc(1, sizeof *reader);

    *out = NULL;
    if (reader == NULL)
        return PNR_ENOMEMORY;
    reader->n_threads = n_threads > 0 ? n_threads : 3 * pnr_parallel_threads(MOST) / 4;
    if (reader->n_threads == 0)
        reader->n_threads = 1;
    reader->helpers = calloc(reader->n_threads, sizeof *reader->helpers);
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->has_work, NULL);
    pthread_cond_init(&reader->is_done, NULL);
    if (reader->helpers == NULL) {
        pnr_reader_destroy(reader);
        return PNR_ENOMEMORY;
    }
    *out = reader;
    return PNR_OK;
}

void pnr_reader_destroy(pnr_reader *reader)
{
    if (reader == NULL)
        return;
    pthread_mutex_lock(&reader->lock);
    atomic_store(&reader->quits, true);
    pthread_cond_broadcast(&reader->has_work);
    pthread_mutex_unlock(&reader->lock);
    for (size_t i = 0; i < reader->n_helpers; i++)
        pthread_join(reader->helpers[i], NULL);
    pthread_cond_destroy(&reader->has_work);
    pthread_cond_destroy(&reader->is_done);
    pthread_mutex_destroy(&reader->lock);
    free(reader->helpers);
    free(reader);
}

size_t pnr_reader_best_bytes(const pnr_reader *reader)
{
    return reader->n_threads == 1 ? (size_t)2 * PIECE
                                  : reader->n_threads * PIECES_EACH * (size_t)PIECE;
}
