/* SPDX-License-Identifier: MIT */
/* The queue: the positions of both sides, and the records. Each record has a header of 16 bytes and
 * is contiguous. If a record does not fit before the end of the memory, a gap fills the rest. */
#include "ring/queue.h"

#include "ring/bell.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 16, LINE = 64, TOLD_PARTS = 8 };

static const uint64_t is_gap = UINT64_MAX; /* value in place of the size at the start of a gap */

/* The positions of the writer and of the reader are on different cache lines. Each side seldom
 * reads the position of the other side: the reader reads `head` after it has removed all records
 * that it knows of, and the writer reads `tail` when the queue seems full. */
struct pnr_queue {
    size_t capacity; /* bytes of `memory`, a multiple of HEAD */

    _Alignas(LINE) _Atomic uint64_t head;   /* end of the committed records; it only grows, and its
                                             * byte is memory[head % capacity] */
    _Alignas(LINE) uint64_t reserved;       /* position of the reserved record */
    uint64_t seen_tail;                     /* value of `tail` when the writer last read it */
    _Alignas(LINE) _Atomic uint64_t wanted; /* value of `tail` that wakes the sleeping writer */
    pnr_bell writer;

    _Alignas(LINE) _Atomic uint64_t tail; /* position of the oldest record */
    _Alignas(LINE) uint64_t seen_head;    /* value of `head` when the reader last read it */
    uint64_t told_tail;                   /* value of `tail` at the last call of tell_writer */
    _Alignas(LINE) pnr_bell reader;

    _Alignas(LINE) unsigned char memory[];
};

static size_t round_up(size_t bytes)
{
    return (bytes + HEAD - 1) / HEAD * HEAD;
}

static size_t memory_bytes(size_t capacity, size_t most_bytes)
{
    const size_t least = round_up(most_bytes) + HEAD;

    return round_up(capacity > least ? capacity : least);
}

size_t pnr_queue_bytes(size_t capacity, size_t most_bytes)
{
    return sizeof(pnr_queue) + memory_bytes(capacity, most_bytes);
}

pnr_queue *pnr_queue_init(void *memory, size_t capacity, size_t most_bytes)
{
    pnr_queue *queue = memory;

    queue->capacity = memory_bytes(capacity, most_bytes);
    return queue;
}

pnr_queue *pnr_queue_create(size_t capacity, size_t most_bytes)
{
    const size_t bytes = (pnr_queue_bytes(capacity, most_bytes) + LINE - 1) / LINE * LINE;
    void *memory = bytes > capacity ? aligned_alloc(LINE, bytes) : NULL;

    if (memory == NULL)
        return NULL;
    memset(memory, 0, bytes);
    return pnr_queue_init(memory, capacity, most_bytes);
}

double pnr_queue_fill(const pnr_queue *queue)
{
    const uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    const uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);

    return head > tail ? (double)(head - tail) / (double)queue->capacity : 0;
}

/* --- the writer --- */

/* Returns true if `bytes` bytes from `at` on are free. */
static bool is_free(pnr_queue *queue, uint64_t at, uint64_t bytes)
{
    if (at + bytes <= queue->seen_tail + queue->capacity)
        return true;
    queue->seen_tail = atomic_load_explicit(&queue->tail, memory_order_acquire);
    return at + bytes <= queue->seen_tail + queue->capacity;
}

/* Commits a gap of `bytes` bytes from `at` to the end of the memory. Returns the new head. */
static uint64_t commit_gap(pnr_queue *queue, uint64_t at, uint64_t bytes)
{
    memcpy(queue->memory + at % queue->capacity, &is_gap, sizeof is_gap);
    atomic_store_explicit(&queue->head, at + bytes, memory_order_release);
    return at + bytes;
}

void *pnr_queue_reserve(pnr_queue *queue, size_t bytes)
{
    const uint64_t needed = HEAD + round_up(bytes);
    uint64_t at = atomic_load_explicit(&queue->head, memory_order_relaxed);
    const uint64_t to_end = queue->capacity - at % queue->capacity;

    if (to_end < needed) {
        /* Smaller records could use the space of the gap. The gap is therefore committed only if
         * the record fits after it, or if the queue is empty. In an empty queue, a record as large
         * as the memory fits as soon as the reader has passed the gap. */
        if (!is_free(queue, at, to_end + needed) && queue->seen_tail != at)
            return NULL;
        at = commit_gap(queue, at, to_end);
    }
    if (!is_free(queue, at, needed))
        return NULL;
    queue->reserved = at;
    return queue->memory + at % queue->capacity + HEAD;
}

