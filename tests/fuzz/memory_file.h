/* SPDX-License-Identifier: MIT */
/* A file in memory that a reader opens by name, for fuzzing. */
#ifndef FUZZ_MEMORY_FILE_H
#define FUZZ_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static char memory_file_folder[] = "/tmp/pnradar-fuzz-XXXXXX";

static void memory_file_remove(void)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", memory_file_folder);
    if (system(command) != 0)
        abort();
}

/* Creates the file. Each call of memory_file_name gives it one more name, with an extension. */
static inline int memory_file_create(void)
{
    const int fd = memfd_create("fuzz", 0);

    if (fd < 0 || mkdtemp(memory_file_folder) == NULL || atexit(memory_file_remove) != 0)
        abort();
    return fd;
}

static inline void memory_file_name(int fd, const char *extension, char *path, size_t size)
{
    char target[32];

    snprintf(target, sizeof target, "/proc/self/fd/%d", fd);
    snprintf(path, size, "%s/x%s", memory_file_folder, extension);
    if (symlink(target, path) != 0)
        abort();
}

static inline void memory_file_fill(int fd, const uint8_t *data, size_t size)
{
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
}

#endif
