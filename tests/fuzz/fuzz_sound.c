/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as a whole sound file, which is read to its end. The first byte chooses the
 * extension. */
#include "memory_file.h"
#include "source/source.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void read_all(pnr_source *source)
{
    enum { CHUNK = 256, MOST = 1 << 16 };
    static unsigned char samples[CHUNK * 256 * 16];
    const uint64_t stated = pnr_source_get_info(source)->n_samples;
    pnr_source_block block;
    pnr_error error = {0};
    uint64_t n = 0;
    int code;

    while ((code = pnr_source_read(source, samples, CHUNK, &block, &error)) == PNR_OK && n < MOST) {
        require(block.n_samples <= CHUNK && (block.n_samples > 0 || block.gap > 0));
        n += block.n_samples;
    }
    require(n <= stated);
    require(code != PNR_EEND || n == stated);
    require(code == PNR_OK || code == PNR_EEND || error.text[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const char *const extensions[] = {".wav", ".flac", ".rf64", ".w64", ".au", ".aiff"};
    enum { N = sizeof extensions / sizeof *extensions };
    static char paths[N][64];
    static int fd = -1;
    pnr_config config;
    pnr_source *source;
    pnr_error error = {0};

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
    if (pnr_source_complete(&config, &error) == PNR_OK &&
        pnr_source_open(&config, &source, &error) == PNR_OK) {
        read_all(source);
        pnr_source_close(source);
    } else {
        require(error.text[0] != '\0');
    }
    pnr_config_clear(&config);
    return 0;
}
