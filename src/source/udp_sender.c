/* SPDX-License-Identifier: MIT */
/* Decides if a datagram is from the sender of the stream, and if the sender has stopped. */
#include "source/udp_sender.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_LEN = INET6_ADDRSTRLEN + 16 };

static const uint64_t silence_ns = PNR_NS_PER_S;

bool pnr_udp_sender_is_silent(const pnr_udp_sender *s)
{
    return s->empty_ns > s->heard_ns && s->empty_ns - s->heard_ns > silence_ns;
}

/* Compares two addresses without their ports. */
static bool is_same_host(const void *a, const void *b)
{
    const struct sockaddr_in *a4 = a, *b4 = b;
    const struct sockaddr_in6 *a6 = a, *b6 = b;

    if (a6->sin6_family != b6->sin6_family)
        return false;
    return a6->sin6_family == AF_INET6
               ? memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0 &&
                     a6->sin6_scope_id == b6->sin6_scope_id
               : a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

bool pnr_udp_sender_admits(const pnr_udp_sender *s, const struct msghdr *message)
{
    return s->length == 0 ||
           (message->msg_namelen == s->length &&
            memcmp(message->msg_name, &s->address, s->length) == 0) ||
           (s->has_any_port && is_same_host(message->msg_name, &s->address)) ||
           pnr_udp_sender_is_silent(s);
}

void pnr_udp_sender_hear(pnr_udp_sender *s, const struct msghdr *message, uint64_t now_ns)
{
    s->heard_ns = now_ns;
    s->length = message->msg_namelen;
    memcpy(&s->address, message->msg_name, s->length);
}

/* Writes an address of IPv4 or IPv6 and its port. */
static const char *write_address(const void *address, char out[TEXT_LEN])
{
    const struct sockaddr_in *v4 = address;
    const struct sockaddr_in6 *v6 = address;
    const bool is_v6 = v6->sin6_family == AF_INET6;
    char host[INET6_ADDRSTRLEN] = "?";

    (void)inet_ntop(v6->sin6_family, is_v6 ? (const void *)&v6->sin6_addr : &v4->sin_addr, host,
                    sizeof host);
    snprintf(out, TEXT_LEN, "%s port %u", host, ntohs(is_v6 ? v6->sin6_port : v4->sin_port));
    return out;
}

char *pnr_udp_sender_reason(const pnr_udp_sender *s, const struct msghdr *message,
                            char out[PNR_UDP_REASON_LEN])
{
    char other[TEXT_LEN], ours[TEXT_LEN];

    snprintf(out, PNR_UDP_REASON_LEN, "it comes from %s, and the stream from %s%s",
             write_address(message->msg_name, other), write_address(&s->address, ours),
             is_same_host(message->msg_name, &s->address)
                 ? " (source.udp_sender = address takes all ports)"
                 : "");
    return out;
}
