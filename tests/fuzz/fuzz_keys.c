/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as the file of a CURVE key, secret or public, and any parts as the question
 * whether a key is allowed. */
#include "memory_file.h"
#include "publisher/keys.h"
#include "require.h"

#include <string.h>
#include <sys/stat.h>
#include <zmq.h>

enum { ALPHABET = 85, PARTS = 10 };

/* The two ends of libzmq's question. */
static void *asker, *answerer;

static void open_socket(char folder[32])
{
    void *context = zmq_ctx_new();
    const int at_once = 0;
    pnr_error error;

    snprintf(folder, 32, "/tmp/pnradar-keys-XXXXXX");
    require(mkdtemp(folder) != NULL);
    require(pnr_keys_open(context, folder, &answerer, &error) == PNR_OK);
    require(rmdir(folder) == 0);
    asker = zmq_socket(context, ZMQ_DEALER);
    zmq_setsockopt(asker, ZMQ_LINGER, &at_once, sizeof at_once);
    require(zmq_connect(asker, "inproc://zeromq.zap.01") == 0);
}

/* Asks with up to PARTS parts. Each has its length before it; 255 is the key of the file, and 254
 * is a part that is too long. */
static void ask(fuzz_input *input, const unsigned char key[32])
{
    require(zmq_send(asker, "", 0, ZMQ_SNDMORE) == 0);
    for (int i = 0; i < PARTS; i++) {
        const unsigned length = take_byte(input);
        const bool is_last = input->n == 0 || i + 1 == PARTS;
        const uint8_t *part = key;
        const size_t n =
            length == 255 ? 32 : take_bytes(input, length == 254 ? 300 : length, &part);

        require(zmq_send(asker, part, n, is_last ? 0 : ZMQ_SNDMORE) == (int)n);
        if (is_last)
            break;
    }
}

/* Reads the six parts of an answer and their delimiter. True: the key is allowed. */
static bool read_answer(void)
{
    char part[1024];
    int n, more = 1, n_parts = 0;
    size_t size = sizeof more;
    bool is_allowed = false;

    while (more != 0) {
        require((n = zmq_recv(asker, part, sizeof part, 0)) >= 0);
        is_allowed |= n_parts == 3 && n == 3 && memcmp(part, "200", 3) == 0;
        require(zmq_getsockopt(asker, ZMQ_RCVMORE, &more, &size) == 0);
        n_parts++;
    }
    require(n_parts == 7);
    return is_allowed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static char path[64], folder[sizeof memory_file_folder];
    static pnr_events events;
    static int fd = -1;
    char key[PNR_KEY_LEN + 1] = "";
    unsigned char binary[32] = {0};
    fuzz_input input = {data, n_bytes};
    const uint8_t *text;
    pnr_error error = {0};
    char empty[32];

    if (fd < 0) {
        setenv("PNR_LOG", "quiet", 1);
        open_socket(empty);
        fd = memory_file_create();
        memory_file_name(fd, ".key", path, sizeof path);
        memcpy(folder, memory_file_folder, sizeof folder);
        pnr_events_begin(&events);
    }

    const bool is_open_to_all = take_byte(&input) % 8 == 7;
    const size_t n_text = take_bytes(&input, take_byte(&input), &text);

    memory_file_fill(fd, text, n_text);
    require(fchmod(fd, is_open_to_all ? 0644 : 0600) == 0);

    const int code = pnr_keys_read_secret("key", path, key, &error);

    require(code == (is_open_to_all ? PNR_EPERMISSION : code) && error.code == code);
    if (code == PNR_OK) {
        require(strlen(key) == PNR_KEY_LEN || memchr(text, '\0', n_text) != NULL);
        if (zmq_z85_decode(binary, key) == NULL)
            memset(binary, 0, sizeof binary);
    }
    if (input.n == 0)
        return 0;
    ask(&input, binary);

    char address[PNR_KEYS_ADDRESS_LEN];
    const bool is_allowed = pnr_keys_answer(answerer, folder, &events, address);

    require(read_answer() == is_allowed);
    require(!is_allowed || code == PNR_OK || is_open_to_all);
    return 0;
}
