/* SPDX-License-Identifier: MIT */
/* The sender of a stream of datagrams. Anybody may send to a port of UDP: as long as the sender of
 * the stream goes on, no other one counts. */
#ifndef PNR_UDP_SENDER_H
#define PNR_UDP_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The sender of a stream. A struct of zeros: no sender is known yet. */
typedef struct pnr_udp_sender {
    struct sockaddr_storage address;
    socklen_t length;  /* of the address; 0: there is none yet */
    uint64_t heard_ns; /* CLOCK_MONOTONIC of its latest datagram with new samples */
    uint64_t empty_ns; /* when no datagram was left in the kernel the last time */
} pnr_udp_sender;

/* True if nothing that waited in the kernel was new for a second: the sender has stopped, restarted
 * or moved. Time in which we did not read is no silence. */
bool pnr_udp_sender_is_silent(const pnr_udp_sender *sender);
/* True if a datagram from this address may belong to the stream: it is the sender's, or the sender
 * is silent, or there is none yet. */
bool pnr_udp_sender_admits(const pnr_udp_sender *sender, const struct msghdr *message);
/* The datagram has new samples, and came at now_ns: its sender is that of the stream. */
void pnr_udp_sender_hear(pnr_udp_sender *sender, const struct msghdr *message, uint64_t now_ns);
/* Writes why a datagram is not admitted, with both addresses. Returns out. */
enum { PNR_UDP_REASON_LEN = 192 };
char *pnr_udp_sender_reason(const pnr_udp_sender *sender, const struct msghdr *message,
                            char out[PNR_UDP_REASON_LEN]);

#endif