void pnr_queue_commit(pnr_queue *queue, size_t bytes)
{
    const uint64_t size = HEAD + round_up(bytes);

    memcpy(queue->memory + queue->reserved % queue->capacity, &size, sizeof size);
    atomic_store_explicit(&queue->head, queue->reserved + size, memory_order_release);
}

void pnr_queue_wake(pnr_queue *queue)
{
    pnr_bell_ring(&queue->reader);
}

static bool has_space(void *of)
{
    pnr_queue *queue = of;

    return atomic_load(&queue->tail) >= atomic_load(&queue->wanted);
}

void pnr_queue_wait_space(pnr_queue *queue, size_t bytes, uint64_t patience_ns)
{
    const uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    const uint64_t to_end = queue->capacity - head % queue->capacity;
    const uint64_t record = HEAD + round_up(bytes), half = queue->capacity / 2;
    const uint64_t whole = to_end < record ? to_end + record : record; /* the gap and the record */
    const uint64_t needed = whole < queue->capacity ? whole : queue->capacity;
    const uint64_t end = head + (needed > half ? needed : half);

    if (end <= queue->capacity)
        return; /* there is enough space for any value of tail */
    atomic_store(&queue->wanted, end - queue->capacity);
    (void)pnr_bell_wait(&queue->writer, has_space, queue, 0, patience_ns);
}

/* --- the reader --- */

/* Wakes the writer if it sleeps and the space that it waits for is free. */
static void tell_writer(pnr_queue *queue, uint64_t tail)
{
    queue->told_tail = tail;
    atomic_thread_fence(memory_order_seq_cst); /* `wanted` is read after the store of the tail */
    if (tail >= atomic_load_explicit(&queue->wanted, memory_order_relaxed))
        pnr_bell_ring(&queue->writer);
}

/* Frees the memory before `end`. The fence of tell_writer is slow, so tell_writer is not called for
 * every record. */
static void free_until(pnr_queue *queue, uint64_t end)
{
    atomic_store_explicit(&queue->tail, end, memory_order_release);
    if (end - queue->told_tail >= queue->capacity / TOLD_PARTS)
        tell_writer(queue, end);
}

/* True if `size` is a valid size of a record at `at`. Another process can have written any
 * value. */
static bool is_size(const pnr_queue *queue, uint64_t at, uint64_t head, uint64_t size)
{
    return size > HEAD && size % HEAD == 0 && size <= head - at &&
           size <= queue->capacity - at % queue->capacity;
}

/* Returns true if there are records from `at` on. */
static bool has_records(pnr_queue *queue, uint64_t at)
{
    if (at < queue->seen_head)
        return true;
    queue->seen_head = atomic_load_explicit(&queue->head, memory_order_acquire);
    return at < queue->seen_head;
}

/* Returns the position of the oldest record. *size: bytes of the record and its header; 0: there is
 * no record, or the bytes are no valid record. Frees the gaps before the record. */
static uint64_t find_oldest(pnr_queue *queue, uint64_t *size)
{
    uint64_t at = atomic_load_explicit(&queue->tail, memory_order_relaxed);

    for (*size = 0; has_records(queue, at); free_until(queue, at)) {
        uint64_t found;

        memcpy(&found, queue->memory + at % queue->capacity, sizeof found);
        if (found != is_gap) {
            *size = is_size(queue, at, queue->seen_head, found) ? found : 0;
            return at;
        }
        at += queue->capacity - at % queue->capacity;
    }
    if (at != queue->told_tail)
        tell_writer(queue, at);
    return at;
}

const void *pnr_queue_front(pnr_queue *queue)
{
    uint64_t size;
    const uint64_t at = find_oldest(queue, &size);

    return size == 0 ? NULL : queue->memory + at % queue->capacity + HEAD;
}

size_t pnr_queue_front_bytes(pnr_queue *queue)
{
    uint64_t size;

    (void)find_oldest(queue, &size);
    return size == 0 ? 0 : (size_t)size - HEAD;
}

void pnr_queue_pop(pnr_queue *queue)
{
    uint64_t size;
    const uint64_t at = find_oldest(queue, &size);

    if (size > 0)
        free_until(queue, at + size);
}

bool pnr_queue_is_broken(pnr_queue *queue)
{
    uint64_t size;
    const uint64_t at = find_oldest(queue, &size);

    return size == 0 && at != atomic_load(&queue->head) && pnr_queue_front(queue) == NULL;
}

bool pnr_queue_has_record(void *queue)
{
    return pnr_queue_front(queue) != NULL;
}

void pnr_queue_wait(pnr_queue *queue, uint64_t patience_ns)
{
    (void)pnr_bell_wait(&queue->reader, pnr_queue_has_record, queue, 0, patience_ns);
}
