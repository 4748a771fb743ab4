/* SPDX-License-Identifier: MIT */
/* The message reader takes anything from the network, never more than it is given, and means what
 * it lets in. */
#include "publisher/message.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Returns the size of the text before the records, with its line feed. */
static size_t text_size(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\n', size);

    return end != NULL ? (size_t)(end - data) + 1 : size;
}

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
    pnr_error error = {0};

    require(length > 0);
    require(report->detection.n_echoes <= PNR_MAX_CANDIDATES);
    if (report->seq > INT64_MAX || report->lost > INT64_MAX || report->lost_before > INT64_MAX)
        return; /* a pack holds what jansson's integers cannot */
    if (pnr_message_read_range(text, length, &again, &error) != PNR_OK)
        fprintf(stderr, "%s: %s\n", error.text, text);
    require(error.code == PNR_OK);
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

static void check_cells(const char *text, size_t header, size_t n_bytes)
{
    static pnr_report report;
    static pnr_map_info map;
    pnr_profile_info info;
    pnr_error error;

    if (pnr_message_read_profile(text, header, n_bytes, &report, &info, &error) == PNR_OK)
        require(info.n_cells * (info.is_complex ? 8 : 4) == n_bytes &&
                info.first_cell < info.n_cells && info.n_gate <= info.n_cells);
    if (pnr_message_read_map(text, header, n_bytes, &report, &map, &error) == PNR_OK)
        check_map(&map, n_bytes);
}

static void check_pack(const char *text, size_t header, size_t n_bytes)
{
    static pnr_report report;
    static pnr_pack pack;
    pnr_error error;

    if (pnr_message_open_pack(text, header, text + header, n_bytes, &pack, &error) != PNR_OK)
        return;
    while (pnr_message_next_dwell(&pack, &report)) {
        require(pack.at <= n_bytes / sizeof(pnr_record));
        check_report(&report);
    }
}

/* The input is the first letter of a topic, as a listener knows it, or K for a pack; then a text, a
 * line feed, and records or cells. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pnr_report report;
    pnr_end_summary end;
    pnr_event_summary event;
    pnr_error error;

    if (size == 0)
        return 0;

    const char *text = (const char *)data + 1;
    const size_t length = size - 1;
    const size_t header = text_size(data + 1, length);

    switch (data[0]) {
    case 'r':
        if (pnr_message_read_range(text, length, &report, &error) == PNR_OK)
            check_report(&report);
        break;
    case 's':
        (void)pnr_message_read_status(text, length, &end, &error);
        break;
    case 'e':
        (void)pnr_message_read_end(text, length, &end, &error);
        break;
    case 'v':
        (void)pnr_message_read_event(text, length, &event, &error);
        break;
    case 'K':
        check_pack(text, header, length - header);
        break;
    default:
        check_cells(text, header, length - header);
    }
    return 0;
}

/* --- the mutator knows the text's members and the records --- */

static unsigned draw(unsigned *state, unsigned n)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) % n;
}

/* Replaces `old` bytes at `at` by others, if there is room. Returns the new size. */
static size_t splice(uint8_t *data, size_t size, size_t max_size, size_t at, size_t old,
                     const char *by, size_t n)
{
    if (size - old + n > max_size)
        return size;
    memmove(data + at + n, data + at + old, size - at - old);
    memcpy(data + at, by, n);
    return size - old + n;
}

/* Gives one member of the text another value. */
static size_t change_member(uint8_t *data, size_t size, size_t max_size, unsigned *state)
{
    static const char *const values[] = {"null",
                                         "true",
                                         "-1",
                                         "0",
                                         "1",
                                         "1e308",
                                         "-1e-320",
                                         "9223372036854775807",
                                         "4294967296",
                                         "18446744073709551615",
                                         "\"\"",
                                         "\"x\"",
                                         "\"1\"",
                                         "\"nan\"",
                                         "[]",
                                         "[1]",
                                         "{}",
                                         "\"2026-11-21T02:40:12Z\"",
                                         "\"\\u001b[2J\"",
                                         "[{}]",
                                         "0.5",
                                         "-0.0",
                                         "\"9223372036854775808\""};
    const char *value = values[draw(state, sizeof values / sizeof *values)];
    const size_t n_text = text_size(data, size), from = draw(state, (unsigned)n_text + 1);
    const uint8_t *colon = memchr(data + from, ':', n_text - from);
    const size_t at = colon != NULL ? (size_t)(colon - data) + 1 : n_text;
    size_t n = 0;

    while (at + n < n_text && memchr(",}]\n", data[at + n], 4) == NULL)
        n++;
    return at < n_text ? splice(data, size, max_size, at, n, value, strlen(value)) : size;
}

