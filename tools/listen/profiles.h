/* SPDX-License-Identifier: MIT */
/* Receives the profiles and maps of a stream by a separate subscription, so that they never
 * displace a result. */
#ifndef LISTEN_PROFILES_H
#define LISTEN_PROFILES_H

#include "publisher/message.h"
#include "tools/common/subscriber.h"

#include <stdbool.h>
#include <stdio.h>

/* One profile or map. A profile is a map of one code and one row, at Doppler 0. The subscription
 * owns the cells. They are valid until the next profile. */
typedef struct listen_profile {
    pnr_report head; /* the members that pnr_message_read_profile fills */
    pnr_map_info map;
    const void *cells; /* as received: not aligned */
} listen_profile;

/* Fills bins[i], i < n_bins, with the greatest power of range bin i over the noise floor. Searches
 * n_rows rows from first_row on, of all codes. Bin i begins at cell i * cells_per_bin of the gate
 * and has at least one cell. NAN: the bin lies outside the gate. */
void listen_profile_reduce(const listen_profile *profile, size_t first_row, size_t n_rows,
                           double cells_per_bin, size_t n_bins, float *bins);

/* Returns the range of the middle of a cell of the gate. A cell is as wide as the step. */
double listen_range_m(const pnr_profile_info *info, double cell);
bool listen_is_km(const pnr_profile_info *info); /* the gate's ranges are shown in km */

/* Equal steps of Doppler that cover all rows of a map. */
typedef struct listen_doppler {
    double first_hz, step_hz; /* the middle of bin 0, and the distance of bins */
    size_t n_bins;            /* at most the rows of the map */
} listen_doppler;

listen_doppler listen_doppler_of(const pnr_map_info *map, size_t most_bins);
/* Finds the rows within half a step of the middle of a bin, else the nearest row. Returns their
 * number, from *first_row on. */
size_t listen_doppler_rows(const listen_doppler *doppler, const pnr_map_info *map, size_t bin,
                           size_t *first_row);

typedef struct listen_profiles listen_profiles;

/* Subscribes to profiles. source must outlive *out. PNR_OK, PNR_ENOMEMORY, or as subscriber.h. */
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
int listen_profiles_next(listen_profiles *profiles, listen_profile *out, pnr_error *error);
/* True when this subscription has received the end of this run: it will bring no more profiles. */
bool listen_profiles_ended(const listen_profiles *profiles, const char *run);
/* Processes the end message that arrived with the results. This subscription may have missed it. */
void listen_profiles_finish(listen_profiles *profiles, const pnr_end_summary *end);
/* Prints how many profiles were received in all runs, and how many are missing between the first
 * and the last of a run. */
void listen_profiles_print(const listen_profiles *profiles, FILE *stream);

#endif
