/* SPDX-License-Identifier: MIT */
/* The message reader takes anything from the network and never more than it is given. */
#include "message.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte says how much of the rest is a pack's header; the text is also read as a range and
 * as an end message. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pnr_report report;
    pnr_end_summary end;
    pnr_error error;

    if (size == 0)
        return 0;

    const char *text = (const char *)data + 1;
    const size_t length = size - 1;
    const size_t header = length * data[0] / 255;
    size_t offset = 0;

    (void)pnr_message_read_range(text, length, &report, &error);
    (void)pnr_message_read_end(text, length, &end, &error);
    while (pnr_message_read_pack(text, header, text + header, length - header, &offset, &report,
                                 &error) == PNR_OK) {
        if (report.detection.n_echoes > PNR_MAX_CANDIDATES)
            __builtin_trap();
    }
    return 0;
}
