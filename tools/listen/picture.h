/* SPDX-License-Identifier: MIT */
/* Draws the picture of a run: range over time or range over Doppler. Collects profiles or maps, and
 * echoes, in bounded memory. */
#ifndef LISTEN_PICTURE_H
#define LISTEN_PICTURE_H

#include "base/error.h"
#include "publisher/message.h"
#include "tools/listen/profiles.h"

typedef struct listen_picture listen_picture;

/* path: the PNG; the caller keeps the string. map: how maps are drawn, "mean" (or NULL), "last" or
 * "time". PNR_OK; PNR_EUSAGE: unknown map; PNR_EIO: the folder cannot be written; PNR_ENOMEMORY. */
int listen_picture_create(const char *path, const char *map, listen_picture **out,
                          pnr_error *error);
void listen_picture_destroy(listen_picture *picture);

/* Adds a result. Results and profiles must come in the order of samples. A new run begins a new
 * picture. */
void listen_picture_result(listen_picture *picture, const pnr_report *report);
/* Adds a profile. PNR_OK, PNR_ENOMEMORY. */
int listen_picture_profile(listen_picture *picture, const listen_profile *profile,
                           pnr_error *error);

/* Draws the picture and logs what it shows. PNR_OK; PNR_EDATA: there is nothing to draw;
 * PNR_EUNAVAILABLE or PNR_EIO: gnuplot failed. */
int listen_picture_draw(const listen_picture *picture, pnr_error *error);

#endif
