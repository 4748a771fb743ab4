/* SPDX-License-Identifier: MIT */
/* CURVE keys: files of secret keys, and the folder of the public keys that may subscribe. libzmq
 * asks about a key as RFC 27 (ZAP) describes. */
#include "publisher/keys.h"

#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

enum { ZAP_PARTS = 7, ZAP_LEN = 256, MOST_FILES = 4096 };
static const char what_clients[] = "publisher.curve_clients =";

/* Reads one line of PNR_KEY_LEN characters. False: the file has other content. */
static bool read_line(int file, char key[PNR_KEY_LEN + 1])
{
    char text[PNR_KEY_LEN + 3];
    size_t n = 0;
    ssize_t got = 1;
    bool is_key;

    while (n < sizeof text && got > 0)
        n += (size_t)((got = read(file, text + n, sizeof text - n)) > 0 ? got : 0);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    is_key = n == PNR_KEY_LEN;
    if (is_key) {
        memcpy(key, text, PNR_KEY_LEN);
        key[PNR_KEY_LEN] = '\0';
    }
    explicit_bzero(text, sizeof text);
    return is_key;
}

int pnr_keys_read_secret(const char *what, const char *path, char key[PNR_KEY_LEN + 1],
                         pnr_error *error)
{
    struct stat status;
    int file, code = pnr_file_open(what, path, &file, error);

    if (code != PNR_OK)
        return code;
    if (fstat(file, &status) != 0)
        code = pnr_error_file(error, PNR_ENOINPUT, what, path, errno);
    else if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        code = pnr_error_set(error, PNR_EPERMISSION,
                             "%s %s has mode %04o, and only its owner "
                             "may have access to a secret key: chmod 600, and make a new key if "
                             "others have used this machine",
                             what, path, (unsigned)(status.st_mode & 07777));
    else if (!read_line(file, key))
        code = pnr_error_set(error, PNR_EDATA,
                             "%s %s: no CURVE secret key: want one line of 40 Z85 characters", what,
                             path);
    close(file);
    return code;
}

/* --- the folder of clients --- */

/* Reads the public key of one file as 32 bytes. False: the file is no regular file, or has no
 * key. */
static bool read_public(int folder, const char *name, unsigned char key[32])
{
    const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char text[PNR_KEY_LEN + 1];
    struct stat status;
    const bool is_key = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                        read_line(file, text) && zmq_z85_decode(key, text) != NULL;

    if (file >= 0)
        close(file);
    return is_key;
}

/* Searches the folder for a key. wanted: 32 bytes; NULL: reads all files. *n: number of files that
 * have keys. bad: the name of a file without a key, or "". Returns 1: found; 0: not found; -1: the
 * folder cannot be read. */
static int search_folder(const char *path, const unsigned char *wanted, size_t *n, char bad[256])
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    unsigned char key[32];
    int found = 0;

    *n = 0;
    bad[0] = '\0';
    if (folder == NULL)
        return -1;
    for (size_t i = 0; i < MOST_FILES && !found && (entry = readdir(folder)) != NULL; i++) {
        if (entry->d_name[0] == '.')
            continue;
        if (!read_public(dirfd(folder), entry->d_name, key)) {
            snprintf(bad, 256, "%s", entry->d_name);
            continue;
        }
        ++*n;
        found = wanted != NULL && memcmp(key, wanted, sizeof key) == 0;
    }
    closedir(folder);
    return found;
}

int pnr_keys_open(void *context, const char *folder, void **out, pnr_error *error)
{
    const int linger = 0;
    char bad[256];
    size_t n;

    *out = NULL;
    if (search_folder(folder, NULL, &n, bad) < 0)
        return pnr_error_file(error, PNR_ENOINPUT, what_clients, folder, errno);
    if (bad[0] != '\0')
        return pnr_error_set(error, PNR_EDATA,
                             "%s %s: %s holds no CURVE public key: want one line of 40 Z85 "
                             "characters in each file",
                             what_clients, folder, bad);
    if ((*out = zmq_socket(context, ZMQ_REP)) == NULL ||
        zmq_setsockopt(*out, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_bind(*out, "inproc://zeromq.zap.01") != 0)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "publisher: no ZAP socket: %s",
                             zmq_strerror(zmq_errno()));
    pnr_log(PNR_LOG_INFO, "publisher: %zu public keys in %s may subscribe", n, folder);
    return PNR_OK;
}

/* Receives the parts of a question. A part that is missing or too long has length -1. */
static void receive_question(void *socket, char parts[ZAP_PARTS][ZAP_LEN], int lengths[ZAP_PARTS])
{
    char spare[ZAP_LEN] = "";
    int more = 1;
    size_t size = sizeof more;

    for (size_t i = 0; i < ZAP_PARTS; i++)
        lengths[i] = -1;
    for (size_t i = 0; more != 0; i++) {
        const int length = zmq_recv(socket, i < ZAP_PARTS ? parts[i] : spare, ZAP_LEN, 0);

        if (length < 0)
            return;
        if (i < ZAP_PARTS && length <= ZAP_LEN)
            lengths[i] = length;
        if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0)
            return;
    }
}

bool pnr_keys_answer(void *socket, const char *folder, pnr_events *events,
                     char address[PNR_KEYS_ADDRESS_LEN])
{
    enum { REQUEST = 1, ADDRESS = 3, MECHANISM = 5, KEY = 6 };
    char parts[ZAP_PARTS][ZAP_LEN], key[PNR_KEY_LEN + 1] = "", bad[256];
    int lengths[ZAP_PARTS];
    bool is_allowed = false;
    size_t n;

    receive_question(socket, parts, lengths);
    snprintf(address, PNR_KEYS_ADDRESS_LEN, "%.*s", lengths[ADDRESS] > 0 ? lengths[ADDRESS] : 0,
             parts[ADDRESS]);
    if (lengths[MECHANISM] == 5 && memcmp(parts[MECHANISM], "CURVE", 5) == 0 &&
        lengths[KEY] == 32) {
        zmq_z85_encode(key, (const unsigned char *)parts[KEY], 32);
        is_allowed = search_folder(folder, (const unsigned char *)parts[KEY], &n, bad) == 1;
    }
    if (!is_allowed)
        pnr_event_post(events, PNR_EVENT_SUBSCRIBER_REFUSED, PNR_EVENT_NO_SAMPLE, 0, 0,
                       "subscriber %s is refused: its key %s is not in publisher.curve_clients",
                       address, key);
    zmq_send(socket, "1.0", 3, ZMQ_SNDMORE);
    zmq_send(socket, parts[REQUEST], lengths[REQUEST] > 0 ? (size_t)lengths[REQUEST] : 0,
             ZMQ_SNDMORE);
    zmq_send(socket, is_allowed ? "200" : "400", 3, ZMQ_SNDMORE);
    zmq_send(socket, is_allowed ? "" : "the key is not allowed", is_allowed ? 0 : 22, ZMQ_SNDMORE);
    zmq_send(socket, key, strlen(key), ZMQ_SNDMORE);
    zmq_send(socket, "", 0, 0);
    return is_allowed;
}
