/* SPDX-License-Identifier: MIT */
/* The guard of the publisher: limits how many peers connect and how many bytes they send. */
#include "publisher/guard.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "publisher/keys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

enum {
    EARLY = 32, /* messages that are kept until their connection is known */
    ADDRESS_LEN = PNR_KEYS_ADDRESS_LEN,
    AT_ONCE = 16,
    MAX_INBOUND = 600,    /* longest message of a peer in bytes, with encryption */
    INBOUND_BUFFER = 1,   /* bytes of a peer's receive buffer; the kernel takes at least 2304 */
    HANDSHAKE_MS = 5000,  /* longest handshake */
    HEARTBEAT_MS = 10000, /* interval between two heartbeats to a peer */
    SILENCE_MS = 30000,   /* a peer that answers no heartbeat for this time is disconnected */
    STATE_ESTABLISHED = 1 /* TCP_ESTABLISHED of the kernel */
};
static const char monitor_name[] = "inproc://pnradar-guard";
/* After a peer has sent too many bytes, no new connection from its address is accepted for this
 * time. */
static const uint64_t pause_ns = PNR_NS_PER_S;
/* A message that is older than this when a connection is accepted belongs to a former connection
 * with the same descriptor. */
static const uint64_t early_ns = PNR_NS_PER_S;

/* libzmq closes a connection within this time after it has reported the end. */
static const uint64_t close_ns = 100 * 1000 * 1000;
enum { CLOSE_LOOK_MS = 2 };

/* The address of a socket. */
typedef union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
} socket_address;

typedef struct connection {
    int handle; /* descriptor of libzmq, which identifies the connection in libzmq's events */
    int own;    /* descriptor of the guard for the same socket, because libzmq may close its own */
    bool is_ready;             /* the peer has sent a message */
    bool is_refused;           /* the key of the peer is refused; an event is posted */
    char address[ADDRESS_LEN]; /* address of the peer, without the port */
    unsigned port;
    uint64_t serial;   /* rises by one with each connection */
    uint64_t received; /* bytes received until the last check */
    double debt;       /* bytes beyond the rate that is allowed in the long run */
    uint64_t seen_ns;  /* time of the last check */
    ino_t inode;       /* identifies the socket: descriptors are used again */
    uint64_t ended_ns; /* time at which libzmq reported the end of a connection with this handle; 0:
                        * no report */
    size_t n_subscriptions;
} connection;

/* A message that arrives before its connection is known: libzmq reports messages and connections
 * over two sockets, in any order. */
typedef struct early_message {
    int handle; /* -1: the entry is empty */
    char address[ADDRESS_LEN];
    uint64_t came_ns;
    bool is_sound, subscribes;
} early_message;

struct pnr_guard {
    void *socket, *monitor;
    void *zap; /* socket for libzmq's questions about keys (keys.h); NULL: no keys are used */
    const pnr_config *config;
    const char *clients;
    pnr_events *events;
    int bytes;   /* epoll descriptor, readable when bytes have arrived on a connection */
    int stopped; /* eventfd that ends the thread */
    pthread_t thread;
    bool is_running;

    socket_address here; /* the address that the publisher listens on */

    pthread_mutex_t lock; /* protects all members after it */
    size_t n;
    connection *connections; /* [publisher.max_subscribers] */
    uint64_t serial;
    early_message early[EARLY]; /* the newest messages; message i is at index i mod EARLY */
    size_t n_early;
    char paused[ADDRESS_LEN]; /* address of the last peer that sent too many bytes */
    uint64_t paused_ns;       /* end of the pause for this address */
};

/* --- one connection --- */

/* True if a socket has the TCP port or the ipc path of the publisher. All connections of the
 * publisher have it. */
static bool is_of_publisher(const pnr_guard *g, int handle)
{
    socket_address here;
    socklen_t size = sizeof here;

    memset(&here, 0, sizeof here);
    if (getsockname(handle, &here.any, &size) != 0 || here.any.sa_family != g->here.any.sa_family)
        return false;
    if (here.any.sa_family == AF_UNIX)
        return memcmp(here.local.sun_path, g->here.local.sun_path, sizeof here.local.sun_path) == 0;
    return here.v4.sin_port == g->here.v4.sin_port; /* sockaddr_in6 has its port there too */
}

