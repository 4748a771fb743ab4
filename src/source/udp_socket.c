/* SPDX-License-Identifier: MIT */
/* Binds sockets for datagrams, joins multicast groups, and asks for a large buffer. */
#include "source/udp_socket.h"

#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int refuse_errno(const char *name, const char *what, pnr_error *error)
{
    const int number = errno;
    const int code = number == EACCES || number == EPERM               ? PNR_EPERMISSION
                     : number == EADDRINUSE || number == EADDRNOTAVAIL ? PNR_EUNAVAILABLE
                     : number == ENODEV || number == ENXIO             ? PNR_ECONFIG
                                                                       : PNR_EIO;

    return pnr_error_set(error, code, "source.input = %.200s: %s: %s", name, what,
                         strerror(number));
}

/* Returns the words for a bind that has failed with the present errno. */
static const char *bind_advice(void)
{
    return errno == EADDRNOTAVAIL ? "no interface of this machine has this address (take one that "
                                    "`ip address` lists, or * for all)"
           : errno == EADDRINUSE  ? "another program receives there (stop it, or take another port)"
           : errno == EACCES      ? "a port below 1024 is for root (take a higher one)"
                                  : "bind";
}

/* Finds the address. *interface: number of the interface after '%'; 0: no interface is given. */
static int find_address(const char *name, const pnr_address *address, struct addrinfo **found,
                        unsigned *interface, pnr_error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE};
    char host[PNR_HOST_LEN];
    char *percent;
    int unknown;

    strcpy(host, address->host);
    *interface = 0;
    if ((percent = strchr(host, '%')) != NULL) {
        *percent = '\0';
        if ((*interface = if_nametoindex(percent + 1)) == 0)
            return pnr_refuse(error, "source.input = %.200s: there is no interface %.64s", name,
                              percent + 1);
    }
    unknown = getaddrinfo(strcmp(host, "*") == 0 ? NULL : host, address->port, &hints, found);
    if (unknown != 0)
        return pnr_refuse(error, "source.input = %.200s: %s", name, gai_strerror(unknown));
    return PNR_OK;
}

static bool is_multicast(const struct addrinfo *a)
{
    return a->ai_family == AF_INET6
               ? IN6_IS_ADDR_MULTICAST(
                     &((const struct sockaddr_in6 *)(const void *)a->ai_addr)->sin6_addr)
               : IN_MULTICAST(ntohl(
                     ((const struct sockaddr_in *)(const void *)a->ai_addr)->sin_addr.s_addr));
}

static int join_group(int fd, const struct addrinfo *a, unsigned interface)
{
    struct group_req group = {.gr_interface = interface};

    memcpy(&group.gr_group, a->ai_addr, a->ai_addrlen);
    return setsockopt(fd, a->ai_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP, MCAST_JOIN_GROUP,
                      &group, sizeof group);
}

/* The kernel doubles the wanted size, and reports the doubled size. A privileged process may exceed
 * net.core.rmem_max. */
static void enlarge_buffer(int fd, size_t bytes)
{
    const int wanted = bytes > INT_MAX / 2 ? INT_MAX / 2 : (int)bytes;
    int given = 0;
    socklen_t length = sizeof given;

    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof wanted) != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof wanted);
    if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &given, &length) == 0 && given / 2 < wanted)
        pnr_log(PNR_LOG_WARN,
                "source: the kernel gives %d bytes of buffer, source.udp_buffer wants %d: as root, "
                "sysctl -w net.core.rmem_max=%d",
                given / 2, wanted, wanted);
}

static int set_up(int fd, const char *name, const struct addrinfo *a, unsigned interface,
                  pnr_error *error)
{
    const int yes = 1;

    if (is_multicast(a) && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0)
        return refuse_errno(name, "SO_REUSEADDR", error);
    if (setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &yes, sizeof yes) != 0)
        return refuse_errno(name, "SO_RXQ_OVFL", error);
    if (bind(fd, a->ai_addr, a->ai_addrlen) != 0)
        return refuse_errno(name, bind_advice(), error);
    if (is_multicast(a) && join_group(fd, a, interface) != 0)
        return refuse_errno(name, "joining the multicast group", error);
    return PNR_OK;
}

int pnr_udp_socket_open(const char *name, const pnr_address *address, size_t buffer_bytes, int *fd,
                        pnr_error *error)
{
    struct addrinfo *found;
    unsigned interface;
    int code = find_address(name, address, &found, &interface, error);

    if (code != PNR_OK)
        return code;
    if (found->ai_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)found->ai_addr)->sin6_scope_id = interface;
    *fd = socket(found->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    code =
        *fd < 0 ? refuse_errno(name, "socket", error) : set_up(*fd, name, found, interface, error);
    freeaddrinfo(found);
    if (code == PNR_OK)
        enlarge_buffer(*fd, buffer_bytes);
    return code;
}
