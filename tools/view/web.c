/* SPDX-License-Identifier: MIT */
/* The web server: serves the page, its data, and live events. It answers only GET and HEAD
 * requests, and reads no file. */
#include "tools/view/web.h"

#include "base/clock.h"
#include "base/log.h"
#include "tools/view/api.h"

#include <errno.h>
#include <math.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>

enum {
    TOKEN_LEN = 32,
    TIMEOUT_S = 20,         /* a connection without traffic for this time is closed */
    PATIENCE_S = 10,        /* a connection without a request is closed after this time */
    GRACE_MS = 100,         /* a connection without a request is not closed before this time */
    REQUEST_BYTES = 16384,  /* memory of a connection, for its request line and headers */
    FRAME_BYTES = 8192,     /* bytes of live events that the server requests at a time */
    SEND_BYTES = 8192,      /* limit of the unsent bytes in the kernel for a live client; with more
                             * bytes, the events would arrive late */
    ANSWER_BYTES = 1 << 27, /* requests are refused if the unsent answers have more bytes */
    HOST_LEN = 256,
};
static const char cookie_name[] = "pnradar_token";
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* A connection. It is in the list `peers` until it is closed. */
typedef struct view_peer {
    struct view_peer *next, *previous;
    int handle;
    uint64_t opened_ns;
    bool has_asked;
    bool is_gone; /* the other side has closed the connection */
} view_peer;

/* An answer that is not sent yet. */
typedef struct view_held {
    struct view_web *web;
    char *data;
    size_t n;
} view_held;

/* A client that follows a stream, or reads CSV. */
typedef struct view_client {
    struct view_client *next, *previous; /* in the list `clients` */
    struct view_web *web;
    struct MHD_Connection *connection;
    view_cursor cursor;
    uint64_t next_row;     /* CSV: `next` of view_api_csv */
    const view_peer *peer; /* the connection, which outlives the client; may be NULL */
    bool is_waiting;
    view_buffer text; /* text that is not sent yet, from `at` on */
    size_t at;
} view_client;

struct view_web {
    view_store *store; /* its mutex also guards the lists `peers` and `clients` */
    struct MHD_Daemon *daemon;
    view_peer *peers;
    view_client *clients;
    size_t n_clients;
    bool is_closing;
    size_t n_held;             /* bytes of answers that are not sent yet; only the server's thread
                                * uses it */
    char token[TOKEN_LEN + 1]; /* "": no token is needed */
    char host[HOST_LEN];       /* host of --listen */
};

/* Returns the entry of a connection in the list. */
static view_peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

/* --- answers --- */

static void add_headers(struct MHD_Response *response, const char *type)
{
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Content-Security-Policy", policy);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "X-Frame-Options", "DENY");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "Cache-Control", "no-store");
}

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status,
                                     const char *type, struct MHD_Response *response)
{
    enum MHD_Result sent;

    if (response == NULL)
        return MHD_NO;
    add_headers(response, type);
    sent = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return sent;
}

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status,
                                 const char *text)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

    if (response != NULL && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    return send_response(connection, status, "text/plain; charset=utf-8", response);
}

static void free_held(void *context)
{
    view_held *held = context;

    held->web->n_held -= held->n;
    free(held->data);
    free(held);
}

/* Sends the text of a buffer. The server then owns the text. */
static enum MHD_Result send_buffer(view_web *web, struct MHD_Connection *connection,
                                   const char *type, view_buffer *b)
{
    view_held *held = calloc(1, sizeof *held);
    struct MHD_Response *response;

    if (b->is_failed || b->data == NULL || held == NULL) {
        free(b->data);
        free(held);
        return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    }
    *held = (view_held){web, b->data, b->n};
    web->n_held += b->n;
    response =
        MHD_create_response_from_buffer_with_free_callback_cls(b->n, b->data, free_held, held);
    if (response == NULL)
        free_held(held);
    return send_response(connection, MHD_HTTP_OK, type, response);
}

/* --- clients that follow a stream --- */

static void list_client(view_client *client)
{
    view_web *web = client->web;

    client->next = web->clients;
    if (web->clients != NULL)
        web->clients->previous = client;
    web->clients = client;
    web->n_clients++;
}

