/* SPDX-License-Identifier: MIT */
/* The state of a picture. picture.c collects profiles and echoes, tracks.c joins the echoes of a
 * target, and draw.c draws. */
#ifndef PNR_PICTURE_STATE_H
#define PNR_PICTURE_STATE_H

#include "picture/picture.h"

enum {
    PNR_MAX_COLUMNS = 2000,     /* greatest number; in a longer run, pairs of columns are joined */
    PNR_MAX_RANGES = 1000,      /* greatest number of rows of a picture; a row is a range */
    PNR_MAX_COLUMN_ECHOES = 64, /* greatest number of echoes in a column */
    PNR_MAX_TRACKS = 4096
};

/* The least size of a plot, as a fraction of the sheet. The height is smaller if a Doppler axis
 * lies above the plot. */
#define PNR_PLOT_WIDTH 0.72
#define PNR_PLOT_HEIGHT 0.77
#define PNR_PLOT_HEIGHT_DOPPLER 0.7

/* How maps are drawn: the mean of all maps, the last map, or range over time with the greatest
 * power of all rows. Only the first two are range-Doppler pictures. */
typedef enum { MAP_MEAN, MAP_LAST, MAP_TIME, N_MAPS } map_kind;

/* Columns of equal width from a first sample on. If a sample lies after the last permitted column,
 * the width of the columns is doubled. */
typedef struct timeline {
    uint64_t first, width; /* samples; width 0: no sample yet */
    size_t n;              /* columns used */
} timeline;

typedef struct spot {
    uint64_t sample;
    double range_m;
    double snr_db;
    double doppler_hz; /* NAN: not estimated */
} spot;

/* The echoes of one column, sorted by range. */
typedef struct column {
    size_t n;
    spot spots[PNR_MAX_COLUMN_ECHOES];
} column;

/* One coloured rectangle of the picture. */
typedef struct cell {
    double power;   /* power divided by the noise floor, or a sum of such powers; 0: none */
    uint32_t n_sum; /* powers in the sum; 0: `power` is the greatest power */
} cell;

/* The data of one run. A new run replaces all of them. */
typedef struct picture_run {
    char before[17]; /* name of the previous run */
    pnr_report head; /* the first report of the run */
    uint64_t n_profiles;
    uint64_t last_sample; /* first sample of the last profile */
    pnr_map_info info;    /* header of the first profile */
    bool is_doppler;      /* true: range over Doppler; false: range over time */
    pnr_doppler_bins doppler;
    timeline profile_time;
    size_t n_columns, cells_per_row, n_rows;
    uint64_t n_results, n_echoes;
    double greatest_m;         /* greatest distance of an echo from range 0 */
    uint32_t most_periods;     /* greatest number of periods of a result */
    pnr_code_label code_label; /* label of options.code, from its first echo; "": none yet */
    timeline echo_time;
} picture_run;

struct pnr_picture {
    pnr_picture_options options;
    char radar_run[17]; /* run of `radar`; a status can arrive before the first result */
    pnr_radar_summary radar;
    map_kind kind;
    int width, height; /* pixels */
    picture_run run;
    cell *cells;     /* [run.n_columns][run.n_rows] */
    column *columns; /* [PNR_MAX_COLUMNS] */
};

/* PNR_OK, or PNR_EUSAGE: options.code is above n_codes. */
int pnr_picture_check_code(const pnr_picture *picture, size_t n_codes, pnr_error *error);

/* The echoes of a target in several dwells. */
typedef struct track {
    spot strongest;
    uint64_t last_sample;
    double range_m, doppler_hz; /* filtered range and last Doppler, at last_sample */
    double rate;                /* change of the range, metres per sample */
    size_t n_echoes;
} track;

/* The greatest permitted distance of an echo from the prediction of its track. */
typedef struct track_gate {
    double range_m, doppler_hz;
    uint64_t samples; /* longest time without an echo */
} track_gate;

/* Joins echoes to tracks, in order of time, with alpha-beta filters. Starts with the dwell at
 * first_sample. An echo joins the nearest track whose gate contains it, or begins a track. At most
 * PNR_MAX_TRACKS tracks begin. Returns the number of tracks. */
size_t pnr_tracks_find(const pnr_picture *picture, const track_gate *gate, uint64_t first_sample,
                       track tracks[PNR_MAX_TRACKS]);

#endif
