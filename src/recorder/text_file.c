/* SPDX-License-Identifier: MIT */
/* Appends results to a file as JSON lines or CSV. Each result is one write of whole lines. */
#include "base/text.h"
#include "publisher/report.h"
#include "recorder/result_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES_BYTES = 2 * PNR_MESSAGE_MAX, LAST_BYTES = 1 << 12 };

static const char key[] = "recorder.results";

typedef struct text_file {
    int fd;
    const char *path;
    off_t n_bytes; /* bytes of the whole lines in the file */
    pnr_printer printer;
    FILE *memory; /* the stream of the printer; its memory is `lines` */
    char lines[LINES_BYTES];
} text_file;

static int explain(const text_file *f, pnr_error *error)
{
    const bool is_denied = errno == EACCES || errno == EPERM || errno == EROFS;

    return pnr_error_file(error, is_denied ? PNR_EPERMISSION : PNR_EIO, key, f->path, errno);
}

/* Appends the printed text. After an error the file is unchanged. */
static int append_lines(text_file *f, size_t length, pnr_error *error)
{
    size_t done = 0;

    while (done < length) {
        const ssize_t n = write(f->fd, f->lines + done, length - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            const int number = errno;

            (void)!ftruncate(f->fd, f->n_bytes);
            errno = number;
            return explain(f, error);
        }
        done += (size_t)n;
    }
    f->n_bytes += (off_t)length;
    return PNR_OK;
}

/* Prints a result to f->lines. If `report` is NULL, prints the header of CSV, or nothing for JSON.
 * Returns the length. */
static size_t print_lines(text_file *f, const pnr_report *report)
{
    rewind(f->memory);
    if (report != NULL)
        (void)pnr_printer_print(&f->printer, report, NULL);
    else
        (void)pnr_printer_finish(&f->printer);
    return fflush(f->memory) == 0 ? (size_t)ftell(f->memory) : 0;
}

/* Checks that an existing file begins with `head`, as files of its kind do. */
static int check_head(text_file *f, const char *head, size_t length, pnr_error *error)
{
    char *there = malloc(length + 1);
    const ssize_t n = there != NULL ? pread(f->fd, there, length, 0) : -1;
    const bool is_ours = n == (ssize_t)length && memcmp(there, head, length) == 0;

    free(there);
    return is_ours ? PNR_OK
                   : pnr_refuse(error,
                                "%s %.300s: it does not begin with %.60s... as a file of "
                                "this program does, and is not changed: choose another name",
                                key, f->path, head);
}

/* Removes the last line if it has no line end. A killed program may leave such a line. */
static int cut_last_line(text_file *f, pnr_error *error)
{
    char last[LAST_BYTES];

    while (f->n_bytes > 0) {
        const off_t from = f->n_bytes > LAST_BYTES ? f->n_bytes - LAST_BYTES : 0;
        const ssize_t n = pread(f->fd, last, (size_t)(f->n_bytes - from), from);
        const char *end = n > 0 ? memrchr(last, '\n', (size_t)n) : NULL;

        if (n <= 0)
            return explain(f, error);
        f->n_bytes = end != NULL ? from + (end + 1 - last) : from;
        if (end != NULL)
            break;
    }
    return ftruncate(f->fd, f->n_bytes) == 0 ? PNR_OK : explain(f, error);
}

static int open_path(text_file *f, pnr_error *error)
{
    struct stat status;

    f->fd =
        open(f->path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
             0666);
    if (f->fd < 0 && errno == ELOOP)
        return pnr_refuse(error, "%s %.300s: it is a symbolic link: name the file itself", key,
                          f->path);
    if (f->fd < 0 || fstat(f->fd, &status) != 0)
        return explain(f, error);
    if (!S_ISREG(status.st_mode))
        return pnr_refuse(error, "%s %.300s: it is no regular file: choose another name", key,
                          f->path);
    f->n_bytes = status.st_size;
    return PNR_OK;
}

static int text_close(void *state, pnr_error *error)
{
    text_file *f = state;

    if (f == NULL)
        return PNR_OK;

    const int code = f->fd >= 0 && close(f->fd) != 0 ? explain(f, error) : PNR_OK;

    if (f->memory != NULL)
        fclose(f->memory);
    free(f);
    return code;
}

static int text_open(const char *path, pnr_print print, const char *json_head, void **state,
                     pnr_error *error)
{
    text_file *f = calloc(1, sizeof *f);
    size_t length;
    int code;

    *state = f;
    if (f != NULL)
        f->fd = -1;
    if (f == NULL || (f->memory = fmemopen(f->lines, sizeof f->lines, "w")) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "recorder: out of memory");
    f->path = path;
    pnr_printer_init(&f->printer, f->memory, print, false);
    if ((code = open_path(f, error)) != PNR_OK)
        return code;
    length = print_lines(f, NULL);
    if (f->n_bytes == 0)
        return append_lines(f, length, error);
    code = length > 0 ? check_head(f, f->lines, length, error)
                      : check_head(f, json_head, strlen(json_head), error);
    return code == PNR_OK ? cut_last_line(f, error) : code;
}

static int json_open(const char *path, void **state, pnr_error *error)
{
    return text_open(path, PNR_PRINT_JSON, "{\"v\":", state, error);
}

static int csv_open(const char *path, void **state, pnr_error *error)
{
    return text_open(path, PNR_PRINT_CSV, "", state, error);
}

static int text_add(void *state, const pnr_report *report, pnr_error *error)
{
    text_file *f = state;
    const size_t length = print_lines(f, report);

    return length > 0
               ? append_lines(f, length, error)
               : pnr_error_set(error, PNR_EIO, "%s %.300s: a result is too long", key, f->path);
}

static int text_sync(void *state, pnr_error *error)
{
    text_file *f = state;

    return fdatasync(f->fd) == 0 ? PNR_OK : explain(f, error);
}

const pnr_result_file pnr_result_file_json = {
    .open = json_open, .add = text_add, .sync = text_sync, .close = text_close};
const pnr_result_file pnr_result_file_csv = {
    .open = csv_open, .add = text_add, .sync = text_sync, .close = text_close};
