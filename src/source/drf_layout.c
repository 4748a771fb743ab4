/* SPDX-License-Identifier: MIT */
/* Checks the layout of Digital RF 2, and computes sample numbers, in integer arithmetic. */
#include "source/drf_layout.h"

#include "base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 u128;

int pnr_drf_layout_check(pnr_drf_layout *layout, pnr_error *error)
{
    const struct {
        const char *name;
        int64_t value, least, most;
    } attributes[] = {
#define ATTRIBUTE(member, name, least, most) {name, layout->member, least, most},
        PNR_DRF_ATTRIBUTES(ATTRIBUTE)
#undef ATTRIBUTE
    };

    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].value < attributes[i].least || attributes[i].value > attributes[i].most)
            return pnr_error_set(error, PNR_EDATA, "%s is %" PRId64 ", not %" PRId64 " to %" PRId64,
                                 attributes[i].name, attributes[i].value, attributes[i].least,
                                 attributes[i].most);
    if (layout->folder_s * 1000 % layout->file_ms != 0)
        return pnr_error_set(error, PNR_EDATA,
                             "file_cadence_millisecs is %" PRId64
                             ", which does not divide subdir_cadence_secs, %" PRId64 " s",
                             layout->file_ms, layout->folder_s);
    return pnr_rational_div((pnr_rational){layout->rate_num, 1},
                            (pnr_rational){layout->rate_den, 1}, &layout->rate_hz);
}

uint64_t pnr_drf_first_sample(const pnr_drf_layout *layout, int64_t ms)
{
    const u128 den = (u128)layout->rate_hz.den * 1000;
    const u128 sample = ((u128)ms * (u128)layout->rate_hz.num + den - 1) / den;

    return sample > UINT64_MAX ? UINT64_MAX : (uint64_t)sample;
}

bool pnr_drf_folder_name(const char *name, int64_t *s)
{
    char text[sizeof "2026-11-21T02:40:00Z"];
    int64_t utc_ns;

    if (strlen(name) != sizeof text - 2 || name[13] != '-' || name[16] != '-')
        return false;
    snprintf(text, sizeof text, "%.13s:%.2s:%.2sZ", name, name + 14, name + 17);
    if (pnr_time_parse(text, &utc_ns) != PNR_OK)
        return false;
    *s = utc_ns / PNR_NS_PER_S;
    return true;
}

bool pnr_drf_file_name(const char *name, int64_t *ms)
{
    enum { MAX_DIGITS = 12 };
    static const char digits[] = "0123456789", prefix[] = "rf@";
    const char *seconds = name + sizeof prefix - 1, *rest;

    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    rest = seconds + strspn(seconds, digits);
    if (rest == seconds || rest > seconds + MAX_DIGITS || rest[0] != '.' ||
        strspn(rest + 1, digits) != 3 || strcmp(rest + 4, ".h5") != 0)
        return false;
    *ms = strtoll(seconds, NULL, 10) * 1000 + strtoll(rest + 1, NULL, 10);
    return true;
}

int pnr_drf_index_check(const pnr_drf_layout *layout, int64_t ms, const pnr_drf_row *rows,
                        size_t n_rows, uint64_t n_data, pnr_error *error)
{
    const uint64_t first = pnr_drf_first_sample(layout, ms);
    const uint64_t end = pnr_drf_first_sample(layout, ms + layout->file_ms);

    if (end == UINT64_MAX)
        return pnr_error_set(error, PNR_EDATA, "its time is beyond any sample's number");
    if (n_rows == 0 || rows[0].local != 0)
        return pnr_error_set(error, PNR_EDATA, "rf_data_index has no row for the first sample");
    for (size_t i = 0; i < n_rows; i++) {
        const pnr_drf_row *row = &rows[i];
        const uint64_t next = i + 1 < n_rows ? row[1].local : n_data;

        if (next <= row->local || next > n_data)
            return pnr_error_set(error, PNR_EDATA,
                                 "rf_data_index[%zu] is row %" PRIu64 " of rf_data, the one after "
                                 "it row %" PRIu64 " of %" PRIu64,
                                 i, row->local, next, n_data);

        const uint64_t count = next - row->local;

        /* checks first <= sample + 1 and sample + count <= end + 1 without overflow */
        if ((row->sample < first && first - row->sample > 1) || row->sample > end ||
            count > end + 1 - row->sample)
            return pnr_error_set(error, PNR_EDATA,
                                 "rf_data_index[%zu] has %" PRIu64 " samples from %" PRIu64
                                 " on, but the file is of samples %" PRIu64 " to %" PRIu64,
                                 i, count, row->sample, first, end);
        if (i + 1 < n_rows && (row[1].sample < row->sample || row[1].sample - row->sample < count))
            return pnr_error_set(error, PNR_EDATA,
                                 "rf_data_index[%zu] is sample %" PRIu64 ", but %" PRIu64
                                 " samples from %" PRIu64 " on come before it",
                                 i + 1, row[1].sample, count, row->sample);
    }
    return PNR_OK;
}

/* True if every number of a sample is NaN, or the smallest integer. */
static bool is_fill(const pnr_number_form *form, size_t n_numbers, const unsigned char *sample)
{
    const size_t bytes = form->number.bytes;

    for (size_t i = 0; i < n_numbers; i++, sample += bytes) {
        if (form->name[0] == 'f') {
            float single;
            double wide;

            memcpy(&single, sample, sizeof single);
            memcpy(&wide, sample, bytes);
            if (!(bytes == sizeof single ? isnan(single) : isnan(wide)))
                return false;
            continue;
        }
        /* numbers are little endian: the highest byte is the last */
        for (size_t b = 0; b < bytes; b++)
            if (sample[b] != (b == bytes - 1 && !form->number.is_unsigned ? 0x80 : 0))
                return false;
    }
    return true;
}

size_t pnr_drf_run(const pnr_number_form *form, size_t n_numbers, const void *data, size_t n,
                   bool *is_missing)
{
    const size_t bytes = n_numbers * form->number.bytes;
    const unsigned char *sample = data;
    size_t i = 1;

    *is_missing = is_fill(form, n_numbers, sample);
    while (i < n && is_fill(form, n_numbers, sample + i * bytes) == *is_missing)
        i++;
    return i;
}