/* Reads the address and the port of the peer. False: the descriptor is no connection of the
 * publisher. This happens when libzmq has closed the connection and the program uses the same
 * number for another file. */
static bool read_peer(const pnr_guard *g, connection *c)
{
    socket_address peer;
    socklen_t size = sizeof peer;
    struct ucred owner;

    if (!is_of_publisher(g, c->own) || getpeername(c->own, &peer.any, &size) != 0)
        return false;
    c->port = 0;
    if (peer.any.sa_family == AF_INET) {
        c->port = ntohs(peer.v4.sin_port);
        return inet_ntop(AF_INET, &peer.v4.sin_addr, c->address, ADDRESS_LEN) != NULL;
    }
    if (peer.any.sa_family == AF_INET6) {
        c->port = ntohs(peer.v6.sin6_port);
        return inet_ntop(AF_INET6, &peer.v6.sin6_addr, c->address, ADDRESS_LEN) != NULL;
    }
    size = sizeof owner;
    if (peer.any.sa_family != AF_UNIX ||
        getsockopt(c->own, SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0)
        return false;
    snprintf(c->address, ADDRESS_LEN, "process %d", (int)owner.pid);
    return true;
}

/* Returns the number of bytes that the kernel has received on a TCP connection. Returns 0 for an
 * ipc connection: its bytes are not limited, because only programs of the same user can connect. */
static uint64_t received_bytes(const connection *c)
{
    struct tcp_info info;
    socklen_t size = sizeof info;

    memset(&info, 0, sizeof info);
    if (c->port == 0 || getsockopt(c->own, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return 0;
    return info.tcpi_bytes_received;
}

static void forget_connection(pnr_guard *g, connection *c)
{
    (void)epoll_ctl(g->bytes, EPOLL_CTL_DEL, c->own, NULL);
    close(c->own);
    *c = g->connections[--g->n];
}

/* Shuts a connection down. The kernel resets it when libzmq and the guard have closed their
 * descriptors; without the reset, a peer that is sending would block for a minute. */
static void hang_up(int handle)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(handle, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    (void)shutdown(handle, SHUT_RDWR);
}

/* Disconnects a peer; libzmq then closes its own descriptor and forgets the subscriptions. */
static void refuse_peer(pnr_guard *g, connection *c, const char *reason)
{
    pnr_event_post(g->events, PNR_EVENT_SUBSCRIBER_REFUSED, PNR_EVENT_NO_SAMPLE,
                   (double)c->received, (double)c->n_subscriptions,
                   c->port > 0 ? "subscriber %s port %u is disconnected: %s"
                               : "subscriber %s (%u) is disconnected: %s",
                   c->address, c->port, reason);
    hang_up(c->own);
    forget_connection(g, c);
}

static connection *find_handle(pnr_guard *g, int handle)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->connections[i].handle == handle)
            return &g->connections[i];
    return NULL;
}

static connection *find_inode(pnr_guard *g, ino_t inode)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->connections[i].inode == inode)
            return &g->connections[i];
    return NULL;
}

static connection *find_serial(pnr_guard *g, uint64_t serial)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->connections[i].serial == serial)
            return &g->connections[i];
    return NULL;
}

/* Returns the oldest connection whose peer has sent no message. NULL: there is none. */
static connection *find_idle(pnr_guard *g)
{
    connection *oldest = NULL;

    for (size_t i = 0; i < g->n; i++)
        if (!g->connections[i].is_ready &&
            (oldest == NULL || g->connections[i].serial < oldest->serial))
            oldest = &g->connections[i];
    return oldest;
}

/* Counts the bytes that have arrived on a connection, and disconnects a peer that sends too
 * many. */
