/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as a SigMF archive, which is read to its end. The mutator mends the
 * checksums of the headers of tar, which random bytes never hit. */
#include "memory_file.h"
#include "read_source.h"

#include <string.h>

enum { BLOCK = 512, SUM_AT = 148, SUM_LEN = 8 };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    for (size_t at = 0; at + BLOCK <= size && seed % 8 != 0; at += BLOCK) {
        unsigned sum = SUM_LEN * ' ';
        char text[SUM_LEN];

        if (data[at] == '\0' || data[at] == '{' || memcmp(data + at + 257, "ustar", 5) != 0)
            continue;
        for (size_t i = 0; i < BLOCK; i++)
            sum += i >= SUM_AT && i < SUM_AT + SUM_LEN ? 0 : data[at + i];
        snprintf(text, sizeof text, "%06o", sum & 0777777);
        memcpy(data + at + SUM_AT, text, sizeof text);
    }
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static char path[64];
    static int fd = -1;
    pnr_config config;

    if (fd < 0) {
        setenv("PNR_LOG", "quiet", 1);
        fd = memory_file_create();
        memory_file_name(fd, ".sigmf", path, sizeof path);
    }
    memory_file_fill(fd, data, n_bytes);
    pnr_config_init(&config);
    strcpy(config.source.input, path);
    read_source(&config);
    return 0;
}
