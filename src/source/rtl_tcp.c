/* SPDX-License-Identifier: MIT */
/* Reads samples of a receiver from an rtl_tcp server: sets rate, frequency and gain, then reads
 * cu8. */
#include "source/address.h"
#include "source/kind.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 5000, HEADER_BYTES = 12, COMMAND_BYTES = 5, N_COMMANDS = 4 };
enum { SET_FREQUENCY = 1, SET_RATE = 2, SET_GAIN_MODE = 3, SET_GAIN = 4 };

typedef struct rtl_tcp {
    pnr_source_input *input;
    void *raw; /* state of pnr_source_raw, which reads the socket */
    pnr_address address;
    unsigned char commands[N_COMMANDS][COMMAND_BYTES];
    size_t n_commands;
    uint64_t n_settling; /* samples still to drop: the first samples may be older than the
                          * commands */
} rtl_tcp;

static const char prefix[] = "rtl_tcp:";

static void add_command(rtl_tcp *r, unsigned char what, uint32_t value)
{
    const uint32_t big_endian = htobe32(value);

    r->commands[r->n_commands][0] = what;
    memcpy(r->commands[r->n_commands++] + 1, &big_endian, sizeof big_endian);
}

/* The server does not report a wrong setting, so this function checks the settings. The limits are
 * those of the receiver RTL2832U. */
static int choose_settings(rtl_tcp *r, const pnr_config *config, pnr_error *error)
{
    const pnr_rational rate_hz = config->source.rate_hz;
    const double hz = pnr_rational_double(rate_hz);
    char text[48];

    if (rate_hz.den > 1 || !((hz > 225000 && hz <= 300000) || (hz > 900000 && hz <= 3200000)))
        return pnr_refuse(error,
                          "source.rate_hz is %s: an RTL-SDR has whole rates of 225001 to 300000 "
                          "and 900001 to 3200000 Hz",
                          rate_hz.den != 0 ? pnr_rational_format(rate_hz, text) : "not given");
    if (!(config->source.centre_hz > 0))
        return pnr_refuse(error, "source.centre_hz is not given: the frequency to receive");
    r->n_settling = (uint64_t)rate_hz.num / 2;
    add_command(r, SET_RATE, (uint32_t)rate_hz.num);
    add_command(r, SET_FREQUENCY, (uint32_t)lround(config->source.centre_hz));
    add_command(r, SET_GAIN_MODE, config->source.has_gain_db);
    if (config->source.has_gain_db)
        add_command(r, SET_GAIN, (uint32_t)(int32_t)lround(config->source.gain_db * 10));
    return PNR_OK;
}

static int rtl_tcp_describe(pnr_source_input *input, const pnr_config *config,
                            pnr_source_info *info, void **state, pnr_error *error)
{
    rtl_tcp *r = calloc(1, sizeof *r);
    int code;

    if (r == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for an rtl_tcp source");
    *state = r;
    r->input = input;
    if ((code = pnr_address_read(prefix, input->name, &r->address, error)) != PNR_OK ||
        (code = choose_settings(r, config, error)) != PNR_OK ||
        (code = pnr_source_raw_begin(input, PNR_FORMAT_CU8, 1, info, &r->raw, error)) != PNR_OK)
        return code;
    info->is_live = true;
    snprintf(info->text, sizeof info->text, "rtl_tcp cu8, %.10g Hz at %.10g Hz, gain %s",
             pnr_rational_double(config->source.rate_hz), config->source.centre_hz,
             config->source.has_gain_db ? "as set" : "automatic");
    return PNR_OK;
}

static bool wait_for(int fd, short event)
{
    struct pollfd wanted = {.fd = fd, .events = event};

    return poll(&wanted, 1, PATIENCE_MS) > 0;
}

/* Returns a connected socket; -1 with the reason in errno. */
static int connect_to(const struct addrinfo *address)
{
    const int fd = socket(address->ai_family, address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                          address->ai_protocol);
    int reason = 0;
    socklen_t length = sizeof reason;

    if (fd < 0)
        return -1;
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    reason = errno;
    if (reason == EINPROGRESS) {
        if (!wait_for(fd, POLLOUT))
            reason = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &length) == 0 && reason == 0)
            return fd;
    }
    close(fd);
    errno = reason;
    return -1;
}

static int find_server(rtl_tcp *r, pnr_error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    const int unknown = getaddrinfo(r->address.host, r->address.port, &hints, &found);

    if (unknown != 0)
        return pnr_error_set(error, PNR_ENOINPUT, "%.200s: %s", r->input->name,
                             gai_strerror(unknown));
    for (const struct addrinfo *a = found; a != NULL && r->input->fd < 0; a = a->ai_next)
        r->input->fd = connect_to(a);
    freeaddrinfo(found);
    if (r->input->fd < 0)
        return pnr_error_set(error, PNR_ENOINPUT, "%.200s: %s", r->input->name, strerror(errno));
    return PNR_OK;
}

static int rtl_tcp_open(void *state, pnr_error *error)
{
    rtl_tcp *r = state;
    unsigned char header[HEADER_BYTES];
    size_t n = 0;
    int code = find_server(r, error);

    if (code != PNR_OK)
        return code;
    while (n < sizeof header && wait_for(r->input->fd, POLLIN)) {
        const ssize_t got = recv(r->input->fd, header + n, sizeof header - n, 0);

        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (n < sizeof header || memcmp(header, "RTL0", 4) != 0)
        return pnr_error_set(error, PNR_EDATA,
                             "%.200s: this is no rtl_tcp server: %zu bytes came within 5 s, and "
                             "no header RTL0%s",
                             r->input->name, n,
                             n == 0 ? " (the server has one client at a time)" : "");
    n = r->n_commands * COMMAND_BYTES;
    if (send(r->input->fd, r->commands, n, MSG_NOSIGNAL) != (ssize_t)n)
        return pnr_error_set(error, PNR_EIO, "%.200s: %s", r->input->name, strerror(errno));
    return PNR_OK;
}

static int rtl_tcp_read(void *state, void *data, size_t max_samples, pnr_source_block *block,
                        pnr_error *error)
{
    rtl_tcp *r = state;
    const bool is_settling = r->n_settling > 0;

    if (is_settling && max_samples > r->n_settling)
        max_samples = (size_t)r->n_settling;

    const int code = pnr_source_raw.read(r->raw, data, max_samples, block, error);

    if (!is_settling || code != PNR_OK)
        return code;
    r->n_settling -= block->n_samples;
    block->n_samples = 0;
    return PNR_EAGAIN;
}

static void rtl_tcp_close(void *state)
{
    rtl_tcp *r = state;

    if (r->raw != NULL)
        pnr_source_raw.close(r->raw);
    free(r);
}

const pnr_source_kind pnr_source_rtl_tcp = {.title = "an rtl_tcp server",
                                            .prefix = prefix,
                                            .describe = rtl_tcp_describe,
                                            .open = rtl_tcp_open,
                                            .read = rtl_tcp_read,
                                            .close = rtl_tcp_close};
