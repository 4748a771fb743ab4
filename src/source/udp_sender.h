/* SPDX-License-Identifier: MIT */
/* The sender of a stream of datagrams. Anybody may send to a UDP port. While the sender of the
 * stream is active, datagrams of other senders are refused. */
#ifndef PNR_UDP_SENDER_H
#define PNR_UDP_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The sender of a stream. A struct of zeros: no sender is known yet. */
typedef struct pnr_udp_sender {
    bool has_any_port; /* its datagrams may come from any port of its address */
    struct sockaddr_storage address;
    socklen_t length;  /* length of the address; 0: no sender is known yet */
    uint64_t heard_ns; /* CLOCK_MONOTONIC of its latest datagram with new samples */
    uint64_t empty_ns; /* CLOCK_MONOTONIC of the last read that emptied the buffer of the kernel */
} pnr_udp_sender;

/* True if a read has emptied the buffer of the kernel more than a second after the latest datagram
 * with new samples. The sender has then stopped, restarted or moved. A pause of this program does
 * not count. */
bool pnr_udp_sender_is_silent(const pnr_udp_sender *sender);
/* True if the stream accepts this datagram: it comes from the address of the sender, the sender is
 * silent, or no sender is known yet. */
bool pnr_udp_sender_admits(const pnr_udp_sender *sender, const struct msghdr *message);
/* Notes that a datagram with new samples arrived at now_ns (CLOCK_MONOTONIC). Its sender becomes
 * the sender of the stream. */
void pnr_udp_sender_hear(pnr_udp_sender *sender, const struct msghdr *message, uint64_t now_ns);
/* Writes the reason why a datagram is refused, with both addresses. Returns out. */
enum { PNR_UDP_REASON_LEN = 256 };
char *pnr_udp_sender_reason(const pnr_udp_sender *sender, const struct msghdr *message,
                            char out[PNR_UDP_REASON_LEN]);

#endif
