#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares a map of several looks, with linear correlation, with a map that numpy computes in double precision.

usage: map_numpy.py FOLDER DEGREE TAPS LAGS PERIODS LOOKS MARGIN ROWS
FOLDER has samples (int16 I, Q) and map (float32 [rows][lags]); ROWS is quarters:first_bin:n_rows:stretch,...
of each hypothesis; MARGIN: the samples that are added to both ends of a look before it is stretched.
The m-sequence begins with ones, a = 1 - 2 bit. Prints TAP.

The power P of each cell and the power p of numpy must satisfy |P - p| <= LIMIT max(p, mean p). So weak cells are
compared with the mean of the map, and echoes with their own power. LIMIT is 1e-5. A stretched look is computed
here as a sum over its spectrum, without an interpolation; STRETCHED_LIMIT, 1e-4, is then the limit, because the
engines interpolate.
"""
import sys

import numpy as np

LIMIT, STRETCHED_LIMIT = 1e-5, 1e-4


def fast_length(n):
    """Returns the smallest length >= n without a prime factor above 7."""
    while True:
        rest = n
        for prime in 2, 3, 5, 7:
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return n
        n += 1


def stretched(x, n, periods, margin, stretch):
    """Returns x, a look and its tail, at the times m + (t - m) (1 + stretch), m the middle of its periods of n samples.
    Its first and last samples are repeated beyond its ends, period by period, and fade out in the last 64 samples."""
    count = len(x)
    fade = np.ones(margin)
    fade[:64] = np.sin(np.pi / 2 * np.arange(1, 65) / 65) ** 2
    before = x[:n][np.arange(-margin, 0) % n] * fade
    after = x[-n:][np.arange(margin) % n] * fade[::-1]
    x = np.concatenate([before, x, after])
    length = fast_length(len(x))
    spectrum = np.fft.fft(x, length) / length
    bins = np.fft.fftfreq(length) * length
    if length % 2 == 0:  # half of the last bin lies at each end of the band
        spectrum[length // 2] /= 2
        spectrum, bins = np.append(spectrum, spectrum[length // 2]), np.append(bins, length / 2)
    middle = (periods * n - 1) / 2
    times = margin + middle + (np.arange(count) - middle) * (1 + stretch)
    # bin = first + 64 g + b: the sum over b, then the sum over the groups g
    order = np.argsort(bins)
    groups = np.append(spectrum[order], np.zeros(-len(bins) % 64)).reshape(-1, 64)
    turn = 2j * np.pi / length * times
    fine = np.exp(np.outer(turn, np.arange(64)))
    coarse = np.exp(np.outer(turn, bins[order[0]] + 64 * np.arange(len(groups))))
    return ((fine @ groups.T) * coarse).sum(axis=1)


def m_sequence(degree, taps):
    bits = [1] * degree
    while len(bits) < 2 ** degree - 1:
        bits.append(sum(bits[-tap] for tap in taps) % 2)
    return 1.0 - 2.0 * np.array(bits)


def dwell_map(samples, code, n_lags, periods, looks, margin, rows):
    """Returns the sum of |c|^2 over the looks for each (f, F) of rows:
    c[k] = sum_p exp(-2 pi i F p) sum_n x_p[n + k] exp(-2 pi i f (n + k) / N) conj(a[n])."""
    n = len(code)
    window = n + n_lags - 1
    length = 2 ** int(np.ceil(np.log2(window + n)))
    spectrum = np.conj(np.fft.fft(code, length))
    power = np.zeros((len(rows), n_lags))
    period = np.arange(periods)
    for look in range(looks):
        first = look * periods * n
        whole = samples[first:first + (periods - 1) * n + window]
        for f, stretch in sorted({(row[0], row[2]) for row in rows}):
            at_scale = stretched(whole, n, periods, margin, stretch) if stretch != 0 else whole
            x = np.stack([at_scale[p * n:p * n + window] for p in period])
            turned = x * np.exp(-2j * np.pi * f * np.arange(window) / n)
            c = np.fft.ifft(np.fft.fft(turned, length) * spectrum)[:, :n_lags]
            for i, (rotation, doppler, scale) in enumerate(rows):
                if (rotation, scale) == (f, stretch):
                    power[i] += np.abs(np.exp(-2j * np.pi * doppler * period) @ c) ** 2
    return power


def main():
    folder, degree = sys.argv[1], int(sys.argv[2])
    taps = [int(tap) for tap in sys.argv[3].split(",")]
    n_lags, periods, looks, margin = (int(text) for text in sys.argv[4:8])
    rows = []
    for text in sys.argv[8].split(","):
        quarters, first, count = (int(part) for part in text.split(":")[:3])
        stretch = float(text.split(":")[3])
        rows += [(quarters / 4, quarters / 4 + s / periods, stretch) for s in range(first, first + count)]
    limit = STRETCHED_LIMIT if any(row[2] != 0 for row in rows) else LIMIT
    raw = np.fromfile(folder + "/samples", "<i2").reshape(-1, 2) / 32768.0
    want = dwell_map(raw[:, 0] + 1j * raw[:, 1], m_sequence(degree, taps), n_lags, periods, looks,
                     margin, rows)
    got = np.fromfile(folder + "/map", "<f4").reshape(want.shape).astype(float)
    apart = np.abs(got - want) / np.maximum(want, want.mean())
    peak = np.unravel_index(want.argmax(), want.shape)
    good = apart.max() <= limit and want[peak] > 5 * want.mean()
    print("%sok 1 - %d x %d cells, %.1e apart at most, %.1e of the peak; an echo %.1f dB above the "
          "mean at %d, %d" % ("" if good else "not ", *want.shape, apart.max(),
                              np.abs(got - want).max() / want.max(),
                              10 * np.log10(want[peak] / want.mean()), *peak))
    print("1..1")
    sys.exit(not good)


if __name__ == "__main__":
    main()
