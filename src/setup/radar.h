/* SPDX-License-Identifier: MIT */
/* Lengths, times and ranges that the configuration defines, before the first sample. */
#ifndef PNR_RADAR_H
#define PNR_RADAR_H

#include "base/error.h"
#include "config/config.h"

#include <stdint.h>

typedef struct pnr_radar {
    size_t n_chips;            /* L, chips of a period */
    size_t n_samples;          /* N, samples of a period: rate * L / chip rate, an integer */
    pnr_rational rate_hz;      /* samples a second */
    pnr_rational chip_rate_hz; /* chips a second */
    double period_s;           /* Tr, the duration of a period */
    double gain_db;            /* 10 log10(N * number of coherent periods) */
    double metres_per_second;  /* range for a delay of 1 s: speed/2 two-way, speed one-way */
    double resolution_m;       /* metres_per_second / chip rate */
    double unambiguous_m;      /* metres_per_second * Tr */
    double min_delay_s;        /* min_range / metres_per_second; delays are in [min, min + Tr) */
    double max_delay_s;     /* end of the gate: max_range / metres_per_second, at most min + Tr */
    double doppler_span_hz; /* 1 / (2 Tr): Doppler is unambiguous within +- doppler_span_hz */
    double doppler_step_hz; /* 1 / (dwell.periods * Tr) */
    double wavelength_m;    /* speed / carrier; 0 without a carrier */
    int64_t epoch_sample;   /* the code starts at sample epoch_sample + epoch_fraction */
    double epoch_fraction;  /* in samples, from 0 to below 1 */
    int64_t start_utc_ns;   /* time of sample 0; valid if has_start */
    bool has_start;
    bool is_linear;       /* true: lags are not cyclic, and delays are not wrapped */
    int64_t first_lag;    /* samples from the start of the code to lag 0; circular: 0 */
    size_t n_lags;        /* circular: N lags; linear: the gate, and 8 lags on each side of it */
    size_t first_window;  /* sample index of the first window: (epoch_sample + first_lag) mod N */
    double zero_search_s; /* half width of the search for the direct path; 0: no search */
    size_t gate_first;    /* first lag of the gate; circular: modulo N; linear: 8 */
    size_t gate_count;    /* lags of the gate, 1 .. N */
} pnr_radar;

/* Fills *out from the configuration and from the number of chips of the code. PNR_ECONFIG: N is not
 * an integer (the message has the nearest good rates), the rate is missing, the gate is empty or
 * beyond the unambiguous range, the epoch is in UTC without source.start_time, and so on. The gate
 * of a linear correlation has at most N lags. An echo beyond N lags is found in the window one
 * period later. */
int pnr_radar_derive(const pnr_config *config, size_t n_chips, pnr_radar *out, pnr_error *error);

/* Returns the delay of an echo in s. lag: samples from the start of the window to the echo, with a
 * fraction. In a circular correlation the delay is ((lag - epoch fraction)/rate - zero_delay) mod
 * Tr, wrapped into [min_delay_s, min_delay_s + Tr). In a linear correlation it is (lag + first_lag
 * - epoch fraction)/rate - zero_delay, not wrapped, also outside the gate. */
double pnr_radar_delay_s(const pnr_radar *radar, const pnr_config *config, double lag);
/* Computes the cells inside the gate, on a grid of 1 / oversample samples: *n_gate cells from
 * *first_cell on, modulo n_lags * oversample. Returns the delay of the first cell, in s. */
double pnr_radar_cells(const pnr_radar *radar, const pnr_config *config, size_t oversample,
                       size_t *first_cell, size_t *n_gate);
double pnr_radar_range_m(const pnr_radar *radar, double delay_s);

#endif
