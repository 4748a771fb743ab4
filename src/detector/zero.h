/* SPDX-License-Identifier: MIT */
/* The zero range of every dwell: finds the direct path among the echoes, tracks its delay, and
 * subtracts the tracked delay from the delays of all other echoes. */
#ifndef PNR_ZERO_H
#define PNR_ZERO_H

#include "base/event.h"
#include "config/config.h"
#include "detector/detector.h"
#include "setup/radar.h"

#include <stdbool.h>
#include <stdint.h>

/* The published values of the zero delay of one dwell, in the order of JSON and CSV. A packed
 * record stores WIDE values in double precision and NARROW values in single precision. It does not
 * contain PLAIN values. x is passed to each macro. */
#define PNR_ZERO_FIELDS(WIDE, NARROW, PLAIN, x)                                                    \
    WIDE(x, delay_s)     /* delay of the direct path; ranges count from this delay */              \
    NARROW(x, sigma_s)   /* sigma of delay_s after this dwell; part of each range_sigma_m */       \
    NARROW(x, snr_db)    /* SNR of one look; NAN: no direct path is seen, delay_s is predicted */  \
    NARROW(x, drift_ppm) /* change of delay_s, us per second */                                    \
    NARROW(x, held_s)    /* time since the direct path was seen; NAN: not seen in this run */      \
    PLAIN(x, moved_s)    /* delay_s minus pnr_zero_memory.first_s; NAN: no direct path yet */

typedef struct pnr_zero {
    bool is_tracked; /* false with radar.zero = fixed: the other members are not set */
#define PNR_ZERO_VALUE(x, name) double name;
    PNR_ZERO_FIELDS(PNR_ZERO_VALUE, PNR_ZERO_VALUE, PNR_ZERO_VALUE, )
#undef PNR_ZERO_VALUE
} pnr_zero;

/* The state that the next run starts from. */
typedef struct pnr_zero_memory {
    double delay_s, sigma_s;
    double drift, drift_sigma; /* seconds per second */
    double first_s;            /* the delay that pnr_zero.moved_s counts from */
} pnr_zero_memory;

/*
 * The tracker: a Kalman filter for the delay x and its drift v,
 *     x' = v,   v' = white noise of density q. In the time t the change of v has the rms sqrt(q t).
 * sqrt(q) = 1e-8 / sqrt(s) describes a crystal oscillator that warms up: its frequency changes by
 * some parts in 10^8 per second. The estimate has no bias for any constant drift. A measurement is
 * the delay of the direct path with its sigma. The error of x is common to all ranges of a dwell.
 * The errors of two dwells are correlated if the time between the dwells is below the memory of the
 * filter. The memory is about (sigma^2 T / q)^(1/4), where T is the interval of the dwells.
 */
typedef struct pnr_zero_tracker {
    const pnr_config *config;
    const pnr_radar *radar;
    double rate_hz;
    double x, v;          /* delay, s; drift, s/s */
    double xx, xv, vv;    /* covariance of x and v */
    uint64_t sample;      /* first sample of the dwell to which x refers */
    uint64_t seen_sample; /* first sample of the dwell in which the direct path was last seen */
    bool has_begun;       /* a dwell was processed */
    bool is_seen;         /* the direct path was seen in this run */
    bool is_remembered;   /* x started from the delay of an earlier run */
    bool has_first;
    double first; /* s, as pnr_zero_memory.first_s */
    unsigned n_astray;
    bool is_alarm;
    uint64_t n_alarms;
    pnr_zero last;      /* values of the last dwell */
    pnr_events *events; /* NULL, or set after pnr_zero_begin; receives an event when an alarm begins
                         * or ends, and when a state is dropped */
} pnr_zero_tracker;

/* Wraps a delay to +-Tr/2 if delays are known only modulo Tr, the period of the code. */
double pnr_zero_wrap(const pnr_radar *radar, double delay_s);
/* Borrows config and radar. last: the state of an earlier run, or NULL. With radar.zero = fixed
 * nothing is tracked and the other functions do nothing. */
void pnr_zero_begin(pnr_zero_tracker *zero, const pnr_config *config, const pnr_radar *radar,
                    const pnr_zero_memory *last);
/*
 * Processes one dwell; `sample` is the first sample of the dwell and grows from call to call. The
 * direct path is the strongest echo of the first code within radar.zero_search_m of the predicted
 * delay. A measurement more than five sigmas away from the prediction counts as an outlier, except
 * the 16th consecutive one. The state of an earlier run is dropped if 16 consecutive dwells have no
 * direct path near its delay, but have a direct path within radar.zero_search_m of
 * radar.zero_delay_s. The direct path is removed from the detection. The delays of the other echoes
 * are corrected, and their sigmas are widened. Echoes that are then outside the wanted ranges are
 * removed. Of the remaining echoes only the strongest detector.max_echoes are kept.
 */
void pnr_zero_track(pnr_zero_tracker *zero, uint64_t sample, pnr_detection *detection);
/* Corrects the tracked delay after a slip: all delays have fallen by `vanished` samples. Call it
 * before pnr_zero_track. */
void pnr_zero_slip(pnr_zero_tracker *zero, uint32_t vanished);
/* Copies the state for the next run. Returns false if the direct path was not seen in this run. */
bool pnr_zero_remember(const pnr_zero_tracker *zero, pnr_zero_memory *out);

#endif
