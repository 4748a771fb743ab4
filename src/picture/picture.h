/* SPDX-License-Identifier: MIT */
/* Draws the picture of a run, range over time or range over Doppler. Collects profiles or maps, and
 * echoes, in bounded memory. */
#ifndef PNR_PICTURE_H
#define PNR_PICTURE_H

#include "base/error.h"
#include "picture/map.h"
#include "publisher/message.h"

typedef struct pnr_picture pnr_picture;

/* The options of the user. The strings must outlive the picture. */
typedef struct pnr_picture_options {
    const char *path; /* NULL: no picture */
    const char *map;  /* how maps are drawn: "mean" (or NULL), "last" or "time" */
    const char *size; /* input of pnr_gnuplot_read_size; NULL: 1800x1000 */
    size_t code;      /* 1 .. n_codes: one code; 0: the greatest power of all codes */
    size_t n_codes;   /* number of codes; 0: not known before the run */
    double range_db;  /* the darkest colour is this number of dB below the greatest power, which is
                       * the brightest; 0: the darkest colour is the noise floor */
} pnr_picture_options;

/* Rows of pnr_cli_option that set the members of `o`, a pnr_picture_options. */
#define PNR_PICTURE_CLI(o)                                                                         \
    {"plot", "FILE",                                                                               \
     "draw the run at its end (gnuplot) as .png, .svg or .pdf: range over time, or over Doppler "  \
     "where there are maps; power and one mark a target",                                          \
     .value = &(o).path},                                                                          \
        {"map", "mean|last|time",                                                                  \
         "draw the mean of all maps (default), the last one, or over time their greatest",         \
         .value = &(o).map},                                                                       \
        {"size", "WxH", "pixels of the picture (1800x1000)", .value = &(o).size},                  \
        {"code",                                                                                   \
         "N",                                                                                      \
         "draw this one of several codes, counted as its section [code.N]",                        \
         .count = &(o).code,                                                                       \
         .min = 1,                                                                                 \
         .max = 1e6},                                                                              \
    {                                                                                              \
        "range-db", "DB", "dB from the darkest to the brightest colour (from the noise floor)",    \
            .number = &(o).range_db, .unit = "dB", .min = 1, .max = 300                            \
    }

/* Checks the options, the path of the picture and gnuplot. *out is NULL if no picture is wanted.
 * Returns PNR_OK; PNR_EUSAGE: an unknown value, an option without a path, or a code above
 * n_codes; PNR_ENOMEMORY; an error of pnr_gnuplot_check. */
int pnr_picture_create(const pnr_picture_options *options, pnr_picture **out, pnr_error *error);
void pnr_picture_destroy(pnr_picture *picture);

/* Adds a result. Results and profiles must arrive in the order of samples. A new run begins a new
 * picture. Never allocates. */
void pnr_picture_result(pnr_picture *picture, const pnr_report *report);
/* Stores what a status or end message says of the radar. A picture of echoes alone needs it for its
 * title. Never allocates. */
void pnr_picture_status(pnr_picture *picture, const pnr_end_summary *status);
/* Adds a profile or map. Never allocates. */
void pnr_picture_map(pnr_picture *picture, const pnr_map *map);

/* Draws the picture of a run that ended with `code`, and logs what it shows. If `code` is an error,
 * the picture is drawn too, an error of the drawing is only logged, and the function returns
 * `code`. Else returns PNR_OK; PNR_EDATA: there is nothing to draw; PNR_EUSAGE: options.code is
 * above the number of codes; PNR_ENOMEMORY; an error of pnr_gnuplot_open or pnr_gnuplot_close. */
int pnr_picture_finish(const pnr_picture *picture, int code, pnr_error *error);

#endif
