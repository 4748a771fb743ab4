/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as a whole sound file, which is read to its end. The first byte chooses the
 * extension. */
#include "memory_file.h"
#include "read_source.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const char *const extensions[] = {".wav", ".flac", ".rf64", ".w64", ".au", ".aiff"};
    enum { N = sizeof extensions / sizeof *extensions };
    static char paths[N][64];
    static int fd = -1;
    pnr_config config;

    if (n_bytes == 0)
        return 0;
    if (fd < 0) {
        setenv("PNR_LOG", "quiet", 1);
        fd = memory_file_create();
        for (size_t i = 0; i < N; i++)
            memory_file_name(fd, extensions[i], paths[i], sizeof paths[i]);
    }
    memory_file_fill(fd, data + 1, n_bytes - 1);
    pnr_config_init(&config);
    strcpy(config.source.input, paths[data[0] % N]);
    read_source(&config);
    return 0;
}