static void free_client(void *context)
{
    view_client *client = context;
    view_web *web = client->web;

    pthread_mutex_lock(&web->store->mutex);
    if (client->previous != NULL || web->clients == client) {
        if (client->previous != NULL)
            client->previous->next = client->next;
        else
            web->clients = client->next;
        if (client->next != NULL)
            client->next->previous = client->previous;
        web->n_clients--;
    }
    pthread_mutex_unlock(&web->store->mutex);
    free(client->text.data);
    free(client);
}

/* Copies at most `most` bytes of the text that is not sent yet. Returns the number of copied
 * bytes. */
static ssize_t give_text(view_client *client, char *to, size_t most)
{
    const size_t left = client->text.n - client->at;
    const size_t n = left < most ? left : most;

    memcpy(to, client->text.data + client->at, n);
    client->at += n;
    return (ssize_t)n;
}

/* Copies the next part of the events. The server calls this function when the connection accepts
 * more data. So a slow connection gets the newest events, and no queue grows. */
static ssize_t give_events(void *context, uint64_t at, char *to, size_t most)
{
    view_client *client = context;
    view_store *store = client->web->store;

    (void)at;
    if (client->at == client->text.n) {
        client->at = client->text.n = 0;
        pthread_mutex_lock(&store->mutex);
        if (client->web->is_closing || (client->peer != NULL && client->peer->is_gone)) {
            pthread_mutex_unlock(&store->mutex);
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        view_api_frames(store, &client->cursor, &client->text);
        if (client->text.n == 0) {
            /* With the mutex locked, no message can arrive between the test and the wait. */
            client->is_waiting = true;
            MHD_suspend_connection(client->connection);
        }
        pthread_mutex_unlock(&store->mutex);
    }
    return client->text.is_failed ? MHD_CONTENT_READER_END_WITH_ERROR : give_text(client, to, most);
}

static ssize_t give_rows(void *context, uint64_t at, char *to, size_t most)
{
    view_client *client = context;
    view_store *store = client->web->store;

    (void)at;
    if (client->at == client->text.n) {
        const view_stream *s;

        client->at = client->text.n = 0;
        pthread_mutex_lock(&store->mutex);
        s = view_store_find(store, client->cursor.query.stream);
        if (s != NULL && (client->next_row == 0 || strcmp(s->run, client->cursor.run) == 0)) {
            memcpy(client->cursor.run, s->run, sizeof s->run);
            view_api_csv(s, &client->cursor.query, &client->next_row, &client->text);
        }
        pthread_mutex_unlock(&store->mutex);
        if (client->text.is_failed)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (client->text.n == 0)
            return MHD_CONTENT_READER_END_OF_STREAM;
    }
    return give_text(client, to, most);
}

/* Marks the connections that the other side has closed. libmicrohttpd detects a closed connection
 * only when it sends the next event. It does not detect a close during an incomplete request. */
static void find_gone(view_web *web)
{
    struct pollfd handles[VIEW_MAX_CLIENTS];
    nfds_t n = 0, i = 0;

    for (const view_peer *p = web->peers; p != NULL && n < VIEW_MAX_CLIENTS; p = p->next)
        handles[n++] = (struct pollfd){.fd = p->handle, .events = POLLRDHUP};
    if (n > 0 && poll(handles, n, 0) > 0)
        for (view_peer *p = web->peers; p != NULL && i < n; p = p->next)
            p->is_gone |= handles[i++].revents != 0;
}

/* True if a connection without a complete request must be closed. A request that arrives byte by
 * byte could otherwise use the connection for hours. A connection that the client closes in the
 * middle of a request would otherwise stay open. */
static bool is_idle(const view_peer *p, uint64_t now_ns)
{
    int n_unread = 0;

    if (p->has_asked || now_ns - p->opened_ns < GRACE_MS * UINT64_C(1000000))
        return false;
    return now_ns - p->opened_ns > PATIENCE_S * (uint64_t)PNR_NS_PER_S ||
           (p->is_gone && ioctl(p->handle, FIONREAD, &n_unread) == 0 && n_unread == 0);
}

void view_web_wake(view_web *web)
{
    const uint64_t now_ns = pnr_clock_ns();

    pthread_mutex_lock(&web->store->mutex);
    find_gone(web);
    for (view_client *c = web->clients; c != NULL; c = c->next)
        if (c->is_waiting) {
            c->is_waiting = false;
            MHD_resume_connection(c->connection);
        }
    for (view_peer *p = web->peers; p != NULL; p = p->next)
        if (is_idle(p, now_ns))
            shutdown(p->handle, SHUT_RDWR);
    pthread_mutex_unlock(&web->store->mutex);
}

static view_client *new_client(view_web *web, struct MHD_Connection *connection,
                               const view_query *query)
{
    view_client *client = calloc(1, sizeof *client);

    if (client == NULL)
        return NULL;
    client->web = web;
    client->connection = connection;
    client->cursor.query = *query;
    client->cursor.beat_ns = pnr_clock_ns();
    return client;
}

static enum MHD_Result send_events(view_web *web, struct MHD_Connection *connection,
                                   const view_query *query)
{
    const int bytes = SEND_BYTES;
    view_client *client = new_client(web, connection, query);
    struct MHD_Response *response;

    if (client == NULL)
        return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    client->peer = peer_of(connection);
    if (client->peer != NULL)
        (void)setsockopt(client->peer->handle, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes,
                         sizeof bytes);
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, FRAME_BYTES, give_events, client,
                                                 free_client);
    if (response == NULL) {
        free(client);
        return MHD_NO;
    }
    pthread_mutex_lock(&web->store->mutex);
    list_client(client);
    pthread_mutex_unlock(&web->store->mutex);
    return send_response(connection, MHD_HTTP_OK, "text/event-stream; charset=utf-8", response);
}

