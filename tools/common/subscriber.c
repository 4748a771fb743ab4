/* SPDX-License-Identifier: MIT */
/* Subscribes to a publisher, and receives its messages part by part. */
#include "tools/common/subscriber.h"

#include "config/config.h"
#include "publisher/endpoint.h"
#include "publisher/keys.h"
#include "publisher/message.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* --- subscribe --- */

/* Reads the keys of this subscriber from a file, or creates new keys. */
static int make_keys(const char *secret_path, char public[PNR_KEY_LEN + 1],
                     char secret[PNR_KEY_LEN + 1], pnr_error *error)
{
    int code;

    if (secret_path == NULL)
        return zmq_curve_keypair(public, secret) == 0
                   ? PNR_OK
                   : pnr_error_set(error, PNR_EUNAVAILABLE, "CURVE: %s", zmq_strerror(zmq_errno()));
    code = pnr_keys_read_secret("--curve-secret", secret_path, secret, error);
    if (code == PNR_OK && zmq_curve_public(public, secret) != 0)
        code = pnr_error_set(error, PNR_EDATA, "--curve-secret %s: not a CURVE secret key in Z85",
                             secret_path);
    return code;
}

static int use_curve(void *socket, const pnr_subscriber_source *source, pnr_error *error)
{
    const char *key = source->curve_key;
    char public[PNR_KEY_LEN + 1], secret[PNR_KEY_LEN + 1];
    int code;

    if (!zmq_has("curve"))
        return pnr_error_set(error, PNR_EUNSUPPORTED, "--curve-key: this libzmq has no CURVE");
    if (strlen(key) != PNR_KEY_LEN ||
        zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, key, PNR_KEY_LEN + 1) != 0)
        return pnr_error_set(error, PNR_EUSAGE,
                             "--curve-key %s: want the publisher's public key, 40 Z85 characters",
                             key);
    if ((code = make_keys(source->secret_path, public, secret, error)) == PNR_OK &&
        (zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public, sizeof public) != 0 ||
         zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, sizeof secret) != 0))
        code = pnr_error_set(error, PNR_EUNAVAILABLE, "CURVE: %s", zmq_strerror(zmq_errno()));
    explicit_bzero(secret, sizeof secret);
    return code;
}

/* Returns the size of the largest part that a message of these topics may have. libzmq disconnects
 * a publisher that sends a larger part, before it allocates memory for this part. */
static int64_t most_bytes(const char *const *topics)
{
    for (; *topics != NULL; topics++)
        if (strncmp(*topics, "profile", 7) == 0 || strncmp(*topics, "map", 3) == 0)
            return PNR_CELLS_MAX;
    return PNR_PACK_MAX;
}

static int subscribe_topics(void *socket, const char *stream, const char *const *topics)
{
    char topic[PNR_TEXT_LEN + 16];

    for (; *topics != NULL; topics++) {
        const bool is_whole = (*topics)[strlen(*topics) - 1] == '/';

        snprintf(topic, sizeof topic, is_whole ? "%s" : "%s/%s", *topics,
                 stream != NULL ? stream : "");
        if (zmq_setsockopt(socket, ZMQ_SUBSCRIBE, topic, strlen(topic)) != 0)
            return PNR_EUNAVAILABLE;
    }
    return PNR_OK;
}

int pnr_subscriber_create(void *context, const pnr_subscriber_source *source,
                          const char *const *topics, int high_water, void **out, pnr_error *error)
{
    const int v6 = strchr(source->endpoint, '[') != NULL, linger = 0;
    const int64_t max_message_bytes = most_bytes(topics);
    void *socket = zmq_socket(context, ZMQ_SUB);
    int code = PNR_OK;

    *out = NULL;
    if (socket == NULL || zmq_setsockopt(socket, ZMQ_RCVHWM, &high_water, sizeof high_water) != 0 ||
        zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_setsockopt(socket, ZMQ_IPV6, &v6, sizeof v6) != 0 ||
        zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_message_bytes, sizeof max_message_bytes) != 0 ||
        subscribe_topics(socket, source->stream, topics) != PNR_OK)
        code = pnr_error_set(error, PNR_EUNAVAILABLE, "no ZeroMQ socket: %s",
                             zmq_strerror(zmq_errno()));
    else if (source->curve_key != NULL)
        code = use_curve(socket, source, error);
    if (code != PNR_OK)
        pnr_subscriber_destroy(socket);
    else
        *out = socket;
    return code;
}

int pnr_subscriber_connect(void *socket, const pnr_subscriber_source *source, pnr_error *error)
{
    char address[PNR_ENDPOINT_LEN];
    int code = pnr_endpoint_find("endpoint ", source->endpoint, address, error);

    if (code == PNR_ECONFIG)
        code = error->code = PNR_EUSAGE;
    if (code != PNR_OK)
        return code;
    if (zmq_connect(socket, address) != 0)
        return pnr_error_set(error, PNR_EUSAGE,
                             "cannot connect to %s: %s: want the address and the port that the "
                             "publisher logs",
                             source->endpoint, zmq_strerror(zmq_errno()));
    return PNR_OK;
}

void pnr_subscriber_disconnect(void *socket, const pnr_subscriber_source *source)
{
    char address[PNR_ENDPOINT_LEN];
    pnr_error error;

    if (pnr_endpoint_find("endpoint ", source->endpoint, address, &error) == PNR_OK)
        (void)zmq_disconnect(socket, address);
}

