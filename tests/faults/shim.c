/* SPDX-License-Identifier: MIT */
/* A library for LD_PRELOAD that makes one call of the C library fail. PNR_SHIM =
 * call[@object]:n[+]=error: the n-th call fails, from 1; with + all later ones, too. call: malloc,
 * read, write, open, fsync, rename, thread. object: only calls from objects whose path contains
 * this, as malloc@libzmq. error: ENOSPC, EIO, ... or short, which halves a read or a write. Reads
 * and writes count only on files, FIFOs and devices, and writes to standard error never fail. A
 * failed call creates the file PNR_SHIM_HIT. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { SHORT = -1, WORD_LEN = 32 };

static const struct {
    const char *name;
    int number;
} errors[] = {
    {"short", SHORT},   {"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},
    {"EMFILE", EMFILE}, {"EACCES", EACCES}, {"ENOMEM", ENOMEM}, {"EAGAIN", EAGAIN},
};

static struct {
    char call[WORD_LEN], object[WORD_LEN];
    long first;
    bool goes_on;
    int error; /* 0: no call fails */
    const char *hit;
    atomic_long n;
} shim;

/* Copies the text before `end` and returns the text after it. */
static const char *take_word(const char *text, const char *end, char out[WORD_LEN])
{
    const size_t length = strcspn(text, end);

    memcpy(out, text, length < WORD_LEN ? length : WORD_LEN - 1);
    return text + length;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("PNR_SHIM");
    char *end;

    if (text == NULL || strncmp(program_invocation_short_name, "pnradar", 7) != 0)
        return;
    shim.hit = getenv("PNR_SHIM_HIT");
    text = take_word(text, "@:", shim.call);
    if (*text == '@')
        text = take_word(text + 1, ":", shim.object);
    shim.first = strtol(text + 1, &end, 10);
    shim.goes_on = *end == '+';
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(end + 1 + shim.goes_on, errors[i].name) == 0)
            shim.error = errors[i].number;
    if (shim.error == 0)
        abort(); /* a mistake in the table */
}

/* Counts a call. Returns the error that it gives, or 0. */
static int fails(const char *call, const void *caller)
{
    Dl_info info;

    if (shim.error == 0 || strcmp(call, shim.call) != 0)
        return 0;
    if (shim.object[0] != '\0' &&
        (dladdr(caller, &info) == 0 || strstr(info.dli_fname, shim.object) == NULL))
        return 0;

    const long n = atomic_fetch_add(&shim.n, 1) + 1;

    if (n != shim.first && !(shim.goes_on && n > shim.first))
        return 0;
    if (shim.hit != NULL)
        syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, shim.hit, O_CREAT | O_WRONLY, 0600));
    return shim.error;
}

#define FAILS(call) fails(call, __builtin_return_address(0))

/* --- memory --- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

EXPORT void *malloc(size_t size)
{
    return FAILS("malloc") ? (errno = ENOMEM, NULL) : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return FAILS("malloc") ? (errno = ENOMEM, NULL) : __libc_calloc(count, size);
}

EXPORT void *realloc(void *old, size_t size)
{
    return FAILS("malloc") ? (errno = ENOMEM, NULL) : __libc_realloc(old, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return FAILS("malloc") ? (errno = ENOMEM, NULL) : __libc_memalign(alignment, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *memory = FAILS("malloc") ? NULL : __libc_memalign(alignment, size);

    if (memory == NULL)
        return ENOMEM;
    *out = memory;
    return 0;
}

/* --- files --- */

static bool is_file(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 &&
           (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode));
}

/* Returns the number of bytes to move, or -1 for a failure. */
static ssize_t allowed(int error, size_t n)
{
    if (error == 0)
        return (ssize_t)n;
    if (error == SHORT)
        return (ssize_t)((n + 1) / 2);
    errno = error;
    return -1;
}

EXPORT ssize_t read(int fd, void *out, size_t n)
{
    const ssize_t most = allowed(is_file(fd) ? FAILS("read") : 0, n);

    return most < 0 ? most : syscall(SYS_read, fd, out, most);
}

EXPORT ssize_t pread(int fd, void *out, size_t n, off_t at)
{
    const ssize_t most = allowed(is_file(fd) ? FAILS("read") : 0, n);

    return most < 0 ? most : syscall(SYS_pread64, fd, out, most, at);
}

EXPORT ssize_t write(int fd, const void *from, size_t n)
{
    const ssize_t most = allowed(fd != STDERR_FILENO && is_file(fd) ? FAILS("write") : 0, n);

    return most < 0 ? most : syscall(SYS_write, fd, from, most);
}

EXPORT ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    const ssize_t most = allowed(fd != STDERR_FILENO && is_file(fd) ? FAILS("write") : 0, n);

    return most < 0 ? most : syscall(SYS_pwrite64, fd, from, most, at);
}

static int open_at(int error, int folder, const char *path, int flags, mode_t mode)
{
    return error != 0 ? (errno = error, -1) : (int)syscall(SYS_openat, folder, path, flags, mode);
}

static mode_t mode_of(int flags, va_list arguments)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_at(FAILS("open"), folder, path, flags, mode);
}

EXPORT int open(const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_at(FAILS("open"), AT_FDCWD, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...) __attribute__((alias("open")));

EXPORT int fsync(int fd)
{
    const int error = FAILS("fsync");

    return error != 0 ? (errno = error, -1) : (int)syscall(SYS_fsync, fd);
}

EXPORT int fdatasync(int fd)
{
    const int error = FAILS("fsync");

    return error != 0 ? (errno = error, -1) : (int)syscall(SYS_fdatasync, fd);
}

EXPORT int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    const int error = FAILS("rename");

    return error != 0 ? (errno = error, -1)
                      : (int)syscall(SYS_renameat, from_folder, from, to_folder, to);
}

EXPORT int renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags)
{
    const int error = FAILS("rename");

    return error != 0 ? (errno = error, -1)
                      : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

/* --- threads --- */

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    const int error = FAILS("thread");

    if (error != 0)
        return error;
    *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, attributes, start, argument);
}
