/* SPDX-License-Identifier: MIT */
/* The queue of records: order, wrap, fullness, sleep, and a writer that is killed. */
#include "ring/queue.h"
#include "tests/fixture/random.h"
#include "tests/fixture/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void *new_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(memory != MAP_FAILED);
    return memory;
}

/* A record: its number, its size, and bytes that follow from both. */
typedef struct record {
    uint64_t number, n_bytes;
    unsigned char bytes[];
} record;

static size_t size_of(uint64_t number, size_t most)
{
    return sizeof(record) + (size_t)(number * 2654435761u % (most - sizeof(record) + 1));
}

static bool write_record(pnr_queue *queue, uint64_t number, size_t most)
{
    record *r = pnr_queue_reserve(queue, most);

    if (r == NULL)
        return false;
    assert_int_equal((uintptr_t)r % 16, 0);
    r->number = number;
    r->n_bytes = size_of(number, most);
    memset(r->bytes, (int)(number & 255), (size_t)r->n_bytes - sizeof *r);
    pnr_queue_commit(queue, (size_t)r->n_bytes);
    return true;
}

/* Checks the oldest record and removes it; false: there is none. */
static bool read_record(pnr_queue *queue, uint64_t number, size_t most)
{
    const record *r = pnr_queue_front(queue);

    if (r == NULL)
        return false;
    if (r->number != number || r->n_bytes != size_of(number, most))
        fail_msg("record %llu instead of %llu", (unsigned long long)r->number,
                 (unsigned long long)number);
    for (size_t i = 0; i < r->n_bytes - sizeof *r; i++)
        if (r->bytes[i] != (unsigned char)(number & 255))
            fail_msg("record %llu: byte %zu is wrong", (unsigned long long)number, i);
    pnr_queue_pop(queue);
    return true;
}

TEST(test_fill)
{
    enum { CAPACITY = 1 << 14, RECORD = 240 }; /* with its head 256 */
    pnr_queue *queue = pnr_queue_create(CAPACITY, RECORD);

    assert_non_null(queue);
    for (size_t n = 0; n < CAPACITY / 256; n++) {
        assert_true(fabs(pnr_queue_fill(queue) - (double)n * 256 / CAPACITY) < 1e-12);
        assert_non_null(pnr_queue_reserve(queue, RECORD));
        pnr_queue_commit(queue, RECORD);
    }
    assert_true(pnr_queue_fill(queue) == 1);
    for (size_t n = 0; n < CAPACITY / 512; n++) {
        assert_non_null(pnr_queue_front(queue));
        pnr_queue_pop(queue);
    }
    assert_true(pnr_queue_fill(queue) == 0.5);
    free(queue);
}

/* Every size and every fill: what was written comes out, and a full queue says so. */
TEST(test_order)
{
    for (size_t most = sizeof(record); most < 300; most += 7) {
        const size_t bytes = pnr_queue_bytes(1000, most);
        void *memory = new_memory(bytes);
        pnr_queue *queue = pnr_queue_init(memory, 1000, most);
        uint64_t n_written = 0, n_read = 0;
        size_t n_full = 0;

        assert_null(pnr_queue_front(queue));
        pnr_queue_pop(queue); /* of an empty queue: nothing */
        for (size_t turn = 0; turn < 500; turn++) {
            for (size_t i = 0; i < 1 + turn % 13; i++)
                n_full += !write_record(queue, n_written, most) || n_written++ == UINT64_MAX;
            for (size_t i = 0; i < turn * 7 % 17; i++)
                n_read += read_record(queue, n_read, most);
            assert_true(n_read <= n_written);
        }
        while (read_record(queue, n_read, most))
            n_read++;
        assert_true(n_read == n_written && n_full > 0 && n_written > 1000);
        munmap(memory, bytes);
    }
}

/* An empty queue has space for the greatest record wherever it stands. */
TEST(test_greatest)
{
    enum { MOST = 5000 };
    const size_t bytes = pnr_queue_bytes(0, MOST);
    void *memory = new_memory(bytes);
    pnr_queue *queue = pnr_queue_init(memory, 0, MOST);

    for (uint64_t i = 0; i < 2000; i++) {
        if (!write_record(queue, i, MOST)) { /* it waits for the reader to pass the end */
            assert_null(pnr_queue_front(queue));
            assert_true(write_record(queue, i, MOST));
        }
        assert_true(read_record(queue, i, MOST));
    }
    munmap(memory, bytes);
}

