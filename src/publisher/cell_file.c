/* SPDX-License-Identifier: MIT */
/* Writes profiles and maps to a numpy array (NEP 1), and the headers of their messages to a second
 * file beside it. */
#include "publisher/cell_file.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 256, PREFIX = 10 /* bytes before the text: magic string, version, length */ };

/* A file that only grows. */
typedef struct growing {
    int fd; /* -1: not open */
    uint64_t n_bytes;
    char *path;
} growing;

struct pnr_cell_file {
    growing array, axes;
    uint64_t n_results;
    char text[PNR_MESSAGE_MAX];
};

static int explain_file(const growing *file, pnr_error *error)
{
    const int code =
        errno == EACCES || errno == EPERM || errno == EROFS ? PNR_EPERMISSION : PNR_EIO;

    return pnr_error_set(error, code, "cannot write '%.200s': %s", file->path, strerror(errno));
}

static int write_at(const growing *file, const void *data, size_t n_bytes, uint64_t at,
                    pnr_error *error)
{
    const char *from = data;

    while (n_bytes > 0) {
        const ssize_t done = pwrite(file->fd, from, n_bytes, (off_t)at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return explain_file(file, error);
        from += done;
        at += (uint64_t)done;
        n_bytes -= (size_t)done;
    }
    return PNR_OK;
}

static int append(growing *file, const void *data, size_t n_bytes, pnr_error *error)
{
    const int code = write_at(file, data, n_bytes, file->n_bytes, error);

    if (code == PNR_OK)
        file->n_bytes += n_bytes;
    return code;
}

/* Writes the head of the array. Its length is HEAD bytes for any number of results. */
static int write_head(pnr_cell_file *file, const pnr_map_info *info, pnr_error *error)
{
    char head[HEAD + 1];
    int n;

    memcpy(head, "\x93NUMPY\x01", 7);
    head[7] = 0;
    head[8] = (char)((HEAD - PREFIX) & 255);
    head[9] = (char)((HEAD - PREFIX) >> 8);
    n = snprintf(head + PREFIX, sizeof head - PREFIX,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%llu, %zu, %zu, %zu), }",
                 info->row.is_complex ? "<c8" : "<f4", (unsigned long long)file->n_results,
                 info->n_codes, info->n_rows, info->row.n_cells);
    memset(head + PREFIX + n, ' ', (size_t)(HEAD - PREFIX - n));
    head[HEAD - 1] = '\n';
    return write_at(&file->array, head, HEAD, 0, error);
}

/* The first bytes of an array and of a file of axes. An earlier file may be replaced if it begins
 * with them. */
static const char array_mark[] = "\x93NUMPY", axes_mark[] = "{";

static int open_growing(growing *file, const char *mark, pnr_error *error)
{
    const int code = pnr_new_file_check("--profile", file->path, mark, error);

    if (code != PNR_OK)
        return code;
    file->fd = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    return file->fd >= 0 ? PNR_OK : explain_file(file, error);
}

/* Copies the path of the array, and derives the path of the .jsonl file from it. */
static int name_files(pnr_cell_file *file, const char *path, pnr_error *error)
{
    static const char ending[] = ".npy", other[] = ".jsonl";
    const size_t length = strlen(path), stem = length - (sizeof ending - 1);

    if (length < sizeof ending || strcmp(path + stem, ending) != 0)
        return pnr_error_set(error, PNR_EUSAGE, "--profile: '%.200s' does not end in %s", path,
                             ending);
    file->array.path = strdup(path);
    file->axes.path = malloc(stem + sizeof other);
    if (file->array.path == NULL || file->axes.path == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "--profile: out of memory");
    memcpy(file->axes.path, path, stem);
    memcpy(file->axes.path + stem, other, sizeof other);
    return PNR_OK;
}

int pnr_cell_file_create(const char *path, pnr_cell_file **out, pnr_error *error)
{
    pnr_cell_file *file = calloc(1, sizeof *file);
    int code;

    *out = NULL;
    if (file == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "--profile: out of memory");
    file->array.fd = file->axes.fd = -1;
    file->array.n_bytes = HEAD;
    if ((code = name_files(file, path, error)) == PNR_OK &&
        (code = pnr_new_file_check("--profile", file->array.path, array_mark, error)) == PNR_OK &&
        (code = pnr_new_file_check("--profile", file->axes.path, axes_mark, error)) == PNR_OK)
        *out = file;
    else
        (void)pnr_cell_file_close(file, false, NULL);
    return code;
}

/* Opens both files if they are not open yet. */
static int open_files(pnr_cell_file *file, pnr_error *error)
{
    static const pnr_map_info none;
    int code = PNR_OK;

    if (file->axes.fd < 0 && (code = open_growing(&file->array, array_mark, error)) == PNR_OK &&
        (code = open_growing(&file->axes, axes_mark, error)) == PNR_OK)
        code = write_head(file, &none, error);
    return code;
}

int pnr_cell_file_write(pnr_cell_file *file, const pnr_report *report, const pnr_map_info *info,
                        const float *cells, pnr_error *error)
{
    const size_t n_bytes = info->n_codes * info->n_rows * info->row.n_cells * sizeof *cells *
                           (info->row.is_complex ? 2 : 1);
    const size_t length =
        pnr_message_write_cells(report, file->n_results, info, file->text, sizeof file->text - 1);
    int code;

    if ((code = open_files(file, error)) != PNR_OK)
        return code;
    if (length == 0)
        return pnr_error_set(error, PNR_EINTERNAL, "--profile: the axes of a result have no room");
    file->text[length] = '\n';
    if ((code = append(&file->array, cells, n_bytes, error)) != PNR_OK ||
        (code = append(&file->axes, file->text, length + 1, error)) != PNR_OK)
        return code;
    file->n_results++;
    return write_head(file, info, error);
}

static int close_growing(growing *file, pnr_error *error)
{
    const int code = file->fd < 0 || close(file->fd) == 0 ? PNR_OK : explain_file(file, error);

    free(file->path);
    return code;
}

int pnr_cell_file_close(pnr_cell_file *file, bool wants_empty, pnr_error *error)
{
    int codes[3] = {PNR_OK};
    size_t first = 0;

    if (file == NULL)
        return PNR_OK;
    if (wants_empty)
        codes[0] = open_files(file, error);
    codes[1] = close_growing(&file->array, codes[0] == PNR_OK ? error : NULL);
    codes[2] = close_growing(&file->axes, codes[0] == PNR_OK && codes[1] == PNR_OK ? error : NULL);
    free(file);
    while (first < 2 && codes[first] == PNR_OK)
        first++;
    return codes[first];
}
