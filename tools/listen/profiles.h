/* SPDX-License-Identifier: MIT */
/* The profiles and maps beside the results: a subscription of its own, so that they never push out
 * a result.
 */
#ifndef LISTEN_PROFILES_H
#define LISTEN_PROFILES_H

#include "publisher/message.h"
#include "tools/common/subscriber.h"

#include <stdbool.h>
#include <stdio.h>

/* One profile, or map: a profile is a map of one code and one row, at Doppler 0. The cells are the
 * subscription's, until the next one. */
typedef struct listen_profile {
    pnr_report head; /* as far as pnr_message_read_profile fills it */
    pnr_map_info map;
    const void *cells; /* as they came: not aligned */
} listen_profile;

/* bins[i], i < n_bins: the greatest power, over the noise floor, of the gate's cells from
 * i * cells_per_bin on (at least one; those beyond the gate are left out), of n_rows rows from
 * first_row on, of all codes; NAN: none. */
void listen_profile_reduce(const listen_profile *profile, size_t first_row, size_t n_rows,
                           double cells_per_bin, size_t n_bins, float *bins);

/* Even steps of Doppler across all rows of a map, in which every one has its place. */
typedef struct listen_doppler {
    double first_hz, step_hz; /* the middle of bin 0, and from one to the next */
    size_t n_bins;            /* at most n_rows */
} listen_doppler;

listen_doppler listen_doppler_of(const pnr_map_info *map, size_t most_bins);
/* The rows of a bin: those within half a step of its middle, else the nearest one. Returns how
 * many, from *first_row on. */
size_t listen_doppler_rows(const listen_doppler *doppler, const pnr_map_info *map, size_t bin,
                           size_t *first_row);

typedef struct listen_profiles listen_profiles;

/* Connects. source is kept. PNR_OK, or what subscriber.h says. */
int listen_profiles_open(void *context, const pnr_subscriber_source *source, listen_profiles **out,
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
/* Profiles that came, of all runs;
 * and those between the first and the last of a run that did not. */
uint64_t listen_profiles_received(const listen_profiles *profiles);
uint64_t listen_profiles_missed(const listen_profiles *profiles);

#endif
