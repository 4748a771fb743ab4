/* SPDX-License-Identifier: MIT */
/* Reads and writes the header of a message of GNU Radio. Numbers in its serialized values (PMTs)
 * are big-endian; all others are little-endian. */
#include "source/gr_tags.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAGIC_BYTES = 3, LEAST_TAG_BYTES = 8 + 3 /* an offset and three PMTs */ };
static const unsigned char magic[MAGIC_BYTES] = {0xf0, 0x5f, 0x01}; /* the number 0x5ff0 as u16, and
                                                                     * version 1 */

/* The first byte of a PMT gives its type. */
enum {
    PMT_SYMBOL = 2,
    PMT_DOUBLE = 4,
    PMT_PAIR = 7,
    PMT_VECTOR = 8,
    PMT_DICT = 9,
    PMT_UNIFORM_VECTOR = 10,
    PMT_UINT64 = 11,
    PMT_TUPLE = 12,
    N_PMTS = 14
};

typedef struct cursor {
    const unsigned char *at;
    size_t left;
    bool is_bad; /* the bytes are not a header; all later reads return zeros */
} cursor;

/* Returns the next n bytes and moves past them; NULL if fewer bytes are left. */
static const unsigned char *take_bytes(cursor *c, uint64_t n)
{
    const unsigned char *at = c->at;

    if (c->is_bad || n > c->left) {
        c->is_bad = true;
        return NULL;
    }
    c->at += n;
    c->left -= (size_t)n;
    return at;
}

static unsigned take_u8(cursor *c)
{
    const unsigned char *at = take_bytes(c, 1);

    return at != NULL ? *at : 0;
}

static uint16_t take_u16_be(cursor *c)
{
    const unsigned char *at = take_bytes(c, 2);

    return at != NULL ? (uint16_t)(at[0] << 8 | at[1]) : 0;
}

static uint32_t take_u32_be(cursor *c)
{
    const unsigned char *at = take_bytes(c, 4);
    uint32_t value = 0;

    if (at != NULL)
        memcpy(&value, at, sizeof value);
    return be32toh(value);
}

static uint64_t take_u64(cursor *c)
{
    const unsigned char *at = take_bytes(c, 8);
    uint64_t value = 0;

    if (at != NULL)
        memcpy(&value, at, sizeof value);
    return value;
}

static double take_double_be(cursor *c)
{
    const uint64_t bits = be64toh(take_u64(c));
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static void skip_uniform_vector(cursor *c)
{
    static const unsigned char item_bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16};
    const unsigned type = take_u8(c) & 0x7f;
    const uint64_t n_items = take_u32_be(c);

    (void)take_bytes(c, take_u8(c)); /* padding */
    if (type < sizeof item_bytes)
        (void)take_bytes(c, n_items * item_bytes[type]);
    else
        c->is_bad = true;
}

/* Skips one PMT with all its contents. Each PMT has at least one byte, so the number of bytes
 * limits the number of PMTs. */
static void skip_pmt(cursor *c)
{
    static const signed char fixed_bytes[N_PMTS] = {0,  0,  -1, 4,  8, 16, 0,
                                                    -1, -1, -1, -1, 8, -1, 8};
    uint64_t n_open = 1; /* number of PMTs still to skip */

    while (n_open > 0 && !c->is_bad) {
        const unsigned type = take_u8(c);

        n_open--;
        if (type >= N_PMTS)
            c->is_bad = true;
        else if (fixed_bytes[type] >= 0)
            (void)take_bytes(c, (uint64_t)fixed_bytes[type]);
        else if (type == PMT_SYMBOL)
            (void)take_bytes(c, take_u16_be(c));
        else if (type == PMT_PAIR || type == PMT_DICT)
            n_open += 2;
        else if (type == PMT_UNIFORM_VECTOR)
            skip_uniform_vector(c);
        else /* PMT_VECTOR or PMT_TUPLE */
            n_open += take_u32_be(c);
        if (n_open > c->left)
            c->is_bad = true;
    }
}

static bool is_symbol(const unsigned char *pmt, size_t n_bytes, const char *name)
{
    const size_t length = strlen(name);

    return n_bytes == 3 + length && pmt[0] == PMT_SYMBOL && pmt[1] == 0 && pmt[2] == length &&
           memcmp(pmt + 3, name, length) == 0;
}

/* Reads a time: a tuple of seconds (uint64) and fraction of a second (double). */
static int read_time(cursor *c, int64_t *utc_ns, pnr_error *error)
{
    static const uint64_t year_2262_s = 9214646400;
    const bool is_pair = take_u8(c) == PMT_TUPLE && take_u32_be(c) == 2 && take_u8(c) == PMT_UINT64;
    const uint64_t seconds = be64toh(take_u64(c));
    const bool has_fraction = take_u8(c) == PMT_DOUBLE;
    const double fraction = take_double_be(c);

    if (!is_pair || !has_fraction || seconds >= year_2262_s || !(fraction >= 0 && fraction < 1))
        return pnr_error_set(error, PNR_EDATA, "rx_time is no pair of seconds and fraction");
    *utc_ns = (int64_t)seconds * 1000000000 + llround(fraction * 1e9);
    return PNR_OK;
}