int pnr_subscriber_watch(void *context, void *socket, const char *name, void **out,
                         pnr_error *error)
{
    const int wanted = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                       ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                       ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED;
    const int linger = 0;

    *out = NULL;
    if (zmq_socket_monitor(socket, name, wanted) != 0 ||
        (*out = zmq_socket(context, ZMQ_PAIR)) == NULL ||
        zmq_setsockopt(*out, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_connect(*out, name) != 0)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "no ZeroMQ monitor: %s",
                             zmq_strerror(zmq_errno()));
    return PNR_OK;
}

/* Interprets an event of the monitor: a number of 16 bits, and a value of 32 bits. */
static pnr_contact judge_event(const char *data, size_t bytes)
{
    uint16_t event;
    uint32_t value;

    if (bytes != sizeof event + sizeof value)
        return PNR_CONTACT_NONE;
    memcpy(&event, data, sizeof event);
    memcpy(&value, data + sizeof event, sizeof value);
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
        return PNR_CONTACT_REACHED;
    if (event == ZMQ_EVENT_DISCONNECTED || event == ZMQ_EVENT_CONNECT_RETRIED)
        return PNR_CONTACT_LOST;
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
        return PNR_CONTACT_KEY;
    return event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL &&
                   value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
               ? PNR_CONTACT_SECURITY
               : PNR_CONTACT_FAILED;
}

pnr_contact pnr_subscriber_contact(void *monitor)
{
    pnr_subscriber_message event;
    pnr_contact contact;
    const char *data;
    size_t bytes;

    if (monitor == NULL || pnr_subscriber_receive(monitor, &event) != PNR_OK)
        return PNR_CONTACT_NONE;
    data = pnr_subscriber_part(&event, 0, &bytes);
    contact = judge_event(data, bytes);
    pnr_subscriber_release(&event);
    return contact;
}

bool pnr_subscriber_reached(void *socket, void **monitor)
{
    pnr_contact contact;

    while (*monitor != NULL && (contact = pnr_subscriber_contact(*monitor)) != PNR_CONTACT_NONE)
        if (contact == PNR_CONTACT_REACHED)
            pnr_subscriber_unwatch(socket, monitor);
    return *monitor == NULL;
}

void pnr_subscriber_unwatch(void *socket, void **monitor)
{
    if (*monitor == NULL)
        return;
    (void)zmq_socket_monitor(socket, NULL, 0);
    pnr_subscriber_destroy(*monitor);
    *monitor = NULL;
}

/* Tries for at most a second to connect to host and port. Returns the reason of a failure, or
 * NULL. */
static const char *refusal_of(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const struct timeval patience = {.tv_sec = 1};
    struct addrinfo *found;
    const int code = getaddrinfo(host, port, &hints, &found);
    const char *reason = NULL;

    if (code != 0)
        return gai_strerror(code);

    const int handle = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (handle >= 0 && (setsockopt(handle, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) ||
                        connect(handle, found->ai_addr, found->ai_addrlen)))
        reason = strerror(errno == EINPROGRESS ? ETIMEDOUT : errno);
    if (handle >= 0)
        close(handle);
    freeaddrinfo(found);
    return reason;
}

const char *pnr_subscriber_refusal(const char *endpoint)
{
    char text[PNR_ENDPOINT_LEN];
    char *host = text + strlen("tcp://"), *colon;
    pnr_error error;
    size_t length;

    if (pnr_endpoint_find("", endpoint, text, &error) != PNR_OK)
        return "it has no address";
    if (strncmp(text, "ipc://", 6) == 0)
        return access(text + 6, F_OK) == 0 ? NULL : "there is no such socket";
    if (strncmp(text, "tcp://", 6) != 0 || (colon = strrchr(host, ':')) == NULL)
        return NULL;
    *colon = '\0';
    length = strlen(host);
    if (host[0] == '[' && length > 2 && host[length - 1] == ']') {
        host[length - 1] = '\0';
        host++;
    }
    return refusal_of(host, colon + 1);
}

void pnr_subscriber_destroy(void *socket)
{
    if (socket != NULL)
        zmq_close(socket);
}

/* --- one message --- */

int pnr_subscriber_receive(void *socket, pnr_subscriber_message *m)
{
    int more = 1;

    m->n_parts = 0;
    while (more) {
        zmq_msg_t spare;
        zmq_msg_t *part = m->n_parts < PNR_SUBSCRIBER_PARTS ? &m->parts[m->n_parts] : &spare;

        zmq_msg_init(part);
        if (zmq_msg_recv(part, socket, m->n_parts > 0 ? 0 : ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(part);
            if (m->n_parts > 0 && errno == EINTR)
                continue; /* the other parts of a message have already arrived */
            return PNR_EAGAIN;
        }
        more = zmq_msg_more(part);
        if (part == &spare)
            zmq_msg_close(&spare);
        m->n_parts++;
    }
    return PNR_OK;
}

void pnr_subscriber_release(pnr_subscriber_message *m)
{
    int i;

    for (i = 0; i < m->n_parts && i < PNR_SUBSCRIBER_PARTS; i++)
        zmq_msg_close(&m->parts[i]);
    m->n_parts = 0;
}

const char *pnr_subscriber_part(pnr_subscriber_message *m, int part, size_t *bytes)
{
    *bytes = part < m->n_parts ? zmq_msg_size(&m->parts[part]) : 0;
    return part < m->n_parts ? zmq_msg_data(&m->parts[part]) : "";
}

int pnr_subscriber_has_topic(pnr_subscriber_message *m, const char *topic)
{
    size_t bytes;
    const char *text = pnr_subscriber_part(m, 0, &bytes);

    return bytes >= strlen(topic) && memcmp(text, topic, strlen(topic)) == 0;
}