static enum MHD_Result send_csv(view_web *web, struct MHD_Connection *connection,
                                const view_query *query)
{
    view_client *client = new_client(web, connection, query);
    struct MHD_Response *response;

    if (client == NULL)
        return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, FRAME_BYTES, give_rows, client,
                                                 free_client);
    if (response == NULL) {
        free(client);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Disposition",
                            "attachment; filename=\"pnradar.csv\"");
    return send_response(connection, MHD_HTTP_OK, "text/csv; charset=utf-8", response);
}

/* --- requests --- */

typedef struct view_argument {
    const char *name;
    size_t offset;
} view_argument;

static const view_argument numbers[] = {
    {"from", offsetof(view_query, from_s)},     {"to", offsetof(view_query, to_s)},
    {"from_m", offsetof(view_query, from_m)},   {"to_m", offsetof(view_query, to_m)},
    {"from_hz", offsetof(view_query, from_hz)}, {"to_hz", offsetof(view_query, to_hz)},
};

/* Reads a whole number that is at least `least`. If the number is greater than `most`, stores
 * `most`. False: the text is no such number. */
static bool read_size(struct MHD_Connection *connection, const char *name, size_t least,
                      size_t most, size_t *out)
{
    const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
    char *end;
    unsigned long value;

    if (text == NULL)
        return true;
    value = strtoul(text, &end, 10);
    *out = value > most ? most : value;
    return *text >= '0' && *text <= '9' && *end == '\0' && value >= least;
}

/* Reads the arguments of a request. Returns the name of a wrong argument. NULL: all are right. */
static const char *read_query(struct MHD_Connection *connection, view_query *q)
{
    const char *stream = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "stream");

    *q = (view_query){.width = 1024, .height = 512};
    if (stream != NULL && strlen(stream) >= sizeof q->stream)
        return "stream";
    if (stream != NULL)
        strcpy(q->stream, stream);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const char *text =
            MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, numbers[i].name);
        double *value = (double *)((char *)q + numbers[i].offset);
        char *end;

        *value = NAN;
        if (text == NULL)
            continue;
        *value = strtod(text, &end);
        if (*text == '\0' || *end != '\0' || !(fabs(*value) < 1e15))
            return numbers[i].name;
    }
    if (!read_size(connection, "width", 1, VIEW_MOST_WIDTH, &q->width))
        return "width";
    if (!read_size(connection, "height", 1, VIEW_MOST_HEIGHT, &q->height))
        return "height";
    return read_size(connection, "code", 0, 1 << 20, &q->code) ? NULL : "code";
}

typedef void view_answer(const view_stream *stream, const view_query *query, view_buffer *out);
typedef enum {
    VIEW_OF_STREAM,
    VIEW_EVENTS_OF,
    VIEW_CSV,
    VIEW_STREAMS,
    VIEW_LATEST,
    VIEW_METRICS,
    VIEW_HEALTH
} view_kind;
typedef struct view_route {
    const char *path;
    view_kind kind;
    view_answer *answer;
} view_route;

