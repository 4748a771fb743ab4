/* SPDX-License-Identifier: MIT */
/* Opens and reads what an input names, to its end. */
#ifndef FUZZ_READ_SOURCE_H
#define FUZZ_READ_SOURCE_H

#include "require.h"
#include "source/source.h"

static inline void read_all(pnr_source *source)
{
    enum { CHUNK = 256, MOST = 1 << 16 };
    static unsigned char samples[CHUNK * 256 * 16];
    const uint64_t stated = pnr_source_get_info(source)->n_samples;
    pnr_source_block block;
    pnr_error error = {0};
    uint64_t n = 0;
    int code;

    do {
        code = pnr_source_read(source, samples, CHUNK, &block, &error);
        require(code != PNR_OK ||
                (block.n_samples <= CHUNK && (block.n_samples > 0) != (block.gap > 0)));
        n += code == PNR_OK ? block.n_samples : 0;
    } while ((code == PNR_OK && n < MOST) || code == PNR_EAGAIN);
    require(n <= stated);
    require(code == PNR_OK || code == PNR_EEND || error.text[0] != '\0');
}

/* Completes the configuration from the input, and reads the input. */
static inline void read_source(pnr_config *config)
{
    pnr_source *source;
    pnr_error error = {0};

    if (pnr_source_complete(config, &error) == PNR_OK &&
        pnr_source_open(config, &source, &error) == PNR_OK) {
        read_all(source);
        pnr_source_close(source);
    } else {
        require(error.text[0] != '\0');
    }
    pnr_config_clear(config);
}

#endif
