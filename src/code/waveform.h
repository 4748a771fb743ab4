/* SPDX-License-Identifier: MIT */
/* The continuous periodic waveform of a code: the band-limited interpolation of its N samples, its
 * value at any real time, its autocorrelation and its bandwidth. */
#ifndef PNR_WAVEFORM_H
#define PNR_WAVEFORM_H

#include <complex.h>
#include <stddef.h>

typedef struct pnr_waveform pnr_waveform;

/* Copies samples, [n_samples], and creates their waveform. The waveform is the trigonometric
 * polynomial through the samples, with the harmonics m = -N/2 .. N/2. For even N the Nyquist bin is
 * a cosine: X[N/2] cos(pi t). Returns PNR_OK, PNR_ENOMEMORY, or PNR_EEND after a stop
 * (pnr_parallel_stop_at). The caller owns *out. */
int pnr_waveform_create(const double complex *samples, size_t n_samples, pnr_waveform **out);
void pnr_waveform_destroy(pnr_waveform *waveform);

/* pnr_waveform_prepare builds a table of 2 values per sample. pnr_waveform_at returns a(t),
 * periodic, at any real time t in samples. pnr_waveform_at asserts that the table exists. It sums
 * 10 entries of the table with the weights of a window of Kaiser. The error against the direct sum
 * is below 1e-8 of the rms. */
int pnr_waveform_prepare(pnr_waveform *waveform);
double complex pnr_waveform_at(const pnr_waveform *waveform, double t);

/* Returns an upper bound of |a(t)| at all times t that are at least `distance` samples, and at most
 * N / 2, from the beginning of a period. It is at most four times the greatest value. The waveform
 * must be prepared. */
double pnr_waveform_most(const pnr_waveform *waveform, double distance);

/* Computes value[n] = a(n - delay) and slope[n] = a'(n - delay), n = 0 .. N-1. value and slope:
 * [n_samples], or NULL. The waveform must be prepared. The values are as accurate as the values of
 * pnr_waveform_at. Allocates nothing. */
void pnr_waveform_delay(const pnr_waveform *waveform, double delay, double complex *value,
                        double complex *slope);

/* Computes value[i] = a(from + i) and slope[i] = a'(from + i), i = 0 .. n_out - 1. value or slope
 * may be NULL. All n_out points share one set of interpolation weights. */
void pnr_waveform_run(const pnr_waveform *waveform, double from, size_t n_out,
                      double complex *value, double complex *slope);

/* A place in the tables of all waveforms of one length: the first node of the interpolation and the
 * weights of the nodes. */
enum { PNR_WAVEFORM_NODES = 10 };
typedef struct pnr_waveform_point {
    size_t first;
    double weight[PNR_WAVEFORM_NODES];
} pnr_waveform_point;

/* Finds the place of the time t. The waveform must be prepared. */
void pnr_waveform_locate(const pnr_waveform *waveform, double t, pnr_waveform_point *out);
/* Finds the place of the time -t, where t is the time of the point. */
void pnr_waveform_mirror(const pnr_waveform *waveform, const pnr_waveform_point *point,
                         pnr_waveform_point *out);
/* Computes value[i] = a(t + shift + i), i = 0 .. n_out - 1, where t is the time of the point. A
 * third of the time of a pnr_waveform_run of 17 values is for the point. */
void pnr_waveform_take(const pnr_waveform *waveform, const pnr_waveform_point *point, long shift,
                       size_t n_out, double complex *value);

/* Computes out[n] = a(n - shift) for n = 0 .. N-1, exactly, by a phase ramp on the spectrum. The
 * Nyquist bin is a cosine. out: [n_samples]. */
int pnr_waveform_shift(const pnr_waveform *waveform, double shift, double complex *out);

/* Computes the correlation C(u) = sum_n a(n + u) conj(b(n)) / sum_n |b(n)|^2. C is cyclic, and
 * band-limited in u. If a = b, C is the autocorrelation R(u)/R(0). Both a and b have N samples. The
 * new waveform is already prepared, so pnr_waveform_at returns its value at any u. Returns PNR_OK,
 * PNR_ENOMEMORY or PNR_EEND. The caller owns *out. */
int pnr_waveform_correlation(const pnr_waveform *a, const pnr_waveform *b, pnr_waveform **out);

double pnr_waveform_energy(const pnr_waveform *waveform); /* sum |a[n]|^2 over the N samples */
/* Returns the mean square bandwidth B = sum w^2 |C|^2 / sum |C|^2 - (sum w |C|^2 / sum |C|^2)^2 in
 * (rad/sample)^2. C is the spectrum at w = -pi..pi rad/sample. If the correlation peak has the SNR
 * S, the Cramer-Rao bound of the standard deviation of a delay is 1 / sqrt(2 S B) samples. The
 * Nyquist bin adds pi^2 |C|^2 to the sum of w^2 |C|^2, and 0 to the sum of w |C|^2. */
double pnr_waveform_bandwidth(const pnr_waveform *waveform);
/* Returns the fourth central moment of the angular frequency w, with the weights |C|^2, divided by
 * B^2. It is 9/5 for a flat spectrum, and more if a chip has several samples. */
double pnr_waveform_kurtosis(const pnr_waveform *waveform);
/* Measures parts of the spectrum of the code. Part s, s = 0 .. n_steps, has all frequencies f with
 * |f - f0| <= s / (2 n_steps) cycles per sample, where f0 is the mean frequency of the whole
 * spectrum. share, [n_steps + 1]: the energy of each part divided by the whole energy. bandwidth,
 * [n_steps + 1]: the mean of (2 pi (f - f0))^2 over each part, with the weights |C|^2, in
 * (rad/sample)^2. */
void pnr_waveform_bands(const pnr_waveform *waveform, size_t n_steps, double *share,
                        double *bandwidth);
/* Returns `share`, the part of the energy that is in the Nyquist bin; 0 for odd N. This bin is a
 * cosine, which is 0 half-way between two samples. A delay of d samples therefore changes the
 * energy of the samples to R(0) (1 - share sin^2(pi d)). */
double pnr_waveform_nyquist(const pnr_waveform *waveform);

#endif
