/* SPDX-License-Identifier: MIT */
/* The profiles beside the results: a subscription of its own, so that they never push out a result.
 */
#ifndef LISTEN_PROFILES_H
#define LISTEN_PROFILES_H

#include "listen_socket.h"
#include "message.h"

#include <stdbool.h>
#include <stdio.h>

/* One profile; the cells are the subscription's, until the next one. */
typedef struct listen_profile {
    pnr_report head; /* as far as pnr_message_read_profile fills it */
    pnr_profile_info info;
    const void *cells; /* as they came: not aligned */
} listen_profile;

/* bins[i], i < n_bins: the greatest power, over the noise floor, of the gate's cells from
 * i * cells_per_bin on (at least one; those beyond the gate are left out); NAN: none. */
void listen_profile_reduce(const listen_profile *profile, double cells_per_bin, size_t n_bins,
                           float *bins);

typedef struct listen_profiles listen_profiles;

/* Connects. source is kept. PNR_OK, or what listen_socket.h says. */
int listen_profiles_open(void *context, const listen_source *source, listen_profiles **out,
                         pnr_error *error);
void listen_profiles_close(listen_profiles *profiles);
/* The socket whose next message is of use: to be polled. */
void *listen_profiles_socket(listen_profiles *profiles);

/* True once the publisher has been reached: who asks for its results now misses no profile. */
bool listen_profiles_reached(listen_profiles *profiles);
/* The next profile of the stream. Never waits. PNR_OK, PNR_EAGAIN, or PNR_EDATA: one that cannot be
 * read. */
int listen_profiles_next(listen_profiles *profiles, listen_profile *out, pnr_error *error);
/* True when this run has ended here too, so that nothing more of it will come. */
bool listen_profiles_ended(const listen_profiles *profiles, const char *run);
/* What the results' end tells, when it did not come here. */
void listen_profiles_finish(listen_profiles *profiles, const pnr_end_summary *end);
/* Profiles that came, of all runs; and those between the first and the last of a run that did not.
 */
uint64_t listen_profiles_received(const listen_profiles *profiles);
uint64_t listen_profiles_missed(const listen_profiles *profiles);

#endif