/* Reads one tag: offset, key, value, source. */
static int read_tag(cursor *c, pnr_gr_header *out, pnr_error *error)
{
    const uint64_t offset = take_u64(c);
    const unsigned char *key = c->at;

    skip_pmt(c);

    const size_t key_bytes = (size_t)(c->at - key);
    cursor value = *c;
    int64_t utc_ns = 0;

    skip_pmt(c);
    skip_pmt(c);
    if (c->is_bad)
        return PNR_OK; /* the caller checks is_bad */
    if (is_symbol(key, key_bytes, "rx_rate")) {
        out->rate_hz = take_u8(&value) == PMT_DOUBLE ? take_double_be(&value) : 0;
        if (!(out->rate_hz > 0 && isfinite(out->rate_hz)))
            return pnr_error_set(error, PNR_EDATA, "rx_rate is no number above 0");
    }
    if (!is_symbol(key, key_bytes, "rx_time"))
        return PNR_OK;
    if (out->n_times == PNR_GR_MAX_TIMES)
        return pnr_error_set(error, PNR_EDATA, "more than %d tags rx_time", PNR_GR_MAX_TIMES);
    if (offset < (out->n_times > 0 ? out->times[out->n_times - 1].offset : out->offset))
        return pnr_error_set(error, PNR_EDATA, "rx_time at item %" PRIu64 " is out of order",
                             offset);
    if (read_time(&value, &utc_ns, error) != PNR_OK)
        return PNR_EDATA;
    out->times[out->n_times++] = (pnr_gr_time){offset, utc_ns};
    return PNR_OK;
}

bool pnr_gr_is_header(const void *bytes, size_t n_bytes)
{
    return n_bytes >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) == 0;
}

int pnr_gr_header_read(const void *bytes, size_t n_bytes, pnr_gr_header *out, pnr_error *error)
{
    cursor c = {bytes, n_bytes, false};
    int code = PNR_OK;

    *out = (pnr_gr_header){0};
    if (!pnr_gr_is_header(bytes, n_bytes))
        return pnr_error_set(error, PNR_EDATA, "no header of stream tags");
    (void)take_bytes(&c, MAGIC_BYTES);
    out->offset = le64toh(take_u64(&c));

    const uint64_t n_tags = le64toh(take_u64(&c));

    if (n_tags > c.left / LEAST_TAG_BYTES)
        return pnr_error_set(error, PNR_EDATA, "%" PRIu64 " stream tags in %zu bytes", n_tags,
                             n_bytes);
    for (uint64_t i = 0; i < n_tags && code == PNR_OK && !c.is_bad; i++)
        code = read_tag(&c, out, error);
    if (code == PNR_OK && c.is_bad)
        code = pnr_error_set(error, PNR_EDATA, "broken stream tags");
    out->n_bytes = n_bytes - c.left;
    return code;
}

/* --- writing --- */

static void put_bytes(pnr_gr_writer *w, const void *bytes, size_t n)
{
    assert(n <= w->capacity - w->n);
    memcpy(w->bytes + w->n, bytes, n);
    w->n += n;
}

static void put_u8(pnr_gr_writer *w, unsigned char value)
{
    put_bytes(w, &value, 1);
}

static void put_u64_be(pnr_gr_writer *w, uint64_t value)
{
    value = htobe64(value);
    put_bytes(w, &value, sizeof value);
}

static void put_symbol(pnr_gr_writer *w, const char *name)
{
    const size_t length = strlen(name);

    put_u8(w, PMT_SYMBOL);
    put_u8(w, 0);
    put_u8(w, (unsigned char)length);
    put_bytes(w, name, length);
}

static void put_u64(pnr_gr_writer *w, uint64_t value)
{
    put_u8(w, PMT_UINT64);
    put_u64_be(w, value);
}

static void put_double(pnr_gr_writer *w, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    put_u8(w, PMT_DOUBLE);
    put_u64_be(w, bits);
}

/* Begins a tag. The caller then adds the value, and calls put_source. */
static void put_tag(pnr_gr_writer *w, uint64_t offset, const char *key)
{
    uint64_t n_tags = htole64(++w->n_tags);

    memcpy(w->bytes + MAGIC_BYTES + sizeof offset, &n_tags, sizeof n_tags);
    offset = htole64(offset);
    put_bytes(w, &offset, sizeof offset);
    put_symbol(w, key);
}

static void put_source(pnr_gr_writer *w)
{
    put_symbol(w, "pnradar");
}

void pnr_gr_write_begin(pnr_gr_writer *w, void *bytes, size_t capacity, uint64_t offset)
{
    static const uint64_t no_tags = 0;

    *w = (pnr_gr_writer){.bytes = bytes, .capacity = capacity};
    put_bytes(w, magic, MAGIC_BYTES);
    offset = htole64(offset);
    put_bytes(w, &offset, sizeof offset);
    put_bytes(w, &no_tags, sizeof no_tags);
}

void pnr_gr_write_u64(pnr_gr_writer *w, uint64_t offset, const char *key, uint64_t value)
{
    put_tag(w, offset, key);
    put_u64(w, value);
    put_source(w);
}

void pnr_gr_write_double(pnr_gr_writer *w, uint64_t offset, const char *key, double value)
{
    put_tag(w, offset, key);
    put_double(w, value);
    put_source(w);
}

void pnr_gr_write_time(pnr_gr_writer *w, uint64_t offset, int64_t utc_ns)
{
    static const unsigned char pair[] = {PMT_TUPLE, 0, 0, 0, 2};
    const int64_t ns_per_s = 1000000000;

    put_tag(w, offset, "rx_time");
    put_bytes(w, pair, sizeof pair);
    put_u64(w, (uint64_t)(utc_ns / ns_per_s));
    put_double(w, (double)(utc_ns % ns_per_s) * 1e-9);
    put_source(w);
}
