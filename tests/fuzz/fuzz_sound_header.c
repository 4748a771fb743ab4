/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as a sound file's head; what is accepted must fit into the file. */
#include "require.h"
#include "source/sound_header.h"

#include <stdlib.h>
#include <string.h>

/* The first n_bytes of a file of file_bytes. */
static void check(const uint8_t *data, size_t n_bytes, uint64_t file_bytes)
{
    pnr_sound_header h;
    pnr_error error = {0};
    int rc = pnr_sound_header_read(data, n_bytes, file_bytes, &h, &error);

    require(rc == PNR_OK || (rc == PNR_EDATA && error.code == rc && error.text[0] != '\0'));
    if (rc != PNR_OK)
        return;
    require(h.n_frames >= 1 && h.rate_hz > 0);
    require(h.n_channels >= 1 && h.n_channels <= PNR_SOUND_MAX_CHANNELS);
    if (strcmp(h.name, "FLAC") == 0)
        return;

    uint64_t frame_bytes = h.n_channels * h.bits / 8;
    require(frame_bytes >= 1 && h.n_trailing_bytes < frame_bytes);
    require(h.n_frames <= file_bytes / frame_bytes);
    require(h.n_frames * frame_bytes + h.n_trailing_bytes <= file_bytes - 24);
    require(h.rest_bytes == 0 ||
            (h.rest_offset < file_bytes && h.rest_bytes <= file_bytes - h.rest_offset));
    if (h.rest_bytes > 0 && h.rest_offset + h.rest_bytes <= n_bytes)
        pnr_sound_header_check_rest(&h, data + h.rest_offset, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    uint64_t stated = 0;

    check(data, n_bytes, n_bytes);
    check(data, n_bytes / 2, n_bytes);
    check(data, n_bytes, n_bytes / 2);
    check(data, n_bytes, UINT64_MAX);
    if (n_bytes < 28)
        return 0;
    memcpy(&stated, data + 20, 8); /* as large as RF64 says, */
    check(data, n_bytes, stated + 8);
    memcpy(&stated, data + 16, 8); /* W64 */
    check(data, n_bytes, stated);
    stated = 0;
    memcpy(&stated, data + 4, 4); /* and RIFF */
    check(data, n_bytes, stated + 8);
    return 0;
}
