/* SPDX-License-Identifier: MIT */
/* CFAR on the host: compares the power P of each cell with factor * Z (pnr_cfar in plan.h). */
#ifndef PNR_SEARCH_CFAR_H
#define PNR_SEARCH_CFAR_H

#include "engine/engine.h"

#include <string.h>

enum { PNR_SEARCH_BLOCK = 1024 };

typedef struct pnr_search_cfar {
    const pnr_plan *plan;
    const float *power;     /* [n_codes][n_rows][n_cells] */
    size_t n_rows, n_cells; /* n_cells: cells of a row */
    const double *factor;   /* [cells before][cells after], each 0 .. training; NULL: no CFAR */
} pnr_search_cfar;

/* Tests n cells of a row, from cell `at` on; n is at most PNR_SEARCH_BLOCK. number: code * n_rows +
 * row. part: {first, end} of the part of the gate that contains these cells. */
void pnr_search_cfar_test(const pnr_search_cfar *cfar, size_t number, const size_t part[2],
                          size_t at, size_t n, bool *is_above);

/* Returns the index of the first true entry from `from` on, or n. Few entries are true, so memchr
 * is fast. */
static inline size_t pnr_search_next(const bool *is, size_t from, size_t n)
{
    const bool *at = (const bool *)memchr(is + from, 1, n - from);

    return at != NULL ? (size_t)(at - is) : n;
}

#endif
