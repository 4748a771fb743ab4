/* SPDX-License-Identifier: MIT */
/* Everything that a configuration fixes before the first sample: radar, code, waveform, plan. */
#ifndef PNR_SETUP_H
#define PNR_SETUP_H

#include "base/error.h"
#include "code/code.h"
#include "code/waveform.h"
#include "config/config.h"
#include "engine/devices.h"
#include "engine/engine.h"
#include "setup/least_squares.h"
#include "setup/radar.h"

/* One code. If a configuration has several codes, the first one defines the radar. */
typedef struct pnr_setup_code {
    pnr_code *code;
    pnr_code_label label;
    pnr_waveform *waveform;
    pnr_waveform *autocorrelation; /* R(u)/R(0) of the waveform */
    double share;                  /* part of the code's energy in the band of the waveform */
    double removed;                /* part of that energy that window.dc and window.notch removed */
} pnr_setup_code;

/* The band of a waveform (see code/band.h).
 * - WHOLE: of scenes and transmitters, the whole band of the code.
 * - SHOWN: of scenes and transmitters with real samples on a carrier, only positive frequencies.
 * - RECEIVED: of receivers, the whole band.
 * - RECEIVED_REAL: of receivers of real samples, only positive frequencies.
 * The two bands of receivers lack the notches of window.dc and window.notch, and are scaled to the
 * energy of the whole code. So engines and estimates use neither the image nor the removed
 * frequencies. */
typedef enum pnr_code_band {
    PNR_BAND_WHOLE,
    PNR_BAND_SHOWN,
    PNR_BAND_RECEIVED,
    PNR_BAND_RECEIVED_REAL
} pnr_code_band;

/* Owns all that it points to except plan.method, which the configuration owns. `plan` is ready for
 * the functions describe and create of an engine. */
typedef struct pnr_setup {
    pnr_radar radar;
    size_t n_codes;
    pnr_setup_code *codes;      /* [n_codes] */
    double (*references)[2];    /* [n_codes][oversample][N][2] */
    double *threshold;          /* [windows of a dwell] ratios to the floor */
    double pfa_cell;            /* false-alarm probability of a cell in a whole dwell */
    size_t max_echoes;          /* most echoes of one search; the zero tracker removes some later */
    pnr_hypothesis *hypotheses; /* [plan.n_hypotheses] */
    double *taper;              /* [plan.n_periods] weights; NULL: no taper */
    double *cfar_factor;        /* [n_looks][training + 1][training + 1]; NULL: no CFAR */
    pnr_least_squares *least_squares; /* NULL: the filter is matched */
    pnr_devices devices;              /* engine.device; the pipeline replaces `all` */
    pnr_plan plan;
} pnr_setup;

/*
 * format, n_channels: the layout of samples, from the source; pnr_format_in_memory is applied. The
 * plan's depth is engine.depth, its batch engine.batch. If engine.batch is 0, the batch is 1 to
 * 4096 dwells, with about 2^23 samples and at most 256 MiB of powers; if publisher.profile is also
 * set, pnr_plan_maps() limits the depth and the batch.
 *
 * The thresholds make detector.pfa the false-alarm probability of one search over all lags, Doppler
 * rows and codes of a dwell. The correlation of neighbouring lags is that of the code. Rows and
 * codes count as independent; rows under a taper, or closer than 1 / (duration of a look), are
 * correlated and have fewer false alarms. If a dwell of several looks lost windows, the remaining
 * windows make a number of whole looks, and the dwell gets the threshold of that number.
 */
int pnr_setup_create(const pnr_config *config, pnr_format format, size_t n_channels,
                     pnr_setup **out, pnr_error *error);
/* Makes only radar, n_codes and codes, without autocorrelations. A scene needs no more. PNR_OK;
 * PNR_ECONFIG (the reasons of code.h and radar.h, periods of different lengths); PNR_ENOMEMORY. */
int pnr_setup_create_codes(const pnr_config *config, pnr_code_band band, pnr_setup **out,
                           pnr_error *error);
void pnr_setup_destroy(pnr_setup *setup);

/* Makes the plan return |c|^2 of all cells even if publisher.profile is off. The submits become as
 * small as with publisher.profile = power. Call it before the engine is created. */
void pnr_setup_want_power(pnr_setup *setup, const pnr_config *config);

/* Returns the most submits in flight on all devices. */
size_t pnr_setup_in_flight(const pnr_setup *setup);

/* Returns the number of samples of the ring. ring.bytes or ring.seconds sets this number. If
 * neither is given, the ring has space for the submits in flight and one more. */
size_t pnr_setup_ring_samples(const pnr_setup *setup, const pnr_config *config);

#endif
