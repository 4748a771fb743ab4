/* SPDX-License-Identifier: MIT */
/* The sender of a stream to a bound ZeroMQ socket. Any program may connect to this socket. While
 * the connection of the sender exists, messages of other connections are refused. */
#ifndef PNR_ZMQ_SENDER_H
#define PNR_ZMQ_SENDER_H

#include <stdbool.h>
#include <sys/types.h>
#include <zmq.h>

/* The sender of a stream. A struct of zeros: no sender is known yet. */
typedef struct pnr_zmq_sender {
    bool is_known;
    int fd;      /* descriptor of its connection, which libzmq owns */
    ino_t inode; /* inode of this descriptor, because a later connection may have the same
                  * descriptor */
} pnr_zmq_sender;

/* True if the stream accepts the message: it comes over the connection of the sender, this
 * connection has ended, or no sender is known yet. */
bool pnr_zmq_sender_admits(const pnr_zmq_sender *sender, const zmq_msg_t *message);
/* Notes that a message continues the stream. Its sender becomes the sender of the stream. */
void pnr_zmq_sender_hear(pnr_zmq_sender *sender, const zmq_msg_t *message);

#endif
