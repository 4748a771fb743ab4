/* SPDX-License-Identifier: MIT */
/*
 * libpnradar: the radar of pnradar(1) inside another program. The program pushes samples into it
 * and gets echoes from it.
 *
 * Two calls for one radar must not run at the same time. Exception: pnradar_get may run in one
 * thread while pnradar_push or pnradar_finish runs in another thread. Several radars may run at the
 * same time. Threads of the library do the work. Events are logged to standard error. With
 * PNR_LOG=quiet in the environment only errors are logged.
 */
#ifndef PNRADAR_H
#define PNRADAR_H

#include <stddef.h>
#include <stdint.h>

#if defined __GNUC__
#define PNRADAR_API __attribute__((visibility("default")))
#else
#define PNRADAR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pnradar pnradar;

enum { PNRADAR_CODE_NAME = 16 }; /* bytes of a name such as "prn 29" or "seed 3", with the NUL */

/* An echo. A value that is not estimated is NAN. Each sigma is a standard deviation. */
typedef struct pnradar_echo {
    uint32_t code; /* number of the code, from 1: n of the section [code.n] */
    char code_name[PNRADAR_CODE_NAME];
    uint32_t channel;     /* index of the interleaved channel, from 0 */
    double delay_s;       /* modulo the period of the code, nearest to the middle of the gate; not
                           * wrapped if window.correlation is linear */
    double delay_samples; /* delay_s * rate */
    double delay_sigma_s;
    double range_m;
    double range_sigma_m;
    double snr_db;  /* SNR of one look after correlation, at least -30 */
    uint32_t looks; /* number of looks whose powers were added */
    /* power that the detector compares with the threshold, divided by the mean of this power in
     * noise */
    double statistic_db;
    double cn0_dbhz;  /* carrier power / noise density */
    double amplitude; /* full scale = 1 */
    double amplitude_sigma;
    double phase_rad; /* -pi to pi, at the centre of the dwell */
    double phase_sigma_rad;
    double doppler_hz;
    double doppler_sigma_hz;
    double velocity_mps; /* towards the radar */
    double velocity_sigma_mps;
} pnradar_echo;

/* Bits of pnradar_result.flags; pnradar-wire(5) explains them. */
enum {
    PNRADAR_LOST = 1 << 0,
    PNRADAR_NONFINITE = 1 << 1,
    PNRADAR_CLIPPED = 1 << 2,
    PNRADAR_PARTIAL = 1 << 3,
    PNRADAR_MORE_ECHOES = 1 << 4,
    PNRADAR_LATE = 1 << 5,
    PNRADAR_ZERO_ALARM = 1 << 6,
    PNRADAR_COLOURED = 1 << 7,
    PNRADAR_UNRESOLVED = 1 << 8,
    PNRADAR_SLIP = 1 << 9,
    PNRADAR_SIGN_CHANGE = 1 << 10,
    PNRADAR_HUGE_SAMPLES = 1 << 11,
    PNRADAR_COARSE = 1 << 12,
    PNRADAR_RESTARTED = 1 << 13
};

/* The result of one dwell. */
typedef struct pnradar_result {
    uint64_t sample; /* index of the first sample of the dwell; 0: the first sample pushed */
    uint64_t lost;   /* samples of the dwell that were lost or are not finite */
    /* all samples between the previous result and this dwell; they have no result. A dropped result
     * is also a previous result */
    uint64_t lost_before;
    /* samples that the source lost without a report (a slip), modulo the period of the code; they
     * were lost in the third dwell before this dwell, or at an edge of that dwell; 0: no slip was
     * found */
    uint32_t slip;
    uint32_t periods;   /* periods of the code that were used */
    uint32_t flags;     /* bits PNRADAR_LOST to PNRADAR_RESTARTED */
    double noise_power; /* noise in the band of the code, mean |x|^2, full scale = 1 */
    size_t n_echoes;
    const pnradar_echo *echoes; /* [n_echoes], strongest first; valid until the next pnradar_get */
} pnradar_result;

/*
 * Creates a radar from the text of a configuration, as pnradar.conf(5) describes it. The text must
 * have source.rate_hz, source.format and a code. source.input is ignored. Nothing is published
 * unless the text sets publisher.endpoint. Returns as soon as the radar accepts samples. The caller
 * frees it with pnradar_destroy. Returns NULL on failure; `why` (`size` bytes, may be NULL) then
 * has one line with the reason.
 */
PNRADAR_API pnradar *pnradar_create(const char *configuration, char *why, size_t size);
/* Ends the radar and discards the results that were not read. radar: may be NULL. */
PNRADAR_API void pnradar_destroy(pnradar *radar);

/*
 * Appends n samples to the stream. A sample is in source.format and has the values of all
 * source.channels. Waits for space in the ring. Results are kept until pnradar_get reads them, so
 * the memory grows with their number. With source.pace = real-time the call never waits, and the
 * memory does not grow: samples that find no space are lost, and the next result counts them;
 * results that find no space are dropped. Returns 0, or -1 if the radar has failed or
 * pnradar_finish was called; pnradar_error has the reason.
 */
PNRADAR_API int pnradar_push(pnradar *radar, const void *samples, size_t n);
/* Ends the stream. pnradar_get still returns the results of all complete dwells. */
PNRADAR_API void pnradar_finish(pnradar *radar);

/*
 * Reads the oldest result. Waits for it at most patience_s (0: does not wait; INFINITY: no limit).
 * Returns 1 if *result is set, and -1 if the radar has failed. Returns 0 if there is no result yet
 * or, after pnradar_finish, no further result.
 */
PNRADAR_API int pnradar_get(pnradar *radar, double patience_s, pnradar_result *result);

/* Returns one line about the failure, or "" if there is none. The radar owns the text. */
PNRADAR_API const char *pnradar_error(const pnradar *radar);
/* Returns the version, such as "0.1.0". */
PNRADAR_API const char *pnradar_version(void);

#ifdef __cplusplus
}
#endif
#endif
