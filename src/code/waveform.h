/* SPDX-License-Identifier: MIT */
/* The continuous periodic waveform of a code: band-limited interpolation of its N samples, its
 * value at any real time, its autocorrelation and its bandwidth. */
#ifndef PNR_WAVEFORM_H
#define PNR_WAVEFORM_H

#include <complex.h>
#include <stddef.h>

typedef struct pnr_waveform pnr_waveform;

/*
 * samples: [n_samples], copied. The waveform is the trigonometric polynomial through them,
 * harmonics m = -N/2..N/2; for even N the Nyquist bin is a cosine: X[N/2] cos(pi t). PNR_OK,
 * PNR_ENOMEMORY, PNR_EEND: pnr_parallel_stop_at. Owner: the caller.
 */
int pnr_waveform_create(const double complex *samples, size_t n_samples, pnr_waveform **out);
void pnr_waveform_destroy(pnr_waveform *waveform);

/* pnr_waveform_prepare builds a table of 4 values per sample. pnr_waveform_at returns a(t),
 * periodic, at any real time t in samples. It needs the table (asserted), and uses 20-point
 * Lagrange interpolation. The error against the direct sum is below 1e-8 of the rms. */
int pnr_waveform_prepare(pnr_waveform *waveform);
double complex pnr_waveform_at(const pnr_waveform *waveform, double t);

/* value[n] = a(n - delay) and slope[n] = a'(n - delay), n = 0..N-1. value and slope: [n_samples],
 * or NULL. The values are as accurate as those of pnr_waveform_at and come from the same prepared
 * table. Allocates nothing. */
void pnr_waveform_delay(const pnr_waveform *waveform, double delay, double complex *value,
                        double complex *slope);

/* value[i] = a(from + i) and slope[i] = a'(from + i), i = 0 .. n_out - 1; value or slope may be
 * NULL. All n_out points share one set of interpolation weights, so a call is ten times as fast as
 * pnr_waveform_at for each point. */
void pnr_waveform_run(const pnr_waveform *waveform, double from, size_t n_out,
                      double complex *value, double complex *slope);

/* out[n] = a(n - shift) for n = 0..N-1, exact, by a phase ramp on the spectrum (the Nyquist bin is
 * a cosine). out: [n_samples]. */
int pnr_waveform_shift(const pnr_waveform *waveform, double shift, double complex *out);

/* Makes the correlation C(u) = sum_n a(n + u) conj(b(n)) / sum_n |b(n)|^2. C is cyclic, and
 * band-limited in u. If a = b, C is the autocorrelation R(u)/R(0). Both a and b have N samples. The
 * new waveform is already prepared, so pnr_waveform_at gives its value at any u. PNR_OK,
 * PNR_ENOMEMORY. The caller owns *out. */
int pnr_waveform_correlation(const pnr_waveform *a, const pnr_waveform *b, pnr_waveform **out);

double pnr_waveform_energy(const pnr_waveform *waveform); /* sum |a[n]|^2 over the N samples */
/* Returns the mean square bandwidth B = sum w^2 |C|^2 / sum |C|^2 - (sum w |C|^2 / sum |C|^2)^2. C
 * is the spectrum at w = -pi..pi rad/sample. At the SNR S the Cramer-Rao bound of a delay is
 * 1 / sqrt(2 S B) samples. The Nyquist bin adds pi^2 |C|^2 to the first sum and 0 to the second. */
double pnr_waveform_bandwidth(const pnr_waveform *waveform);
/* Returns the fourth central moment of |C|^2, divided by B^2: 9/5 for a flat spectrum, more when a
 * chip has several samples. */
double pnr_waveform_kurtosis(const pnr_waveform *waveform);
/* Describes parts of the spectrum of the code. Part s contains the frequencies that lie at most
 * s / n_steps times half of the rate from the mean frequency, s = 0 .. n_steps. share[s]: the
 * energy of part s divided by the whole energy. bandwidth[s]: the mean square bandwidth of part s,
 * rad^2 a sample^2. Both arrays are [n_steps + 1]. */
void pnr_waveform_bands(const pnr_waveform *waveform, size_t n_steps, double *share,
                        double *bandwidth);
/* Returns `share`, the part of the energy that is in the Nyquist bin; 0 for odd N. That bin is a
 * cosine and vanishes half-way between samples, so a delay d changes the energy of the samples to
 * R(0) (1 - share sin^2(pi d)). */
double pnr_waveform_nyquist(const pnr_waveform *waveform);

#endif
