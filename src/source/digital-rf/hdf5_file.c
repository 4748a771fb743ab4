/* SPDX-License-Identifier: MIT */
/* Reads the HDF5 files of Digital RF. Refuses links, external data and virtual data, because they
 * may refer to other files. Refuses chunks of more than MAX_CHUNK_BYTES, because a small file can
 * define a chunk that does not fit into memory. */
#include "source/digital-rf/hdf5_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 1 << 22, MAX_CHUNK_BYTES = 1 << 30 };

/* Sets *error to the inner error, with the path before its text. Returns inner->code. */
static int name_file(const char *path, const pnr_error *inner, pnr_error *error)
{
    return pnr_error_set(error, inner->code, "%.200s: %.280s", path, inner->text);
}

static hid_t open_quietly(const char *path)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* HDF5 prints no errors: the caller reports them */
    return H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
}

/* --- properties --- */

/* Opens an attribute that is a single number. Returns -1 if the attribute is missing, or is
 * something else. */
static hid_t open_number(hid_t file, const char *name, bool is_integer)
{
    const hid_t attribute = H5Aexists(file, name) > 0 ? H5Aopen(file, name, H5P_DEFAULT) : -1;
    bool is_right = false;

    if (attribute < 0)
        return -1;

    const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    const H5T_class_t class = H5Tget_class(type);

    is_right = H5Sget_simple_extent_npoints(space) == 1 &&
               (class == H5T_INTEGER || (class == H5T_FLOAT && !is_integer));
    H5Tclose(type);
    H5Sclose(space);
    if (is_right)
        return attribute;
    H5Aclose(attribute);
    return -1;
}

/* Reads an attribute that is a single integer. A value outside the signed 64-bit range becomes the
 * nearest end of that range. */
static int read_integer(hid_t file, const char *name, int64_t *out, pnr_error *error)
{
    const hid_t attribute = open_number(file, name, true);
    const bool is_read = attribute >= 0 && H5Aread(attribute, H5T_NATIVE_INT64, out) >= 0;

    if (attribute >= 0)
        H5Aclose(attribute);
    return is_read ? PNR_OK
                   : pnr_error_set(error, PNR_EDATA,
                                   "the attribute %s is missing, or is no single integer", name);
}

/* Reads the rate as versions of Digital RF before 2.3 write it: one number instead of numerator and
 * denominator. */
static int read_old_rate(hid_t file, pnr_drf_layout *out, pnr_error *error)
{
    const hid_t attribute = open_number(file, "samples_per_second", false);
    pnr_rational rate = {0};
    double hz = 0;

    if (attribute < 0 || H5Aread(attribute, H5T_NATIVE_DOUBLE, &hz) < 0 ||
        pnr_rational_from_double(hz, &rate) != PNR_OK)
        pnr_error_set(error, PNR_EDATA, "no sample_rate_numerator, and samples_per_second is %.17g",
                      hz);
    if (attribute >= 0)
        H5Aclose(attribute);
    out->rate_num = rate.num;
    out->rate_den = rate.den;
    return rate.den != 0 ? PNR_OK : PNR_EDATA;
}

static int read_attributes(hid_t file, pnr_drf_layout *out, pnr_error *error)
{
    const struct {
        const char *name;
        int64_t *value;
    } attributes[] = {
#define ATTRIBUTE(member, name, least, most) {name, &out->member},
        PNR_DRF_ATTRIBUTES(ATTRIBUTE)
#undef ATTRIBUTE
    };
    enum { N = sizeof attributes / sizeof *attributes, N_RATE = 2 };
    const bool is_old = H5Aexists(file, attributes[0].name) <= 0;
    int code = is_old ? read_old_rate(file, out, error) : PNR_OK;

    for (size_t i = is_old ? N_RATE : 0; code == PNR_OK && i < N; i++)
        code = read_integer(file, attributes[i].name, attributes[i].value, error);
    return code == PNR_OK ? pnr_drf_layout_check(out, error) : code;
}

int pnr_drf_properties_read(const char *path, pnr_drf_layout *out, pnr_error *error)
{
    const hid_t file = open_quietly(path);
    pnr_error inner = {0};
    int code;

    *out = (pnr_drf_layout){0};
    if (file < 0)
        return pnr_error_set(error, PNR_EDATA,
                             "%.200s: HDF5 cannot read it: it is cut short, or "
                             "no HDF5",
                             path);
    code = read_attributes(file, out, &inner);
    H5Fclose(file);
    return code == PNR_OK ? PNR_OK : name_file(path, &inner, error);
}

/* --- a file of samples --- */