static void count_bytes(pnr_guard *g, connection *c)
{
    const uint64_t now = pnr_clock_ns(), received = received_bytes(c);

    c->debt -= (double)(now - c->seen_ns) * 1e-9 * PNR_GUARD_BYTES_PER_S;
    c->debt = (c->debt > 0 ? c->debt : 0) + (double)(received - c->received);
    c->received = received;
    c->seen_ns = now;
    if (c->debt <= PNR_GUARD_BYTES)
        return;
    memcpy(g->paused, c->address, ADDRESS_LEN);
    g->paused_ns = now + pause_ns;
    refuse_peer(g, c, "it sends more than a subscriber needs to");
}

/* --- libzmq's events --- */

/* Counts a message. Disconnects the peer if the message neither adds nor ends a subscription, or if
 * the peer has too many subscriptions. */
static void count_message(pnr_guard *g, connection *c, bool is_sound, bool subscribes)
{
    c->is_ready = true;
    if (is_sound && subscribes)
        c->n_subscriptions++;
    else if (is_sound && c->n_subscriptions > 0)
        c->n_subscriptions--;
    if (!is_sound)
        refuse_peer(g, c, "it sent a message that is no subscription of at most 255 bytes");
    else if (c->n_subscriptions > PNR_GUARD_SUBSCRIPTIONS)
        refuse_peer(g, c, "it has more than 64 subscriptions");
}

/* True if a message belongs to the connection. address: the address of the peer, as libzmq writes
 * it. */
static bool is_from(const connection *c, const char *address)
{
    return c->port == 0 || strstr(address, c->address) != NULL;
}

/* Counts the messages that arrived before their connection was known. Does not count messages of a
 * former connection with this descriptor. The first bad message ends the connection, and the other
 * messages are dropped: the peer is refused once, not once for each message. */
static void count_early(pnr_guard *g, int handle, uint64_t serial)
{
    for (size_t i = 0; i < EARLY; i++) {
        early_message *m = &g->early[(g->n_early + i) % EARLY]; /* the oldest first */
        connection *c = find_serial(g, serial);

        if (m->handle != handle)
            continue;
        if (c == NULL) {
            m->handle = -1;
        } else if (m->came_ns + early_ns >= c->seen_ns && is_from(c, m->address)) {
            m->handle = -1;
            count_message(g, c, m->is_sound, m->subscribes);
        }
    }
}

/* Admits a new connection. If publisher.max_subscribers peers are connected, first disconnects the
 * oldest peer that has sent no message. Without such a peer, refuses the new connection. */
static void accept_peer(pnr_guard *g, int handle)
{
    connection new = {.handle = handle, .seen_ns = pnr_clock_ns()}, *c;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};

    new.own = fcntl(handle, F_DUPFD_CLOEXEC, 3);
    if (new.own < 0)
        return; /* libzmq has closed the connection already */
    new.inode = pnr_file_inode(new.own);
    if (!read_peer(g, &new) || find_inode(g, new.inode) != NULL) {
        /* the descriptor is used again: for another file, or for a connection that is known */
        close(new.own);
        return;
    }
    if ((c = find_handle(g, handle)) != NULL)
        forget_connection(g, c);
    if (g->n == g->config->publisher.max_subscribers && (c = find_idle(g)) != NULL)
        refuse_peer(g, c, "it has subscribed to nothing, and others wait");
    if (g->n < g->config->publisher.max_subscribers) {
        new.serial = event.data.u64 = ++g->serial;
        g->connections[g->n++] = new;
        if (new.seen_ns < g->paused_ns && strcmp(new.address, g->paused) == 0)
            refuse_peer(g, &g->connections[g->n - 1], "this address sent too much a moment ago");
        else if (epoll_ctl(g->bytes, EPOLL_CTL_ADD, new.own, &event) != 0)
            refuse_peer(g, &g->connections[g->n - 1], "it cannot be watched");
        else /* no event comes for bytes that libzmq has already read */
            count_bytes(g, &g->connections[g->n - 1]);
        count_early(g, handle, new.serial);
        return;
    }
    hang_up(new.own);
    close(new.own);
    pnr_event_post(g->events, PNR_EVENT_SUBSCRIBER_REFUSED, PNR_EVENT_NO_SAMPLE, 0, 0,
                   "subscriber %s is refused: publisher.max_subscribers = %zu are connected",
                   new.address, g->config->publisher.max_subscribers);
}

