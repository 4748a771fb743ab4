/* SPDX-License-Identifier: MIT */
/* The detector: pure functions from candidates to echoes (delay, range, SNR, amplitude, sigmas). */
#ifndef PNR_DETECTOR_H
#define PNR_DETECTOR_H

#include "base/error.h"
#include "config/config.h"
#include "engine/engine.h"
#include "setup/setup.h"

#include <stddef.h>
#include <string.h>

enum { PNR_MAX_OUTSIDE = 4 }; /* greatest number of echoes outside of the gate in a detection */

/*
 * The published values of an echo, in the order of JSON and CSV. A packed record stores WIDE values
 * in double precision and NARROW values in single precision. In memory CODE is an index from 0. It
 * is published as a number from 1, as in [code.n], and as a name. Each macro gets x as its first
 * argument. NAN: the value is not estimated.
 *
 * Each sigma is the least standard deviation that the 17 values around the peak allow when no other
 * parameter of the echo is known. It is at most 1.04 times the Cramer-Rao bound.
 */
#define PNR_ECHO_FIELDS(CODE, COUNT, WIDE, NARROW, x)                                              \
    CODE(x, code)                                                                                  \
    COUNT(x, channel)                                                                              \
    WIDE(x, delay_s)       /* modulo Tr, see gate.h */                                             \
    WIDE(x, delay_samples) /* delay_s * sample rate */                                             \
    NARROW(x, delay_sigma_s)                                                                       \
    WIDE(x, range_m)                                                                               \
    NARROW(x, range_sigma_m)                                                                       \
    NARROW(x, snr_db)       /* SNR of one look, at least -30 */                                    \
    COUNT(x, looks)         /* number of looks; their powers were added */                         \
    NARROW(x, statistic_db) /* power of the cell / mean power of a cell with noise alone */        \
    NARROW(x, cn0_dbhz)     /* C/N0; NAN: noise alone explains the echo */                         \
    NARROW(x, amplitude)    /* full scale = 1 */                                                   \
    NARROW(x, amplitude_sigma)                                                                     \
    NARROW(x, phase_rad) /* -pi..pi, at the centre of the dwell; NAN: dwell of several looks */    \
    NARROW(x, phase_sigma_rad)                                                                     \
    NARROW(x, doppler_hz)                                                                          \
    NARROW(x, doppler_sigma_hz)                                                                    \
    NARROW(x, velocity_mps) /* positive towards the radar */                                       \
    NARROW(x, velocity_sigma_mps)

typedef struct pnr_echo {
#define PNR_ECHO_COUNT(x, name) uint32_t name;
#define PNR_ECHO_VALUE(x, name) double name;
    PNR_ECHO_FIELDS(PNR_ECHO_COUNT, PNR_ECHO_COUNT, PNR_ECHO_VALUE, PNR_ECHO_VALUE, )
#undef PNR_ECHO_COUNT
#undef PNR_ECHO_VALUE
    pnr_code_label code_name; /* filled by the caller of the detector */
    /* the members below are not published */
    uint32_t candidate, row; /* index in pnr_observed.candidates; Doppler row of this candidate */
    double lag;              /* samples from the start of the window to the echo; the zero delay and
                              * the fraction of the epoch are not yet subtracted */
    double snr; /* S of the dwell: the S of one look times `looks`. S is the ratio |c(peak)|^2 /
                 * E|noise of a cell|^2, minus the part of this ratio that the noise adds. So S is
                 * unbiased, and noise alone can make S negative. The sigmas follow from S */
} pnr_echo;

typedef struct pnr_detection {
    /* Noise power of a sample, measured in the code's band; full scale = 1. White noise of this
     * power would cause the measured noise of the cells. */
    double noise_power;
    bool is_coloured;     /* the noise of the samples differs from noise_power by over 0.5 dB, and
                           * by more than chance explains */
    bool is_unresolved;   /* an echo is not a single path, or another echo is too near: sigmas are
                           * widened */
    bool is_sign_changed; /* the sign of an echo changes within the look (sign.h) */
    bool is_more;         /* an echo may be missing, because the number of echoes or candidates is
                           * limited */
    bool is_coarse;       /* the time limit was reached: weaker echoes are left out or not
                           * subtracted */
    size_t n_echoes;
    /* Echoes outside of the gate follow the n_echoes echoes of the gate in `echoes`. They are
     * subtracted, and not reported. */
    size_t n_outside;
    pnr_echo echoes[PNR_MAX_CANDIDATES]; /* strongest first */
} pnr_detection;

