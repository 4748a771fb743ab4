/* SPDX-License-Identifier: MIT */
/* The address of the publisher: its syntax, its reach and its encryption. */
#include "publisher/endpoint.h"

#include "base/log.h"
#include "publisher/keys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

static const char *const places[] = {"publisher.endpoint = ", "publisher.gnuradio = "};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Judges the reach only from the text of the host, because a name may later resolve to another
 * address. */
static pnr_reach reach_of(const char *host, bool is_v6)
{
    struct in_addr v4;
    struct in6_addr v6;
    const bool is_loopback =
        is_v6 ? inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6)
              : inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;

    return is_loopback ? PNR_REACH_LOOPBACK : PNR_REACH_WIDER;
}

static bool is_port(const char *text)
{
    const size_t n = strspn(text, "0123456789");

    return strcmp(text, "*") == 0 ||
           (n > 0 && n <= 6 && text[n] == '\0' && strtoul(text, NULL, 10) <= 65535);
}

static int read_tcp(const char *place, const char *endpoint, char bind[PNR_ENDPOINT_LEN],
                    pnr_reach *reach, pnr_error *error)
{
    const char *host = endpoint + strlen("tcp://");
    const char *colon = strrchr(host, ':');
    const bool is_v6 = host[0] == '[';
    char name[PNR_ENDPOINT_LEN];
    struct in6_addr v6;
    size_t length = colon != NULL ? (size_t)(colon - host) : 0;

    if (length == 0 || !is_port(colon + 1) || length >= sizeof name)
        return pnr_refuse(error, "%s%s: want tcp://ADDRESS:PORT, PORT 0..65535 or *", place,
                          endpoint);
    if (is_v6 && (length < 2 || host[length - 1] != ']'))
        return pnr_refuse(error, "%s%s: [ without ]: want tcp://[ADDRESS]:PORT", place, endpoint);
    memcpy(name, host + is_v6, length - 2 * is_v6);
    name[length - 2 * is_v6] = '\0';
    if (!is_v6 && inet_pton(AF_INET6, name, &v6) == 1)
        return pnr_refuse(error, "%s%s: an IPv6 address needs brackets: want tcp://[%.*s]%s", place,
                          endpoint, INET6_ADDRSTRLEN, name, colon);
    if (!is_v6 && (strcmp(name, "localhost") == 0 || strcmp(name, "lo") == 0))
        snprintf(bind, PNR_ENDPOINT_LEN, "tcp://127.0.0.1%s", colon);
    else
        *reach = reach_of(name, is_v6);
    return PNR_OK;
}

int pnr_endpoint_read(const char *place, const char *endpoint, char bind[PNR_ENDPOINT_LEN],
                      pnr_reach *reach, pnr_error *error)
{
    *reach = PNR_REACH_LOOPBACK;
    if (strlen(endpoint) >= PNR_ENDPOINT_LEN)
        return pnr_refuse(error, "%s%.40s... is longer than %d bytes", place, endpoint,
                          PNR_ENDPOINT_LEN - 1);
    strcpy(bind, endpoint);
    if (starts_with(endpoint, "tcp://"))
        return read_tcp(place, endpoint, bind, reach, error);
    if ((starts_with(endpoint, "ipc://") && endpoint[6] != '\0') ||
        (starts_with(endpoint, "inproc://") && endpoint[9] != '\0'))
        return PNR_OK;
    return pnr_refuse(error, "%s%s: want tcp://ADDRESS:PORT, ipc://PATH or inproc://NAME", place,
                      endpoint);
}

int pnr_endpoint_find(const char *place, const char *endpoint, char address[PNR_ENDPOINT_LEN],
                      pnr_error *error)
{
    static const char *const any[] = {"*", "0.0.0.0", "[::]"};
    const struct addrinfo stream = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[PNR_ENDPOINT_LEN];
    const char *port;
    pnr_reach reach;
    int code = pnr_endpoint_read(place, endpoint, address, &reach, error);

    if (code != PNR_OK || !starts_with(address, "tcp://"))
        return code;
    port = strrchr(endpoint, ':') + 1;
    if (strcmp(port, "*") == 0 || strtoul(port, NULL, 10) == 0)
        return pnr_refuse(error, "%s%s: the publisher chooses this port and logs it: give the port",
                          place, endpoint);
    snprintf(host, sizeof host, "%s", address + strlen("tcp://"));
    *strrchr(host, ':') = '\0';
    for (size_t i = 0; i < sizeof any / sizeof any[0]; i++)
        if (strcmp(host, any[i]) == 0)
            snprintf(address, PNR_ENDPOINT_LEN, "tcp://%s:%s", i < 2 ? "127.0.0.1" : "[::1]", port);
    if (host[0] == '[' || host[0] == '*')
        return PNR_OK;
    code = getaddrinfo(host, port, &stream, &found);
    if (code != 0)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "%s%s: no address of host %s: %s", place,
                             endpoint, host, gai_strerror(code));
    freeaddrinfo(found);
    return PNR_OK;
}

