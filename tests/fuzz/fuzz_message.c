/* SPDX-License-Identifier: MIT */
/* The message reader takes anything from the network, never more than it is given, and means what
 * it lets in. */
#include "publisher/message.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds)
        __builtin_trap();
}

/* An accepted message can be written, and is accepted again as the same. */
static void check_report(const pnr_report *report)
{
    static char text[PNR_MESSAGE_MAX];
    static pnr_report again;
    const size_t length = pnr_message_write_range(report, text, sizeof text);
    pnr_error error;

    require(length > 0);
    require(report->detection.n_echoes <= PNR_MAX_CANDIDATES);
    if (report->seq > INT64_MAX || report->lost > INT64_MAX || report->lost_before > INT64_MAX)
        return; /* a pack holds what jansson's integers cannot */
    require(pnr_message_read_range(text, length, &again, &error) == PNR_OK);
    require(again.seq == report->seq && again.sample == report->sample);
    require(again.has_time == report->has_time && again.time_ns == report->time_ns);
    require(again.flags == report->flags);
    require(again.detection.n_echoes == report->detection.n_echoes);
}

/* Every row has a different Doppler, and every cell a place in the bytes. */
static void check_map(const pnr_map_info *map, size_t bytes)
{
    require(map->n_codes >= 1 && map->n_rows >= 1 && map->n_runs <= PNR_MAX_DOPPLER_RUNS);
    require(map->n_codes * map->n_rows * map->row.n_cells * (map->row.is_complex ? 8 : 4) == bytes);
    require(map->row.first_cell < map->row.n_cells && map->row.n_gate <= map->row.n_cells);
    require(pnr_map_doppler_hz(map, 0) == map->runs[0].first_hz);
    require(isfinite(pnr_map_doppler_hz(map, map->n_rows - 1)));
}

/* The first byte says how much of the rest is a pack's header; the text is also read as a range, a
 * status, an end and an event message. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pnr_report report;
    static pnr_map_info map;
    static pnr_pack pack;
    pnr_end_summary end;
    pnr_event_summary event;
    pnr_profile_info info;
    pnr_error error;

    if (size == 0)
        return 0;

    const char *text = (const char *)data + 1;
    const size_t length = size - 1;
    const size_t header = length * data[0] / 255;

    if (pnr_message_read_range(text, length, &report, &error) == PNR_OK)
        check_report(&report);
    (void)pnr_message_read_status(text, length, &end, &error);
    (void)pnr_message_read_end(text, length, &end, &error);
    (void)pnr_message_read_event(text, length, &event, &error);
    if (pnr_message_read_profile(text, header, length - header, &report, &info, &error) == PNR_OK)
        require(info.n_cells * (info.is_complex ? 8 : 4) == length - header &&
                info.first_cell < info.n_cells && info.n_gate <= info.n_cells);
    if (pnr_message_read_map(text, header, length - header, &report, &map, &error) == PNR_OK)
        check_map(&map, length - header);
    if (pnr_message_open_pack(text, header, text + header, length - header, &pack, &error) ==
        PNR_OK)
        while (pnr_message_next_dwell(&pack, &report)) {
            require(pack.at <= (length - header) / sizeof(pnr_record));
            check_report(&report);
        }
    return 0;
}