static const view_route routes[] = {
    {"/api/past", VIEW_OF_STREAM, view_api_past},
    {"/api/echoes", VIEW_OF_STREAM, view_api_echoes},
    {"/api/map", VIEW_OF_STREAM, view_api_map},
    {"/api/live", VIEW_EVENTS_OF, NULL},
    {"/api/history.csv", VIEW_CSV, NULL},
    {"/api/streams", VIEW_STREAMS, NULL},
    {"/api/latest", VIEW_LATEST, NULL},
    {"/metrics", VIEW_METRICS, NULL},
    {"/healthz", VIEW_HEALTH, NULL},
};

static enum MHD_Result answer_route(view_web *web, struct MHD_Connection *connection,
                                    const view_route *route)
{
    const char *type = route->kind == VIEW_METRICS ? "text/plain; version=0.0.4; charset=utf-8"
                                                   : "application/json; charset=utf-8";
    view_buffer b = {0};
    view_query q;
    const char *wrong = read_query(connection, &q);
    const view_stream *s;

    if (wrong != NULL) {
        char text[80];

        snprintf(text, sizeof text, "%s: not a value that this address takes\n", wrong);
        return send_text(connection, MHD_HTTP_BAD_REQUEST, text);
    }
    if (route->kind == VIEW_HEALTH)
        return send_text(connection, MHD_HTTP_OK, "ok\n");
    if (route->kind == VIEW_EVENTS_OF)
        return send_events(web, connection, &q);
    if (route->kind == VIEW_CSV)
        return send_csv(web, connection, &q);
    /* Clients that send many requests and read no answers must not fill the memory. */
    if (web->n_held > ANSWER_BYTES)
        return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many unread answers\n");
    pthread_mutex_lock(&web->store->mutex);
    s = view_store_find(web->store, q.stream);
    if (route->kind == VIEW_STREAMS)
        view_api_streams(web->store, &b);
    else if (route->kind == VIEW_METRICS)
        view_api_metrics(web->store, web->n_clients, &b);
    else if (route->kind == VIEW_LATEST)
        view_api_latest(s, &b);
    else
        route->answer(s, &q, &b);
    pthread_mutex_unlock(&web->store->mutex);
    return send_buffer(web, connection, type, &b);
}

static enum MHD_Result send_asset(struct MHD_Connection *connection, const view_asset *asset)
{
    return send_response(connection, MHD_HTTP_OK, asset->type,
                         MHD_create_response_from_buffer((size_t)(asset->end - asset->bytes),
                                                         (void *)(uintptr_t)asset->bytes,
                                                         MHD_RESPMEM_PERSISTENT));
}

/* --- permission --- */

/* True if a text is the token. The comparison takes the same time for every text that is as long as
 * the token, so that the time does not show how many characters are right. */
static bool is_token(const view_web *web, const char *text)
{
    unsigned char differs = 0;

    if (text == NULL || strlen(text) != strlen(web->token))
        return false;
    for (size_t i = 0; web->token[i] != '\0'; i++)
        differs |= (unsigned char)(text[i] ^ web->token[i]);
    return differs == 0;
}

/* True if a Host header names this machine. This refuses a page of another site whose name resolves
 * to this machine (DNS rebinding). With a token, any name is accepted. */
static bool is_host(const view_web *web, const char *host)
{
    const char *colon;
    size_t n;

    if (web->token[0] != '\0')
        return true;
    if (host == NULL)
        return false;
    colon = strrchr(host, ':');
    n = colon != NULL && strchr(colon, ']') == NULL ? (size_t)(colon - host) : strlen(host);
    return (n == 9 && strncasecmp(host, "localhost", n) == 0) ||
           (n == 9 && strncmp(host, "127.0.0.1", n) == 0) ||
           (n == 5 && strncmp(host, "[::1]", n) == 0) ||
           (n == strlen(web->host) && strncasecmp(host, web->host, n) == 0);
}