static int refuse_bind(const char *place, const char *endpoint, int reason, pnr_error *error)
{
    const bool is_wrong = reason == EINVAL || reason == ENAMETOOLONG || reason == EPROTONOSUPPORT;
    const bool is_denied = reason == EACCES || reason == EPERM;

    return pnr_error_set(
        error,
        is_wrong    ? PNR_ECONFIG
        : is_denied ? PNR_EPERMISSION
                    : PNR_EUNAVAILABLE,
        "cannot bind %s%s: %s", place, endpoint,
        reason == EADDRINUSE      ? "address in use: stop the other program, take another "
                                    "port, or publish nothing (an empty endpoint)"
        : reason == EADDRNOTAVAIL ? "no network interface of this machine has this address"
        : reason == ENOENT        ? "its folder does not exist"
        : is_denied               ? "permission denied: a port above 1023, or another folder"
                                  : zmq_strerror(reason));
}

/* Refuses an ipc path where a file or a socket in use exists: ZeroMQ would remove this file or
 * socket and then bind. */
static int check_ipc(const char *place, const char *endpoint, pnr_error *error)
{
    const char *path = endpoint + strlen("ipc://");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    int handle, answered;

    if (!starts_with(endpoint, "ipc://") || path[0] == '@' || path[0] == '*' ||
        lstat(path, &status) != 0)
        return PNR_OK;
    if (!S_ISSOCK(status.st_mode))
        return pnr_refuse(error, "%s%s: a file that is no socket lies there: take another path",
                          place, endpoint);
    if (strlen(path) >= sizeof address.sun_path)
        return PNR_OK; /* bind reports the error */
    strcpy(address.sun_path, path);
    handle = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (handle < 0)
        return PNR_OK;
    answered = connect(handle, (const struct sockaddr *)&address, sizeof address);
    close(handle);
    return answered == 0 ? refuse_bind(place, endpoint, EADDRINUSE, error) : PNR_OK;
}

static int use_curve(void *socket, const char *path, pnr_error *error)
{
    const int server = 1;
    char secret[PNR_KEY_LEN + 1], public[PNR_KEY_LEN + 1];
    int code;

    if (!zmq_has("curve"))
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "publisher.curve_secret_path: this libzmq was built without CURVE");
    code = pnr_keys_read_secret("publisher.curve_secret_path =", path, secret, error);
    if (code != PNR_OK)
        return code;
    if (zmq_curve_public(public, secret) != 0 ||
        zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &server, sizeof server) != 0 ||
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, sizeof secret) != 0)
        code = pnr_error_set(error, PNR_EDATA, "%s: not a CURVE secret key in Z85", path);
    else
        pnr_log(PNR_LOG_INFO, "publisher: CURVE public key %s", public);
    explicit_bzero(secret, sizeof secret);
    return code;
}

/* Binds the socket. Only the owner may connect to an ipc socket: its mode is 0600 from the start,
 * because the umask applies when libzmq creates it. With a wildcard for the path, libzmq also
 * creates a folder. The owner needs the execute bit of this folder. */
static int bind_private(void *socket, const char *bind)
{
    const mode_t others = S_IRWXG | S_IRWXO;
    const mode_t saved = umask(strcmp(bind, "ipc://*") == 0 ? others : S_IXUSR | others);
    const int code = zmq_bind(socket, bind);

    umask(saved);
    return code;
}

/* The groups of peers that may subscribe, the widest group last. */
typedef enum { ACCESS_NOBODY, ACCESS_LOCAL, ACCESS_KEYS, ACCESS_EVERYONE } access_kind;

/* clients: the value of publisher.curve_clients. */
static access_kind access_of(const char *endpoint, const char *clients)
{
    char bind[PNR_ENDPOINT_LEN];
    pnr_reach reach;

    if (endpoint[0] == '\0')
        return ACCESS_NOBODY;
    if (clients[0] != '\0')
        return ACCESS_KEYS;
    return pnr_endpoint_read("", endpoint, bind, &reach, NULL) == PNR_OK &&
                   reach == PNR_REACH_LOOPBACK
               ? ACCESS_LOCAL
               : ACCESS_EVERYONE;
}

