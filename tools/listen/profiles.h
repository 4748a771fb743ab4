/* SPDX-License-Identifier: MIT */
/* Receives the profiles and maps of a stream by a separate subscription, so that they never
 * displace a result. */
#ifndef LISTEN_PROFILES_H
#define LISTEN_PROFILES_H

#include "picture/map.h"
#include "publisher/message.h"
#include "tools/common/subscriber.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct listen_profiles listen_profiles;

/* Subscribes to profiles. source must outlive *out. PNR_OK, PNR_ENOMEMORY, or an error of
 * pnr_subscriber_create. */
int listen_profiles_open(void *context, const pnr_subscriber_source *source, listen_profiles **out,
                         pnr_error *error);
void listen_profiles_close(listen_profiles *profiles);
/* Returns the socket to poll: the monitor until the publisher is reached, then the subscription. */
void *listen_profiles_socket(listen_profiles *profiles);

/* True once the publisher has been reached. Every result of a later subscription has its
 * profile. */
bool listen_profiles_reached(listen_profiles *profiles);
/* Gives the next profile of the stream and never waits. PNR_OK, PNR_EAGAIN, or PNR_EDATA: a profile
 * cannot be read. */
int listen_profiles_next(listen_profiles *profiles, pnr_map *out, pnr_error *error);
/* True when this subscription has received the end of this run: no more profiles will arrive. */
bool listen_profiles_ended(const listen_profiles *profiles, const char *run);
/* Processes the end message that arrived with the results. This subscription may have missed it. */
void listen_profiles_finish(listen_profiles *profiles, const pnr_end_summary *end);
/* Prints how many profiles were received in all runs, and how many are missing between the first
 * and the last of a run. */
void listen_profiles_print(const listen_profiles *profiles, FILE *stream);

#endif
