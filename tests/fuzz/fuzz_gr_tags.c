/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as a message of GNU Radio; a header that is accepted lies in the message. */
#include "require.h"
#include "source/gr_tags.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    pnr_gr_header header;
    pnr_error error = {0};
    const int code = pnr_gr_header_read(data, n_bytes, &header, &error);

    require(code == PNR_OK || (code == PNR_EDATA && error.text[0] != '\0'));
    if (code != PNR_OK)
        return 0;
    require(pnr_gr_is_header(data, n_bytes));
    require(header.n_bytes >= 19 && header.n_bytes <= n_bytes);
    require(header.n_times <= PNR_GR_MAX_TIMES && header.rate_hz >= 0);
    for (size_t i = 0; i < header.n_times; i++) {
        require(header.times[i].utc_ns >= 0);
        require(header.times[i].offset >= (i > 0 ? header.times[i - 1].offset : header.offset));
    }
    return 0;
}