static bool is_hard_link(hid_t file, const char *name)
{
    H5L_info_t link;

    return H5Lexists(file, name, H5P_DEFAULT) > 0 &&
           H5Lget_info(file, name, &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_HARD;
}

/* Returns the size of a chunk in bytes. 0: the data have no chunks; UINT64_MAX: the data are in
 * other files. */
static uint64_t chunk_bytes_of(hid_t data)
{
    const hid_t list = H5Dget_create_plist(data), type = H5Dget_type(data);
    hsize_t chunk[H5S_MAX_RANK];
    uint64_t bytes = 0;

    if (H5Pget_external_count(list) != 0 || H5Pget_layout(list) == H5D_VIRTUAL)
        bytes = UINT64_MAX;
    else if (H5Pget_layout(list) == H5D_CHUNKED) {
        const int rank = H5Pget_chunk(list, H5S_MAX_RANK, chunk);

        bytes = rank > 0 ? H5Tget_size(type) : UINT64_MAX;
        for (int i = 0; i < rank && bytes <= MAX_CHUNK_BYTES; i++)
            bytes *= chunk[i]; /* no overflow: bytes <= 2^30, chunk[i] < 2^32 */
    }
    H5Tclose(type);
    H5Pclose(list);
    return bytes;
}

/* Opens a data set of this file with a cache for one chunk, and reads its dimensions. */
static hid_t open_data(hid_t file, const char *name, hsize_t dims[2], pnr_error *error)
{
    hid_t data = is_hard_link(file, name) ? H5Dopen2(file, name, H5P_DEFAULT) : -1;

    if (data < 0) {
        pnr_error_set(error, PNR_EDATA, "it has no data set %s of its own", name);
        return -1;
    }

    const uint64_t bytes = chunk_bytes_of(data);
    const hid_t space = H5Dget_space(data), access = H5Pcreate(H5P_DATASET_ACCESS);
    const int rank = H5Sget_simple_extent_ndims(space);

    dims[0] = dims[1] = 1;
    if (rank == 1 || rank == 2)
        H5Sget_simple_extent_dims(space, dims, NULL);
    H5Sclose(space);
    H5Dclose(data);
    data = -1;
    if (bytes > MAX_CHUNK_BYTES)
        pnr_error_set(error, PNR_EDATA, "%s lies in another file, or in chunks of more than %d MiB",
                      name, MAX_CHUNK_BYTES >> 20);
    else if (rank != 1 && rank != 2)
        pnr_error_set(error, PNR_EDATA, "%s has %d dimensions, not 1 or 2", name, rank);
    else {
        H5Pset_chunk_cache(access, 1, bytes, 1);
        data = H5Dopen2(file, name, access);
    }
    H5Pclose(access);
    return data;
}

static int read_index(pnr_drf_file *out, pnr_error *error)
{
    hsize_t dims[2];
    const hid_t index = open_data(out->file, "rf_data_index", dims, error);
    bool is_read = false;

    if (index < 0)
        return PNR_EDATA;
    if (dims[1] != 2 || dims[0] == 0 || dims[0] > MAX_ROWS || dims[0] > out->n_data) {
        H5Dclose(index);
        return pnr_error_set(error, PNR_EDATA,
                             "rf_data_index is of %" PRIu64 " x %" PRIu64 " numbers, not of 1 to "
                             "%" PRIu64 " x 2",
                             (uint64_t)dims[0], (uint64_t)dims[1],
                             out->n_data < MAX_ROWS ? out->n_data : (uint64_t)MAX_ROWS);
    }
    out->n_rows = (size_t)dims[0];
    out->rows = calloc(out->n_rows, sizeof *out->rows);
    if (out->rows != NULL)
        is_read = H5Dread(index, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, out->rows) >= 0;
    H5Dclose(index);
    if (out->rows == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu rows of an index",
                             out->n_rows);
    return is_read ? PNR_OK : pnr_error_set(error, PNR_EDATA, "rf_data_index cannot be read");
}

/* Returns the number type of an HDF5 type. NULL: the type is not supported. */
static const pnr_number_form *find_form(hid_t type)
{
    const size_t bytes = H5Tget_size(type);
    const H5T_class_t class = H5Tget_class(type);
    char name[8] = "";

    if (class == H5T_FLOAT && bytes <= 16)
        snprintf(name, sizeof name, "f%d", bytes <= 4 ? 32 : 64);
    if (class == H5T_INTEGER && bytes <= 8)
        snprintf(name, sizeof name, "%c%zu", H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i',
                 8 * bytes);
    return pnr_number_form_find(name, strlen(name));
}

/* Returns the number type of a complex sample, which has the members r and i. NULL: the type is not
 * supported. */
static const pnr_number_form *find_complex_form(hid_t type)
{
    const pnr_number_form *forms[2] = {NULL, NULL};

    if (H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2)
        return NULL;
    for (unsigned i = 0; i < 2; i++) {
        char *name = H5Tget_member_name(type, i);
        const hid_t member = H5Tget_member_type(type, i);

        if (name != NULL && strcmp(name, i == 0 ? "r" : "i") == 0)
            forms[i] = find_form(member);
        H5free_memory(name);
        H5Tclose(member);
    }
    return forms[0] == forms[1] ? forms[0] : NULL;
}

static hid_t native_type(const pnr_number_form *form)
{
    const bool is_unsigned = form->number.is_unsigned;

    if (form->name[0] == 'f')
        return form->number.bytes == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
    switch (form->number.bytes) {
    case 1:
        return is_unsigned ? H5T_NATIVE_UINT8 : H5T_NATIVE_INT8;
    case 2:
        return is_unsigned ? H5T_NATIVE_UINT16 : H5T_NATIVE_INT16;
    case 4:
        return is_unsigned ? H5T_NATIVE_UINT32 : H5T_NATIVE_INT32;
    default:
        return is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64;
    }
}

/* Sets out->form, and out->type, the type of a sample in memory. */
static int read_type(const pnr_drf_layout *layout, pnr_drf_file *out, pnr_error *error)
{
    const hid_t type = H5Dget_type(out->data);

    out->form = layout->is_complex ? find_complex_form(type) : find_form(type);
    H5Tclose(type);
    if (out->form == NULL)
        return pnr_error_set(error, PNR_EDATA,
                             "rf_data has no type that is read: want %s, integer of 1, 2, 4 or 8 "
                             "bytes or float",
                             layout->is_complex ? "compounds of two members r and i"
                                                : "single numbers, as is_complex is 0");

    const size_t bytes = out->form->number.bytes;
    const hid_t number = native_type(out->form);

    out->type = layout->is_complex ? H5Tcreate(H5T_COMPOUND, 2 * bytes) : H5Tcopy(number);
    if (layout->is_complex) {
        H5Tinsert(out->type, "r", 0, number);
        H5Tinsert(out->type, "i", bytes, number);
    }
    return PNR_OK;
}

static int read_head(const pnr_drf_layout *layout, int64_t ms, pnr_drf_file *out, pnr_error *error)
{
    hsize_t dims[2];
    int code;

    out->data = open_data(out->file, "rf_data", dims, error);
    if (out->data < 0)
        return PNR_EDATA;
    if (dims[0] == 0 || dims[1] != (hsize_t)layout->n_channels)
        return pnr_error_set(error, PNR_EDATA,
                             "rf_data is of %" PRIu64 " x %" PRIu64
                             " samples, not of 1 or more x num_subchannels, %" PRId64,
                             (uint64_t)dims[0], (uint64_t)dims[1], layout->n_channels);
    out->n_data = dims[0];
    if ((code = read_type(layout, out, error)) != PNR_OK ||
        (code = read_index(out, error)) != PNR_OK)
        return code;
    return pnr_drf_index_check(layout, ms, out->rows, out->n_rows, out->n_data, error);
}

int pnr_drf_file_open(const char *path, const pnr_drf_layout *layout, int64_t ms, pnr_drf_file *out,
                      pnr_error *error)
{
    pnr_error inner = {0};
    int code;

    *out = (pnr_drf_file){.data = -1, .type = -1, .file = open_quietly(path)};
    if (out->file < 0) {
        out->file = 0;
        return pnr_error_set(error, PNR_EDATA,
                             "%.200s: HDF5 cannot read it: it is cut short, or no HDF5", path);
    }
    code = read_head(layout, ms, out, &inner);
    if (code == PNR_OK)
        return PNR_OK;
    inner.code = code;
    pnr_drf_file_close(out);
    return name_file(path, &inner, error);
}

int pnr_drf_file_read(const pnr_drf_file *file, const pnr_drf_layout *layout, uint64_t first,
                      size_t n, void *data, pnr_error *error)
{
    const hid_t space = H5Dget_space(file->data);
    const hsize_t start[2] = {first, 0}, count[2] = {n, (hsize_t)layout->n_channels};
    const int rank = H5Sget_simple_extent_ndims(space);
    const hid_t memory = H5Screate_simple(rank, count, NULL);
    const bool is_read =
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
        H5Dread(file->data, file->type, memory, space, H5P_DEFAULT, data) >= 0;

    H5Sclose(memory);
    H5Sclose(space);
    return is_read ? PNR_OK
                   : pnr_error_set(error, PNR_EDATA,
                                   "HDF5 cannot read rows %" PRIu64 " to %" PRIu64 " of rf_data",
                                   first, first + n - 1);
}

void pnr_drf_file_close(pnr_drf_file *file)
{
    if (file->file == 0)
        return;
    if (file->type >= 0)
        H5Tclose(file->type);
    if (file->data >= 0)
        H5Dclose(file->data);
    H5Fclose(file->file);
    free(file->rows);
    *file = (pnr_drf_file){0};
}
