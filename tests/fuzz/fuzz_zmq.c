/* SPDX-License-Identifier: MIT */
/* libFuzzer: any sequence of messages of GNU Radio, with keys and too many parts. The calls of
 * libzmq that wait or reach the network are those below. */
#include "require.h"
#include "source/gr_tags.h"
#include "source/kind.h"

#include <string.h>
#include <zmq.h>

/* A message of the input begins with a byte of these flags. */
enum {
    HAS_HEADER = 1, /* it goes on with the stream, plus a signed byte */
    HAS_TIME = 2,
    HAS_MORE = 4,
    COMES_LATE = 8, /* nothing is there before it */
    IS_KEY = 16,
    IS_FAR = 32 /* its offset or its time is far away */
};
enum { MOST = 2048, RATE = 1000000, ITEM = 8 };

static fuzz_input input;
static uint64_t offset;
static bool has_more, has_waited;

/* --- libzmq --- */

void *zmq_ctx_new(void)
{
    return &input;
}

void *zmq_socket(void *context, int type)
{
    (void)type;
    return context;
}

int zmq_setsockopt(void *socket, int option, const void *value, size_t n)
{
    (void)socket, (void)option, (void)value, (void)n;
    return 0;
}

int zmq_connect(void *socket, const char *endpoint)
{
    (void)socket, (void)endpoint;
    return 0;
}

int zmq_close(void *socket)
{
    (void)socket;
    return 0;
}

int zmq_ctx_term(void *context)
{
    (void)context;
    return 0;
}

int zmq_poll(zmq_pollitem_t *items, int n, long timeout_ms)
{
    (void)items, (void)n, (void)timeout_ms;
    if (input.n == 0)
        return 0;
    has_waited = !has_waited && (*input.at & COMES_LATE) != 0;
    return !has_waited;
}

/* Writes a header with a time, if the flags say so. Returns its bytes. */
static size_t write_header(unsigned flags, unsigned char *bytes)
{
    const uint64_t far = flags & IS_FAR ? UINT64_C(1) << take_byte(&input) % 64 : 0;
    pnr_gr_writer w;

    offset += (uint64_t)(int64_t)(int8_t)take_byte(&input);
    pnr_gr_write_begin(&w, bytes, MOST, offset + far);
    if ((flags & HAS_TIME) != 0)
        pnr_gr_write_time(
            &w, offset + far + take_byte(&input) % 4,
            (int64_t)(1700000000000000000 + offset * 1000 + take_byte(&input) * UINT64_C(1000)));
    return w.n;
}

int zmq_msg_recv(zmq_msg_t *message, void *socket, int how)
{
    unsigned char bytes[MOST];
    const uint8_t *raw;
    const unsigned flags = take_byte(&input);
    size_t n = 0, n_raw;

    (void)socket, (void)how;
    has_more = (flags & HAS_MORE) != 0 && input.n > 0;
    if ((flags & IS_KEY) != 0) {
        memcpy(bytes, "key", n = 3);
    } else {
        if ((flags & HAS_HEADER) != 0)
            n = write_header(flags, bytes);
        n_raw = take_byte(&input) * (flags & HAS_HEADER ? ITEM : 1);
        if (n_raw > MOST - n)
            n_raw = (MOST - n) / ITEM * ITEM;
        n_raw = take_bytes(&input, n_raw, &raw);
        if ((flags & HAS_HEADER) != 0)
            offset += n_raw / ITEM;
        memcpy(bytes + n, raw, n_raw);
        n += n_raw;
    }
    zmq_msg_close(message);
    require(zmq_msg_init_size(message, n) == 0);
    memcpy(zmq_msg_data(message), bytes, n);
    return (int)n;
}

int zmq_msg_more(const zmq_msg_t *message)
{
    (void)message;
    return has_more;
}

/* --- the reader --- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    enum { TAGS = 1, KEY = 2, MOST_SAMPLES = 64 };
    static pnr_config config;
    pnr_source_input from = {.fd = -1, .is_address = true, .name = "zmq-sub:tcp://127.0.0.1:9"};
    pnr_source_info info = {0};
    pnr_error error = {0};
    unsigned char *samples;
    size_t max_samples;
    void *state = NULL;
    unsigned how;
    int code = PNR_EAGAIN;

    input = (fuzz_input){data, n_bytes};
    how = take_byte(&input);
    max_samples = 1 + take_byte(&input) % MOST_SAMPLES;
    offset = 1000;
    has_more = has_waited = false;
    if (config.source.rate_hz.num == 0) {
        setenv("PNR_LOG", "quiet", 1);
        pnr_config_init(&config);
        config.source.rate_hz = (pnr_rational){RATE, 1};
    }
    config.source.zmq_tags = how & TAGS;
    strcpy(config.source.zmq_key, how & KEY ? "key" : "");
    require(pnr_source_zmq_sub.describe(&from, &config, &info, &state, &error) == PNR_OK);
    require(pnr_source_zmq_sub.open(state, &error) == PNR_OK);
    samples = malloc(max_samples * ITEM);
    while ((code == PNR_OK || code == PNR_EAGAIN) && (input.n > 0 || code == PNR_OK)) {
        pnr_source_block block = {0};

        error = (pnr_error){0};
        code = pnr_source_zmq_sub.read(state, samples, max_samples, &block, &error);
        require(code == PNR_OK || code == PNR_EAGAIN || error.text[0] != '\0');
        require(code != PNR_OK ||
                ((block.gap > 0) != (block.n_samples > 0) && block.n_samples <= max_samples));
    }
    free(samples);
    pnr_source_zmq_sub.close(state);
    return 0;
}