/* Handles libzmq's report that a connection with this handle has ended. Forgets an ipc connection,
 * and a TCP connection that is no longer established. The report can also be about an earlier
 * connection with the same handle. An established TCP connection is therefore kept until
 * finish_connections() finds that libzmq has closed it. */
static void end_connection(pnr_guard *g, connection *c)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;

    if (c->port == 0 || getsockopt(c->own, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        info.tcpi_state != STATE_ESTABLISHED)
        forget_connection(g, c);
    else
        c->ended_ns = pnr_clock_ns();
}

/* Disconnects a peer whose connection libzmq has closed. Posts an event, unless the key of the peer
 * was refused: this refusal has posted an event. */
static void finish_connection(pnr_guard *g, connection *c)
{
    if (c->is_refused)
        forget_connection(g, c);
    else
        refuse_peer(g, c,
                    c->is_ready ? "it broke the protocol, sent a long message or fell silent"
                                : "its handshake failed or took too long");
}

/* Finishes the connections with a reported end that libzmq has closed. Drops a report if libzmq has
 * not closed the connection within close_ns. Returns the time until the next call in ms; -1: no
 * connection has a reported end. */
static long finish_connections(pnr_guard *g)
{
    long wait_ms = -1;

    pthread_mutex_lock(&g->lock);
    for (size_t i = g->n; i-- > 0;) {
        connection *c = &g->connections[i];

        if (c->ended_ns == 0)
            continue;
        if (pnr_file_inode(c->handle) != c->inode)
            finish_connection(g, c);
        else if (pnr_clock_ns() - c->ended_ns > close_ns)
            c->ended_ns = 0;
        else
            wait_ms = CLOSE_LOOK_MS;
    }
    pthread_mutex_unlock(&g->lock);
    return wait_ms;
}

/* Handles one event of libzmq's monitor. Returns false if there is none. */
static bool take_monitor_event(pnr_guard *g)
{
    unsigned char data[6];
    char address[256];
    socklen_t size = sizeof g->here;
    uint16_t event;
    int32_t handle;
    connection *c;

    if (zmq_recv(g->monitor, data, sizeof data, ZMQ_DONTWAIT) != (int)sizeof data)
        return false;
    (void)zmq_recv(g->monitor, address, sizeof address, ZMQ_DONTWAIT);
    memcpy(&event, data, sizeof event);
    memcpy(&handle, data + sizeof event, sizeof handle);
    pthread_mutex_lock(&g->lock);
    if (event == ZMQ_EVENT_LISTENING)
        (void)getsockname(handle, &g->here.any, &size);
    else if (event == ZMQ_EVENT_ACCEPTED)
        accept_peer(g, handle);
    else if ((c = find_handle(g, handle)) != NULL)
        end_connection(g, c);
    pthread_mutex_unlock(&g->lock);
    return true;
}

/* Answers libzmq's question about a key. If the key is refused, marks the connection: its end posts
 * no second event. The question names the address without the port, so of several connections of
 * an address that shake hands, any one is marked. */
static void answer_key(pnr_guard *g)
{
    char address[PNR_KEYS_ADDRESS_LEN];

    while (take_monitor_event(g))
        ; /* the connection of the question is known */
    if (pnr_keys_answer(g->zap, g->clients, g->events, address))
        return;
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->n; i++) {
        connection *c = &g->connections[i];

        if (!c->is_ready && !c->is_refused && is_from(c, address)) {
            c->is_refused = true;
            break;
        }
    }
    pthread_mutex_unlock(&g->lock);
}

