/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as datagrams, each after its length; one that is placed has whole samples
 * within it, and leads to no number out of range. */
#include "base/format.h"
#include "require.h"
#include "source/sequence.h"

#include <stdlib.h>
#include <string.h>

static void place(pnr_sequence *s, const uint8_t *bytes, size_t n_bytes)
{
    pnr_datagram whole, parts;
    pnr_error error = {0};
    const int code = pnr_sequence_place(s, bytes, n_bytes, n_bytes, &whole, &error);

    require(code == PNR_OK || code == PNR_EAGAIN ||
            ((code == PNR_EDATA || code == PNR_ECONFIG) && error.text[0] != '\0'));
    if (code != PNR_OK)
        return;
    require(whole.n_samples > 0 && whole.n_samples * s->sample_bytes == whole.n_payload);
    require(whole.n_header > 0 && whole.n_header <= PNR_SEQUENCE_MAX_HEADER);
    require(whole.n_header + whole.n_payload <= n_bytes);
    require(pnr_sequence_header_bytes(s, bytes) == whole.n_header);

    /* The header alone says the same. */
    uint8_t header[PNR_SEQUENCE_MAX_HEADER];

    memcpy(header, bytes, whole.n_header);
    require(pnr_sequence_place(s, header, whole.n_header, n_bytes, &parts, &error) == PNR_OK);
    require(memcmp(&whole, &parts, sizeof whole) == 0);
    if (!s->has_begun || llabs((long long)(whole.first - s->latest.first)) < 1000000)
        pnr_sequence_follow(s, &whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    enum { IS_PLAIN = 1, PACKETS = 2, NO_TIME = 4, FILTER = 8, RATIONAL = 16, BYTES = 32 };
    static pnr_config config;
    pnr_sequence s;
    unsigned how;

    if (n_bytes < 1)
        return 0;
    how = *data++;
    n_bytes--;
    config.source.udp_count = how & PACKETS ? PNR_UDP_PACKETS : PNR_UDP_SAMPLES;
    config.source.vrt_place = how & NO_TIME ? PNR_VRT_BY_COUNT : PNR_VRT_BY_TIME;
    strcpy(config.source.vrt_stream, how & FILTER ? "0x1f2e3d4c" : "");
    config.source.rate_hz = how & RATIONAL ? (pnr_rational){200, 3} : (pnr_rational){96000, 1};
    config.source.centre_hz = 99.5e6;
    require(pnr_sequence_init(&config, !(how & IS_PLAIN),
                              how & BYTES ? PNR_FORMAT_CI8 : PNR_FORMAT_CI16, &s, NULL) == PNR_OK);
    while (n_bytes > 0) {
        const size_t length = *data < n_bytes ? *data : n_bytes - 1;

        place(&s, data + 1, length);
        data += 1 + length;
        n_bytes -= 1 + length;
    }
    return 0;
}
