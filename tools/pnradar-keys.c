/* SPDX-License-Identifier: MIT */
/* pnradar-keys: creates CURVE keys for a publisher or a subscriber. */
#include "cli.h"
#include "publisher/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

enum { LONGEST = 4096 };

/* Creates a file with a key and a line break. Never replaces an existing file. */
static int write_key(const char *path, mode_t mode, const char *key, pnr_error *error)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    char line[PNR_KEY_LEN + 2];
    int code = PNR_OK;

    if (file < 0)
        return errno == EEXIST
                   ? pnr_refuse(error, "%s exists already: take another NAME, or remove it", path)
                   : pnr_error_set(error, errno == EACCES ? PNR_EPERMISSION : PNR_EIO, "%s: %s",
                                   path, strerror(errno));
    snprintf(line, sizeof line, "%s\n", key);
    if (fchmod(file, mode) != 0 || write(file, line, PNR_KEY_LEN + 1) != PNR_KEY_LEN + 1 ||
        fsync(file) != 0)
        code = pnr_error_set(error, PNR_EIO, "%s: %s", path, strerror(errno));
    if (close(file) != 0 && code == PNR_OK)
        code = pnr_error_set(error, PNR_EIO, "%s: %s", path, strerror(errno));
    if (code != PNR_OK)
        (void)unlink(path);
    explicit_bzero(line, sizeof line);
    return code;
}

/* Writes NAME.secret and NAME.public. After an error, neither file remains. */
static int make_pair(const char *name, pnr_error *error)
{
    char public[PNR_KEY_LEN + 1], secret[PNR_KEY_LEN + 1];
    char secret_path[LONGEST], public_path[LONGEST];
    int code;

    if ((size_t)snprintf(secret_path, LONGEST, "%s.secret", name) >= LONGEST)
        return pnr_error_set(error, PNR_EUSAGE, "NAME is longer than %d bytes", LONGEST - 8);
    snprintf(public_path, LONGEST, "%s.public", name);
    if (zmq_curve_keypair(public, secret) != 0)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "this libzmq was built without CURVE");
    if ((code = write_key(public_path, 0644, public, error)) == PNR_OK &&
        (code = write_key(secret_path, 0600, secret, error)) != PNR_OK)
        (void)unlink(public_path);
    explicit_bzero(secret, sizeof secret);
    if (code == PNR_OK && printf("%s\n", public) < 0)
        code = pnr_error_set(error, PNR_EIO, "stdout: %s", strerror(errno));
    return code;
}

int main(int argc, char **argv)
{
    static const pnr_cli_option options[] = {{0}};
    pnr_cli cli = {
        .program = "pnradar-keys",
        .usage = "NAME",
        .summary = "Makes a pair of CURVE keys: NAME.secret, which only its owner may read, and "
                   "NAME.public.\nPrints the public key.",
        .examples = "pnradar-keys radar\n"
                    "pnradar-keys alice",
        .options = options,
        .max_operands = 1,
    };
    pnr_config config;
    pnr_error error = {0};
    int code = pnr_cli_parse(&cli, argc, argv, &config, &error);

    if (code == PNR_OK && cli.n_operands == 0)
        code = pnr_error_set(&error, PNR_EUSAGE, "want the NAME of the two files");
    if (code == PNR_OK)
        code = make_pair(cli.operands[0], &error);
    if (code == PNR_OK && fflush(stdout) != 0)
        code = pnr_error_set(&error, PNR_EIO, "stdout: %s", strerror(errno));
    pnr_config_clear(&config);
    return code == PNR_OK ? 0 : pnr_cli_fail(&error);
}
