/* SPDX-License-Identifier: MIT */
/* Everything that the configuration defines before the first sample: radar, codes, waveforms,
 * plan. */
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

/* One code of a configuration. The first code defines the radar. */
typedef struct pnr_setup_code {
    pnr_code *code;
    pnr_code_label label;
    pnr_waveform *waveform;
    pnr_waveform *autocorrelation; /* R(u)/R(0) of the waveform */
    double share;                  /* share of the code's energy in the band of the waveform */
    double removed;                /* share of this energy that the notches removed */
} pnr_setup_code;

/* The band of a waveform (see code/band.h).
 * - WHOLE: for scenes and transmitters: the whole band of the code.
 * - SHOWN: for scenes and transmitters of real samples on a carrier: only positive frequencies.
 * - RECEIVED: for receivers: the whole band without notches.
 * - RECEIVED_REAL: for receivers of real samples: only positive frequencies, without notches.
 * The notches are the frequencies of window.dc and window.notch. The two bands of receivers are
 * scaled to the energy of the whole code. Engines and estimates therefore use neither the image nor
 * the notches. */
typedef enum pnr_code_band {
    PNR_BAND_WHOLE,
    PNR_BAND_SHOWN,
    PNR_BAND_RECEIVED,
    PNR_BAND_RECEIVED_REAL
} pnr_code_band;

/* A setup. It owns all that it points to, except plan.method, which the configuration owns. `plan`
 * is the input of the functions describe and create of an engine. */
typedef struct pnr_setup {
    pnr_radar radar;
    size_t n_codes;
    pnr_setup_code *codes;            /* [n_codes] */
    double (*references)[2];          /* [n_codes][oversample][N][2] */
    double *threshold;                /* [windows of a dwell] thresholds as ratios to the floor */
    double pfa_cell;                  /* false-alarm probability of a cell in a whole dwell */
    size_t max_echoes;                /* most echoes of one search */
    pnr_hypothesis *hypotheses;       /* [plan.n_hypotheses] */
    double *taper;                    /* [plan.n_periods] weights; NULL: no taper */
    double *cfar_factor;              /* [n_looks][training + 1][training + 1]; NULL: no CFAR */
    pnr_least_squares *least_squares; /* NULL: the filter is matched */
    pnr_devices devices;              /* engine.device; the pipeline replaces an empty list */
    pnr_plan plan;
} pnr_setup;

/*
 * Makes a setup. format, n_channels: the layout of the samples, from the source. The function
 * applies pnr_format_in_memory to the format. The depth of the plan is engine.depth, and its batch
 * is engine.batch. If engine.batch is 0, the batch is 1 to 4096 dwells, with about 2^23 samples and
 * at most 256 MiB of powers. If publisher.profile is also set, pnr_plan_maps() limits the depth and
 * the batch.
 *
 * The thresholds make detector.pfa the false-alarm probability of one search over all lags, Doppler
 * rows and codes of a dwell. Neighbouring lags are correlated as the code is. Rows and codes count
 * as independent. Rows under a taper, or closer than 1 / (duration of a look), are correlated and
 * have fewer false alarms. If a dwell of several looks lost windows, its threshold is the threshold
 * for the number of whole looks that remain.
 */
int pnr_setup_create(const pnr_config *config, pnr_format format, size_t n_channels,
                     pnr_setup **out, pnr_error *error);
/* Makes only radar, n_codes and codes, without autocorrelations, for scenes. Returns PNR_OK;
 * PNR_ECONFIG (the reasons of code.h and radar.h, periods of different lengths); PNR_ENOMEMORY. */
int pnr_setup_create_codes(const pnr_config *config, pnr_code_band band, pnr_setup **out,
                           pnr_error *error);
void pnr_setup_destroy(pnr_setup *setup);

/* Makes the plan return |c|^2 of all cells, even if publisher.profile is off. The submits become as
 * small as with publisher.profile = power. Call it before the engine is created. */
void pnr_setup_want_power(pnr_setup *setup, const pnr_config *config);

/* Returns the greatest number of submits in flight on all devices. */
size_t pnr_setup_in_flight(const pnr_setup *setup);

/* Returns the number of samples of the ring. ring.bytes or ring.seconds defines this number. If
 * neither is set, the ring has space for the submits in flight and one more. */
size_t pnr_setup_ring_samples(const pnr_setup *setup, const pnr_config *config);

#endif
