/* SPDX-License-Identifier: MIT */
/* Codes: the chips of one period, and the N samples of their waveform. */
#ifndef PNR_CODE_H
#define PNR_CODE_H

#include "base/error.h"
#include "config/config.h"

#include <stddef.h>

enum { PNR_CODE_LABEL_LEN = 16 };

/* A text that distinguishes a code from the other codes of a search, as "prn 29", "seed 3" or "taps
 * 10,3". "": there is only one code, or the text would be too long. */
typedef struct pnr_code_label {
    char text[PNR_CODE_LABEL_LEN];
} pnr_code_label;

/* The chips of one period, [n_chips][2] (I, Q). Every built-in type has |chip| = 1, except gps-l2c:
 * half of its chips are 0. */
typedef struct pnr_code {
    size_t n_chips;
    double (*chips)[2];
    char name[96]; /* name for logs, as "m-sequence n=13 taps=13,4,3,1" */
    size_t bits;   /* periods in one data bit or one chip of a secondary code; 0: the sign never
                    * changes */
    /* If is_m_sequence is set, chip i is 1 - 2 bit[i], and bit[i + degree] is the xor of bit[i +
     * degree - t] over the taps t. The largest tap is the degree. The Walsh method needs this
     * recurrence. */
    int is_m_sequence;
    unsigned degree;
    unsigned long taps; /* bit t - 1 is set for tap t */
} pnr_code;

/*
 * Builds the code of the keys code.*; config.h has the parameters of each type. Chip k of each
 * type, k = 0 .. L - 1 (the builders in this folder explain more):
 * - m-sequence: see is_m_sequence. It starts with code.state, or `degree` ones. Empty taps mean a
 *   primitive polynomial with the fewest taps. L = 2^degree - 1.
 * - gold: index 0 is the m-sequence u. Index 1 is v[k] = u[q k] with q = 3 for an odd degree and
 *   q = 5 for an even degree that is no multiple of 4. Index 2 + s is u[k] xor v[k + s]. The last
 *   index is 2^degree.
 * - kasami, even degree: index 0 is the m-sequence u. Index 1 + s is u[k] xor w[k + s] with
 *   w[k] = u[(2^(degree/2) + 1) k].
 * - gps-l1ca: IS-GPS-200, prn 1..210.
 * - gps-l2c: IS-GPS-200, prn 1..63 and 159..210. CM (component data) has the even chips, and CL
 *   (component pilot) the odd chips. The other chips are 0.
 * - gps-l5: IS-GPS-705, prn 1..210; I5 (component data) or Q5 (component pilot).
 * - glonass: L1OF and L2OF, the same for all satellites.
 * - bds-b1i, bds-b3i: BDS-SIS-ICD, prn 1..63.
 * - barker: length 2, 3, 4 (++-+), 5, 7, 11, 13.
 * - legendre: length an odd prime; +1 where k is 0 or a square modulo L.
 * - zadoff-chu: exp(-i pi root k (k + 1) / L) for odd, exp(-i pi root k^2 / L) for even length.
 * - frank: exp(2 pi i (k div M) (k mod M) / M), length = M^2.
 * - p4: exp(i pi (k^2 / L - k)).
 * - random: exp(2 pi i u[k]), u = numpy.random.RandomState(seed).random_sample(length).
 * - file: each sample of code.path is one chip. The chips are scaled to mean power 1.
 *
 * If code.bits is not set, the type gives `bits`: 20 for gps-l1ca (2 for SBAS), 1 for CM and 0 for
 * CL of gps-l2c, 1 for gps-l5, 10 for glonass, 1 for bds (2 for the geostationary prn 1..5 and
 * 59..63), 0 for other types.
 *
 * code.invert changes the sign of every chip. is_m_sequence is then 0.
 *
 * Returns PNR_OK; PNR_ECONFIG: the message has the value and the valid values (degree out of range,
 * taps not primitive, length not prime for legendre, root not coprime, ...); PNR_ENOINPUT or
 * PNR_EDATA for a code file; PNR_ENOMEMORY. The caller frees *out with pnr_code_destroy.
 */
int pnr_code_create(const pnr_config *config, pnr_code **out, pnr_error *error);
void pnr_code_destroy(pnr_code *code);

/*
 * Writes the N code samples of one period: samples[n_samples][2], mean power 1. With code.pulse =
 * band-limited, sample n is chip floor(n L / N), computed in integers. With any other code.pulse,
 * chip i excites a pulse p(t - i N / L), and the pulses are added circularly:
 * - rectangular: 1 from t = 0 to N / L, limited to frequencies below half of the rate;
 * - filtered: a rectangular pulse, limited to frequencies below code.cutoff_hz;
 * - rrc: the root-raised cosine of code.rolloff, with its centre at t = 0;
 * - file: the samples of code.pulse_path at source.rate_hz, from t = 0.
 * waveform.h computes the waveform between the samples.
 *
 * code.tune_hz rotates sample n by exp(2 pi i k n / N), k = tune_hz N / rate_hz. A delay of the
 * code by d samples then adds a rotation by -k d / N cycles, which the phase of the echo contains.
 *
 * Returns PNR_OK; PNR_ECONFIG: the cut-off is not above the repetition rate, or k is not whole;
 * PNR_EDATA: the samples are all zero; PNR_ENOMEMORY; an error of the file of the pulse.
 */
int pnr_code_sample(const pnr_code *code, const pnr_config *config, size_t n_samples,
                    double (*samples)[2], pnr_error *error);

#endif
