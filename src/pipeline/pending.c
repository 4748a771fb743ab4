/* SPDX-License-Identifier: MIT */
/* A queue of copied results. All memory is allocated at the start. */
#include "pipeline/pending.h"

#include "base/error.h"
#include "engine/plan.h"

#include <stdlib.h>
#include <string.h>

enum {
    MEMORY = 32 << 20,
    MOST_DWELLS = 16, /* greatest number of dwells of a result */
    PATCH = 2 * PNR_NEIGHBOURS * PNR_NEIGHBOURS
};

typedef struct copy {
    pnr_pending_result shown;
    pnr_dwell *dwells;          /* [max_dwells] */
    pnr_candidate *candidates;  /* [max_dwells][max_candidates] */
    float *patches;             /* [max_dwells][max_candidates][17][17][2] */
    uint64_t *ready_ns;         /* [max_dwells] */
    uint32_t *lost, *nonfinite; /* [max_dwells][n_windows] */
} copy;

struct pnr_pending {
    const pnr_plan *plan;
    size_t n_copies;
    uint64_t first, end; /* numbers of the copies in use: first .. end - 1 */
    copy copies[PNR_MOST_PENDING];
};

static int allocate_copy(copy *c, const pnr_plan *plan, size_t max_dwells)
{
    const size_t max_candidates = plan->max_candidates, n_windows = pnr_plan_windows(plan);

    c->dwells = calloc(max_dwells, sizeof *c->dwells);
    c->candidates = calloc(max_dwells * max_candidates, sizeof *c->candidates);
    c->patches = calloc(max_dwells * max_candidates * PATCH, sizeof *c->patches);
    c->ready_ns = calloc(max_dwells, sizeof *c->ready_ns);
    c->lost = calloc(max_dwells * n_windows, sizeof *c->lost);
    c->nonfinite = calloc(max_dwells * n_windows, sizeof *c->nonfinite);
    return c->dwells && c->candidates && c->patches && c->ready_ns && c->lost && c->nonfinite
               ? PNR_OK
               : PNR_ENOMEMORY;
}

int pnr_pending_create(const pnr_plan *plan, size_t max_dwells, pnr_pending **out)
{
    const size_t each =
        max_dwells * plan->max_candidates * (PATCH * sizeof(float) + sizeof(pnr_candidate)) +
        max_dwells * pnr_plan_windows(plan) * 2 * sizeof(uint32_t);
    const size_t n = MEMORY / each;
    pnr_pending *pending = NULL;

    *out = NULL;
    if (pnr_plan_rows(plan) == 1 || n < 2 || max_dwells > MOST_DWELLS)
        return PNR_OK;
    if ((pending = calloc(1, sizeof *pending)) == NULL)
        return PNR_ENOMEMORY;
    pending->plan = plan;
    pending->n_copies = n < PNR_MOST_PENDING ? n : PNR_MOST_PENDING;
    for (size_t i = 0; i < pending->n_copies; i++)
        if (allocate_copy(&pending->copies[i], plan, max_dwells) != PNR_OK) {
            pnr_pending_destroy(pending);
            return PNR_ENOMEMORY;
        }
    *out = pending;
    return PNR_OK;
}

void pnr_pending_destroy(pnr_pending *pending)
{
    if (pending == NULL)
        return;
    for (size_t i = 0; i < pending->n_copies; i++) {
        copy *c = &pending->copies[i];

        free(c->dwells);
        free(c->candidates);
        free(c->patches);
        free(c->ready_ns);
        free(c->lost);
        free(c->nonfinite);
    }
    free(pending);
}

bool pnr_pending_is_empty(const pnr_pending *pending)
{
    return pending->first == pending->end;
}

bool pnr_pending_is_full(const pnr_pending *pending)
{
    return pending->end - pending->first == pending->n_copies;
}

const pnr_pending_result *pnr_pending_push(pnr_pending *pending, const pnr_pending_result *from)
{
    copy *c = &pending->copies[pending->end++ % pending->n_copies];
    const pnr_windows *windows = &from->windows;
    const pnr_result *result = &from->result;
    const size_t n = result->n_dwells, n_windows = n * pnr_plan_windows(pending->plan);

    memcpy(c->dwells, result->dwells, n * sizeof *c->dwells);
    memcpy(c->ready_ns, windows->ready_ns, n * sizeof *c->ready_ns);
    memcpy(c->lost, windows->lost, n_windows * sizeof *c->lost);
    memcpy(c->nonfinite, result->nonfinite, n_windows * sizeof *c->nonfinite);
    for (size_t d = 0; d < n; d++) {
        const size_t at = d * pending->plan->max_candidates, count = result->dwells[d].n_candidates;

        memcpy(c->candidates + at, result->candidates + at, count * sizeof *c->candidates);
        memcpy(c->patches + at * PATCH, result->patches + at * PATCH,
               count * PATCH * sizeof *c->patches);
    }
    c->shown = *from;
    c->shown.windows.lost = c->lost;
    c->shown.windows.ready_ns = c->ready_ns;
    c->shown.windows.lost_runs = NULL;
    c->shown.windows.n_lost_runs = 0;
    c->shown.result.dwells = c->dwells;
    c->shown.result.candidates = c->candidates;
    c->shown.result.nonfinite = c->nonfinite;
    c->shown.result.patches = c->patches;
    return &c->shown;
}

const pnr_pending_result *pnr_pending_front(const pnr_pending *pending)
{
    return &pending->copies[pending->first % pending->n_copies].shown;
}

void pnr_pending_pop(pnr_pending *pending)
{
    pending->first++;
}
