/* SPDX-License-Identifier: MIT */
/* Receives the profiles and maps of a stream with a separate subscription, so that they never fill
 * the queue of the results. */
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
/* Returns the socket to poll: the monitor before the subscription reaches the publisher, then the
 * subscription. */
void *listen_profiles_socket(listen_profiles *profiles);

/* True if the subscription has reached the publisher. If the caller subscribes to the results after
 * this, each result has a profile. */
bool listen_profiles_reached(listen_profiles *profiles);
/* Receives the next profile of the stream without waiting. PNR_OK; PNR_EAGAIN: none has arrived;
 * PNR_EDATA: a profile cannot be read. */
int listen_profiles_next(listen_profiles *profiles, pnr_map *out, pnr_error *error);
/* True if this subscription has received the end message of this run, so no more profiles
 * arrive. */
bool listen_profiles_ended(const listen_profiles *profiles, const char *run);
/* Processes the end message that arrived with the results, because this subscription may have
 * missed it. */
void listen_profiles_finish(listen_profiles *profiles, const pnr_end_summary *end);
/* Prints the number of received profiles of all runs, and the number of profiles that are missing
 * between the first and the last of a run. */
void listen_profiles_print(const listen_profiles *profiles, FILE *stream);

#endif
