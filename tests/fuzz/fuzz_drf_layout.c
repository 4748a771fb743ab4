/* SPDX-License-Identifier: MIT */
/* libFuzzer: any values as the properties, the index and the names of a Digital RF recording; what
 * is accepted is consistent. */
#include "require.h"
#include "source/drf_layout.h"

#include <stdlib.h>
#include <string.h>

enum { N_VALUES = 8, MAX_ROWS = 64 };

static void try_names(const uint8_t *data, size_t n_bytes)
{
    char name[64];
    int64_t s = -1, ms = -1;

    if (n_bytes >= sizeof name)
        n_bytes = sizeof name - 1;
    memcpy(name, data, n_bytes);
    name[n_bytes] = '\0';
    require(!pnr_drf_folder_name(name, &s) || s >= 0);
    require(!pnr_drf_file_name(name, &ms) || (ms >= 0 && ms < INT64_C(1000000000000000)));
}

static void try_index(const pnr_drf_layout *layout, int64_t ms, uint64_t n_data,
                      const uint8_t *data, size_t n_bytes)
{
    pnr_drf_row rows[MAX_ROWS];
    pnr_error error = {0};
    size_t n = n_bytes / sizeof *rows;

    n = n < MAX_ROWS ? n : MAX_ROWS;
    memcpy(rows, data, n * sizeof *rows);
    if (pnr_drf_index_check(layout, ms, rows, n, n_data, &error) != PNR_OK) {
        require(error.text[0] != '\0');
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t end = i + 1 < n ? rows[i + 1].local : n_data;

        require(rows[i].local < end && end <= n_data);
        require(rows[i].sample <= UINT64_MAX - (end - rows[i].local));
        require(i + 1 == n || rows[i + 1].sample - rows[i].sample >= end - rows[i].local);
    }
}

/* Eight values, the properties and two of a file, then rows of an index. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    int64_t values[N_VALUES + 1];
    pnr_error error = {0};

    try_names(data, n_bytes);
    if (n_bytes < sizeof values)
        return 0;
    memcpy(values, data, sizeof values);

    pnr_drf_layout layout = {.rate_num = values[0],
                             .rate_den = values[1],
                             .folder_s = values[2],
                             .file_ms = values[3],
                             .n_channels = values[4],
                             .is_complex = values[5] & 1,
                             .is_continuous = values[6] & 1};

    if (pnr_drf_layout_check(&layout, &error) != PNR_OK) {
        require(error.code == PNR_EDATA && error.text[0] != '\0');
        return 0;
    }
    require(layout.rate_hz.num > 0 && layout.rate_hz.den > 0);
    require(layout.folder_s * 1000 % layout.file_ms == 0);
    try_index(&layout, values[7] & ((INT64_C(1) << 49) - 1), (uint64_t)values[8],
              data + sizeof values, n_bytes - sizeof values);
    return 0;
}
