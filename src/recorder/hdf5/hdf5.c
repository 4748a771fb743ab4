/* SPDX-License-Identifier: MIT */
/* Writes results as records of an HDF5 file, with the fields of packed messages. The file of a run
 * has its final name only when it is complete. A killed program leaves PATH.partial, which is
 * readable up to the last block. */
#include "base/text.h"
#include "recorder/result_file.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_RECORDS = 1024 };

static const char key[] = "recorder.results";

typedef struct table {
    const char *path;
    char partial[PATH_MAX];
    hid_t file, type, data;
    hsize_t n_written;
    size_t n_waiting; /* records in `records` that wait to be written */
    bool has_run;
    pnr_record records[BLOCK_RECORDS];
} table;

static int explain(const table *t, const char *what, pnr_error *error)
{
    return pnr_error_set(error, PNR_EIO, "%s %.300s: %s: %s", key, t->partial, what,
                         errno != 0 ? strerror(errno) : "HDF5 failed");
}

/* Stops HDF5 from printing errors in this thread, because the recorder reports them. */
static void be_quiet(void)
{
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* Makes the type of a field from its name in numpy, such as "<u8", "<i8", "<f4" or "|S16". */
static hid_t type_of(const char *numpy)
{
    const size_t size = (size_t)atoi(numpy + 2);
    hid_t type;

    if (numpy[1] == 'S') {
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, size);
        H5Tset_strpad(type, H5T_STR_NULLPAD);
        return type;
    }
    type = H5Tcopy(numpy[1] == 'f'   ? (size == 8 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE)
                   : numpy[1] == 'u' ? (size == 8 ? H5T_STD_U64LE : H5T_STD_U32LE)
                                     : H5T_STD_I64LE);
    return type;
}

static hid_t make_type(void)
{
    const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(pnr_record));

#define ADD_FIELD(c_type, numpy, name)                                                             \
    {                                                                                              \
        const hid_t field = type_of(numpy);                                                        \
        H5Tinsert(type, #name, offsetof(pnr_record, name), field);                                 \
        H5Tclose(field);                                                                           \
    }
    PNR_RECORD_FIELDS(ADD_FIELD, ADD_FIELD)
    return type;
}

static void add_text(const table *t, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    hid_t attribute;

    H5Tset_size(type, strlen(text) + 1);
    attribute = H5Acreate2(t->data, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, type, text);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
}

/* Writes the attributes of the run once, at its first result. */
static void add_run(table *t, const pnr_report *report)
{
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t rate =
        H5Acreate2(t->data, "rate_hz", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT);

    H5Awrite(rate, H5T_NATIVE_DOUBLE, &report->rate_hz);
    H5Aclose(rate);
    H5Sclose(space);
    add_text(t, "run", report->run);
    add_text(t, "stream", report->stream);
    add_text(t, "engine", report->engine);
    t->has_run = true;
}

static int create_data(table *t, pnr_error *error)
{
    const hsize_t none = 0, any = H5S_UNLIMITED, chunk = BLOCK_RECORDS;
    const hid_t space = H5Screate_simple(1, &none, &any);
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);

    H5Pset_chunk(properties, 1, &chunk);
    t->type = make_type();
    t->data = H5Dcreate2(t->file, "results", t->type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    H5Pclose(properties);
    H5Sclose(space);
    return t->data >= 0 && H5Fflush(t->file, H5F_SCOPE_GLOBAL) >= 0 ? PNR_OK
                                                                    : explain(t, "create", error);
}

static int refuse_existing(const char *path, pnr_error *error)
{
    return pnr_refuse(error,
                      "%s %.300s: it exists and is not replaced: remove it, or choose "
                      "another name",
                      key, path);
}

static int table_open(const char *path, void **state, pnr_error *error)
{
    table *t = calloc(1, sizeof *t);
    int fd;

    *state = t;
    if (t == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "recorder: out of memory");
    t->path = path;
    t->file = t->type = t->data = -1;
    if ((size_t)snprintf(t->partial, sizeof t->partial, "%s.partial", path) >= sizeof t->partial)
        return pnr_error_file(error, PNR_EIO, key, path, ENAMETOOLONG);
    if (access(path, F_OK) == 0)
        return refuse_existing(path, error);
    fd = open(t->partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return refuse_existing(t->partial, error);
    if (fd < 0)
        return pnr_error_file(error, errno == EACCES ? PNR_EPERMISSION : PNR_EIO, key, t->partial,
                              errno);
    close(fd);
    be_quiet();
    t->file = H5Fcreate(t->partial, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    return t->file >= 0 ? create_data(t, error) : explain(t, "create", error);
}

/* Writes the waiting records and flushes the file, so that all of them are readable. After an error
 * the file has only the records that were written before. */
static int write_block(table *t, pnr_error *error)
{
    const hsize_t n = t->n_waiting, end = t->n_written + n;
    hid_t space, memory;
    bool is_good;

    t->n_waiting = 0;
    if (n == 0)
        return PNR_OK;
    be_quiet();
    errno = 0;
    is_good = H5Dset_extent(t->data, &end) >= 0;
    space = H5Dget_space(t->data);
    memory = H5Screate_simple(1, &n, NULL);
    is_good = is_good &&
              H5Sselect_hyperslab(space, H5S_SELECT_SET, &t->n_written, NULL, &n, NULL) >= 0 &&
              H5Dwrite(t->data, t->type, memory, space, H5P_DEFAULT, t->records) >= 0 &&
              H5Fflush(t->file, H5F_SCOPE_GLOBAL) >= 0;
    H5Sclose(space);
    H5Sclose(memory);
    if (is_good) {
        t->n_written = end;
        return PNR_OK;
    }

    const int code = explain(t, "write", error);

    (void)H5Dset_extent(t->data, &t->n_written);
    return code;
}

static int table_add(void *state, const pnr_report *report, pnr_error *error)
{
    table *t = state;
    const size_t n = report->detection.n_echoes > 0 ? report->detection.n_echoes : 1;

    if (!t->has_run)
        add_run(t, report);
    if (t->n_waiting + n > BLOCK_RECORDS && write_block(t, error) != PNR_OK)
        return PNR_EIO;
    for (size_t i = 0; i < n; i++)
        pnr_message_fill_record(report, i, &t->records[t->n_waiting++]);
    return PNR_OK;
}

static int table_sync(void *state, pnr_error *error)
{
    return write_block(state, error);
}

static int table_close(void *state, pnr_error *error)
{
    table *t = state;
    bool is_good = true;
    int code = PNR_OK;

    if (t == NULL)
        return PNR_OK;
    be_quiet();
    errno = 0;
    if (t->data >= 0)
        is_good = H5Dclose(t->data) >= 0;
    if (t->type >= 0)
        H5Tclose(t->type);
    if (t->file >= 0) {
        is_good = H5Fclose(t->file) >= 0 && is_good;
        if (!is_good || link(t->partial, t->path) != 0 || unlink(t->partial) != 0)
            code = explain(t, "close", error);
    }
    free(t);
    return code;
}

__attribute__((visibility("default"))) const pnr_result_file *pnr_result_file_get(void);

const pnr_result_file *pnr_result_file_get(void)
{
    static const pnr_result_file file = {.is_block = true,
                                         .open = table_open,
                                         .add = table_add,
                                         .sync = table_sync,
                                         .close = table_close};

    return &file;
}
