/* SPDX-License-Identifier: MIT */
/* The zero range, measured anew in every dwell: the direct path is found among the echoes, tracked,
 * and subtracted from all the others. */
#ifndef PNR_ZERO_H
#define PNR_ZERO_H

#include "config/config.h"
#include "detector/detector.h"
#include "setup/radar.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The zero delay of one dwell, as published, in the order of JSON and CSV. A packed record keeps
 * WIDE values in double precision, NARROW ones in single precision, and has no PLAIN ones. Each
 * macro gets x.
 */
#define PNR_ZERO_FIELDS(WIDE, NARROW, PLAIN, x)                                                    \
    WIDE(x, delay_s)     /* of the direct path: ranges count from here */                          \
    NARROW(x, sigma_s)   /* of all dwells so far; part of the sigma of every range */              \
    NARROW(x, snr_db)    /* in this dwell; NAN: not seen, the delay is held */                     \
    NARROW(x, drift_ppm) /* change of delay_s, us a second */                                      \
    NARROW(x, held_s)    /* since it was last seen; NAN: never in this run */                      \
    PLAIN(x, moved_s)    /* delay_s less the first one, kept or measured; NAN: none yet */

typedef struct pnr_zero {
    bool is_tracked; /* false: radar.zero = fixed, and the rest is meaningless */
#define PNR_ZERO_VALUE(x, name) double name;
    PNR_ZERO_FIELDS(PNR_ZERO_VALUE, PNR_ZERO_VALUE, PNR_ZERO_VALUE, )
#undef PNR_ZERO_VALUE
} pnr_zero;

/* What is worth keeping for the next run. */
typedef struct pnr_zero_memory {
    double delay_s, sigma_s;
    double drift, drift_sigma; /* seconds a second */
    double first_s;            /* the delay that pnr_zero.moved_s counts from */
} pnr_zero_memory;

/*
 * The tracker: a Kalman filter of the delay x and its drift v,
 *     x' = v,   v' = white noise of density q: v wanders by sqrt(q t) in the time t.
 * sqrt(q) = 1e-8 / sqrt(s), a crystal oscillator that warms up by some parts in 10^8 a second: for
 * a drift that is constant the estimate has no bias, whatever the drift is. A measurement is the
 * echo's delay, of its own sigma; the error of x is in every range of a dwell, and fades from dwell
 * to dwell over the filter's memory of about (sigma^2 T / q)^(1/4), T from one dwell to the next.
 */
typedef struct pnr_zero_tracker {
    const pnr_config *config;
    const pnr_radar *radar;
    double rate_hz;
    double x, v;          /* s, s/s */
    double xx, xv, vv;    /* their covariance */
    uint64_t sample;      /* of x */
    uint64_t seen_sample; /* when the direct path was last there */
    bool has_begun;       /* a dwell came */
    bool is_seen;         /* the direct path did, in this run */
    bool has_first;
    double first; /* s */
    unsigned n_astray;
    bool is_alarm;
    uint64_t n_alarms, n_untold; /* crossings of the limit: all, and not told yet */
    pnr_zero last;               /* of the last dwell */
} pnr_zero_tracker;

/* config and radar stay the caller's. last: of an earlier run, or NULL. With radar.zero = fixed
 * nothing is tracked, and the others do nothing. */
void pnr_zero_begin(pnr_zero_tracker *zero, const pnr_config *config, const pnr_radar *radar,
                    const pnr_zero_memory *last);
/*
 * One dwell, of its first sample (ascending). The strongest echo of the first code within
 * radar.zero_search_m of the last zero delay is the direct path; one that has moved by more than
 * five of its sigmas is held to be astray, until the 16th in a row. It is taken out of the
 * detection; so are, when the others' delays are corrected and their sigmas widened, those beyond
 * the wanted ranges, and the weakest beyond detector.max_echoes. Pure arithmetic.
 */
void pnr_zero_track(pnr_zero_tracker *zero, uint64_t sample, pnr_detection *detection);
/* One line in the log for a direct path that has moved beyond radar.zero_alarm_m, or came back
 * (within nine tenths of it), since the last call. */
void pnr_zero_tell(pnr_zero_tracker *zero);
/* False: the direct path was not seen in this run. */
bool pnr_zero_remember(const pnr_zero_tracker *zero, pnr_zero_memory *out);

#endif
