/* SPDX-License-Identifier: MIT */
/* Several threads read the bytes that one thread reads, convert them, and stop at the end of the
 * file or at an error. */
#include "source/reader.h"

#include "base/error.h"
#include "tests/fixture/test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { FILE_BYTES = 5 << 20, THREADS = 5 };

static unsigned char content[FILE_BYTES], memory[2 * FILE_BYTES];
static int fd = -1;

static int open_file(void **state)
{
    char path[] = "/tmp/pnr-reader.XXXXXX";
    uint64_t random = 1;

    (void)state;
    for (size_t i = 0; i < FILE_BYTES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        content[i] = (unsigned char)(random >> 56);
    }
    fd = mkstemp(path);
    unlink(path);
    return fd >= 0 && write(fd, content, FILE_BYTES) == FILE_BYTES ? 0 : -1;
}

static int close_file(void **state)
{
    (void)state;
    return close(fd);
}

TESTS_BETWEEN(open_file, close_file)

static pnr_reader *create_reader(size_t n_threads)
{
    pnr_reader *reader = NULL;

    assert_int_equal(pnr_reader_create(n_threads, &reader), PNR_OK);
    return reader;
}

/* Each byte becomes itself and its complement. */
static void double_bytes(const void *context, void *data, size_t n)
{
    unsigned char *bytes = data;

    (void)context;
    while (n-- > 0) {
        bytes[2 * n + 1] = (unsigned char)~bytes[n];
        bytes[2 * n] = bytes[n];
    }
}

TEST(test_parts_of_all_sizes)
{
    pnr_reader *reader = create_reader(THREADS);

    assert_true(pnr_reader_best_bytes(reader) >= THREADS);
    for (size_t turn = 0; turn < 200; turn++) {
        const size_t first = turn * 7919 % 1000000;
        const size_t n = turn % 10 == 9 ? FILE_BYTES - first : 1 + turn * 104729 % 1500000;
        const pnr_reader_part part = {
            .fd = fd, .first_byte = first, .n_bytes = n, .growth = 1, .data = memory};

        memory[n] = 0x5a;
        assert_int_equal(pnr_reader_read(reader, &part), n);
        assert_memory_equal(memory, content + first, n);
        assert_int_equal(memory[n], 0x5a);
    }
    pnr_reader_destroy(reader);
}

TEST(test_conversion_that_grows)
{
    for (size_t n_threads = 1; n_threads <= THREADS; n_threads += 2) {
        pnr_reader *reader = create_reader(n_threads);
        const size_t n = FILE_BYTES - 3;
        const pnr_reader_part part = {.fd = fd,
                                      .first_byte = 3,
                                      .n_bytes = n,
                                      .growth = 2,
                                      .data = memory,
                                      .convert = double_bytes};

        assert_int_equal(pnr_reader_read(reader, &part), n);
        for (size_t i = 0; i < n; i++)
            if (memory[2 * i] != content[3 + i] || memory[2 * i + 1] != 255 - content[3 + i])
                fail_msg("byte %zu", i);
        pnr_reader_destroy(reader);
    }
}

/* A part that begins in the file and ends after its end. */
TEST(test_end_of_the_file)
{
    pnr_reader *reader = create_reader(THREADS);
    const size_t n = 2000003;
    pnr_reader_part part = {
        .fd = fd, .first_byte = FILE_BYTES - n, .n_bytes = FILE_BYTES, .growth = 1, .data = memory};

    assert_int_equal(pnr_reader_read(reader, &part), n);
    assert_memory_equal(memory, content + FILE_BYTES - n, n);
    part.first_byte = FILE_BYTES;
    assert_int_equal(pnr_reader_read(reader, &part), 0);
    pnr_reader_destroy(reader);
}

TEST(test_error_of_a_read)
{
    pnr_reader *reader = create_reader(THREADS);
    const int folder = open("/", O_RDONLY);
    pnr_reader_part part = {.fd = folder, .n_bytes = FILE_BYTES, .growth = 1, .data = memory};

    assert_int_equal(pnr_reader_read(reader, &part), -EISDIR);
    part.fd = fd; /* an error ends one read only */
    assert_int_equal(pnr_reader_read(reader, &part), FILE_BYTES);
    assert_memory_equal(memory, content, FILE_BYTES);
    close(folder);
    pnr_reader_destroy(reader);
}

TEST(test_helpers_that_sleep)
{
    pnr_reader *reader = create_reader(THREADS);
    const pnr_reader_part part = {.fd = fd, .n_bytes = FILE_BYTES, .growth = 1, .data = memory};

    for (int turn = 0; turn < 5; turn++) {
        memset(memory, 0, FILE_BYTES);
        assert_int_equal(pnr_reader_read(reader, &part), FILE_BYTES);
        assert_memory_equal(memory, content, FILE_BYTES);
        usleep(5000);
    }
    pnr_reader_destroy(reader);
}
