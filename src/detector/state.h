/* SPDX-License-Identifier: MIT */
/* The detector's inside, which its files share: detector.c makes echoes of tracks, track.c fits
 * each candidate among the others. */
#ifndef PNR_DETECTOR_STATE_H
#define PNR_DETECTOR_STATE_H

#include "detector/detector.h"
#include "estimate/fit.h"
#include "estimate/fit_patch.h"

/* One of the codes. */
typedef struct pnr_detector_code {
    const pnr_waveform *autocorrelation; /* R(u)/R(0) */
    pnr_fit *fit;
    double curvature_noise;            /* (kurtosis - 1) / 2 */
    double nyquist;                    /* the Nyquist bin's share of the energy */
    double rho[2 * PNR_NEIGHBOURS][2]; /* R(u)/R(0) at u = -PNR_NEIGHBOURS .. */
} pnr_detector_code;

struct pnr_detector {
    const pnr_config *config;
    const pnr_radar *radar;
    const pnr_plan *plan;
    const pnr_setup_code *waveforms; /* [n_codes] the setup's */
    size_t n_codes;
    pnr_detector_code *codes;
    pnr_fit_patch *map; /* of a map; else NULL */
    bool has_rows;      /* several: candidates come with patches */
    pnr_patch *patches; /* [PNR_MAX_CANDIDATES] of the tracks, where there are rows */
    const pnr_least_squares *least_squares; /* the filter; NULL: matched */
    double energy_of_code;                  /* R(0) */
    bool is_sum;                            /* of powers: incoherent dwells, several looks */
    size_t max_echoes;      /* before those that are no targets are left out, see zero.h */
    double amplitude_scale; /* 2 for a tuned real recording: A cos(wt) is A/2 on either side of 0 */
};

/* What a dwell's windows make of an echo's amplitude and of noise. */
typedef struct pnr_dwell_gains {
    double amplitude; /* an echo's peak over A R(0), all looks' together */
    double noise;     /* of a cell, over that of a sample times R(0) */
    double looks;     /* sums of powers: how many */
} pnr_dwell_gains;

/* One candidate on its way to an echo. */
typedef struct pnr_track {
    const pnr_candidate *candidate;
    const pnr_detector_code *code;
    size_t centre; /* lag */
    double loss;   /* noise of its values over a cell's: 1, more behind a least-squares filter */
    double c[PNR_NEIGHBOURS][2]; /* as the engine gave it, what it filtered restored; of a sum free
                                    of the noise's bias */
    pnr_vector *patch;           /* instead, where there are rows */
    pnr_fitted fit;
    double bins, bins_variance; /* where there are rows; the variance times S */
    double share;               /* |what of the peak is in the centre| */
    double amplitude2;          /* |A|^2 */
} pnr_track;

/* |z|^2 */
static inline double pnr_squared(const double z[2])
{
    return z[0] * z[0] + z[1] * z[1];
}

pnr_dwell_gains pnr_detector_gains(const pnr_detector *detector, const pnr_observed *observed);

/* The echoes among the candidates, strongest first, each fitted with the others taken out; how
 * many there are. tracks: [PNR_MAX_CANDIDATES]. */
size_t pnr_track_all(const pnr_detector *detector, const pnr_observed *observed, pnr_track *tracks);
/* The noise of one cell that is left around the strongest, and of how many cells it is the mean. */
double pnr_track_noise(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                       double *cells);
/* What of the energy of one echo is the other's: sum_n x conj(y), for peaks of 1. */
void pnr_track_overlap(const pnr_detector *detector, const pnr_track *x, const pnr_track *y,
                       double out[2]);

pnr_patch_place pnr_track_place(const pnr_detector *detector, const pnr_track *t);
pnr_patch_echo pnr_track_echo(const pnr_detector *detector, const pnr_track *t);

/* --- behind a least-squares filter; lags and rows are [PNR_NEIGHBOURS] --- */

/* Noise of a track's values, restored, over that of a cell: 1 without a filter. */
double pnr_track_loss(const pnr_detector *detector, const pnr_track *t);
/* values: [n_rows][17][2] around the track as they came; out: the correlation again. */
void pnr_track_restore(const pnr_detector *detector, const pnr_track *t, const float *values,
                       size_t n_rows, float *out);
/* Gates from a track's centre to an echo. */
double pnr_track_gates(const pnr_detector *detector, const pnr_track *from, const pnr_track *other);
/* What the other echo, of peak -1, puts at a track's lags; false: far too little. */
bool pnr_track_response(const pnr_detector *detector, const pnr_track *from, const pnr_track *other,
                        double (*out)[2]);
/* What restoring left out of a track's own echo of peak 1. */
void pnr_track_missing(const pnr_detector *detector, const pnr_track *t, double (*out)[2]);
/* The other echo's amplitude in each row of a track's patch. */
void pnr_track_rows(const pnr_detector *detector, const pnr_track *t, const pnr_track *other,
                    double cell, double (*out)[2]);
/* c += a x; patch += rows x. */
void pnr_track_add(const double a[2], const double (*x)[2], double (*c)[2]);
void pnr_track_add_rows(const double (*rows)[2], const double (*x)[2], pnr_vector *patch);

#endif
