/* SPDX-License-Identifier: MIT */
/* Computes the parameters of the radar, the codes, the waveforms and the plan from the
 * configuration, before the first sample is read. */
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

/* One code of a configuration. The parameters of the radar are those of the first code. */
typedef struct pnr_setup_code {
    pnr_code *code;
    pnr_code_label label;
    pnr_waveform *waveform;
    pnr_waveform *autocorrelation; /* R(u)/R(0) of the waveform */
    double share;                  /* share of the code's energy in the band of the waveform */
    double removed;                /* removed energy / energy before the notches */
} pnr_setup_code;

/* The frequencies that a waveform keeps (see code/band.h).
 * - WHOLE: all; for scenes and transmitters.
 * - SHOWN: only positive frequencies; for scenes and transmitters of real samples on a carrier.
 * - RECEIVED: all except the notches; for receivers.
 * - RECEIVED_REAL: only positive frequencies except the notches; for receivers of real samples.
 * The notches are the frequencies of window.dc and window.notch. A waveform of a receiver is scaled
 * to the energy of the whole code. */
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
    double *threshold;                /* [windows of a dwell] threshold / floor; the index is the
                                       * number of used windows minus 1 */
    double pfa_cell;                  /* false-alarm probability of one cell, if the dwell lost no
                                       * window */
    size_t max_echoes;                /* limit of the number of echoes of one search */
    pnr_hypothesis *hypotheses;       /* [plan.n_hypotheses] */
    double *taper;                    /* [plan.n_periods] weights; NULL: no taper */
    double *cfar_factor;              /* [n_looks][training + 1][training + 1]; NULL: no CFAR */
    pnr_least_squares *least_squares; /* NULL: the filter is matched */
    pnr_devices devices;              /* engine.device; the pipeline replaces an empty list */
    pnr_plan plan;
} pnr_setup;

/*
 * Creates a setup. format, n_channels: the layout of the samples, from the source. The function
 * applies pnr_format_in_memory to the format. The depth of the plan is engine.depth, and its batch
 * is engine.batch. If engine.batch is 0, the batch is 1 to 4096 dwells, with about 2^23 samples and
 * at most 256 MiB of powers. In this case pnr_plan_maps() limits the depth and the batch if
 * publisher.profile is power or complex.
 *
 * The thresholds are for detector.pfa, the false-alarm probability of one search over all lags,
 * Doppler rows and codes of a dwell. The correlation of the noise in neighbouring lags is the
 * autocorrelation of the code. The noise of different rows and codes counts as independent. Rows
 * under a taper, or closer than 1 / (duration of a look), are correlated and have fewer false
 * alarms. If a dwell of several looks lost windows, its threshold is the threshold for the number
 * of whole looks that remain.
 *
 * PNR_OK; PNR_ECONFIG: the error names the key; an error of code.h; PNR_ENOMEMORY.
 */
int pnr_setup_create(const pnr_config *config, pnr_format format, size_t n_channels,
                     pnr_setup **out, pnr_error *error);
/* Creates a setup for scenes. It has only radar, n_codes and codes, and no autocorrelations.
 * Returns PNR_OK; PNR_ECONFIG: an error of code.h or radar.h, or the codes have periods of
 * different lengths; PNR_ENOMEMORY. */
int pnr_setup_create_codes(const pnr_config *config, pnr_code_band band, pnr_setup **out,
                           pnr_error *error);
void pnr_setup_destroy(pnr_setup *setup);

/* Makes the engine return |c|^2 of all cells, even if publisher.profile is off. Reduces the depth
 * and the batch of the plan as publisher.profile = power does. Call it before the engine is
 * created. */
void pnr_setup_want_power(pnr_setup *setup, const pnr_config *config);

/* Returns the greatest number of submits in flight on all devices. */
size_t pnr_setup_in_flight(const pnr_setup *setup);

/* Returns the number of samples of the ring. ring.bytes or ring.seconds defines this number. If
 * neither is set, the ring has space for the submits in flight and one more. */
size_t pnr_setup_ring_samples(const pnr_setup *setup, const pnr_config *config);

#endif
