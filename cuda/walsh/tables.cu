/* SPDX-License-Identifier: MIT */
/* Tables of method walsh: the sample of each state, and the index u of W for each lag, see
 * walsh.h. */
#include "cuda/base/resources.h"
#include "cuda/walsh/walsh.h"

#include <cassert>
#include <cstdlib>
#include <cstring>

/* The index of a padding sample: a zero after the samples of a chunk, see rows.cu. */
static const uint16_t NO_SAMPLE = PNR_WALSH_CHUNK + 16;

static bool is_long(uint32_t degree)
{
    return degree > PNR_WALSH_SHORT_DEGREE;
}

size_t pnr_cuda_walsh_place(uint32_t degree, uint32_t m)
{
    const uint32_t piece = 8; /* entries in 16 bytes */
    const uint32_t bits = is_long(degree) ? (uint32_t)PNR_WALSH_TILE_BITS : degree;
    const uint32_t team = (1u << bits) / PNR_WALSH_EACH;
    const uint32_t in_row = m & ((1u << bits) - 1);
    const uint32_t t = in_row / PNR_WALSH_EACH, r = in_row % PNR_WALSH_EACH;

    return (m - in_row) + ((size_t)(r / piece) * team + t) * piece + r % piece;
}

size_t pnr_cuda_walsh_tables_list(uint32_t degree, pnr_cuda_walsh *t, pnr_cuda_buffer *list)
{
    const size_t n = (size_t)1 << degree, entry = is_long(degree) ? 4 : 2;
    const size_t quads =
        is_long(degree) ? (size_t)PNR_WALSH_CHUNK_QUADS * pnr_cuda_walsh_chunks(degree) : 0;
    const size_t n_first = is_long(degree) ? pnr_cuda_walsh_rows(degree) + 1 : 0;
    size_t i = 0;

    list[i++] = {(void **)&t->place, n * sizeof *t->place, false};
    list[i++] = {(void **)&t->lag_of, n * entry, false};
    list[i++] = {(void **)&t->cell_of, n * entry, false};
    list[i++] = {(void **)&t->source, quads * PNR_WALSH_QUAD * sizeof *t->source, false};
    list[i++] = {(void **)&t->target, quads * sizeof *t->target, false};
    list[i++] = {(void **)&t->first_quad, n_first * sizeof *t->first_quad, false};
    return i;
}

/* The tables on the host, see walsh.h. */
typedef struct maker {
    uint32_t degree;
    uint32_t *state_of; /* [N] */
    uint32_t *lag_of, *cell_of;
    uint16_t *place;
    uint16_t *source;
    uint32_t *target;
    uint32_t *first_quad;
    uint32_t *count; /* [chunks][rows]: number of samples of a chunk that belong to a row */
    /* [chunks][rows]: number of the first quad of these samples, counted in the window */
    uint32_t *first;
} maker;

/* Fills the tables state_of, lag_of and cell_of, see walsh.h. */
static void fill_lags(const pnr_plan *plan, maker *m)
{
    const size_t n = plan->n_samples;
    const unsigned degree = plan->m_degree;
    size_t at[PNR_WALSH_MAX_DEGREE];
    uint32_t state = 0;

    for (unsigned j = 0; j < degree; j++)
        state |= (uint32_t)(plan->references[j][0] < 0) << j;
    for (size_t i = 0; i < n; i++) {
        m->state_of[i] = state;
        if ((state & (state - 1)) == 0)
            at[__builtin_ctz(state)] = i;
        state = state >> 1 | (uint32_t)(plan->references[(i + degree) % n][0] < 0) << (degree - 1);
    }
    for (size_t k = 0; k < n; k++) {
        uint32_t u = 0;

        for (unsigned j = 0; j < degree; j++) {
            u |= (uint32_t)(plan->references[at[j]][0] < 0) << j;
            at[j] = at[j] == 0 ? n - 1 : at[j] - 1;
        }
        m->cell_of[k] = u;
        m->lag_of[u] = (uint32_t)k;
    }
}

/* Counts the samples of each chunk that belong to each row, and finds where their quads begin.
 * Quads are sorted by row, then by chunk. State 0 has no sample, so chunk 0 has a zero for it in
 * row 0. */
static uint32_t count_quads(maker *m)
{
    const uint32_t n = (1u << m->degree) - 1;
    const uint32_t n_rows = pnr_cuda_walsh_rows(m->degree);
    const uint32_t n_chunks = pnr_cuda_walsh_chunks(m->degree);
    uint32_t n_quads = 0;

    m->count[0] = 1;
    for (uint32_t i = 0; i < n; i++)
        m->count[(i / PNR_WALSH_CHUNK) * n_rows + m->state_of[i] / PNR_WALSH_TILE]++;
    for (uint32_t row = 0; row < n_rows; row++) {
        m->first_quad[row] = n_quads;
        for (uint32_t chunk = 0; chunk < n_chunks; chunk++) {
            m->first[chunk * n_rows + row] = n_quads;
            n_quads += (m->count[chunk * n_rows + row] + PNR_WALSH_QUAD - 1) / PNR_WALSH_QUAD;
        }
        assert(n_quads - m->first_quad[row] <= PNR_WALSH_ROW_QUADS);
    }
    m->first_quad[n_rows] = n_quads;
    return n_quads;
}

