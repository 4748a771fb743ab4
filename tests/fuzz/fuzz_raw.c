/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as raw samples of any format, in a file or a pipe. The first byte chooses
 * the format, the second one the channels and the way. */
#include "memory_file.h"
#include "read_source.h"

#include <fcntl.h>
#include <string.h>

/* Makes a pipe with these bytes our standard input. */
static void fill_pipe(const uint8_t *data, size_t n_bytes)
{
    int ends[2];

    require(pipe(ends) == 0);
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    (void)!write(ends[1], data, n_bytes);
    close(ends[1]);
    require(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    close(ends[0]);
}

/* Fills the file with the bytes, again and again: the statistics want 8192 values. */
static void fill_file(int fd, const uint8_t *data, size_t n_bytes)
{
    static uint8_t many[1 << 16];

    for (size_t i = 0; i < sizeof many; i++)
        many[i] = n_bytes > 0 ? data[i % n_bytes] : 0;
    memory_file_fill(fd, many, sizeof many);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    enum { IS_PIPE = 1, CHANNELS = 6, HAS_LOST = 8, REPEATS = 16 };
    static char path[64];
    static int fd = -1;
    pnr_config config;

    if (n_bytes < 2)
        return 0;
    if (fd < 0) {
        setenv("PNR_LOG", "quiet", 1);
        fd = memory_file_create();
        memory_file_name(fd, ".raw", path, sizeof path);
    }
    pnr_config_init(&config);
    config.source.format = (pnr_format)(data[0] % PNR_FORMAT_COUNT);
    config.source.channels = 1 + (data[1] & CHANNELS) / 2;
    if ((data[1] & HAS_LOST) != 0)
        require(pnr_config_set(&config, "source.lost=3+2,9+1", NULL) == PNR_OK);
    if ((data[1] & IS_PIPE) != 0)
        fill_pipe(data + 2, n_bytes - 2);
    else if ((data[1] & REPEATS) != 0)
        fill_file(fd, data + 2, n_bytes - 2);
    else
        memory_file_fill(fd, data + 2, n_bytes - 2);
    strcpy(config.source.input, data[1] & IS_PIPE ? "-" : path);
    read_source(&config);
    return 0;
}
