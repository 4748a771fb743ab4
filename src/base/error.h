/* SPDX-License-Identifier: MIT */
/* One list of all errors defines their codes, their texts and the exit statuses of the programs. */
#ifndef PNR_ERROR_H
#define PNR_ERROR_H

#include <stddef.h>

/*
 * Each row is X(name, value, exit status, text). EAGAIN: the same call may succeed soon. EEND: the
 * stream has ended, and later calls fail too. The exit statuses are as in sysexits.h. 75 means that
 * the GPU was lost; a supervisor then restarts the program. PNR_EXIT_LOST is not in this list.
 */
#define PNR_ERRORS(X)                                                                              \
    X(OK, 0, 0, "done")                                                                            \
    X(EAGAIN, -1, 70, "not yet: try again later")                                                  \
    X(EEND, -2, 0, "the stream has ended")                                                         \
    X(EUSAGE, -3, 64, "wrong usage")                                                               \
    X(EDATA, -4, 65, "bad data")                                                                   \
    X(ENOINPUT, -5, 66, "no input")                                                                \
    X(EUNAVAILABLE, -6, 69, "engine or service not available")                                     \
    X(EUNSUPPORTED, -7, 69, "not supported by this engine")                                        \
    X(ENOMEMORY, -8, 69, "out of memory")                                                          \
    X(EINTERNAL, -9, 70, "internal error")                                                         \
    X(EENGINE, -10, 70, "the engine failed on this submit")                                        \
    X(EIO, -11, 74, "input/output error")                                                          \
    X(ELOST, -12, 75, "the GPU is lost: restart the program")                                      \
    X(EPERMISSION, -13, 77, "permission denied")                                                   \
    X(ECONFIG, -14, 78, "bad configuration")

enum {
#define PNR_ERROR_ENUM(name, value, status, text) PNR_##name = (value),
    PNR_ERRORS(PNR_ERROR_ENUM)
#undef PNR_ERROR_ENUM
};

enum { PNR_EXIT_LOST = 3 }; /* exit status with --strict: something was lost */

/* An error with an explanation: the code, and a line with the wrong value. The caller owns it. */
typedef struct pnr_error {
    int code;       /* a PNR_E..., or PNR_OK */
    char text[512]; /* one line, no trailing newline */
} pnr_error;

/* Fills *error (may be NULL) and returns code, for use as `return pnr_error_set(...)`. */
int pnr_error_set(pnr_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Like pnr_error_set, with PNR_ECONFIG, the error of a refused configuration. */
#define pnr_refuse(error, ...) pnr_error_set(error, PNR_ECONFIG, __VA_ARGS__)

/* Sets *error after a failed call on a file. number: the errno of the call. what: the key or
 * option, as "--truth". The message is `what path: reason`. If the file does not exist, the message
 * also names the folder of the path if this folder is missing too, else the working directory if
 * the path is relative. */
int pnr_error_file(pnr_error *error, int code, const char *what, const char *path, int number);

const char *pnr_error_name(int code); /* "EDATA"; "EUNKNOWN" for an unknown error code */
const char *pnr_error_text(int code); /* text of this error in PNR_ERRORS; never NULL */
int pnr_error_exit(int code);         /* exit status of the programs for this error */

#endif
