/* SPDX-License-Identifier: MIT */
/* Slow time: what the windows of a look, one value each, make of an echo's Doppler and of noise. */
#ifndef PNR_SLOW_TIME_H
#define PNR_SLOW_TIME_H

#include "engine/engine.h"

/*
 * An echo of frequency v gives window p exp(2 pi i v (p - (K - 1)/2)); the row at F weighs and
 * sums, sum_p w_p u_p exp(2 pi i (v - F) (p - (K - 1)/2)), w_p the taper, u_p the share of the
 * window's samples that are there (0: not used); of several looks its mean. With plan.remove_mean
 * the mean of the used windows is gone before. Frequencies are in bins of 1/Tr.
 */
typedef struct pnr_slow_time pnr_slow_time;

/* PNR_OK, PNR_ENOMEMORY. Owner of *out: the caller. */
int pnr_slow_time_create(const pnr_plan *plan, pnr_slow_time **out);
void pnr_slow_time_destroy(pnr_slow_time *slow);

/* A dwell begins: samples lost and not finite, [n_looks n_periods]; NULL: none. */
void pnr_slow_time_begin(pnr_slow_time *slow, const uint32_t *lost, const uint32_t *nonfinite);
bool pnr_slow_time_is_whole(const pnr_slow_time *slow); /* nothing is lost */
/* sum w_p u_p and sum w_p^2 u_p over all looks, and how many looks there are. */
double pnr_slow_time_gain(const pnr_slow_time *slow);
double pnr_slow_time_noise_gain(const pnr_slow_time *slow);
double pnr_slow_time_looks(const pnr_slow_time *slow);

/* An echo in a row, 1 where v = F (and no mean is removed). */
void pnr_slow_time_echo(const pnr_slow_time *slow, double v, double f_row, double out[2]);
/* The share of an echo's energy that is left without the mean, times U / (U - 1) of U windows, as
 * the engines have it; 1 where no mean is removed. */
double pnr_slow_time_energy(const pnr_slow_time *slow, double v);
/* E n conj(n') of white noise in two rows, 1 where they are the same (and no mean is removed). */
void pnr_slow_time_noise(const pnr_slow_time *slow, double f_row, double f_other, double out[2]);

#endif