typedef struct pnr_detector pnr_detector;

/* Returns the size of a detection with this many echoes, bytes. */
static inline size_t pnr_detection_bytes(size_t n_echoes)
{
    return offsetof(pnr_detection, echoes) + n_echoes * sizeof(pnr_echo);
}

/* Copies a detection with its echoes, also those outside of the gate. */
static inline void pnr_detection_copy(pnr_detection *to, const pnr_detection *from)
{
    memcpy(to, from, pnr_detection_bytes(from->n_echoes + from->n_outside));
}

/* Creates a detector. It stores pointers to config and setup, which must exist until it is
 * destroyed. The caller owns *out. Returns PNR_OK or PNR_ENOMEMORY. */
int pnr_detector_create(const pnr_config *config, const pnr_setup *setup, pnr_detector **out,
                        pnr_error *error);
/* Creates a detector for another thread. The new detector shares the tables of `from`, so destroy
 * the new detector before `from`. PNR_OK, PNR_ENOMEMORY. */
int pnr_detector_share(const pnr_detector *from, pnr_detector **out);
void pnr_detector_destroy(pnr_detector *detector);
/* True if each candidate has a patch. */
bool pnr_detector_has_rows(const pnr_detector *detector);

/* One dwell of an engine's result. */
typedef struct pnr_observed {
    const pnr_dwell *dwell;
    const pnr_candidate *candidates; /* [dwell->n_candidates] */
    const float *patches;      /* [n_candidates][17][17][2] with several Doppler rows; else NULL */
    const uint32_t *lost;      /* [windows of the dwell] lost samples of each window; NULL: none */
    const uint32_t *nonfinite; /* [windows of the dwell] non-finite samples of each window; NULL:
                                * none */
    uint64_t until_ns;         /* CLOCK_MONOTONIC when the detection should end; 0: no limit */
    /* [n_candidates] index of the search that found each candidate, from 0. The echoes that earlier
     * searches found had been subtracted from the samples. NULL: there was one search */
    const uint8_t *search;
} pnr_observed;

/* Describes how to subtract an echo from the samples. The first removal subtracts the delayed code.
 * If the delay changes from period to period, two more removals subtract the slope of the code.
 * Returns the number of removals; 0: the delay changes by more than half a chip in a look, so the
 * echo is not subtracted. The waveforms of the setup must be prepared (pnr_waveform_prepare).
 * replica, slope: [N], filled here and referenced by the removals. work: [2 N]. */
enum { PNR_MAX_REMOVALS = 3 }; /* greatest number of removals of one echo */
size_t pnr_detector_removals(const pnr_detector *detector, const pnr_echo *echo,
                             float (*replica)[2], float (*slope)[2], double complex *work,
                             pnr_removal out[PNR_MAX_REMOVALS]);
/* Adds the removed echoes back to the values of a candidate that was found after their removal.
 * With several rows these values are `patch`. With one row patch is NULL, and the values are
 * candidate->value. */
void pnr_detector_restore(const pnr_detector *detector, const pnr_observed *observed,
                          const pnr_detection *removed, pnr_candidate *candidate, float *patch);

/* Returns how many of n candidates lie in the gate of the plan. */
size_t pnr_detector_inside(const pnr_detector *detector, const pnr_candidate *candidates, size_t n);

/* Finds the echoes of a dwell. The results are deterministic unless until_ns ends the search; the
 * strongest echo is always found. Allocates nothing. Allows one caller at a time. */
void pnr_detector_detect(const pnr_detector *detector, const pnr_observed *observed,
                         pnr_detection *out);

#endif
