/* SPDX-License-Identifier: MIT */
/* Identifies a connection by the descriptor that libzmq reports for each message (ZMQ_SRCFD). */
#include "source/zmq_sender.h"

#include "base/file.h"

#include <poll.h>

/* True if the other end has closed the connection, or this end has. */
static bool is_ended(const pnr_zmq_sender *s)
{
    struct pollfd wanted = {.fd = s->fd, .events = POLLRDHUP};

    return pnr_file_inode(s->fd) != s->inode || poll(&wanted, 1, 0) > 0;
}

bool pnr_zmq_sender_admits(const pnr_zmq_sender *s, const zmq_msg_t *message)
{
    return !s->is_known || zmq_msg_get(message, ZMQ_SRCFD) == s->fd || is_ended(s);
}

void pnr_zmq_sender_hear(pnr_zmq_sender *s, const zmq_msg_t *message)
{
    const int fd = zmq_msg_get(message, ZMQ_SRCFD);

    /* After a reconnection the sender often has the same descriptor, with another inode. */
    *s = (pnr_zmq_sender){.is_known = true, .fd = fd, .inode = pnr_file_inode(fd)};
}
