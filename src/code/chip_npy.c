/* SPDX-License-Identifier: MIT */
/* Reads chips from a numpy array. The header (NEP 1) must agree with the size of the file. */
#include "code/chip_file.h"
#include "code/family.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 8, HEADER_LEN = 4096 };

static const struct dtype {
    const char *descr;
    unsigned bytes; /* bytes of one element */
    char kind;      /* 'i' integer, 'f' float, 'c' complex */
} dtypes[] = {{"|i1", 1, 'i'}, {"<i2", 2, 'i'}, {"<i4", 4, 'i'}, {"<i8", 8, 'i'},
              {"<f4", 4, 'f'}, {"<f8", 8, 'f'}, {"<c8", 8, 'c'}, {"<c16", 16, 'c'}};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

static int refuse_npy(const pnr_chip_file *file, pnr_error *error, const char *why)
{
    return pnr_error_set(error, PNR_EDATA, "%s %s: %s", file->key, file->path, why);
}

/* Refuses the Python value at the start of the text: a string in quotes, a tuple or a list. */
static int refuse_value(const pnr_chip_file *file, pnr_error *error, const char *why,
                        const char *text)
{
    const char close = *text == '(' ? ')' : *text == '[' ? ']' : *text;
    const char *last = *text ? strchr(text + 1, close) : NULL;
    const int n = last != NULL && last - text < 40 ? (int)(last - text) + 1 : 40;

    return pnr_error_set(error, PNR_EDATA, "%s %s: %s%.*s", file->key, file->path, why, n, text);
}

/* Reads the text of the header, a Python dict. *offset: bytes before the first element. */
static int read_header(const pnr_chip_file *file, char text[HEADER_LEN + 1], uint64_t *offset,
                       pnr_error *error)
{
    unsigned char head[PREFIX + 4] = {0};
    size_t n_head = PREFIX + 2, length;

    if (fread(head, 1, n_head, file->stream) != n_head || memcmp(head, "\x93NUMPY", 6) != 0)
        return refuse_npy(file, error, "does not begin like a numpy array");
    length = head[PREFIX] | (size_t)head[PREFIX + 1] << 8;
    if (head[6] > 1) { /* in versions 2 and 3 the length has four bytes */
        if (fread(head + n_head, 1, 2, file->stream) != 2)
            return refuse_npy(file, error, "cut short in its header");
        length |= (size_t)head[n_head] << 16 | (size_t)head[n_head + 1] << 24;
        n_head += 2;
    }
    if (length > HEADER_LEN)
        return pnr_error_set(error, PNR_EDATA,
                             "%s %s: a header of %zu bytes is not that of a plain array", file->key,
                             file->path, length);
    if (fread(text, 1, length, file->stream) != length)
        return refuse_npy(file, error, "cut short in its header");
    text[length] = '\0';
    *offset = n_head + length;
    return PNR_OK;
}

/* Returns the part of the header that begins with the value of the key. "": the key is missing. */
static const char *find_value(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at != NULL ? at + strlen(key) + strspn(at + strlen(key), " ") : "";
}

static const struct dtype *find_dtype(const char *value)
{
    for (size_t i = 0; i < N_DTYPES; i++) {
        const size_t length = strlen(dtypes[i].descr);

        if ((value[0] == '\'' || value[0] == '"') &&
            strncmp(value + 1, dtypes[i].descr, length) == 0 && value[1 + length] == value[0])
            return &dtypes[i];
    }
    return NULL;
}

static double read_float(const unsigned char *raw, size_t bytes)
{
    float narrow;
    double wide;

    if (bytes == sizeof wide) {
        memcpy(&wide, raw, sizeof wide);
        return wide;
    }
    memcpy(&narrow, raw, sizeof narrow);
    return (double)narrow;
}

static double read_integer(const unsigned char *raw, size_t bytes)
{
    uint64_t bits = raw[bytes - 1] & 0x80 ? UINT64_MAX : 0;

    for (size_t i = bytes; i > 0; i--)
        bits = bits << 8 | raw[i - 1];
    return (double)(int64_t)bits;
}

static int read_elements(const pnr_chip_file *file, const struct dtype *dtype, size_t n,
                         pnr_chips *out, pnr_error *error)
{
    unsigned char raw[16];
    int code = PNR_OK;

    for (size_t k = 0; k < n && code == PNR_OK; k++) {
        const size_t half = dtype->bytes / 2;
        double chip[2] = {0, 0};

        if (fread(raw, dtype->bytes, 1, file->stream) != 1)
            return pnr_error_set(error, PNR_EIO, "%s %s: cannot read element %zu of %zu", file->key,
                                 file->path, k, n);
        if (dtype->kind == 'i') {
            chip[0] = read_integer(raw, dtype->bytes);
        } else if (dtype->kind == 'f') {
            chip[0] = read_float(raw, dtype->bytes);
        } else {
            chip[0] = read_float(raw, half);
            chip[1] = read_float(raw + half, half);
        }
        if (!isfinite(chip[0]) || !isfinite(chip[1]))
            return pnr_error_set(error, PNR_EDATA, "%s %s: element %zu is not finite", file->key,
                                 file->path, k);
        code = pnr_chips_add(out, chip, file, error);
    }
    return code;
}

int pnr_chip_read_npy(const pnr_chip_file *file, pnr_chips *out, pnr_error *error)
{
    char text[HEADER_LEN + 1];
    const struct dtype *dtype;
    const char *shape;
    char *end;
    uint64_t offset = 0, n;
    const int code = read_header(file, text, &offset, error);

    if (code != PNR_OK)
        return code;
    if ((dtype = find_dtype(find_value(text, "'descr':"))) == NULL)
        return refuse_value(file, error,
                            "want little-endian int8 to int64, float32, float64, complex64 or "
                            "complex128, not ",
                            find_value(text, "'descr':"));
    shape = find_value(text, "'shape':");
    n = *shape == '(' ? strtoull(shape + 1, &end, 10) : 0;
    if (*shape != '(' || strncmp(end, ",)", 2) != 0)
        return refuse_value(file, error, "want one dimension (numpy.ravel), not ", shape);
    if (n < 1 || n > PNR_CODE_MAX_CHIPS || offset + n * dtype->bytes != file->n_bytes)
        return pnr_error_set(error, PNR_EDATA,
                             "%s %s: the header says %" PRIu64 " elements of %u bytes (1 to %d are "
                             "read) from byte %" PRIu64 ", the file has %" PRIu64 " bytes",
                             file->key, file->path, n, dtype->bytes, PNR_CODE_MAX_CHIPS, offset,
                             file->n_bytes);
    return read_elements(file, dtype, (size_t)n, out, error);
}
