/* SPDX-License-Identifier: MIT */
/* A queue of records of variable size, in memory that two threads or two processes share. One
 * side writes, and one side reads. A side makes a system call only to sleep or to wake the other
 * side. */
#ifndef PNR_QUEUE_H
#define PNR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pnr_queue pnr_queue;

/* Returns the bytes of memory that a queue needs for `capacity` bytes of records and for at least
 * one record of most_bytes. */
size_t pnr_queue_bytes(size_t capacity, size_t most_bytes);
/* Makes an empty queue in zeroed memory of pnr_queue_bytes(), aligned to 64 bytes. The caller owns
 * the memory. */
pnr_queue *pnr_queue_init(void *memory, size_t capacity, size_t most_bytes);

/* Makes an empty queue in memory of this process. Writes to all pages of the memory, so that no
 * page fault occurs later. The caller frees the queue with free(). NULL: out of memory. */
pnr_queue *pnr_queue_create(size_t capacity, size_t most_bytes);

/* Returns the filled fraction of the memory, 0 .. 1. Either side may call it. */
double pnr_queue_fill(const pnr_queue *queue);

/* --- the writer --- */

/* Returns memory, aligned to 16 bytes, for a record of at most `bytes` bytes; `bytes` <=
 * most_bytes. NULL: the record does not fit until the reader has freed memory. A second call before
 * the commit replaces the first one. */
void *pnr_queue_reserve(pnr_queue *queue, size_t bytes);
/* Appends the reserved record. bytes: its size, at least 1 and at most the reserved size. Does not
 * wake the reader. */
void pnr_queue_commit(pnr_queue *queue, size_t bytes);
/* Wakes the reader if it sleeps. Call it after one or more commits. */
void pnr_queue_wake(pnr_queue *queue);
/* Waits until a record of `bytes` bytes fits and half of the queue is free, at most patience_ns. */
void pnr_queue_wait_space(pnr_queue *queue, size_t bytes, uint64_t patience_ns);

/* --- the reader --- */

/* Returns the oldest record. NULL: the queue is empty. The record is valid until it is removed. */
const void *pnr_queue_front(pnr_queue *queue);
/* Returns the bytes of the oldest record, rounded up to a multiple of 16; 0: the queue is empty. */
size_t pnr_queue_front_bytes(pnr_queue *queue);
/* True if there is a record; for pnr_bell_wait. */
bool pnr_queue_has_record(void *queue);
/* Removes the oldest record. Wakes the writer if it sleeps and the space that it waits for is now
 * free. */
void pnr_queue_pop(pnr_queue *queue);
/* True if the next bytes are no valid record: the writer, another process, has damaged the
 * queue. */
bool pnr_queue_is_broken(pnr_queue *queue);
/* Waits for a record or for pnr_queue_wake, at most patience_ns. */
void pnr_queue_wait(pnr_queue *queue, uint64_t patience_ns);

#endif
