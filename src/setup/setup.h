/* SPDX-License-Identifier: MIT */
/* From a configuration to everything that is fixed before the first sample: radar, code, waveform,
 * plan. */
#ifndef PNR_SETUP_H
#define PNR_SETUP_H

#include "base/error.h"
#include "code/code.h"
#include "code/waveform.h"
#include "config/config.h"
#include "engine/engine.h"
#include "setup/least_squares.h"
#include "setup/radar.h"

/* One code: the first is the radar's where several are searched. */
typedef struct pnr_setup_code {
    pnr_code *code;
    pnr_waveform *waveform;
    pnr_waveform *autocorrelation; /* R(u)/R(0) of the waveform */
} pnr_setup_code;

/* Owner of all that it points to, but plan.method, which is the configuration's. plan is ready for
 * an engine's describe and create. */
typedef struct pnr_setup {
    pnr_radar radar;
    size_t n_codes;
    pnr_setup_code *codes;   /* [n_codes] */
    double (*references)[2]; /* [n_codes][oversample][N][2] */
    double *threshold;       /* [windows a dwell] */
    double pfa_cell;         /* of a whole dwell */
    size_t max_echoes; /* that the detector looks for: with those that are left out, see zero.h */
    pnr_hypothesis *hypotheses;       /* [plan.n_hypotheses] */
    double *taper;                    /* [plan.n_periods]; NULL: none */
    double *cfar_factor;              /* [n_looks][training + 1][training + 1]; NULL: none */
    pnr_least_squares *least_squares; /* NULL: the filter is matched */
    pnr_plan plan;
} pnr_setup;

/*
 * format, n_channels: how samples lie in memory, from the source's info. The plan's batch and depth
 * come from engine.batch (0: as many dwells as make about 2^23 samples, 1 to 4096, of maps no more
 * than fill 256 MiB) and engine.depth.
 *
 * The threshold holds detector.pfa for one search: over all lags, Doppler rows and codes of a
 * dwell. Neighbouring lags are taken as correlated as the code makes them, rows and codes as
 * independent: rows closer than 1 / (K Tr), or under a taper, are not, and then there are fewer
 * false alarms. A dwell of several looks that lost windows is judged as if those left made whole
 * looks.
 */
int pnr_setup_create(const pnr_config *config, pnr_format format, size_t n_channels,
                     pnr_setup **out, pnr_error *error);
void pnr_setup_destroy(pnr_setup *setup);

/* Samples of the ring: ring.bytes, else ring.seconds, else the submits in flight and one more. */
size_t pnr_setup_ring_samples(const pnr_setup *setup, const pnr_config *config);

#endif
