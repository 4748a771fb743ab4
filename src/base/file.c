/* SPDX-License-Identifier: MIT */
/* Replaces files: writes a new file beside the target, and renames it. */
#include "base/file.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 512 }; /* bytes that are read from an existing file, to find its kind */

static int explain(const pnr_new_file *file, pnr_error *error)
{
    const bool is_denied = errno == EACCES || errno == EPERM || errno == EROFS;

    return pnr_error_file(error, is_denied ? PNR_EPERMISSION : PNR_EIO, file->what, file->path,
                          errno);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Opens the folder of a path. Returns -1 and sets errno if this fails. */
static int open_folder(const char *path)
{
    const size_t length = (size_t)(name_of(path) - path);
    char folder[PATH_MAX];

    if (length >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, path, length);
    folder[length] = '\0';
    return open(length > 0 ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* --- the existing target --- */

static bool is_text(const char *bytes, size_t n)
{
    for (const char *at = bytes; (at = pnr_text_find_control(at, n - (size_t)(at - bytes))); at++)
        if (strchr("\t\n\r", *at) == NULL || *at == '\0')
            return false;
    return true;
}

static bool is_ours(const char *mark, const char *head, size_t n)
{
    if (n == 0)
        return true;
    if (mark == PNR_FILE_SAMPLES)
        return !is_text(head, n);
    return n >= strlen(mark) && memcmp(head, mark, strlen(mark)) == 0;
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISLNK(mode)  ? "a symbolic link"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

/* is: the kind of the existing target, such as "a folder"; way_out: advice. */
static int refuse(const pnr_new_file *file, const char *is, const char *way_out, pnr_error *error)
{
    return pnr_refuse(error, "%s %.200s: it is %s and is not replaced: %s", file->what, file->path,
                      is, way_out);
}

/* Checks that the target does not exist or may be replaced. *mode: its permissions; 0: it does not
 * exist. */
static int check_target(const pnr_new_file *file, mode_t *mode, pnr_error *error)
{
    const char *name = name_of(file->path)[0] != '\0' ? name_of(file->path) : ".";
    char head[HEAD_BYTES];
    struct stat status;
    ssize_t n;
    int fd;

    *mode = 0;
    if (fstatat(file->folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? PNR_OK : explain(file, error);
    if (!S_ISREG(status.st_mode))
        return refuse(file, kind_of(status.st_mode),
                      S_ISLNK(status.st_mode) ? "name the file itself" : "choose another name",
                      error);
    if (faccessat(file->folder, name, W_OK, 0) != 0 ||
        (fd = openat(file->folder, name,
                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0)
        return explain(file, error);
    n = read(fd, head, sizeof head);
    close(fd);
    if (n < 0)
        return explain(file, error);
    if (!is_ours(file->mark, head, (size_t)n))
        return refuse(file,
                      file->mark == PNR_FILE_SAMPLES ? "text, no samples,"
                                                     : "a file that this program did not write",
                      "remove it, or choose another name", error);
    *mode = status.st_mode & 07777;
    return PNR_OK;
}

/* --- the new file --- */

static int create_beside(pnr_new_file *file, mode_t mode, pnr_error *error)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return explain(file, error);
    snprintf(file->name, sizeof file->name, ".pnradar-%016llx", (unsigned long long)number);
    file->fd =
        openat(file->folder, file->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file->fd < 0) {
        file->name[0] = '\0'; /* pnr_new_file_discard must not remove a file of this name */
        return explain(file, error);
    }
    if (mode != 0)
        (void)fchmod(file->fd, mode);
    return PNR_OK;
}

int pnr_new_file_create(const char *what, const char *path, const char *mark, pnr_new_file *file,
                        pnr_error *error)
{
    mode_t mode;
    int code;

    *file = (pnr_new_file){
        .fd = -1, .folder = open_folder(path), .what = what, .path = path, .mark = mark};
    if (file->folder < 0)
        return explain(file, error);
    if ((code = check_target(file, &mode, error)) != PNR_OK ||
        (code = create_beside(file, mode, error)) != PNR_OK)
        pnr_new_file_discard(file);
    return code;
}

int pnr_new_file_check(const char *what, const char *path, const char *mark, pnr_error *error)
{
    pnr_new_file file;
    const int code = pnr_new_file_create(what, path, mark, &file, error);

    pnr_new_file_discard(&file);
    return code;
}

int pnr_new_file_write(const pnr_new_file *file, const void *bytes, size_t n, pnr_error *error)
{
    const char *at = bytes;

    while (n > 0) {
        const ssize_t taken = write(file->fd, at, n);

        if (taken < 0 && errno == EINTR)
            continue;
        if (taken <= 0)
            return explain(file, error);
        at += taken;
        n -= (size_t)taken;
    }
    return PNR_OK;
}

/* Waits until the new name in the folder is on the disk. Ignores a folder that cannot be opened or
 * does not support fsync, because the file itself is on the disk already. */
static int sync_folder(const pnr_new_file *file, pnr_error *error)
{
    const int fd = openat(file->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = PNR_OK;

    if (fd >= 0 && fsync(fd) != 0 && errno != EINVAL)
        code = explain(file, error);
    if (fd >= 0)
        close(fd);
    return code;
}

int pnr_new_file_finish(pnr_new_file *file, bool lasting, pnr_error *error)
{
    mode_t mode;
    int code = check_target(file, &mode, error);

    if (code == PNR_OK && lasting && fsync(file->fd) != 0)
        code = explain(file, error);
    if (close(file->fd) != 0 && code == PNR_OK)
        code = explain(file, error);
    file->fd = -1;
    if (code == PNR_OK &&
        renameat(file->folder, file->name, file->folder, name_of(file->path)) != 0)
        code = explain(file, error);
    if (code == PNR_OK) {
        file->name[0] = '\0';
        if (lasting)
            code = sync_folder(file, error);
    }
    pnr_new_file_discard(file);
    return code;
}

void pnr_new_file_discard(pnr_new_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->name[0] != '\0')
        (void)unlinkat(file->folder, file->name, 0);
    if (file->folder >= 0)
        close(file->folder);
    *file = (pnr_new_file)PNR_NEW_FILE_NONE;
}

/* --- other files --- */

int pnr_file_open(const char *what, const char *path, int *fd, pnr_error *error)
{
    struct stat status;
    const bool is_there = stat(path, &status) == 0;

    *fd = -1;
    if (is_there && !S_ISREG(status.st_mode))
        return pnr_error_set(error, PNR_ENOINPUT,
                             "%s %.200s: it is %s, not a regular file: name one", what, path,
                             kind_of(status.st_mode));
    if (is_there)
        *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*fd >= 0)
        return PNR_OK;
    return pnr_error_file(error, errno == EACCES ? PNR_EPERMISSION : PNR_ENOINPUT, what, path,
                          errno);
}

bool pnr_file_rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0 ||
           (errno != EEXIST && rename(from, to) == 0);
}

bool pnr_file_is_same(const char *a, const char *b)
{
    struct stat at, bt;

    return strcmp(a, b) == 0 || (stat(a, &at) == 0 && stat(b, &bt) == 0 && at.st_dev == bt.st_dev &&
                                 at.st_ino == bt.st_ino);
}

ino_t pnr_file_inode(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}
