/* SPDX-License-Identifier: MIT */
/* The distance between two names: the message about an unknown name suggests the nearest one. */
#include "config/keys.h"

#include <string.h>

enum { NAME_MAX_BYTES = 63 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t pnr_name_distance(const char *a, const char *b)
{
    size_t rows[3][NAME_MAX_BYTES + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    size_t n_a = strnlen(a, NAME_MAX_BYTES), n_b = strnlen(b, NAME_MAX_BYTES);

    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t *oldest = before;

        before = last;
        last = row;
        row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return row[n_b];
}