const char *pnr_endpoint_access(const pnr_config *config)
{
    static const char *const words[] = {"nobody", "local", "keys", "everyone"};
    const access_kind results =
        access_of(config->publisher.endpoint, config->publisher.curve_clients);
    const access_kind vectors = access_of(config->publisher.gnuradio, "");

    return words[vectors > results ? vectors : results];
}

/* Refuses an address that other machines can reach, unless only known keys may subscribe or
 * publisher.expose is set. */
static int check_reach(const pnr_config *config, pnr_bind what, pnr_error *error)
{
    const bool has_secret = config->publisher.curve_secret_path[0] != '\0';

    if (what == PNR_BIND_GNURADIO) {
        if (config->publisher.expose ||
            access_of(config->publisher.gnuradio, "") != ACCESS_EVERYONE)
            return PNR_OK;
        return pnr_refuse(error, "%s%s reaches beyond this machine: give publisher.expose = yes",
                          places[what], config->publisher.gnuradio);
    }

    if (config->publisher.curve_clients[0] != '\0' && !has_secret)
        return pnr_refuse(error,
                          "publisher.curve_clients = %s: give publisher.curve_secret_path "
                          "too, the publisher's own key (pnradar-keys makes one)",
                          config->publisher.curve_clients);
    if (config->publisher.expose ||
        access_of(config->publisher.endpoint, config->publisher.curve_clients) != ACCESS_EVERYONE)
        return PNR_OK;
    return pnr_refuse(error,
                      "publisher.endpoint = %s reaches beyond this machine%s: give %s"
                      "publisher.curve_clients, or publisher.expose = yes",
                      config->publisher.endpoint, has_secret ? ", and any key may subscribe" : "",
                      has_secret ? "" : "publisher.curve_secret_path and ");
}

int pnr_endpoint_bind(void *socket, const pnr_config *config, pnr_bind what,
                      char bound[PNR_ENDPOINT_LEN], pnr_error *error)
{
    const bool is_ours = what == PNR_BIND_RESULTS;
    const char *endpoint = is_ours ? config->publisher.endpoint : config->publisher.gnuradio;
    const char *secret_path = is_ours ? config->publisher.curve_secret_path : "";
    const int v6 = 1;
    size_t size = PNR_ENDPOINT_LEN;
    char bind[PNR_ENDPOINT_LEN];
    pnr_reach reach;
    int code = pnr_endpoint_read(places[what], endpoint, bind, &reach, error);

    if (code != PNR_OK || (code = check_ipc(places[what], bind, error)) != PNR_OK)
        return code;
    if (strcmp(bind, endpoint) != 0)
        pnr_log(PNR_LOG_INFO, "publisher: %s is bound as %s", endpoint, bind);
    if ((code = check_reach(config, what, error)) != PNR_OK)
        return code;
    if (secret_path[0] != '\0' && (code = use_curve(socket, secret_path, error)) != PNR_OK)
        return code;
    if (strchr(bind, '[') != NULL && zmq_setsockopt(socket, ZMQ_IPV6, &v6, sizeof v6) != 0)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "publisher: no IPv6: %s",
                             zmq_strerror(zmq_errno()));
    if (bind_private(socket, bind) != 0)
        return refuse_bind(places[what], endpoint, zmq_errno(), error);
    if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &size) != 0)
        return pnr_error_set(error, PNR_EINTERNAL, "publisher: %s", zmq_strerror(zmq_errno()));
    return PNR_OK;
}

/* Raises the limit of open descriptors by n, but not above the limit of the system. */
static void raise_limit(size_t n)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
        return;
    limit.rlim_cur += n;
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Opens n descriptors and closes them again. Returns 0, or the errno of the first failure. */
static int try_files(size_t n)
{
    int *handles = malloc(n * sizeof *handles);
    int reason = handles == NULL ? ENOMEM : 0;
    size_t i = 0;

    for (; reason == 0 && i < n; i++)
        if ((handles[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
            reason = errno;
            break;
        }
    while (i > 0)
        close(handles[--i]);
    free(handles);
    return reason;
}

int pnr_endpoint_enough_files(size_t n, pnr_error *error)
{
    int reason = try_files(n);

    if (reason == EMFILE) {
        raise_limit(n);
        reason = try_files(n);
    }
    if (reason == 0)
        return PNR_OK;
    return pnr_error_set(error, PNR_EUNAVAILABLE,
                         "publisher: fewer than %zu free file descriptors: %s%s", n,
                         strerror(reason),
                         reason == EMFILE ? ": a smaller publisher.max_subscribers, or a higher "
                                            "ulimit -n"
                                          : "");
}