/* Returns the reason why a request is refused. NULL: the request is accepted. */
static const char *refusal_of(const view_web *web, struct MHD_Connection *connection)
{
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    const char *origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin");
    const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");
    const char *mode = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Mode");
    const char *slashes = origin != NULL ? strstr(origin, "://") : NULL;

    if (!is_host(web, host))
        return "this name is not an address of the view\n";
    if (origin != NULL && (slashes == NULL || host == NULL || strcasecmp(slashes + 3, host) != 0))
        return "another site may not read here\n";
    if (site != NULL && strcmp(site, "cross-site") == 0 &&
        (mode == NULL || strcmp(mode, "navigate") != 0))
        return "another site may not read here\n";
    return NULL;
}

/* Answers the first request, whose address contains the token. Stores the token in a cookie, and
 * redirects to the address without the token. */
static enum MHD_Result send_cookie(const view_web *web, struct MHD_Connection *connection)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    char cookie[128];

    if (response == NULL)
        return MHD_NO;
    snprintf(cookie, sizeof cookie, "%s=%s; HttpOnly; SameSite=Strict; Path=/", cookie_name,
             web->token);
    MHD_add_response_header(response, "Set-Cookie", cookie);
    MHD_add_response_header(response, "Location", "/");
    return send_response(connection, MHD_HTTP_SEE_OTHER, "text/plain", response);
}

static enum MHD_Result answer_path(view_web *web, struct MHD_Connection *connection,
                                   const char *path)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        if (strcmp(path, routes[i].path) == 0)
            return answer_route(web, connection, &routes[i]);
    for (size_t i = 0; i < view_n_assets; i++)
        if (strcmp(path, view_assets[i].path) == 0)
            return send_asset(connection, &view_assets[i]);
    return send_text(connection, MHD_HTTP_NOT_FOUND, "no such page\n");
}

static void note_request(view_web *web, struct MHD_Connection *connection)
{
    view_peer *peer = peer_of(connection);

    if (peer == NULL)
        return;
    pthread_mutex_lock(&web->store->mutex);
    peer->has_asked = true;
    pthread_mutex_unlock(&web->store->mutex);
}

static enum MHD_Result answer_request(void *context, struct MHD_Connection *connection,
                                      const char *path, const char *method, const char *version,
                                      const char *upload, size_t *n_upload, void **state)
{
    view_web *web = context;
    const char *token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
    const char *refusal;

    (void)version;
    (void)upload;
    (void)n_upload;
    (void)state;
    note_request(web, connection);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET alone\n");
    if ((refusal = refusal_of(web, connection)) != NULL)
        return send_text(connection, MHD_HTTP_FORBIDDEN, refusal);
    if (web->token[0] != '\0' && !is_token(web, token) &&
        !is_token(web, MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, cookie_name)))
        return send_text(connection, MHD_HTTP_UNAUTHORIZED,
                         "open the address that pnradar-view printed, with its token\n");
    if (web->token[0] != '\0' && token != NULL && strcmp(path, "/") == 0)
        return send_cookie(web, connection);
    return answer_path(web, connection, path);
}

/* Adds a new connection to the list, and removes a closed one. */
static void note_connection(void *context, struct MHD_Connection *connection, void **state,
                            enum MHD_ConnectionNotificationCode code)
{
    view_web *web = context;
    view_peer *peer = *state;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    pthread_mutex_lock(&web->store->mutex);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && info != NULL &&
        (peer = calloc(1, sizeof *peer)) != NULL) {
        peer->handle = info->connect_fd;
        peer->opened_ns = pnr_clock_ns();
        peer->next = web->peers;
        if (peer->next != NULL)
            peer->next->previous = peer;
        web->peers = peer;
        *state = peer;
    } else if (code == MHD_CONNECTION_NOTIFY_CLOSED && peer != NULL) {
        if (peer->previous != NULL)
            peer->previous->next = peer->next;
        else
            web->peers = peer->next;
        if (peer->next != NULL)
            peer->next->previous = peer->previous;
        free(peer);
        *state = NULL;
    }
    pthread_mutex_unlock(&web->store->mutex);
}

/* --- open and close --- */

__attribute__((format(printf, 2, 0))) static void log_server(void *context, const char *format,
                                                             va_list list)
{
    char text[256];

    (void)context;
    vsnprintf(text, sizeof text, format, list);
    text[strcspn(text, "\n")] = '\0';
    pnr_log(PNR_LOG_DEBUG, "web: %s", text);
}