/* Checks the connections on which bytes have arrived and the connections that a peer has closed. */
static void take_bytes(pnr_guard *g)
{
    struct epoll_event events[AT_ONCE];
    const int n = epoll_wait(g->bytes, events, AT_ONCE, 0);

    pthread_mutex_lock(&g->lock);
    for (int i = 0; i < n; i++) {
        connection *c = find_serial(g, events[i].data.u64);

        if (c != NULL)
            count_bytes(g, c);
        if ((events[i].events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0 &&
            (c = find_serial(g, events[i].data.u64)) != NULL)
            forget_connection(g, c);
    }
    pthread_mutex_unlock(&g->lock);
}

/* Counts one message of a peer. Returns true if the message adds or ends a subscription. handle:
 * the descriptor of the connection. address: the property Peer-Address of the message; NULL: libzmq
 * made the message. */
static bool admit_message(pnr_guard *g, int handle, const char *address, const unsigned char *data,
                          size_t size)
{
    const bool is_sound = size > 0 && size <= PNR_GUARD_SUBSCRIPTION_LEN && data[0] <= 1;
    const bool subscribes = size > 0 && data[0] == 1;
    connection *c;

    if (address == NULL)
        return is_sound;
    pthread_mutex_lock(&g->lock);
    c = find_handle(g, handle);
    if (c != NULL && is_from(c, address)) {
        count_message(g, c, is_sound, subscribes);
    } else {
        early_message *m = &g->early[g->n_early++ % EARLY];

        *m = (early_message){.handle = handle,
                             .came_ns = pnr_clock_ns(),
                             .is_sound = is_sound,
                             .subscribes = subscribes};
        memccpy(m->address, address, '\0', ADDRESS_LEN - 1);
    }
    pthread_mutex_unlock(&g->lock);
    return is_sound;
}

int pnr_guard_receive(pnr_guard *g, unsigned char data[PNR_GUARD_SUBSCRIPTION_LEN], size_t *size)
{
    zmq_msg_t message;
    int code = PNR_EAGAIN;

    zmq_msg_init(&message);
    if (zmq_msg_recv(&message, g->socket, ZMQ_DONTWAIT) >= 0) {
        *size = zmq_msg_size(&message);
        code = admit_message(g, zmq_msg_get(&message, ZMQ_SRCFD),
                             zmq_msg_gets(&message, "Peer-Address"), zmq_msg_data(&message), *size)
                   ? PNR_OK
                   : PNR_EDATA;
    }
    if (code == PNR_OK)
        memcpy(data, zmq_msg_data(&message), *size);
    zmq_msg_close(&message);
    return code;
}

/* --- the thread --- */

static void *run_guard(void *argument)
{
    pnr_guard *g = argument;
    zmq_pollitem_t items[] = {{.fd = g->stopped, .events = ZMQ_POLLIN},
                              {.fd = g->bytes, .events = ZMQ_POLLIN},
                              {.socket = g->monitor, .events = ZMQ_POLLIN},
                              {.socket = g->zap, .events = ZMQ_POLLIN}};
    const int n = g->zap != NULL ? 4 : 3;

    (void)prctl(PR_SET_NAME, "pnradar-guard");
    while ((items[0].revents & ZMQ_POLLIN) == 0) {
        if (zmq_poll(items, n, finish_connections(g)) < 0 && errno != EINTR)
            break;
        if ((items[1].revents & ZMQ_POLLIN) != 0)
            take_bytes(g);
        if ((items[2].revents & ZMQ_POLLIN) != 0)
            (void)take_monitor_event(g);
        if (n == 4 && (items[3].revents & ZMQ_POLLIN) != 0)
            answer_key(g);
    }
    return NULL;
}

/* Starts the thread with all signals blocked: they are for the main thread. */
static int start_thread(pnr_guard *g)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&g->thread, NULL, run_guard, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    g->is_running = failed == 0;
    return failed;
}

