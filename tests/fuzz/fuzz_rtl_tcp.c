/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as those of an rtl_tcp server. The rest of the input repeats after the
 * header, so that some of it comes after the first half second, which is dropped. */
#include "require.h"
#include "source/kind.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RATE = 225001, HEADER = 12, COMMANDS = 20, STREAM = 1 << 18 };

static int ours, theirs;

/* The source gets our end of a pair. */
int socket(int domain, int type, int protocol)
{
    int ends[2];

    (void)domain, (void)protocol;
    if (syscall(SYS_socketpair, AF_UNIX, type, 0, ends) != 0)
        abort();
    ours = ends[0];
    return theirs = ends[1];
}

static struct {
    const uint8_t *bytes;
    size_t n;
} server;

/* The server sends all it has, and hangs up. */
int connect(int fd, const struct sockaddr *address, socklen_t n)
{
    static uint8_t stream[STREAM];
    const int room = STREAM;
    size_t n_stream = server.n;

    (void)fd, (void)address, (void)n;
    memcpy(stream, server.bytes, server.n);
    if (server.n > HEADER + 64)
        for (const size_t n_rest = server.n - HEADER; n_stream + n_rest <= STREAM;
             n_stream += n_rest)
            memcpy(stream + n_stream, server.bytes + HEADER, n_rest);
    require(setsockopt(ours, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) == 0 ||
            setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
    (void)send(ours, stream, n_stream, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(ours, SHUT_WR);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    enum { MOST_SAMPLES = 4096 };
    static unsigned char samples[MOST_SAMPLES][2];
    static pnr_config config;
    pnr_source_block block = {0};
    pnr_source *source;
    pnr_error error = {0};
    int code;

    if (config.source.rate_hz.num == 0) {
        setenv("PNR_LOG", "quiet", 1);
        pnr_config_init(&config);
        config.source.rate_hz = (pnr_rational){RATE, 1};
        config.source.centre_hz = 1e8;
        strcpy(config.source.input, "rtl_tcp:127.0.0.1:9");
    }
    server.bytes = data;
    server.n = n_bytes;
    ours = -1;
    code = pnr_source_open(&config, &source, &error);
    if (code == PNR_OK) {
        require(n_bytes >= HEADER && memcmp(data, "RTL0", 4) == 0);
        while ((code = pnr_source_read(source, samples, MOST_SAMPLES, &block, &error)) == PNR_OK ||
               code == PNR_EAGAIN)
            require(code != PNR_OK || (block.n_samples > 0 && block.n_samples <= MOST_SAMPLES));
        pnr_source_close(source);
    }
    require(code == PNR_EEND || error.text[0] != '\0');
    if (ours >= 0)
        close(ours);
    return 0;
}