/* A large record that finds no space leaves the space to smaller ones. */
TEST(test_small_after_large)
{
    enum { MOST = 5000, SMALL = 100 };
    const size_t capacity = 8000, bytes = pnr_queue_bytes(capacity, MOST);
    void *memory = new_memory(bytes);
    pnr_queue *queue = pnr_queue_init(memory, capacity, MOST);

    assert_non_null(pnr_queue_reserve(queue, MOST));
    pnr_queue_commit(queue, MOST);
    for (int i = 0; i < 20; i++) {
        assert_null(pnr_queue_reserve(queue, MOST));
        assert_true(write_record(queue, (uint64_t)i, SMALL));
    }
    pnr_queue_pop(queue);
    for (int i = 0; i < 20; i++)
        assert_true(read_record(queue, (uint64_t)i, SMALL));
    munmap(memory, bytes);
}

enum { RECORDS = 100000, MOST_BYTES = 400 };

static void *write_all(void *argument)
{
    pnr_queue *queue = argument;

    for (uint64_t i = 0; i < RECORDS; i++) {
        while (!write_record(queue, i, MOST_BYTES))
            pnr_queue_wait_space(queue, MOST_BYTES,
                                 10000000000); /* ten seconds: a missed wake-up is seen */
        pnr_queue_wake(queue);
    }
    return NULL;
}

/* Two threads that sleep whenever they can: no wake-up is missed. */
TEST(test_sleep)
{
    const size_t bytes = pnr_queue_bytes(4000, MOST_BYTES);
    void *memory = new_memory(bytes);
    pnr_queue *queue = pnr_queue_init(memory, 4000, MOST_BYTES);
    pthread_t writer;

    assert_int_equal(pthread_create(&writer, NULL, write_all, queue), 0);
    for (uint64_t i = 0; i < RECORDS; i++)
        while (!read_record(queue, i, MOST_BYTES))
            pnr_queue_wait(queue, 10000000000);
    pthread_join(writer, NULL);
    assert_null(pnr_queue_front(queue));
    munmap(memory, bytes);
}

/* A process that is killed while it writes leaves whole records, and the next one continues. */
TEST(test_killed_writer)
{
    const size_t bytes = pnr_queue_bytes(20000, MOST_BYTES);
    void *memory = new_memory(bytes);
    pnr_queue *queue = pnr_queue_init(memory, 20000, MOST_BYTES);
    uint64_t n_read = 0;

    for (int kills = 0; kills < 20; kills++) {
        const uint64_t first = n_read;
        const pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0)
            for (uint64_t i = first;; i += write_record(queue, i, MOST_BYTES))
                ;
        while (n_read < first + 500 + (uint64_t)kills * 37)
            n_read += read_record(queue, n_read, MOST_BYTES);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        while (read_record(queue, n_read, MOST_BYTES))
            n_read++;
    }
    munmap(memory, bytes);
}

/* Whatever the writer has written, the reader stays within the memory. */
TEST(test_broken_records)
{
    enum { CAPACITY = 4000, TRIALS = 20000 };
    const size_t bytes = pnr_queue_bytes(CAPACITY, MOST_BYTES), head = bytes - CAPACITY;
    unsigned char *memory = new_memory(bytes);
    size_t n_broken = 0;

    for (int trial = 0; trial < TRIALS; trial++) {
        pnr_queue *queue;

        memset(memory, 0, bytes);
        queue = pnr_queue_init(memory, CAPACITY, MOST_BYTES);
        for (uint64_t i = 0; write_record(queue, i, MOST_BYTES);)
            i++;
        for (int k = 0; k < 8; k++) /* a size begins a record; most numbers are none */
            memory[head + below(CAPACITY)] = (unsigned char)below(256);
        memory[head + below(2)] ^= 1;
        for (size_t i = 0; pnr_queue_front(queue) != NULL; i++) {
            assert_true(i < CAPACITY);
            assert_true((const unsigned char *)pnr_queue_front(queue) < memory + bytes);
            pnr_queue_pop(queue);
        }
        n_broken += pnr_queue_is_broken(queue);
    }
    assert_true(n_broken > TRIALS / 2);
    munmap(memory, bytes);
}
