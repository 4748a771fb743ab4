/* SPDX-License-Identifier: MIT */
/* A socket that receives datagrams for this machine or for a multicast group. */
#ifndef PNR_UDP_SOCKET_H
#define PNR_UDP_SOCKET_H

#include "source/address.h"

#include <stddef.h>

/* Opens a socket that does not block, bound to the address. Host "*" means all addresses of this
 * machine. If the address is a multicast group, the socket joins the group, on the interface
 * after '%', for example 239.1.2.3%eth0. With each datagram the kernel reports the number of
 * dropped datagrams. Asks for a buffer of buffer_bytes, and warns in the log if the kernel gives
 * less. name: the input, for messages. PNR_OK; PNR_ECONFIG: no such address or interface;
 * PNR_EUNAVAILABLE: the address is in use, or belongs to another machine; PNR_EPERMISSION;
 * PNR_EIO. */
int pnr_udp_socket_open(const char *name, const pnr_address *address, size_t buffer_bytes, int *fd,
                        pnr_error *error);

#endif