static void *open_pair(void *context, const char *name)
{
    const int linger = 0;
    void *pair = zmq_socket(context, ZMQ_PAIR);

    if (pair != NULL && (zmq_setsockopt(pair, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
                         zmq_connect(pair, name) != 0)) {
        zmq_close(pair);
        pair = NULL;
    }
    return pair;
}

/* Sets the options that limit what a peer may send. The queue of received messages has no limit.
 * With a limit, libzmq stops reading from a peer when the queue is full. If the peer then
 * disconnects, and libzmq has already read a PING of this peer, libzmq 4.3 aborts the program
 * (assertion !_io_error). The guard keeps the queue short: it counts the bytes of each TCP
 * connection, and the small receive buffer slows the peer until the guard disconnects it. */
static int limit_socket(void *socket, pnr_error *error)
{
    static const int64_t most_bytes = MAX_INBOUND;
    static const struct {
        int option, value;
    } limits[] = {
        {ZMQ_XPUB_VERBOSER, 1},
        {ZMQ_RCVHWM, 0}, /* no limit */
        {ZMQ_RCVBUF, INBOUND_BUFFER},
        {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS},
        {ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS},
        {ZMQ_HEARTBEAT_TIMEOUT, SILENCE_MS},
    };
    int failed = zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &most_bytes, sizeof most_bytes);

    for (size_t i = 0; i < sizeof limits / sizeof limits[0] && failed == 0; i++)
        failed = zmq_setsockopt(socket, limits[i].option, &limits[i].value, sizeof limits[i].value);
    return failed == 0
               ? PNR_OK
               : pnr_error_set(error, PNR_EUNAVAILABLE, "publisher: no limits of its socket: %s",
                               zmq_strerror(zmq_errno()));
}

int pnr_guard_create(void *context, void *socket, const pnr_config *config, const char *clients,
                     pnr_events *events, pnr_guard **out, pnr_error *error)
{
    const int wanted = ZMQ_EVENT_LISTENING | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED;
    pnr_guard *g = calloc(1, sizeof *g);
    pthread_mutexattr_t attribute;
    int code;

    *out = NULL;
    if (g == NULL || (g->connections = calloc(config->publisher.max_subscribers,
                                              sizeof *g->connections)) == NULL) {
        free(g);
        return pnr_error_set(error, PNR_ENOMEMORY, "publisher: out of memory");
    }
    for (size_t i = 0; i < EARLY; i++)
        g->early[i].handle = -1;
    g->socket = socket;
    g->config = config;
    g->clients = clients;
    g->events = events;
    pthread_mutexattr_init(&attribute);
    (void)pthread_mutexattr_setprotocol(&attribute, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&g->lock, &attribute);
    pthread_mutexattr_destroy(&attribute);
    g->bytes = epoll_create1(EPOLL_CLOEXEC);
    g->stopped = eventfd(0, EFD_CLOEXEC);
    if ((code = limit_socket(socket, error)) == PNR_OK && clients[0] != '\0')
        code = pnr_keys_open(context, clients, &g->zap, error);
    if (code == PNR_OK &&
        (g->bytes < 0 || g->stopped < 0 || zmq_socket_monitor(socket, monitor_name, wanted) != 0 ||
         (g->monitor = open_pair(context, monitor_name)) == NULL || start_thread(g) != 0))
        code = pnr_error_set(error, PNR_EUNAVAILABLE, "publisher: no guard of its connections: %s",
                             strerror(errno));
    if (code != PNR_OK)
        pnr_guard_destroy(g);
    else
        *out = g;
    return code;
}

void pnr_guard_destroy(pnr_guard *g)
{
    const uint64_t one = 1;

    if (g == NULL)
        return;
    if (g->is_running) {
        while (write(g->stopped, &one, sizeof one) < 0 && errno == EINTR)
            ;
        pthread_join(g->thread, NULL);
    }
    (void)zmq_socket_monitor(g->socket, NULL, 0);
    if (g->monitor != NULL)
        zmq_close(g->monitor);
    if (g->zap != NULL)
        zmq_close(g->zap);
    while (g->n > 0)
        forget_connection(g, &g->connections[g->n - 1]);
    if (g->bytes >= 0)
        close(g->bytes);
    if (g->stopped >= 0)
        close(g->stopped);
    pthread_mutex_destroy(&g->lock);
    free(g->connections);
    free(g);
}
