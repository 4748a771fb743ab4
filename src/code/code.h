/* SPDX-License-Identifier: MIT */
/* Codes: the chips of one period, and the N samples of their waveform. */
#ifndef PNR_CODE_H
#define PNR_CODE_H

#include "base/error.h"
#include "config/config.h"

#include <stddef.h>

enum { PNR_CODE_LABEL_LEN = 16 };

/* The text that distinguishes a code from the other codes of a search: "prn 29", "seed 3", "taps
 * 10,3". "": there is only one code, or the text would be too long. */
typedef struct pnr_code_label {
    char text[PNR_CODE_LABEL_LEN];
} pnr_code_label;

/* The chips of one period, [n_chips][2] (I, Q). Every built-in type has |chip| = 1, except that
 * half of the chips of gps-l2c are 0. */
typedef struct pnr_code {
    size_t n_chips;
    double (*chips)[2];
    char name[96]; /* for logs, such as "m-sequence n=13 taps=13,4,3,1" */
    size_t bits;   /* number of periods in a data bit, or in a chip of a secondary code; at the end
                    * of these periods the sign may change. 0: the sign never changes */
    /* If is_m_sequence: chip i is 1 - 2 bit[i], and bit[i + degree] is the xor of
     * bit[i + degree - t] over the taps t. The largest tap is the degree. The Walsh method needs
     * this recurrence. */
    int is_m_sequence;
    unsigned degree;
    unsigned long taps; /* bit t-1 set for tap t */
} pnr_code;

/*
 * Chip k, k = 0 .. L - 1, of each type (the builders in this folder explain more):
 * - m-sequence: see is_m_sequence. It starts with code.state, or `degree` ones. Empty taps mean the
 *   primitive polynomial with the fewest taps. L = 2^degree - 1.
 * - gold: index 0: the m-sequence u; 1: v[k] = u[q k] with q = 3 (odd degree) or 5 (even, no
 *   multiple of 4); 2 + s: u[k] xor v[k + s], up to index 2^degree.
 * - kasami: even degree; index 0: u; 1 + s: u[k] xor w[k + s], w[k] = u[(2^(degree/2) + 1) k].
 * - gps-l1ca: IS-GPS-200, prn 1..210.
 * - gps-l2c: IS-GPS-200, prn 1..63 and 159..210. CM (component data) is in the even chips, CL
 *   (pilot) in the odd ones. The other chips are 0.
 * - gps-l5: IS-GPS-705, prn 1..210; I5 (component data) or Q5 (pilot).
 * - glonass: L1OF and L2OF, for all satellites.
 * - bds-b1i, bds-b3i: BDS-SIS-ICD, prn 1..63.
 * - barker: length 2, 3, 4 (++-+), 5, 7, 11, 13.
 * - legendre: length an odd prime; +1 where k is 0 or a square modulo L.
 * - zadoff-chu: exp(-i pi root k (k + 1) / L) for odd, exp(-i pi root k^2 / L) for even length.
 * - frank: exp(2 pi i (k div M) (k mod M) / M), length = M^2.
 * - p4: exp(i pi (k^2 / L - k)).
 * - random: exp(2 pi i u[k]), u = numpy.random.RandomState(seed).random_sample(length).
 * - file: each sample of code.path is one chip; all are scaled to mean power 1.
 *
 * Without code.bits, `bits` is that of the signal: gps-l1ca 20 (SBAS 2), gps-l2c CM 1 and CL 0,
 * gps-l5 1, glonass 10, bds 1 (2 of the geostationary prn 1..5 and 59..63); 0 of all others.
 *
 * With code.invert, every chip has the other sign, and is_m_sequence is 0.
 *
 * Builds the code of the keys code.*; config.h has the parameters of each type. PNR_OK; PNR_ECONFIG
 * with the value and the valid ones (degree out of range, non-primitive taps, length not prime for
 * legendre, root not coprime, ...); PNR_ENOINPUT/PNR_EDATA for a code file. Owner: the caller,
 * pnr_code_destroy.
 */
int pnr_code_create(const pnr_config *config, pnr_code **out, pnr_error *error);
void pnr_code_destroy(pnr_code *code);

/*
 * Writes the N code samples of one period: samples[n_samples][2], mean power 1. With code.pulse =
 * band-limited, sample n is chip floor(n L / N), computed in integers. With all other values of
 * code.pulse, chip i excites a pulse p(t - i N / L), and the pulses are added circularly:
 * - rectangular: 1 from t = 0 to N / L, without its frequencies from half of the rate upwards;
 * - filtered: the same, without its frequencies from code.cutoff_hz upwards;
 * - rrc: the root-raised cosine of code.rolloff, with its centre at t = 0;
 * - file: the samples of code.pulse_path at source.rate_hz, from t = 0.
 * PNR_ECONFIG: the cut-off is not above the repetition rate. waveform.h computes the waveform
 * between the samples.
 *
 * With code.tune_hz, sample n is turned by exp(2 pi i k n / N). k = tune_hz N / rate_hz must be
 * whole, else PNR_ECONFIG. A code that is delayed by d samples is then turned by -k d / N cycles,
 * and the phase of its echo contains this turn.
 */
int pnr_code_sample(const pnr_code *code, const pnr_config *config, size_t n_samples,
                    double (*samples)[2], pnr_error *error);

#endif