/* Splits HOST:PORT. */
static int read_listen(const char *listen, char host[HOST_LEN], char port[16], pnr_error *error)
{
    const char *colon = strrchr(listen, ':');
    const size_t n = colon != NULL ? (size_t)(colon - listen) : 0;
    const unsigned long value = n > 0 ? strtoul(colon + 1, NULL, 10) : 65536;

    if (n == 0 || n >= HOST_LEN || strlen(colon + 1) > 5 || value > 65535 ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) || colon[1] == '\0')
        return pnr_error_set(error, PNR_EUSAGE, "--listen %s: want HOST:PORT, as 127.0.0.1:8080",
                             listen);
    snprintf(host, HOST_LEN, "%.*s", (int)n, listen);
    strcpy(port, colon + 1);
    return PNR_OK;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 ==
               127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static int choose_token(view_web *web, const char *token, bool is_needed, pnr_error *error)
{
    unsigned char bytes[TOKEN_LEN / 2];

    if (token != NULL) {
        if (strlen(token) < 16 || strlen(token) > TOKEN_LEN ||
            strspn(token, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") !=
                strlen(token))
            return pnr_error_set(error, PNR_EUSAGE,
                                 "--token: want 16 to %d letters, digits, - and _", TOKEN_LEN);
        strcpy(web->token, token);
        return PNR_OK;
    }
    if (!is_needed)
        return PNR_OK;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "no random numbers for the token: %s",
                             strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(web->token + 2 * i, 3, "%02x", bytes[i]);
    return PNR_OK;
}

static int start_daemon(view_web *web, const char *listen, const struct addrinfo *at,
                        pnr_error *error)
{
    const unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                           MHD_USE_ERROR_LOG | (at->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0);

    int reason;

    errno = 0;
    web->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, answer_request, web, MHD_OPTION_SOCK_ADDR, at->ai_addr,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)VIEW_MAX_CLIENTS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
        MHD_OPTION_NOTIFY_CONNECTION, note_connection, web, MHD_OPTION_EXTERNAL_LOGGER, log_server,
        NULL, MHD_OPTION_END);
    if (web->daemon != NULL)
        return PNR_OK;
    reason = errno != 0 ? errno : EADDRNOTAVAIL;
    return pnr_error_set(error, PNR_EUNAVAILABLE, "--listen %s: %s%s", listen, strerror(reason),
                         reason == EADDRINUSE ? ": another program has it; choose another port"
                         : reason == EADDRNOTAVAIL
                             ? ": no interface of this machine has it; choose one that `ip "
                               "address` lists, or 0.0.0.0 for all"
                             : "");
}

int view_web_open(view_store *store, const view_web_options *options, view_web **out, char url[512],
                  pnr_error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    view_web *web = calloc(1, sizeof *web);
    char name[HOST_LEN], port[16];
    char *host = name;
    struct addrinfo *at = NULL;
    int code;

    *out = NULL;
    if (web == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "view: out of memory");
    web->store = store;
    if ((code = read_listen(options->listen, name, port, error)) != PNR_OK)
        goto fail;
    strcpy(web->host, name);
    if (host[0] == '[' && host[strlen(host) - 1] == ']') {
        host[strlen(host) - 1] = '\0';
        host++;
    }
    if ((code = getaddrinfo(host, port, &hints, &at)) != 0) {
        code = pnr_error_set(error, PNR_EUSAGE, "--listen %s: %s", options->listen,
                             gai_strerror(code));
        goto fail;
    }
    if ((code = choose_token(web, options->token, !is_loopback(at->ai_addr), error)) != PNR_OK ||
        (code = start_daemon(web, options->listen, at, error)) != PNR_OK)
        goto fail;
    freeaddrinfo(at);
    snprintf(url, 512, "http://%s:%u/%s%s", web->host,
             MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_BIND_PORT)->port,
             web->token[0] != '\0' ? "?token=" : "", web->token);
    *out = web;
    return PNR_OK;
fail:
    if (at != NULL)
        freeaddrinfo(at);
    free(web);
    return code;
}

void view_web_close(view_web *web)
{
    if (web == NULL)
        return;
    pthread_mutex_lock(&web->store->mutex);
    web->is_closing = true; /* from now on no connection waits, because a waiting connection cannot
                             * be closed */
    pthread_mutex_unlock(&web->store->mutex);
    view_web_wake(web);
    MHD_stop_daemon(web->daemon);
    free(web);
}