/* Fills `source` and `target` for every quad, and `place` for every state. */
static void fill_orders(maker *m)
{
    const uint32_t n = (1u << m->degree) - 1;
    const uint32_t n_rows = pnr_cuda_walsh_rows(m->degree);
    const uint32_t n_chunks = pnr_cuda_walsh_chunks(m->degree);
    uint32_t *next = m->count; /* index in `source` where the next sample of a row is written */

    for (uint32_t chunk = 0; chunk < n_chunks; chunk++) {
        uint16_t *source = m->source + (size_t)chunk * PNR_WALSH_CHUNK_QUADS * PNR_WALSH_QUAD;
        uint32_t *target = m->target + (size_t)chunk * PNR_WALSH_CHUNK_QUADS;
        const uint32_t begin = chunk * PNR_WALSH_CHUNK;
        const uint32_t end = n - begin < PNR_WALSH_CHUNK ? n : begin + PNR_WALSH_CHUNK;
        uint32_t n_listed = 0; /* quads of the chunk so far */

        for (uint32_t row = 0; row < n_rows; row++) {
            const uint32_t first = m->first[chunk * n_rows + row];
            const uint32_t count = m->count[chunk * n_rows + row];

            next[chunk * n_rows + row] = n_listed * PNR_WALSH_QUAD;
            for (uint32_t q = 0; q < (count + PNR_WALSH_QUAD - 1) / PNR_WALSH_QUAD; q++)
                target[n_listed++] = first + q;
        }
        assert(n_listed <= PNR_WALSH_CHUNK_QUADS);
        for (uint32_t e = 0; e < PNR_WALSH_CHUNK_QUADS * PNR_WALSH_QUAD; e++)
            source[e] = NO_SAMPLE;
        for (uint32_t q = n_listed; q < PNR_WALSH_CHUNK_QUADS; q++)
            target[q] = UINT32_MAX;
        if (chunk == 0)
            m->place[pnr_cuda_walsh_place(m->degree, 0)] = (uint16_t)next[0]++;
        for (uint32_t i = begin; i < end; i++) {
            const uint32_t row = m->state_of[i] / PNR_WALSH_TILE;
            const uint32_t e = next[chunk * n_rows + row]++;
            const uint32_t quad = target[e / PNR_WALSH_QUAD] - m->first_quad[row];

            source[e] = (uint16_t)(i - begin);
            m->place[pnr_cuda_walsh_place(m->degree, m->state_of[i])] =
                (uint16_t)(quad * PNR_WALSH_QUAD + e % PNR_WALSH_QUAD);
        }
    }
}

/* Allocates zeroed memory for all tables in one allocation. Returns this memory, or NULL. */
static void *create_maker(const pnr_cuda_buffer list[PNR_WALSH_TABLES], maker *m)
{
    const size_t n = (size_t)1 << m->degree;
    const size_t cells = is_long(m->degree) ? (size_t)pnr_cuda_walsh_rows(m->degree) *
                                                  pnr_cuda_walsh_chunks(m->degree)
                                            : 0;
    uint32_t *words = (uint32_t *)calloc(
        3 * n + 2 * cells +
            (list[0].bytes + list[3].bytes + list[4].bytes + list[5].bytes) / sizeof *words,
        sizeof *words);

    if (words == NULL)
        return NULL;
    m->state_of = words;
    m->lag_of = m->state_of + n;
    m->cell_of = m->lag_of + n;
    m->count = m->cell_of + n;
    m->first = m->count + cells;
    m->target = m->first + cells;
    m->first_quad = m->target + list[4].bytes / sizeof *words;
    m->place = (uint16_t *)(m->first_quad + list[5].bytes / sizeof *words);
    m->source = m->place + list[0].bytes / sizeof *m->place;
    return words;
}

/* Narrows a table to 16 bits in place: entry i is read before it is overwritten. */
static void narrow_table(uint32_t *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t entry = (uint16_t)table[i];

        memcpy((char *)table + i * sizeof entry, &entry, sizeof entry);
    }
}

int pnr_cuda_walsh_tables_fill(const pnr_plan *plan, pnr_cuda_walsh *tables, pnr_error *error)
{
    const size_t n = plan->n_samples;
    pnr_cuda_buffer list[PNR_WALSH_TABLES];
    maker m = {};
    int code = PNR_OK;

    m.degree = plan->m_degree;
    (void)pnr_cuda_walsh_tables_list(m.degree, tables, list);

    void *memory = create_maker(list, &m);

    if (memory == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: no memory for tables of %zu", n);
    fill_lags(plan, &m);
    if (is_long(m.degree)) {
        tables->n_quads = count_quads(&m);
        fill_orders(&m);
    } else {
        for (uint32_t i = 0; i < n; i++)
            m.place[pnr_cuda_walsh_place(m.degree, m.state_of[i])] = (uint16_t)i;
        narrow_table(m.lag_of, n + 1);
        narrow_table(m.cell_of, n + 1);
    }

    const void *const from[PNR_WALSH_TABLES] = {m.place,  m.lag_of, m.cell_of,
                                                m.source, m.target, m.first_quad};

    for (int i = 0; code == PNR_OK && i < PNR_WALSH_TABLES; i++)
        code = pnr_cuda_upload(*list[i].memory, from[i], list[i].bytes, error);
    free(memory);
    return code;
}