/* Changes a field of a record, or repeats or removes a record. */
static size_t change_record(uint8_t *data, size_t size, size_t max_size, unsigned *state)
{
    const size_t first = text_size(data, size), n = (size - first) / sizeof(pnr_record);
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      UINT32_MAX,
                                      INT64_MAX,
                                      UINT64_MAX,
                                      1u << 20,
                                      0x7ff8000000000000,
                                      0x7ff0000000000000,
                                      0x7fc000007f800000};
    char copy[sizeof(pnr_record)];

    if (n == 0)
        return size;

    const size_t at = first + draw(state, (unsigned)n) * sizeof(pnr_record);
    const size_t field = at + draw(state, sizeof(pnr_record) / 4 - 1) * 4;

    memcpy(copy, data + at, sizeof copy);
    switch (draw(state, 6)) {
    case 0:
        return splice(data, size, max_size, at, 0, copy, sizeof copy);
    case 1:
        return splice(data, size, max_size, at, sizeof copy, copy, 0);
    case 2:
        memcpy(data + field, &values[draw(state, sizeof values / sizeof *values)], 8);
        return size;
    case 3:
        memcpy(data + field, &values[draw(state, 7)], 4);
        return size;
    default:
        (void)LLVMFuzzerMutate(data + field, 4, 4);
        return size;
    }
}

/* Makes a whole pack: the header of this version, and records of one to four dwells in order. */
static size_t make_pack(uint8_t *data, size_t max_size, unsigned *state)
{
    static pnr_report report;
    static char text[PNR_MESSAGE_MAX];
    static pnr_record records[64];
    const size_t n_results = 1 + draw(state, 4);
    size_t n = 0;

    report = (pnr_report){.run = "9f2c00112233aabb", .stream = "demo", .seq = draw(state, 100)};
    for (size_t r = 0; r < n_results; r++, report.seq++) {
        pnr_detection *d = &report.detection;

        d->n_echoes = draw(state, 5);
        for (size_t e = 0; e < d->n_echoes; e++)
            d->echoes[e].range_m = draw(state, 100000);
        for (size_t e = 0; e < (d->n_echoes > 0 ? d->n_echoes : 1); e++)
            pnr_message_fill_record(&report, e, &records[n++]);
    }
    report.seq -= n_results;

    const size_t n_text = pnr_message_write_pack(&report, n_results, n, text, sizeof text);

    if (n_text == 0 || n_text + 1 + n * sizeof *records > max_size)
        return 0;
    memcpy(data, text, n_text);
    data[n_text] = '\n';
    memcpy(data + n_text + 1, records, n * sizeof *records);
    return n_text + 1 + n * sizeof *records;
}

/* Sets the number of records that the text states to that of the records. */
static size_t mend_count(uint8_t *data, size_t size, size_t max_size)
{
    static const char name[] = "\"n_records\":";
    const size_t n_text = text_size(data, size);
    const uint8_t *found = memmem(data, n_text, name, sizeof name - 1);
    char number[24];
    size_t at, n = 0;

    if (found == NULL)
        return size;
    at = (size_t)(found - data) + sizeof name - 1;
    while (at + n < n_text && data[at + n] >= '0' && data[at + n] <= '9')
        n++;
    snprintf(number, sizeof number, "%zu", (size - n_text) / sizeof(pnr_record));
    return splice(data, size, max_size, at, n, number, strlen(number));
}

/* Changes a message in one way. Returns its new size. */
static size_t change_message(uint8_t *data, size_t size, size_t max_size, unsigned *state)
{
    const unsigned choice = draw(state, 16);

    if (choice < 5 || size == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (choice < 10)
        return change_member(data, size, max_size, state);
    size = change_record(data, size, max_size, state);
    return choice < 15 ? mend_count(data, size, max_size) : size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static const char topics[] = "rsevpmK";
    unsigned state = seed;
    const unsigned choice = draw(&state, 32);
    const size_t made = choice == 0 ? make_pack(data + 1, max_size - 1, &state) : 0;

    if (made > 0)
        data[0] = 'K';
    else if (choice == 1 || size == 0)
        data[0] = (uint8_t)topics[draw(&state, sizeof topics - 1)];
    if (made > 0 || size == 0)
        return 1 + made;
    return 1 + change_message(data + 1, size - 1, max_size - 1, &state);
}
